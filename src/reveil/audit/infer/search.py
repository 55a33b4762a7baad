"""A search for worlds where counting is too long, one component at a time: by moves from a world, then by CP-SAT.

Each world that is found shows that everything in it is possible. First come those of whom fewer than two values were
seen, for they may be exposed; then the rest. When no world contains any of what is wanted, all of that is certainly
excluded. When the time is up, what is left stays undecided.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reveil.audit.infer.certain import State
from reveil.audit.infer.exact import Chain, CountingProblem, Limits, problem_of
from reveil.audit.infer.worlds import Choices, problem_choices
from reveil.base.arrays import I32, I64

Fact = tuple[int, int]  # appearance, value (-1 absent)
Facts = list[list[list[Fact]]]  # of each chain, of each of its paths
PATHS = 60_000  # of a whole component
WORKERS = 2  # strategies of the solver; one alone often finds nothing
PATIENT = 3  # times as long by the clock, at most
PATIENCE = 1.0  # the solver's own measure of work for one world


@dataclass(frozen=True)
class SearchResult:
    """What a search showed: facts that some world has, facts that none has, and all that were asked about."""

    possible: frozenset[Fact]
    facts: frozenset[Fact]
    excluded: frozenset[Fact]

    @property
    def finished(self) -> bool:
        return self.possible | self.excluded == self.facts


def search(state: State, chains: Sequence[Chain], seconds: float) -> SearchResult | None:
    """Look for worlds until everything is shown or excluded; None if the component cannot be written down."""
    problem = problem_of(state, chains, Limits(paths=2_000))
    if problem is None or sum(map(len, problem.paths)) > PATHS:
        return None
    return sweep(problem, state, time.process_time() + seconds)


def sweep(problem: CountingProblem, state: State, end: float) -> SearchResult:
    facts = [
        [_facts(chain, path.values) for path in paths]
        for chain, paths in zip(problem.chains, problem.paths, strict=True)
    ]
    everything = frozenset(fact for paths in facts for path in paths for fact in path)
    possible, excluded = (set[Fact](), set[Fact]()) if problem.left else _by_moves(problem, facts, end)
    for urgent in (True, False):
        while wanted := _open_facts(everything, possible, excluded, urgent=urgent):
            seconds = end - time.process_time()
            status, world = _world(problem, state, facts, wanted, seconds) if seconds > 0 else ("unknown", ())
            if status == "none":
                excluded |= wanted
            elif status == "unknown":
                break
            for paths, chosen in zip(facts, world, strict=bool(world)):
                possible |= set(paths[chosen])
    return SearchResult(frozenset(possible), everything, frozenset(excluded - possible))


def _open_facts(facts: frozenset[Fact], possible: set[Fact], excluded: set[Fact], *, urgent: bool) -> set[Fact]:
    """Facts that are neither shown nor excluded; if urgent, those of appearances with fewer than two that are shown."""
    rest = facts - possible - excluded
    if not urgent:
        return set(rest)
    shown: dict[int, int] = {}
    for app, _ in possible:
        shown[app] = shown.get(app, 0) + 1
    return {fact for fact in rest if shown.get(fact[0], 0) < 2}


def _by_moves(problem: CountingProblem, facts: Facts, end: float) -> tuple[set[Fact], set[Fact]]:
    """Facts that worlds near one another have, and those that none has."""
    choices = problem_choices(problem)
    now = time.process_time()
    if choices.place(min(end, now + (end - now) / 10)) or _by_solver(choices, end):
        choices.settle(now + (end - now) / 2)
    listed = [fact for paths in facts for fact in paths]
    seen = {fact for path, shown in zip(listed, choices.seen, strict=True) if shown for fact in path}
    left = {fact for path, dead in zip(listed, choices.dead, strict=True) if not dead for fact in path}
    return seen, {fact for path in listed for fact in path} - left


def _by_solver(choices: Choices, end: float) -> bool:
    chosen = first_world(choices.start, choices.path_start, choices.path, choices.rows, end - time.process_time())
    if chosen is not None:
        choices.begin(chosen)
    return chosen is not None


def first_world(start: I64, path_start: I64, path: I32, rows: I64, seconds: float) -> I64 | None:
    """A choice for everybody such that no cell has more takers than rows, or None if none was found in time."""
    if seconds <= 0 or len(path_start) > PATHS:
        return None
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    variables = [model.new_bool_var("") for _ in range(len(path_start) - 1)]
    users: dict[int, list[Any]] = {}
    for n in range(len(start) - 1):
        model.add_exactly_one(variables[start[n] : start[n + 1]])
    for n, variable in enumerate(variables):
        for cell in path[path_start[n] : path_start[n + 1]].tolist():
            users.setdefault(cell, []).append(variable)
    for cell, takers in users.items():
        model.add(sum(takers) <= int(rows[cell]))
    solver = exact_solver(seconds)
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return np.flatnonzero([solver.value(variable) for variable in variables]).astype(np.int64)


def exact_solver(seconds: float) -> Any:
    """A solver for about so many seconds by its own measure: on a busy machine the clock tells nothing."""
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.max_deterministic_time = max(0.05, seconds / WORKERS)
    solver.parameters.max_time_in_seconds = max(1.0, PATIENT * seconds)
    solver.parameters.num_workers = WORKERS
    return solver


def _facts(chain: Chain, values: Sequence[int | None]) -> list[Fact]:
    return [(a, -1 if v is None else v) for a, v in zip(chain, values, strict=True)]


def _world(
    problem: CountingProblem, state: State, facts: Facts, wanted: set[Fact], seconds: float
) -> tuple[str, tuple[int, ...]]:
    """A world with something that is wanted, as much as can be had soon."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    chosen = [[model.new_bool_var("") for _ in paths] for paths in problem.paths]
    users: dict[int, list[Any]] = {}
    for variables, paths in zip(chosen, problem.paths, strict=True):
        model.add_exactly_one(variables)
        for variable, path in zip(variables, paths, strict=True):
            for cell in path.cells:
                users.setdefault(cell, []).append(variable)
    for cell, variables in users.items():
        model.add(sum(variables) <= problem.free[cell])
    for group, rows in problem.left.items():
        cells = [c for c in problem.free if state.model.cell_group[c] == group]
        taken = [v for c in cells for v in users.get(c, [])]
        model.add(sum(taken) == sum(problem.free[c] for c in cells) - rows)
    news = []
    for variables, options in zip(chosen, facts, strict=True):
        for variable, mine in zip(variables, options, strict=True):
            if count := sum(fact in wanted for fact in mine):
                news.append(count * variable)
    model.add(sum(news) >= 1)
    model.maximize(sum(news))
    solver = exact_solver(seconds)
    solver.parameters.max_deterministic_time = min(PATIENCE, max(0.05, seconds))
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return "none", ()
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return "unknown", ()
    return "found", tuple(next(n for n, v in enumerate(variables) if solver.value(v)) for variables in chosen)
