"""m-Distinct (Li and Zhou): people go to buckets whose values their last group's values may have become.

A bucket has an entry for each candidate update set of its signature. Rows published before are assigned by the paper's
score, new rows fill entries up where that costs nothing, counterfeits fill what is left, and each bucket is parted into
groups with one row of each entry and no value twice. Other new rows are grouped as in a first release. For m-Distinct*,
new rows are grouped by kinds of values that can never become the same.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from os import cpu_count

import numpy as np
from numpy.typing import NDArray

from reveil.background.transitions import Relation, relation_of
from reveil.base.arrays import I32, I64, offsets_by_key, ranks_within, starts_of
from reveil.base.errors import Fault, InfeasibleError
from reveil.base.lots import generator
from reveil.base.progress import Progress
from reveil.base.words import some_people
from reveil.guarantees.lasting import Evolving
from reveil.history.history import History
from reveil.plan.cutting.trees import Trees, lay_end_to_end
from reveil.plan.evolving import bucket_entries, disjoint
from reveil.plan.evolving.update_sets import Signatures, read_signatures
from reveil.plan.persistent.eligible import group_size, largest_share
from reveil.plan.persistent.founding import found_cohorts
from reveil.plan.persistent.past import Shown, read_shown, sort_by
from reveil.plan.persistent.split import Ordered
from reveil.plan.persistent.vacancies import curve
from reveil.plan.persistent.waiting import reasons_to_wait, waiting_of
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded

SLACK = 1.25  # how much rarer than it could be a kind of new people is kept
TOO_LIKELY = "their value would be likelier than 1/m"


@dataclass(frozen=True, eq=False)
class Grouped:
    """Rows and counterfeits in groups numbered from 0."""

    rows: I64
    group: I64  # of each row
    fake_group: I64
    fake_code: I64
    count: int

    def after(self, other: Grouped) -> Grouped:
        """Both, the other's groups first."""
        n = other.count
        return Grouped(
            np.concatenate([other.rows, self.rows]),
            np.concatenate([other.group, self.group + n]),
            np.concatenate([other.fake_group, self.fake_group + n]),
            np.concatenate([other.fake_code, self.fake_code]),
            n + self.count,
        )


NONE = np.empty(0, dtype=np.int64)
NOBODY = Grouped(NONE, NONE, NONE, NONE, 0)


@dataclass(frozen=True, eq=False)
class Task:
    """What every step looks at."""

    encoded: Encoded
    codes: I32
    relation: Relation
    kind: I64  # of each value: two of a kind may not begin in one group
    size: int
    trees: Trees
    policy: Policy
    seed: int
    rng: np.random.Generator

    @property
    def width(self) -> int:
        return len(self.relation.values)

    @property
    def star(self) -> bool:
        return self.policy.guarantee.require(Evolving).disjoint


def plan(encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress) -> Plan:
    """Publish the rows so that nothing a person's groups show can be struck off by comparing releases."""
    assert encoded.persons is not None
    progress("planning", 0.0)
    task = _task(encoded, policy, seed)
    past = read_shown(history, encoded.persons, encoded.sensitive[0].name)
    known = past.latest[encoded.persons] >= 0
    waiting = waiting_of(history, encoded.persons, policy.guarantee)
    told = waiting.told(encoded.persons) | waiting.crowded(encoded.persons)
    fresh = task.rng.permutation(np.flatnonzero(~known & ~told))
    old, taken, buckets = _continue(task, past, np.flatnonzero(known), fresh)
    progress("planning", 0.5)
    rest = fresh[~np.isin(fresh, taken, assume_unique=True)]
    grouped = _begin(task, rest).after(old)
    groups = np.full(encoded.rows, -1, dtype=np.int32)
    groups[grouped.rows] = grouped.group
    reasons = reasons_to_wait(waiting, encoded.persons, known, groups, policy)
    if task.star and not disjoint.even(task.relation):
        grouped, reasons[TOO_LIKELY] = _leave_out_likely(task, history, grouped)
        groups = np.full(encoded.rows, -1, dtype=np.int32)
        groups[grouped.rows] = grouped.group
    fakes = len(grouped.fake_group)
    return Plan(
        groups=groups,
        method="m-Distinct*" if task.star else "m-Distinct",
        counterfeit_groups=grouped.fake_group.astype(np.int32),
        counterfeit_codes=grouped.fake_code.astype(np.int32)[:, None],
        reasons={why: rows for why, rows in reasons.items() if rows},
        statistics={
            "buckets": buckets,
            "rows published before": int(known.sum()),
            "new rows that joined them": len(taken),
            "counterfeits per group": round(fakes / max(1, grouped.count), 4),
            "counterfeit share": round(fakes / max(1, fakes + len(grouped.rows)), 4),
        },
    )


def _task(encoded: Encoded, policy: Policy, seed: int) -> Task:
    relation = relation_of(policy, encoded.sensitive[0].values)
    width = len(relation.values)
    size = group_size(policy.guarantee)
    star = policy.guarantee.require(Evolving).disjoint
    if width < size:
        name = encoded.sensitive[0].name
        message = f"has {width} values, also among those that values may become, and a group must show {size}"
        raise InfeasibleError(Fault("R451", f"column {name!r}", message, "lower m (or k)"))
    return Task(
        encoded,
        np.ascontiguousarray(encoded.codes[:, 0]),
        relation,
        disjoint.kinds_of(relation) if star else np.arange(width),
        size,
        lay_end_to_end(encoded, policy),
        policy,
        seed,
        generator(seed, 6),
    )


def _continue(task: Task, past: Shown, known: I64, fresh: I64) -> tuple[Grouped, I64, int]:
    """Groups of the rows published before; which new rows joined them; and how many buckets there are."""
    if not len(known):
        return NOBODY, known, 0
    assert task.encoded.persons is not None
    signatures = read_signatures(past, past.latest[task.encoded.persons[known]], task.relation.allowed)
    covered = np.logical_or.reduceat(signatures.sets[signatures.entry], signatures.first[:-1])
    assert covered[signatures.own, task.codes[known]].all()  # else R311 would have been raised
    bucket = _assigned(task, signatures, known)
    counts = np.zeros((signatures.count, task.width), dtype=np.int64)
    np.add.at(counts, (bucket, task.codes[known]), 1)
    free = np.bincount(task.codes[fresh], minlength=task.width).astype(np.int64)
    by_kind = np.bincount(task.kind, weights=free).astype(np.int64)
    before, shuffled = counts.copy(), task.rng.permutation(task.width)
    shape = bucket_entries.Entries(signatures.first, signatures.entry, signatures.sets)
    size = task.size if by_kind.astype(bool).sum() >= task.size else 0  # else they cannot be grouped by themselves
    height, value, real = bucket_entries.settle(shape, counts, free, task.kind, by_kind, size, shuffled)
    chosen, joins = _hand_out(task, fresh, counts - before, _centres(task, bucket, known, signatures.count))
    rows, home = np.concatenate([known, chosen]), np.concatenate([bucket, joins])
    return _parted(task, signatures, rows, home, height, value, real), chosen, signatures.count


def _assigned(task: Task, signatures: Signatures, known: I64) -> I64:
    """The bucket of each row that was published before."""
    options = np.diff(signatures.option_first)
    if (options == 1).all():
        return signatures.own
    codes = task.codes[known]
    order = np.argsort(options[signatures.own], kind="stable")
    bucket = np.empty(len(known), dtype=np.int64)
    shape = bucket_entries.Entries(signatures.first, signatures.entry, signatures.sets)
    options_of = (signatures.options, signatures.option_first, signatures.own)
    bucket_entries.assign(shape, *options_of, codes, task.encoded.positions[known], order, bucket)
    return bucket


def _centres(task: Task, bucket: I64, known: I64, count: int) -> I64:
    """Where the rows of each bucket lie in the mean, along a curve that keeps neighbours together."""
    sizes = np.maximum(1, np.bincount(bucket, minlength=count))
    mean = [
        np.bincount(bucket, weights=task.encoded.positions[known, c], minlength=count) / sizes
        for c in range(task.encoded.positions.shape[1])
    ]
    return curve(np.column_stack(mean).astype(np.int32), task.trees)


def _hand_out(task: Task, fresh: I64, taken: I64, centre: I64) -> tuple[I64, I64]:
    """Which new row goes to which bucket: of each value some at random, near ones to near buckets."""
    bucket, value = np.nonzero(taken)
    often = taken[bucket, value]
    wanted = np.bincount(value, weights=often, minlength=task.width).astype(np.int64)
    by_value, starts = sort_by(task.codes[fresh], task.width)
    inside = np.arange(int(wanted.sum())) - np.repeat(starts_of(wanted) - starts[:-1], wanted)
    chosen = fresh[by_value[inside]]
    near = np.lexsort((curve(task.encoded.positions[chosen], task.trees), task.codes[chosen]))
    order = np.lexsort((centre[bucket], value))
    return chosen[near], np.repeat(bucket[order], often[order])


def _parted(
    task: Task, signatures: Signatures, rows: I64, home: I64, height: I64, value: I32, real: NDArray[np.bool_]
) -> Grouped:
    """Give every place of the buckets its row, and part the buckets into groups.

    Counterfeits have no position: they take that of some row of their bucket, so that they are spread like its rows.
    """
    sizes = np.diff(signatures.first)
    places = sizes * height
    start = starts_of(places)
    owner = np.repeat(np.arange(len(places)), places)
    person = np.full(len(value), -1, dtype=np.int64)
    by_place = np.flatnonzero(real)[np.argsort((owner * task.width + value)[real], kind="stable")]
    by_row = np.argsort(home * task.width + task.codes[rows], kind="stable")
    person[by_place] = rows[by_row]
    first_row = offsets_by_key(home[by_row], len(places))
    members = np.diff(first_row)[owner]
    lent = rows[by_row][first_row[owner] + (task.rng.random(len(owner)) * members).astype(np.int64)]
    near = task.encoded.positions[np.where(real, person, lent)]
    group, base = np.empty(len(value), dtype=np.int32), starts_of(height)
    placed, threads = Ordered(np.arange(len(value)), near), cpu_count() or 1
    settled = bucket_entries.Settled(start, sizes, height, base)
    by_work = np.argsort(-places, kind="stable")

    def work(which: I64) -> None:
        bucket_entries.part_all(task.trees, placed, value, task.width, settled, group, which)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, [by_work[i::threads] for i in range(threads)]))
    whole = group.astype(np.int64)
    return Grouped(person[real], whole[real], whole[~real], value[~real].astype(np.int64), int(height.sum()))


def _begin(task: Task, rows: I64) -> Grouped:
    """Groups of people who were never published; of too frequent values some are withheld."""
    if not len(rows):
        return NOBODY
    if task.star and int(task.kind.max()) + 1 < task.size:
        return _combined(task, rows)
    if not task.star:
        task = replace(task, kind=_alike(task, rows))
    kinds = task.kind[task.codes[rows]]
    counts = np.bincount(kinds, minlength=int(task.kind.max()) + 1)
    most = np.minimum(counts, largest_share(counts, task.size))
    order, starts = sort_by(kinds, len(counts))
    kept = np.zeros(len(rows), dtype=bool)
    kept[order] = np.arange(len(rows)) - np.repeat(starts[:-1], counts) < np.repeat(most, counts)
    groups = _found(task, rows[kept])
    if kept.all() or task.policy.method.infeasible == "withhold":
        return groups
    return _padded(task, rows[~kept], kinds[~kept]).after(groups)


def _alike(task: Task, rows: I64) -> I64:
    """Kinds of values for new people: values with equal candidate update sets together, while a kind is rare enough.

    Groups of different kinds then have few signatures between them, so that later buckets are large and can be parted
    into near rows.
    """
    classes = np.unique(task.relation.allowed, axis=0, return_inverse=True)[1].ravel()
    counts = np.bincount(task.codes[rows], minlength=task.width)
    most = int(len(rows) / (SLACK * task.size))
    kind, held, latest = np.empty(task.width, dtype=np.int64), list[int](), dict[int, int]()
    for v in np.lexsort((-counts, classes)).tolist():
        mine = latest.get(int(classes[v]), -1)
        if mine < 0 or held[mine] + int(counts[v]) > most:
            mine = latest[int(classes[v])] = len(held)
            held.append(0)
        held[mine] += int(counts[v])
        kind[v] = mine
    return kind if len(held) >= task.size else np.arange(task.width)


def _found(task: Task, rows: I64) -> Grouped:
    """Near rows of different kinds together."""
    if not len(rows):
        return NOBODY
    codes = task.kind[task.encoded.codes[rows]].astype(np.int32)
    by_kind = replace(task.encoded, positions=task.encoded.positions[rows], codes=codes)
    group = found_cohorts(by_kind, task.trees, task.policy, task.size, task.seed).astype(np.int64)
    return Grouped(rows, group, NONE, NONE, int(group.max()) + 1)


def _padded(task: Task, rows: I64, kinds: I64) -> Grouped:
    """Rows of kinds that are too frequent, one of each to a group, with counterfeits of other kinds."""
    number = int(task.kind.max()) + 1
    counts = np.bincount(kinds, minlength=number)
    listed = np.argsort(-counts, kind="stable")
    order = np.argsort(kinds, kind="stable")
    group = np.empty(len(rows), dtype=np.int64)
    group[order] = ranks_within(counts)
    total = int(counts.max())
    have = np.bincount(group, minlength=total)  # the first `have` kinds of the list
    short = np.maximum(0, task.size - have)
    owner = np.repeat(np.arange(total), short)
    place = ranks_within(short)
    offset = task.rng.integers(0, np.maximum(1, number - have))
    fake = listed[have[owner] + (offset[owner] + place) % (number - have[owner])]
    return Grouped(rows, group, owner, _some_value(task, fake), total)


def _some_value(task: Task, kinds: I64) -> I64:
    """A value of each kind, at random."""
    order, starts = sort_by(task.kind, int(task.kind.max()) + 1)
    members = np.diff(starts)[kinds]
    return np.asarray(order[starts[kinds] + (task.rng.random(len(kinds)) * members).astype(np.int64)])


def _combined(task: Task, rows: I64) -> Grouped:
    """Groups of values without overlap where there are fewer kinds than a group needs."""
    column = task.encoded.sensitive[0]
    counts = np.bincount(task.codes[rows], minlength=task.width)
    by_value, starts = sort_by(task.codes[rows], task.width)
    used, parts = starts[:-1].copy(), NOBODY
    for values, often in disjoint.combine(counts, task.relation, task.size, column):
        mine, group, fakes = [], [], []
        for v in values:
            there = min(often, int(starts[v + 1] - used[v]))
            chosen = rows[by_value[used[v] : used[v] + there]]
            mine.append(chosen[np.argsort(curve(task.encoded.positions[chosen], task.trees), kind="stable")])
            used[v] += there
            group.append(np.arange(there))
            fakes += [(g, v) for g in range(there, often)]
        invented = np.array(fakes, dtype=np.int64).reshape(-1, 2)
        parts = Grouped(np.concatenate(mine), np.concatenate(group), invented[:, 0], invented[:, 1], often).after(parts)
    return parts


def _leave_out_likely(task: Task, history: History, grouped: Grouped) -> tuple[Grouped, int]:
    """Counterfeits instead of rows whose value could be guessed too well, since not all updates are equally likely."""
    persons, shown = task.encoded.persons, np.zeros((grouped.count, task.width), dtype=bool)
    assert persons is not None
    codes = task.codes[grouped.rows].astype(np.int64)
    shown[grouped.group, codes] = True
    shown[grouped.fake_group, grouped.fake_code] = True
    name = task.encoded.sensitive[0].name
    group = grouped.group.astype(np.int32)
    likely = disjoint.too_likely(
        history, name, persons[grouped.rows], group, shown, task.relation, task.policy.guarantee.require(Evolving).m
    )
    if not likely.any():
        return grouped, 0
    if task.policy.method.infeasible == "refuse" or likely.all():
        raise InfeasibleError(_unequal(name, int(likely.sum()), task))
    used = np.bincount(grouped.group[~likely], minlength=grouped.count) > 0
    number = np.cumsum(used) - 1
    fake_group = np.concatenate([grouped.fake_group, grouped.group[likely]])
    fake_code = np.concatenate([grouped.fake_code, codes[likely]])
    kept = used[fake_group]
    rows, group_left = grouped.rows[~likely], number[grouped.group[~likely]]
    left = Grouped(rows, group_left, number[fake_group[kept]], fake_code[kept], int(used.sum()))
    return left, int(likely.sum())


def _unequal(name: str, rows: int, task: Task) -> Fault:
    m = task.policy.guarantee.require(Evolving).m
    return Fault(
        "R452",
        f"column {name!r}",
        f"values do not change with equal chances, so that the value of {some_people(rows)} would be likelier than "
        f"1/{m}, whatever the paper's lemma says",
        f'raise k for more than {m} values in a group, set method.infeasible = "withhold", or use model = "m-distinct"',
        rows,
    )
