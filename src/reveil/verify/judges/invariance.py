"""m-invariance: every group has m or more values, all different, and a person's groups always show the same values.

Judged over the whole past: a person who comes back after years must find the values of their earlier groups again.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.base.words import some
from reveil.guarantees.m_invariance import MInvariance
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.verify.judges.cohorts import CompromiseSafetyJudge, unknown_members
from reveil.verify.judges.contract import Background, Judge, Verdict, View
from reveil.verify.judges.trail import Trail, trail
from reveil.verify.judges.verdicts import empty

Flags = NDArray[np.bool_]
ADVERSARY = (
    "knows who is in which group of every release and all that is published, but nobody's value; holds all "
    "assignments of values that fit for equally likely. It is not withstood by someone who knows a few people: then "
    "regrouped people give each other away"
)


def uneven(series: Trail, m: int, repeated: bool) -> Flags:
    """Groups of the release at hand with fewer than m values, or whose values are not all equally frequent.

    Without `repeated`, each value may occur once only.
    """
    now = slice(series.now, None)
    most = np.zeros(series.groups, dtype=np.int64)
    np.maximum.at(most, series.value_group, series.value_rows)
    distinct = series.distinct()
    even = distinct * most == series.rows
    if not repeated:
        even &= most <= 1
    full = np.bincount(series.group, minlength=series.groups) + series.counterfeits == series.rows
    return np.asarray(~(even & full & (distinct >= m))[now])


def changed(series: Trail) -> Flags:
    """Groups of the release at hand with somebody who was in a group with other values before."""
    signature = series.signatures[series.group]
    people = np.zeros(int(series.person.max(initial=-1)) + 1, dtype=np.int64) - 1
    current = series.group >= series.now
    people[series.person[current]] = signature[current]
    before = ~current & (people[series.person] >= 0)
    moved = np.unique(series.person[before][people[series.person[before]] != signature[before]])
    bad = np.zeros(series.groups, dtype=bool)
    bad[series.group[current & np.isin(series.person, moved)]] = True
    return bad[series.now :]


@dataclass
class MInvarianceJudge:
    """m or more different values in every group, the same for a person in every release."""

    m: int
    column: str
    name: str = "m-invariance"

    def judge(self, view: View, history: History) -> list[Verdict]:
        details: dict[str, Any] = {"column": self.column, "adversary": ADVERSARY}
        bound = Fraction(1, self.m)
        if not len(view.classes):
            return [empty(self.name, bound, details)]
        series = trail(view, history, self.column)
        if series is None:
            return [unknown_members(self.name, bound, view, details)]
        poor, moved = uneven(series, self.m, repeated=False), changed(series)
        bad = poor | moved
        rows = series.rows[series.now :]
        distinct = series.distinct()[series.now :]
        worst = Fraction(1) if bad.any() else Fraction(1, int(distinct.min()))
        details |= {"counterfeits": int(view.counterfeits.sum()), "signatures": len(np.unique(series.signatures))}
        return [self._verdict(poor, moved, worst, rows, details)]

    def _verdict(
        self, poor: Flags, moved: Flags, worst: Fraction, rows: NDArray[np.int64], details: dict[str, Any]
    ) -> Verdict:
        bad = poor | moved
        if bad.any():
            statement = (
                f"{some(int(poor.sum()), 'group')} of {len(bad):,} without {self.m} or more values of {self.column!r} "
                f"once each; {some(int(moved.sum()), 'group')} with people whose earlier groups showed other values"
            )
            plain = "What a person's groups of several releases have in common tells more about them than was promised."
        else:
            statement = (
                f"every group shows {self.m} or more values of {self.column!r}, each once, and everybody's groups "
                f"showed the same values in every release so far"
            )
            plain = (
                f"All releases together leave at least {worst.denominator} equally likely values for everybody, for "
                "someone who knows nobody's value. Someone who knows a few people's values may still work out others."
            )
        return Verdict(
            guarantee=self.name,
            statement=statement,
            plain=plain,
            holds=not bad.any(),
            worst=worst,
            bound=Fraction(1, self.m),
            violating_classes=int(bad.sum()),
            violating_rows=int(rows[bad].sum()),
            details=details,
        )


def build_invariance(asked: MInvariance, policy: Policy, background: Background) -> list[Judge]:
    """Where harmless values repeat, what groups have in common tells more: then people must have stayed together."""
    if asked.harmless is not None:
        bound, harmless = Fraction(1, asked.m), asked.harmless_values
        return [
            CompromiseSafetyJudge(asked.m, 0, bound, column, "m-invariance", harmless)
            for column in policy.named("sensitive")
        ]
    return [MInvarianceJudge(asked.m, name) for name in policy.named("sensitive")]
