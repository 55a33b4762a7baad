"""Repair of groups that would tie few people to few others: the hot loops of Cor-Split.

A group is a run of cells, one per value, each a row or -1 for a counterfeit. `went[row, i]` is the group that the row's
person was in at the i-th earlier release, -1 for none.
"""
# mypy: allow-untyped-decorators

from __future__ import annotations

import numpy as np

from reveil.base.kernels import kernel
from reveil.plan.persistent.split import bound, clear, loss

REACH = 48  # how far along the bucket members are exchanged
SAFE, MERGED, STUCK = 0, 1, 2


@kernel
def follow_rows(person, group, release, offsets, row_of, first, releases, rows):  # type: ignore[no-untyped-def]
    """Where the people of the present rows went before, release by release."""
    went = np.full((rows, releases), -1, np.int32)
    for i in range(len(person)):
        if group[i] >= 0 and person[i] < len(row_of):
            row = row_of[person[i]]
            if row >= 0:
                went[row, release[i] - first] = offsets[release[i]] + group[i]
    return went


@kernel
def unsafe(cells, count, went, n):  # type: ignore[no-untyped-def]
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
def cost(trees, cells, positions, box):  # type: ignore[no-untyped-def]
    clear(box)
    rows = 0
    for i in range(len(cells)):
        if cells[i] >= 0:
            bound(positions, cells[i], cells[i] + 1, box)
            rows += 1
    return rows * loss(trees, box) if rows else 0.0


@kernel
def exchange(trees, cells, first, width, height, g, went, n, positions, into, box):  # type: ignore[no-untyped-def]
    """Exchange one member of group g for one of a near group so that both are safe, at the least loss."""
    a = first + g * width
    for distance in range(1, REACH):
        best, target, lowest = -1, -1, np.inf
        for side in (-1, 1):
            other = g + side * distance
            if other < 0 or other >= height or into[other] >= 0:
                continue
            b = first + other * width
            for v in range(width):
                if cells[a + v] == cells[b + v]:
                    continue
                cells[a + v], cells[b + v] = cells[b + v], cells[a + v]
                mine, theirs = cells[a : a + width], cells[b : b + width]
                if not unsafe(mine, width, went, n) and not unsafe(theirs, width, went, n):
                    now = cost(trees, mine, positions, box) + cost(trees, theirs, positions, box)
                    if now < lowest:
                        best, target, lowest = v, b, now
                cells[a + v], cells[b + v] = cells[b + v], cells[a + v]
        if best >= 0:
            cells[a + best], cells[target + best] = cells[target + best], cells[a + best]
            return True
    return False


@kernel
def merge(cells, first, width, height, g, went, n, into):  # type: ignore[no-untyped-def]
    """Merge group g with a near group that no other was merged with, if the union is safe."""
    both = np.empty(2 * width, np.int64)
    for distance in range(1, REACH):
        for side in (-1, 1):
            other = g + side * distance
            if other < 0 or other >= height or into[other] >= 0:
                continue
            both[:width] = cells[first + g * width : first + (g + 1) * width]
            both[width:] = cells[first + other * width : first + (other + 1) * width]
            if not unsafe(both, 2 * width, went, n):
                into[g], into[other] = other, other
                return True
    return False


@kernel
def repair(trees, cells, cell_first, widths, heights, went, n, positions, into, state):  # type: ignore[no-untyped-def]
    """Make all groups safe that can be. `into` says which group of its bucket a group was merged with."""
    box = np.zeros((2, positions.shape[1]), np.int32)
    exchanged = base = 0
    for b in range(len(heights)):
        width, height, first = widths[b], heights[b], cell_first[b]
        joined, states = into[base : base + height], state[base : base + height]
        base += height
        for g in range(height):
            a = first + g * width
            if joined[g] >= 0 or not unsafe(cells[a : a + width], width, went, n):
                continue
            if exchange(trees, cells, first, width, height, g, went, n, positions, joined, box):
                exchanged += 1
            elif merge(cells, first, width, height, g, went, n, joined):
                states[g] = MERGED
                states[joined[g]] = SAFE  # it may have been stuck; the union is safe
            else:
                states[g] = STUCK
    return exchanged


@kernel
def count_unsafe(cells, cell_first, widths, heights, went, n):  # type: ignore[no-untyped-def]
    """How many groups are unsafe as they stand (Figure 7 of the paper)."""
    count = 0
    for b in range(len(heights)):
        for g in range(heights[b]):
            a = cell_first[b] + g * widths[b]
            count += unsafe(cells[a : a + widths[b]], widths[b], went, n)
    return count
