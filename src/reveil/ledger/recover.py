"""Settle what a crash left: a release that was recorded is revealed, one that was not is cleared away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from reveil.base.errors import Fault, InputError, TamperedError, UnfinishedError
from reveil.ledger.amending import finish
from reveil.ledger.proposals import WAITING, state_of
from reveil.ledger.protocols import Bulk, Catalog
from reveil.ledger.record import Record, ReleaseState, Snapshot
from reveil.ledger.store import reason


def settle(home: Path, catalog: Catalog, bulk: Bulk, series: Snapshot, hold: Callable[[Record], None]) -> list[str]:
    """Bring the home to the state before the crash or after it; returns what was done, in sentences.

    `hold` is called with a release before it is revealed. Files of open proposals stay.
    """
    chain = series.present
    kept = {one.token for one in series.proposals if state_of(one, series.events, chain) in WAITING}
    done = [*finish(home, bulk, series), *_remove_discarded(bulk, chain)]
    faults: list[Fault] = []
    lost: list[Record] = []
    for record in chain:
        if record.revealed or record.discarded:
            continue
        fault = _unusable(bulk, record)
        if fault:
            faults.append(fault)
            lost.append(record)
            continue
        hold(record)
        reveal(catalog, bulk, record)
        done.append(f"Release {record.number} was recorded but not yet revealed; it is revealed now.")
    for token in bulk.staged():
        if token not in kept and not any(_holds_files_of(bulk, record, token) for record in lost):
            done.extend(_clear_away(catalog, bulk, token))
    if faults:
        raise TamperedError(faults)
    return done


def _remove_discarded(bulk: Bulk, chain: Sequence[Record]) -> list[str]:
    """Files of a discarded release go as soon as may be, and before another release has its number."""
    if not chain or not chain[-1].discarded:
        return []
    where = f"release {chain[-1].number}"
    try:
        removed = bulk.remove(chain[-1])
    except OSError as error:
        message, remedy = (
            f"was discarded, and its files cannot be deleted: {reason(error)}",
            "look after the home folder",
        )
        raise InputError(Fault("R509", where, message, f"{remedy}, then run the command again")) from error
    return [f"The files of {where}, which was discarded, were deleted."] if removed else []


def reveal(catalog: Catalog, bulk: Bulk, record: Record) -> None:
    """Move a recorded release to its place and note it. Safe to repeat after a stop at any point."""
    try:
        bulk.reveal(record)
    except OSError as error:
        message = f"it is recorded, but could not be moved into releases/: {reason(error)}"
        remedy = "look after the home folder; the next command finishes the release"
        raise UnfinishedError(Fault("R509", f"release {record.number}", message, remedy)) from error
    try:
        catalog.set_state(record.number, ReleaseState.REVEALED)
    except InputError as error:  # to be told as a refusal would be wrong: it is recorded, and in its place
        raise unfinished(record.number, error) from error
    bulk.forget(record)


def unfinished(number: int, error: InputError) -> UnfinishedError:
    """What is said where the ledger does not answer any more after a release was recorded."""
    message = f"it is recorded, but the ledger did not answer afterwards: {error.faults[0].message}"
    remedy = "do not publish it again; the next command finishes it (such as `reveil history`)"
    return UnfinishedError(Fault("R509", f"release {number}", message, remedy))


def _unusable(bulk: Bulk, record: Record) -> Fault | None:
    difference = bulk.compare(record)
    if difference is not None and not difference:
        return None
    state = "are missing" if difference is None else "are not what was recorded"
    return Fault(
        "R527",
        f"release {record.number}",
        f"it was recorded ({record.made}), a stop came before it was revealed, and now its files {state}",
        f"restore the folder '{bulk.place_of(record)}' from a backup and run the command again; without a backup this "
        "series cannot go on, as nobody can say whether the release was seen: start a new one in a new home",
    )


def _holds_files_of(bulk: Bulk, record: Record, token: str) -> bool:
    """Whether these staged files are those of a recorded release, whose token was edited."""
    difference = bulk.compare(replace(record, token=token))
    return difference is not None and not difference


def _clear_away(catalog: Catalog, bulk: Bulk, token: str) -> list[str]:
    try:
        if not bulk.claim(token):  # its publisher is alive
            return []
        # Only now is the answer final: a dead publisher records and proposes nothing any more.
        if bulk.has(token) and (catalog.holds(token) or catalog.waits(token)):
            bulk.let_go(token)
            return []
        existed = bulk.discard(token)
    except OSError as error:
        return [f"An unfinished release in staging/{token} could not be removed: {reason(error)}."]
    return [f"An unfinished release in staging/{token} was removed; it had not been recorded."] if existed else []
