"""Newcomers found cohorts: near people with different values, or with values that repeat as the promise allows.

Where one column is protected and no value has more than one in m of the newcomers, all values of a cohort differ. Else
a cohort of s people, c of whom may be known, may show a value n times if n / (s - c) is at most tau, in each sensitive
column: the larger it is, the nearer a value may come to the share tau. So newcomers can be shown, all of them, exactly
if n is at most tau (s - c) for all of them together.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np

from reveil.base.arrays import F64, I32, I64, Bools
from reveil.base.errors import Fault, InfeasibleError
from reveil.base.kernels import kernel
from reveil.base.progress import silent
from reveil.base.text import plain_text
from reveil.base.words import some, some_people
from reveil.guarantees.lasting import CohortTerms
from reveil.history.history import History
from reveil.plan.cutting import mondrian
from reveil.plan.cutting.trees import Trees
from reveil.plan.cutting.values import ZERO
from reveil.plan.persistent import vacancies
from reveil.plan.persistent.drawing import are_many, draw_crowd
from reveil.plan.persistent.eligible import apart, group_size, harmless_codes, keep_eligible, largest_share
from reveil.plan.persistent.guesses import allowed_guess
from reveil.plan.persistent.past import sort_by
from reveil.plan.persistent.waiting import Unshown, may_be_shown
from reveil.policy.guarantee import Guarantee
from reveil.policy.method import MethodSection, may_wait
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded, Sensitive

TRIES = 64  # near cohorts that are looked at for one row, so that the work does not grow with the square of a region
FAR = 1_000  # rows of a region for which all cohorts are looked at
ROOM = 3  # regions are so many times larger than the cohorts in them must be


def found(encoded: Encoded, rows: I64, trees: Trees, policy: Policy, size: int, seed: int) -> I32:
    """The new cohort of each of these rows, numbered from 0; -1 for those who have none."""
    cohorts, protected = np.full(len(rows), -1, dtype=np.int32), protected_codes(encoded, rows, policy)
    named, names = _named_apart(encoded, rows, policy, size)
    kept = None
    if may_wait(policy.guarantee) and not (encoded.bags is None and _all_different(named, size, names)):
        kept = within_bound(encoded, protected, policy, size)
        if len(names) == 1 and policy.method.infeasible == "withhold" and not kept.all():
            kept = None  # so few less are withheld near the bound that it is not worth cohorts which say little
    different = kept is None
    if kept is None:
        kept = keep_eligible(named[:, 0], size, names[0], policy)
    part = replace(encoded, positions=encoded.positions[rows[kept]], codes=named[kept], sensitive=names)
    if different:
        cohorts[kept] = found_cohorts(part, trees, policy, size, seed)
    else:
        cohorts[kept] = _with_repeats(part, protected[kept], trees, policy, size, seed)
    return cohorts


def _named_apart(encoded: Encoded, rows: I64, policy: Policy, size: int) -> tuple[I32, tuple[Sensitive, ...]]:
    """The values of these rows, with names of their own for harmless ones; of bags, without these."""
    codes, columns = encoded.codes[rows], encoded.sensitive
    mild = _mild(encoded, rows, policy)
    if encoded.bags is not None:
        return np.where(mild, np.int32(-1), codes), columns
    parts = [apart(codes[:, n], mild[:, n], size, one) for n, one in enumerate(columns)]
    return np.column_stack([part for part, _ in parts]), tuple(column for _, column in parts)


def refuse_all(encoded: Encoded, rows: I64, policy: Policy) -> None:
    """Where nobody else is shown, newcomers cannot wait: say why they have no cohort."""
    protected = protected_codes(encoded, rows, policy)
    raise InfeasibleError(_fault(encoded, protected, policy, group_size(policy.guarantee)))


def _mild(encoded: Encoded, rows: I64, policy: Policy) -> Bools:
    """Whether each value is harmless, by row and column (of bags, by place in the bag)."""
    codes = encoded.codes[rows]
    columns = [one for one in encoded.sensitive for _ in range(encoded.each)]
    return np.column_stack([harmless_codes(one, policy)[codes[:, n]] for n, one in enumerate(columns)])


def protected_codes(encoded: Encoded, rows: I64, policy: Policy) -> I32:
    """What these rows have that is protected, in codes of which no two columns share one; -1 for everything else.

    Whoever has several rows has several values of one column, each of which is there once.
    """
    codes, mild = encoded.codes[rows], _mild(encoded, rows, policy)
    first = np.repeat(_firsts(encoded), encoded.each)
    return np.where(mild | (codes < 0), -1, codes + first).astype(np.int32)


def _firsts(encoded: Encoded) -> I64:
    """The first of the codes that each column has among those of all columns."""
    return np.cumsum([0, *(len(one.values) for one in encoded.sensitive[:-1])])


def people_with(protected: I32) -> I64:
    """How many rows have each protected value."""
    return np.bincount(protected[protected >= 0], minlength=1)


def apart_from_each_other(encoded: Encoded, protected: I32) -> list[list[int]]:
    """How many rows have each value, in lists of values of which nobody has two."""
    counts = np.bincount(protected[protected >= 0], minlength=sum(len(one.values) for one in encoded.sensitive))
    if encoded.bags is not None:
        return [[count] for count in counts.tolist() if count]
    return [part.tolist() for part in np.split(counts, _firsts(encoded)[1:])]


def found_in_turn(
    encoded: Encoded, rows: I64, waiting: Unshown, trees: Trees, policy: Policy, size: int, seed: int
) -> I32:
    """As `found`, where some may have waited in a crowd: all of them together in one cohort, or newcomers alone."""
    assert encoded.persons is not None
    crowded = waiting.crowded(encoded.persons[rows])
    if not crowded.any():
        return found_or_draw(encoded, rows, trees, policy, size, seed)
    protected, terms = protected_codes(encoded, rows, policy), policy.guarantee.require(CohortTerms)
    if within_bound(encoded, protected, policy, size).all() and may_be_shown(
        encoded.persons[rows], apart_from_each_other(encoded, protected), waiting.crowds, terms
    ):
        return np.zeros(len(rows), dtype=np.int32)
    cohorts = np.full(len(rows), -1, dtype=np.int32)
    cohorts[~crowded] = found_or_draw(encoded, rows[~crowded], trees, policy, size, seed)
    return cohorts


def found_or_draw(encoded: Encoded, rows: I64, trees: Trees, policy: Policy, size: int, seed: int) -> I32:
    """As `found`; where many newcomers do not fit, some are drawn to wait, and all others found cohorts."""
    cohorts = found(encoded, rows, trees, policy, size, seed)
    if policy.method.infeasible != "wait" or (cohorts >= 0).any() or not are_many(len(rows), size):
        return cohorts
    waits = draw_crowd(protected_codes(encoded, rows, policy), size, policy.guarantee.require(CohortTerms))
    if waits is not None:
        cohorts[~waits] = found(encoded, rows[~waits], trees, policy, size, seed)
    return cohorts


def _all_different(codes: I32, m: int, columns: tuple[Sensitive, ...]) -> bool:
    """Whether there is one column, and all of it can be in groups of m different values."""
    counts = np.bincount(codes[:, 0], minlength=len(columns[0].values))
    return len(columns) == 1 and largest_share(counts, m) >= int(counts.max(initial=0))


def most_of(people: int, policy: Policy, cohort: int | None = None) -> int:
    """How many of so many people may have the same protected value; also if they are in cohorts of this size.

    Nearer to tau all would be in one large cohort, which says little: where people are withheld anyway, some more are.
    """
    terms = policy.guarantee.require(CohortTerms)
    tau, known = allowed_guess(terms), terms.compromised
    most = max(0, int(tau * (people - known)))
    return most if cohort is None else min(most, int(tau * (cohort - known) / cohort * people))


def within_bound(encoded: Encoded, protected: I32, policy: Policy, size: int) -> Bools:
    """Which rows can be in cohorts: all, or a refusal that says why not, or none (they wait), or, where people are
    withheld, all but the fewest of too frequent values.

    Rows are in an order drawn by lot: of a value that is too frequent, the first ones are kept.
    """
    keep, withhold = np.ones(len(protected), dtype=bool), policy.method.infeasible == "withhold"
    while True:
        most = most_of(int(keep.sum()), policy, 2 * size if withhold else None)
        if people_with(protected[keep]).max() <= most:
            break
        if policy.method.infeasible == "refuse":
            raise InfeasibleError(_fault(encoded, protected, policy, size))
        if policy.method.infeasible == "wait":
            return np.zeros_like(keep)
        for one in [_beyond(column, keep & (column >= 0), most) for column in protected.T]:
            keep &= ~one
    return keep if int(keep.sum()) >= size else np.zeros_like(keep)


def _beyond(codes: I32, rows: Bools, most: int) -> Bools:
    """Of these rows, those that come after `most` others of their value."""
    mine = np.flatnonzero(rows)
    order = mine[np.argsort(codes[mine], kind="stable")]
    counts = np.bincount(codes[order])
    place = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    beyond = np.zeros(len(rows), dtype=bool)
    beyond[order[place >= most]] = True
    return beyond


def _fault(encoded: Encoded, protected: I32, policy: Policy, size: int) -> Fault:
    """Why newcomers have no cohort, and the ways out, first those by which nobody is chosen for their value."""
    terms, rows = policy.guarantee.require(CohortTerms), len(protected)
    tops, first = people_with(protected), _firsts(encoded)
    worst = int(np.searchsorted(first, tops.argmax(), side="right")) - 1
    top, column = int(tops.max()), encoded.sensitive[worst]
    value, tau = column.values[int(tops.argmax() - first[worst])], allowed_guess(terms)
    if encoded.bags is not None:
        return _fault_of_bags(column, value, top, rows, terms)
    withhold = policy.method.model_copy(update={"infeasible": "withhold"})
    kept = within_bound(encoded, protected, policy.model_copy(update={"method": withhold}), size)
    guess = f"{top}/{max(1, rows - terms.compromised)}"
    message = (
        f"among {some(rows, 'new row')} value {value!r} occurs {some(top, 'time')}: with "
        f"{some_people(terms.compromised)} known it would be guessed with {guess}, and {tau} is promised"
    )
    remedy = (
        f"if nobody needs protection from {value!r}, begin the series with harmless = [{plain_text(value)!r}]; begin "
        "it with a smaller m or a larger tau; merge rare values into wider ones; or leave people out: "
        f'method.infeasible = "withhold" withholds {some(int((~kept).sum()), "row")} for good, chosen by value, which '
        "tells it (`reveil explain withheld`)"
    )
    return Fault("R420", f"column {column.name!r}", message, remedy, top)


def _fault_of_bags(column: Sensitive, value: object, top: int, rows: int, terms: CohortTerms) -> Fault:
    """The same where newcomers have several values each."""
    known, tau = terms.compromised, allowed_guess(terms)
    message = (
        f"{top:,} of {rows:,} newcomers have {value!r} in one of their rows: with {some_people(known)} known it would "
        f"be guessed with {top}/{max(1, rows - known)}, and {tau} is promised"
    )
    remedy = (
        f"if nobody needs protection from {value!r}, begin the series with harmless = [{plain_text(value)!r}]; begin "
        "it with a smaller people.most, a smaller m or a larger tau; or merge rare values into wider ones"
    )
    return Fault("R420", f"column {column.name!r}", message, remedy, top)


def _with_repeats(encoded: Encoded, protected: I32, trees: Trees, policy: Policy, size: int, seed: int) -> I32:
    """Cohorts of these rows, each as small as it can be: regions that keep the promise, parted further.

    Where cohorts must be larger than `size`, regions are larger still: their shares may differ, so that there are cuts.
    """
    rows = len(encoded.codes)
    if not rows:
        return np.empty(0, dtype=np.int32)
    terms = policy.guarantee.require(CohortTerms)
    tau, known = allowed_guess(terms), terms.compromised
    top = max(int(encoded.spread(n).max(initial=0)) for n in range(len(encoded.sensitive)))
    least = cohort_size(rows, top, terms, size)
    least = least if least == size else min(rows, ROOM * least)
    alpha = tau * (least - known) / least  # of least or more people so many leave n <= tau (s - c)
    regions = _regions(encoded, policy, least, alpha, seed)
    along = np.argsort(vacancies.curve(encoded.positions, trees), kind="stable")
    order, first = sort_by(regions[along], int(regions.max()) + 1)
    order = along[order]
    cohorts = np.empty(rows, dtype=np.int32)
    width = max(1, int(protected.max()) + 1)
    deal(protected, order, first, width, Bound(size, known, tau.numerator, tau.denominator), cohorts)
    return cohorts


def cohort_size(rows: int, top: int, terms: CohortTerms, size: int) -> int:
    """How large cohorts of at least `size` must be so that a value of `top` of all rows may have its share in each.

    >>> from reveil.guarantees.compromise_safety import CompromiseSafety
    >>> [cohort_size(1000, top, CompromiseSafety(m=6), 6) for top in (160, 170, 190)]
    [6, 7, 20]
    """
    tau, known = allowed_guess(terms), terms.compromised
    spare = tau * rows - top
    return size if not known else max(size, min(rows, ceil(tau * rows * known / spare) if spare > 0 else rows))


def _regions(encoded: Encoded, policy: Policy, k: int, alpha: Fraction, seed: int) -> I32:
    """Small regions of k or more near rows, in which no value of any column has a larger share than alpha."""
    wanted = policy.model_copy(
        update={
            "guarantee": Guarantee.of("alpha-k", k=k, alpha=alpha),
            "method": MethodSection(cuts=policy.method.cuts, recode=policy.method.recode),
        }
    )
    part = replace(encoded, population=None, persons=None)
    return mondrian.plan(part, History(), wanted, seed=seed, progress=silent).groups


def found_cohorts(encoded: Encoded, trees: Trees, policy: Policy, size: int, seed: int) -> I32:
    """Group these rows into cohorts of near people with different values, numbered from 0.

    The table is cut into small regions in which no value has more than one in `size` rows, and each region is parted.
    """
    rows = len(encoded.codes)
    if not rows:
        return np.empty(0, dtype=np.int32)
    regions = _regions(encoded, policy, size, Fraction(1, size), seed)
    order, first = sort_by(regions, int(regions.max()) + 1)
    cohorts = np.empty(rows, dtype=np.int32)
    codes = np.ascontiguousarray(encoded.codes[:, 0])
    vacancies.settle(trees, encoded.positions, codes, order, first, len(encoded.sensitive[0].values), size, cohorts)
    return cohorts


class Bound(NamedTuple):
    """What every cohort keeps: at least `size` people, and n / (s - known) not above num / den for any value."""

    size: int
    known: int
    num: int
    den: int


@kernel
def deal(codes: I32, order: I64, first: I64, width: int, bound: Bound, cohort: I32) -> int:
    """Part each region, the rows order[first[r]:first[r + 1]], into cohorts that keep the bound.

    As many as can be; one keeps it for certain. Codes of harmless values are -1, and no two columns share a code unless
    both are values of the same kind that somebody has. Rows of a region are in an order in which near ones are
    neighbours, as far as can be. Fills `cohort`, returns their number.
    """
    number = ZERO
    for r in range(len(first) - 1):
        rows, wanted = hardest_first(codes, order[first[r] : first[r + 1]], width)
        parts = len(rows) // bound.size
        while parts > 1:
            smallest = len(rows) // parts
            most = bound.num * (smallest - bound.known) // bound.den
            if most >= 1 and deal_into(codes, rows, wanted, parts, most, cohort, number):
                break
            parts -= max(1, parts // 8)
        if parts <= 1:
            parts = 1
            for row in rows:
                cohort[row] = number
        number += parts
    return number


@kernel
def hardest_first(codes: I32, rows: I64, width: int) -> tuple[I64, F64]:
    """The rows, those first of which some value is most frequent, equal ones of that value side by side.

    And for each where it stands among its equals, from 0 to below 1: those of the same place are near each other.
    """
    counts = np.zeros(width, np.int64)
    for row in rows:
        for c in range(codes.shape[1]):
            if codes[row, c] >= 0:
                counts[codes[row, c]] += 1
    keys = np.zeros(len(rows), np.int64)
    for i in range(len(rows)):
        for c in range(codes.shape[1]):
            v = codes[rows[i], c]
            if v >= 0:
                keys[i] = max(keys[i], counts[v] * width + v)
    order = np.argsort(-keys, kind="mergesort")
    place, begin = np.zeros(len(rows), np.float64), 0
    for i in range(1, len(rows) + 1):
        if i == len(rows) or keys[order[i]] != keys[order[begin]]:
            for j in range(begin, i):
                place[j] = (j - begin) / (i - begin)
            begin = i
    return rows[order], place


@kernel
def deal_into(codes: I32, rows: I64, wanted: F64, parts: int, most: int, cohort: I32, number: int) -> bool:
    """Deal rows into `parts` of even size, in each of which no value may occur more than `most` times.

    Each goes to the nearest that takes it; `wanted` says where, from 0 to below 1.
    """
    room = -(-len(rows) // parts)
    members, sizes = np.zeros((parts, room), np.int64), np.zeros(parts, np.int64)
    full, larger = len(rows) // parts, len(rows) % parts  # so many may have one more
    scans = ZERO
    for i in range(len(rows)):
        row, there = rows[i], -ZERO - 1
        near = min(parts, TRIES)
        for step in range(parts if scans < FAR else near):
            scans += step == near
            p = (int(wanted[i] * parts) + (step + 1) // 2 * (1 - 2 * (step % 2))) % parts
            able = sizes[p] < full or (sizes[p] == full and larger > 0)
            if able and takes(codes, row, members, p, sizes[p], most):
                there = p
                break
        if there < 0:
            return False
        larger -= sizes[there] == full
        members[there, sizes[there]] = row
        sizes[there] += 1
    for p in range(parts):
        for i in range(sizes[p]):
            cohort[members[p, i]] = number + p
    return True


@kernel
def takes(codes: I32, row: int, members: I64, p: int, size: int, most: int) -> bool:
    """Whether a part may have this row besides."""
    for c in range(codes.shape[1]):
        if codes[row, c] >= 0:
            often = ZERO
            for i in range(size):
                for other in range(codes.shape[1]):
                    often += codes[members[p, i], other] == codes[row, c]
            if often >= most:
                return False
    return True
