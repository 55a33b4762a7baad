"""Cell recoding (local): instances of a value may be generalised differently from row to row.

Groups begin as Mondrian leaves them. Then, again and again, they are numbered in the order of some columns, so that
groups that are alike stand next to each other; groups are dissolved into their neighbours, single rows move or are
exchanged, and groups that have become large are cut. Every step lowers the loss and keeps every condition.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from os import cpu_count

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

PASSES = 60  # at most; fewer for large tables
ROWS = 2_000_000  # that all passes together look at, roughly
QUIET = 10  # passes that together gain next to nothing, after which there are no more
LEAST_GAIN = 0.001  # of the loss
PART = 4096  # rows that one thread improves by themselves in a pass
SMALL = 300  # rows of a table that is also built from below
BLOCKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
WORK = 2_000_000  # comparisons of a row with a group in one pass, roughly


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
        self.passes = int(np.clip(ROWS // max(1, len(kept)), 8, PASSES))
        self.parts = max(1, len(kept) // PART)

    def loss(self, groups: I32) -> float:
        """The loss of all rows together, as the kernels count it."""
        return float(np.sum(self._state(self.rows, groups).cost * np.bincount(groups)))

    def improved(self, groups: I32, progress: Progress) -> tuple[float, I32]:
        """Better groups of the same rows, and their loss."""
        losses = [self.loss(groups)]
        with ThreadPoolExecutor(cpu_count() or 1) as threads:
            for number in range(self.passes):
                if losses[-1] == 0 or (len(losses) > QUIET and losses[-1] > losses[-QUIET] * (1 - LEAST_GAIN)):
                    break
                loss, groups = self._pass(groups, threads)
                losses.append(loss)
                progress("regrouping", number / self.passes)
        return losses[-1], groups

    def _pass(self, groups: I32, threads: ThreadPoolExecutor) -> tuple[float, I32]:
        """Number the groups anew, and improve parts of them; how many parts there are does not depend on threads."""
        low, high = boxes(groups, self.positions, int(groups.max()) + 1)
        columns = self.rng.permutation(low.shape[1])
        rank = np.empty(len(low), dtype=np.int32)
        rank[np.lexsort([(low + high)[:, c] for c in columns])] = np.arange(len(low), dtype=np.int32)
        order = np.argsort(rank[groups], kind="stable")
        begins = np.flatnonzero(np.diff(rank[groups][order], prepend=-1))
        first = [*begins[:: -(-len(begins) // self.parts)].tolist(), len(order)]
        block = int(self.rng.choice(BLOCKS))
        jobs = [threads.submit(self._part, order[s:t], rank[groups[order[s:t]]], block) for s, t in pairwise(first)]
        loss, count, better = 0.0, 0, np.empty(len(order), dtype=np.int32)
        for (s, t), job in zip(pairwise(first), jobs, strict=True):
            part, mine = job.result()
            better[order[s:t]] = mine + count
            loss, count = loss + part, count + int(mine.max()) + 1
        return loss, better

    def _part(self, numbers: NDArray[np.int64], groups: I32, block: int) -> tuple[float, I32]:
        """Dissolve, exchange and cut the groups of some rows; the loss of these, and the group of each row."""
        rows = self.rows[numbers]
        state = self._state(rows, groups - groups.min())
        narrow = max(8, self.window // 4)
        room = regroup.Room(
            homes=np.empty(regroup.LARGEST, dtype=np.int32),
            rows=np.empty_like(rows),
            cut=np.empty_like(rows),
            order=np.empty(len(rows), dtype=np.int32),
            again=np.empty(len(rows), dtype=np.int32),
            starts=np.empty(len(rows) + 1, dtype=np.int32),
            pieces=cuts.boundaries_for(len(rows)),
        )
        how = cuts.Cutting(self.trees, self.tests, scratch_for(self.trees, self.tests, rows), True)
        return float(regroup.better(how, rows, self.window, narrow, block, state, room)), state.of

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

    def _state(self, rows: Rows, groups: I32) -> Groups:
        count, columns, n = int(groups.max()) + 1, len(self.trees.form), len(groups)
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
