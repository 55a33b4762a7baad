"""Cor-Split: m-invariance whose groups tie no fewer than n people to as few others (pairwise).

The first phases are those of m-invariance. A group that the paper's test finds unsafe exchanges a member with a near
group of its bucket; if that does not help the two are merged (each value then occurs twice); only if that fails too are
its people spread over groups filled up with counterfeits. Regrouping cannot be made safe against all combinations of
groups, so `closure = "transitive"` is planned with closed cohorts, refilled n at a time.
"""

from __future__ import annotations

import numpy as np

from reveil.base.arrays import I32, I64, starts_of
from reveil.base.errors import Fault, InfeasibleError
from reveil.base.progress import Progress
from reveil.guarantees.historical_safety import HistoricalSafety
from reveil.history.history import History
from reveil.plan.persistent import closed_cohorts, decorrelate
from reveil.plan.persistent.decorrelate import Cells
from reveil.plan.persistent.degree import degree
from reveil.plan.persistent.m_invariance import Partition, part
from reveil.plan.persistent.past import group_offsets
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded

TIED = "every group would tie them to too few others"


def plan(encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress) -> Plan:
    """Historical safety by the closure that the policy asks for."""
    asked = policy.guarantee.require(HistoricalSafety)
    if asked.closure == "transitive":
        return closed_cohorts.plan(encoded, history, policy, seed=seed, progress=progress)
    n = degree(asked)
    partition = part(encoded, history, policy, seed, progress)
    cells = _cells(partition, encoded, history)
    unsafe = decorrelate.count_unsafe(cells, n)
    into = np.full(int(cells.height.sum()), -1, dtype=np.int64)
    state = np.zeros(len(into), dtype=np.int64)
    exchanged = decorrelate.repair(cells, partition.trees, encoded.positions, n, into, state) if unsafe else 0
    statistics = {
        "unsafe before repair": int(unsafe),
        "exchanged": int(exchanged),
        "merged": int((state == decorrelate.MERGED).sum()),
    }
    return _collect(partition, cells, into, state, n, encoded, policy, statistics)


def _cells(partition: Partition, encoded: Encoded, history: History) -> Cells:
    b = partition.buckets
    width = np.diff(b.first)
    sizes = width * b.height
    first = starts_of(sizes)
    cells = np.full(int(sizes.sum()), -1, dtype=np.int64)
    slots = np.repeat(np.arange(len(b.code)), b.rows)
    bucket = np.repeat(np.arange(len(width)), width)[slots]
    group = partition.groups[b.order] - partition.base[bucket]
    cells[first[bucket] + group * width[bucket] + slots - b.first[bucket]] = b.order
    return Cells(cells, first, width, b.height, _went(encoded, history))


def _went(encoded: Encoded, history: History) -> I32:
    assert encoded.persons is not None
    if history.groups.is_empty():
        return np.empty((encoded.rows, 0), dtype=np.int32)
    row_of = np.full(int(encoded.persons.max(initial=-1)) + 1, -1, dtype=np.int64)
    row_of[encoded.persons] = np.arange(encoded.rows)
    offsets, _ = group_offsets(history)
    person, group, release = (history.members[name].to_numpy() for name in ("person", "group", "release"))
    first = int(release.min())
    return decorrelate.follow_rows(
        person, group, release, offsets, row_of, first, history.head - first + 1, encoded.rows
    )


def _collect(
    partition: Partition,
    cells: Cells,
    into: I64,
    state: I64,
    n: int,
    encoded: Encoded,
    policy: Policy,
    statistics: dict[str, int],
) -> Plan:
    """Number the groups after merging, and spread the people of groups that could not be repaired."""
    heights, widths = cells.height, cells.width
    base = starts_of(heights)
    bucket = np.repeat(np.arange(len(heights)), heights)
    target = np.where(into >= 0, base[bucket] + into, np.arange(len(into)))
    owner = np.repeat(np.arange(len(into)), widths[bucket])  # group of each cell
    values = _cell_codes(partition, bucket, widths)
    group = target[owner].copy()
    extra, withheld = _spread(cells.cells, owner, group, state, widths[bucket], n, len(into))
    if withheld and policy.method.infeasible == "refuse":
        raise InfeasibleError(_fault(n, withheld))
    fake_cells = np.concatenate([group[(cells.cells < 0) & (group >= 0)], extra[:, 0]])
    fake_codes = np.concatenate([values[(cells.cells < 0) & (group >= 0)], values[extra[:, 1]]])
    _, number = np.unique(np.concatenate([group[group >= 0], fake_cells]), return_inverse=True)
    groups = np.full(encoded.rows, -1, dtype=np.int32)
    kept = group >= 0
    real = cells.cells[kept] >= 0
    groups[cells.cells[kept][real]] = number[: int(kept.sum())][real]
    fakes = number[int(kept.sum()) :].astype(np.int32)
    reasons = dict(partition.reasons) | ({TIED: withheld} if withheld else {})
    share = round(len(fakes) / max(1, len(fakes) + int((groups >= 0).sum())), 4)
    return Plan(
        groups=groups,
        method="Cor-Split",
        counterfeit_groups=fakes,
        counterfeit_codes=fake_codes.astype(np.int32)[:, None],
        reasons=reasons,
        statistics={**statistics, "spread": int((state == decorrelate.STUCK).sum()), "counterfeit share": share},
    )


def _cell_codes(partition: Partition, bucket: I64, widths: I64) -> I64:
    """The value of each cell."""
    b = partition.buckets
    sizes = widths[bucket]
    starts = starts_of(sizes)
    inside = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
    return b.code[np.repeat(b.first[bucket], sizes) + inside].astype(np.int64)


def _spread(cells: I64, owner: I64, group: I64, state: I64, widths: I64, n: int, count: int) -> tuple[I64, int]:
    """Spread the people of groups that could not be repaired over new groups, |Q| - n people in each.

    Changes `group`. Returns the further counterfeits as (group, cell whose value they show), and how many people are
    withheld because not even that helps.
    """
    extra: list[tuple[int, int]] = []
    withheld, following = 0, count
    for stuck in np.flatnonzero(state == decorrelate.STUCK).tolist():
        places = np.flatnonzero(owner == stuck)
        real = places[cells[places] >= 0]
        most = int(widths[stuck]) - n
        if most < 1:
            group[places] = -1
            withheld += len(real)
            continue
        for start in range(0, len(real), most):
            part = real[start : start + most]
            number = stuck if start == 0 else following
            following += start > 0
            group[part] = number
            others = np.setdiff1d(places, part)
            if start:
                extra += [(number, int(cell)) for cell in others]
            else:
                extra += [(number, int(cell)) for cell in others if cells[cell] >= 0]
    return np.array(extra, dtype=np.int64).reshape(-1, 2), withheld


def _fault(n: int, rows: int) -> Fault:
    return Fault(
        "R422",
        "guarantee.n",
        f"every way to group some people again would tie fewer than n = {n} of them to as few others",
        'set method.infeasible = "withhold", or use model = "compromise-safety"',
        rows,
    )
