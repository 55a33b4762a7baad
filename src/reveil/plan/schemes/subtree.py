"""Subtree and sibling recoding: every value has one generalisation everywhere, but not all on the same level.

A recoding shows one node for each leaf of each column. *Subtree*: a node is replaced by all its children or by none, so
the nodes are a cut through the tree. *Sibling*: one child may leave a node while its siblings stay under it. Both start
from the best full-domain recoding and from everything generalised, and refine while the promise holds.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

import numpy as np

from reveil.base.arrays import I32
from reveil.base.progress import Progress
from reveil.history.history import History
from reveil.plan.plan import Plan
from reveil.plan.schemes.classes import recoding
from reveil.plan.schemes.counted import Checked, RecodingProblem
from reveil.plan.schemes.fulldomain import best_levels
from reveil.plan.schemes.lattice import weights
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded

EFFORT = 1_000_000_000  # rows of tallies that may be counted before refining stops
Nodes = list[I32]  # for each column the node that each leaf shows


def plan(encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress) -> Plan:
    """Group the rows of one table by a recoding of single columns, refined node by node."""
    problem = RecodingProblem.of(encoded, policy, seed)
    lattice, full_domain = best_levels(problem, progress)
    search = _Refinements(problem, policy.method.name == "sibling", progress)
    best = search.refined(lattice.at(full_domain.levels))
    best = min(best, search.refined([np.zeros(len(h), dtype=np.int32) for h in encoded.quasi]), key=lambda r: r.loss)
    while (other := search.elsewhere(best)) is not None:
        best = other
    statistics = {"loss": best.loss, "full-domain loss": full_domain.checked.loss, "recodings tried": search.tried}
    return problem.plan(best.nodes, statistics)


class _Refinements:
    """Refinements from several beginnings. One is left by generalising a column and refining the others first."""

    def __init__(self, problem: RecodingProblem, sibling: bool, progress: Progress) -> None:
        self.problem, self.sibling, self.progress = problem, sibling, progress
        self.tried = 0

    def refined(self, nodes: Nodes, last: int | None = None) -> Refinement:
        """The best refinement of a recoding by either order; column `last` is refined after the others."""
        refinements = []
        for spread in (False, True):
            refinement = Refinement(self.problem, nodes, spread)
            for fixed in ([] if last is None else [last]), []:
                refinement.run(False, fixed, self.progress)
                if self.sibling:  # children leave one by one where their node could not be parted as a whole
                    refinement.run(True, fixed, self.progress)
            self.tried += refinement.tried
            refinements.append(refinement)
        return min(refinements, key=lambda r: r.loss)

    def elsewhere(self, best: Refinement) -> Refinement | None:
        """A better refinement that begins with one column of this one generalised; None where there is none."""
        for c, column in enumerate(best.nodes):
            if column.any() and self.tried * len(self.problem.base) < EFFORT:
                other = self.refined([*best.nodes[:c], np.zeros_like(column), *best.nodes[c + 1 :]], last=c)
                if other.loss < best.loss - 1e-12:
                    return other
        return None


class Refinement:
    """A recoding that is refined where that loses least; what fails once fails later too, and is not tried again."""

    def __init__(self, problem: RecodingProblem, nodes: Nodes, spread: bool) -> None:
        self.problem, self.nodes, self.spread = problem, [column.copy() for column in nodes], spread
        self.weight = weights(problem)
        self.now = self.check(self.nodes)
        self.tried = 0

    def check(self, nodes: Nodes) -> Checked:
        cost = [h.cost[column] for h, column in zip(self.problem.encoded.quasi, nodes, strict=True)]
        return self.problem.check(self.problem.base, recoding(nodes), cost, self.weight)

    @property
    def loss(self) -> float:
        return self.now.loss

    def run(self, single: bool, fixed: Sequence[int], progress: Progress) -> None:
        """Part nodes, the most promising first; `single` lets one child leave at a time, `fixed` columns stay."""
        waiting = [
            (-self.promise(c, move), c, move)
            for c, column in enumerate(self.nodes)
            if c not in fixed
            for node in np.unique(column).tolist()
            for move in self.moves(c, node, single)
        ]
        heapq.heapify(waiting)
        while waiting and self.tried * len(self.problem.base) < EFFORT:
            _, c, (node, children) = heapq.heappop(waiting)
            after = self.parted(c, node, children)
            if (after == self.nodes[c]).all():
                continue
            changed = [*self.nodes[:c], after, *self.nodes[c + 1 :]]
            checked, self.tried = self.check(changed), self.tried + 1
            if checked.loss < self.now.loss:
                self.nodes, self.now = changed, checked
                for child in children:
                    for move in self.moves(c, child, single):
                        heapq.heappush(waiting, (-self.promise(c, move), c, move))
            progress("refining", 1 - len(waiting) / (len(waiting) + self.tried))

    def moves(self, c: int, node: int, single: bool) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Which children can leave a node of column c: all of them together, or each alone."""
        children = self.problem.encoded.quasi[c].children[node]
        if children and not single:
            yield node, children
        elif single:
            yield from ((node, (child,)) for child in children)

    def parted(self, c: int, node: int, children: tuple[int, ...]) -> I32:
        """What the leaves of column c show after these children have left the node."""
        tree, after = self.problem.encoded.quasi[c], self.nodes[c].copy()
        for child in children:
            block = after[tree.lo[child] : tree.hi[child] + 1]
            block[block == node] = child
        return after

    def promise(self, c: int, move: tuple[int, tuple[int, ...]]) -> float:
        """What parting a node saves if nothing is withheld for it, in relation to how far it spreads its rows."""
        tree, share = self.problem.encoded.quasi[c], self.problem.leaves[c]
        node, children = move
        rows = np.array([share[tree.lo[v] : tree.hi[v] + 1].sum() for v in children])
        saved = float(self.weight[c] * rows @ (tree.cost[node] - tree.cost[list(children)]))
        whole = share[tree.lo[node] : tree.hi[node] + 1].sum()
        if not self.spread or whole <= 0:
            return saved
        parts = np.append(rows, whole - rows.sum()) / whole
        entropy = -float(sum(q * np.log(q) for q in parts if q > 1e-12))
        return saved / max(entropy, 1e-9)
