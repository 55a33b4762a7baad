"""Is there a series in a home, which one, and how one begins: what is done before there is a ledger."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reveil.base.errors import Fault, TamperedError
from reveil.ledger import store
from reveil.ledger.folder import Folders
from reveil.ledger.record import Identity
from reveil.ledger.recorded_policy import parsed_policy
from reveil.ledger.rows import damaged
from reveil.ledger.sqlite import SqliteCatalog


def discover(home: Path) -> bool:
    """Is there a series in this folder? A start cut off before anything was written does not count."""
    file = store.catalog_file(Path(home))
    with usable(Path(home)):
        if store.pointer_file(Path(home)).is_file():
            return True
        return (file.is_file() and file.stat().st_size > 0) or bool(Folders(Path(home)).revealed())


@contextmanager
def usable(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise store.cannot_use(home, error) from error


def catalog_of(home: Path) -> SqliteCatalog:
    """The catalog of a home: its own file, or the database that it points to."""
    file = store.pointer_file(home)
    if not file.is_file():
        return SqliteCatalog(store.catalog_file(home))
    from reveil.ledger.postgres import PostgresCatalog

    try:
        said = json.loads(file.read_text(encoding="utf-8"))
        return PostgresCatalog(said["catalog"], said["series"])
    except (ValueError, KeyError, TypeError):
        raise TamperedError(damaged(f"file '{file}'", "does not say where the ledger is")) from None


def identity_of(home: Path) -> Identity | None:
    """What the catalog says the series is. Releases without a catalog are a loss, not a new beginning."""
    file = store.catalog_file(home)
    kept = file.is_file() or store.pointer_file(home).is_file()
    identity = catalog_of(home).identity() if kept else None
    if identity is None and Folders(home).revealed():
        raise TamperedError(
            Fault(
                "R504",
                f"ledger '{file}'",
                "it is missing or empty, but there are releases beside it",
                "restore ledger.sqlite from a backup; do not start over, or past releases are forgotten",
            )
        )
    if identity is not None and identity.policy is not None:
        parsed_policy(identity.policy)
    return identity


def found_series(home: Path, series: str, key: bytes) -> Identity:
    with usable(home):
        identity = catalog_of(home).found(series, lambda: store.fingerprint(store.make_key(home, key)))
        if store.catalog_file(home).is_file():
            store.catalog_file(home).chmod(0o600)
        store.sync(home)
        return identity
