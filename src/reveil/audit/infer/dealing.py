"""Beliefs in large components of people whose values last: rows are dealt out anew, a few people at a time.

Several chains begin at different worlds: those that were found before, and others that a solver finds. They wander for
a while; where they hang, a world near by is looked for that differs there, and the people who had to change together
for it are listed, so that later steps take back the rows of just these. Lists stay as they are while beliefs are
counted. A person has a belief only if the chains agree about all of their values.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from reveil.audit.infer.agreement import Agreed, Stretches, agreement
from reveil.audit.infer.certain import State
from reveil.audit.infer.handing import handed
from reveil.audit.infer.programs import Program, Wish, found_world, program_of
from reveil.audit.infer.refill import Hands, Listed, Tangle, fresh_table, wander
from reveil.audit.infer.worlds import Choices, lasting_choices
from reveil.base.arrays import I64, Bools, offsets_by_key, offsets_of

CHAINS, FEWEST = 8, 4  # that begin at different worlds; fewer tell too little
ROUND = 10  # sweeps between two looks at the clock
SWEEPS = 20_000  # of each chain, at most
LEAST = 4  # stretches of a chain that are compared
TOGETHER = 40  # people of one list, at most
NEAR = 12  # values that one world is to have, if it can
WANTED = 30  # what each of them weighs, against one person who stays as they are
MOVES = 400  # tried for one value
TARGETS = 20_000  # values that are looked for by moves
BEGIN, LEARN = 0.25, 0.4  # shares of the time: until all chains have begun, and until lists are complete


@dataclass(eq=False)
class Dealing:
    """One component, its chains, and who is listed to change together."""

    state: State
    factors: Bools
    program: Program
    tangle: Tangle
    hands: list[Hands]
    lists: set[tuple[int, ...]] = field(default_factory=set)

    @property
    def listed(self) -> Listed:
        people = [person for one in sorted(self.lists) for person in one]
        return Listed(offsets_of([len(one) for one in sorted(self.lists)]), np.array(people, dtype=np.int64))

    @cached_property
    def values(self) -> tuple[I64, I64]:
        """Options put together by what they say of an appearance: the number of each, and the first of each number."""
        keys = np.stack([self.program.option_app, self.program.option_value])
        _, first, place = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        return place.ravel().astype(np.int64), first.astype(np.int64)

    def run(self, end: float, sweeps: int, rng: np.random.Generator, *, until_good: bool) -> Agreed | None:
        """Wander until the time is up, or (`until_good`) everybody is agreed about; what the chains agree about."""
        listed, classes = self.listed, self.program.classes
        table = fresh_table(self.tangle, listed)
        twin, size = classes.twin, classes.size[classes.of_person[classes.owner]]
        place, first = self.values
        owner = classes.of_person[classes.owner[first]]
        tally, done, look = Stretches(len(self.hands), len(first)), 0, 10
        while done * ROUND < sweeps and (len(tally.full) < LEAST or time.process_time() < end):
            now = np.zeros((len(self.hands), len(twin)))
            for hands, mine in zip(self.hands, now, strict=True):
                wander(self.tangle, listed, hands, table, ROUND, int(rng.integers(1 << 31)), mine)
            pooled = np.array([np.bincount(twin, mine, len(twin)) for mine in now])
            shares = pooled[:, twin] / (ROUND * size)  # of a class, everybody has the same belief
            tally.add(np.array([np.bincount(place, mine, len(first)) for mine in shares]))
            done += 1
            if until_good and done == look:
                look = 2 * done
                if agreement(tally.kept, owner, ROUND * tally.length).good.all():
                    break
        kept = tally.kept
        return agreement(kept, owner, ROUND * tally.length) if len(kept) > 1 else None

    def learn(self, slow: Bools, end: float, rng: np.random.Generator) -> None:
        """Worlds near by with values that chains hardly reach: who changes there is listed."""
        leading = np.flatnonzero(slow & self.program.classes.leading)
        if self.state.model.observed.located:
            self._learn_by_moves(leading, end, rng)
        self._learn_by_solver(leading, end, rng)

    def _learn_by_moves(self, slow: I64, end: float, rng: np.random.Generator) -> None:
        choices = lasting_choices(self.state, self.factors)
        t = self.tangle
        if len(choices.person) != len(t.person_start) - 1:
            return
        value = self.state.model.cell_value[self.state.model.opt_cell[choices.label]]
        targets = _chosen(choices, value, self.program.classes.owner[slow], t.opt_value[slow])
        for n, target in enumerate(rng.permutation(np.unique(targets))[:TARGETS].tolist()):
            if n % 50 == 0 and time.process_time() > end:
                return
            held = self.hands[int(rng.integers(len(self.hands)))].held
            has = t.opt_value[held[t.person_start[:-1]]]
            other = choices.moved(_chosen(choices, value, np.arange(len(has)), has), target, MOVES)
            if other is not None:
                self.list(held, _options_of(t, value[other]), rng)

    def _learn_by_solver(self, slow: I64, end: float, rng: np.random.Generator) -> None:
        facts, program = np.unique(self.program.option_fact[slow]), self.program
        facts = facts[facts >= 0]
        rng.shuffle(facts)
        for first in range(0, len(facts), NEAR):
            left = end - time.process_time()
            if left <= 0:
                return
            wanted = np.zeros(program.facts, dtype=bool)
            wanted[facts[first : first + NEAR]] = True
            held = self.hands[int(rng.integers(len(self.hands)))].held
            said = held[program.option_column[held] >= 0]
            pairs = np.unique(np.stack([program.classes.owner[said], program.option_column[said]]), axis=1)
            now = np.bincount(pairs[1], minlength=len(program.size)).astype(np.int64)  # people, by column
            aim = program.count(wanted)
            wish = Wish(aim * WANTED + (now > 0), np.where(aim > 0, 1, np.maximum(now, 1)))
            world = found_world(program, wish, program.size, left)
            if world is not None:
                self.list(held, handed(program, world, rng, near=held), rng)

    def list(self, one: I64, two: I64, rng: np.random.Generator) -> None:
        """Who changes between two worlds, as few together as can be: of each cell, somebody comes for who goes."""
        t = self.tangle
        apps = np.flatnonzero(one != two)
        leaves, comes = (_by_cell(t.opt_cell[held[apps]], t.app_person[apps], rng) for held in (one, two))
        pairs = [(p, q) for cell in leaves for p, q in zip(leaves[cell], comes.get(cell, ()), strict=False)]
        people = len(t.person_start) - 1
        links = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        graph = coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(people, people))
        label = connected_components(graph, directed=False)[1]
        who = np.unique(t.app_person[apps])
        for part in np.unique(label[who]):
            together = who[label[who] == part]
            if len(together) <= TOGETHER:
                self.lists.add(tuple(together.tolist()))


def _by_cell(cells: I64, people: I64, rng: np.random.Generator) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for n in rng.permutation(len(cells)):
        found.setdefault(int(cells[n]), []).append(int(people[n]))
    return found


def can_be_dealt(state: State, factors: Bools) -> bool:
    """Whether nothing is demanded of the component but that no cell has more takers than rows."""
    m, o = state.model, state.model.observed
    if m.change != "never" or o.located:
        return bool(m.change == "never")
    loose = np.flatnonzero(factors & ~m.tight)
    groups = [g for f in loose for g in m.cell_group[m.cell_start[f] : m.cell_start[f + 1]] if g >= 0]
    return bool((o.group_fakes[groups] < 0).all())


def dealing_of(
    state: State, factors: Bools, end: float, rng: np.random.Generator, known: Sequence[I64] = ()
) -> Dealing | None:
    """The component with chains that begin at worlds far from one another; None where too few are found in time.

    `known` worlds are options of the model; others come from a solver."""
    program = program_of(state, factors) if can_be_dealt(state, factors) else None
    if program is None:
        return None
    tangle, rows = tangle_of(state, factors, program)
    begun = [held for world in known if (held := _held_in(program, tangle, world)) is not None][-CHAINS:]
    while len(begun) < CHAINS and (left := end - time.process_time()) > 0:
        world = found_world(program, Wish(rng.integers(0, 4, len(program.size)), program.size), program.size, left)
        if world is None:
            break
        begun.append(handed(program, world, rng))
    if len(begun) < FEWEST:
        return None
    full = [rows - np.bincount(tangle.opt_cell[held], minlength=len(rows)) for held in begun]
    hands = [Hands(held, room) for held, room in zip(begun, full, strict=True)]
    dealing = Dealing(state, factors, program, tangle, hands)
    for one, two in combinations(hands, 2):
        dealing.list(one.held, two.held, rng)
    return dealing


def _held_in(program: Program, tangle: Tangle, world: I64) -> I64 | None:
    """A world of the model as one of the component: the option of each appearance; None if it is about others."""
    held = np.flatnonzero(np.isin(program.option, world))
    app = np.searchsorted(tangle.opt_start, held, side="right") - 1
    return held if np.array_equal(app, np.arange(len(tangle.app_person))) else None


def tangle_of(state: State, factors: Bools, program: Program) -> tuple[Tangle, I64]:
    """The component as it is dealt out, with the options of its program, and rows of its cells."""
    m, o = state.model, state.model.observed
    inside = factors[m.app_factor] & (state.open_options > 1) & ~m.implied[m.app_factor]
    apps = np.flatnonzero(inside)  # by person and release
    people, person = np.unique(o.app_person[apps], return_inverse=True)
    option = program.option
    local = np.cumsum(inside) - 1
    app = local[np.searchsorted(m.opt_start, option, side="right") - 1].astype(np.int64)
    cell = m.opt_cell[option].astype(np.int64)
    cells, place = np.unique(cell, return_inverse=True)
    groups, group = np.unique(np.append(m.cell_group[cell], -1), return_inverse=True)
    group = group[:-1].astype(np.int64) - 1  # -1: not there
    pairs = np.unique(np.stack([group, app]), axis=1)
    pairs = pairs[:, pairs[0] >= 0]
    weight = np.ones(len(option))
    for n in np.flatnonzero(np.isin(o.app_person[apps[app]], list(m.priors))):
        weight[n] = float(m.priors[int(o.app_person[apps[app[n]]])].get(int(m.cell_value[cell[n]]), 1))
    tangle = Tangle(
        offsets_by_key(person, len(people)), person.astype(np.int64), offsets_by_key(app, len(apps)),
        place.astype(np.int64), m.cell_value[cell], group, weight, offsets_by_key(pairs[0], len(groups) - 1),
        pairs[1].copy(),
    )  # fmt: skip
    return tangle, state.free_rows[cells].astype(np.int64)


def _chosen(choices: Choices, value: I64, person: I64, has: I64) -> I64:
    """The choices with which these people (by place) have these values; `value` of each choice."""
    width = int(value.max(initial=0)) + 1
    keys = choices.owner * width + value
    order = np.argsort(keys)
    chosen: I64 = order[np.searchsorted(keys[order], person * width + has)]
    return chosen


def _options_of(t: Tangle, values: I64) -> I64:
    """The option of each appearance, where everybody's group is known and a value says it."""
    app = np.repeat(np.arange(len(t.app_person)), np.diff(t.opt_start))
    return np.flatnonzero(t.opt_value == values[t.app_person[app]])


def deal(
    state: State, factors: Bools, end: float, sweeps: int | None, seed: int, known: Sequence[I64] = ()
) -> tuple[Dealing, Agreed] | None:
    """Beliefs of one component by `end` (of processor time), or after so many sweeps; None where nothing came of it."""
    rng, start = np.random.default_rng(seed), time.process_time()
    begin = start + BEGIN * (end - start) if sweeps is None else end
    dealing = dealing_of(state, factors, begin, rng, known)
    if dealing is None:
        return None
    most = SWEEPS if sweeps is None else sweeps
    learning = start + LEARN * (end - start)
    first = dealing.run((time.process_time() + learning) / 2, max(4 * ROUND, most // 5), rng, until_good=sweeps is None)
    if first is None or first.good.all():
        return None if first is None else (dealing, first)
    slow = (~first.good | (first.mean == 0))[dealing.values[0]]
    dealing.learn(slow, learning, rng)
    agreed = dealing.run(end, most, rng, until_good=sweeps is None)
    return None if agreed is None else (dealing, agreed)


def compiled_deals() -> None:
    """Compile what chains need, so that this does not count as their time."""
    one, two = np.zeros(1, dtype=np.int64), np.array([0, 1])
    tangle = Tangle(two, one, two, one, one, one, np.ones(1), two, one)
    listed = Listed(one, np.zeros(0, dtype=np.int64))
    wander(tangle, listed, Hands(one.copy(), one.copy()), fresh_table(tangle, listed), 1, 1, np.zeros(1))
