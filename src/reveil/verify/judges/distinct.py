"""m-Distinct and m-Distinct* in the individual view: what following one person alone through the series tells.

Every group has m or more rows, all with different values. The values of a person's group are a *legal update instance*
of those of their most recent group: as many, each is what some old value may have become, each old value may have
become one of them, and old and new values can be paired so. Then no node of a person's update graph is ever pruned.
m-Distinct* besides: in a person's first group no two values can become the same one. The paper concludes that nobody's
risk is above 1/m, which needs equal chances; here the risk of everybody at each appearance is computed and compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.background.transitions import Relation, domain, relation_of
from reveil.background.update_graph import Chains, Risks, graph_between, walk_all
from reveil.base.arrays import I64, Bools, offsets_of
from reveil.base.kernels import kernel
from reveil.base.text import plain_text
from reveil.base.words import some
from reveil.guarantees.lasting import Evolving
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.verify.judges.cohorts import unknown_members
from reveil.verify.judges.contract import Background, Judge, Verdict, View
from reveil.verify.judges.counts import written
from reveil.verify.judges.trail import Trail, trail
from reveil.verify.judges.verdicts import empty

Flags = NDArray[np.bool_]
ADVERSARY = (
    "knows which group a person was in in every release, all published values and counterfeit counts, and with which "
    "chances values change, but nobody's value; follows one person at a time. It is not withstood by someone who "
    "reasons about all members of a group together, or who knows a few people's values"
)
DRAWN = 60  # values of one person's graph that are drawn at most


@kernel
def legal(before: I64, after: I64, start: I64, value: I64, allowed: Bools) -> Bools:
    """Whether each step from group before[i] to group after[i] is legal, by Definition 14 and a perfect matching."""
    legal_steps = np.zeros(len(before), np.bool_)
    width = 0
    for g in range(len(start) - 1):
        width = max(width, start[g + 1] - start[g])
    of_new, of_old = np.empty(width, np.int64), np.empty(width, np.int64)
    queue, came = np.empty(width, np.int64), np.empty(width, np.int64)
    for i in range(len(before)):
        a, b = start[before[i]], start[after[i]]
        size = start[before[i] + 1] - a
        if start[after[i] + 1] - b != size:
            continue
        of_new[:size], of_old[:size] = -1, -1
        paired = 0
        for root in range(size):
            came[:size] = -1
            queue[0], head, tail, end = root, 0, 1, -1
            while head < tail and end < 0:
                old = queue[head]
                head += 1
                for new in range(size):
                    if came[new] < 0 and allowed[value[a + old], value[b + new]]:
                        came[new] = old
                        if of_new[new] < 0:
                            end = new
                            break
                        queue[tail] = of_new[new]
                        tail += 1
            if end < 0:
                break
            paired += 1
            while end >= 0:  # turn the pairs along the way round
                old = came[end]
                of_new[end], of_old[old], end = old, end, of_old[old]
        legal_steps[i] = paired == size  # then each old value has a new one and each new value an old one
    return legal_steps


@kernel
def overlapping(groups: I64, start: I64, value: I64, allowed: Bools) -> Bools:
    """Groups in which two values can become the same one."""
    overlaps = np.zeros(len(groups), np.bool_)
    times = np.zeros(allowed.shape[1], np.int64)
    for i in range(len(groups)):
        times[:] = 0
        for j in range(start[groups[i]], start[groups[i] + 1]):
            for v in range(allowed.shape[1]):
                times[v] += allowed[value[j], v]
        overlaps[i] = times.max() > 1
    return overlaps


def chains_of(series: Trail) -> Chains:
    """The chains of everybody in the release at hand, in the order of their numbers."""
    present = np.unique(series.person[series.group >= series.now])
    mine = np.flatnonzero(np.isin(series.person, present))
    order = mine[np.lexsort((series.when[mine], series.person[mine]))]
    first = np.append(np.searchsorted(series.person[order], present), len(order))
    start = offsets_of(series.distinct())
    return Chains(first, series.group[order], start, series.value, series.value_rows)


@dataclass(frozen=True, eq=False)
class Faults:
    """Groups of the release at hand that break the principle, by what they break."""

    poor: Flags  # fewer than m different values, a value twice, or people and counterfeits that do not add up
    illegal: Flags  # with somebody whose earlier group cannot have become this one
    overlap: Flags  # with somebody who is new, and two values that can become the same
    risky: Flags  # with somebody whose value at some appearance is too likely

    @property
    def any(self) -> Flags:
        return np.asarray(self.poor | self.illegal | self.overlap | self.risky)


@dataclass
class IndividuallyDistinct:
    """The paper's principle, judged from the published values, who was where, and the public relation."""

    policy: Policy
    column: str

    def __post_init__(self) -> None:
        asked = self.policy.guarantee.require(Evolving)
        self.m, self.name, self.star = asked.m, self.policy.guarantee.model, asked.disjoint
        self.bound = Fraction(1, self.m) if self.star else Fraction(self.m)

    def judge(self, view: View, history: History) -> list[Verdict]:
        details: dict[str, Any] = {"column": self.column, "adversary": ADVERSARY}
        if not len(view.classes):
            return [empty(self.name, self.bound, details)]
        series = trail(view, history, self.column)
        if series is None:
            return [unknown_members(self.name, self.bound, view, details)]
        relation = self._relation(series)
        chains = chains_of(series)
        risks = walk_all(chains, relation)
        faults = self._faults(series, chains, relation, risks)
        details |= {
            "counterfeits": int(view.counterfeits.sum()),
            "fewest values left for anybody": int(risks.possible.min()),
            "highest chance of a value": float(risks.highest.max()),
            "values of single appearances given away": int(risks.vulnerable.sum()),
        }
        drawn = most_exposed(risks)
        if drawn is not None:
            details["update graph of the most exposed"] = drawn
        return [self._verdict(series, faults, risks, details)]

    def _relation(self, series: Trail) -> Relation:
        """The relation by number of the value; values that were never shown come last."""
        shown = {plain_text(value) for value in series.book}
        return relation_of(self.policy, [*series.book, *(v for v in domain(self.policy) if v not in shown)])

    def _faults(self, series: Trail, chains: Chains, relation: Relation, risks: Risks) -> Faults:
        now, count = series.now, series.groups - series.now
        distinct = series.distinct()
        people = np.bincount(series.group, minlength=series.groups)
        fits = (distinct == series.rows) & (distinct >= self.m) & (people + series.counterfeits == series.rows)
        last, returning = chains.first[1:] - 1, np.diff(chains.first) > 1
        illegal, overlap, risky = (np.zeros(count, dtype=bool) for _ in range(3))
        steps = np.column_stack([chains.group[last - 1], chains.group[last]])[returning]
        steps = np.unique(steps, axis=0)
        good = legal(steps[:, 0].copy(), steps[:, 1].copy(), chains.start, chains.value, relation.allowed)
        illegal[steps[~good, 1] - now] = True
        if self.star:
            founded = np.unique(chains.group[last[~returning]])
            overlap[founded - now] = overlapping(founded, chains.start, chains.value, relation.allowed)
            owner = np.repeat(np.arange(len(last)), np.diff(chains.first))
            risky[chains.group[last[np.unique(owner[risks.above(self.bound)])]] - now] = True
        return Faults(np.asarray(~fits[now:]), illegal, overlap, risky)

    def _verdict(self, series: Trail, faults: Faults, risks: Risks, details: dict[str, Any]) -> Verdict:
        bad, rows = faults.any, series.rows[series.now :]
        worst = risks.worst() if self.star else Fraction(int(risks.possible.min()))
        chance = written(worst) if self.star else f"{details['highest chance of a value']:.3f}"
        if bad.any():
            star = (
                f"; {some(int(faults.overlap.sum()), 'group')} that begin with values that can become the same; "
                f"{some(int(faults.risky.sum()), 'group')} with somebody whose value is likelier than 1/{self.m}"
            )
            statement = (
                f"{some(int(faults.poor.sum()), 'group')} of {len(bad):,} without {self.m} or more values of "
                f"{self.column!r} once each; {some(int(faults.illegal.sum()), 'group')} that cannot be what an "
                f"earlier group of theirs became{star if self.star else ''}"
            )
            plain = "Following a person's groups from release to release rules values out that should stay possible."
        else:
            statement = (
                f"every group shows {self.m} or more values of {self.column!r}, each once, and each is a legal update "
                f"instance of every member's most recent group; followed alone, the likeliest value of anybody at any "
                f"appearance has chance {chance}"
            )
            left = details["fewest values left for anybody"]
            guess = f"guesses right with a chance of at most {chance}" if self.star else f"finds {left} values possible"
            plain = (
                f"Someone who follows one person through all releases and knows how values change still {guess}. "
                "Someone who compares all members of groups, or knows some of them, may find out more."
            )
        return Verdict(
            guarantee=self.name,
            statement=statement,
            plain=plain,
            holds=not bad.any(),
            worst=worst,
            bound=self.bound,
            violating_classes=int(bad.sum()),
            violating_rows=int(rows[bad].sum()),
            details=details,
        )


def most_exposed(risks: Risks) -> dict[str, Any] | None:
    """The graph of whoever has the likeliest value, of those who appeared twice; None where it is too large."""
    first = risks.chains.first
    often = np.diff(first) > 1
    if not often.any():
        return None
    highest = np.maximum.reduceat(risks.highest, first[:-1])
    person = int(np.argmax(np.where(often, highest, -1.0)))
    candidates = [risks.chains.candidates(entry) for entry in range(first[person], first[person + 1])]
    if sum(map(len, candidates)) > DRAWN:
        return None
    return graph_between(candidates, risks.relation).to_dict()


def build_distinct(asked: Evolving, policy: Policy, background: Background) -> list[Judge]:
    """The judges of m-distinct and m-distinct-star, by view. The relation is read at once: its faults come first."""
    if asked.joint:
        from reveil.verify.judges.joint_view import build_joint

        return build_joint(policy, background)
    domain(policy)
    return [IndividuallyDistinct(policy, name) for name in policy.named("sensitive")]
