"""A series that has begun, to look back at: its recorded policy and its ledger, and nothing that plans or judges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from reveil.base.errors import Fault, TamperedError
from reveil.ledger.ledger import Ledger
from reveil.policy.policy import (
    Policy,
    PolicyLike,
    SeriesPublication,
    content_of,
    load_as,
    load_policy,
    recorded_policy,
)


@dataclass(frozen=True)
class Past:
    """What a series was promised and what it recorded; `changes` say where the policy given is another one."""

    policy: Policy
    ledger: Ledger
    changes: tuple[Fault, ...]
    settled: tuple[str, ...] = ()  # what an interrupted command had left, and what was done with it


def look_back(policy: PolicyLike, home: str | Path | None = None) -> Past:
    """A series that has begun, under the policy it was recorded with.

    What was promised can still be read and checked when the policy file has been edited. Only publishing refuses.
    """
    loaded = load_policy(policy)
    ledger = Ledger.open(home_of(loaded, home), loaded.anchor)
    changes = tuple(ledger.changes(loaded.series.name, loaded.fixed()))
    if changes and (faults := ledger.check([])):  # not the policy given was edited, but the recorded one
        raise TamperedError(faults)
    return Past(recorded_policy(ledger.policy or {}, loaded) if changes else loaded, ledger, changes)


def settle_and_look_back(policy: PolicyLike, home: str | Path | None = None) -> Past:
    """The same, after what an interrupted command had left is finished or cleared away: every look back begins so."""
    past = look_back(policy, home)
    return replace(past, settled=tuple(past.ledger.settle()))


def ledger_of(policy: PolicyLike, home: str | Path | None = None) -> tuple[Ledger, list[str]]:
    """The ledger of a series of rows, or of counts, and what had to be settled in it."""
    rules = _rules_of(policy)
    ledger = Ledger.open(home_of(rules, home), rules.anchor)
    return ledger, ledger.settle()


def place_of(policy: PolicyLike, home: str | Path | None = None) -> Path:
    """Where the home of a series of rows, or of counts, is."""
    return home_of(_rules_of(policy), home)


def _rules_of(policy: PolicyLike) -> SeriesPublication:
    if "dp" not in content_of(policy)[0]:
        return load_policy(policy)
    from reveil.dp.count_policy import Counting

    return load_as(Counting, policy)


def home_of(policy: SeriesPublication, home: str | Path | None) -> Path:
    """Without a `home`, the memory is in `.reveil` beside the policy file, or in the working folder."""
    return Path(home) if home is not None else policy.folder / ".reveil"
