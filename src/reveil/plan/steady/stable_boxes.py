"""Boxes of the same cells in every release: cells with fewer than k people are shown with a neighbour.

Cells are those of the first release. Whoever shares a cell with somebody shares their box, in every release in which
both are shown, and what the box shows: so following people from release to release parts nobody from those who are in
the same cells. Only counts of people decide which cells are merged. A box shows the whole of its cells, from the first
to the last value that anybody shown in this release has there, whoever is in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reveil.base.arrays import I32, I64, Bools
from reveil.base.kernels import kernel
from reveil.plan.cutting.trees import Trees, run_loss
from reveil.plan.steady.cells import FixedCells
from reveil.table.encode import Codes, Encoded

Region = tuple[I32, ...]  # of each column, the positions that somebody has


@dataclass(eq=False)
class _Made:
    """Boxes while they are made: rows of each, and first and last position of its cells."""

    trees: Trees
    low: I32
    high: I32
    rows: list[I64] = field(default_factory=list)

    def add(self, rows: I64, region: Region) -> None:
        self.low[len(self.rows)] = [there[0] for there in region]
        self.high[len(self.rows)] = [there[-1] for there in region]
        self.rows.append(rows)

    def join(self, first: int, rows: I64, region: Region) -> None:
        """Let a few people be in one of the boxes since `first`, where it loses least."""
        low = np.array([there[0] for there in region], dtype=np.int32)
        high = np.array([there[-1] for there in region], dtype=np.int32)
        sizes = np.array([len(box) for box in self.rows[first:]], dtype=np.int64)
        span = slice(first, len(self.rows))
        home = first + cheapest(self.trees, self.low[span], self.high[span], sizes, low, high, len(rows))
        self.low[home] = np.minimum(self.low[home], low)
        self.high[home] = np.maximum(self.high[home], high)
        self.rows[home] = np.concatenate([self.rows[home], rows])


def boxes_of_cells(
    cells: FixedCells, encoded: Encoded, shown: I64, k: int, trees: Trees
) -> tuple[Codes, tuple[Codes, Codes]]:
    """The box of each row (-1 where it is not shown), and the first and last position that each box shows.

    There must be k or more rows to show.
    """
    sides, others, width = cells.sides(encoded.quasi), cells.others, encoded.positions.shape[1]
    room = (len(shown) // k + 1, width)
    made = _Made(trees, np.zeros(room, dtype=np.int32), np.zeros(room, dtype=np.int32))
    whole = tuple(np.unique(encoded.positions[shown, c]) for c in range(width))
    # What is to be cut, the last first; and few people, who join one of the boxes made since once these are made.
    work: list[tuple[int, I64, Region]] = [(0, shown, whole)]
    joining: list[tuple[int, int, I64, Region]] = []  # when so much work is left: first box, rows, region
    while work or joining:
        if joining and joining[-1][0] == len(work):
            _, first, rows, region = joining.pop()
            made.join(first, rows, region)
            continue
        entry, rows, region = work.pop()
        c, inside = sides[entry]
        if c < 0:
            made.add(rows, region)
            continue
        chosen = inside[encoded.positions[rows, c]]
        parts = [
            (entry + 1, rows[chosen], _within(region, c, inside)),
            (int(others[entry]), rows[~chosen], _within(region, c, ~inside)),
        ]
        parts = [part for part in parts if len(part[1])]
        few = [part for part in parts if len(part[1]) < k]
        if len(few) == 2:  # k or more together, and too few on either side
            made.add(rows, region)
            continue
        if few:
            joining.append((len(work), len(made.rows), few[0][1], few[0][2]))
        work += [part for part in parts if len(part[1]) >= k]
    boxes = np.full(encoded.rows, -1, dtype=np.int32)
    for number, members in enumerate(made.rows):
        boxes[members] = number
    return boxes, (made.low[: len(made.rows)], made.high[: len(made.rows)])


def _within(region: Region, c: int, inside: Bools) -> Region:
    """The region with only those positions of column c."""
    return (*region[:c], region[c][inside[region[c]]], *region[c + 1 :])


@kernel
def cheapest(trees: Trees, low: I32, high: I32, sizes: I64, first: I32, last: I32, people: int) -> int:
    """The box that loses least by covering positions first..last of each column besides, for so many more people."""
    best, least = 0, np.inf
    for box in range(len(sizes)):
        more = 0.0
        for c in range(len(first)):
            a, b = low[box, c], high[box, c]
            more += (sizes[box] + people) * run_loss(trees, c, min(a, first[c]), max(b, last[c]))
            more -= sizes[box] * run_loss(trees, c, a, b)
        if more < least:
            best, least = box, more
    return best
