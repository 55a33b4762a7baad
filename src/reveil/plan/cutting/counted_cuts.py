"""Cutting a large table by its different rows, each counted once, as long as no side of a cut is too short.

Many people of a large table have the same quasi-identifiers. Where nothing but the size of a group matters, each
different row stands for all of them, and a segment is passed over once per different row instead of once per person.
Each cut is the one that `cuts.py` would make. Where that one would leave a side too short, single people may be lent
or a further cut be tried: the segment is left *open*, and `cuts.py` goes on with its people. A segment that offers no
cut is finished.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I32, I64, offsets_of, spread
from reveil.base.kernels import bare_kernel
from reveil.plan.cutting.candidates import (
    EXACT_BELOW,
    Scratch,
    best_cut,
    bounds_of,
    cuts_of_counted,
    find_ends,
    scratch_for,
    weigh_cuts_of,
)
from reveil.plan.cutting.cuts import Boundaries, Cutting, boundaries_for, middle_of, partition, split, split_into
from reveil.plan.cutting.trees import Trees
from reveil.plan.cutting.values import ZERO, Order, Rows, Tests
from reveil.plan.persistent.past import sort_by
from reveil.plan.schemes.classes import number, recoding

LARGE = 20_000  # people; smaller tables are cut in no time
ROOM = 4  # possible rows for each person, at most: they are counted by looking them up in one array
ALIKE = 2  # people for each different row, at least


class Rules(NamedTuple):
    """What cuts cost, what groups must satisfy, and whether a side that is too short may take rows from the other."""

    trees: Trees
    tests: Tests
    relaxed: bool


class DifferentRows(NamedTuple):
    """Different rows of a table, their numbers, and by number how many people each stands for."""

    rows: Rows
    order: I32
    weight: I64


@dataclass(frozen=True, eq=False)
class Segments:
    """The people of a table in the order of their segments: where each begins (and ends), and whether it is open."""

    how: Rules
    rows: Rows
    order: I32
    bounds: I64
    open: NDArray[np.bool_]

    def split(self, s: int, t: int, stop: int) -> tuple[I32, I32]:
        """`cuts.split` of rows s..t: what is finished stays as it is, what is open is cut on."""
        first, last = np.searchsorted(self.bounds, s, side="right"), np.searchsorted(self.bounds, t)
        bounds, still = np.concatenate([[s], self.bounds[first:last], [t]]), self.open[first - 1 : last]
        if stop == 0:
            starts = split_open(self.how, self.rows, self.order, bounds, still)
        elif len(still) == 1 and still[0]:
            return split(*self.how[:2], self.rows, self.order, s, t, stop, self.how.relaxed, 0)
        else:  # parts of about `stop` rows
            starts = bounds[np.searchsorted(bounds[:-1], np.arange(s, t - stop // 2, stop))].astype(np.int32)
            starts = np.unique(np.append(starts[starts < t], np.int32(s)))
        return starts, np.zeros(len(starts), dtype=np.int32)


def segments_of(how: Rules, rows: Rows, order: I32) -> Segments | None:
    """The table in segments, cut by its different rows; None where it is small, or where few people are alike."""
    leaves, tests = np.diff(how.trees.first_leaf).tolist(), how.tests
    if len(rows) < LARGE or len(tests.kind) or tests.most[1] > 0 or tests.people > 0 or prod(leaves) > ROOM * len(rows):
        return None
    ids, count = number(rows[:, : len(leaves)], recoding([np.arange(size) for size in leaves]))
    if ALIKE * count > len(rows):
        return None
    people, first = sort_by(ids, count)
    table = DifferentRows(rows[people[first[:-1]]], np.arange(count, dtype=np.int32), np.diff(first))
    bounds, still = split_counted(how, table)
    weight = table.weight[table.order]
    along = order[people[spread(first[table.order], weight)]]
    return Segments(how, np.repeat(table.rows, weight, axis=0), along, offsets_of(weight)[bounds], still)


def split_counted(how: Rules, table: DifferentRows) -> tuple[I64, NDArray[np.bool_]]:
    """Cut different rows into segments, in place: where they begin, and whether each is open."""
    room = boundaries_for(len(table.rows))
    found = cut_all(cutting_of(how, table.rows), table, room)
    return np.append(room.starts[:found], len(table.rows)).astype(np.int64), room.gone[:found] == 1


def cutting_of(how: Rules, rows: Rows) -> Cutting:
    return Cutting(how.trees, how.tests, scratch_for(how.trees, how.tests, rows), how.relaxed)


@bare_kernel
def cut_all(how: Cutting, table: DifferentRows, room: Boundaries) -> int:
    """The loop of `split_counted`: fills the starts of segments, and which are open; returns their number."""
    starts, still, ends = room
    segments, s = 0, ZERO
    ends[0], depth = len(table.rows), 1
    while depth > 0:
        t = ZERO + ends[depth - 1]
        cut, more = cut_counted(how, table, s, t)
        if cut > s:
            ends[depth] = cut
            depth += 1
            continue
        starts[segments], still[segments] = s, more
        segments += 1
        depth -= 1
        s = t
    return segments


@bare_kernel
def cut_counted(how: Cutting, table: DifferentRows, s: int, t: int) -> tuple[int, bool]:
    """Cut different rows s..t in two, in place. Returns where (s: not at all), and whether another cut is possible."""
    trees, tests, scratch, relaxed = how
    size, least = people_in(table, s, t), tests.least
    if t - s == 1 or size < 2 * least:
        return s, False
    count_people(trees, table, s, t, scratch)
    now = cuts_of_counted(trees, table.rows, s, t, size, least, relaxed, scratch)
    if size <= EXACT_BELOW:
        weigh_cuts_of(trees, table.rows, s, t, size, now, least, scratch)
    c, j = best_cut(scratch.best)
    if scratch.best[c, j] <= 0:
        return s, False
    a, b = int(scratch.cuts[c, j, 0]), int(scratch.cuts[c, j, 1])
    if 8 * scratch.inside[c, j] < size and size > EXACT_BELOW and not trees.free[c]:
        middle = halve_people(trees, c, table, s, t, size, scratch.rows_at)
        a, b = (a, b) if middle < 0 else (0, middle)
    cut = partition(table.rows, table.order, s, t, c, a, b)
    inside = people_in(table, s, cut)
    return (s, True) if min(inside, size - inside) < least else (cut, False)


@bare_kernel
def people_in(table: DifferentRows, s: int, t: int) -> int:
    """How many people different rows s..t stand for."""
    people = ZERO
    for i in range(s, t):
        people += table.weight[table.order[i]]
    return people


@bare_kernel
def count_people(trees: Trees, table: DifferentRows, s: int, t: int, scratch: Scratch) -> None:
    """People at each leaf of every column, and the lowest and highest leaf of each."""
    count, first = scratch.rows_at, trees.first_leaf
    for i in range(s, t):
        people = table.weight[table.order[i]]
        for c in range(len(trees.form)):
            count[first[c] + table.rows[i, c]] += people
    find_ends(trees, table.rows, s, t, scratch)


@bare_kernel
def halve_people(trees: Trees, c: int, table: DifferentRows, s: int, t: int, size: int, count: I32) -> int:
    """`halve`, by people."""
    for i in range(s, t):
        count[table.rows[i, c]] += table.weight[table.order[i]]
    low, high = bounds_of(table.rows, s, t, c)
    return middle_of(trees, c, low, high, size, count)


def split_open(how: Rules, rows: Rows, order: Order, bounds: I64, still: NDArray[np.bool_]) -> I32:
    """Cut the open ones of some segments to the end, person by person: where groups begin."""
    room = boundaries_for(int(bounds[-1] - bounds[0]))
    return room.starts[: finish_all(cutting_of(how, rows), rows, order, bounds, still, room)].copy()


@bare_kernel
def finish_all(how: Cutting, rows: Rows, order: Order, bounds: I64, still: NDArray[np.bool_], room: Boundaries) -> int:
    """The loop of `split_open`; returns how many groups there are."""
    groups = ZERO
    for segment in range(len(still)):
        s, t = bounds[segment], bounds[segment + 1]
        if still[segment]:
            part = Boundaries(room.starts[groups:], room.gone[groups:], room.ends)
            groups += split_into(how, rows, order, s, t, 0, 0, part)
        else:
            room.starts[groups], room.gone[groups] = s, 0
            groups += 1
    return groups
