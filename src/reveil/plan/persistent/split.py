"""Split: part a bucket into groups with one row of each value, near rows together. The hot loops.

A bucket has `height` places for each of its values; where it has fewer rows of a value, the others are counterfeits. A
cut sends the same number of places of every value to each side. Counterfeits have no position: they are shared out
evenly, and take the box of the group they end in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveil.base.arrays import I32, I64, Bools
from reveil.base.kernels import kernel
from reveil.plan.cutting.trees import Trees, run_cost

WEIGHED = 4  # up to this height, every column is tried and weighed by the loss of all columns


class Ordered(NamedTuple):
    """Rows in an order that changes, and their positions, moved along with them so that they are read in sequence."""

    order: I64
    near: I32  # near[i] are the positions of row order[i]


class Boxes(NamedTuple):
    """Room for the boxes of both sides of a cut."""

    here: I32
    there: I32
    wide: Bools  # columns in which the whole has more than one position


class BucketRows(NamedTuple):
    """The places of all buckets: values of bucket b are first[b]:first[b + 1]."""

    first: I64
    start: I64  # of each value's rows, in their order
    rows: I64  # of each value
    height: I64
    base: I64  # number of the first group


@kernel
def boxes_for(columns: int) -> Boxes:
    return Boxes(np.zeros((2, columns), np.int32), np.zeros((2, columns), np.int32), np.zeros(columns, np.bool_))


@kernel
def select(placed: Ordered, low: int, high: int, k: int, c: int) -> None:
    """Reorder rows low..high so that the first k of them have the k lowest positions of column c."""
    order, near = placed
    left, right, k = low, high - 1, low + k
    while left < right:
        pivot = near[(left + right) // 2, c]
        i, j = left, right
        while i <= j:
            while near[i, c] < pivot:
                i += 1
            while near[j, c] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                for column in range(near.shape[1]):
                    near[i, column], near[j, column] = near[j, column], near[i, column]
                i += 1
                j -= 1
        if k <= j:
            right = j
        elif k >= i:
            left = i
        else:
            return


@kernel
def bound(near: I32, low: int, high: int, box: I32) -> None:
    """Widen the box to hold the rows low..high."""
    for i in range(low, high):
        for c in range(near.shape[1]):
            p = near[i, c]
            if p < box[0, c]:
                box[0, c] = p
            if p > box[1, c]:
                box[1, c] = p


@kernel
def clear(box: I32) -> None:
    for c in range(box.shape[1]):
        box[0, c], box[1, c] = 2**31 - 1, -1


@kernel
def loss(trees: Trees, box: I32) -> float:
    """Loss per row of publishing this box."""
    total = 0.0
    for c in range(box.shape[1]):
        if box[0, c] < box[1, c]:
            total += trees.weight[c] * run_cost(trees, c, box[0, c], box[1, c])
    return total


@kernel
def share(rows: int, part: int, height: int) -> int:
    """How many of a value's rows go to a side that gets `part` of its `height` places."""
    return (2 * part * rows + height) // (2 * height)


@kernel
def widest(trees: Trees, box: I32) -> int:
    """The column that the box covers most of, by its number of values."""
    best, extent = 0, 0.0
    for c in range(box.shape[1]):
        leaves = trees.first_leaf[c + 1] - trees.first_leaf[c]
        width = trees.weight[c] * (box[1, c] - box[0, c]) / max(1, leaves - 1)
        if width > extent:
            best, extent = c, width
    return best


@kernel
def halve(trees: Trees, placed: Ordered, start: I64, rows: I64, height: int, part: int, c: int, boxes: Boxes) -> float:
    """Put the rows of the first `part` places first, by column c, and return the loss of both sides."""
    clear(boxes.here)
    clear(boxes.there)
    here = there = 0
    for v in range(len(start)):
        k = share(rows[v], part, height)
        select(placed, start[v], start[v] + rows[v], k, c)
        bound(placed.near, start[v], start[v] + k, boxes.here)
        bound(placed.near, start[v] + k, start[v] + rows[v], boxes.there)
        here += k
        there += rows[v] - k
    return here * loss(trees, boxes.here) + there * loss(trees, boxes.there)


@kernel
def cut(trees: Trees, placed: Ordered, begin: I64, count: I64, tall: int, part: int, boxes: Boxes) -> None:
    """Put the first `part` places of a bucket first, by the column that loses least (small) or is widest (large)."""
    box, wide = boxes.here, boxes.wide
    clear(box)
    for v in range(len(begin)):
        bound(placed.near, begin[v], begin[v] + count[v], box)
    column = widest(trees, box)
    if tall > WEIGHED:
        for v in range(len(begin)):
            select(placed, begin[v], begin[v] + count[v], share(count[v], part, tall), column)
        return
    for c in range(len(wide)):
        wide[c] = box[0, c] < box[1, c]
    lowest, last = np.inf, -1
    for c in range(len(wide)):
        if wide[c]:
            cost = halve(trees, placed, begin, count, tall, part, c, boxes)
            last = c
            if cost < lowest:
                column, lowest = c, cost
    if last != column:
        halve(trees, placed, begin, count, tall, part, column, boxes)


@kernel
def split(trees: Trees, order: I64, near: I32, start: I64, rows: I64, height: int, group: I32, first: int) -> None:
    """Number the groups of a bucket from `first` on: group[row] for each of its rows.

    The rows of value v are order[start[v]:start[v] + rows[v]], their positions near[start[v]:start[v] + rows[v]].
    """
    values, placed, boxes = len(start), Ordered(order, near), boxes_for(near.shape[1])
    begin, count = np.zeros(values, np.int64), np.zeros(values, np.int64)
    depth = 2 * 64
    starts, counts = np.zeros((depth, values), np.int64), np.zeros((depth, values), np.int64)
    heights, firsts = np.zeros(depth, np.int64), np.zeros(depth, np.int64)
    heights[0], firsts[0] = height, first
    for v in range(values):  # loops, because assigning whole arrays takes long to compile
        starts[0, v], counts[0, v] = start[v], rows[v]
    top = 1
    while top > 0:
        top -= 1
        tall, number = heights[top], firsts[top]
        for v in range(values):
            begin[v], count[v] = starts[top, v], counts[top, v]
        if tall == 1:
            for v in range(values):
                for i in range(begin[v], begin[v] + count[v]):
                    group[order[i]] = number
            continue
        part = tall // 2
        cut(trees, placed, begin, count, tall, part, boxes)
        for v in range(values):
            k = share(count[v], part, tall)
            starts[top, v], counts[top, v] = begin[v], k
            starts[top + 1, v], counts[top + 1, v] = begin[v] + k, count[v] - k
        heights[top], firsts[top] = part, number
        heights[top + 1], firsts[top + 1] = tall - part, number + part
        top += 2


@kernel
def split_all(trees: Trees, order: I64, near: I32, buckets: BucketRows, group: I32, which: I64) -> None:
    """Split the buckets of one thread."""
    for b in which:
        a, z = buckets.first[b], buckets.first[b + 1]
        start, rows = buckets.start[a:z], buckets.rows[a:z]
        split(trees, order, near, start, rows, buckets.height[b], group, buckets.base[b])
