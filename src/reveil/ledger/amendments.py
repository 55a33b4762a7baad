"""What is done to the memory of a series years later: values corrected, people erased, merged or split, a new key.

An amendment is an event, chained like the others. Files that a release had sealed are replaced, and the event says the
hash of each new file: the entry of the release stays as it was, with the hashes that it was recorded with, and the
chain is verified as before. What a release has now follows from its entry and the events (`record.as_amended`).

    written into staging/ -> the event, in one transaction -> each file takes its place, by one rename

A stop before the transaction leaves the old memory; after it, the next command puts the files into their places.
Whoever plans names the newest amendment that they know, and a release that was planned before it is refused.

Under four eyes two people give the same command: the first one's is noted, the second one's does it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reveil.base.errors import ConflictError, Fault, InputError
from reveil.ledger.proposals import WAITING, four_eyes, state_of
from reveil.ledger.record import Event, Identity, Snapshot

CORRECT, ERASE, MERGE, SPLIT, ROTATE = "corrected", "erased", "merged", "split", "key changed"
END, ASK, RETRACT = "ended", "asked", "retracted"
MEMORY = (CORRECT, ERASE, MERGE, SPLIT, ROTATE)  # a release that was planned before one of these is not recorded
ACTIONS = {*MEMORY, END, ASK}  # about the series as a whole
AMENDED = "amended"  # among the facts of a release: the newest of these that its plan knew
FINGERPRINT, KEY = "fingerprint", "key"  # among the details of an event: of the new key; what became of the key
KEPT, DESTROYED, LOST = "kept", "destroyed", "lost"  # the key of a series that ended


def newest(events: Iterable[Event]) -> str:
    """The id of the newest amendment of the memory; no text where there is none."""
    return next((event.id for event in reversed(tuple(events)) if event.action in MEMORY), "")


def end_of(events: Iterable[Event]) -> Event | None:
    """The end of the series, where it has one."""
    return next((event for event in events if event.action == END), None)


def key_of(identity: Identity, events: Sequence[Event]) -> str | None:
    """The fingerprint of the key that the home should have; None where the series ended without it."""
    end = end_of(events)
    if end is not None and end.details.get(KEY) != KEPT:
        return None
    changed = [event.details[FINGERPRINT] for event in events if event.action == ROTATE]
    return str(changed[-1]) if changed else identity.fingerprint


def refuse_ended(events: Iterable[Event]) -> None:
    """Nothing is published, and no memory changed, after the end."""
    if end := end_of(events):
        message = f"has ended ({end.at[:10]}, by {end.actor}): no further release can be made"
        remedy = "verify, audit, hand over and retract still work; a new series begins in a new home"
        raise InputError(Fault("R550", "series", message, remedy))


def refuse_forgotten(events: Iterable[Event]) -> None:
    """What needs the memory cannot be done after it was destroyed."""
    end = end_of(events)
    if end is not None and end.details.get("memory") == DESTROYED:
        message = f"has ended ({end.at[:10]}), and its memory was destroyed: its promise cannot be judged again"
        remedy = "`reveil history` still compares every public byte with what was recorded"
        raise InputError(Fault("R561", "series", message, remedy))


def refuse_outdated(known: str, last: Event | None) -> None:
    """A release whose plan did not know the newest amendment would bring back what was taken out."""
    if last is not None:
        refuse_ended([last])
    if known != ("" if last is None else last.id):
        message = "the memory of the series was changed while this release was made. Nothing was recorded"
        raise ConflictError(Fault("R559", "series", message, "publish again: it plans on the memory as it is now"))


def amendment_fault(series: Snapshot, event: Event) -> Fault | None:
    """Why an amendment cannot be made now, as the series is."""
    wanted = event.details.get("for") if event.action == ASK else event.action
    if wanted != RETRACT and (end := end_of(series.events)):
        message = f"has ended ({end.at[:10]}): its memory is no longer changed"
        return Fault("R550", "series", message, "verify, audit, hand over and retract still work")
    if event.action in (*MEMORY, END) and event.details.get("head") != series.head.id:
        return Fault(
            "R559", "series", "a release was recorded meanwhile; nothing was changed", "give the command again"
        )
    waiting = [p.token for p in series.proposals if state_of(p, series.events, series.chain) in WAITING]
    if event.action in (*MEMORY, END) and waiting:
        remedy = f"accept it or withdraw it first (`reveil withdraw {waiting[0]}`)"
        return Fault("R551", f"proposal {waiting[0]}", "waits, and was made from the memory as it is", remedy)
    if event.action != ASK and four_eyes(series.events) and not _asked_by_another(series.events, event):
        message = f"needs a second person: somebody else must ask for exactly the same ('{event.action}') first"
        return Fault("R552", "series", message, "let another person give the same command")
    return None


def _asked_by_another(events: Sequence[Event], event: Event) -> bool:
    """Whether another person has asked for exactly this, and it was not done since."""
    wanted = (event.action, event.details.get("digest"))
    asked = False
    for past in events:
        if past.action == ASK and (past.details.get("for"), past.details.get("digest")) == wanted:
            asked = asked or past.actor != event.actor
        elif (past.action, past.details.get("digest")) == wanted:
            asked = False
    return asked
