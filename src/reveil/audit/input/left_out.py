"""People who were in a table and are not shown by its release: the adversary knows everybody who was put in.

Seed 003's adversary knows who was in the *input* (its E_i), the withheld included. Where newcomers are left out while
others who came with them are shown, or though there were enough of them for a group, some value was too frequent: they
were chosen by it, or drawn by lot from all (`infeasible = "wait"`), so that it is frequent among them, too. So whoever
knows the rule names the value that is shown most often in the groups that begin with this release; among several that
are shown as often, the one that is too frequent in the table, because how frequent values are is no secret. Where
newcomers were simply too few, or people who are known lost their place, that follows from who was there, and tells
nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reveil.audit.input.observed import Observed
from reveil.base.arrays import I64, Bools
from reveil.guarantees.k_anonymity import KAnonymity
from reveil.guarantees.lasting import ManyValues
from reveil.policy.policy import Policy
from reveil.policy.reasons import ALL, BY_VALUE, CROWD, DRAWN, FEW, FOR_GOOD, REASONS, SHOWN

MANY = 6  # times the least size of a group: of so many newcomers who do not fit, some are drawn


@dataclass(frozen=True, eq=False)
class LeftOut:
    """One entry for each person and release; `held`, their true value, is for scoring guesses alone."""

    person: I64
    release: I64
    held: I64  # code, -1 for a value that no release shows
    waits: frozenset[int] = frozenset()  # releases whose rule was that newcomers without a group all wait,
    by_lot: frozenset[int] = frozenset()  # and of these, the ones where some of many are drawn instead

    def __len__(self) -> int:
        return len(self.person)


@dataclass(frozen=True, eq=False)
class Telling:
    """What being left out tells: of each entry, why (`REASONS`), and the value that is named if that tells something.

    `later` are people who were chosen, and whom a later release shows all the same.
    """

    left: LeftOut
    reason: I64
    named: I64  # code, -1 for none
    later: I64

    @property
    def guessed(self) -> Bools:
        """Of each entry, whether a value is named."""
        return np.asarray(self.named >= 0)

    @property
    def right(self) -> Bools:
        """Of each guess, whether it is the truth."""
        return np.asarray(self.left.held == self.named)[self.guessed]

    @property
    def reasons(self) -> dict[str, int]:
        """How many people are not shown for which reason, their last one; without those whom it says nothing of."""
        last = dict(zip(self.left.person.tolist(), self.reason.tolist(), strict=True))
        return {REASONS[reason]: people for reason, people in sorted(Counter(last.values()).items()) if reason != SHOWN}

    def to_dict(self) -> dict[str, Any]:
        """Counts alone."""
        return {
            "people": len(np.unique(self.left.person)),
            "reasons": self.reasons,
            "by_value": self.reasons.get(REASONS[BY_VALUE], 0),
            "guesses": len(self.right),
            "guessed_right": int(self.right.sum()),
            "shown_later": len(self.later),
        }


@dataclass(eq=False)
class _Newcomers:
    """Everybody so far: who was published, and why others were not; `enough`: people of a group."""

    enough: int
    published: set[int] = field(default_factory=set)
    reason: dict[int, int] = field(default_factory=dict)

    def go_on(self, here: set[int], away: set[int], left: LeftOut, release: int) -> set[int]:
        """One release more, and its rule. Returns those of whom it tells something that they are away."""
        new = {one for one in here | away if one not in self.published and self.reason.get(one, FEW) < FOR_GOOD}
        fresh = {one for one in new if self.reason.get(one) != CROWD}
        together = release in left.waits
        if fresh & here:
            why, whom = (DRAWN if together else BY_VALUE), fresh & away
        elif release in left.by_lot and len(fresh) >= MANY * self.enough:
            why, whom = ALL, fresh & away
        elif together and len(new) >= self.enough:
            why, whom = CROWD, new & away
        elif not together and len(fresh) >= self.enough:
            why, whom = BY_VALUE, fresh & away
        else:
            why, whom = FEW, fresh & away
        self.reason |= dict.fromkeys(whom, why)
        self.published |= here
        return set() if why == FEW else whom & fresh


def what_it_tells(o: Observed, left: LeftOut, policy: Policy, protects: Callable[[object], bool]) -> Telling:
    """Of everybody who was left out; where a promise is kept without looking at values, it tells nothing."""
    reason, named = np.full(len(left), SHOWN), np.full(len(left), -1)
    many = policy.guarantee.find(ManyValues)
    if many is None or not len(left) or not len(o.values):
        return Telling(left, reason, named, np.empty(0, dtype=np.int64))
    k = None if policy.method.boxed else policy.guarantee.find(KAnonymity)
    people = _Newcomers(max(many.founders, 1 if k is None else k.k))
    mild = np.array([not protects(value) for value in o.values], dtype=bool)
    later: set[int] = set()
    for release in range(len(o.releases)):
        here = set(o.app_person[o.app_release == release].tolist())
        entries = np.flatnonzero(left.release == release)
        away = set(left.person[entries].tolist())
        before = set(people.published)
        later |= {one for one in here - before if people.reason.get(one, FEW) >= FOR_GOOD}
        told = people.go_on(here, away, left, release)
        reason[entries] = [SHOWN if who in before else people.reason[who] for who in left.person[entries].tolist()]
        mine = entries[np.isin(left.person[entries], list(told))]
        if len(mine):
            named[mine] = _named(_most_shown(o, release, before, mild), left.held[mine])
    return Telling(left, reason, named, np.array(sorted(later), dtype=np.int64))


def _most_shown(o: Observed, release: int, published: set[int], mild: Bools) -> I64:
    """The protected values that groups which begin now show most often; of all groups, where none does."""
    groups = o.group_release == release
    old = np.isin(o.app_person, np.fromiter(published, dtype=np.int64, count=len(published)))
    begun = groups.copy()
    begun[o.cand_group[o.cand_start[:-1]][old & (o.app_release == release)]] = False
    cells = (begun if begun.any() else groups)[o.cell_group] & ~mild[o.cell_value]
    counts = np.bincount(o.cell_value[cells], o.cell_rows[cells], len(o.values))
    return np.flatnonzero((counts == counts.max()) & (counts > 0))


def _named(values: I64, held: I64) -> int:
    """Of these values the one that most of those who are left out have; -1 where there is none."""
    often = [int((held == value).sum()) for value in values]
    return int(values[int(np.argmax(often))]) if often else -1
