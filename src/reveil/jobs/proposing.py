"""Proposals as people and programs look at them, and what is done with them: accept, withdraw, list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reveil.base.errors import Fault, InputError
from reveil.jobs.release import Release
from reveil.ledger.ledger import Ledger
from reveil.ledger.proposals import WAITING, Proposal, ProposalState, four_eyes, state_of, steps_of
from reveil.ledger.record import Snapshot
from reveil.ledger.recover import unfinished
from reveil.policy.policy import PolicyLike


@dataclass(frozen=True)
class Proposed:
    """A proposed release: how far it has come, who did what, and where its files wait."""

    token: str
    number: int
    state: ProposalState
    made: str
    by: str
    counts: Mapping[str, int]
    loss: float
    folder: Path | None  # public/ and private/, while it waits
    steps: tuple[Mapping[str, Any], ...]  # action, at, by, note

    def to_dict(self) -> dict[str, Any]:
        return {
            "proposal": self.token,
            "release": self.number,
            "state": str(self.state),
            "made": self.made,
            "by": self.by,
            "counts": dict(self.counts),
            "loss": self.loss,
            "folder": None if self.folder is None else str(self.folder),
            "steps": [dict(step) for step in self.steps],
        }


@dataclass(frozen=True)
class Proposals:
    """All proposals of a series, the oldest first, and whether releases need a second person's signature."""

    listed: tuple[Proposed, ...]
    four_eyes: bool
    settled: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {"four_eyes": self.four_eyes, "proposals": [one.to_dict() for one in self.listed]}


def proposed_of(ledger: Ledger, token: str) -> Proposed:
    """One proposal, as it is now."""
    series = ledger.snapshot()
    found = next(one for one in series.proposals if one.token == token)
    return _described(ledger, series, found)


def _described(ledger: Ledger, series: Snapshot, one: Proposal) -> Proposed:
    state = state_of(one, series.events, series.chain)
    steps = tuple(
        {"action": e.action, "at": e.at, "by": e.actor, **({"note": e.details["note"]} if "note" in e.details else {})}
        for e in steps_of(one, series.events)
    )
    folder = ledger.approval.folder(one) if state in WAITING else None
    counts, loss = one.facts["counts"], one.facts["loss"]["mean_ncp"]
    return Proposed(one.token, one.number, state, one.made, one.by, counts, loss, folder, steps)


def _ledger_of(policy: PolicyLike, home: str | Path | None) -> tuple[Ledger, list[str]]:
    """The ledger under the policy given: the first release fixes it."""
    from reveil.publish import open_series

    series = open_series(policy, home)
    if not series.begun:
        message, remedy = "there is no series in this folder", "propose a first table, or give the right --home"
        raise InputError(Fault("R501", f"home '{series.home}'", message, remedy))
    return series.ledger, series.settle()


def accept(policy: PolicyLike, home: str | Path | None, token: str) -> Release:
    """Record and reveal a proposal: the one that is open, where none is named."""
    ledger, _ = _ledger_of(policy, home)
    record = ledger.approval.accept(token)
    ledger.reveal(record.number)
    try:
        return Release.load(ledger, record)
    except InputError as error:
        raise unfinished(record.number, error) from error


def withdraw(policy: PolicyLike, home: str | Path | None, token: str, note: str) -> Proposed:
    """Give a proposal up; its files are removed, its entry stays."""
    ledger, _ = _ledger_of(policy, home)
    event = ledger.approval.withdraw(token, note=note)
    return proposed_of(ledger, event.release)


def list_proposals(policy: PolicyLike, home: str | Path | None) -> Proposals:
    """Every proposal of the series."""
    ledger, settled = _ledger_of(policy, home)
    series = ledger.checked()
    order = {event.release: place for place, event in reversed(list(enumerate(series.events)))}  # when each was made
    made = sorted(series.proposals, key=lambda one: order.get(one.token, 0))
    listed = tuple(_described(ledger, series, one) for one in made)
    return Proposals(listed, four_eyes(series.events), tuple(settled))
