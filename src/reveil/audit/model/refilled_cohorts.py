"""Cohorts whose counterfeits go on, with newcomers: whose place each of them took is not told.

Every way to give newcomers places that are vacant when they come is equally likely. Under each, the cohort is a closed
one of as many places as it has rows; its worlds are counted, and beliefs are those of all ways together, each weighed
by its worlds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import permutations
from math import perm

import numpy as np
import polars as pl

from reveil.audit.infer.certain import State, no_world
from reveil.audit.infer.exact import Belief, Limits, solve
from reveil.audit.infer.filters import SEARCH
from reveil.audit.infer.infer import Inference
from reveil.audit.input.observed import Observed
from reveil.audit.model.model import Model, rebuilt
from reveil.base.arrays import I64
from reveil.base.errors import InputError

MOST_WAYS = 500  # to give newcomers of one cohort their places
Holders = dict[int, int]  # person -> place


def enter_takeovers(inference: Inference, of_group: I64, cohorts: I64, end: float) -> None:
    """Beliefs in these cohorts, where they can be counted; otherwise their people are undecided."""
    m, o = inference.model, inference.model.observed
    mine = np.isin(of_group[o.cand_group], cohorts)
    people = set(np.unique(o.app_person[mine]).tolist())
    inference.posterior = {key: share for key, share in inference.posterior.items() if not mine[key[0]]}
    inference.ever = {key: share for key, share in inference.ever.items() if key[0] not in people}
    order = np.argsort(of_group, kind="stable")
    bounds = np.searchsorted(of_group[order], [cohorts, cohorts + 1])
    for first, last in bounds.T.tolist():
        groups = np.sort(order[first:last])
        apps = np.concatenate([m.factor_apps[m.factor_start[g] : m.factor_start[g + 1]] for g in groups])
        beliefs = None if time.process_time() > end else _beliefs(m, groups, Limits(deadline=end))
        _enter(inference, apps, beliefs)
        inference.decided[apps] = beliefs is not None or inference.state.open_options[apps] == 1
        inference.methods["taken over"] = inference.methods.get("taken over", 0) + (beliefs is not None)


def _enter(inference: Inference, apps: I64, beliefs: Belief | None) -> None:
    m, state = inference.model, inference.state
    for a in apps.tolist():
        for option in range(m.opt_start[a], m.opt_start[a + 1]):
            if not state.alive[option]:
                continue
            if beliefs is None:
                inference.share[option] = 1.0 if state.open_options[a] == 1 else np.nan
                continue
            key = a, int(m.cell_value[m.opt_cell[option]])
            if key in beliefs:
                inference.posterior[key] = beliefs[key]
                inference.share[option] = float(beliefs[key])
            else:
                state.remove(option, SEARCH, a)


def _beliefs(m: Model, groups: I64, limits: Limits) -> Belief | None:
    """Of every appearance in these groups, in their order; None if there is too much to count, or a prior."""
    o = m.observed
    members = [o.app_person[m.factor_apps[m.factor_start[g] : m.factor_start[g + 1]]].tolist() for g in groups]
    if any(p in m.priors for people in members for p in people):
        return None
    size = int(o.group_rows[groups[0]])
    if _count_ways(members, size) > MOST_WAYS:
        return None
    total: Fraction = Fraction(0)
    sums: Belief = {}
    for holders in ways(members, size):
        counted = _counted(m, groups, members, holders, size, limits)
        if counted is None:
            return None
        weight, beliefs = counted
        total += weight
        for key, share in beliefs.items():
            sums[key] = sums.get(key, Fraction(0)) + weight * share
    if not total:
        raise no_world(m, int(groups[0]))
    return {key: weight / total for key, weight in sums.items()}


def _count_ways(members: Sequence[Sequence[int]], size: int) -> int:
    ways, seen = 1, set(members[0])
    for people in members[1:]:
        fresh = set(people) - seen
        ways *= perm(size - len(people) + len(fresh), len(fresh))
        seen |= fresh
    return ways


def ways(members: Sequence[Sequence[int]], size: int) -> Iterator[Holders]:
    """Who has which place: founders the first ones, newcomers any that nobody of their first release had before.

    >>> [holders[2] for holders in ways([[0, 1], [0], [0, 2]], 3)]
    [1, 2]
    """

    def fill(turn: int, holders: Holders) -> Iterator[Holders]:
        if turn == len(members):
            yield holders
            return
        taken = {holders[p] for p in members[turn] if p in holders}
        fresh = [p for p in members[turn] if p not in holders]
        for places in permutations([place for place in range(size) if place not in taken], len(fresh)):
            yield from fill(turn + 1, holders | dict(zip(fresh, places, strict=True)))

    return fill(1, {person: place for place, person in enumerate(members[0])})


def _counted(
    m: Model, groups: I64, members: Sequence[Sequence[int]], holders: Holders, size: int, limits: Limits
) -> tuple[Fraction, Belief] | None:
    """The weight of the worlds of one way, and its beliefs by appearance of the whole series."""
    o, turns = m.observed, len(groups)
    apps: dict[tuple[int, int], int] = {}  # (place, turn) -> appearance of whoever holds it
    for turn, group in enumerate(groups.tolist()):
        mine = m.factor_apps[m.factor_start[group] : m.factor_start[group + 1]].tolist()
        apps |= {(holders[p], turn): a for p, a in zip(members[turn], mine, strict=True)}
    pins = {place * turns + turn: m.pinned[a] for (place, turn), a in apps.items() if a in m.pinned}
    model = rebuilt(m, _places(o, groups, size), pins)
    state = State.start(model)
    try:
        state.narrow()
    except InputError:  # no world
        return Fraction(0), {}
    chains = [tuple(range(place * turns, (place + 1) * turns)) for place in range(size)]
    solution = solve(state, chains, limits)
    if solution is None:
        return None
    shown = {(apps[divmod(a, turns)], v): p for (a, v), p in solution.posterior.items() if divmod(a, turns) in apps}
    return solution.worlds, shown


def _places(o: Observed, groups: I64, size: int) -> Observed:
    """These groups as one closed cohort: every place appears in each of them."""
    turns = len(groups)
    cells = np.concatenate([np.arange(o.cell_start[g], o.cell_start[g + 1]) for g in groups])
    return Observed(
        releases=o.releases,
        persons=pl.Series([f"place {n + 1}" for n in range(size)], dtype=pl.String),
        values=o.values,
        app_person=np.repeat(np.arange(size), turns),
        app_release=np.tile(o.group_release[groups], size),
        app_sure=np.ones(size * turns, dtype=bool),
        cand_start=np.arange(size * turns + 1),
        cand_group=np.tile(np.arange(turns), size),
        group_release=o.group_release[groups],
        group_label=tuple(o.group_label[g] for g in groups),
        group_fakes=np.zeros(turns, dtype=np.int64),
        cell_group=np.searchsorted(groups, o.cell_group[cells]).astype(np.int64),
        cell_value=o.cell_value[cells],
        cell_rows=o.cell_rows[cells],
    )
