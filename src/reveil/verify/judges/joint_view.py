"""m-Distinct and m-Distinct* in the joint view: closed cohorts of people whose values change.

What is promised: even if the values of any c people are known in every release that shows them, nobody else's value
in any release that shows them can be guessed with a chance above tau, by somebody who has all releases. tau is
1/(m - c) unless given (1/(refill - c + 1) where that is larger).

Under which belief: the first values of people who are grouped together are equally likely to be anybody's, values
change with the public chances, and so do counterfeits: a place that somebody left goes on changing with the same
chances, drawn at random. The publisher draws them so, and no reader who assumes otherwise guesses better.

Why it holds: the places of a cohort have the same law, and a release shows the set of their values without order. So
exchanging two places maps worlds to worlds of equal weight, whatever the chances are: with n places and c of them
known, each of the others has each row that is left with chance 1/(n - c), and a value that is shown r times with at
most r/(n - c). Newcomers take over rows that counterfeits would have shown, so that no chain breaks; who had which
place when is then the same question as for lasting values (`lineage`).

What could break it is a value that too many places come to share. A cohort to which this happens is withheld from
then on. That it happened is known then. Given the rows shown last, the next values of the places are independent, so
the chance of a value given that some value is shared by more than r places is bounded by `shared`. A cohort may show a
value r times only if withholding it for more than that, or for more than some larger number up to `most_alike`, would
tell no more than tau. Where no r is left it must not be shown again, whatever its values are: what may be shown
follows from what is public already. In m-Distinct* no two places can ever share a value, and nothing is withheld.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.background.transitions import Relation, domain, relation_of
from reveil.base.arrays import F64, I64, Bools, starts_of
from reveil.base.kernels import kernel
from reveil.base.text import plain_text
from reveil.base.words import some
from reveil.guarantees.lasting import Evolving
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.verify.judges.cohort_bounds import most_alike, promised_guess
from reveil.verify.judges.cohorts import (
    Components,
    Flags,
    Words,
    components,
    excepted,
    guess_verdict,
    guesses,
    refills,
    together,
    unknown_members,
    without_bound,
)
from reveil.verify.judges.contract import Background, Judge, Verdict, View
from reveil.verify.judges.counts import exceeds
from reveil.verify.judges.gathering import most_safe, reached
from reveil.verify.judges.standing_in import judge_stand_ins
from reveil.verify.judges.trail import trail
from reveil.verify.judges.verdicts import empty

ADVERSARY = (
    "knows who is in which group of every release, all published values and counterfeit counts, the chances with "
    "which values change and that counterfeits change with the same, and the true values of any {known} in every "
    "release that shows them; does not reason about why the publisher first grouped people as it did"
)
Floats = NDArray[np.float64]
ROUNDING = 1 + 1e-9  # far above what the sums of `shared` can lose: they have positive terms only


@kernel
def can_follow(before: I64, after: I64, chance: F64) -> bool:
    """Whether the rows of one release can have become those of the next, each row one."""
    n = len(before)
    mine, seen, queue, parent = np.full(n, -1), np.zeros(n, np.bool_), np.zeros(n, np.int64), np.zeros(n, np.int64)
    for start in range(n):
        seen[:] = False
        queue[0], end, place, free = start, 1, 0, -1
        while place < end and free < 0:
            i = queue[place]
            place += 1
            for j in range(n):
                if not seen[j] and chance[before[i], after[j]] > 0.0:
                    seen[j], parent[j] = True, i
                    if mine[j] < 0:
                        free = j
                        break
                    queue[end] = mine[j]
                    end += 1
        if free < 0:
            return False
        while free >= 0:  # turn the found path round
            i, following = parent[free], -1
            for j in range(n):
                if mine[j] == i:
                    following = j
            mine[free] = i
            if i == start:
                break
            free = following
    return True


class LastSteps(NamedTuple):
    """Cohorts of one size: a line of rows before (negative: none) and after, how often one value is shown, a bound."""

    before: I64
    after: I64
    top: I64
    bound: F64  # of `shared`


@kernel
def judge_steps(
    steps: LastSteps, chance: F64, counted: F64, most: int, follows: Bools, told: Bools, overlap: I64
) -> None:
    """Of each cohort: whether the step is possible, whether its rows were more alike than was allowed, and how many of
    them can become the same value from now on.

    `counted` are the chances of protected values alone: whoever shares a harmless one is in nobody's way.
    """
    for c in range(len(steps.after)):
        overlap[c] = reached(steps.after[c], counted).max()
        if steps.before[c, 0] >= 0:
            follows[c] = can_follow(steps.before[c], steps.after[c], chance)
            top = max(1, steps.top[c])
            told[c] = most_safe(steps.before[c], counted, top, most, steps.bound[c]) == 0
        else:
            told[c] = max(1, steps.top[c]) > most


def unbroken(parts: Components) -> Flags:
    """Components of one size in which everybody was there in one stretch of the releases that showed them."""
    t, good = parts.trail, np.ones(parts.count, dtype=bool)
    size = np.zeros(parts.count, dtype=np.int64)
    size[parts.of_group] = t.rows
    good[parts.of_group[size[parts.of_group] != t.rows]] = False
    order = np.lexsort((t.release, parts.of_group))
    place = np.empty(t.groups, dtype=np.int64)
    place[order] = np.arange(t.groups)  # releases of a component are consecutive
    people, index = np.unique(t.person, return_inverse=True)
    first, last = np.full(len(people), t.groups), np.full(len(people), -1)
    np.minimum.at(first, index, place[t.group])
    np.maximum.at(last, index, place[t.group])
    gaps = last - first + 1 != np.bincount(index, minlength=len(people))
    good[parts.of_group[t.group[gaps[index]]]] = False
    return good


def shown_again(parts: Components, history: History) -> Flags:
    """Components that were withheld in some release, though a member of theirs was there, and are shown again."""
    again = np.zeros(parts.count, dtype=bool)
    if history.members.is_empty():
        return again
    t = parts.trail
    withheld = history.members.filter(pl.col("group") < 0).select("person", pl.col("release").alias("away"))
    seen = pl.DataFrame({"person": t.person, "component": parts.of_group[t.group], "release": t.when})
    entries = withheld.cast({"person": pl.Int64, "away": pl.Int64}).join(seen, on="person")
    before = entries.filter(pl.col("release") < pl.col("away"))
    before = before.group_by("person", "away").agg(pl.col("release").max(), pl.col("component").first())
    shown = pl.DataFrame({"component": parts.of_group, "shown": t.release})
    both = before.join(shown, on="component").filter(pl.col("shown") <= pl.col("away"))
    latest = both.group_by("person", "away").agg(pl.col("shown").max(), pl.col("release", "component").first())
    again[latest.filter(pl.col("shown") == pl.col("release"))["component"].to_numpy()] = True
    return again


@dataclass(frozen=True, eq=False)
class Steps:
    """The last step of each component."""

    possible: Flags
    told: Flags  # showing this many of one value was not allowed: withholding more would have told too much
    overlap: I64  # how many of its rows may come to share a value


def last_steps(parts: Components, good: Flags, place: Floats, policy: Policy, chance: Floats, counted: Floats) -> Steps:
    """Judge the last step of the good components; anybody has any one place with chance `place` at most."""
    t, tau = parts.trail, float(promised_guess(policy.guarantee.require(Evolving)))
    steps = Steps(np.ones(parts.count, dtype=bool), np.zeros(parts.count, dtype=bool), np.ones(parts.count, np.int64))
    now, earlier = np.zeros(parts.count, dtype=np.int64), np.full(parts.count, -1, dtype=np.int64)
    now[parts.of_group[t.now :]] = np.arange(t.now, t.groups)
    order = np.argsort(t.release[: t.now], kind="stable")
    earlier[parts.of_group[order]] = order  # the latest is written last
    rows = np.append(np.repeat(t.value, t.value_rows), -1)
    first, top = starts_of(t.rows), np.zeros(t.groups, dtype=np.int64)
    mild = t.harmless(policy.guarantee.headline.protects)
    np.maximum.at(top, t.value_group[~mild], t.value_rows[~mild])
    for size in np.unique(t.rows[now[good]]).tolist():
        mine = np.flatnonzero(good & (t.rows[now] == size))
        inside, most = np.arange(size), most_alike(policy.guarantee, size)
        before = np.where(earlier[mine, None] < 0, -1, first[earlier[mine]][:, None] + inside)
        lines = np.hstack([rows[before], rows[first[now[mine]][:, None] + inside]])
        bound = tau / (place[mine] * ROUNDING)
        keys = np.column_stack([lines, top[now[mine]], np.unique(bound, return_inverse=True)[1]])
        _, one, index = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        halves = [np.ascontiguousarray(half) for half in (lines[one, :size], lines[one, size:])]
        asked = LastSteps(halves[0], halves[1], top[now[mine]][one], bound[one])
        follows, told = np.ones(len(one), dtype=bool), np.zeros(len(one), dtype=bool)
        overlap, each = np.ones(len(one), dtype=np.int64), index.ravel()
        judge_steps(asked, chance, counted, most, follows, told, overlap)
        steps.possible[mine], steps.overlap[mine], steps.told[mine] = follows[each], overlap[each], told[each]
    return steps


def _sizes(parts: Components) -> I64:
    """How many places each component has."""
    size = np.zeros(parts.count, dtype=np.int64)
    size[parts.of_group] = parts.trail.rows
    return size


@dataclass
class JointlyDistinct:
    """No guess above tau, whichever c people are known, over all releases of closed cohorts of changing values."""

    policy: Policy
    column: str

    def __post_init__(self) -> None:
        self.asked = self.policy.guarantee.require(Evolving)
        self.name, self.known = self.policy.guarantee.model, self.asked.compromised
        self.tau, self.harmless = promised_guess(self.asked), self.asked.harmless_values

    def judge(self, view: View, history: History) -> list[Verdict]:
        known = some(self.known, "person", "people")
        details: dict[str, Any] = {"column": self.column, "adversary": ADVERSARY.format(known=known)}
        details |= without_bound(self.harmless)
        if not len(view.classes):
            return [empty(self.name, self.tau, details)]
        everything = trail(view, history, self.column)
        if everything is None:
            return [unknown_members(self.name, self.tau, view, details)]
        parts = components(everything)
        refilled = refills(parts)
        closed = together(parts, refilled) & unbroken(parts) & ~shown_again(parts, history)
        worst, high, place = self._guesses(parts, closed, guesses(parts, refilled, self.known))
        relation = self._relation(everything.book)
        chance = np.asarray(relation.weights / relation.totals[:, None])
        protected = np.array([self.asked.protects(value) for value in relation.values], dtype=bool)
        steps = last_steps(parts, closed, place, self.policy, chance, chance * protected)
        others = np.maximum(1, _sizes(parts) - self.known)
        back = judge_stand_ins(parts, view.stand_ins, others, chance, protected, self.tau)
        closed &= ~back.strangers
        high |= back.high & closed
        told = closed & steps.told & ~high
        closed &= steps.possible
        star = self.asked.disjoint
        overlapping = closed & (steps.overlap > 1) if star else np.zeros_like(closed)
        details |= {
            "cohorts": parts.count,
            "not closed": int((~closed).sum()),
            "cannot follow": int((~steps.possible).sum()),
            "too likely": int(high.sum()),
            "withholding would tell": int(told.sum()),
            **({"may come to share a value": int(overlapping.sum())} if star else {}),
            "refills": len(refilled.component),
            "counterfeits": int(view.counterfeits.sum()),
        }
        if back.people:
            details |= {"shown with a stand-in": back.people}
        worst = max(worst, back.worst) if closed.all() else Fraction(1)
        bad = (~closed | high | told | overlapping)[parts.of_group[parts.trail.now :]]
        rows = parts.trail.rows[parts.trail.now :]
        return [guess_verdict(self, worst, bad, rows, details, self._words(details))]

    def _relation(self, book: tuple[Any, ...]) -> Relation:
        """How values change, by number of the value; values that were never shown come last."""
        shown = {plain_text(value) for value in book}
        return relation_of(self.policy, [*book, *(value for value in domain(self.policy) if value not in shown)])

    def _guesses(
        self, parts: Components, closed: Flags, refilled: dict[int, Fraction]
    ) -> tuple[Fraction, Flags, Floats]:
        """The highest chance of a value, cohorts where it is too high, and the chance of any one place.

        In a cohort of n places anybody has any one place with chance 1/(n - c) at most, or as its refills tell.
        """
        t, c = parts.trail, self.known
        size, most = _sizes(parts), np.zeros(parts.count, dtype=np.int64)
        mild = t.harmless(self.asked.protects)
        np.maximum.at(most, parts.of_group[t.value_group[~mild]], t.value_rows[~mild])
        others = np.maximum(1, size - c)
        high = exceeds(most, others, self.tau) | (size < self.asked.founders)
        place = 1.0 / others
        worst = [Fraction(int(r), int(n)) for r, n in np.unique(np.column_stack([most, others])[closed], axis=0)]
        for component, guess in refilled.items():
            highest = max(guess, Fraction(1, int(others[component])))
            high[component] |= int(most[component]) * highest > self.tau
            place[component] = float(highest)
            if closed[component]:
                worst.append(int(most[component]) * highest)
        return min(Fraction(1), max(worst, default=Fraction(1))), closed & high, place

    def _words(self, details: dict[str, Any]) -> Words:
        known = some(self.known, "person", "people")
        return Words(
            causes=f"{some(details['not closed'], 'cohort')} regrouped, broken or changed against the rules, "
            f"{details['too likely']:,} with a value that is shown too often, {details['withholding would tell']:,} "
            "that should not have been shown again",
            danger="People were regrouped, or too many of them share a value: whoever knows how values change could "
            "learn what others have.",
            what=f"{self.column!r}{excepted(self.harmless)} in any release",
            over=f"{some(details['cohorts'], 'closed cohort')} and their whole past, if values change with the "
            "stated chances",
            who="Someone who has all releases, knows how values change and knows "
            + (f"the true values of {known}" if self.known else "nobody's value"),
        )


def build_joint(policy: Policy, background: Background) -> list[Judge]:
    """The judge of each sensitive column. The relation is read at once: its faults come first."""
    domain(policy)
    return [JointlyDistinct(policy, name) for name in policy.named("sensitive")]
