"""Repair of groups that would tie few people to few others: the hot loops of Cor-Split.

A group is a run of cells, one per value, each a row or -1 for a counterfeit. `went[row, i]` is the group that the row's
person was in at the i-th earlier release, -1 for none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveil.base.arrays import I32, I64
from reveil.base.kernels import kernel
from reveil.plan.cutting.trees import Trees
from reveil.plan.persistent.split import bound, clear, loss

REACH = 48  # how far along the bucket members are exchanged
SAFE, MERGED, STUCK = 0, 1, 2


class Cells(NamedTuple):
    """The groups of all buckets, one cell per group and value: a row, or -1 for a counterfeit."""

    cells: I64
    first: I64  # where the cells of each bucket start
    width: I64  # values, by bucket
    height: I64  # groups, by bucket
    went: I32  # rows x releases


class Space(NamedTuple):
    """Where rows lie, what boxes cost, and room for one."""

    trees: Trees
    positions: I32
    box: I32


@kernel
def follow_rows(
    person: I64, group: I64, release: I64, offsets: I64, row_of: I64, first: int, releases: int, rows: int
) -> I32:
    """Where the people of the present rows went before, release by release."""
    went = np.full((rows, releases), -1, np.int32)
    for i in range(len(person)):
        if group[i] >= 0 and person[i] < len(row_of):
            row = row_of[person[i]]
            if row >= 0:
                went[row, release[i] - first] = offsets[release[i]] + group[i]
    return went


@kernel
def unsafe(cells: I64, count: int, went: I32, n: int) -> bool:
    """hcSafe of the paper, negated: more than |Q| - n, but not all, were together in one earlier group."""
    for r in range(went.shape[1]):
        most = 0
        for i in range(count):
            if cells[i] < 0:
                continue
            group = went[cells[i], r]
            if group < 0:
                continue
            together = 1
            for j in range(i + 1, count):
                if cells[j] >= 0 and went[cells[j], r] == group:
                    together += 1
            most = max(most, together)
        if count - n < most < count:
            return True
    return False


@kernel
def cost(space: Space, cells: I64) -> float:
    clear(space.box)
    rows = 0
    for i in range(len(cells)):
        if cells[i] >= 0:
            bound(space.positions, cells[i], cells[i] + 1, space.box)
            rows += 1
    return rows * loss(space.trees, space.box) if rows else 0.0


@kernel
def exchange(table: Cells, b: int, g: int, n: int, into: I64, space: Space) -> bool:
    """Exchange one member of group g of bucket b for one of a near group so that both are safe, at the least loss."""
    cells, went, first, width, height = table.cells, table.went, table.first[b], table.width[b], table.height[b]
    a = first + g * width
    for distance in range(1, REACH):
        best, target, lowest = -1, -1, np.inf
        for side in (-1, 1):
            other = g + side * distance
            if other < 0 or other >= height or into[other] >= 0:
                continue
            z = first + other * width
            for v in range(width):
                if cells[a + v] == cells[z + v]:
                    continue
                cells[a + v], cells[z + v] = cells[z + v], cells[a + v]
                mine, theirs = cells[a : a + width], cells[z : z + width]
                if not unsafe(mine, width, went, n) and not unsafe(theirs, width, went, n):
                    now = cost(space, mine) + cost(space, theirs)
                    if now < lowest:
                        best, target, lowest = v, z, now
                cells[a + v], cells[z + v] = cells[z + v], cells[a + v]
        if best >= 0:
            cells[a + best], cells[target + best] = cells[target + best], cells[a + best]
            return True
    return False


@kernel
def merge(table: Cells, b: int, g: int, n: int, into: I64) -> bool:
    """Merge group g of bucket b with a near group that no other was merged with, if the union is safe."""
    cells, first, width, height = table.cells, table.first[b], table.width[b], table.height[b]
    both = np.empty(2 * width, np.int64)
    for distance in range(1, REACH):
        for side in (-1, 1):
            other = g + side * distance
            if other < 0 or other >= height or into[other] >= 0:
                continue
            both[:width] = cells[first + g * width : first + (g + 1) * width]
            both[width:] = cells[first + other * width : first + (other + 1) * width]
            if not unsafe(both, 2 * width, table.went, n):
                into[g], into[other] = other, other
                return True
    return False


@kernel
def repair(table: Cells, trees: Trees, positions: I32, n: int, into: I64, state: I64) -> int:
    """Make all groups safe that can be. `into` says which group of its bucket a group was merged with."""
    space = Space(trees, positions, np.zeros((2, positions.shape[1]), np.int32))
    exchanged = base = 0
    for b in range(len(table.height)):
        width, height, first = table.width[b], table.height[b], table.first[b]
        joined, states = into[base : base + height], state[base : base + height]
        base += height
        for g in range(height):
            a = first + g * width
            if joined[g] >= 0 or not unsafe(table.cells[a : a + width], width, table.went, n):
                continue
            if exchange(table, b, g, n, joined, space):
                exchanged += 1
            elif merge(table, b, g, n, joined):
                states[g] = MERGED
                states[joined[g]] = SAFE  # it may have been stuck; the union is safe
            else:
                states[g] = STUCK
    return exchanged


@kernel
def count_unsafe(table: Cells, n: int) -> int:
    """How many groups are unsafe as they stand (Figure 7 of the paper)."""
    count = 0
    for b in range(len(table.height)):
        for g in range(table.height[b]):
            a = table.first[b] + g * table.width[b]
            count += unsafe(table.cells[a : a + table.width[b]], table.width[b], table.went, n)
    return count
