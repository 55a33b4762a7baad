"""The hot loops of planning with budgets, on arrays only: what people can still bear, and cuts that respect it.

A *need* is the share of a group that must not have a value, for one person: (n - n_s)/n >= need. It is a float, off
the truth by a little on purpose: above it, so that rounding cannot let through what is too much; or, where need and
share are quotients of whole numbers so small that different ones differ by more, below it, so that no tie is refused.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveil.plan.candidates import EXACT_BELOW, Scratch, best_cut, find_cuts, scratch_for, segment_cost, weigh_cuts
from reveil.plan.cuts import cut_range, partition
from reveil.plan.trees import F64, Trees
from reveil.plan.values import I32, I64, ZERO, Order, Rows, Tests, admits, allocating, kernel, sort_by

# Quotients a/b and c/n differ by at least 1/(b * n) unless they are equal. Up to here that is more than rounding does:
# groups of two rows or more reach this product in at most 44 releases, and the margin below is 2e-14 then.
EXACT = 2.0**44
ROUNDING = 4e-16  # more than three roundings, for each release of the past and four more


Ints = NDArray[np.integer]  # of any width, as the ledger keeps them


class Purse(NamedTuple):
    """What the rows of a table may still be exposed to."""

    line: I64  # which line of `need` belongs to a row of the table; newcomers share one
    need: F64  # lines x slots
    worst: F64  # of each row: the largest need over all slots
    least: I32  # of each row: no group with this person is smaller, because it has the person's own value
    column: I64  # of the row matrix, one for each sensitive column
    first_code: I64  # where the codes of a sensitive column start in `slot`
    slot: I64  # of each code; -1 where the value is not protected


class Past(NamedTuple):
    """Earlier groups, numbered through over all releases, and what was published in them."""

    size: F64
    first: I64  # where the values of a group start; one more entry than groups
    slot: I32  # of protected values only
    ratio: F64  # by how much a group with this value raises the need for it: n / (n - n_s)
    table: F64  # the same as groups x slots, or without lines where that would be mostly ones


class Target(NamedTuple):
    """The survival that must remain for each kind of row, as a quotient; `whole` where that is exact."""

    top: F64
    bottom: F64
    whole: NDArray[np.bool_]


@kernel
def place_visits(person: Ints, release: Ints, group: Ints, line: I64, offset: I64, visits: I32) -> None:
    """Enter the group of each member in `visits` (releases x lines). Withheld rows are left out."""
    for i in range(len(person)):
        if group[i] >= 0 and line[person[i]] >= 0:
            visits[release[i] - 1, line[person[i]]] = offset[release[i]] + group[i]


@allocating
def shelve(release: Ints, group: Ints, code: Ints, held: Ints, slot: I64, offset: I64, size: F64) -> Past:
    """The protected values of each group, side by side, from one line for each value of each group."""
    first = np.zeros(len(size) + 2, dtype=np.int64)
    for i in range(len(group)):
        if slot[code[i]] >= 0:
            first[offset[release[i]] + group[i] + 2] += 1
    for g in range(2, len(first)):
        first[g] += first[g - 1]
    slots = np.empty(first[len(size) + 1], dtype=np.int32)
    ratio = np.empty(first[len(size) + 1])
    for i in range(len(group)):
        if slot[code[i]] >= 0:
            g = offset[release[i]] + group[i]
            place = first[g + 1]
            free = size[g] - held[i]
            slots[place] = slot[code[i]]
            ratio[place] = size[g] / free if free > 0 else np.inf
            first[g + 1] += 1
    return Past(size, first[: len(size) + 1], slots, ratio, np.empty((0, 0)))


@allocating
def tabulate(past: Past, slots: int) -> F64:
    """The ratios of all groups as a table: faster to multiply by where groups have many values."""
    table = np.ones((len(past.size), slots))
    for g in range(len(past.size)):
        for j in range(past.first[g], past.first[g + 1]):
            table[g, past.slot[j]] = past.ratio[j]
    return table


@kernel
def fill_needs(
    visits: I32, past: Past, target: Target, kind: I64, begin: int, end: int, rows: int, need: F64, worst: F64
) -> None:
    """The needs of people begin..end, who were in the groups visits[:, i] (-1: not in this release)."""
    for i in range(begin, end):
        k, product, present = kind[i], target.bottom[kind[i]] * rows, 0
        for r in range(len(visits)):
            if visits[r, i] >= 0:
                product *= past.size[visits[r, i]]
                present += 1
        margin = ROUNDING * (present + 4)
        exact = target.whole[k] and product < EXACT
        line = need[i]
        line[:] = target.top[k] / target.bottom[k] * (1.0 - margin if exact else 1.0 + margin)
        for r in range(len(visits)):
            g = visits[r, i]
            if g < 0:
                continue
            if len(past.table) > 0:
                for j in range(len(line)):
                    line[j] *= past.table[g, j]
            else:
                for j in range(past.first[g], past.first[g + 1]):
                    line[past.slot[j]] *= past.ratio[j]
        high = 0.0
        for j in range(len(line)):
            high = max(high, line[j])
        worst[i] = high


@kernel
def fill_least(purse: Purse, codes: I32) -> None:
    """A lower bound for the size of each row's group: its own value occurs there."""
    for i in range(len(codes)):
        least = 1.0
        for c in range(codes.shape[1]):
            slot = purse.slot[purse.first_code[c] + codes[i, c]]
            if slot >= 0:
                least = max(least, smallest(purse.need[purse.line[i], slot]))
        purse.least[i] = least


@kernel
def smallest(need: float) -> float:
    """A lower bound for the size of a group in which a value occurs, for one person."""
    return min(2.0**30, np.ceil(1.0 / (1.0 - need) * (1 - 1e-9))) if need < 1.0 else 2.0**30


@kernel
def affords(purse: Purse, rows: Rows, order: Order, s: int, t: int, count: I64, work: I64) -> bool:
    """Whether everybody in rows s..t can bear every value that occurs there."""
    size = t - s
    worst = 0.0
    for i in range(s, t):
        worst = max(worst, purse.worst[order[i]])
    for c in range(len(purse.column)):
        column, base = purse.column[c], purse.first_code[c]
        touched = 0
        for i in range(s, t):
            code = rows[i, column]
            if count[code] == 0:
                work[touched] = code
                touched += 1
            count[code] += 1
        good = True
        for j in range(touched):
            slot = purse.slot[base + work[j]]
            share = (size - count[work[j]]) / size
            count[work[j]] = 0
            if good and slot >= 0 and share < worst:
                good = all_bear(purse, order, s, t, slot, share)
        if not good:
            return False
    return True


@kernel
def all_bear(purse: Purse, order: Order, s: int, t: int, slot: int, share: float) -> bool:
    """Whether nobody in rows s..t needs more than this share to be without the value of a slot."""
    for i in range(s, t):
        row = order[i]
        if purse.worst[row] > share and purse.need[purse.line[row], slot] > share:
            return False
    return True


@allocating
def room_for(purse: Purse, tests: Tests, trees: Trees, rows: Rows) -> Scratch:
    """Scratch memory that is also enough for the codes of all sensitive columns."""
    scratch = scratch_for(trees, tests, rows)
    codes = len(scratch.tally)
    for c in range(len(purse.column)):
        codes = max(codes, purse.first_code[c + 1] - purse.first_code[c] + 1)
    return Scratch(
        scratch.rows_at, scratch.present, scratch.nodes, scratch.below, scratch.mark, scratch.clock, scratch.low,
        scratch.high, scratch.loss, scratch.best, scratch.cuts, scratch.inside, scratch.local,
        np.zeros(codes, dtype=np.int64), np.zeros(codes, dtype=np.int64),
    )  # fmt: skip


class Spare(NamedTuple):
    """Room for a segment in another order."""

    rows: Rows
    order: Order
    place: I64
    need: F64


def split(
    trees: Trees, tests: Tests, purse: Purse, rows: Rows, order: Order, start: int, end: int, stop: int, relaxed: bool
) -> I64:
    """Cut rows start..end into groups, top down, where they have more than `stop` rows. Returns where groups begin."""
    size = end - start
    starts, ends, place = (np.empty(size + 1, dtype=np.int64) for _ in range(3))
    spare = Spare(np.empty_like(rows[start:end]), np.empty_like(order[start:end]), place, np.empty(size))
    scratch = room_for(purse, tests, trees, rows)
    groups = split_into(trees, tests, purse, rows, order, start, end, stop, relaxed, scratch, spare, starts, ends)
    return starts[:groups].copy()


@kernel
def split_into(
    trees: Trees, tests: Tests, purse: Purse, rows: Rows, order: Order, start: int, end: int, stop: int, relaxed: bool,
    scratch: Scratch, spare: Spare, starts: I64, ends: I64,
) -> int:  # fmt: skip
    """The loop of `split`: fills `starts`, returns the number of groups."""
    groups, s = 0, start
    ends[0], depth = end, 1  # of the segments still to be cut; the last begins at s
    while depth > 0:
        t = ends[depth - 1]
        cut = s
        if t - s > stop and t - s >= 2 * tests.least:
            cut = cut_segment(trees, tests, purse, rows, order, s, t, scratch)
            if cut == s and relaxed:
                cut = cut_by_need(trees, tests, purse, rows, order, s, t, scratch, spare)
        if cut > s:
            ends[depth] = cut
            depth += 1
        else:
            starts[groups] = s
            groups += 1
            depth -= 1
            s = t
    return groups


@kernel
def fits(tests: Tests, purse: Purse, rows: Rows, order: Order, s: int, cut: int, t: int, scratch: Scratch) -> bool:
    """Whether both sides of a cut may be published."""
    count, work = scratch.tally, scratch.touched
    return (
        min(cut - s, t - cut) >= tests.least
        and affords(purse, rows, order, s, cut, count, work)
        and affords(purse, rows, order, cut, t, count, work)
        and admits(tests, rows, order, s, cut, count, work)
        and admits(tests, rows, order, cut, t, count, work)
    )


@kernel
def hopeful(purse: Purse, rows: Rows, order: Order, s: int, t: int, c: int, a: int, b: int) -> bool:
    """Whether both sides of a cut at positions a..b of column c are large enough for everybody's own value."""
    inside = 0
    most_inside = most_outside = 0
    for i in range(s, t):
        if a <= rows[i, c] <= b:
            inside += 1
            most_inside = max(most_inside, purse.least[order[i]])
        else:
            most_outside = max(most_outside, purse.least[order[i]])
    return most_inside <= inside and most_outside <= t - s - inside


@kernel
def cut_segment(
    trees: Trees, tests: Tests, purse: Purse, rows: Rows, order: Order, s: int, t: int, scratch: Scratch
) -> int:
    """Cut rows s..t in two where that loses least, in place. Returns where; s when no cut can be afforded."""
    size, best = t - s, scratch.best
    bound = 2**30
    for i in range(s, t):
        bound = min(bound, purse.least[order[i]])
    if 2 * bound > size:
        return s
    least = max(tests.least, bound)
    now = find_cuts(trees, rows, s, t, least, False, scratch)
    if size <= EXACT_BELOW and now > 0:
        weigh_cuts(trees, rows, s, t, now, least, scratch)
    while True:
        c, j = best_cut(best)
        if best[c, j] <= 0:
            return s
        best[c, j] = 0.0
        a, b = cut_range(trees, rows, s, t, c, j, scratch)
        if not hopeful(purse, rows, order, s, t, c, a, b):
            continue
        cut = partition(rows, order, s, t, c, a, b)
        if fits(tests, purse, rows, order, s, cut, t, scratch):
            return cut


@kernel
def order_by_need(purse: Purse, rows: Rows, order: Order, s: int, t: int, spare: Spare) -> bool:
    """Put rows s..t in order of need, the largest first. Returns whether needs differ at all."""
    size = t - s
    low = high = purse.worst[order[s]]
    for i in range(size):
        need = purse.worst[order[s + i]]
        low, high = min(low, need), max(high, need)
        spare.need[i] = -need
        spare.place[i] = i
    if low == high:
        return False
    sort_by(spare.place, size, spare.need, ZERO)
    for i in range(size):
        spare.order[i] = order[s + spare.place[i]]
        for c in range(rows.shape[1]):
            spare.rows[i, c] = rows[s + spare.place[i], c]
    for i in range(size):
        order[s + i] = spare.order[i]
        for c in range(rows.shape[1]):
            rows[s + i, c] = spare.rows[i, c]
    return True


@kernel
def cut_by_need(
    trees: Trees, tests: Tests, purse: Purse, rows: Rows, order: Order, s: int, t: int, scratch: Scratch, spare: Spare
) -> int:
    """Part those who need large groups from those who do not. Returns where, s for not at all.

    Those with much left would otherwise be generalised for the sake of those with little. Nobody's region grows by it.
    It is done where it lowers the loss at once, or leaves the others more than two groups to cut.
    """
    size = t - s
    if not order_by_need(purse, rows, order, s, t, spare):
        return s
    before = size * segment_cost(trees, rows, s, t, scratch.rows_at)
    for part in (1, 4, 8, 16, 24, 32, 40, 48):  # in 64ths: as few of the tight ones as can bear each other
        cut = s + max(1, size * part // 64)
        while cut < t and purse.worst[order[cut]] == purse.worst[order[cut - 1]]:
            cut += 1
        if t - cut < tests.least or not large_enough(purse, order, s, cut, t):
            continue
        if not fits(tests, purse, rows, order, s, cut, t, scratch):
            continue
        after = (cut - s) * segment_cost(trees, rows, s, cut, scratch.rows_at)
        after += (t - cut) * segment_cost(trees, rows, cut, t, scratch.rows_at)
        if after < before - 1e-9 or t - cut > 2 * smallest(purse.worst[order[cut]]):
            return cut
    return s


@kernel
def large_enough(purse: Purse, order: Order, s: int, cut: int, t: int) -> bool:
    """Whether rows s..cut and cut..t are enough for everybody's own value."""
    good = True
    for i in range(s, t):
        good = good and purse.least[order[i]] <= (cut - s if i < cut else t - cut)
    return good


def refine(
    trees: Trees, tests: Tests, purse: Purse, rows: Rows, order: Order, bounds: I64, relaxed: bool
) -> tuple[I64, float, float]:
    """Cut groups further, in place. Returns where they begin now, and the loss of all rows before and after."""
    starts = [split(trees, tests, purse, rows, order, int(s), int(t), 0, relaxed) for s, t in pairwise(bounds)]
    finer = np.concatenate(starts)
    ends = np.append(finer, bounds[-1])
    return finer, total_cost(trees, rows, bounds), total_cost(trees, rows, ends)


@allocating
def total_cost(trees: Trees, rows: Rows, bounds: I64) -> float:
    """Loss of all rows between the first and the last of these bounds of groups."""
    seen = np.zeros(trees.first_leaf[-1], dtype=np.int32)
    total = 0.0
    for g in range(len(bounds) - 1):
        total += (bounds[g + 1] - bounds[g]) * segment_cost(trees, rows, bounds[g], bounds[g + 1], seen)
    return total
