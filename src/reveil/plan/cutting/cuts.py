"""Cutting a table into groups: the hot loops, on arrays only.

A *segment* is a run of rows that still belong together. Rows are moved physically when a segment is cut, so that every
segment, and in the end every group, is contiguous in memory. Nothing here knows names, files or policies.

All functions release the interpreter lock and compile once per machine (cached). With NUMBA_DISABLE_JIT=1 they run as
plain Python; the tests compare the two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveil.base.arrays import I32
from reveil.base.kernels import bare_kernel
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
from reveil.plan.cutting.trees import Trees, run_loss, smallest_node
from reveil.plan.cutting.values import ZERO, Order, Rows, Tests, admits


class Cutting(NamedTuple):
    """How segments are cut: what cuts cost, what groups must satisfy, and memory for both."""

    trees: Trees
    tests: Tests
    scratch: Scratch
    relaxed: bool  # a side that is too short may take rows from the other


class Boundaries(NamedTuple):
    """Room for the groups that are cut: where they begin, whether they are withheld, where segments to be cut end."""

    starts: I32
    gone: I32
    ends: I32


def boundaries_for(rows: int) -> Boundaries:
    return Boundaries(*(np.empty(rows + 1, dtype=np.int32) for _ in range(3)))


@bare_kernel
def halve(trees: Trees, c: int, rows: Rows, s: int, t: int, count: I32) -> int:
    """A position that divides column c near the middle, between two children of its smallest node.

    Many values of few rows each would otherwise be cut off one by one, each time passing over the whole segment.
    """
    for i in range(s, t):
        count[rows[i, c]] += 1
    low, high = bounds_of(rows, s, t, c)
    return middle_of(trees, c, low, high, t - s, count)


@bare_kernel
def middle_of(trees: Trees, c: int, low: int, high: int, size: int, count: I32) -> int:
    """The same of a column whose positions are counted. The counts are zero afterwards."""
    base, leaf, node = trees.first[c], trees.first_leaf[c], trees.node
    top = smallest_node(trees, c, low, high)
    left, cut, distance = 0, -1, size
    for p in range(low, high):
        left += count[p]
        child = trees.leaf_node[leaf + p]
        while node[base + child, 2] != top:
            child = node[base + child, 2]
        if node[base + child, 1] == p and abs(2 * left - size) < distance and left > 0:
            distance = abs(2 * left - size)
            cut = p
    for p in range(low, high + 1):
        count[p] = 0
    return cut


@bare_kernel
def swap(rows: Rows, order: Order, i: int, j: int) -> None:
    for c in range(rows.shape[1]):
        rows[i, c], rows[j, c] = rows[j, c], rows[i, c]
    order[i], order[j] = order[j], order[i]


@bare_kernel
def partition(rows: Rows, order: Order, s: int, t: int, c: int, a: int, b: int) -> int:
    """Move rows with positions a..b of column c to the front of s..t. Returns where they end."""
    front, back = s, t - 1
    while True:
        while front <= back and a <= rows[front, c] <= b:
            front += 1
        while front < back and not a <= rows[back, c] <= b:
            back -= 1
        if front >= back:
            return front
        swap(rows, order, front, back)
        front += 1
        back -= 1


@bare_kernel
def lend(trees: Trees, rows: Rows, order: Order, s: int, cut: int, t: int, least: int, scratch: Scratch) -> int:
    """Fill the shorter of s..cut and cut..t up to `least` rows with the nearest of the other. Returns the new cut.

    There must be at least twice `least` rows, and one on either side.
    """
    columns, low, high, loss = len(trees.form), scratch.low, scratch.high, scratch.loss
    short_first = cut - s < t - cut
    a, b = (s, cut) if short_first else (cut, t)
    for j in range(columns):
        low[j], high[j] = bounds_of(rows, a, b, j)
        loss[j] = run_loss(trees, j, low[j], high[j])
    while min(cut - s, t - cut) < least:
        x, y = (cut, t) if short_first else (s, cut)
        nearest, lowest = x, np.inf
        for i in range(x, y):
            more = 0.0  # loss of the short side with this row
            for j in range(columns):
                p = rows[i, j]
                if p < low[j]:
                    more += run_loss(trees, j, p, high[j]) - loss[j]
                elif p > high[j]:
                    more += run_loss(trees, j, low[j], p) - loss[j]
                if more >= lowest:
                    break
            if more < lowest:
                nearest, lowest = i, more
                if more <= 0.0:
                    break
        edge = cut if short_first else cut - 1
        swap(rows, order, nearest, edge)
        for j in range(columns):
            low[j] = min(low[j], rows[edge, j])
            high[j] = max(high[j], rows[edge, j])
            loss[j] = run_loss(trees, j, low[j], high[j])
        cut += 1 if short_first else -1
    return cut


def split(
    trees: Trees, tests: Tests, rows: Rows, order: Order, start: int, end: int, stop: int, relaxed: bool, withhold: int
) -> tuple[I32, I32]:
    """Cut rows start..end into groups, top down, each cut the one that loses least.

    Segments of at most `stop` rows are left as they are. Up to `withhold` rows may be withheld where that loses less
    than generalising others for their sake. Returns where the groups begin, in order, and whether each is withheld.
    """
    room, how = boundaries_for(end - start), Cutting(trees, tests, scratch_for(trees, tests, rows), relaxed)
    groups = split_into(how, rows, order, start, end, stop, withhold, room)
    return room.starts[:groups].copy(), room.gone[:groups].copy()


@bare_kernel
def split_into(
    how: Cutting, rows: Rows, order: Order, start: int, end: int, stop: int, withhold: int, room: Boundaries
) -> int:
    """The loop of `split`: fills the starts of groups, and which are withheld; returns their number."""
    starts, gone, ends = room
    groups, s = 0, start
    ends[0], depth = end, 1  # of the segments still to be cut; the last begins at s; negative where withheld
    while depth > 0:
        t = ZERO + ends[depth - 1]
        cut, drop = s, 0
        if t - s > stop and t - s >= 2 * how.tests.least:
            cut, drop = cut_segment(how, rows, order, s, t, withhold)
        if cut > s:
            withhold -= drop
            if drop > 0:  # the rows behind the cut
                ends[depth - 1] = -t
            ends[depth] = cut
            depth += 1
            continue
        starts[groups], gone[groups] = s, t < 0
        groups += 1
        depth -= 1
        s = abs(t)
    return groups


@bare_kernel
def cut_segment(how: Cutting, rows: Rows, order: Order, s: int, t: int, withhold: int) -> tuple[int, int]:
    """Cut rows s..t in two, in place. Returns where (s: not at all) and how many rows behind the cut to withhold."""
    trees, tests, scratch, relaxed = how
    size, least, best = t - s, tests.least, scratch.best
    now = find_cuts(trees, rows, s, t, least, relaxed or withhold > 0, scratch)
    if size <= EXACT_BELOW and now > 0:
        weigh_cuts(trees, rows, s, t, now, least, scratch)
    while True:
        c, j = best_cut(best)
        if best[c, j] <= 0:
            return s, 0
        best[c, j] = 0.0
        a, b = cut_range(trees, rows, s, t, c, j, scratch)
        cut = partition(rows, order, s, t, c, a, b)
        short = min(cut - s, t - cut) < least
        if short and withhold > 0:
            cut = short_side_last(rows, order, s, cut, t)
            few = t - cut <= withhold and admits(tests, rows, order, s, cut, scratch.tally, scratch.touched)
            if few and better_without(trees, rows, s, cut, t, now, least if relaxed else 0, scratch):
                return cut, t - cut
        if short and relaxed:
            cut = lend(trees, rows, order, s, cut, t, least, scratch)
            after = (cut - s) * segment_cost(trees, rows, s, cut, scratch.rows_at)
            after += (t - cut) * segment_cost(trees, rows, cut, t, scratch.rows_at)
            if after >= now * size - 1e-9:
                continue
        if not admits(tests, rows, order, s, cut, scratch.tally, scratch.touched):
            continue
        if admits(tests, rows, order, cut, t, scratch.tally, scratch.touched):
            return cut, 0


@bare_kernel
def cut_range(trees: Trees, rows: Rows, s: int, t: int, c: int, j: int, scratch: Scratch) -> tuple[int, int]:
    """The first and last position inside cut j of column c; half the column where the cut takes too little off."""
    a, b, size = int(scratch.cuts[c, j, 0]), int(scratch.cuts[c, j, 1]), t - s
    if 8 * scratch.inside[c, j] < size and size > EXACT_BELOW and not trees.free[c]:
        middle = halve(trees, c, rows, s, t, scratch.rows_at)
        if middle >= 0:
            return 0, middle
    return a, b


@bare_kernel
def short_side_last(rows: Rows, order: Order, s: int, cut: int, t: int) -> int:
    """Let the shorter of s..cut and cut..t be the second. Returns the new cut."""
    if cut - s >= t - cut:
        return cut
    for i in range(cut - s):
        swap(rows, order, s + i, t - 1 - i)
    return t - (cut - s)


@bare_kernel
def better_without(trees: Trees, rows: Rows, s: int, cut: int, t: int, now: float, lent: int, scratch: Scratch) -> bool:
    """Whether withholding the rows behind the cut loses less than keeping them, with `lent` of the others or all."""
    front = segment_cost(trees, rows, s, cut, scratch.rows_at)
    without = (cut - s) * front + (t - cut) * trees.weight.sum()
    kept = (t - s - lent) * front + lent * now if lent > 0 else now * (t - s)
    return without < kept
