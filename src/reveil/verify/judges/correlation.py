"""Historical safety (Cor-Split): weak m-invariance, and no correlation between fewer than n people.

`pairwise` is the paper's test of each new group against each earlier one. `transitive` also refuses what follows from
several groups together: small sets of people with equal values in the linear span of the groups, and people who differ
from all but a few members of a group. Components that are closed cohorts are judged by their refills alone; other
components are searched as far as that is feasible and refused beyond.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from math import comb
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import offsets_by_key
from reveil.base.errors import Fault, InputError
from reveil.base.words import some
from reveil.guarantees.historical_safety import HistoricalSafety
from reveil.guarantees.selection import NOTHING, Selection
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.verify.judges.cohorts import Protects, closed, components, excepted, refills, unknown_members, without_bound
from reveil.verify.judges.contract import Background, Judge, Verdict, View
from reveil.verify.judges.invariance import changed, uneven
from reveil.verify.judges.trail import Trail, trail
from reveil.verify.judges.verdicts import empty

Flags = NDArray[np.bool_]
Closure = Literal["transitive", "pairwise"]
PRIMES = (2_147_483_647, 2_147_483_629)
LARGEST = 240  # people of a component that is searched
SETS = 400_000  # sets of people of a component that are compared
ADVERSARY = {
    "pairwise": "knows who is in which group, and some people's values, and compares groups two at a time; it is not "
    "withstood by someone who combines three groups or more",
    "transitive": "knows who is in which group, and some people's values, and combines any number of groups by adding "
    "and subtracting them and by telling who differs from whom; exact inference can find more, see the audit",
}


def pairs(series: Trail, n: int) -> Flags:
    """hcSafe (Figure 6) for every group of the release at hand: whether some earlier group makes it unsafe.

    A group Q is unsafe if the most of its people who were together in one earlier group are more than |Q| - n, and
    fewer than |Q|.
    """
    current = series.group >= series.now
    home = np.full(int(series.person.max(initial=-1)) + 1, -1, dtype=np.int64)
    home[series.person[current]] = series.group[current]
    before = ~current & (home[series.person] >= 0)
    width = series.groups
    keys, together = np.unique(home[series.person[before]] * width + series.group[before], return_counts=True)
    group, other = keys // width, keys % width
    rows = series.rows[group]
    # Only the largest overlap with each release counts.
    by_release = np.lexsort((-together, series.release[other], group))
    group, other, together, rows = group[by_release], other[by_release], together[by_release], rows[by_release]
    last = np.diff(group * (int(series.release.max(initial=0)) + 1) + series.release[other], prepend=-1) != 0
    unsafe = last & (together > rows - n) & (together < rows)
    bad = np.zeros(series.groups, dtype=bool)
    bad[group[unsafe]] = True
    return bad[series.now :]


def chains(series: Trail, n: int, protects: Protects) -> tuple[Flags, int]:
    """Groups of the release at hand in components with a small correlation, and how many components were too large."""
    parts = components(series)
    refilled = refills(parts)
    good = closed(parts, refilled, protects)
    bad = np.zeros(parts.count, dtype=bool)
    few = (refilled.vacant < n) & (refilled.fresh > 0)
    bad[refilled.component[few]] = True
    undecided = 0
    t = parts.trail
    by_component = np.argsort(parts.of_group, kind="stable")
    starts = offsets_by_key(parts.of_group[by_component], parts.count)
    members, distinct = _members(t), t.distinct() == t.rows
    for component in np.flatnonzero(~good).tolist():
        groups = by_component[starts[component] : starts[component + 1]].tolist()
        listed = [(members[g], int(t.counterfeits[g]), bool(distinct[g])) for g in groups]
        verdict = small_correlation(listed, n)
        undecided += verdict is None
        bad[component] = verdict is not False
    return bad[parts.of_group[t.now :]], undecided


def _members(series: Trail) -> list[list[int]]:
    order = np.argsort(series.group, kind="stable")
    starts = offsets_by_key(series.group[order], series.groups)
    people = series.person[order]
    return [part.tolist() for part in np.split(people, starts[1:-1])]


Listed = list[tuple[list[int], int, bool]]  # people, counterfeits, whether all values of the group differ


def small_correlation(groups: Listed, n: int) -> bool | None:
    """Whether fewer than n people are tied to as few others. None if there are too many to tell.

    >>> union = [([0, 1, 2, 3], 0, True), ([4, 5, 6, 7], 0, True), ([0, 1, 4, 5], 0, True), ([2, 3, 6, 8], 0, True)]
    >>> small_correlation(union, 2), small_correlation(union[:3], 2)
    (True, False)
    """
    people = sorted({person for members, _, _ in groups for person in members})
    if n <= 1 or not people:  # a group of nobody ties nobody
        return False
    if differences(groups, n):
        return True
    largest = max(2, n - 1)
    if len(people) > LARGEST or comb(len(people) + largest - 1, largest) > SETS:
        return None
    return any(_equal_sets(groups, people, largest, n, prime) for prime in PRIMES)


def differences(groups: Listed, n: int) -> bool:
    """Whether somebody differs from all but fewer than n members of a group whose values are all different.

    People of such a group differ from each other; whoever differs from all of it but some has the value of one of
    these, or of a counterfeit.
    """
    full = [(set(members), fakes) for members, fakes, distinct in groups if distinct]
    unlike: dict[int, set[int]] = {}
    for members, _ in full:
        for person in members:
            unlike.setdefault(person, set()).update(members - {person})
    for person, others in unlike.items():
        for members, fakes in full:
            left = members - others
            if person not in members and left and len(left) + fakes < n:
                return True
    return False


def _equal_sets(groups: Listed, people: list[int], largest: int, n: int, prime: int) -> bool:
    """Whether two different small multisets of people have equal values because of the linear span of the groups."""
    columns = {person: number for number, person in enumerate(people)}
    wide = len(people) + sum(1 for _, fakes, _ in groups if fakes)
    matrix = np.zeros((len(groups), wide), dtype=np.int64)
    extra = len(people)
    for row, (members, fakes, _) in enumerate(groups):
        matrix[row, [columns[p] for p in members]] = 1
        if fakes:  # what the counterfeits show is free
            matrix[row, extra] = 1
            extra += 1
    basis = null_space(matrix, prime)[: len(people)]
    # People with equal entries in all null vectors are equal in every world. Random weights make one number of each.
    rng = np.random.default_rng()
    weights = rng.integers(1, prime, size=(2, basis.shape[1]))
    keys = [np.array([_dot(row, weights[i], prime) for row in basis], dtype=np.int64) for i in range(2)]
    for size in range(1, largest + 1):
        chosen = np.array(list(combinations_with_replacement(range(len(people)), size)), dtype=np.int64)
        sums = np.column_stack([key[chosen].sum(axis=1) % prime for key in keys])
        if _meeting(sums, chosen, size < n):
            return True
    return False


def _dot(row: NDArray[np.int64], weights: NDArray[np.int64], prime: int) -> int:
    return sum(int(a) * int(b) for a, b in zip(row.tolist(), weights.tolist(), strict=True)) % prime


def _meeting(sums: NDArray[np.int64], chosen: NDArray[np.int64], small: bool) -> bool:
    """Whether two sets have the same sum. Sets of n or more count only if somebody is in them twice.

    If a is in a set twice, and the other set has two people, then these both have a's value.
    """
    _, index, counts = np.unique(sums, axis=0, return_inverse=True, return_counts=True)
    index = index.ravel()
    for key in np.flatnonzero(counts > 1).tolist():
        sets = [sorted(row) for row in chosen[index == key].tolist()]
        if small and any(not set(a) & set(b) for a in sets for b in sets):
            return True
        if any(len(set(row)) == 1 for row in sets):
            return True
    return False


def null_space(matrix: NDArray[np.int64], prime: int) -> NDArray[np.int64]:
    """A basis of the null space over the integers modulo a prime, as columns."""
    m = matrix % prime
    rows, columns = m.shape
    pivots: list[int] = []
    for column in range(columns):
        row = len(pivots)
        if row == rows:
            break
        below = np.flatnonzero(m[row:, column])
        if not len(below):
            continue
        swap = row + int(below[0])
        m[[row, swap]] = m[[swap, row]]
        m[row] = m[row] * pow(int(m[row, column]), -1, prime) % prime
        for other in np.flatnonzero(m[:, column]).tolist():
            if other != row:
                m[other] = (m[other] - m[other, column] * m[row]) % prime
        pivots.append(column)
    free = [column for column in range(columns) if column not in set(pivots)]
    basis = np.zeros((columns, len(free)), dtype=np.int64)
    for number, column in enumerate(free):
        basis[column, number] = 1
        for row, pivot in enumerate(pivots):
            basis[pivot, number] = -m[row, column] % prime
    return basis


@dataclass
class HistoricalSafetyJudge:
    """(m, n)-historical safety, with the paper's pairwise test or with the transitive one."""

    m: int
    n: int
    closure: Closure
    column: str
    name: str = "historical-safety"
    harmless: Selection = NOTHING

    def protects(self, value: object) -> bool:
        return not self.harmless.selects(value)

    def _uneven(self, series: Trail) -> Flags:
        """Groups without the values they must have. Where harmless ones repeat, only closed cohorts of m will do."""
        if not self.harmless:
            return uneven(series, self.m, repeated=True)
        parts = components(series)
        good = closed(parts, refills(parts), self.protects)[parts.of_group[parts.trail.now :]]
        return np.asarray(~good | (series.rows[series.now :] < self.m))

    def judge(self, view: View, history: History) -> list[Verdict]:
        details: dict[str, Any] = {"column": self.column, "n": self.n, "closure": self.closure}
        details |= {"adversary": ADVERSARY[self.closure], **without_bound(self.harmless)}
        if not len(view.classes):
            return [empty(self.name, self.n, details)]
        series = trail(view, history, self.column)
        if series is None:
            return [unknown_members(self.name, self.n, view, details)]
        poor, moved = self._uneven(series), changed(series)
        if self.closure == "pairwise":
            tied, undecided = pairs(series, self.n), 0
        else:
            tied, undecided = chains(series, self.n, self.protects)
        details |= {"counterfeits": int(view.counterfeits.sum()), "components too large": undecided}
        return [self._verdict(poor | moved, tied, series.rows[series.now :], details)]

    def _verdict(self, uneven: Flags, tied: Flags, rows: NDArray[np.int64], details: dict[str, Any]) -> Verdict:
        bad = uneven | tied
        how = "any two groups" if self.closure == "pairwise" else "all groups together"
        if bad.any():
            large = int(details["components too large"])
            statement = (
                f"{some(int(uneven.sum()), 'group')} of {len(bad):,} without the values that weak {self.m}-invariance "
                f"asks for; {some(int(tied.sum()), 'group')} with a correlation of fewer than {self.n} people in {how}"
                + (f", or in a component too large to search ({large:,})" if large else "")
            )
            plain = "Comparing releases ties some people to very few others: who knows the one knows the other."
        else:
            statement = (
                f"weak {self.m}-invariance over the whole past, and no correlation of fewer than {self.n} people from "
                f"{how}{excepted(self.harmless)}"
            )
            plain = (
                f"Comparing {how} of all releases ties nobody to fewer than {self.n} others"
                f"{excepted(self.harmless)}. It is no bound on what "
                "somebody who knows many people can work out."
            )
        return Verdict(
            guarantee=self.name,
            statement=statement,
            plain=plain,
            holds=not bad.any(),
            worst=None,
            bound=Fraction(self.n),
            violating_classes=int(bad.sum()),
            violating_rows=int(rows[bad].sum()),
            details=details,
        )


def breach(p: Fraction, releases: int, m: int, n: int) -> Fraction:
    """The paper's Theorem 2: the chance that all of m values but one are ruled out for somebody.

    A value stays open while none of its holders is known and none of the sets of n, of which a group has m // n, is.
    """
    stays = ((1 - p) * (1 - (p * (m - 1) / m) ** n) ** (m // n)) ** releases
    return (1 - stays) ** (m - 1)


def least_degree(asked: HistoricalSafety) -> int:
    """The n that is judged: as given, or the smallest with a breach less likely than h; refused where there is none."""
    if asked.n is not None:
        return asked.n
    p, releases, h = asked.p, asked.L, asked.h
    assert p is not None and releases is not None and h is not None

    def smallest(times: int) -> int | None:
        return next((n for n in range(1, asked.m + 1) if breach(p, times, asked.m, n) < h), None)

    degree = smallest(releases)
    if degree is None:
        shorter = next((times for times in range(releases, 0, -1) if smallest(times)), None)
        way = "raise m" if shorter is None else f"lower L to {shorter}"
        message = f"no n keeps a breach less likely than h = {h} with p = {p}, L = {releases}, m = {asked.m}"
        raise InputError(Fault("R421", "guarantee.n", message, f"{way}, raise h or m, or give n"))
    return degree


def build_history(asked: HistoricalSafety, policy: Policy, background: Background) -> list[Judge]:
    n = least_degree(asked)
    return [
        HistoricalSafetyJudge(asked.m, n, asked.closure, name, harmless=asked.harmless_values)
        for name in policy.named("sensitive")
    ]
