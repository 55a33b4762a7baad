"""The lattice of full-domain recodings: one level per column, finer below, coarser above.

A node is a tuple of levels. Its loss without suppression follows from the columns one by one, so the bound of every
node is known before any is looked at, as an array with one axis per column. The finer nodes of a node are then a
block of that array.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from reveil.base.arrays import F64, I32
from reveil.base.errors import Fault, InputError
from reveil.hierarchies.tree import Hierarchy
from reveil.plan.schemes.classes import Recoding, Tally, recoding
from reveil.plan.schemes.counted import Checked, RecodingProblem
from reveil.policy.policy import Policy

Levels = tuple[int, ...]
ROUNDING = 1e-12
TALLIES = 64  # how many counted nodes are kept to count coarser ones from


class Lattice:
    """All full-domain recodings of some rows, each checked on demand. Columns not in `use` are fully generalised."""

    def __init__(self, problem: RecodingProblem, use: Sequence[int] | None = None) -> None:
        self.problem, quasi, method = problem, problem.encoded.quasi, problem.policy.method
        used = range(len(quasi)) if use is None else use
        allowed = [levels_within(h, problem.policy) for h in quasi]
        self.lowest = tuple(lowest for lowest, _ in allowed)
        self.nodes = [nodes[0 if c in used else -1 :] for c, (_, nodes) in enumerate(allowed)]
        self.shape = tuple(len(nodes) for nodes in self.nodes)
        self.weight = weights(problem) * [c in used for c in range(len(quasi))]
        self.cost = [
            level_costs(h, n, method.loss, share) for h, n, share in zip(quasi, self.nodes, problem.leaves, strict=True)
        ]
        self.means = [cost @ share for cost, share in zip(self.cost, problem.leaves, strict=True)]
        self.pieces = [[recoding([level]) for level in nodes] for nodes in self.nodes]
        self.tallies: list[tuple[Levels, Tally]] = [((0,) * len(quasi), problem.base)]
        self.checks = self.effort = 0

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def top(self) -> Levels:
        return tuple(size - 1 for size in self.shape)

    def bounds(self, withheld: Any = 0, block: Levels | None = None) -> F64:
        """The least loss of each node up to `block`, if that many rows are withheld at least."""
        block, columns = self.top if block is None else block, []
        if self.problem.of_classes:
            return self._bounds_of_classes(withheld, block)
        for c, (mean, cost) in enumerate(zip(self.means, self.cost, strict=True)):
            axis = [1] * len(self.shape)
            axis[c] = block[c] + 1
            upper = cost.max(axis=1)[: block[c] + 1].reshape(axis)
            more = withheld * (1 - upper) / max(1, len(self.problem.rows))
            columns.append(mean[: block[c] + 1].reshape(axis) + more)
        total = self.problem.total(columns, self.weight)
        return np.array(np.broadcast_to(total, tuple(level + 1 for level in block)))

    def _bounds_of_classes(self, withheld: Any, block: Levels) -> F64:
        """No node has more classes than combinations of its labels, and classes of one size are told apart best."""
        combinations = np.ones(tuple(level + 1 for level in block))
        for c, nodes in enumerate(self.nodes):
            axis = [1] * len(self.shape)
            axis[c] = block[c] + 1
            combinations = combinations * np.array([len(np.unique(level)) for level in nodes[: block[c] + 1]]).reshape(
                axis
            )
        if self.problem.policy.method.loss == "average-class":
            return 1 / combinations
        gone = withheld / max(1, len(self.problem.rows))
        return gone + (1 - gone) ** 2 / combinations

    @property
    def bottom_bound(self) -> float:
        """The least that any node can lose."""
        if self.problem.of_classes:
            return float(self.bounds().min())
        return float(self.problem.total([mean[0] for mean in self.means], self.weight))

    def check(self, levels: Levels) -> Checked:
        """Count the classes of a node, from the smallest tally that is fine enough, and judge them."""
        source = min((t for at, t in self.tallies if all(a <= b for a, b in zip(at, levels, strict=True))), key=len)
        chosen = [self.pieces[c][level] for c, level in enumerate(levels)]
        how = Recoding(tuple(p.label[0] for p in chosen), tuple(p.stand_in[0] for p in chosen))
        counted = self.problem.tally(source.rows, source.weight, how)
        self.checks, self.effort = self.checks + 1, self.effort + len(source)
        if 2 * len(counted) <= len(source) and len(self.tallies) < TALLIES:
            self.tallies.append((levels, counted))
        cost = [self.cost[c][level] for c, level in enumerate(levels)]
        return self.problem.check(counted, how, cost, self.weight)

    def at(self, levels: Levels) -> list[I32]:
        """The node of each leaf of each column."""
        return [self.nodes[c][level] for c, level in enumerate(levels)]


def levels_within(hierarchy: Hierarchy, policy: Policy) -> tuple[int, I32]:
    """The lowest level that the policy allows, and the nodes of each leaf on that and all higher ones it allows."""
    spec, levels = policy.columns[hierarchy.name], hierarchy.levels
    lowest, highest = spec.lowest or 0, len(levels) - 1 if spec.highest is None else spec.highest
    if max(lowest, highest) >= len(levels):
        message = f"allows levels {lowest} to {highest}, and its hierarchy has 0 to {len(levels) - 1}"
        raise InputError(Fault("R916", f"column {hierarchy.name!r}", message, "correct lowest and highest"))
    return lowest, levels[lowest : highest + 1]


def weights(problem: RecodingProblem) -> F64:
    """How much each column counts; together 1. Where all are 0, nothing that is lost counts."""
    given = np.array([problem.policy.columns[h.name].weight for h in problem.encoded.quasi])
    return given / (given.sum() or 1.0)


def level_costs(hierarchy: Hierarchy, nodes: I32, loss: str, share: F64) -> F64:
    """What each leaf loses at each level, 1 at the root; `share` of the rows have it."""
    if loss == "entropy":
        return np.array([_hidden(level, share) for level in nodes])
    if loss == "precision":
        steps = np.arange(len(nodes)) / max(1, len(nodes) - 1)
        return np.repeat(steps, len(hierarchy)).reshape(len(nodes), -1)
    return hierarchy.cost[nodes]


def _hidden(node: I32, share: F64) -> F64:
    """The entropy of the values behind the node of each leaf, over that of the column; never above 1, as for `*`."""
    logs = share * np.log2(np.where(share > 0, share, 1.0))
    rows, sums = np.bincount(node, share), np.bincount(node, logs)
    whole = -float(logs.sum())
    if whole <= ROUNDING:
        return np.zeros(len(node))
    inside = np.log2(np.where(rows > 0, rows, 1.0)) - np.divide(sums, rows, out=np.zeros(len(rows)), where=rows > 0)
    hidden: F64 = np.clip(inside / whole, 0.0, 1.0)[node]
    return hidden
