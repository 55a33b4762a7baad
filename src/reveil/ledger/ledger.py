"""The private, transactional memory of a series: staged, then recorded, then revealed.

    staged = ledger.stage()                             # write public/, private/ and memory/ into it
    record = ledger.record(staged, on=head, facts={})   # all or nothing; only if `head` is still the newest
    folder = ledger.reveal(record.number)               # one rename

A process may die anywhere in between: the next `settle()` leaves the old state or the new one.
"""

from __future__ import annotations

import io
import json
import os
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reveil.base.errors import CommitUnknownError, Fault, InputError, ReveilError, TamperedError
from reveil.ledger import store
from reveil.ledger.record import Head, Identity, Record, canonical, chain_id

if TYPE_CHECKING:
    import polars as pl

    from reveil.ledger.catalog import Catalog


def discover(home: Path) -> bool:
    """Is there a series in this folder? A start cut off before anything was written does not count."""
    file = store.catalog_file(Path(home))
    with _usable(Path(home)):
        return (file.is_file() and file.stat().st_size > 0) or bool(store.released(Path(home)))


class Ledger:
    """One series in one home folder.

    >>> import tempfile
    >>> ledger = Ledger.create_or_open(Path(tempfile.mkdtemp()) / "home", series="demo", policy={"k": 5})
    >>> staged = ledger.stage()
    >>> _ = (staged / "public" / "table.csv").write_text("age;n")
    >>> record = ledger.record(staged, on=ledger.head(), facts={"rows": 1})
    >>> ledger.reveal(record.number).name, ledger.head().number, ledger.check()
    ('0001', 1, [])
    """

    def __init__(self, home: Path, catalog: Catalog, identity: Identity) -> None:
        """Use `create_or_open` or `open`."""
        self.home = home
        self._catalog = catalog
        self._identity = identity
        self._locks: dict[str, int] = {}  # token -> open lock file of a release in the making
        weakref.finalize(self, _close_all, self._locks)

    @classmethod
    def create_or_open(cls, home: Path, *, series: str, policy: dict[str, Any]) -> Ledger:
        """The ledger of a series, made if there is none; refuses another policy than the recorded one."""
        home = Path(home).absolute()
        given = canonical(policy)
        found = _identity(home) if discover(home) else None
        if found is None:
            store.lay_out(home)
            found = _found(home, series)
        if found.policy is not None and (faults := _changes(found, Identity(series, given, found.fingerprint))):
            raise InputError(faults)
        return cls(home, _catalog(home), Identity(series, given, found.fingerprint))

    @classmethod
    def open(cls, home: Path) -> Ledger:
        """The ledger of a series that exists."""
        home = Path(home).absolute()
        identity = _identity(home) if discover(home) else None
        if identity is None:
            kind = "this is a file, not a folder" if home.is_file() else "there is no series in this folder"
            raise InputError(
                Fault(
                    "R501",
                    f"home '{home}'",
                    kind,
                    "give the right folder with --home, or publish a first release",
                )
            )
        return cls(home, _catalog(home), identity)

    def __repr__(self) -> str:
        return f"Ledger({self.series!r}, {str(self.home)!r})"

    @property
    def key(self) -> bytes:
        """The secret that identifiers are hashed with; never another one than the series began with."""
        fault = store.key_fault(self.home, self._identity.fingerprint)
        if fault:
            raise TamperedError(fault)
        return store.key_file(self.home).read_bytes()

    @property
    def series(self) -> str:
        return self._identity.series

    @property
    def policy(self) -> dict[str, Any] | None:
        """The policy that the first release fixed, as recorded; None while there is no release."""
        identity = self._catalog.identity()
        return None if identity is None or identity.policy is None else _parsed_policy(identity.policy)

    def changes(self, series: str, policy: dict[str, Any]) -> list[Fault]:
        """Where this policy is not the recorded one; nothing before the first release has fixed it."""
        recorded = self._catalog.identity()
        if recorded is None or recorded.policy is None:
            return []
        return _changes(recorded, Identity(series, canonical(policy), recorded.fingerprint))

    def head(self) -> Head:
        return self._catalog.head()

    def records(self) -> list[Record]:
        return self._catalog.records()

    # --- making a release ----------------------------------------------------------------------------------

    def stage(self) -> Path:
        """A new folder with public/, private/ and memory/, left alone by others while this process lives."""
        with _usable(self.home):
            folder, lock = store.stage(self.home)
        self._locks[folder.name] = lock
        return folder

    def discard(self, staged: Path) -> None:
        """Remove a staged release that will not be recorded. One that is recorded, or may be, stays."""
        lock = self._locks.pop(staged.name, None)
        if lock is None:
            return
        try:
            recorded = staged.name in self._catalog.tokens()
        except ReveilError:
            recorded = True  # the next `settle` knows better
        if recorded:
            os.close(lock)
        else:
            with suppress(OSError):  # what cannot be removed now is removed by the next `settle`
                store.clear(staged, lock)

    def write_memory(self, staged: Path, name: str, frame: pl.DataFrame) -> None:
        """Keep a table for planning later releases, as Parquet in memory/.

        Where that fails, the caller discards the staged release: others may still be writing into it.
        """
        self._own(staged)
        import pyarrow.parquet as pq  # dictionaries of numbers that hardly repeat cost more than they save

        buffer, texts = io.BytesIO(), [column for column, kind in frame.schema.items() if kind.to_python() is str]
        pq.write_table(frame.to_arrow(), buffer, compression="lz4", use_dictionary=texts, write_statistics=False)
        try:
            (staged / _memory_path(name)).write_bytes(buffer.getbuffer())
        except OSError as error:
            raise store.refused_by_disk(error) from error

    def record(self, staged: Path, *, on: Head, facts: dict[str, Any]) -> Record:
        """Enter a staged release as the one after `on`, or refuse and leave nothing of it behind."""
        token = self._own(staged)
        plain = json.loads(canonical(facts))
        try:
            identity = self._identity_to_record()
            manifest = store.seal(staged)
            number, made = on.number + 1, datetime.now(UTC).isoformat(timespec="seconds")
            self._refuse_occupied(number)
            link = chain_id(identity, on.id, number, made, plain, manifest)
            record = Record(number, link, on.id, made, plain, manifest, False, token)
            self._catalog.append(record, on, identity)
        except CommitUnknownError:
            os.close(self._locks.pop(token))  # it is the next `settle` that decides, in whatever process
            raise
        except OSError as error:
            self.discard(staged)
            raise store.refused_by_disk(error) from error
        except Exception:
            self.discard(staged)
            raise
        return record

    def reveal(self, number: int) -> Path:
        """Show a recorded release: one rename into releases/. Repeating it changes nothing."""
        from reveil.ledger import recover

        record = self._find(number)
        if not record.revealed:
            recover.reveal(self.home, self._catalog, record)
        lock = self._locks.pop(record.token, None)
        if lock is not None:
            os.close(lock)
        return store.release_folder(self.home, number)

    def _own(self, staged: Path) -> str:
        if staged.name not in self._locks or staged != store.staging_folder(self.home, staged.name):
            raise InputError(
                Fault(
                    "R511",
                    f"folder '{staged}'",
                    "it was not staged by this ledger",
                    "use the folder `stage()` gave",
                )
            )
        return staged.name

    def _identity_to_record(self) -> Identity:
        """Another process may have fixed another policy since this ledger was opened."""
        recorded = self._catalog.identity()
        if recorded is not None and recorded.policy is not None:
            faults = [] if self._identity.policy is None else _changes(recorded, self._identity)
            if faults:
                raise InputError(faults)
            return recorded
        if self._identity.policy is None:
            message = "it has no release yet, and no policy was given to fix with the first one"
            raise InputError(Fault("R511", f"series '{self.series}'", message, "open it with its policy"))
        return self._identity

    def _refuse_occupied(self, number: int) -> None:
        if store.release_folder(self.home, number).exists() and self.head().number < number:
            raise TamperedError(
                Fault(
                    "R526",
                    f"releases/{store.release_name(number)}",
                    f"release {number} exists already, but the ledger does not know it. Nothing was recorded",
                    "restore the newest ledger.sqlite from a backup: this one is older than the releases",
                )
            )

    # --- looking back --------------------------------------------------------------------------------------

    def path(self, number: int) -> Path:
        """The folder of a recorded release."""
        return store.release_folder(self.home, self._find(number).number)

    def memory(self, number: int, name: str) -> pl.DataFrame:
        """A table kept with a release. Its bytes are hashed first, every time: plans are built on them."""
        import polars as pl

        from reveil.ledger.recover import locate

        record, path = self._find(number), _memory_path(name)
        if path not in record.manifest:
            kept = [Path(kept).stem for kept in record.manifest if kept.startswith("memory/")]
            message = f"it keeps no table '{name}'; it keeps: {', '.join(kept) or 'none'}"
            raise InputError(Fault("R510", f"release {number}", message, "ask for one of these"))
        folder = locate(self.home, record)
        data = store.read_recorded(folder, path, record.manifest[path]) if folder else None
        if data is None:
            raise TamperedError(
                Fault(
                    "R524",
                    f"release {number}, {path}",
                    "the file is missing or not the one that was recorded, and further releases depend on it",
                    "restore it from a backup of the home, then run `reveil verify`",
                )
            )
        return pl.read_parquet(io.BytesIO(data))

    def settle(self) -> list[str]:
        """Finish or clear away what a crash left; says what was done. Every command begins with it."""
        from reveil.ledger.recover import settle

        with _usable(self.home):
            return settle(self.home, self._catalog)

    def check(self, numbers: Iterable[int] | None = None) -> list[Fault]:
        """Read everything again and list what is not as recorded; `numbers` limits whose files are read."""
        from reveil.ledger.check import check

        try:
            wanted = None if numbers is None else {self._find(number).number for number in numbers}
            with _usable(self.home):
                return check(self.home, self._catalog, self._identity.fingerprint, wanted)
        except TamperedError as error:
            return list(error.faults)

    def _find(self, number: int) -> Record:
        found = self._catalog.records(number)
        if not found:
            records = self.records()
            known = f"it has releases 1 to {records[-1].number}" if records else "it has no release yet"
            raise InputError(Fault("R510", f"series '{self.series}'", f"there is no release {number}", known))
        return found[0]


@contextmanager
def _usable(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise store.cannot_use(home, error) from error


def _catalog(home: Path) -> Catalog:
    from reveil.ledger.catalog import Catalog  # SQLAlchemy takes a third of a second; `--help` must not wait for it

    return Catalog(store.catalog_file(home))


def _identity(home: Path) -> Identity | None:
    """What the catalog says the series is. Releases without a catalog are a loss, not a new beginning."""
    file = store.catalog_file(home)
    identity = _catalog(home).identity() if file.is_file() else None
    if identity is None and store.released(home):
        raise TamperedError(
            Fault(
                "R504",
                f"ledger '{file}'",
                "it is missing or empty, but there are releases beside it",
                "restore ledger.sqlite from a backup; do not start over, or past releases are forgotten",
            )
        )
    if identity is not None and identity.policy is not None:
        _parsed_policy(identity.policy)
    return identity


def _found(home: Path, series: str) -> Identity:
    with _usable(home):
        identity = _catalog(home).found(series, lambda: store.fingerprint(store.make_key(home)))
        store.catalog_file(home).chmod(0o600)
        store.sync(home)
        return identity


def _parsed_policy(text: str) -> dict[str, Any]:
    try:
        policy = json.loads(text)
    except ValueError:
        policy = None
    if not isinstance(policy, dict):
        message = "the recorded policy cannot be read: the ledger was edited"
        remedy = "restore ledger.sqlite from the newest backup of the home"
        raise TamperedError(Fault("R521", "ledger.sqlite", message, remedy))
    return policy


def _changes(recorded: Identity, given: Identity) -> list[Fault]:
    """Where a policy is not the one that the first release promised its readers. One of another kind is refused."""
    old, new = _parsed_policy(recorded.policy or ""), _parsed_policy(given.policy or "")
    if ("dp" in old) != ("dp" in new):
        kind = "noisy counts (`reveil count`)" if "dp" in old else "tables (`reveil publish`)"
        message = f"this home belongs to a series of {kind}, and the policy given is of the other kind"
        remedy = "give another home with --home, or the policy that this series began with"
        raise InputError(Fault("R502", f"series '{recorded.series}'", message, remedy))
    before = _flat(old) | {"series.name": canonical(recorded.series)}
    after = _flat(new) | {"series.name": canonical(given.series)}
    return [
        Fault(
            "R502",
            f"policy of series '{recorded.series}'",
            f"{key}: {before.get(key, '(not set)')} -> {after.get(key, '(not set)')} (recorded -> given)",
            "go back to the recorded value, or start a new series in a new home",
        )
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def _flat(value: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Dotted paths to JSON texts; an empty table is a value of its own."""
    flat: dict[str, str] = {}
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            flat |= _flat(inner, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = canonical(inner)
    return flat


def _memory_path(name: str) -> str:
    if not name.replace("-", "").replace("_", "").isalnum():
        raise InputError(
            Fault("R511", f"memory table '{name}'", "this is not a plain name", "use letters, digits, - _")
        )
    return f"memory/{name}.parquet"


def _close_all(locks: dict[str, int]) -> None:
    while locks:
        os.close(locks.popitem()[1])
