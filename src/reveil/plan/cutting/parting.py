"""A table that is too large to be planned at once, parted: each part is then planned as a table of its own.

The top of a tree of cuts is grown from a sample, and every row is sent down it. What the sample says is only a guess:
exact counts of each part's values decide whether it can keep the promise by itself, and parts that cannot are merged
with their siblings until they can. The bounds of parts depend on nothing but the rows, in any order, and a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I32, I64, U64
from reveil.base.kernels import kernel
from reveil.hierarchies.tree import Hierarchy
from reveil.plan.cutting import values

ODD = np.uint64(0x9E3779B97F4A7C15)  # of a multiplicative hash
LEAST_SHARE = 0.05  # of the rows, on the smaller side of a cut
QUANTILES = (0.2, 0.35, 0.5, 0.65, 0.8)  # where free columns may be cut


@dataclass(frozen=True, eq=False)
class Sample:
    """Some of the different combinations of positions, those with the smallest lots, and how many rows have each.

    A combination has its lot wherever it occurs, so that a sample is told by the rows and not by their order.
    """

    lots: U64  # ascending
    positions: I32
    rows: I64
    most: int

    def __add__(self, other: Sample) -> Sample:
        lots = np.concatenate([self.lots, other.lots])
        positions = np.concatenate([self.positions, other.positions])
        return _least(lots, positions, np.concatenate([self.rows, other.rows]), self.most)


def sampled(positions: I32, mixers: U64, most: int) -> Sample:
    """The sample of some rows; `mixers`: a secret number for each column, and one more."""
    lots = np.full(len(positions), mixers[-1], dtype=np.uint64)
    for column, mixer in zip(positions.T, mixers[:-1], strict=True):
        lots = (lots ^ (column.astype(np.uint64) + mixer)) * ODD
        lots ^= lots >> np.uint64(32)
    return _least(lots * ODD, positions, np.ones(len(positions), dtype=np.int64), most)


def _least(lots: U64, positions: I32, rows: I64, most: int) -> Sample:
    different, first, index = np.unique(lots, return_index=True, return_inverse=True)
    counts = np.bincount(index, weights=rows).astype(np.int64)
    return Sample(different[:most], positions[first[:most]], counts[:most], most)


@dataclass(frozen=True, eq=False)
class TopTree:
    """Nodes in order of growth: rows whose position is at most `cut` go left. A leaf has column -1 and its number."""

    column: I32
    cut: I32
    left: I32
    right: I32
    leaf: I32

    @property
    def leaves(self) -> int:
        return int((self.column < 0).sum())


def grow(sample: Sample, quasi: Sequence[Hierarchy], share: float) -> TopTree:
    """Cut the sampled rows until no leaf has more than this share of them, or none can be cut."""
    nodes: list[list[int]] = []
    leaves = 0
    most = share * int(sample.rows.sum())
    waiting = [(np.arange(len(sample.rows)), -1, 0)]  # which of the sample, parent, which child
    while waiting:
        chosen, parent, side = waiting.pop()
        number = len(nodes)
        if parent >= 0:
            nodes[parent][side] = number
        positions, rows = sample.positions[chosen], sample.rows[chosen]
        best = _best_cut(positions, rows, quasi) if rows.sum() > most else None
        if best is None:
            nodes.append([-1, 0, 0, 0, leaves])
            leaves += 1
            continue
        column, cut = best
        nodes.append([column, cut, 0, 0, -1])
        below = positions[:, column] <= cut
        waiting += [(chosen[~below], number, 3), (chosen[below], number, 2)]
    return TopTree(*(np.array(part, dtype=np.int32) for part in zip(*nodes, strict=True)))


def _best_cut(positions: I32, rows: I64, quasi: Sequence[Hierarchy]) -> tuple[int, int] | None:
    """The column and position that lose least, of equal ones the most even; None where no cut leaves enough rows."""
    best, found = (-1.0, 0.0), None
    for column, tree in enumerate(quasi):
        there, up_to = _rising(positions[:, column], rows)
        low, high, n = int(there[0]), int(there[-1]), int(up_to[-1])
        for cut in _candidates(tree, there, up_to):
            last = int(np.searchsorted(there, cut, side="right")) - 1
            below = int(up_to[last])
            if min(below, n - below) < LEAST_SHARE * n:
                continue
            left, right = tree.loss(low, int(there[last])), tree.loss(int(there[last + 1]), high)
            gain = tree.loss(low, high) - (below * left + (n - below) * right) / n
            even = min(below, n - below) / n
            if (round(gain, 12), even) > best:
                best, found = (round(gain, 12), even), (column, cut)
    return found


def _rising(positions: I32, rows: I64) -> tuple[I64, I64]:
    """The positions that occur, and how many rows lie at each or before it."""
    counts = np.bincount(positions, weights=rows).astype(np.int64)
    there = np.flatnonzero(counts)
    return there, np.cumsum(counts[there])


def _candidates(tree: Hierarchy, there: I64, up_to: I64) -> list[int]:
    """Positions after which rows may be cut: some quantiles of a free column, or between children of a node."""
    low, high = int(there[0]), int(there[-1])
    if low == high:
        return []
    if tree.free:
        at = {int(there[np.searchsorted(up_to, share * int(up_to[-1]))]) for share in QUANTILES}
        return sorted({*at, *(place - 1 for place in at), low} & set(range(low, high)))
    below = tree.children[tree.node(low, high)]
    return [int(tree.hi[one]) for one, _ in pairwise(below) if low <= tree.hi[one] < high]


@kernel
def route(column: I32, cut: I32, left: I32, right: I32, leaf: I32, rows: I32) -> I64:
    """The leaf of each row."""
    found = np.empty(len(rows), dtype=np.int64)
    for i in range(len(rows)):
        node = 0
        while column[node] >= 0:
            node = left[node] if rows[i, column[node]] <= cut[node] else right[node]
        found[i] = leaf[node]
    return found


def leaf_of(tree: TopTree, rows: I32) -> I64:
    return route(tree.column, tree.cut, tree.left, tree.right, tree.leaf, rows)


@dataclass(frozen=True, eq=False)
class LeafCounts:
    """Rows and values of leaves: how many rows, and by sensitive column how often each code occurs."""

    rows: I64  # by leaf
    codes: tuple[I64, ...]  # leaves x codes

    def __add__(self, other: LeafCounts) -> LeafCounts:
        return LeafCounts(self.rows + other.rows, tuple(a + b for a, b in zip(self.codes, other.codes, strict=True)))

    def of(self, leaves: Sequence[int]) -> tuple[int, list[I64]]:
        """Rows and values of some leaves together."""
        chosen = list(leaves)
        return int(self.rows[chosen].sum()), [part[chosen].sum(axis=0) for part in self.codes]


def count(leaves: I64, codes: NDArray[np.int32], number: int, widths: Sequence[int]) -> LeafCounts:
    """Exact counts of rows whose leaves are known; `widths`: how many codes each sensitive column has."""
    tables = (
        np.bincount(leaves * width + codes[:, column], minlength=number * width).reshape(number, width)
        for column, width in enumerate(widths)
    )
    return LeafCounts(np.bincount(leaves, minlength=number), tuple(tables))


def settle(tree: TopTree, keeps: Callable[[list[int]], bool]) -> list[list[int]] | None:
    """Leaves taken together so that each part keeps the promise; None where not even the whole table does."""

    def under(node: int) -> list[int]:
        if tree.column[node] < 0:
            return [int(tree.leaf[node])]
        return under(int(tree.left[node])) + under(int(tree.right[node]))

    def visit(node: int) -> list[list[int]] | None:
        if tree.column[node] >= 0:
            left, right = visit(int(tree.left[node])), visit(int(tree.right[node]))
            if left is not None and right is not None:
                return left + right
        everything = under(node)
        return [everything] if keeps(everything) else None

    return visit(0)


def admits_counts(tests: values.Tests, rows: int, codes: Sequence[I64], first: int) -> bool:
    """Whether so many rows with these values may be one group; sensitive columns begin at column `first`."""
    if rows < tests.least:
        return False
    room, work = values.room_for(tests)
    for test in range(len(tests.kind)):
        counts = codes[int(tests.column[test]) - first]
        present = np.flatnonzero(counts)
        room[: len(counts)], work[: len(present)] = counts, present
        if not values.decide(tests, test, room, work, len(present), rows):
            return False
    return True
