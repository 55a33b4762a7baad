"""Beliefs in large components of people whose values last: rows are dealt out anew, a few people at a time.

Several chains begin at different worlds, which a solver finds. Before anything is counted, they wander for a while;
where they hang, a solver finds the nearest world that differs there, and the people who had to change together for it
are listed, so that later steps take back the rows of just these. Lists stay as they are while beliefs are counted. A
person has a belief only if the chains agree about each of their values.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import t as student

from reveil.audit.infer.certain import State
from reveil.audit.infer.programs import Program, found_world, program_of
from reveil.audit.infer.refill import Floats, Hands, Listed, Tangle, fresh_table, wander
from reveil.base.arrays import I64, Bools, offsets_by_key, offsets_of

CHAINS, FEWEST = 8, 4  # that begin at different worlds; fewer tell too little
ROUND = 10  # sweeps between two looks at the clock
SWEEPS = 5_000  # of each chain, at most
SURE = (
    0.995  # of intervals that are stated at 95 %: so that they hold where the chains are few and values hang together
)
TOGETHER = 40  # people of one list, at most
NEAR = 12  # values that one world is to have, if it can
WANTED = 30  # what each of them weighs, against one person who stays as they are
REACHED = 20.0  # independent samples of a value that the chains reach well
BEGIN, LEARN = 0.25, 0.45  # shares of the time: until all chains have begun, and until lists are complete


@dataclass(frozen=True, eq=False)
class Agreed:
    """What chains say of options: mean, R-hat of their halves, and how many independent samples it is worth."""

    mean: Floats
    rhat: Floats
    worth: Floats
    samples: int
    width: float  # of an interval, in deviations

    def good(self, enough: float) -> Bools:
        fine: Bools = (self.rhat < 1.1) & (self.worth >= enough)
        return fine


@dataclass(eq=False)
class Dealing:
    """One component, its chains, and who is listed to change together."""

    program: Program
    tangle: Tangle
    option: I64  # of the model, by option of the tangle
    hands: list[Hands]
    lists: set[tuple[int, ...]] = field(default_factory=set)

    @property
    def listed(self) -> Listed:
        people = [person for one in sorted(self.lists) for person in one]
        return Listed(offsets_of([len(one) for one in sorted(self.lists)]), np.array(people, dtype=np.int64))

    @property
    def owner(self) -> I64:
        """The person of each option."""
        return np.repeat(self.tangle.app_person, np.diff(self.tangle.opt_start))

    def run(self, end: float, sweeps: int, rng: np.random.Generator) -> Agreed | None:
        """Wander until the time is up, and say what the chains agree about."""
        listed, rounds = self.listed, list[list[Floats]]()
        table = fresh_table(self.tangle, listed)
        while len(rounds) * ROUND < sweeps and (len(rounds) < 2 or time.process_time() < end):
            tallies = [np.zeros(len(self.option)) for _ in self.hands]
            for hands, tally in zip(self.hands, tallies, strict=True):
                wander(self.tangle, listed, hands, table, ROUND, int(rng.integers(1 << 31)), tally)
            rounds.append(tallies)
        kept = np.array(rounds[len(rounds) // 5 :]) / ROUND  # rounds x chains x options
        return agreement(kept, ROUND) if len(kept) > 1 else None

    def learn(self, slow: Bools, end: float, rng: np.random.Generator) -> None:
        """The nearest worlds with values that chains hardly reach: who changes there is listed."""
        places = np.searchsorted(self.program.option, self.option)
        facts = np.unique(self.program.option_fact[places[slow]])
        most = np.ones(self.program.matrix.shape[1], dtype=np.int64)
        rng.shuffle(facts)
        for first in range(0, len(facts), NEAR):
            left = end - time.process_time()
            if left <= 0:
                return
            wanted = np.zeros(self.program.facts, dtype=bool)
            wanted[facts[first : first + NEAR]] = True
            held = self.hands[int(rng.integers(len(self.hands)))].held
            now = np.zeros(len(most), dtype=np.int64)
            now[self.program.option_column[places[held]]] = 1
            world = found_world(self.program, self.program.count(wanted) * WANTED + now, most, left)
            if world is not None:
                self.list(held, held_in(self.program, self.tangle, self.option, world), rng)

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


def dealing_of(state: State, factors: Bools, end: float, rng: np.random.Generator) -> Dealing | None:
    """The component with chains that begin at worlds far from one another; None where too few are found in time."""
    program = program_of(state, factors)
    if program is None or not can_be_dealt(state, factors):
        return None
    tangle, option, rows = tangle_of(state, factors)
    most, hands = np.ones(program.matrix.shape[1], dtype=np.int64), list[Hands]()
    while len(hands) < CHAINS and (left := end - time.process_time()) > 0:
        world = found_world(program, rng.integers(0, 4, len(most)), most, left)
        if world is None:
            break
        held = held_in(program, tangle, option, world)
        hands.append(Hands(held, rows - np.bincount(tangle.opt_cell[held], minlength=len(rows))))
    if len(hands) < FEWEST:
        return None
    dealing = Dealing(program, tangle, option, hands)
    for one, two in combinations(hands, 2):
        dealing.list(one.held, two.held, rng)
    return dealing


def tangle_of(state: State, factors: Bools) -> tuple[Tangle, I64, I64]:
    """The component as it is dealt out, the option of the model for each of its own, and rows of its cells."""
    m, o = state.model, state.model.observed
    inside = factors[m.app_factor] & (state.open_options > 1) & ~m.implied[m.app_factor]
    apps = np.flatnonzero(inside)  # by person and release
    people, person = np.unique(o.app_person[apps], return_inverse=True)
    option = np.flatnonzero(state.alive & m.by_option(inside))
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
    return tangle, option, state.free_rows[cells].astype(np.int64)


def held_in(program: Program, tangle: Tangle, option: I64, world: I64) -> I64:
    """The option of each appearance in a world."""
    shown = np.flatnonzero(world[program.option_column[np.searchsorted(program.option, option)]] > 0)
    app = np.searchsorted(tangle.opt_start, shown, side="right") - 1
    held = np.full(len(tangle.app_person), -1, dtype=np.int64)
    held[app] = shown
    assert (held >= 0).all()
    return held


def agreement(rounds: Floats, sweeps: int) -> Agreed:
    """From the shares of each round and chain: means of all, and how well halves of chains agree."""
    half, chains = len(rounds) // 2, rounds.shape[1]
    halves = np.concatenate([rounds[:half].mean(axis=0), rounds[half:].mean(axis=0)])
    whole = rounds.mean(axis=0)
    mean = whole.mean(axis=0)
    within = mean * (1 - mean)
    moving = within > 0
    rhat, worth = np.ones(len(mean)), np.full(len(mean), np.inf)
    rhat[moving] = np.sqrt(1 + halves.var(axis=0, ddof=1)[moving] / within[moving])
    samples = len(rounds) * sweeps * chains
    spread = np.maximum(whole.var(axis=0, ddof=1) / chains, within / samples)
    worth[moving] = within[moving] / spread[moving]
    return Agreed(mean, rhat, worth, samples, float(student.ppf(SURE, chains - 1)))


def deal(state: State, factors: Bools, end: float, sweeps: int | None, seed: int) -> tuple[Dealing, Agreed] | None:
    """Beliefs of one component by `end` (of processor time), or after so many sweeps; None where nothing came of it."""
    rng, start = np.random.default_rng(seed), time.process_time()
    dealing = dealing_of(state, factors, start + BEGIN * (end - start) if sweeps is None else end, rng)
    if dealing is None:
        return None
    most = SWEEPS if sweeps is None else sweeps
    learning = start + LEARN * (end - start)
    first = dealing.run((time.process_time() + learning) / 2, max(2 * ROUND, most // 5), rng)
    if first is not None:
        slow = ~first.good(REACHED) | (first.mean == 0)
        dealing.learn(slow, learning, rng)
    agreed = dealing.run(end, most, rng)
    return None if agreed is None else (dealing, agreed)


def people_agreed(dealing: Dealing, agreed: Agreed, enough: float) -> Sequence[int]:
    """People (of the tangle) about all of whose values the chains agree, and who have had more than one."""
    owner, people = dealing.owner, len(dealing.tangle.person_start) - 1
    fine, moved = np.ones(people, dtype=bool), np.zeros(people, dtype=bool)
    fine[owner[~agreed.good(enough)]] = False
    moved[owner[(agreed.mean > 0) & (agreed.mean < 1)]] = True
    return np.flatnonzero(fine & moved).tolist()


def compiled_deals() -> None:
    """Compile what chains need, so that this does not count as their time."""
    one, two = np.zeros(1, dtype=np.int64), np.array([0, 1])
    tangle = Tangle(two, one, two, one, one, one, np.ones(1), two, one)
    listed = Listed(one, np.zeros(0, dtype=np.int64))
    wander(tangle, listed, Hands(one.copy(), one.copy()), fresh_table(tangle, listed), 1, 1, np.zeros(1))
