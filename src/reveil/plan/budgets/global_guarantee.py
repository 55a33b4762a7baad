"""Planning for the global guarantee: groups that everybody in them can still afford.

Rows are cut top down as by Mondrian, and a cut is made only if in both parts every member can bear every protected
value that occurs there, given all groups the member was in before. Nobody is withheld because of the value they have:
who cannot be published is decided by what they have left against how frequent values are in the whole table.
"""

from __future__ import annotations

import difflib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from math import ceil
from os import cpu_count
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.arrays import offsets_by_key, offsets_of
from reveil.base.errors import Fault, InfeasibleError, InputError
from reveil.base.progress import Progress
from reveil.base.text import plain_text
from reveil.base.words import some
from reveil.guarantees.global_guarantee import Global
from reveil.guarantees.selection import is_range
from reveil.history.history import History
from reveil.plan.budgets import budget, budget_cuts, statement
from reveil.plan.budgets.remaining_budget import (
    EarlierGroups,
    Needs,
    RemainingBudget,
    Target,
    fill_least,
    fill_needs,
    place_visits,
    shelve,
    tabulate,
)
from reveil.plan.cutting import admit, infeasible
from reveil.plan.cutting.mondrian import Work, rows_of
from reveil.plan.cutting.trees import Trees, lay_end_to_end
from reveil.plan.cutting.values import Order, Rows, Tests, admits, room_for
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded

CELLS = 40_000_000  # needs that are kept one by one; beyond that rare values share their largest need
FEWEST_SLOTS = 8
DENSE = 0.15  # from this share of values per group on, a table of all of them is faster
REASON = "too little of the budget left"
LENDERS = (0, 1, 2, 4, 8, 16, None)  # how many later releases lend their part of the budget; None: all of them
ALLOWANCES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # for values that are more frequent among the rest


def plan(encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress) -> Plan:
    """Group the rows of one table so that nobody's budget is exceeded."""
    _refuse_unknown(encoded, policy)
    progress(compiling() or "adding up the past", 0.0)
    pace, remaining, left, keep = bearable(encoded, history, policy)
    tests, (rows, order) = _tests(encoded, policy), rows_of(encoded)
    rows, order = rows[keep], order[keep]
    _refuse_conditions(tests, rows, order, encoded, policy)
    trees, relaxed = lay_end_to_end(encoded, policy), policy.method.cuts == "relaxed"
    starts = _Affordable(trees, tests, remaining, rows, order, relaxed).starts(progress)
    groups = np.full(encoded.rows, -1, dtype=np.int32)
    groups[order] = np.repeat(np.arange(len(starts), dtype=np.int32), np.diff(starts, append=len(order)))
    withheld = int((~keep).sum())
    alone = statement.standing_alone(trees, tests, remaining, rows, order, starts, float(pace.floor), relaxed)
    return Plan(
        groups=groups,
        method="budget, " + ("cuts by need too" if relaxed else "strict cuts"),
        reasons={REASON: withheld} if withheld else {},
        statistics={**statement.outlook(encoded, history, left, pace, policy), **alone},
    )


def compiling() -> str | None:
    """What to tell people while Numba compiles, or None when the compiled code is already there."""
    compiled: Any = budget_cuts.split_into
    if not hasattr(compiled, "signatures"):  # NUMBA_DISABLE_JIT
        return None
    cached = Path(compiled._cache.cache_path).glob("budget_cuts.split_into-*.nbi")
    newest = max((file.stat().st_mtime for file in cached), default=0.0)
    if compiled.signatures or newest >= Path(budget_cuts.__file__).stat().st_mtime:
        return None
    return "compiling the planner (first run after installation only, about a minute)"


def pace_of(policy: Policy) -> budget.Pace:
    """How the policy spreads its promise over releases."""
    g = policy.guarantee.require(Global)
    return budget.Pace(g.l, g.strategy, g.horizon, g.rate)


def bearable(
    encoded: Encoded, history: History, policy: Policy
) -> tuple[budget.Pace, RemainingBudget, NDArray[np.float64], NDArray[np.bool_]]:
    """A pace at which everybody can be published, what they can bear, what they have left, and who is kept.

    A strategy sets a pace, and the pace is not the promise. Where it is too slow for this table, as few later releases
    as possible lend their part. Where not even the promise can be kept for everybody, the fewest are withheld.
    """
    strict = pace_of(policy)
    lenders = (0,) if policy.guarantee.require(Global).pace == "strict" or strict.strategy == "greedy" else LENDERS
    ways, refusal = [], None
    for ahead in lenders:
        pace = replace(strict, ahead=ahead)
        remaining, left = remaining_budgets(encoded, history, policy, pace)
        try:
            keep = publishable(encoded, history, remaining, pace, policy)
        except InfeasibleError as error:
            refusal = error
            continue
        ways.append((pace, remaining, left, keep))
        if keep.all():
            break
    if not ways:
        assert refusal is not None
        raise refusal
    return max(ways, key=lambda way: int(way[3].sum()))  # of equals the first, which borrows least


def _tests(encoded: Encoded, policy: Policy) -> Tests:
    """The other conditions of the policy. No group is smaller than l, even where nothing in it is protected."""
    tests = admit.tests(encoded, policy)
    return tests._replace(least=max(tests.least, ceil(policy.guarantee.require(Global).l)))


def _refuse_unknown(encoded: Encoded, policy: Policy) -> None:
    """A misspelt value would go unprotected, so a value that nobody has heard of is refused."""
    known = {plain_text(value) for column in encoded.sensitive for value in column.values}
    for name in policy.named("sensitive"):
        known |= set(policy.columns[name].order or ())
    for column in encoded.sensitive:
        known |= {plain_text(leaf) for leaf in column.hierarchy.leaves} if column.hierarchy else set()
    faults, promise = [], policy.guarantee.require(Global)
    texts = all(isinstance(value, str) for column in encoded.sensitive for value in column.values if value is not None)
    for value in promise.protect or ():
        if value not in known and value not in promise.labels and (texts or not is_range(value)):
            near = difflib.get_close_matches(value, known, n=1)
            hint = f"; the nearest is {near[0]!r}" if near else ""
            message = f"{value!r} is not a value of {', '.join(map(repr, policy.named('sensitive')))}{hint}"
            way = "correct the spelling, or list all values that may come in `order` of the column"
            faults.append(Fault("R461", "guarantee.protect", message, way))
    if faults:
        raise InputError(faults)


def remaining_budgets(
    encoded: Encoded, history: History, policy: Policy, pace: budget.Pace
) -> tuple[RemainingBudget, NDArray[np.float64]]:
    """What the rows of this table may still be exposed to, and the lowest survival of each so far."""
    domains = [len(column.values) for column in encoded.sensitive]
    first_code = np.cumsum([0, *domains], dtype=np.int64)
    slot, slots = _slots(encoded, policy)
    line, lines = _lines(encoded, history)
    offsets = _offsets(history)
    visits = _visits(history, line, lines, offsets)
    kinds, target = _targets(visits, pace)
    need, worst = np.empty((lines + 1, max(1, slots))), np.empty(lines + 1)
    past = _past(encoded, history, slot, offsets, shared=slots < int((slot >= 0).sum()))
    part = max(1, -(-lines // (4 * (cpu_count() or 1))))
    with ThreadPoolExecutor(cpu_count() or 1) as threads:
        jobs = [
            threads.submit(
                fill_needs,
                *(visits, past, target, kinds, begin, min(begin + part, lines + 1)),
                *(encoded.rows, Needs(need, worst)),
            )
            for begin in range(0, lines + 1, part)
        ]
        for job in jobs:
            job.result()
    index = _index(encoded, line, lines)
    remaining = RemainingBudget(
        line=index,
        need=need,
        worst=worst[index],
        least=np.empty(encoded.rows, dtype=np.int32),
        column=len(encoded.quasi) + np.arange(len(domains), dtype=np.int64),
        first_code=first_code,
        slot=slot,
    )
    fill_least(remaining, encoded.codes)
    left = np.minimum(1.0, (target.top / target.bottom)[kinds] / worst)[index]
    return remaining, left


def _slots(encoded: Encoded, policy: Policy) -> tuple[NDArray[np.int64], int]:
    """A slot for each protected value; if that is too much to keep, the rarest values share the last one."""
    promise = policy.guarantee.require(Global)
    protected = [promise.protects(value) for column in encoded.sensitive for value in column.values]
    rows = [
        np.bincount(encoded.codes[:, number], minlength=len(column.values))
        for number, column in enumerate(encoded.sensitive)
    ]
    slot = np.full(len(protected), -1, dtype=np.int64)
    mine = np.flatnonzero(protected)
    slots = min(len(mine), max(FEWEST_SLOTS, CELLS // max(1, encoded.rows)))
    by_rows = mine[np.argsort(-np.concatenate(rows)[mine], kind="stable")]
    slot[by_rows] = np.minimum(np.arange(len(mine)), slots - 1)
    return slot, slots


def _lines(encoded: Encoded, history: History) -> tuple[NDArray[np.int64], int]:
    """A number for each person of the past who is in this table, -1 for all others; and how many these are."""
    line = np.full(history.persons.height, -1, dtype=np.int64)
    known = _known(encoded, history)
    line[known] = np.arange(len(known))
    return line, len(known)


def _known(encoded: Encoded, history: History) -> NDArray[np.int64]:
    persons = encoded.persons if encoded.persons is not None else np.empty(0, dtype=np.int64)
    return persons[persons < history.persons.height]


def _index(encoded: Encoded, line: NDArray[np.int64], lines: int) -> NDArray[np.int64]:
    """The line of needs of each row: one's own, or the newcomers' at the end."""
    if encoded.persons is None:
        return np.zeros(encoded.rows, dtype=np.int64)
    index = np.full(encoded.rows, lines, dtype=np.int64)
    known = encoded.persons < len(line)
    index[known] = line[encoded.persons[known]]
    return index


def _offsets(history: History) -> NDArray[np.int64]:
    """Where the groups of each release start when all are numbered through; releases count from 1."""
    if history.groups.is_empty():
        return np.zeros(history.head + 2, dtype=np.int64)
    counts = np.bincount(history.groups["release"].to_numpy(), minlength=history.head + 1)
    return offsets_of(counts)


def _visits(history: History, line: NDArray[np.int64], lines: int, offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """The group that each person was in, by release, or -1; one more person, the newcomer, was in none."""
    visits = np.full((history.head, lines + 1), -1, dtype=np.int32)
    if history.members.is_empty():
        return visits
    person, release, group = (history.members[name].to_numpy() for name in ("person", "release", "group"))
    step = max(1, len(person) // (4 * (cpu_count() or 1)))

    def place(begin: int) -> None:
        some = slice(begin, begin + step)
        place_visits(person[some], release[some], group[some], line, offsets, visits)

    with ThreadPoolExecutor(cpu_count() or 1) as threads:
        list(threads.map(place, range(0, len(person), step)))
    return visits


def _targets(visits: NDArray[np.int32], pace: budget.Pace) -> tuple[NDArray[np.int64], Target]:
    """What must remain after this release: of each line, its kind; and the survival that belongs to each kind.

    A horizon is shared out among the releases that somebody can be in, from the first one on. Without a horizon, the
    number of a person's releases counts.
    """
    now = len(visits) + 1
    if pace.strategy == "constant-ratio":
        horizon = max(pace.horizon or 1, now)
        kinds = np.full(visits.shape[1], now - 1, dtype=np.int64)
        for release in reversed(range(now - 1)):
            kinds[visits[release] >= 0] = release  # so that the first one remains
        survivals = [pace.target(now - came + 1, horizon - came + 1) for came in range(1, now + 1)]
    else:
        kinds = (visits >= 0).sum(axis=0)
        survivals = [pace.target(step) for step in range(1, now + 1)]
    small = np.array([target.denominator < 1 << 20 for target in survivals])
    top = [float(t.numerator if s else t) for t, s in zip(survivals, small, strict=True)]
    bottom = [float(t.denominator if s else 1) for t, s in zip(survivals, small, strict=True)]
    return kinds, Target(np.array(top), np.array(bottom), small)


def _past(
    encoded: Encoded, history: History, slot: NDArray[np.int64], offsets: NDArray[np.int64], *, shared: bool
) -> EarlierGroups:
    """What was published in each group. Values that share a slot count as the most frequent of them there."""
    if history.groups.is_empty():
        nothing = np.empty(0, dtype=np.int32)
        return EarlierGroups(np.empty(0), np.zeros(1, dtype=np.int64), nothing, np.empty(0), np.empty((0, 0)))
    place = offsets[history.groups["release"].to_numpy()] + history.groups["group"].to_numpy()
    size = np.zeros(history.groups.height)
    size[place] = history.groups["rows"].to_numpy()
    values, base = history.values, 0
    if len(encoded.sensitive) > 1:  # number the codes of all columns through
        parts = []
        for column in encoded.sensitive:
            mine = values.filter(pl.col("column") == column.name)
            parts.append(mine.with_columns(pl.col("code") + base))
            base += len(column.values)
        values = pl.concat(parts)
    release, group, code, rows = (values[name].to_numpy() for name in ("release", "group", "code", "rows"))
    past = shelve(release, group, code, rows, slot, offsets, size)
    past = _merged(past) if shared else past
    slots = int(slot.max(initial=-1)) + 1
    dense = len(past.slot) > DENSE * slots * len(size) and slots * len(size) <= CELLS
    return past._replace(table=tabulate(past, slots)) if dense else past


def _merged(past: EarlierGroups) -> EarlierGroups:
    """One entry for each group and slot: the largest."""
    group = np.repeat(np.arange(len(past.size)), np.diff(past.first))
    entries = pl.DataFrame({"group": group, "slot": past.slot, "ratio": past.ratio})
    entries = entries.group_by("group", "slot").agg(pl.col("ratio").max()).sort("group", "slot")
    first = offsets_by_key(entries["group"].to_numpy(), len(past.size))
    return past._replace(first=first, slot=entries["slot"].to_numpy(), ratio=entries["ratio"].to_numpy())


def publishable(
    encoded: Encoded, history: History, remaining: RemainingBudget, pace: budget.Pace, policy: Policy
) -> NDArray[np.bool_]:
    """Which rows can be published together as one group; if not all, the others are withheld or the table is refused.

    Somebody is withheld if a protected value is more frequent *in the whole table* than they can bear: that depends on
    their past and on totals, not on the value they have. It may turn out that the value is more frequent among the
    rest; then the same is done as if it were a little more frequent than it is, in a few fixed steps.
    """
    everybody = np.ones(encoded.rows, dtype=bool)
    escapes = _escapes(encoded, remaining, everybody)
    for allowance in ALLOWANCES if encoded.rows else ():
        keep = ~_too_poor(remaining, escapes - (1 - escapes) * allowance, everybody)
        rest = _too_poor(remaining, _escapes(encoded, remaining, keep), keep)
        if keep.any() and not rest.any():
            if keep.all() or policy.method.infeasible == "withhold":
                return keep
            break
    poor = _too_poor(remaining, escapes, everybody)
    if poor.any():
        raise InfeasibleError(statement.faults(encoded, history, remaining, pace, np.flatnonzero(poor)))
    return everybody


def _too_poor(remaining: RemainingBudget, escapes: NDArray[np.float64], among: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Who cannot be in a group where these shares of the rows do not have the value of a slot."""
    poor = among & (remaining.worst > escapes.min(initial=1.0))
    rows = np.flatnonzero(poor)
    poor[rows] = (remaining.need[remaining.line[rows]] > escapes).any(axis=1)
    return poor


def _escapes(encoded: Encoded, remaining: RemainingBudget, keep: NDArray[np.bool_]) -> NDArray[np.float64]:
    """For each slot, the share of the kept rows without its most frequent value. Two if the value does not occur."""
    rows = max(1, int(keep.sum()))
    escapes = np.full(remaining.need.shape[1], 2.0)
    for number, (a, b) in enumerate(pairwise(remaining.first_code)):
        counts = np.bincount(encoded.codes[keep, number], minlength=b - a)
        here = (counts > 0) & (remaining.slot[a:b] >= 0)
        np.minimum.at(escapes, remaining.slot[a:b][here], (rows - counts[here]) / rows)
    return escapes


def _refuse_conditions(tests: Tests, rows: Rows, order: Order, encoded: Encoded, policy: Policy) -> None:
    """Conditions besides the budget must hold for all rows as one group; else no way of cutting satisfies them."""
    if len(rows) and admits(tests, rows, order, 0, len(rows), *room_for(tests)):
        return
    if len(rows) < tests.least:
        message = f"{some(len(rows), 'row')} can be published, and no group may have fewer than {tests.least}"
        raise InfeasibleError(
            Fault("R462", "guarantee", message, "publish more people together, or lower k or l", len(rows))
        )
    raise InfeasibleError(infeasible.faults(encoded, policy))


class _Affordable(Work):
    """Cutting that respects what people have left; people of unlike needs are parted in the smallest segments only."""

    def __init__(
        self, trees: Trees, tests: Tests, remaining: RemainingBudget, rows: Rows, order: Order, relaxed: bool
    ) -> None:
        super().__init__(trees, tests, (rows, order), False, 0)
        self.remaining, self.by_need = remaining, relaxed

    def split(self, s: int, t: int, stop: int, allowance: int) -> tuple[NDArray[Any], NDArray[Any]]:
        by_need = self.by_need and stop == 0
        starts = budget_cuts.split(self.trees, self.tests, self.remaining, self.rows, self.order, s, t, stop, by_need)
        return starts, np.zeros(len(starts), dtype=np.int32)

    def starts(self, progress: Progress) -> NDArray[np.int64]:
        """Where groups begin."""
        return np.concatenate([part.s + np.flatnonzero(np.diff(part.group, prepend=-1)) for part in self.run(progress)])
