"""Proposals: a release that is made, verified and sealed, and waits for somebody's word before it is recorded.

    staged -> submitted -> signed -> revealed;   returned, withdrawn, stale

A proposal is durable: its files stay staged, its entry is in the catalog, and every step is a chained event. So its
state is nothing that could be edited: it follows from the events, and from whether it was recorded. Recording and
revealing happen together, after signing: until then withdrawing tells nobody anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from reveil.base.errors import Fault
from reveil.ledger.record import Event, Head, Identity, Manifest, Record, canonical, digest, head_of


class ProposalState(StrEnum):
    """How far a proposal has come."""

    STAGED = "staged"
    SUBMITTED = "submitted"
    SIGNED = "signed"
    RETURNED = "returned"
    WITHDRAWN = "withdrawn"
    STALE = "stale"  # another release was recorded since: it was planned on a past that is no longer the newest
    REVEALED = "revealed"


PROPOSE, SUBMIT, SIGN, RETURN, WITHDRAW, FOUR_EYES = (
    *("proposed", "submitted", "signed", "returned", "withdrawn"),
    "four eyes",
)
OUTCOME = {
    PROPOSE: ProposalState.STAGED,
    SUBMIT: ProposalState.SUBMITTED,
    SIGN: ProposalState.SIGNED,
    RETURN: ProposalState.RETURNED,
    WITHDRAW: ProposalState.WITHDRAWN,
}
OPEN = (ProposalState.STAGED, ProposalState.SUBMITTED, ProposalState.SIGNED, ProposalState.RETURNED)
WAITING = (*OPEN, ProposalState.STALE)  # for somebody's word: their files are kept
STEPS: dict[ProposalState, frozenset[str]] = {
    ProposalState.STAGED: frozenset({SUBMIT, WITHDRAW}),
    ProposalState.SUBMITTED: frozenset({SIGN, RETURN, WITHDRAW}),
    ProposalState.SIGNED: frozenset({RETURN, WITHDRAW}),
    ProposalState.RETURNED: frozenset({SUBMIT, WITHDRAW}),
    ProposalState.WITHDRAWN: frozenset(),
    ProposalState.STALE: frozenset({WITHDRAW}),
    ProposalState.REVEALED: frozenset(),
}


@dataclass(frozen=True)
class Proposal:
    """One proposed release, sealed. `token` names its staged files."""

    token: str
    on: Head
    made: str
    by: str
    facts: dict[str, Any] = field(repr=False)
    manifest: Manifest = field(repr=False)

    @property
    def number(self) -> int:
        """The number it would have."""
        return self.on.number + 1

    def digest(self, identity: Identity) -> str:
        """What a signature is about: every byte, the facts, the head that it was planned on, the promise."""
        about = {
            "series": identity.series,
            "policy": digest(identity.policy or ""),
            "made": [self.made, self.by],
            "on": [self.on.number, self.on.id],
            "facts": self.facts,
            "manifest": self.manifest,
        }
        return digest(canonical(about))


def steps_of(proposal: Proposal, events: Sequence[Event]) -> list[Event]:
    """What happened to a proposal, in order."""
    return [event for event in events if event.release == proposal.token and event.action in OUTCOME]


def state_of(proposal: Proposal, events: Sequence[Event], chain: Sequence[Record]) -> ProposalState:
    """How far a proposal has come, from what happened to it."""
    if any(record.token == proposal.token for record in chain):
        return ProposalState.REVEALED
    steps = steps_of(proposal, events)
    state = OUTCOME[steps[-1].action] if steps else ProposalState.STAGED
    return ProposalState.STALE if state in OPEN and proposal.on != head_of(chain) else state


def four_eyes(events: Sequence[Event]) -> bool:
    """Whether every release of the series must be signed by somebody else."""
    said = [event for event in events if event.action == FOUR_EYES]
    return bool(said) and said[-1].details.get("on") is True


def makers_of(proposal: Proposal, events: Sequence[Event]) -> set[str]:
    """Who made or submitted a proposal: none of them may sign it."""
    return {proposal.by} | {event.actor for event in steps_of(proposal, events) if event.action in (PROPOSE, SUBMIT)}


def signing_fault(proposal: Proposal, events: Sequence[Event], actor: str) -> Fault | None:
    """Nobody signs what they made."""
    if actor not in makers_of(proposal, events):
        return None
    message = f"was made or submitted by '{actor}', who cannot sign it as well"
    return Fault("R537", f"proposal {proposal.token}", message, "let somebody else look at it and sign")


def recording_fault(
    proposal: Proposal | None, events: Sequence[Event], chain: Sequence[Record], identity: Identity
) -> Fault | None:
    """Why a release must not be recorded: under four eyes it needs a signature on exactly these bytes."""
    if not four_eyes(events):
        return None
    if proposal is None:
        remedy = "propose it (`reveil propose`), let somebody else sign it, then `reveil accept`"
        return Fault("R536", "series", "releases of this series need a second person's signature", remedy)
    where = f"proposal {proposal.token}"
    if state_of(proposal, events, chain) is not ProposalState.SIGNED:
        remedy = "let somebody who did not make it sign it"
        return Fault("R536", where, "needs a second person's signature, and has none", remedy)
    signature = steps_of(proposal, events)[-1]
    void = signature.details.get("digest") != proposal.digest(identity)
    if void or signature.actor in makers_of(proposal, events):
        message = "was signed as something else than it is now, or by one of its makers"
        return Fault("R536", where, message, "withdraw it and propose the table again")
    return None


def proposal_faults(
    proposals: Sequence[Proposal], events: Sequence[Event], identity: Identity, *, fixed: bool
) -> Iterator[Fault]:
    """Where the entry of a proposal is not the one whose making was noted, or is gone."""
    remedy = "restore ledger.sqlite from the newest backup of the home"
    known = {proposal.token: proposal for proposal in proposals}
    made = {event.release: event for event in events if event.action == PROPOSE}
    for token in dict.fromkeys(event.release for event in events if event.action in OUTCOME):
        if token not in known or token not in made:
            yield Fault("R533", f"proposal {token}", "is no longer in the ledger, or its making is not", remedy)
        elif fixed and made[token].details.get("digest") != known[token].digest(identity):
            yield Fault("R533", f"proposal {token}", "was changed after it was made", remedy)
    for token in known.keys() - made.keys():
        yield Fault("R533", f"proposal {token}", "is in the ledger, and nobody made it", remedy)
