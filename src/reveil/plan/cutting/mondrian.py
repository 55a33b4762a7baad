"""Multidimensional recoding: cut the table in two, again and again, where that loses least.

A cut parts the rows under one node of a hierarchy (or one run of a free column) from the others, weighed by the loss of
the form that will be published. *Strict* cuts send all rows of a value to the same side. *Relaxed* cuts may lend a few
near rows to a side that is too small, and move single rows between neighbouring groups afterwards: less loss, and the
published regions may overlap. Rows are withheld, up to the policy's limit, where that loses less than keeping them.
"""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from math import floor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveil.base.errors import InfeasibleError, stop_if
from reveil.base.lots import generator
from reveil.base.progress import Progress
from reveil.base.threads import threads
from reveil.guarantees.k_map import KMap
from reveil.history.history import History
from reveil.plan.cutting import admit, cuts, infeasible, values
from reveil.plan.cutting.conditions import k_map
from reveil.plan.cutting.counted_cuts import Rules, segments_of
from reveil.plan.cutting.repair import repair
from reveil.plan.cutting.trees import SET, Trees, lay_end_to_end
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded

PARTS = 64  # independent segments that a large table is first cut into


def plan(encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress) -> Plan:
    """Group the rows of one table under its single-release conditions."""
    stop_if(k_map.strangers(policy.guarantee.find(KMap), encoded))
    trees = lay_end_to_end(encoded, policy)
    kept, tests, withheld = admissible(encoded, policy, seed)
    strict = is_strict(encoded, policy)
    allowance = max(0, floor(policy.method.suppress * encoded.rows) - withheld)
    if tests.most[0] > 0:
        allowance = 0  # presence: nobody of the population could be where rows are withheld
    progress(compiling() or "planning", 0.0)
    work = Work(trees, tests, kept, not strict, allowance)
    parts = work.run(progress)
    if policy.guarantee.relative and any((part.group < 0).any() for part in parts):
        work = _once_more(work, parts, encoded, policy)
        parts = work.run(progress)
    return _collect(work, parts, encoded, withheld, described(encoded, policy))


def is_strict(encoded: Encoded, policy: Policy) -> bool:
    """Whether rows of equal value stay together. Relaxed cuts move rows, and people of a population are none."""
    return policy.method.cuts == "strict" or not policy.guarantee.monotone or encoded.population is not None


def described(encoded: Encoded, policy: Policy) -> str:
    return f"mondrian, {'strict' if is_strict(encoded, policy) else 'relaxed'} cuts"


def _once_more(work: Work, parts: list[Part], encoded: Encoded, policy: Policy) -> Work:
    """The rows that stayed, as a table of its own: some conditions compare with what is published.

    Where they do not pass as one group (nearness may not), nothing is withheld instead.
    """
    stay = np.concatenate([part.group >= 0 for part in parts])
    rows, order = work.rows[stay], work.order[stay]
    tests = admit.tests(encoded, policy, order[order >= 0])
    if _admitted(tests, rows, order):
        return Work(work.trees, tests, (rows, order), work.relaxed, 0)
    return Work(work.trees, work.tests, (work.rows, work.order), work.relaxed, 0)


Rows = tuple[values.Rows, NDArray[np.int32]]


def rows_of(encoded: Encoded) -> Rows:
    """Positions and sensitive codes side by side, in 16 bits if they fit: half the memory to move.

    People of the population who are not rows have the number -1 - i.
    """
    domain = max([*(len(h) for h in encoded.quasi), *(len(column.values) for column in encoded.sensitive)])
    people = 0 if encoded.population is None else len(encoded.population)
    width = encoded.positions.shape[1]
    rows = np.full(
        (encoded.rows + people, width + encoded.codes.shape[1]), -1, dtype=np.int16 if domain < 2**15 else np.int32
    )
    rows[: encoded.rows, :width] = encoded.positions
    rows[: encoded.rows, width:] = encoded.codes
    order = np.arange(len(rows), dtype=np.int32)
    if encoded.population is not None:
        rows[encoded.rows :, :width] = encoded.population
        order[encoded.rows :] = -1 - order[:people]
    return rows, order


def _admitted(tests: values.Tests, rows: values.Rows, order: NDArray[np.int32]) -> bool:
    return bool(values.admits(tests, rows, order, 0, len(rows), *values.room_for(tests)))


def admissible(encoded: Encoded, policy: Policy, seed: int) -> tuple[Rows, values.Tests, int]:
    """The rows that can be published at all, what they must satisfy, and how many others there are.

    That is everything if the whole table is admitted as one group. If it is not, no way of cutting it is; then rows of
    too frequent values are withheld (as many as are needed, or up to the policy's limit), or the table is refused.
    """
    tests = admit.tests(encoded, policy)
    rows, order = rows_of(encoded)
    if _admitted(tests, rows, order):
        return (rows, order), tests, 0
    limit = encoded.rows if policy.method.infeasible == "withhold" else floor(policy.method.suppress * encoded.rows)
    keep = infeasible.without_excess(tests, rows, generator(seed, 2)) if limit else np.zeros(len(rows), dtype=bool)
    if limit >= (~keep).sum():
        published = order[keep & (order >= 0)]
        tests = admit.tests(encoded, policy, published)
        if len(published) and _admitted(tests, rows[keep], order[keep]):
            return (rows[keep], order[keep]), tests, int((~keep).sum())
    raise InfeasibleError(infeasible.faults(encoded, policy))


class Part(NamedTuple):
    """Rows s..t, cut to the end: the group of each row within the part, or -1, and how many groups there are."""

    s: int
    t: int
    group: NDArray[np.int32]
    groups: int
    moved: int


Task = tuple[int, int, int]  # rows s..t, of which so many may be withheld


class Work:
    """One run of the kernels over a table: cut into ever smaller parts, in threads; their number changes nothing."""

    def __init__(self, trees: Trees, tests: values.Tests, rows: Rows, relaxed: bool, allowance: int) -> None:
        self.trees, self.tests, self.relaxed, self.allowance = trees, tests, relaxed, allowance
        self.rows, self.order = rows
        self.segments = None if allowance else segments_of(Rules(trees, tests, relaxed), self.rows, self.order)
        if self.segments is not None:
            self.rows, self.order = self.segments.rows, self.segments.order
        n = len(self.order)
        self.small = max(n // PARTS, 4096)
        sets = bool((trees.form == SET).any())
        self.window = int(np.clip(2_000_000 // max(1, n), 4, 64)) if relaxed and not sets else 0

    def run(self, progress: Progress) -> list[Part]:
        """All parts, in the order of their rows."""
        n, done, parts = len(self.order), 0, []
        progress("planning", 0.0)
        with ThreadPoolExecutor(threads()) as pool:
            jobs = {pool.submit(self._task, (0, n, self.allowance))}
            while jobs:
                finished, jobs = wait(jobs, return_when=FIRST_COMPLETED)
                for tasks, ready in (job.result() for job in finished):
                    jobs |= {pool.submit(self._task, task) for task in tasks}
                    parts += ready
                    done += sum(part.t - part.s for part in ready)
                progress("planning", done / n)
        return sorted(parts)

    def _task(self, task: Task) -> tuple[list[Task], list[Part]]:
        """Halve a large part, or finish a small one (or one that cannot be cut)."""
        s, t, allowance = task
        starts, gone = self.split(s, t, max(self.small, (t - s) // 2), allowance)
        if len(starts) == 1:
            return [], [self._finish(s, t, allowance)]
        ends = [*starts[1:], t]
        left = allowance - int((ends - starts)[gone == 1].sum())
        tasks, parts = [], []
        for a, b, withheld in zip(starts.tolist(), [int(end) for end in ends], gone, strict=True):
            if withheld:
                parts.append(Part(a, b, np.full(b - a, -1, dtype=np.int32), 0, 0))
            else:
                tasks.append((a, b, left * (b - a) // (t - s)))
        return tasks, parts

    def split(self, s: int, t: int, stop: int, allowance: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Cut rows s..t into segments of at most `stop` rows: where they begin, and whether each is withheld."""
        if self.segments is not None:
            return self.segments.split(s, t, stop)
        return cuts.split(self.trees, self.tests, self.rows, self.order, s, t, stop, self.relaxed, allowance)

    def _finish(self, s: int, t: int, allowance: int) -> Part:
        starts, gone = self.split(s, t, 0, allowance)
        bounds, moved = np.append(starts, t), 0
        group = np.repeat(np.arange(len(starts), dtype=np.int32), np.diff(bounds))
        if self.window and len(starts) > 1:
            group, moved = repair(self.trees, self.tests, self.rows, bounds, gone, self.window)
        number = np.where(gone == 1, -1, np.cumsum(gone == 0) - 1).astype(np.int32)
        return Part(s, t, number[group], int((gone == 0).sum()), moved)


def compiling() -> str | None:
    """What to tell people while Numba compiles, or None when the compiled code is already there."""
    compiled: Any = cuts.split_into
    if not hasattr(compiled, "signatures"):  # NUMBA_DISABLE_JIT
        return None
    cached = Path(compiled._cache.cache_path).glob("cuts.split_into-*.nbi")
    newest = max((file.stat().st_mtime for file in cached), default=0.0)
    if compiled.signatures or newest >= Path(cuts.__file__).stat().st_mtime:
        return None
    return "compiling the planner (first run after installation only, about half a minute)"


def _collect(work: Work, parts: list[Part], encoded: Encoded, withheld: int, method: str) -> Plan:
    number = np.full(len(work.order), -1, dtype=np.int32)
    first = 0
    for part in parts:
        number[part.s : part.t] = np.where(part.group >= 0, part.group + first, -1)
        first += part.groups
    rows = work.order >= 0
    shown = np.zeros(first + 1, dtype=bool)  # the last is for rows that are withheld
    shown[number[rows]] = True
    shown[-1] = False  # and a region of the population without rows is no group
    number = np.where(shown, np.cumsum(shown, dtype=np.int32) - 1, np.int32(-1))[number]
    groups = np.full(encoded.rows, -1, dtype=np.int32)
    groups[work.order[rows]] = number[rows]
    people = None
    if encoded.population is not None:
        people = np.full(len(encoded.population), -1, dtype=np.int32)
        people[-1 - work.order[~rows]] = number[~rows]
    suppressed = int((groups < 0).sum()) - withheld
    reasons = {"too frequent value": withheld, "outlier, to keep others precise": suppressed}
    return Plan(
        groups=groups,
        method=method,
        population_groups=people,
        reasons={reason: rows for reason, rows in reasons.items() if rows},
        statistics={"rows moved between groups": sum(part.moved for part in parts)},
    )
