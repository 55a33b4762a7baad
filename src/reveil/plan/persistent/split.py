"""Split: part a bucket into groups with one row of each value, near rows together. The hot loops.

A bucket has `height` places for each of its values; where it has fewer rows of a value, the others are counterfeits. A
cut sends the same number of places of every value to each side. Counterfeits have no position: they are shared out
evenly, and take the box of the group they end in.
"""
# mypy: allow-untyped-decorators

from __future__ import annotations

import numpy as np

from reveil.base.kernels import kernel
from reveil.plan.cutting.trees import run_cost

WEIGHED = 4  # up to this height, every column is tried and weighed by the loss of all columns


@kernel
def select(order, near, low, high, k, c):  # type: ignore[no-untyped-def]
    """Reorder rows low..high so that the first k of them have the k lowest positions of column c.

    `near[i]` are the positions of row order[i], moved along with it so that they are read in sequence.
    """
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
def bound(near, low, high, box):  # type: ignore[no-untyped-def]
    """Widen the box to hold the rows low..high."""
    for i in range(low, high):
        for c in range(near.shape[1]):
            p = near[i, c]
            if p < box[0, c]:
                box[0, c] = p
            if p > box[1, c]:
                box[1, c] = p


@kernel
def clear(box):  # type: ignore[no-untyped-def]
    for c in range(box.shape[1]):
        box[0, c], box[1, c] = 2**31 - 1, -1


@kernel
def loss(trees, box):  # type: ignore[no-untyped-def]
    """Loss per row of publishing this box."""
    total = 0.0
    for c in range(box.shape[1]):
        if box[0, c] < box[1, c]:
            total += trees.weight[c] * run_cost(trees, c, box[0, c], box[1, c])
    return total


@kernel
def share(rows, part, height):  # type: ignore[no-untyped-def]
    """How many of a value's rows go to a side that gets `part` of its `height` places."""
    return (2 * part * rows + height) // (2 * height)


@kernel
def widest(trees, box):  # type: ignore[no-untyped-def]
    """The column that the box covers most of, by its number of values."""
    best, extent = 0, 0.0
    for c in range(box.shape[1]):
        leaves = trees.first_leaf[c + 1] - trees.first_leaf[c]
        width = trees.weight[c] * (box[1, c] - box[0, c]) / max(1, leaves - 1)
        if width > extent:
            best, extent = c, width
    return best


@kernel
def halve(trees, order, near, start, rows, height, part, c, box, other):  # type: ignore[no-untyped-def]
    """Put the rows of the first `part` places first, by column c, and return the loss of both sides."""
    clear(box)
    clear(other)
    here = there = 0
    for v in range(len(start)):
        k = share(rows[v], part, height)
        select(order, near, start[v], start[v] + rows[v], k, c)
        bound(near, start[v], start[v] + k, box)
        bound(near, start[v] + k, start[v] + rows[v], other)
        here += k
        there += rows[v] - k
    return here * loss(trees, box) + there * loss(trees, other)


@kernel
def cut(trees, order, near, begin, count, tall, part, box, other, wide):  # type: ignore[no-untyped-def]
    """Put the first `part` places of a bucket first, by the column that loses least (small) or is widest (large)."""
    clear(box)
    for v in range(len(begin)):
        bound(near, begin[v], begin[v] + count[v], box)
    column = widest(trees, box)
    if tall > WEIGHED:
        for v in range(len(begin)):
            select(order, near, begin[v], begin[v] + count[v], share(count[v], part, tall), column)
        return
    for c in range(len(wide)):
        wide[c] = box[0, c] < box[1, c]
    lowest, last = np.inf, -1
    for c in range(len(wide)):
        if wide[c]:
            cost = halve(trees, order, near, begin, count, tall, part, c, box, other)
            last = c
            if cost < lowest:
                column, lowest = c, cost
    if last != column:
        halve(trees, order, near, begin, count, tall, part, column, box, other)


@kernel
def split(trees, order, near, start, rows, height, group, first):  # type: ignore[no-untyped-def]
    """Number the groups of a bucket from `first` on: group[row] for each of its rows.

    The rows of value v are order[start[v]:start[v] + rows[v]], their positions near[start[v]:start[v] + rows[v]].
    """
    values, columns = len(start), near.shape[1]
    box, other = np.zeros((2, columns), np.int32), np.zeros((2, columns), np.int32)
    wide, begin, count = np.zeros(columns, np.bool_), np.zeros(values, np.int64), np.zeros(values, np.int64)
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
        cut(trees, order, near, begin, count, tall, part, box, other, wide)
        for v in range(values):
            k = share(count[v], part, tall)
            starts[top, v], counts[top, v] = begin[v], k
            starts[top + 1, v], counts[top + 1, v] = begin[v] + k, count[v] - k
        heights[top], firsts[top] = part, number
        heights[top + 1], firsts[top + 1] = tall - part, number + part
        top += 2


@kernel
def split_all(trees, order, near, bucket_first, start, rows, height, group, first, which):  # type: ignore[no-untyped-def]
    """Split the buckets of one thread."""
    for b in which:
        a, z = bucket_first[b], bucket_first[b + 1]
        split(trees, order, near, start[a:z], rows[a:z], height[b], group, first[b])
