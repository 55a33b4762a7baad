"""All inference in order: filters, equalities, then each component by what suits it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from reveil.audit.infer.certain import State, no_world
from reveil.audit.infer.exact import Belief, Chain, CountingProblem, Exact, Limits, Path, chains_of, count, problem_of
from reveil.audit.infer.filters import SEARCH
from reveil.audit.infer.linear import ready
from reveil.audit.infer.lumped import count_lumped, lump
from reveil.audit.infer.search import Fact, SearchResult, search
from reveil.audit.infer.settling import Settling, unsettled
from reveil.audit.infer.uniform import Floats, enter_uniform
from reveil.audit.infer.worlds import compiled
from reveil.audit.model.model import Model
from reveil.audit.model.options import carry_over
from reveil.base.arrays import I64, Bools
from reveil.base.progress import Progress, silent

SETTLING = 0.8  # share of the time for worlds near one another; the rest is for counting and searching
KEPT = 100_000  # beliefs kept as exact fractions; those of larger series become shares at once


@dataclass(eq=False)
class Inference:
    """What follows. `methods` counts components by how they were settled: filters, uniform, exact, search, undecided.

    `posterior` and `ever` hold the exact fractions of components that were counted.
    """

    state: State
    decided: Bools  # by appearance: everything still open is truly possible
    share: Floats  # probability of each option, nan where it was not computed
    posterior: Belief = field(default_factory=dict)
    ever: Belief = field(default_factory=dict)
    methods: dict[str, int] = field(default_factory=dict)
    pending: list[list[int]] = field(default_factory=list)  # components without exact beliefs: their factors
    worlds: list[I64] = field(default_factory=list)  # found on the way: options, component by component
    loose: Bools = field(init=False)  # factors in whose components looking for equalities was too much work
    clear: Bools = field(init=False)  # by appearance: not certain, for two of its values were seen in worlds

    def __post_init__(self) -> None:
        self.loose = np.zeros(self.model.factors, dtype=bool)
        self.clear = np.zeros(len(self.decided), dtype=bool)

    @property
    def model(self) -> Model:
        return self.state.model


def infer(
    model: Model,
    *,
    limits: Limits | None = None,
    seconds: float = 60.0,
    people: Sequence[int] | None = None,
    beliefs: bool = True,
    world: I64 | None = None,
    progress: Progress = silent,
) -> Inference:
    """Everything certain, and exact beliefs where counting is short enough.

    `seconds` of computing (not of waiting for others) bound what comes after the filters, a component begun is
    finished; `people` narrow that to their components. `world` is a value for everybody that is known to fit, where
    values never change.
    """
    progress("excluding", 0.0)
    compiled()
    state = State.start(model)
    state.narrow()
    lasting = model.change == "never"
    if lasting:
        ready()
    start = time.process_time()
    inference = Inference(state, np.ones(len(model.app_factor), dtype=bool), np.full(len(model.opt_cell), np.nan))
    settled = np.zeros(model.observed.people, dtype=bool)
    others = np.zeros(len(settled), dtype=bool) if people is None else ~np.isin(np.arange(len(settled)), people)
    if lasting:
        settling = Settling(state, start + seconds * SETTLING, others, world)
        settling.run(progress)
        settled, inference.loose, inference.worlds = settling.settled, settling.loose, settling.worlds
        inference.clear = _seen_twice(state, settling.seen)
    _components(inference, limits or Limits(), start + seconds, others, beliefs, settled, progress)
    _fill_shares(inference)
    return inference


def members(state: State) -> list[list[int]]:
    """The factors of each component."""
    label = state.components()
    busy = np.nonzero(label >= 0)[0]
    order = busy[np.argsort(label[busy], kind="stable")]
    cuts = np.nonzero(np.diff(label[order]))[0] + 1
    return [part.tolist() for part in np.split(order, cuts)] if len(order) else []


def _components(
    inference: Inference,
    limits: Limits,
    end: float,
    others: Bools,
    beliefs: bool,
    settled: Bools,
    progress: Progress,
) -> None:
    """Count, or search, component by component: those first in which something is not settled yet of people who were
    asked about, that is of all but `others`."""
    state, cache = inference.state, dict[Any, Any]()
    person = state.model.observed.app_person
    parts = members(state)
    alone = np.zeros(state.model.factors, dtype=bool)
    if state.model.change != "transitions":
        alone[[factors[0] for factors in parts if len(factors) == 1]] = True
    uniform = enter_uniform(state, alone, inference.share)
    doubtful = unsettled(state, settled | others) & ~alone
    known = [not doubtful[part].any() for part in parts]
    for number, at in enumerate(np.argsort(known, kind="stable").tolist()):
        factors, done = parts[at], known[at]
        if number % 64 == 0:
            progress("components", number / len(parts))
        if alone[factors[0]] and (uniform[factors[0]] or not beliefs):
            _count(inference, "uniform" if uniform[factors[0]] else "filters")  # the filter of one factor is complete
            continue
        if done and (not beliefs or time.process_time() > end):
            _possible(inference, factors, single=bool(alone[factors[0]]))
            continue
        chains = chains_of(state, factors)
        if others[[int(person[c[0]]) for c in chains]].all():
            _leave(inference, chains, settled)
            continue
        exact = solve_cached(state, chains, replace(limits, deadline=end), cache) if time.process_time() < end else None
        if exact is not None:
            _take_exact(inference, exact, chains)
        elif done:
            _possible(inference, factors, single=bool(alone[factors[0]]))
            inference.decided[[] if alone[factors[0]] else _doubted(inference, chains, settled)] = False
        elif not (doubts := _doubted(inference, chains, settled)) or inference.clear[doubts].all():
            _count(inference, "two values seen")
            inference.pending.append(factors)
            inference.decided[doubts] = False
        else:
            _search(inference, factors, chains, end, settled)
    state.narrow()


def _seen_twice(state: State, seen: Bools) -> Bools:
    """Appearances of people with two values that were seen in worlds, where values last."""
    m, o = state.model, state.model.observed
    values: dict[int, set[int]] = {}
    options = np.nonzero(seen & state.alive)[0]
    owner = np.searchsorted(m.opt_start, options, side="right") - 1
    for person, value in zip(o.app_person[owner].tolist(), m.cell_value[m.opt_cell[options]].tolist(), strict=True):
        if value >= 0:
            values.setdefault(person, set()).add(value)
    twice = np.zeros(o.people, dtype=bool)
    twice[[person for person, mine in values.items() if len(mine) > 1]] = True
    clear: Bools = twice[o.app_person]
    return clear


def _fill_shares(inference: Inference) -> None:
    """What was counted, by option; and where values never change, the same for all appearances of a person."""
    m, state = inference.model, inference.state
    _enter(inference, inference.posterior)
    inference.share[state.alive & m.by_option(state.open_options == 1)] = 1.0
    carry(inference)


def carry(inference: Inference) -> None:
    """What is believed of a lasting value in one release is believed in those that add nothing to it."""
    m, o, state = inference.model, inference.model.observed, inference.state
    if m.change == "never" and m.implied.any():
        lists = (o.person_start, m.opt_start, m.opt_cell, m.cell_value)
        carry_over(*lists, state.alive, inference.share, len(o.values))


def _enter(inference: Inference, beliefs: Belief) -> None:
    """Beliefs as shares of options; where a value has several options (groups that overlap), they share it equally."""
    m, alive = inference.model, inference.state.alive
    for (app, value), share in beliefs.items():
        span = range(m.opt_start[app], m.opt_start[app + 1])
        mine = [i for i in span if alive[i] and m.cell_value[m.opt_cell[i]] == value]
        for option in mine:
            inference.share[option] = share / len(mine)


def _count(inference: Inference, method: str) -> None:
    inference.methods[method] = inference.methods.get(method, 0) + 1


def _possible(inference: Inference, factors: list[int], *, single: bool) -> None:
    """What is possible is settled, beliefs are not."""
    _count(inference, "filters" if single else "possible")
    inference.pending.append(factors)


def _doubted(inference: Inference, chains: list[Chain], settled: Bools) -> list[int]:
    """Appearances of people of whom it is not settled which open values are possible."""
    person = inference.model.observed.app_person
    return [a for chain in chains for a in chain if not settled[person[a]]]


def _leave(inference: Inference, chains: list[Chain], settled: Bools) -> None:
    _count(inference, "not looked at")
    inference.decided[_doubted(inference, chains, settled)] = False


def _take_exact(inference: Inference, exact: Exact, chains: list[Chain]) -> None:
    _count(inference, "exact")
    if not exact.worlds:
        raise no_world(inference.model, int(inference.model.app_factor[chains[0][0]]))
    _exclude(inference.state, chains, set(exact.posterior))
    if len(inference.posterior) < KEPT:
        inference.posterior |= exact.posterior
    else:
        _enter(inference, exact.posterior)
    if inference.model.change == "transitions":
        inference.ever |= exact.ever


def _exclude(state: State, chains: Sequence[Chain], possible: set[tuple[int, int]]) -> None:
    """Remove options that no world uses, at appearances of which something is said."""
    m = state.model
    told = {app for app, _ in possible}
    for chain in chains:
        for app in told.intersection(chain):
            for option in range(m.opt_start[app], m.opt_start[app + 1]):
                if state.alive[option] and (app, int(m.cell_value[m.opt_cell[option]])) not in possible:
                    state.remove(option, SEARCH, app)


def _exclude_facts(state: State, facts: Iterable[Fact]) -> None:
    """Remove options that no world uses."""
    m = state.model
    for app, value in facts:
        for option in range(m.opt_start[app], m.opt_start[app + 1]):
            if state.alive[option] and int(m.cell_value[m.opt_cell[option]]) == value:
                state.remove(option, SEARCH, int(m.observed.app_person[app]))


def _search(inference: Inference, factors: list[int], chains: list[Chain], end: float, settled: Bools) -> None:
    left = end - time.process_time()
    result: SearchResult | None = search(inference.state, chains, min(left, 20.0)) if left > 0 else None
    inference.pending.append(factors)
    if result is not None:
        _exclude_facts(inference.state, result.excluded)
    if result is not None and result.finished:
        _count(inference, "search")
        return
    _count(inference, "undecided")
    if inference.loose[factors].any():
        _count(inference, "equalities too much work")
    open_apps = _doubted(inference, chains, settled)
    if result is not None:
        shown: dict[int, set[int]] = {}
        for app, value in result.possible:
            shown.setdefault(app, set()).add(value)
        open_apps = [a for a in open_apps if inference.state.values_of(a) != shown.get(a, set())]
        inference.clear[[a for a, values in shown.items() if len(values) > 1]] = True
    inference.decided[open_apps] = False


def solve_cached(state: State, chains: Sequence[Chain], limits: Limits, cache: dict[Any, Any]) -> Exact | None:
    """As `solve`, remembering components that are alike but for the names of people, groups and values."""
    if len(chains) > limits.people:
        return None
    problem = problem_of(state, chains, limits)
    if problem is None:
        return None
    lumped = lump(problem, state.model)
    if lumped is not None:
        return count_lumped(problem, lumped, state.model, limits, cache)
    if problem.left or len(chains) > 60:
        return count(problem, state.model, limits)
    key, back = _shape(problem)
    if key not in cache:
        plain = count(problem, state.model, limits)
        cache[key] = None if plain is None else (plain, _relative(plain, problem, back, state.model))
        return plain
    if cache[key] is None:
        return None
    first, (posterior, ever) = cache[key]
    values = {n: v for v, n in back.items()}
    person = state.model.observed.app_person
    return Exact(
        {(problem.chains[c][i], values[v] if v >= 0 else -1): share for (c, i, v), share in posterior.items()},
        {(int(person[problem.chains[c][0]]), values[v]): share for (c, v), share in ever.items()},
        first.worlds,
        first.work,
    )


def _shape(problem: CountingProblem) -> tuple[Any, dict[int, int]]:
    """The component with cells and values numbered by first use."""
    cell: dict[int, int] = {}
    value: dict[int, int] = {}

    def plain(path: Path) -> tuple[Any, ...]:
        cells = tuple(cell.setdefault(c, len(cell)) for c in path.cells)
        values = tuple(-1 if v is None else value.setdefault(v, len(value)) for v in path.values)
        return cells, values, path.weight

    paths = tuple(tuple(plain(path) for path in options) for options in problem.paths)
    return (paths, tuple(problem.free[c] for c in cell)), value


def _relative(
    exact: Exact, problem: CountingProblem, number: dict[int, int], m: Model
) -> tuple[dict[tuple[int, int, int], Fraction], dict[tuple[int, int], Fraction]]:
    """Beliefs by place in the component instead of by name."""
    place = {app: (c, i) for c, chain in enumerate(problem.chains) for i, app in enumerate(chain)}
    who = {int(m.observed.app_person[chain[0]]): c for c, chain in enumerate(problem.chains)}
    posterior = {(*place[a], number[v] if v >= 0 else -1): share for (a, v), share in exact.posterior.items()}
    ever = {(who[p], number[v]): share for (p, v), share in exact.ever.items()} if m.change != "freely" else {}
    return posterior, ever
