"""What is done to a release: proposed and signed before it is recorded, handed over or taken back afterwards.

Each step is an event, chained to the one before it, and the record of the next release names the newest one: an event
that was edited, or removed before a later release, is noticed. The state of a release must be the one its events
brought about.
"""

from __future__ import annotations

import getpass
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from reveil.base.errors import Fault, InputError
from reveil.ledger import amendments, proposals
from reveil.ledger.record import Event, Record, ReleaseState, Snapshot, canonical, event_id

HAND_OVER, DISCARD = "handed over", "discarded"
NEWEST_EVENT = "newest event"  # among the facts of a record
OUTCOME = {
    HAND_OVER: ReleaseState.HANDED_OVER,
    DISCARD: ReleaseState.DISCARDED,
    amendments.RETRACT: ReleaseState.RETRACTED,
}
ACTIONS = {*OUTCOME, *proposals.OUTCOME, proposals.FOUR_EYES, *amendments.ACTIONS}


def actor() -> str:
    """Who is at the machine, as it says."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user number without a name
        return "unknown"


def next_event(series: Snapshot, action: str, about: str, details: dict[str, Any], by: str = "") -> Event:
    """An event after all that have happened, about a release (its id) or a proposal (its token)."""
    previous = series.events[-1].id if series.events else ""
    at, who = datetime.now(UTC).isoformat(timespec="seconds"), by or actor()
    plain = json.loads(canonical(details))
    link = event_id(series.identity, previous, at, who, action, about, plain)
    return Event(link, previous, at, who, action, about, plain)


def refuse_discard(series: Snapshot, record: Record) -> None:
    """Only the newest release can be taken back, and only while nobody has it."""
    where = f"release {record.number}"
    if record.state in (ReleaseState.HANDED_OVER, ReleaseState.RETRACTED):
        message = "was handed over: others have it, and what it tells cannot be taken back"
        remedy = f"publish the corrected table as the next release; `reveil retract {record.number}` tells who has it"
        raise InputError(Fault("R532", where, message, remedy))
    if record.id != series.head.id:
        message = f"is not the newest: release {series.head.number} was planned on it"
        remedy = f"discard release {series.head.number} first, if nobody has it either"
        raise InputError(Fault("R532", where, message, remedy))


def event_faults(series: Snapshot) -> Iterator[Fault]:
    """Where events were edited or lost, or a release is in a state that no event brought about."""
    remedy = "restore ledger.sqlite from the newest backup of the home"
    identity, previous = series.identity, ""
    for number, event in enumerate(series.events, start=1):
        link = event_id(identity, previous, event.at, event.actor, event.action, event.release, event.details)
        if event.previous != previous or event.id != link or event.action not in ACTIONS:
            yield Fault("R533", f"event {number}", "was changed later, or one before it is missing", remedy)
            return
        previous = event.id
    ids = {event.id for event in series.events}
    states = {event.release: OUTCOME[event.action] for event in series.events if event.action in OUTCOME}
    yield from proposals.proposal_faults(series.proposals, series.events, identity, fixed=bool(series.chain))
    for record in series.chain:
        where = f"release {record.number}"
        named = record.facts.get(NEWEST_EVENT)
        if named is not None and named not in ids:
            yield Fault("R533", where, "names an event that is no longer in the ledger", remedy)
        by_event = record.state in OUTCOME.values()
        if states.get(record.id, record.state) is not record.state or (by_event and record.id not in states):
            yield Fault("R533", where, f"is said to be {record.state}, and its events say otherwise", remedy)
