"""One thing for all hierarchies: leaves in an order such that every generalisation is an interval of positions.

A `Hierarchy` is a handful of arrays. Node 0 is the root; a node covers the leaf positions `lo..hi`; parents come before
their children. Numbers and ordered categories are *free*: besides the nodes, any run of neighbouring leaves may be
published. A missing value, where there is one, is a leaf of its own at position 0, a child of the root.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reveil.base.errors import Fault, InputError

ANY = "*"
Positions = NDArray[np.int32]
Path = tuple[str, ...]  # labels from just below the root down to the leaf


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """How one column may be generalised."""

    name: str
    leaves: tuple[Hashable, ...]  # the value, or the label of the bucket of values, at each position
    lo: Positions
    hi: Positions
    parent: Positions
    labels: tuple[str, ...]
    cost: NDArray[np.float64]  # loss of publishing a node: 0 for a single value, 1 for the root
    scale: NDArray[np.float64]  # where each leaf begins between 0 and 1; loss of a free run is the difference
    free: bool
    has_missing: bool
    paths: tuple[Path, ...]  # of each leaf, as stated: chains are not collapsed
    height: Positions  # of each node: steps down to its deepest leaf, as stated
    span: Callable[[Hashable, Hashable], str] | None = None  # label of a free run, from its two ends
    amount: NDArray[np.int64] | None = None  # values that each leaf stands for; None where they lie on a scale

    def __len__(self) -> int:
        return len(self.leaves)

    def __repr__(self) -> str:
        kind = "any interval" if self.free else f"{len(self.labels)} nodes"
        return f"Hierarchy({self.name!r}, {len(self)} leaves, {kind})"

    @cached_property
    def leaf_node(self) -> Positions:
        """The node of each single leaf."""
        single = np.flatnonzero(self.lo == self.hi).astype(np.int32)
        nodes = np.zeros(len(self), dtype=np.int32)
        nodes[self.lo[single]] = single
        return nodes

    @cached_property
    def by_label(self) -> Mapping[str, tuple[int, int]]:
        """The interval of positions that each label stands for.

        A label over a single other one is no node, because nothing would be gained by publishing it; who reads tables
        of others may meet it. One that stands for two intervals tells neither.
        """
        spans = {label: (int(a), int(b)) for label, a, b in zip(self.labels, self.lo, self.hi, strict=True)}
        chains: dict[str, set[tuple[int, int]]] = {}
        for label, run in self._stated_runs():
            chains.setdefault(label, set()).add(run)
        return {label: runs.pop() for label, runs in chains.items() if len(runs) == 1} | spans

    def _stated_runs(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Every label above the leaves with the interval of its leaves, as stated."""
        first: dict[Path, int] = {}
        last: dict[Path, int] = {}
        for position, path in enumerate(self.paths):
            for depth in range(1, len(path)):
                first.setdefault(path[:depth], position)
                last[path[:depth]] = position
        return ((branch[-1], (position, last[branch])) for branch, position in first.items())

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The nodes right below each node."""
        below: list[list[int]] = [[] for _ in self.labels]
        for node in range(1, len(self.labels)):
            below[self.parent[node]].append(node)
        return tuple(map(tuple, below))

    @cached_property
    def levels(self) -> Positions:
        """The node of each leaf at each stated level: level 0 is the leaf itself, the last is the root.

        Levels are counted from the root, so a short branch repeats its leaf on the levels below it.
        """
        depth = max(map(len, self.paths), default=0)
        levels = np.zeros((depth + 1, len(self)), dtype=np.int32)
        for level in range(depth):
            kept, first = depth - level, 0
            shown = [(path[:kept], len(path) <= kept) for path in self.paths]  # a leaf is not the branch of its name
            for last in range(len(self)):  # leaves under one label are neighbours
                if last + 1 == len(self) or shown[last] != shown[last + 1]:
                    levels[level, first : last + 1] = self.node(first, last)
                    first = last + 1
        return levels

    @property
    def known(self) -> tuple[Hashable, ...]:
        """The leaves but the missing value."""
        return self.leaves[int(self.has_missing) :]

    def regrown(self, missing: bool) -> Hierarchy:
        """The same taxonomy with a place for the missing value, or without one."""
        if missing == self.has_missing:
            return self
        own = dict(zip(self.leaves, self.paths, strict=True))
        return grow(self.name, {leaf: own[leaf] for leaf in self.known}, missing=missing)

    def tied(self) -> Hierarchy:
        """The same with nodes only: no run of neighbours may be published."""
        return replace(self, free=False, span=None)

    def flat(self) -> Hierarchy:
        """The same leaves with nothing between a leaf and the root: a value is published, or suppressed as `*`."""
        leaves = [self.labels[node] for node in self.leaf_node]
        places = np.arange(len(self), dtype=np.int32)
        last = np.array([len(self) - 1], dtype=np.int32)
        return Hierarchy(
            name=self.name,
            leaves=self.leaves,
            lo=np.concatenate([places[:1], places]),
            hi=np.concatenate([last, places]),
            parent=np.zeros(len(self) + 1, dtype=np.int32),
            labels=(self.labels[0], *leaves),
            cost=np.concatenate([self.cost[:1], self.cost[self.leaf_node]]),
            scale=self.scale,
            free=False,
            has_missing=self.has_missing,
            paths=tuple((label,) for label in leaves),
            height=np.array([1] + [0] * len(self), dtype=np.int32),
            amount=self.amount,
        )

    def node(self, a: int, b: int) -> int:
        """The smallest node that covers positions a..b."""
        node = int(self.leaf_node[a])
        while self.hi[node] < b or self.lo[node] > a:
            node = int(self.parent[node])
        return node

    def label(self, a: int, b: int) -> str:
        """What is published for positions a..b: the run itself where it is free, otherwise the smallest node."""
        if a != b and self.free and self.span is not None and not (self.has_missing and a == 0):
            return self.span(self.leaves[a], self.leaves[b])
        return self.labels[self.node(a, b)]

    def loss(self, a: int, b: int) -> float:
        """The normalised certainty penalty of publishing `label(a, b)`."""
        if self.free and a != b and not (self.has_missing and a == 0):
            return float(self.scale[b] - self.scale[a])
        return float(self.cost[self.node(a, b)])

    def ancestors(self, position: int) -> Iterator[str]:
        """Labels from the leaf up to the root."""
        node = int(self.leaf_node[position])
        while node:
            yield self.labels[node]
            node = int(self.parent[node])
        yield self.labels[0]


def grow(
    name: str,
    paths: Mapping[Hashable, Path],
    *,
    missing: bool,
    free: bool = False,
    place: Mapping[Hashable, tuple[float, float]] | None = None,
    span: Callable[[Hashable, Hashable], str] | None = None,
) -> Hierarchy:
    """Lay the tree out depth first. `paths` gives each leaf its labels from just below the root to the leaf itself.

    `place` says where on a scale the values of a leaf begin and end, and what its labels stand for if that is more
    than their leaves in this table; without it, leaves are values at equal steps. The
    missing value (None) is nowhere on a scale of numbers; it has a place where it counts as a value like others.
    """
    root = _Branch(ANY)
    if missing:
        root.children[""] = _Branch("", leaf=None, is_leaf=True)
    for leaf, path in paths.items():
        root.add(leaf, path)
    nodes, leaves = _lay_out(root)
    refuse_ambiguous(name, [node.label for node in nodes])
    lo = np.array([node.lo for node in nodes], dtype=np.int32)
    hi = np.array([node.hi for node in nodes], dtype=np.int32)
    begin, end, width = _scales(leaves, missing, place)
    cost = end[hi] - begin[lo]
    for number, node in enumerate(nodes):
        if width and not node.is_leaf and place is not None and node.label in place:
            low, high = place[node.label]
            cost[number] = (high / 4 - low / 4) / width
    if len(leaves) > 1:
        cost[0] = 1.0
    return Hierarchy(
        name=name,
        leaves=tuple(leaves),
        lo=lo,
        hi=hi,
        parent=np.array([node.parent for node in nodes], dtype=np.int32),
        labels=tuple(node.label for node in nodes),
        cost=cost,
        scale=begin,
        free=free,
        has_missing=missing,
        paths=tuple(("",) if leaf is None else paths[leaf] for leaf in leaves),
        height=np.array([node.height for node in nodes], dtype=np.int32),
        span=span,
        amount=np.ones(len(leaves), dtype=np.int64) if place is None else None,
    )


class _Branch:
    """A node while the tree grows."""

    def __init__(self, label: str, leaf: Hashable = None, is_leaf: bool = False) -> None:
        self.label, self.leaf, self.is_leaf = label, leaf, is_leaf
        self.children: dict[str, _Branch] = {}
        self.lo = self.hi = self.parent = self.height = 0

    def add(self, leaf: Hashable, path: Path) -> None:
        branch = self
        branch.height = max(branch.height, len(path))
        for depth, label in enumerate(path[:-1], 1):
            branch = branch.children.setdefault(label, _Branch(label))
            branch.height = max(branch.height, len(path) - depth)
        branch.children[f"\0{path[-1]}"] = _Branch(path[-1], leaf=leaf, is_leaf=True)

    def collapsed(self) -> _Branch:
        """Without chains: a node whose only child covers the same leaves is that child."""
        branch = self
        while len(branch.children) == 1 and not branch.is_leaf:
            branch = next(iter(branch.children.values()))
        return branch


def _lay_out(root: _Branch) -> tuple[list[_Branch], list[Hashable]]:
    nodes: list[_Branch] = []
    leaves: list[Hashable] = []

    def visit(branch: _Branch, parent: int) -> None:
        number = len(nodes)
        nodes.append(branch)
        branch.parent, branch.lo = parent, len(leaves)
        if branch.is_leaf:
            leaves.append(branch.leaf)
        for child in branch.children.values():
            visit(child.collapsed(), number)
        branch.hi = len(leaves) - 1

    visit(root, 0)
    return nodes, leaves


def refuse_ambiguous(name: str, labels: Iterable[str]) -> None:
    """A published label must say which values it stands for; two nodes of the same name would not."""
    twice = [label for label, count in Counter(labels).items() if count > 1]
    if twice:
        shown = ", ".join(repr(label) for label in twice[:5])
        raise InputError(
            Fault(
                "R304",
                f"hierarchy of column {name!r}",
                f"{len(twice)} labels stand for two different sets of values: {shown}",
                "give each group of values a name of its own",
            )
        )


def _scales(
    leaves: Sequence[Hashable], missing: bool, place: Mapping[Hashable, tuple[float, float]] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Where each leaf begins and ends, from 0 for the first known value to 1 for the last; a quarter of the width."""
    if place is None:
        steps = np.arange(len(leaves), dtype=np.float64) / max(1, len(leaves) - 1)
        return steps, steps, 0.0
    # A quarter of each number, so that the width between the largest floats stays finite.
    nowhere = missing and None not in place
    known = np.array([place[leaf] for leaf in leaves[nowhere:]], dtype=np.float64).reshape(-1, 2) / 4
    width = float(known.max() - known.min()) if len(known) else 0.0
    known = (known - known.min()) / width if width > 0 else np.zeros_like(known)
    if nowhere:
        known = np.vstack([[0.0, 0.0], known])
    return known[:, 0].copy(), known[:, 1].copy(), width
