"""A search for worlds where counting is too long, one component at a time: by moves from a world, then by CP-SAT.

Each world that is found shows that everything in it is possible. When no world contains any of what is left, all of
that is certainly excluded. When the time is up, what is left stays undecided.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from reveil.audit.infer.certain import State
from reveil.audit.infer.exact import Chain, CountingProblem, Limits, problem_of
from reveil.audit.infer.worlds import problem_choices

Fact = tuple[int, int]  # appearance, value (-1 absent)
PATHS = 60_000  # of a whole component


@dataclass(frozen=True)
class SearchResult:
    """What a search showed: facts that some world has, and whether the others are excluded."""

    possible: frozenset[Fact]
    facts: frozenset[Fact]
    finished: bool

    @property
    def excluded(self) -> frozenset[Fact]:
        return self.facts - self.possible if self.finished else frozenset()


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
    possible, left = (set[Fact](), everything) if problem.left else _by_moves(problem, facts, end)
    if not left - possible:
        return SearchResult(frozenset(possible), everything, True)
    while possible != everything and (seconds := end - time.process_time()) > 0:
        status, world = _world(problem, state, facts, possible, seconds)
        if status == "none":
            return SearchResult(frozenset(possible), everything, True)
        if status == "unknown":
            break
        for paths, chosen in zip(facts, world, strict=True):
            possible |= set(paths[chosen])
    return SearchResult(frozenset(possible), everything, possible == everything)


def _by_moves(problem: CountingProblem, facts: list[list[list[Fact]]], end: float) -> tuple[set[Fact], frozenset[Fact]]:
    """Facts that worlds near one another have, and all that may still be possible."""
    choices = problem_choices(problem)
    if choices.place(end):
        choices.settle(end)
    listed = [fact for paths in facts for fact in paths]
    seen = {fact for path, shown in zip(listed, choices.seen, strict=True) if shown for fact in path}
    return seen, frozenset(fact for path, dead in zip(listed, choices.dead, strict=True) if not dead for fact in path)


def _facts(chain: Chain, values: Sequence[int | None]) -> list[Fact]:
    return [(a, -1 if v is None else v) for a, v in zip(chain, values, strict=True)]


def _world(
    problem: CountingProblem, state: State, facts: list[list[list[Fact]]], possible: set[Fact], seconds: float
) -> tuple[str, tuple[int, ...]]:
    """A world with something new, as much as can be had soon."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    chosen = [[model.new_bool_var("") for _ in paths] for paths in problem.paths]
    users: dict[int, list[cp_model.IntVar]] = {}
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
            count = sum(fact not in possible for fact in mine)
            if count:
                news.append(count * variable)
    model.add(sum(news) >= 1)
    model.maximize(sum(news))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(0.05, seconds)
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = 2.0
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return "none", ()
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return "unknown", ()
    return "found", tuple(next(n for n, v in enumerate(variables) if solver.value(v)) for variables in chosen)
