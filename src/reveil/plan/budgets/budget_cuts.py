"""Cuts that respect what people can still bear: the hot loops of planning with budgets, on arrays only."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from reveil.base.arrays import F64, I64
from reveil.base.kernels import allocating_kernel, bare_kernel
from reveil.plan.budgets.remaining_budget import RemainingBudget, smallest
from reveil.plan.cutting.candidates import (
    EXACT_BELOW,
    Scratch,
    best_cut,
    bounds_of,
    find_cuts,
    scratch_for,
    segment_cost,
    weigh_cuts,
)
from reveil.plan.cutting.cuts import cut_range, partition
from reveil.plan.cutting.trees import Trees, run_loss
from reveil.plan.cutting.values import ZERO, Order, Rows, Tests, admits, sort_by

DEALT = 16  # segments of so many times the rows that somebody needs for one occurrence are dealt by value


@bare_kernel
def affords(remaining: RemainingBudget, rows: Rows, order: Order, s: int, t: int, count: I64, work: I64) -> bool:
    """Whether everybody in rows s..t can bear every value that occurs there."""
    size = t - s
    worst = 0.0
    for i in range(s, t):
        worst = max(worst, remaining.worst[order[i]])
    for c in range(len(remaining.column)):
        column, base = remaining.column[c], remaining.first_code[c]
        touched = 0
        for i in range(s, t):
            code = rows[i, column]
            if count[code] == 0:
                work[touched] = code
                touched += 1
            count[code] += 1
        good = True
        for j in range(touched):
            slot = remaining.slot[base + work[j]]
            share = (size - count[work[j]]) / size
            count[work[j]] = 0
            if good and slot >= 0 and share < worst:
                good = all_bear(remaining, order, s, t, slot, share)
        if not good:
            return False
    return True


@bare_kernel
def all_bear(remaining: RemainingBudget, order: Order, s: int, t: int, slot: int, share: float) -> bool:
    """Whether nobody in rows s..t needs more than this share to be without the value of a slot."""
    for i in range(s, t):
        row = order[i]
        if remaining.worst[row] > share and remaining.need[remaining.line[row], slot] > share:
            return False
    return True


def room_for(remaining: RemainingBudget, tests: Tests, trees: Trees, rows: Rows) -> Scratch:
    """Scratch memory that is also enough for the codes of all sensitive columns."""
    scratch = scratch_for(trees, tests, rows)
    codes = max(len(scratch.tally), int(np.diff(remaining.first_code).max(initial=0)) + 1)
    return scratch._replace(tally=np.zeros(codes, dtype=np.int64), touched=np.zeros(codes, dtype=np.int64))


class Spare(NamedTuple):
    """Room for a segment in another order."""

    rows: Rows
    order: Order
    place: I64
    need: F64


class BudgetCutting(NamedTuple):
    """How segments are cut: what cuts cost, what groups must satisfy, what people can bear, and memory for it."""

    trees: Trees
    tests: Tests
    remaining: RemainingBudget
    scratch: Scratch
    spare: Spare
    relaxed: bool  # rows may also be parted by what people need, or dealt by value


def split(
    trees: Trees,
    tests: Tests,
    remaining: RemainingBudget,
    rows: Rows,
    order: Order,
    start: int,
    end: int,
    stop: int,
    relaxed: bool,
) -> I64:
    """Cut rows start..end into groups, top down, where they have more than `stop` rows. Returns where groups begin."""
    size = end - start
    starts, ends, place = (np.empty(size + 1, dtype=np.int64) for _ in range(3))
    spare = Spare(np.empty_like(rows[start:end]), np.empty_like(order[start:end]), place, np.empty(size))
    how = BudgetCutting(trees, tests, remaining, room_for(remaining, tests, trees, rows), spare, relaxed)
    groups = split_into(how, rows, order, start, end, stop, starts, ends)
    return starts[:groups].copy()


@bare_kernel
def split_into(
    how: BudgetCutting, rows: Rows, order: Order, start: int, end: int, stop: int, starts: I64, ends: I64
) -> int:
    """The loop of `split`: fills `starts`, returns the number of groups."""
    groups, s = 0, start
    ends[0], depth = end, 1  # of the segments still to be cut; the last begins at s
    while depth > 0:
        t = ends[depth - 1]
        cut = s
        if t - s > stop and t - s >= 2 * how.tests.least:
            cut = cut_segment(how, rows, order, s, t)
            if cut == s and how.relaxed:
                cut = cut_by_need(how, rows, order, s, t)
            if cut == s and how.relaxed:
                cut = deal_in_two(how, rows, order, s, t)
        if cut > s:
            ends[depth] = cut
            depth += 1
        else:
            starts[groups] = s
            groups += 1
            depth -= 1
            s = t
    return groups


@bare_kernel
def fits(how: BudgetCutting, rows: Rows, order: Order, s: int, cut: int, t: int) -> bool:
    """Whether both sides of a cut may be published."""
    tests, remaining, count, work = how.tests, how.remaining, how.scratch.tally, how.scratch.touched
    return (
        min(cut - s, t - cut) >= tests.least
        and affords(remaining, rows, order, s, cut, count, work)
        and affords(remaining, rows, order, cut, t, count, work)
        and admits(tests, rows, order, s, cut, count, work)
        and admits(tests, rows, order, cut, t, count, work)
    )


@bare_kernel
def hopeful(remaining: RemainingBudget, rows: Rows, order: Order, s: int, t: int, c: int, a: int, b: int) -> bool:
    """Whether both sides of a cut at positions a..b of column c are large enough for everybody's own value."""
    inside = 0
    most_inside = most_outside = 0
    for i in range(s, t):
        if a <= rows[i, c] <= b:
            inside += 1
            most_inside = max(most_inside, remaining.least[order[i]])
        else:
            most_outside = max(most_outside, remaining.least[order[i]])
    return most_inside <= inside and most_outside <= t - s - inside


@bare_kernel
def cut_segment(how: BudgetCutting, rows: Rows, order: Order, s: int, t: int) -> int:
    """Cut rows s..t in two where that loses least, in place. Returns where; s when no cut can be afforded."""
    trees, tests, remaining, scratch = how.trees, how.tests, how.remaining, how.scratch
    size, best = t - s, scratch.best
    bound = 2**30
    for i in range(s, t):
        bound = min(bound, remaining.least[order[i]])
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
        if not hopeful(remaining, rows, order, s, t, c, a, b):
            continue
        cut = partition(rows, order, s, t, c, a, b)
        if fits(how, rows, order, s, cut, t):
            return cut


@bare_kernel
def deal_in_two(how: BudgetCutting, rows: Rows, order: Order, s: int, t: int) -> int:
    """Cut rows s..t in the middle of a column, for each sensitive value on its own. Returns where, s for not at all.

    Both sides then have the values in nearly the proportions of the whole. A cut between two positions has them as
    chance will have it, which people with little left cannot bear unless groups are very large.
    """
    trees, remaining, scratch = how.trees, how.remaining, how.scratch
    size = t - s
    if size < DEALT * smallest(lowest_need(remaining, order, s, t)) or len(remaining.column) == 0:
        return s
    for c in range(len(trees.form)):
        low, high = bounds_of(rows, s, t, c)
        scratch.loss[c] = run_loss(trees, c, low, high)
    before = size * segment_cost(trees, rows, s, t, scratch.rows_at)
    for _ in range(len(trees.form)):
        c = 0
        for x in range(len(trees.form)):
            if scratch.loss[x] > scratch.loss[c]:
                c = x
        if scratch.loss[c] <= 0:
            return s
        scratch.loss[c] = 0.0
        cut = deal(how, rows, order, s, t, c)
        after = (cut - s) * segment_cost(trees, rows, s, cut, scratch.rows_at)
        after += (t - cut) * segment_cost(trees, rows, cut, t, scratch.rows_at)
        if after < before - 1e-9 and fits(how, rows, order, s, cut, t):
            return cut
    return s


@bare_kernel
def lowest_need(remaining: RemainingBudget, order: Order, s: int, t: int) -> float:
    need = remaining.worst[order[s]]
    for i in range(s, t):
        need = min(need, remaining.worst[order[i]])
    return need


@bare_kernel
def deal(how: BudgetCutting, rows: Rows, order: Order, s: int, t: int, c: int) -> int:
    """Bring the lower half of every value's rows, by column c, to the front of s..t. Returns where they end."""
    trees, remaining, scratch, spare = how.trees, how.remaining, how.scratch, how.spare
    column, base, size = remaining.column[0], trees.first_leaf[c], t - s
    held, at = scratch.tally, scratch.rows_at
    # Two counting sorts: places by position, then rows by value, which keeps the order of positions within a value.
    for i in range(s, t):
        held[rows[i, column]] += 1
        at[base + rows[i, c]] += 1
    total = 0
    for p in range(trees.first_leaf[c + 1] - base):
        total += at[base + p]
        at[base + p] = total - at[base + p]
    for i in range(s, t):
        spare.place[at[base + rows[i, c]]] = i
        at[base + rows[i, c]] += 1
    for p in range(trees.first_leaf[c + 1] - base):
        at[base + p] = 0
    # `held` counts down while rows are dealt: of 2k or 2k + 1 rows of a value, k or k + 1 go to the front, in turn.
    extra, front, back = 0, 0, 0
    codes = remaining.first_code[1] - remaining.first_code[0]
    for code in range(codes):
        odd = held[code] % 2
        scratch.touched[code] = held[code] // 2 + (odd if extra else 0)
        if odd:
            extra = 1 - extra
        front += scratch.touched[code]
        held[code] = 0
    cut, back = s + front, front
    front = 0
    for j in range(size):
        i = spare.place[j]
        code = rows[i, column]
        if scratch.touched[code] > 0:
            scratch.touched[code] -= 1
            target = front
            front += 1
        else:
            target = back
            back += 1
        spare.order[target] = order[i]
        for x in range(rows.shape[1]):
            spare.rows[target, x] = rows[i, x]
    copy_back(rows, order, s, t, spare)
    return cut


@bare_kernel
def copy_back(rows: Rows, order: Order, s: int, t: int, spare: Spare) -> None:
    """Rows s..t as they are in the spare room."""
    for i in range(t - s):
        order[s + i] = spare.order[i]
        for c in range(rows.shape[1]):
            rows[s + i, c] = spare.rows[i, c]


@bare_kernel
def order_by_need(remaining: RemainingBudget, rows: Rows, order: Order, s: int, t: int, spare: Spare) -> bool:
    """Put rows s..t in order of need, the largest first. Returns whether needs differ at all."""
    size = t - s
    low = high = remaining.worst[order[s]]
    for i in range(size):
        need = remaining.worst[order[s + i]]
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
    copy_back(rows, order, s, t, spare)
    return True


@bare_kernel
def cut_by_need(how: BudgetCutting, rows: Rows, order: Order, s: int, t: int) -> int:
    """Part those who need large groups from those who do not. Returns where, s for not at all.

    Those with much left would otherwise be generalised for the sake of those with little. Nobody's region grows by it.
    It is done where it lowers the loss at once, or leaves the others more than two groups to cut.
    """
    trees, tests, remaining, scratch = how.trees, how.tests, how.remaining, how.scratch
    size = t - s
    if not order_by_need(remaining, rows, order, s, t, how.spare):
        return s
    before = size * segment_cost(trees, rows, s, t, scratch.rows_at)
    for part in (1, 4, 8, 16, 24, 32, 40, 48):  # in 64ths: as few of the tight ones as can bear each other
        cut = s + max(1, size * part // 64)
        while cut < t and remaining.worst[order[cut]] == remaining.worst[order[cut - 1]]:
            cut += 1
        if t - cut < tests.least or not large_enough(remaining, order, s, cut, t):
            continue
        if not fits(how, rows, order, s, cut, t):
            continue
        after = (cut - s) * segment_cost(trees, rows, s, cut, scratch.rows_at)
        after += (t - cut) * segment_cost(trees, rows, cut, t, scratch.rows_at)
        if after < before - 1e-9 or t - cut > 2 * smallest(remaining.worst[order[cut]]):
            return cut
    return s


@bare_kernel
def large_enough(remaining: RemainingBudget, order: Order, s: int, cut: int, t: int) -> bool:
    """Whether rows s..cut and cut..t are enough for everybody's own value."""
    good = True
    for i in range(s, t):
        good = good and remaining.least[order[i]] <= (cut - s if i < cut else t - cut)
    return good


def refine(
    trees: Trees, tests: Tests, remaining: RemainingBudget, rows: Rows, order: Order, bounds: I64, relaxed: bool
) -> tuple[I64, float, float]:
    """Cut groups further, in place. Returns where they begin now, and the loss of all rows before and after."""
    starts = [split(trees, tests, remaining, rows, order, int(s), int(t), 0, relaxed) for s, t in pairwise(bounds)]
    finer = np.concatenate(starts)
    ends = np.append(finer, bounds[-1])
    return finer, total_cost(trees, rows, bounds), total_cost(trees, rows, ends)


@allocating_kernel
def total_cost(trees: Trees, rows: Rows, bounds: I64) -> float:
    """Loss of all rows between the first and the last of these bounds of groups."""
    seen = np.zeros(trees.first_leaf[-1], dtype=np.int32)
    total = 0.0
    for g in range(len(bounds) - 1):
        total += (bounds[g + 1] - bounds[g]) * segment_cost(trees, rows, bounds[g], bounds[g + 1], seen)
    return total
