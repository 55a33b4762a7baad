"""Microaggregation: groups of at least k rows that are near each other, each row showing its group's mean.

`mdav` (Domingo-Ferrer and Mateo-Sanz 2002): around the row farthest from the centre, and around the row farthest from
that one, the k nearest rows form groups; and so on with the rest. Time grows with the square of the rows.
`univariate`: for one column, the grouping with the least squared error of all (Hansen and Mukherjee 2003).
`blocks`: rows are first parted at medians of the widest column into blocks of at most 1,024 rows (4k if that is more),
and MDAV runs in each. Groups do not reach across blocks; time grows with the rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I64
from reveil.base.kernels import kernel

Floats = NDArray[np.float64]
BLOCK = 1_024
QUADRATIC = 50_000  # rows up to which "auto" runs MDAV on the whole table


def chosen(algorithm: str, rows: int, columns: int) -> str:
    """What "auto" means for a table of this size."""
    if algorithm != "auto":
        return algorithm
    if columns == 1:
        return "univariate"
    return "mdav" if rows <= QUADRATIC else "blocks"


def group_rows(values: Floats, k: int, algorithm: str) -> I64:
    """The group of each row, numbered from 0; each has k to 2k - 1 rows.

    >>> group_rows(np.array([[1.0], [9.0], [2.0], [8.0], [1.5]]), 2, "univariate").tolist()
    [0, 1, 0, 1, 0]
    """
    spread = values.std(axis=0)
    scaled = np.ascontiguousarray((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
    if algorithm == "univariate":
        order = np.argsort(scaled[:, 0], kind="stable")
        ends = best_cuts(scaled[order, 0], k)
        groups = np.empty(len(values), dtype=np.int64)
        groups[order] = np.searchsorted(ends, np.arange(len(values)), side="right")
        return groups
    blocks = [np.arange(len(values))] if algorithm == "mdav" else _blocks(scaled, max(BLOCK, 4 * k))
    order = np.concatenate(blocks)
    groups = np.empty(len(values), dtype=np.int64)
    starts = np.cumsum([0, *map(len, blocks)])
    groups[order] = mdav_blocks(scaled[order], starts, k)
    return groups


def _blocks(values: Floats, most: int) -> list[I64]:
    """Rows parted at medians of the widest column until no part has more than `most`."""
    done: list[I64] = []
    waiting = [np.arange(len(values))]
    while waiting:
        rows = waiting.pop()
        if len(rows) <= most:
            done.append(rows)
            continue
        inside = values[rows]
        widest = int(np.argmax(inside.max(axis=0) - inside.min(axis=0)))
        middle = len(rows) // 2
        order = np.argpartition(inside[:, widest], middle)
        waiting += [rows[order[:middle]], rows[order[middle:]]]
    return done


def group_means(values: Floats, groups: I64) -> Floats:
    """Each row's values replaced by the means of its group."""
    sizes = np.bincount(groups)
    sums = np.column_stack([np.bincount(groups, weights=column) for column in values.T])
    return np.asarray((sums / sizes[:, None])[groups])


@kernel
def best_cuts(values: Floats, k: int) -> I64:
    """Ends (exclusive) of the runs of k to 2k - 1 sorted values with the least squared error in total."""
    count = len(values)
    sums = np.zeros(count + 1)
    squares = np.zeros(count + 1)
    for i in range(count):
        sums[i + 1] = sums[i] + values[i]
        squares[i + 1] = squares[i] + values[i] * values[i]
    best = np.full(count + 1, np.inf)
    before = np.zeros(count + 1, dtype=np.int64)
    best[0] = 0.0
    for end in range(k, count + 1):
        for start in range(max(0, end - 2 * k + 1), end - k + 1):
            total = sums[end] - sums[start]
            error = best[start] + squares[end] - squares[start] - total * total / (end - start)
            if error < best[end]:
                best[end] = error
                before[end] = start
    ends = np.empty(count // k, dtype=np.int64)
    place, end = len(ends), count
    while end > 0:
        place -= 1
        ends[place] = end
        end = before[end]
    return ends[place:]


@kernel
def mdav_blocks(values: Floats, starts: I64, k: int) -> I64:
    """MDAV in each block of rows (`starts` has one end more than blocks); group numbers run on."""
    count, width = values.shape
    groups = np.empty(count, dtype=np.int64)
    next_group = 0
    nearest = np.empty(k, dtype=np.int64)
    for block in range(len(starts) - 1):
        first, left = starts[block], starts[block + 1] - starts[block]
        points = values[first : first + left].copy()
        who = np.arange(first, first + left)
        distance = np.empty(left)
        centre = np.empty(width)
        while left >= 2 * k:
            centre[:] = 0.0
            for row in range(left):
                for j in range(width):
                    centre[j] += points[row, j]
            centre /= left
            target = points[_measure(points, left, centre, distance)].copy()
            far = _measure(points, left, target, distance)
            opposite = points[far].copy()
            for side in range(2 if left >= 3 * k else 1):
                if side == 1:
                    _measure(points, left, opposite, distance)
                _nearest(distance, left, nearest)
                for i in range(k):  # from the back, so that a row moved into a gap is not one of the chosen
                    row = nearest[i]
                    groups[who[row]] = next_group
                    left -= 1
                    who[row] = who[left]
                    distance[row] = distance[left]
                    points[row] = points[left]
                next_group += 1
        for row in range(left):
            groups[who[row]] = next_group
        next_group += 1
    return groups


@kernel
def _measure(points: Floats, left: int, target: Floats, distance: Floats) -> int:
    """Squared distances of the rows that are left to a target; returns the farthest."""
    farthest, most = 0, -1.0
    for row in range(left):
        total = 0.0
        for j in range(points.shape[1]):
            step = points[row, j] - target[j]
            total += step * step
        distance[row] = total
        if total > most:
            farthest, most = row, total
    return farthest


@kernel
def _nearest(distance: Floats, left: int, nearest: I64) -> None:
    """The rows with the least distances, in falling order of their places."""
    k, held = len(nearest), 0
    for row in range(left):
        if held == k and distance[row] >= distance[nearest[k - 1]]:
            continue
        place = held if held < k else k - 1
        while place > 0 and distance[nearest[place - 1]] > distance[row]:
            nearest[place] = nearest[place - 1]
            place -= 1
        nearest[place] = row
        held = min(held + 1, k)
    for i in range(1, k):  # sorted by place
        row, place = nearest[i], i
        while place > 0 and nearest[place - 1] < row:
            nearest[place] = nearest[place - 1]
            place -= 1
        nearest[place] = row
