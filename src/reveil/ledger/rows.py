"""Rows of a catalog as what they mean, whatever the database is; and what is wrong when they do not fit."""

from __future__ import annotations

import json
from typing import Any

from reveil.base.errors import ConflictError, Fault, InputError
from reveil.ledger.amendments import ACTIONS, RETRACT, amendment_fault
from reveil.ledger.proposals import (
    FOUR_EYES,
    OPEN,
    SIGN,
    STEPS,
    Proposal,
    ProposalState,
    recording_fault,
    signing_fault,
    state_of,
)
from reveil.ledger.record import FILES, Event, Head, Manifest, Record, ReleaseState, Snapshot, canonical


def row_of(record: Record) -> tuple[int | str, ...]:
    """The columns of `releases` after the series."""
    facts, manifest = canonical(record.facts), canonical(record.manifest)
    chained = (record.number, record.id, record.previous, record.made, facts, manifest)
    return (*chained, record.token, record.state.value)


def record_of(
    number: int, link: str, previous: str, made: str, facts: str, manifest: str, state: str, token: str
) -> Record:
    if type(number) is not int or number < 1:
        raise ValueError("the number of a release is a whole number from 1 on")
    if not all(isinstance(text, str) for text in (link, previous, made, token)):
        raise ValueError("ids, time and token are texts")
    return Record(number, link, previous, made, *_contents(facts, manifest), ReleaseState(state), token)


def proposal_of(token: str, number: int, link: str, made: str, actor: str, facts: str, manifest: str) -> Proposal:
    if type(number) is not int or not all(isinstance(text, str) for text in (token, link, made, actor)):
        raise ValueError("token, id, time and actor are texts, the number is a whole number")
    return Proposal(token, Head(number, link), made, actor, *_contents(facts, manifest))


def _contents(facts: str, manifest: str) -> tuple[dict[str, Any], Manifest]:
    said, listed = json.loads(facts), json.loads(manifest)
    if not isinstance(said, dict) or not isinstance(listed, dict):
        raise ValueError("facts and manifest must be JSON objects")
    return said, {path: {"sha256": str(entry["sha256"]), "size": int(entry["size"])} for path, entry in listed.items()}


def event_of(link: str, previous: str, at: str, actor: str, action: str, release: str, details: str) -> Event:
    if not all(isinstance(text, str) for text in (link, previous, at, actor, action, release)):
        raise ValueError("ids, time, actor and action are texts")
    more = json.loads(details)
    if not isinstance(more, dict):
        raise ValueError("details must be a JSON object")
    for files in more.get(FILES, {}).values():
        for one in dict(files).values():
            if one is not None and not (isinstance(one, dict) and {"sha256", "size"} <= one.keys()):
                raise ValueError("files have a hash and a size")
    return Event(link, previous, at, actor, action, release, more)


def overtaken(event: Event) -> Fault:
    message = f"meanwhile something else was done to this release or after it; it was not {event.action}"
    return Fault("R531", "series", message, "look at `reveil history`, and decide again")


def moved_on(on: Head, head: Head) -> Fault:
    message = f"this release was planned on {on}, but the newest is now {head}. Nothing was recorded"
    return Fault("R507", "series", message, "publish again: it plans on the newest release")


def damaged(where: str, message: str, code: str = "R504") -> Fault:
    remedy = "restore ledger.sqlite from the newest backup; do not start over, or past releases are forgotten"
    return Fault(code, where, message, remedy)


def refuse_second(series: Snapshot, token: str = "") -> None:
    """One proposal at a time: the next release is planned on what this one becomes."""
    for other in series.proposals:
        if other.token != token and state_of(other, series.events, series.chain) in OPEN:
            message = f"there is an open proposal already ({other.token}, made {other.made} by {other.by})"
            remedy = f"accept it (`reveil accept {other.token}`) or withdraw it (`reveil withdraw {other.token}`) first"
            raise ConflictError(Fault("R535", "series", message, remedy))


def refuse_recording(series: Snapshot, token: str = "") -> None:
    """What stands against recording a release: another proposal, or under four eyes a signature that is not there.

    Without the token of a proposal, whether a release could be recorded that nobody has proposed.
    """
    refuse_second(series, token)
    proposal = next((one for one in series.proposals if one.token == token), None)
    state = None if proposal is None else state_of(proposal, series.events, series.chain)
    if proposal is not None and (state not in OPEN or state is ProposalState.RETURNED):
        late = f"was planned on {proposal.on}, and the newest is now {series.head}"
        remedy = f"`reveil withdraw {token}`, then propose the table again: it is planned on the newest release"
        message = late if state is ProposalState.STALE else f"is {state}"
        raise ConflictError(Fault("R535", f"proposal {token}", message, remedy))
    if fault := recording_fault(proposal, series.events, series.chain, series.identity):
        raise InputError(fault)


def step_fault(series: Snapshot, event: Event) -> Fault | None:
    """Why a step of a proposal cannot be taken now, as the series is."""
    if event.action == FOUR_EYES:
        return None
    if event.action in ACTIONS or event.action == RETRACT:
        return amendment_fault(series, event)
    proposal = next((one for one in series.proposals if one.token == event.release), None)
    if proposal is None:
        return Fault("R535", f"proposal {event.release}", "is not in this series", "see `reveil proposals`")
    state = state_of(proposal, series.events, series.chain)
    if event.action not in STEPS[state]:
        hint = {ProposalState.STALE: "withdraw it and propose the table again"}.get(state, "see `reveil proposals`")
        return Fault("R535", f"proposal {event.release}", f"is {state}, and cannot be {event.action}", hint)
    return signing_fault(proposal, series.events, event.actor) if event.action == SIGN else None
