"""Settle what a crash left: a release that was recorded is revealed, one that was not is cleared away."""

from __future__ import annotations

import os
from pathlib import Path

from reveil.base.errors import Fault, InputError, TamperedError
from reveil.ledger import store
from reveil.ledger.catalog import Catalog
from reveil.ledger.record import Record


def settle(home: Path, catalog: Catalog) -> list[str]:
    """Bring the home to the state before the crash or after it; returns what was done, in sentences."""
    done: list[str] = []
    faults: list[Fault] = []
    for record in catalog.records():
        if record.revealed:
            continue
        fault = _unusable(home, record)
        if fault:
            faults.append(fault)
            continue
        reveal(home, catalog, record)
        done.append(f"Release {record.number} was recorded but not yet revealed; it is revealed now.")
    for token in store.staged_tokens(home):
        done.extend(_clear_away(home, catalog, token))
    if faults:
        raise TamperedError(faults)
    return done


def locate(home: Path, record: Record) -> Path | None:
    """Where the files of a recorded release are: revealed, or still staged, or nowhere."""
    places = [store.release_folder(home, record.number)]
    if not record.revealed:
        # The second look at the release folder is for a publisher that moves it between the first two.
        places += [store.staging_folder(home, record.token), places[0]]
    return next((place for place in places if place.is_dir()), None)


def reveal(home: Path, catalog: Catalog, record: Record) -> None:
    """Move a recorded release into releases/ and note it. Safe to repeat after a stop at any point."""
    try:
        store.move_to_releases(home, record.token, record.number)
    except OSError as error:
        message = f"it is recorded, but could not be moved into releases/: {store.reason(error)}"
        remedy = "look after the home folder; the next command finishes the release"
        raise InputError(Fault("R509", f"release {record.number}", message, remedy)) from error
    catalog.mark_revealed(record.number)
    _drop_lock(store.staging_folder(home, record.token))


def _drop_lock(folder: Path) -> None:
    """The folder has moved away: its lock guards nothing any more, whoever holds it."""
    store.lock_file(folder).unlink(missing_ok=True)


def _unusable(home: Path, record: Record) -> Fault | None:
    folder = locate(home, record)
    if folder is not None and not store.compare(folder, record.manifest):
        return None
    if folder is not None and not folder.exists():  # another process revealed it while we read
        return _unusable(home, record)
    staged = store.staging_folder(home, record.token)
    state = "are missing" if folder is None else "are not what was recorded"
    return Fault(
        "R527",
        f"release {record.number}",
        f"it was recorded ({record.made}), a stop came before it was revealed, and now its files {state}",
        f"restore the folder '{staged}' from a backup and run the command again; without a backup this "
        "series cannot go on, as nobody can say whether the release was seen: start a new one in a new home",
    )


def _clear_away(home: Path, catalog: Catalog, token: str) -> list[str]:
    folder = store.staging_folder(home, token)
    try:
        lock = store.take_lock(store.lock_file(folder), new=False)
        if lock is None:  # its publisher is alive
            return []
        # Only now is the answer final: a dead publisher records nothing any more.
        existed = folder.is_dir()
        if existed and token in catalog.tokens():
            os.close(lock)
            return []
        store.clear(folder, lock)
    except OSError as error:
        return [f"An unfinished release in staging/{token} could not be removed: {store.reason(error)}."]
    return [f"An unfinished release in staging/{token} was removed; it had not been recorded."] if existed else []
