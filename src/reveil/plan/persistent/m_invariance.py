"""m-invariance in four phases: division, balancing, assignment, split.

Somebody published before, however long ago, goes to the bucket of the values that their groups always showed. New rows
fill buckets up, counterfeits fill what is left, and each bucket is parted into groups with one row of each value.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import cpu_count

import numpy as np

from reveil.base.arrays import I32, I64, starts_of
from reveil.base.lots import generator
from reveil.base.progress import Progress
from reveil.history.history import History
from reveil.plan.cutting.trees import Trees, lay_end_to_end
from reveil.plan.persistent import split
from reveil.plan.persistent.buckets import Buckets, fill
from reveil.plan.persistent.eligible import OFTEN_ENOUGH, eligible_counts, group_size
from reveil.plan.persistent.past import Shown, read_shown, times_published
from reveil.plan.persistent.waiting import reasons_to_wait, waiting_of
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded


@dataclass(frozen=True, eq=False)
class Partition:
    """Rows in balanced buckets, parted into groups."""

    past: Shown
    buckets: Buckets
    base: I64  # number of each bucket's first group
    groups: I32  # of each row, -1 for rows left out
    reasons: dict[str, int]
    trees: Trees


def plan(encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress) -> Plan:
    """Publish the rows under the signatures of their past."""
    partition = part(encoded, history, policy, seed, progress)
    fakes = missing(partition)
    statistics = {
        "signatures": len(partition.buckets.height),
        "counterfeit share": round(len(fakes[0]) / max(1, len(fakes[0]) + int((partition.groups >= 0).sum())), 4),
    }
    return Plan(
        groups=partition.groups,
        method="m-invariance",
        counterfeit_groups=fakes[0],
        counterfeit_codes=fakes[1][:, None],
        reasons=partition.reasons,
        statistics=statistics,
    )


def part(encoded: Encoded, history: History, policy: Policy, seed: int, progress: Progress) -> Partition:
    """The four phases."""
    assert encoded.persons is not None
    progress("planning", 0.0)
    rng = generator(seed, 4)
    persons, codes = encoded.persons, np.ascontiguousarray(encoded.codes[:, 0])
    past = read_shown(history, persons, encoded.sensitive[0].name)
    known = past.latest[persons] >= 0
    limit = policy.guarantee.headline.releases
    often = np.zeros_like(known)
    if limit is not None:
        often = known & (times_published(history, len(past.latest))[persons] >= limit)
    old = np.flatnonzero(known & ~often)
    waiting = waiting_of(history, persons, policy.guarantee)
    told = waiting.told(persons) | waiting.crowded(persons)
    fresh = rng.permutation(np.flatnonzero(~known & ~told))
    size = group_size(policy.guarantee)
    column = encoded.sensitive[0]

    def keep(free: I64) -> I64:
        return eligible_counts(free, size, column, policy)

    buckets = fill(past, past.latest[persons[old]], old, codes, fresh, len(column.values), size, keep)
    progress("planning", 0.4)
    trees = lay_end_to_end(encoded, policy)
    base = starts_of(buckets.height)
    groups = _split(buckets, base, encoded.positions, trees)
    reasons = {OFTEN_ENOUGH: int(often.sum())} | reasons_to_wait(waiting, persons, known, groups, policy)
    return Partition(past, buckets, base, groups, {why: rows for why, rows in reasons.items() if rows}, trees)


def _split(buckets: Buckets, base: I64, positions: I32, trees: Trees) -> I32:
    groups = np.full(len(positions), -1, dtype=np.int32)
    order = buckets.order.copy()
    near = positions[order]
    threads = cpu_count() or 1
    by_size = np.argsort(-buckets.height * np.diff(buckets.first), kind="stable")
    shape = split.BucketRows(buckets.first, buckets.start, buckets.rows, buckets.height, base)

    def work(which: I64) -> None:
        split.split_all(trees, order, near, shape, groups, which)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, [by_size[i::threads] for i in range(threads)]))
    return groups


def missing(partition: Partition) -> tuple[I32, I32]:
    """Group and code of each counterfeit: the places of a group that no row has."""
    b = partition.buckets
    owner = np.repeat(np.arange(len(b.height)), np.diff(b.first))
    short = np.flatnonzero(b.rows < b.height[owner])
    sizes = b.height[owner[short]]
    wanted = np.repeat(partition.base[owner[short]] - (starts_of(sizes)), sizes) + np.arange(int(sizes.sum()))
    codes = np.repeat(b.code[short], sizes)
    slots = np.repeat(np.arange(len(b.code)), b.rows)
    concerned = np.isin(slots, short)
    width = int(b.code.max(initial=0)) + 1
    there = partition.groups[b.order[concerned]].astype(np.int64) * width + b.code[slots[concerned]]
    absent = ~np.isin(wanted * width + codes, there)
    return wanted[absent].astype(np.int32), codes[absent].astype(np.int32)
