"""Exact beliefs by counting worlds: people are placed one by one, and what matters of the past is only how many rows of
each cell are left in the groups that are still open (the *frontier*).

Weights are whole numbers (fractions are scaled up per person), so nothing is rounded. Forward and backward sums over
the same states give every posterior at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from reveil.audit.infer.certain import State
from reveil.audit.model.model import UNLIMITED, Model

Chain = tuple[int, ...]  # appearances of one person whose values depend on each other
Belief = dict[tuple[int, int], Fraction]  # (appearance or person, value) -> probability


@dataclass(frozen=True)
class Limits:
    """Beyond these, a component is left to sampling."""

    states: int = 20_000  # in one layer
    work: int = 2_000_000  # placements in all
    paths: int = 5_000  # of one person over time
    people: int = 400
    open_factors: int = 9  # that one person links on average; more cannot be counted if there are many people
    deadline: float = float("inf")
    witnessed: bool = False  # some world is known to fit everything, so that need not be shown


@dataclass(frozen=True)
class Path:
    """One way a person may go: the value at each appearance (None absent), the cells that it uses, and its weight."""

    values: tuple[int | None, ...]
    cells: tuple[int, ...]
    weight: Fraction


@dataclass(frozen=True, eq=False)
class Exact:
    """Beliefs in one component. `worlds` is their total weight."""

    posterior: Belief
    ever: Belief
    worlds: Fraction
    work: int


@dataclass(frozen=True, eq=False)
class CountingProblem:
    """One component: its chains and their paths, rows free in each cell, and what each group must be left with."""

    chains: tuple[Chain, ...]
    paths: tuple[tuple[Path, ...], ...]
    free: dict[int, int]  # cell -> rows not taken by people outside the component
    left: dict[int, int]  # group -> rows that must stay (only where it is not sure who is in it)


def chains_of(state: State, factors: Sequence[int]) -> list[Chain]:
    """The chains with an open choice in these factors: people, or single appearances where values change freely."""
    m, o = state.model, state.model.observed
    apps = np.concatenate([m.factor_apps[m.factor_start[f] : m.factor_start[f + 1]] for f in factors])
    if m.change == "freely":
        return [(a,) for a in sorted(apps.tolist()) if state.is_open(a)]
    if m.change == "never":  # whose group is open elsewhere only has a row here that is theirs
        apps = apps[state.open_options[apps] > 1]
    spans = [range(o.person_start[p], o.person_start[p + 1]) for p in np.unique(o.app_person[apps]).tolist()]
    return [tuple(span) for span in spans if any(state.is_open(a) for a in span)]


def paths_of(state: State, chain: Chain, limit: int) -> tuple[Path, ...] | None:
    """All ways a chain may go, or None if there are too many."""
    m, o = state.model, state.model.observed
    if m.change == "never" and o.located and int(o.app_person[chain[0]]) not in m.priors:
        return _lasting_paths(state, chain)
    choices = []
    for a in chain:
        span = range(m.opt_start[a], m.opt_start[a + 1])
        choices.append([int(m.opt_cell[i]) for i in span if state.alive[i]])
    paths = []
    for cells, values, weight in _walk(m, choices, m.priors.get(int(o.app_person[chain[0]]))):
        paths.append(Path(values, tuple(c for c in cells if m.cell_cap[c] < UNLIMITED), weight))
        if len(paths) > limit:
            return None
    return tuple(paths)


def _lasting_paths(state: State, chain: Chain) -> tuple[Path, ...]:
    """One path per value, where values never change and membership is known."""
    m, one = state.model, Fraction(1)
    cells: dict[int, list[int]] = {v: [] for v in sorted(state.values_of(chain[0]))}
    for a in chain:
        if not m.implied[m.app_factor[a]]:
            for c in m.opt_cell[m.opt_start[a] : m.opt_start[a + 1]].tolist():
                v = int(m.cell_value[c])
                if v in cells:
                    cells[v].append(c)
    return tuple(Path((v,) * len(chain), tuple(mine), one) for v, mine in cells.items())


def _walk(
    m: Model, choices: list[list[int]], prior: dict[int, Fraction] | None
) -> Iterator[tuple[tuple[int, ...], tuple[int | None, ...], Fraction]]:
    """Depth first over the appearances; the chain is checked as the walk goes."""
    one = Fraction(1)

    def step(last: int | None, value: int) -> Fraction:
        if last is None or m.change == "freely":
            return one if prior is None else prior.get(value, Fraction(0))
        if m.moves is None:
            return one if last == value else Fraction(0)
        return m.moves[last].get(value, Fraction(0))

    def walk(
        i: int, last: int | None, weight: Fraction
    ) -> Iterator[tuple[tuple[int, ...], tuple[int | None, ...], Fraction]]:
        if i == len(choices):
            yield (), (), weight
            return
        for cell in choices[i]:
            value = int(m.cell_value[cell])
            if value < 0:
                for cells, values, total in walk(i + 1, last, weight):
                    yield (cell, *cells), (None, *values), total
                continue
            factor = step(last, value)
            if factor:
                for cells, values, total in walk(i + 1, value, weight * factor):
                    yield (cell, *cells), (value, *values), total

    return walk(0, None, one)


def problem_of(state: State, chains: Sequence[Chain], limits: Limits) -> CountingProblem | None:
    """The component of these chains (all with an open choice), or None if one may go too many ways."""
    m, o = state.model, state.model.observed
    paths = []
    for chain in chains:
        routes = paths_of(state, chain, limits.paths)
        if routes is None:
            return None
        paths.append(routes)
    inside = {a for chain in chains for a in chain}
    factors = {int(m.app_factor[a]) for a in inside if m.change != "never" or state.is_open(a)}  # elsewhere, rows are
    # theirs, and others may have a choice that is no matter of this component
    paths = [_trimmed(m, routes, factors) for routes in paths]
    touched = {c for options in paths for path in options for c in path.cells}
    free = {c: int(m.cell_cap[c]) for c in sorted(touched)}
    left: dict[int, int] = {}
    for f in factors:
        if m.implied[f]:
            continue
        cells = range(m.cell_start[f], m.cell_start[f + 1])
        if not o.located:
            free |= {c: int(m.cell_cap[c]) for c in cells if m.cell_group[c] >= 0}
            if not m.tight[f]:
                left |= {int(g): int(o.group_fakes[g]) for g in m.cell_group[cells.start : cells.stop] if g >= 0}
        for a in m.factor_apps[m.factor_start[f] : m.factor_start[f + 1]]:
            if int(a) not in inside:
                _take(state, int(a), free)
    return CountingProblem(tuple(chains), tuple(paths), free, {g: n for g, n in left.items() if n >= 0})


def _take(state: State, app: int, free: dict[int, int]) -> None:
    """Somebody outside has nothing to choose: their row is gone."""
    m = state.model
    for i in range(m.opt_start[app], m.opt_start[app + 1]):
        if state.alive[i] and int(m.opt_cell[i]) in free:
            free[int(m.opt_cell[i])] -= 1


def _trimmed(m: Model, paths: tuple[Path, ...], factors: set[int]) -> tuple[Path, ...]:
    """Without the cells of factors that are implied by others, or none of these."""
    owner = np.searchsorted(m.cell_start, [c for path in paths for c in path.cells], side="right") - 1
    skip = iter([m.implied[f] or f not in factors for f in owner.tolist()])
    return tuple(Path(p.values, tuple([c for c in p.cells if not next(skip)]), p.weight) for p in paths)


def order_people(paths: Sequence[Sequence[Path]]) -> list[int]:
    """The order in which people are placed."""
    return order_sets([frozenset(c for path in options for c in path.cells) for options in paths])


def order_sets(cells: Sequence[frozenset[int]]) -> list[int]:
    """Greedy: next who opens the fewest new cells, counting those that are closed by it."""
    waiting: dict[int, int] = {}
    for mine in cells:
        for c in mine:
            waiting[c] = waiting.get(c, 0) + 1
    opened: set[int] = set()
    rest, order = set(range(len(cells))), []
    while rest:
        best = min(rest, key=lambda i: (len(cells[i] - opened) - sum(waiting[c] == 1 for c in cells[i]), i))
        rest.remove(best)
        order.append(best)
        opened |= cells[best]
        for c in cells[best]:
            waiting[c] -= 1
            if not waiting[c]:
                opened.discard(c)
    return order


class _Frontier:
    """States as whole numbers: each open cell has a few bits that say how many of its rows are left."""

    def __init__(self, problem: CountingProblem, order: Sequence[int]) -> None:
        self.bits = {c: max(1, n.bit_length()) for c, n in problem.free.items()}
        place, self.shift = 0, {}
        for c in problem.free:
            self.shift[c] = place
            place += self.bits[c]
        self.full = sum(n << self.shift[c] for c, n in problem.free.items())
        last: dict[int, int] = {}
        for number, person in enumerate(order):
            for path in problem.paths[person]:
                for c in path.cells:
                    last[c] = number
        self.closing: list[list[int]] = [[] for _ in order]  # cells that nobody later can use
        for c, number in last.items():
            self.closing[number].append(c)

    def rows(self, state: int, cell: int) -> int:
        return (state >> self.shift[cell]) & ((1 << self.bits[cell]) - 1)


def solve(state: State, chains: Sequence[Chain], limits: Limits = Limits()) -> Exact | None:  # noqa: B008 it is frozen
    """Every posterior in the component of these chains, or None if it is too large to count."""
    if len(chains) > limits.people:
        return None
    problem = problem_of(state, chains, limits)
    return None if problem is None else count(problem, state.model, limits)


def count(problem: CountingProblem, m: Model, limits: Limits) -> Exact | None:
    """Forward and backward over the frontier."""
    if hopeless(problem, limits):
        return None
    order = order_people(problem.paths)
    frontier = _Frontier(problem, order)
    scales = [lcm(*(path.weight.denominator for path in options)) for options in problem.paths]
    layers: list[dict[int, int]] = [{frontier.full: 1}]
    moves: list[list[tuple[int, int, int, int]]] = []  # per person: (from, to, path, weight)
    work = 0
    for number, person in enumerate(order):
        step = _place(problem, frontier, layers[-1], number, person, scales[person])
        work += len(step)
        after: dict[int, int] = {}
        before = layers[-1]
        for source, target, _, weight in step:
            after[target] = after.get(target, 0) + before[source] * weight
        if len(after) > limits.states or work > limits.work or time.process_time() > limits.deadline:
            return None
        layers.append(after)
        moves.append(step)
    behind = {s: 1 for s in layers[-1] if _settled(problem, frontier, m, s)}
    total = sum(layers[-1][s] for s in behind)
    if not total:
        return Exact({}, {}, Fraction(0), work)
    posterior, ever = _beliefs(problem, order, layers, moves, behind, total, m)
    scale = 1
    for s in scales:
        scale *= s
    return Exact(posterior, ever, Fraction(total, scale), work)


def hopeless(problem: CountingProblem, limits: Limits) -> bool:
    """Many people who each link many groups: the frontier would be too wide, so counting is not begun."""
    links = sum(max(len(path.cells) for path in options) for options in problem.paths)
    return len(problem.paths) > 40 and links > limits.open_factors * len(problem.paths)


def _place(
    problem: CountingProblem, frontier: _Frontier, layer: dict[int, int], number: int, person: int, scale: int
) -> list[tuple[int, int, int, int]]:
    """All ways to place one person in every state of the layer."""
    clear = 0
    for c in frontier.closing[number]:
        if not problem.left:
            clear |= ((1 << frontier.bits[c]) - 1) << frontier.shift[c]
    options = [
        (n, path.cells, sum(1 << frontier.shift[c] for c in path.cells), int(path.weight * scale))
        for n, path in enumerate(problem.paths[person])
    ]
    step = []
    for state in layer:
        for n, cells, delta, weight in options:
            for c in cells:
                rows = frontier.rows(state, c)
                if not rows:
                    break
                weight *= rows
            else:
                step.append((state, (state - delta) & ~clear, n, weight))
    return step


def _settled(problem: CountingProblem, frontier: _Frontier, m: Model, state: int) -> bool:
    """Every group is left with its counterfeits."""
    if not problem.left:
        return True
    rest = dict.fromkeys(problem.left, 0)
    for c in problem.free:
        group = int(m.cell_group[c])
        if group in rest:
            rest[group] += frontier.rows(state, c)
    return all(rest[g] == n for g, n in problem.left.items())


def _beliefs(
    problem: CountingProblem,
    order: Sequence[int],
    layers: list[dict[int, int]],
    moves: list[list[tuple[int, int, int, int]]],
    behind: dict[int, int],
    total: int,
    m: Model,
) -> tuple[Belief, Belief]:
    posterior: Belief = {}
    ever: Belief = {}
    for number in range(len(order) - 1, -1, -1):
        person, ahead = order[number], layers[number]
        earlier: dict[int, int] = {}
        share = [0] * len(problem.paths[person])
        for source, target, path, weight in moves[number]:
            rest = behind.get(target)
            if rest:
                part = weight * rest
                earlier[source] = earlier.get(source, 0) + part
                share[path] += ahead[source] * part
        behind = earlier
        _credit(problem, person, share, total, m, posterior, ever)
    return posterior, ever


def _credit(
    problem: CountingProblem, person: int, share: list[int], total: int, m: Model, posterior: Belief, ever: Belief
) -> None:
    chain = problem.chains[person]
    who = int(m.observed.app_person[chain[0]])
    apps: dict[tuple[int, int], int] = {}
    once: dict[tuple[int, int], int] = {}
    for path, weight in zip(problem.paths[person], share, strict=True):
        if not weight:
            continue
        for app, value in zip(chain, path.values, strict=True):
            key = (app, -1 if value is None else value)
            apps[key] = apps.get(key, 0) + weight
        for value in {v for v in path.values if v is not None}:
            once[who, value] = once.get((who, value), 0) + weight
    posterior.update({key: Fraction(weight, total) for key, weight in apps.items()})
    ever.update({key: Fraction(weight, total) for key, weight in once.items()})
