"""Multidimensional recoding: cut the table in two, again and again, where that loses least.

A cut parts the rows under one node of a hierarchy (or one run of a free column) from the others, weighed by the loss of
the form that will be published. *Strict* cuts send all rows of a value to the same side. *Relaxed* cuts may lend a few
near rows to a side that is too small, and move single rows between neighbouring groups afterwards: less loss, and the
published regions may overlap. Rows are withheld, up to the policy's limit, where that loses less than keeping them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import floor
from os import cpu_count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.encode import Encoded
from reveil.errors import InfeasibleError
from reveil.hierarchies.tree import Hierarchy
from reveil.history import History
from reveil.plan import admit, infeasible, kernels
from reveil.plan.contract import Plan, Progress
from reveil.policy import Policy

PARTS = 64  # independent segments that a large table is first cut into


def plan(encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress) -> Plan:
    """Group the rows of one table under its single-release conditions."""
    tests = admit.tests(encoded, policy)
    trees = lay_end_to_end(encoded, policy)
    rows, order = _rows(encoded)
    kept, withheld = _admissible(rows, order, tests, encoded, policy, seed)
    strict = policy.method.cuts == "strict" or not admit.monotone(policy.guarantee) or encoded.population is not None
    allowance = max(0, floor(policy.method.suppress * encoded.rows) - withheld)
    work = _Work(trees, tests, kept, not strict, allowance)
    work.run(progress)
    return _collect(work, encoded, withheld, strict)


def lay_end_to_end(encoded: Encoded, policy: Policy) -> kernels.Trees:
    """All hierarchies as one set of arrays."""
    quasi = encoded.quasi
    return kernels.Trees(
        first=np.cumsum([0, *(len(h.labels) for h in quasi)], dtype=np.int64),
        lo=np.concatenate([h.lo for h in quasi]),
        hi=np.concatenate([h.hi for h in quasi]),
        parent=np.concatenate([h.parent for h in quasi]),
        cost=np.concatenate([_cost_above_leaves(h) for h in quasi]),
        first_leaf=np.cumsum([0, *(len(h) for h in quasi)], dtype=np.int64),
        leaf_node=np.concatenate([h.leaf_node for h in quasi]),
        scale=np.concatenate([h.scale for h in quasi]),
        free=np.array([h.free for h in quasi]),
        missing=np.array([h.has_missing for h in quasi]),
        sets=policy.method.recode == "sets",
        weight=np.array([policy.columns[h.name].weight for h in quasi]),
    )


def _cost_above_leaves(hierarchy: Hierarchy) -> NDArray[np.float64]:
    """What a node loses beyond its leaves: the loss of a leaf itself (a bucket of values) is not for planning to avoid."""
    return np.where(hierarchy.lo == hierarchy.hi, 0.0, hierarchy.cost)


Rows = tuple[NDArray[np.int32], NDArray[np.int64]]


def _rows(encoded: Encoded) -> Rows:
    """Positions and sensitive codes side by side. People of the population who are not rows have the number -1 - i."""
    rows = np.hstack([encoded.positions, encoded.codes])
    order = np.arange(encoded.rows, dtype=np.int64)
    if encoded.population is None:
        return rows, order
    others = np.full((len(encoded.population), encoded.codes.shape[1]), -1, dtype=np.int32)
    rows = np.vstack([rows, np.hstack([encoded.population, others])])
    return rows, np.concatenate([order, -1 - np.arange(len(encoded.population), dtype=np.int64)])


def _admitted(tests: kernels.Tests, rows: NDArray[np.int32], order: NDArray[np.int64]) -> bool:
    widest = max([1, *np.diff(tests.first_code)]) + 1
    count, work = np.zeros(widest, dtype=np.int64), np.zeros(widest, dtype=np.int64)
    return bool(kernels.admits(tests, rows, order, 0, len(rows), count, work))


def _admissible(
    rows: NDArray[np.int32], order: NDArray[np.int64], tests: kernels.Tests, encoded: Encoded, policy: Policy, seed: int
) -> tuple[Rows, int]:
    """The rows that can be published at all: everything if the whole table is admitted as one group.

    If it is not, no way of cutting it is; then rows of too frequent values are withheld, or the table is refused.
    """
    if _admitted(tests, rows, order):
        return (rows, order), 0
    faults = infeasible.faults(encoded, policy)
    if policy.method.infeasible == "withhold":
        keep = infeasible.without_excess(tests, rows, np.random.default_rng(seed))
        if keep.any() and _admitted(tests, rows[keep], order[keep]):
            return (rows[keep], order[keep]), int((~keep).sum())
    raise InfeasibleError(faults)


class _Work:
    """One run of the kernels over a table: first cut into parts, then each part on its own, in threads."""

    def __init__(self, trees: kernels.Trees, tests: kernels.Tests, rows: Rows, relaxed: bool, allowance: int) -> None:
        self.trees, self.tests, self.relaxed, self.allowance = trees, tests, relaxed, allowance
        self.rows, self.order = rows
        n = len(self.order)
        self.group = np.zeros(n, dtype=np.int64)  # within its part
        self.part = np.zeros(n, dtype=np.int64)
        self.window = int(np.clip(2_000_000 // max(1, n), 8, 64)) if relaxed and not trees.sets else 0
        self.moved = 0

    def run(self, progress: Progress) -> None:
        n = len(self.order)
        progress(compiling() or "planning", 0.0)
        starts, dropped = self._split(0, n, max(n // PARTS, 4096), self.allowance)
        left = self.allowance - int(np.diff([*starts, n])[dropped == 1].sum())
        parts = list(zip(starts, [*starts[1:], n], dropped, strict=True))
        with ThreadPoolExecutor(cpu_count() or 1) as threads:
            jobs = [threads.submit(self._part, number, part, left) for number, part in enumerate(parts)]
            for done, job in enumerate(jobs, 1):
                job.result()
                progress("planning", done / len(jobs))

    def _split(self, s: int, t: int, stop: int, allowance: int) -> tuple[NDArray[Any], NDArray[Any]]:
        starts, dropped = kernels.split(
            self.trees, self.tests, self.rows, self.order, s, t, stop, self.relaxed, allowance
        )
        by_place = np.argsort(starts)
        return starts[by_place], dropped[by_place]

    def _part(self, number: int, part: tuple[int, int, int], allowance: int) -> None:
        s, t, dropped = part
        self.part[s:t] = number
        if dropped:
            self.group[s:t] = -1
            return
        share = allowance * (t - s) // len(self.order)
        starts, gone = self._split(s, t, 0, share)
        bounds = np.append(starts, t)
        group = np.repeat(np.arange(len(starts)), np.diff(bounds))
        if self.window and len(starts) > 1:
            group, moved = kernels.repair(self.trees, self.tests, self.rows, self.order, bounds, gone, self.window)
            self.moved += moved
        self.group[s:t] = np.where(gone[group] == 1, -1, group)


def compiling() -> str | None:
    """What to tell people while Numba compiles, or None when the compiled code is already there."""
    cached = Path(kernels.split._cache.cache_path).glob("kernels.split-*.nbi")
    newest = max((file.stat().st_mtime for file in cached), default=0.0)
    if kernels.split.signatures or newest >= Path(kernels.__file__).stat().st_mtime:
        return None
    return "compiling the planner (first run after installation only, about a minute)"


def _collect(work: _Work, encoded: Encoded, withheld: int, strict: bool) -> Plan:
    number = np.full(len(work.order), -1, dtype=np.int32)
    kept = work.group >= 0
    keys = work.part[kept] * (len(work.order) + 1) + work.group[kept]
    number[kept] = np.unique(keys, return_inverse=True)[1]
    groups = np.full(encoded.rows, -1, dtype=np.int32)
    rows = work.order >= 0
    groups[work.order[rows]] = number[rows]
    people = None
    if encoded.population is not None:
        people = np.full(len(encoded.population), -1, dtype=np.int32)
        people[-1 - work.order[~rows]] = number[~rows]
    suppressed = int((groups < 0).sum()) - withheld
    reasons = {"too frequent value": withheld, "outlier, to keep others precise": suppressed}
    return Plan(
        groups=groups,
        method="mondrian, " + ("strict cuts" if strict else "relaxed cuts"),
        population_groups=people,
        reasons={reason: rows for reason, rows in reasons.items() if rows},
        statistics={"rows moved between groups": work.moved},
    )
