"""Cell recoding (local): instances of a value may be generalised differently from row to row.

Groups begin as Mondrian leaves them. Then, again and again, they are numbered in the order of some columns, so that
groups that are alike stand next to each other; groups are dissolved into their neighbours, single rows move or are
exchanged, and groups that have become large are cut. Every step lowers the loss and keeps every condition.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I32
from reveil.base.lots import generator
from reveil.base.progress import Progress
from reveil.history.history import History
from reveil.plan.cutting import admit, cuts, mondrian
from reveil.plan.cutting.boxes import boxes
from reveil.plan.cutting.candidates import scratch_for
from reveil.plan.cutting.repair import Groups
from reveil.plan.cutting.trees import Trees, lay_end_to_end
from reveil.plan.cutting.values import Rows, Tests, admits, room_for
from reveil.plan.plan import Plan
from reveil.plan.schemes import regroup
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded

PASSES = 30  # at most; fewer for large tables
QUIET = 4  # passes with next to no gain, after which there are no more
LEAST_GAIN = 0.0005  # of the loss
SMALL = 300  # rows of a table that is also built from below
BLOCKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
WORK = 60_000_000  # comparisons of a row with a group in one pass, roughly


def plan(encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress) -> Plan:
    """Group the rows of one table, however they lie."""
    first = mondrian.plan(encoded, history, policy, seed=seed, progress=progress)
    kept = np.flatnonzero(first.groups >= 0)
    work = _CellSearch(encoded, policy, admit.tests(encoded, policy, kept), kept, seed)
    before = work.loss(first.groups[kept])
    improved = work.improved(first.groups[kept], progress)
    if len(kept) <= SMALL:
        improved = min(improved, work.improved(work.joined(), progress), key=lambda pair: pair[0])
    groups = np.full(encoded.rows, -1, dtype=np.int32)
    groups[kept] = improved[1]
    statistics = {"loss saved by regrouping": 0.0 if before == 0 else 1 - improved[0] / before}
    return Plan(groups=groups, method="cell", reasons=first.reasons, statistics=statistics)


class _CellSearch:
    """The rows and their groups between passes."""

    def __init__(self, encoded: Encoded, policy: Policy, tests: Tests, kept: NDArray[np.int64], seed: int) -> None:
        self.trees: Trees = lay_end_to_end(encoded, policy)
        self.tests, self.rng = tests, generator(seed, 1)
        self.rows: Rows = mondrian.rows_of(encoded)[0][kept]
        self.positions = encoded.positions[kept]
        self.window = int(np.clip(WORK // max(1, len(kept)), 16, 400))
        self.passes = int(np.clip(1_000_000 // max(1, len(kept)), 4, PASSES))

    def loss(self, groups: I32) -> float:
        """The loss of all rows together, as the kernels count it."""
        return float(np.sum(self._state(groups).cost * np.bincount(groups)))

    def improved(self, groups: I32, progress: Progress) -> tuple[float, I32]:
        """Better groups of the same rows, and their loss."""
        loss, quiet = self.loss(groups), 0
        for number in range(self.passes):
            if quiet == QUIET or loss == 0:
                break
            groups = self._pass(groups)
            now = self.loss(groups)
            quiet = quiet + 1 if now > loss * (1 - LEAST_GAIN) else 0
            loss = now
            progress("regrouping", number / self.passes)
        return loss, groups

    def _pass(self, groups: I32) -> I32:
        """Number the groups anew, dissolve, exchange, cut."""
        low, high = boxes(groups, self.positions, int(groups.max()) + 1)
        columns = self.rng.permutation(low.shape[1])
        rank = np.empty(len(low), dtype=np.int32)
        rank[np.lexsort([(low + high)[:, c] for c in columns])] = np.arange(len(low), dtype=np.int32)
        state = self._state(rank[groups])
        homes = np.empty(regroup.LARGEST, dtype=np.int32)
        narrow = max(8, self.window // 4)
        regroup.improve(self.trees, self.tests, self.rows, self.window, narrow, state, homes)
        return self._cut_again(state.of, int(self.rng.choice(BLOCKS)))

    def joined(self) -> I32:
        """Groups from below: rows that are alike; then, again and again, the smallest that fails joins the nearest."""
        _, alike = np.unique(self.positions, axis=0, return_inverse=True)
        members = []
        for group in range(int(alike.max()) + 1):  # no more rows than needed, so that some are left to join others
            mine = np.flatnonzero(alike.ravel() == group)
            members += [mine[i : i + self.tests.least] for i in range(0, len(mine), self.tests.least)]
        low = np.array([self.positions[rows[0]] for rows in members], dtype=np.int32)
        high = low.copy()
        cost = np.zeros(len(members))
        while (failing := [g for g in range(len(members)) if not self._admits(members[g])]) and len(members) > 1:
            g = min(failing, key=lambda group: len(members[group]))
            after, sizes = np.empty(len(members)), np.array([len(rows) for rows in members])
            regroup.join_losses(self.trees, low, high, g, after)
            added = after * (sizes + sizes[g]) - cost * sizes - cost[g] * sizes[g]
            added[g] = np.inf
            h = int(added.argmin())
            members[h] = np.concatenate([members[h], members[g]])
            low[h], high[h], cost[h] = np.minimum(low[h], low[g]), np.maximum(high[h], high[g]), after[h]
            del members[g]
            low, high, cost = np.delete(low, g, axis=0), np.delete(high, g, axis=0), np.delete(cost, g)
        groups = np.empty(len(self.rows), dtype=np.int32)
        for group, rows in enumerate(members):
            groups[rows] = group
        return groups

    def _admits(self, members: NDArray[np.int64]) -> bool:
        count, work = room_for(self.tests)
        order = np.zeros(len(members), dtype=np.int32)
        return bool(admits(self.tests, self.rows[members], order, 0, len(members), count, work))

    def _cut_again(self, groups: I32, block: int) -> I32:
        """Throw every `block` neighbouring groups together and cut them again, where that lowers the loss."""
        order = np.argsort(groups, kind="stable").astype(np.int32)
        old = np.flatnonzero(np.append(True, np.diff(groups[order]) > 0)).astype(np.int32)
        blocks = np.append(old[::block], len(order))
        rows, again = self.rows[order], order.copy()
        how = cuts.Cutting(self.trees, self.tests, scratch_for(self.trees, self.tests, rows), True)
        room, pieces, cut = cuts.boundaries_for(len(order)), [], rows.copy()
        for s, t in pairwise(blocks.tolist()):
            count = cuts.split_into(how, cut, again, s, t, 0, 0, room)
            pieces.append(room.starts[:count].copy())
        new = np.concatenate(pieces)
        before, after = self._losses(rows, old, blocks), self._losses(cut, new, blocks)
        better = after < before - 1e-9
        mine = np.repeat(better, np.diff(blocks))
        begin = np.sort(np.concatenate([old[~mine[old]], new[mine[new]]]))
        groups = np.empty(len(order), dtype=np.int32)
        sizes = np.diff(np.append(begin, len(order)))
        groups[np.where(mine, again, order)] = np.repeat(np.arange(len(begin), dtype=np.int32), sizes)
        return groups

    def _losses(self, rows: Rows, starts: I32, blocks: NDArray[np.int64]) -> NDArray[np.float64]:
        """The loss of each block of groups."""
        loss, seen = np.empty(len(starts)), np.zeros(max(map(int, self.trees.first_leaf)) + 1, dtype=np.int32)
        regroup.losses(self.trees, rows, np.append(starts, len(rows)).astype(np.int32), seen, loss)
        return np.add.reduceat(loss, np.searchsorted(starts, blocks[:-1]))

    def _state(self, groups: I32) -> Groups:
        rows, count, columns, n = self.rows, int(groups.max()) + 1, len(self.trees.form), len(groups)
        tally, touched = room_for(self.tests)
        box = [np.empty((count, columns), dtype=rows.dtype) for _ in range(4)]
        state = Groups(
            of=groups.astype(np.int32),
            head=np.full(count, -1, dtype=np.int32),
            after=np.full(n, -1, dtype=np.int32),
            size=np.bincount(groups, minlength=count).astype(np.int32),
            cost=np.zeros(count),
            low=box[0],
            high=box[1],
            low_next=box[2],
            high_next=box[3],
            members=np.empty((n, rows.shape[1]), dtype=rows.dtype),
            numbers=np.zeros(n, dtype=np.int32),
            tally=tally,
            touched=touched,
        )
        regroup.link(self.trees, rows, state)
        return state
