"""Lasting values: equalities and worlds next to a known one, until nothing new follows.

What some world has is possible, and what no world has is excluded; whoever has two values in worlds is not exposed,
also where it is not settled what else they may have. First people are moved out of each other's way, which settles
most in no time; what that leaves open is settled component by component by linear programs (`programs.py`). Where
groups overlap, a choice is a value and a group in each release; elsewhere it is a value.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from reveil.audit.infer.certain import State
from reveil.audit.infer.exact import CountingProblem, Limits, chains_of, problem_of
from reveil.audit.infer.filters import SEARCH
from reveil.audit.infer.handing import handed
from reveil.audit.infer.linear import equalities
from reveil.audit.infer.programs import Decided, Program, program_of
from reveil.audit.infer.search import first_world
from reveil.audit.infer.worlds import EFFORT, Choices, lasting_choices, problem_choices
from reveil.base.arrays import I64, Bools
from reveil.base.progress import Progress

MANY = 500  # components
MOVING = 0.25  # share of the time for moving people, before linear programs
PLACING = 2.0  # seconds of giving everybody a value one by one, before a solver is asked
KEPT = 8  # worlds of a component, for whoever samples it later
LONG = 100_000  # ways of a component, where groups overlap: more are not listed
SEVERAL = Limits(paths=500)  # ways of one person, where groups overlap


@dataclass(eq=False)
class Settling:
    """What is settled so far. `others` are people who were not asked about."""

    state: State
    end: float
    others: Bools
    world: I64 | None  # the value of everybody in some world, where everybody's group is known
    loose: Bools = field(init=False)  # factors in whose components looking for equalities was too much work
    settled: Bools = field(init=False)  # people of whom every open value is possible
    seen: Bools = field(init=False)  # options that some world has
    worlds: list[I64] = field(default_factory=list)  # that were found: options of the model, component by component
    held: dict[int, frozenset[int]] = field(default_factory=dict)  # cells of people in a world, where groups overlap

    def __post_init__(self) -> None:
        self.loose = np.zeros(self.state.model.factors, dtype=bool)
        self.settled = self.state.fixed_people()
        self.seen = np.zeros(len(self.state.alive), dtype=bool)

    @property
    def moving(self) -> float:
        """Until when people are moved, this turn."""
        now = time.process_time()
        return now + MOVING * max(0.0, self.end - now)

    @property
    def late(self) -> bool:
        return time.process_time() > self.end

    def run(self, progress: Progress) -> None:
        """Turn by turn: worlds near the known one, then equalities, then linear programs, before the long searches."""
        state, turn = self.state, 0
        progress("equalities", 0.0)
        if len(np.unique(state.components())) <= MANY:  # of more, only those that moving people does not settle
            self.equate(np.ones(state.model.factors, dtype=bool))
        self.settled |= state.fixed_people()
        while True:
            progress("worlds", float(np.mean(self.settled)))
            gone = near_worlds(self, EFFORT[min(turn, len(EFFORT) - 1)])
            progress("equalities", float(np.mean(self.settled)))
            news = self.equate(gone if turn else unsettled(state, self.settled | self.others)) or bool(gone.any())
            self.settled |= state.fixed_people()
            progress("programs", float(np.mean(self.settled)))
            gone = self.solve()
            news = self.equate(gone) or bool(gone.any()) or news
            self.settled |= state.fixed_people()
            turn += 1
            if self.late or (turn >= len(EFFORT) and not news):
                return

    def solve(self) -> Bools:
        """Linear programs of the components that are not settled, small ones first; says in which factors something
        was excluded."""
        state, wanted = self.state, unsettled(self.state, self.settled | self.others)
        label, changed = state.components(), np.zeros(state.model.observed.people, dtype=bool)
        parts, sizes = np.unique(label[wanted & (label >= 0)], return_counts=True)
        for part in parts[np.argsort(sizes, kind="stable")].tolist():
            if self.late:
                break
            program = program_of(state, label == part)
            if program is not None and program.facts:
                changed |= self._decide(program)
        return _narrowed(state, label, changed)

    def _decide(self, program: Program) -> Bools:
        """Settle one component as far as time allows; says of whom something was excluded."""
        seen = np.zeros(program.facts, dtype=bool)
        seen[program.option_fact[self.seen[program.option] & (program.option_fact >= 0)]] = True
        decided = Decided(program, seen, self.end, np.zeros(program.facts, dtype=bool))
        whose = program.classes.person[program.classes.owner]
        asked = np.zeros(program.facts, dtype=bool)
        told = program.option_fact >= 0
        asked[program.option_fact[told & ~self.others[whose]]] = True
        decided.run(asked)
        rng = np.random.default_rng(len(self.worlds))
        worlds = [handed(program, world, rng) for world in decided.worlds[-KEPT:]]
        self.worlds += [program.option[world] for world in worlds]
        shown = told & decided.seen[program.option_fact]
        shown |= np.isin(program.classes.twin, program.classes.twin[np.concatenate([np.zeros(0, np.int64), *worlds])])
        self.seen[program.option[shown]] = True
        gone = told & decided.dead[program.option_fact]
        self.settled[np.setdiff1d(whose, whose[~(shown | gone)])] = True
        changed = np.zeros(self.state.model.observed.people, dtype=bool)
        for n in np.flatnonzero(gone).tolist():
            if self.state.alive[option := int(program.option[n])]:
                self.state.remove(option, SEARCH, int(whose[n]))
                changed[whose[n]] = True
        return changed

    def equate(self, factors: Bools) -> bool:
        """Equalities in the components of these factors, as often as something new follows from them. Says whether
        anything did. Where it was too much work, the factors of the component are marked as loose."""
        state, news = self.state, False
        while factors.any() and (left := self.end - time.process_time()) > 0:
            label = state.components()
            groups = np.bincount(label[label >= 0], minlength=1)
            many = (label >= 0) & (groups[label] > 1)  # the filter of a single one is complete
            wanted = np.isin(label, label[factors & many])
            closure = equalities(state, label, wanted, left / 2)
            self.loose[wanted] = np.isin(label[wanted], closure.left)
            changed = state.equate(closure.equalities)
            factors = _around(state, label, changed)
            news = news or bool(changed.any())
        self.loose |= factors
        return news


def _around(state: State, label: I64, people: Bools) -> Bools:
    """Factors of the components of these people."""
    factors = state.model.app_factor[people[state.model.observed.app_person]]
    return np.isin(label, label[factors]) & (label >= 0)


def unsettled(state: State, settled: Bools) -> Bools:
    """Factors with people who are not settled."""
    m, o = state.model, state.model.observed
    doubtful = np.zeros(m.factors, dtype=bool)
    doubtful[m.app_factor[~settled[o.app_person]]] = True
    return doubtful


def near_worlds(s: Settling, effort: int) -> Bools:
    """Worlds next to a known one (found, where none is given) in components that are not settled, of people who were
    asked about; says in which factors something was excluded. Enters who is settled, and options seen in a world."""
    wanted = unsettled(s.state, s.settled | s.others)
    label = s.state.components()
    dead = _of_known_groups(s, wanted, effort) if s.state.model.observed.located else _of_overlaps(s, wanted, effort)
    if not len(dead):
        return np.zeros(s.state.model.factors, dtype=bool)
    changed = np.zeros(s.state.model.observed.people, dtype=bool)
    for option in dead:
        person = int(s.state.model.observed.app_person[s.state.model.app_of(option)])
        s.state.remove(option, SEARCH, person)
        changed[person] = True
    return _narrowed(s.state, label, changed)


def _narrowed(state: State, label: I64, changed: Bools) -> Bools:
    """What follows once something of these people was excluded; says in which factors it may."""
    gone = _around(state, label, changed)
    state.narrow(np.zeros_like(gone), changed)
    return gone


def _of_known_groups(s: Settling, wanted: Bools, effort: int) -> Sequence[int]:
    """Options that no world has, where everybody's group is known and a choice is a value."""
    m = s.state.model
    choices = lasting_choices(s.state, wanted)
    if not len(choices.person):
        return ()
    value = m.cell_value[m.opt_cell[choices.label]]
    if s.world is not None:
        choices.begin_with(s.world, value)
    elif _placed(choices, s.end):
        s.world = np.full(m.observed.people, -1, dtype=np.int64)
        s.world[choices.person] = value[choices.chosen]
    else:
        return ()
    choices.seen |= s.seen[choices.label]
    choices.settle(s.moving, ~s.others[choices.person], (effort,))
    s.seen[choices.label[choices.seen]] = True
    s.settled[choices.person[~choices.open_people]] = True
    dead: list[int] = choices.label[choices.dead].tolist()
    return dead


def _placed(choices: Choices, end: float) -> bool:
    """Find a world: by giving people values one by one or, where that takes too long, by a solver."""
    now = time.process_time()
    placed = choices.place(min(end, now + PLACING))
    if placed is None:
        chosen = first_world(choices.start, choices.path_start, choices.path, choices.rows, end - time.process_time())
        if chosen is not None:
            choices.begin(chosen)
            return True
    return bool(placed)


def _of_overlaps(s: Settling, wanted: Bools, effort: int) -> Sequence[int]:
    """The same where groups overlap, component by component."""
    dead: list[int] = []
    label = s.state.components()
    for part in np.unique(label[wanted & (label >= 0)]).tolist():
        if s.late:
            break
        if _ways(s.state, label == part) > LONG:
            continue  # listing them takes longer than a program
        chains = chains_of(s.state, np.nonzero(label == part)[0].tolist())
        problem = problem_of(s.state, chains, SEVERAL)
        if problem is not None and not problem.left:
            dead += _in_component(s, problem, effort)
    return dead


def _ways(state: State, factors: Bools) -> float:
    """About how many ways people of these factors have in all: a value, and in each release a cell of it or none."""
    m, o = state.model, state.model.observed
    options = np.flatnonzero(state.alive & m.by_option(factors[m.app_factor] & (state.open_options > 1)))
    app = np.searchsorted(m.opt_start, options, side="right") - 1
    value = m.cell_value[m.opt_cell[options]]
    apps, place = np.unique(app, return_inverse=True)
    pairs = np.unique(np.stack([place, value])[:, value >= 0], axis=1)
    values = np.bincount(pairs[0], minlength=len(apps))
    cells = np.bincount(place[value >= 0], minlength=len(apps)) / np.maximum(values, 1)
    each = cells + np.bincount(place[value < 0], minlength=len(apps))
    people, whose = np.unique(o.app_person[apps], return_inverse=True)
    most = np.zeros(len(people))
    np.maximum.at(most, whose, values)
    return float((most * np.exp(np.bincount(whose, np.log(np.maximum(each, 1)), len(people)))).sum())


def _in_component(s: Settling, problem: CountingProblem, effort: int) -> list[int]:
    """Options of one component that no world has."""
    person = s.state.model.observed.app_person
    people = [int(person[chain[0]]) for chain in problem.chains]
    choices = problem_choices(problem)
    if all(p in s.held for p in people):
        kept = np.array([_kept(s.held[p], problem, n) for n, p in enumerate(people)], dtype=np.int64)
        choices.begin(choices.start[:-1] + kept)
    elif not _placed(choices, s.end):
        return []
    mark = _Marks(s, problem)
    choices.settle(s.moving, ~s.others[people], (effort,))
    for n, p in enumerate(people):
        s.held[p] = frozenset(problem.paths[n][int(choices.chosen[n] - choices.start[n])].cells)
    return mark.enter(choices)


def _kept(held: frozenset[int], problem: CountingProblem, n: int) -> int:
    """The way of the n-th person that takes the cells they hold in the known world, and as many as it can."""
    ways = [(len(path.cells), at) for at, path in enumerate(problem.paths[n]) if held.issuperset(path.cells)]
    return max(ways)[1]


@dataclass(frozen=True, eq=False)
class _Marks:
    """What is seen and dead of ways, entered for options."""

    s: Settling
    problem: CountingProblem

    def enter(self, choices: Choices) -> list[int]:
        dead: list[int] = []
        for n, chain in enumerate(self.problem.chains):
            span = slice(int(choices.start[n]), int(choices.start[n + 1]))
            seen, gone = choices.seen[span], choices.dead[span]
            dead += self._person(chain, n, seen, gone)
        return dead

    def _person(self, chain: tuple[int, ...], n: int, seen: Bools, gone: Bools) -> list[int]:
        """Options by value: seen where some way with the value is, dead where all are."""
        m, state = self.s.state.model, self.s.state
        dead: list[int] = []
        done = True
        for place, app in enumerate(chain):
            values = [-1 if p.values[place] is None else p.values[place] for p in self.problem.paths[n]]
            shown = {v for v, good in zip(values, seen, strict=True) if good}
            left = {v for v, bad in zip(values, gone, strict=True) if not bad}
            done = done and left <= shown
            for option in range(m.opt_start[app], m.opt_start[app + 1]):
                value = int(m.cell_value[m.opt_cell[option]])
                self.s.seen[option] |= bool(state.alive[option] and value in shown)
                if state.alive[option] and value not in left:
                    dead.append(option)
        if done:
            self.s.settled[int(m.observed.app_person[chain[0]])] = True
        return dead
