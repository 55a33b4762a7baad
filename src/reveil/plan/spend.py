"""The hot loops of planning with budgets, on arrays only: what people can still bear, and cuts that respect it.

A *need* is the share of a group that must not have a value, for one person: (n - n_s)/n >= need. It is a float, off
the truth by a little on purpose: above it, so that rounding cannot let through what is too much; or, where need and
share are quotients of whole numbers so small that different ones differ by more, below it, so that no tie is refused.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reveil.plan import kernels
from reveil.plan.kernels import F64, I32, I64, Tests, Trees

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


@njit(cache=True, nogil=True)
def visits_of(person: Ints, release: Ints, group: Ints, line: I64, lines: int, offset: I64) -> tuple[I64, I32]:
    """The groups of each line, side by side: found[first[i]:first[i + 1]]. Withheld rows are left out."""
    first = np.zeros(lines + 2, dtype=np.int64)
    for i in range(len(person)):
        if group[i] >= 0 and line[person[i]] >= 0:
            first[line[person[i]] + 2] += 1
    for k in range(2, lines + 2):
        first[k] += first[k - 1]
    found = np.empty(first[lines + 1], dtype=np.int32)
    for i in range(len(person)):
        if group[i] >= 0 and line[person[i]] >= 0:
            place = line[person[i]] + 1
            found[first[place]] = offset[release[i]] + group[i]
            first[place] += 1
    return first[: lines + 1], found


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def tabulate(past: Past, slots: int) -> F64:
    """The ratios of all groups as a table: faster to multiply by where groups have many values."""
    table = np.ones((len(past.size), slots))
    for g in range(len(past.size)):
        for j in range(past.first[g], past.first[g + 1]):
            table[g, past.slot[j]] = past.ratio[j]
    return table


@njit(cache=True, nogil=True)
def fill_needs(
    first: I64,
    visits: I32,
    past: Past,
    target: Target,
    kind: I64,
    begin: int,
    end: int,
    rows: int,
    need: F64,
    worst: F64,
) -> None:
    """The needs of people begin..end, who were in the groups visits[first[i]:first[i + 1]]."""
    for i in range(begin, end):
        k = kind[i]
        product = target.bottom[k] * rows
        for v in range(first[i], first[i + 1]):
            product *= past.size[visits[v]]
        margin = ROUNDING * (first[i + 1] - first[i] + 4)
        exact = target.whole[k] and product < EXACT
        line = need[i]
        line[:] = target.top[k] / target.bottom[k] * (1.0 - margin if exact else 1.0 + margin)
        for v in range(first[i], first[i + 1]):
            g = visits[v]
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


@njit(cache=True, nogil=True)
def fill_least(purse: Purse, codes: I32) -> None:
    """A lower bound for the size of each row's group: its own value occurs there."""
    for i in range(len(codes)):
        least = 1.0
        for c in range(codes.shape[1]):
            slot = purse.slot[purse.first_code[c] + codes[i, c]]
            if slot >= 0:
                least = max(least, smallest(purse.need[purse.line[i], slot]))
        purse.least[i] = least


@njit(cache=True, nogil=True)
def smallest(need: float) -> float:
    """A lower bound for the size of a group in which a value occurs, for one person."""
    return min(2.0**30, np.ceil(1.0 / (1.0 - need) * (1 - 1e-9))) if need < 1.0 else 2.0**30


@njit(cache=True, nogil=True)
def affords(purse: Purse, rows: I32, order: I64, s: int, t: int, count: I64, work: I64) -> bool:
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
                for i in range(s, t):
                    if purse.need[purse.line[order[i]], slot] > share:
                        good = False
                        break
        if not good:
            return False
    return True


@njit(cache=True, nogil=True)
def split(
    trees: Trees, tests: Tests, purse: Purse, rows: I32, order: I64, start: int, end: int, stop: int, relaxed: bool
) -> I64:
    """Cut rows start..end into groups, top down, where they have more than `stop` rows. Returns where groups begin."""
    columns, widest = len(trees.free), 1
    for c in range(columns):
        widest = max(widest, trees.first[c + 1] - trees.first[c])
    for test in range(len(tests.kind)):
        widest = max(widest, tests.first_code[test + 1] - tests.first_code[test])
    for c in range(len(purse.column)):
        widest = max(widest, purse.first_code[c + 1] - purse.first_code[c])
    count = np.zeros(widest + 1, dtype=np.int64)
    work = np.zeros(2 * widest + 2, dtype=np.int64)
    node_count = np.zeros(2 * widest + 2, dtype=np.int64)
    seen = np.zeros(widest + 1, dtype=np.int32)
    best = np.zeros((columns, kernels.CANDIDATES))
    cuts = np.zeros((columns, kernels.CANDIDATES, 3), dtype=np.int64)
    box = np.zeros((4, columns), dtype=np.int32)
    spare = np.empty((end - start, rows.shape[1]), dtype=np.int32)
    spare_order = np.empty(end - start, dtype=np.int64)
    bounds = [start]
    bounds.pop()
    stack = [(start, end)]
    while len(stack) > 0:
        s, t = stack.pop()
        cut = s
        if t - s > stop and t - s >= 2 * tests.least:
            cut = cut_segment(
                trees, tests, purse, rows, order, s, t, count, work, node_count, seen, best, cuts, box, spare,
                spare_order,
            )  # fmt: skip
            if cut == s and relaxed:
                cut = cut_by_need(trees, tests, purse, rows, order, s, t, count, work, seen, spare, spare_order)
        if cut == s:
            bounds.append(s)
        else:
            stack.append((s, cut))
            stack.append((cut, t))
    return np.array(bounds)


@njit(cache=True, nogil=True)
def fits(tests: Tests, purse: Purse, rows: I32, order: I64, s: int, cut: int, t: int, count: I64, work: I64) -> bool:
    """Whether both sides of a cut may be published."""
    return (
        min(cut - s, t - cut) >= tests.least
        and affords(purse, rows, order, s, cut, count, work)
        and affords(purse, rows, order, cut, t, count, work)
        and kernels.admits(tests, rows, order, s, cut, count, work)
        and kernels.admits(tests, rows, order, cut, t, count, work)
    )


@njit(cache=True, nogil=True)
def hopeful(purse: Purse, rows: I32, order: I64, s: int, t: int, c: int, a: int, b: int) -> bool:
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


@njit(cache=True, nogil=True)
def cut_segment(
    trees: Trees, tests: Tests, purse: Purse, rows: I32, order: I64, s: int, t: int, count: I64, work: I64,
    node_count: I64, seen: I32, best: F64, cuts: I64, box: I32, spare: I32, spare_order: I64,
) -> int:  # fmt: skip
    """Cut rows s..t in two where that loses least, in place. Returns where; s when no cut can be afforded."""
    columns, size = len(trees.free), t - s
    bound = 2**30
    for i in range(s, t):
        bound = min(bound, purse.least[order[i]])
    if 2 * bound > size:
        return s
    least = max(tests.least, bound)
    exact = size <= kernels.EXACT_BELOW
    now = kernels.segment_cost(trees, rows, s, t, seen) if exact else 0.0
    for c in range(columns):
        best[c, :] = 0.0
        kept = kernels.find_cuts(trees, c, rows, s, t, least, False, count, work, node_count, best, cuts)
        for j in range(kept if exact else 0):
            if j < kernels.WEIGHED:
                after = kernels.weigh(trees, rows, s, t, c, cuts[c, j, 0], cuts[c, j, 1], least, box, seen)
                best[c, j] = now * size - after
            else:
                best[c, j] *= 1e-9
    while True:
        c, j = 0, 0
        for x in range(columns):
            for y in range(kernels.CANDIDATES):
                if best[x, y] > best[c, j]:
                    c, j = x, y
        if best[c, j] <= 0:
            return s
        best[c, j] = 0.0
        a, b, inside = cuts[c, j]
        if 8 * inside < size and size > kernels.EXACT_BELOW and not trees.free[c]:
            middle = kernels.halve(trees, c, rows, s, t, count)
            if middle >= 0:
                a, b = 0, middle
        if not hopeful(purse, rows, order, s, t, c, a, b):
            continue
        cut = kernels.partition(rows, order, s, t, c, a, b, spare, spare_order)
        if fits(tests, purse, rows, order, s, cut, t, count, work):
            return cut


@njit(cache=True, nogil=True)
def cut_by_need(
    trees: Trees, tests: Tests, purse: Purse, rows: I32, order: I64, s: int, t: int, count: I64, work: I64,
    seen: I32, spare: I32, spare_order: I64,
) -> int:  # fmt: skip
    """Part those who need large groups from those who do not. Returns where, s for not at all.

    Those with much left would otherwise be generalised for the sake of those with little. Nobody's region grows by it.
    It is done where it lowers the loss at once, or leaves the others more than two groups to cut.
    """
    size = t - s
    needs = np.empty(size)
    for i in range(size):
        needs[i] = -purse.worst[order[s + i]]
    by_need = np.argsort(needs, kind="mergesort")
    if needs[by_need[0]] == needs[by_need[size - 1]]:
        return s
    before = size * kernels.segment_cost(trees, rows, s, t, seen)
    for i in range(size):
        spare[i] = rows[s + by_need[i]]
        spare_order[i] = order[s + by_need[i]]
    rows[s:t] = spare[:size]
    order[s:t] = spare_order[:size]
    for part in (1, 4, 8, 16, 24, 32, 40, 48):  # in 64ths: as few of the tight ones as can bear each other
        cut = s + max(1, size * part // 64)
        while cut < t and purse.worst[order[cut]] == purse.worst[order[cut - 1]]:
            cut += 1
        if t - cut < tests.least or not large_enough(purse, order, s, cut, t):
            continue
        if not fits(tests, purse, rows, order, s, cut, t, count, work):
            continue
        after = (cut - s) * kernels.segment_cost(trees, rows, s, cut, seen)
        after += (t - cut) * kernels.segment_cost(trees, rows, cut, t, seen)
        if after < before - 1e-9 or t - cut > 2 * smallest(purse.worst[order[cut]]):
            return cut
    return s


@njit(cache=True, nogil=True)
def large_enough(purse: Purse, order: I64, s: int, cut: int, t: int) -> bool:
    """Whether rows s..cut and cut..t are enough for everybody's own value."""
    good = True
    for i in range(s, t):
        good = good and purse.least[order[i]] <= (cut - s if i < cut else t - cut)
    return good


@njit(cache=True, nogil=True)
def refine(
    trees: Trees, tests: Tests, purse: Purse, rows: I32, order: I64, bounds: I64, relaxed: bool
) -> tuple[I64, float, float]:
    """Cut groups further, in place. Returns where they begin now, and the loss of all rows before and after."""
    widest = 1
    for c in range(len(trees.free)):
        widest = max(widest, trees.first_leaf[c + 1] - trees.first_leaf[c])
    seen = np.zeros(widest + 1, dtype=np.int32)
    starts = [bounds[0]]
    starts.pop()
    before = after = 0.0
    for g in range(len(bounds) - 1):
        s, t = bounds[g], bounds[g + 1]
        before += (t - s) * kernels.segment_cost(trees, rows, s, t, seen)
        parts = np.sort(split(trees, tests, purse, rows, order, s, t, 0, relaxed))
        for j in range(len(parts)):
            end = parts[j + 1] if j + 1 < len(parts) else t
            after += (end - parts[j]) * kernels.segment_cost(trees, rows, parts[j], end, seen)
            starts.append(parts[j])
    return np.array(starts), before, after
