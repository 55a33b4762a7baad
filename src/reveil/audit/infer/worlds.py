"""Worlds next to a known one. They settle what is possible, and a search that comes to its end settles what is not.

Everybody has *choices* (a value, or a course of values over time), each of which takes rows from cells. From a world,
one person is made to choose differently. Where a cell then has more takers than rows, one of the others must go, and
so on, until everything fits or every way has been tried. Only people near the first one are touched, so series of any
size are settled piece by piece.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.audit.infer.certain import State
from reveil.audit.infer.exact import CountingProblem
from reveil.audit.infer.moves import DEEPEST, FIELDS, FOUND, NONE, UNKNOWN, MoveTrail, Puzzle, World, explore
from reveil.base.arrays import I32, I64, Bools, offsets_of
from reveil.base.kernels import kernel

EFFORT = (50, 1_000)  # moves tried for one choice, in rounds over all that is open
AT_ONCE = 100_000  # moves between two looks at the clock, at least


@dataclass(eq=False)
class Choices:
    """People with a choice, what each choice takes, and a world (-1: nothing chosen yet)."""

    person: I64  # who they are, by number here
    start: I64  # choices of person p: start[p] to start[p + 1]
    label: I64  # what each choice stands for
    path_start: I64
    path: I32  # cells that choice i takes: path[path_start[i]:path_start[i + 1]]
    rows: I64  # free rows of each cell
    single: bool  # two choices of a person never take the same cell
    token: I64  # the value of each choice, numbered within components
    kind: I64  # of each token: exchanging two tokens of a kind maps worlds to worlds
    chosen: I64
    seen: Bools  # choices that some world makes
    dead: Bools  # choices that no world makes

    @cached_property
    def owner(self) -> I64:
        return np.repeat(np.arange(len(self.person)), np.diff(self.start))

    @cached_property
    def users(self) -> tuple[I64, I32]:
        """Choices that take cell c: users[1][users[0][c]:users[0][c + 1]]."""
        return users_of(self.path_start, self.path, len(self.rows))

    @property
    def open_people(self) -> Bools:
        """People with a choice that is neither seen nor dead."""
        still = np.zeros(len(self.person), dtype=bool)
        still[self.owner[~(self.seen | self.dead)]] = True
        return still

    def begin(self, chosen: I64) -> None:
        """Start from this world."""
        self.chosen[:] = chosen
        self.seen[chosen] = True

    def begin_with(self, values: I64, value_of: I64) -> None:
        """Start from the world in which people have these values; `value_of` each choice."""
        right = value_of == values[self.person[self.owner]]
        chosen = np.full(len(self.person), -1, dtype=np.int64)
        chosen[self.owner[right]] = np.nonzero(right)[0]
        self.begin(chosen)

    def place(self, end: float, effort: int = EFFORT[-1]) -> bool | None:
        """Find a world: people join one by one. False: there is none. None: not found in time."""
        outcome = self._explore(end, effort, np.ones(len(self.person), dtype=bool), placing=True)
        if outcome == NONE:
            return False
        if outcome == UNKNOWN:
            return None
        self.seen[self.chosen] = True
        return True

    def settle(self, end: float, wanted: Bools | None = None, effort: Sequence[int] = EFFORT) -> None:
        """From a world: look for others that make the open choices of these people, until each is seen or dead."""
        for most in effort:
            still = self.open_people if wanted is None else self.open_people & wanted
            if still.any():
                self._explore(end, most, still, placing=False)

    def moved(self, chosen: I64, wanted: int, most: int) -> I64 | None:
        """From the world in which everybody has `chosen`, one near by with this choice; None if none was found."""
        blank = np.ones(len(self.label), dtype=bool)
        blank[wanted] = False
        world = World(chosen.copy(), self._load(chosen), blank, np.zeros(len(self.label), dtype=bool))
        explore(self.owner[[wanted]], False, self._puzzle, world, self._trail, most)
        return world.chosen if world.chosen[self.owner[wanted]] == wanted else None

    @cached_property
    def _puzzle(self) -> Puzzle:
        return Puzzle(
            self.owner, self.start, self.path_start, self.path, *self.users, self.rows, self.single, self.token,
            self.kind,
        )  # fmt: skip

    @cached_property
    def _trail(self) -> MoveTrail:
        return fresh_trail(len(self.person), len(self.kind), int(np.diff(self.path_start).max(initial=1)))

    def _load(self, chosen: I64) -> I64:
        """How many take each cell."""
        takes = np.zeros(len(self.label), dtype=bool)
        takes[chosen[chosen >= 0]] = True
        return np.bincount(self.path[np.repeat(takes, np.diff(self.path_start))], minlength=len(self.rows))

    def _explore(self, end: float, most: int, who: Bools, *, placing: bool) -> int:
        world = World(self.chosen, self._load(self.chosen), self.seen, self.dead)
        numbers = np.nonzero(who)[0]
        at_once = max(1, AT_ONCE // most)
        for first in range(0, len(numbers), at_once):
            if time.process_time() > end:
                return UNKNOWN
            outcome: int = explore(numbers[first : first + at_once], placing, self._puzzle, world, self._trail, most)
            if placing and outcome != FOUND:
                return outcome
        return FOUND


def fresh_trail(people: int, tokens: int, longest: int) -> MoveTrail:
    """Room for a search in which a choice takes at most so many cells."""
    return MoveTrail(
        np.zeros(people, dtype=bool),
        np.zeros(tokens, dtype=np.int64),
        np.empty(people + 1, dtype=np.int64),
        np.empty((DEEPEST + 2, FIELDS), dtype=np.int64),
        np.empty((DEEPEST + 3) * longest, dtype=np.int64),
        np.zeros(3, dtype=np.int64),
    )


def compiled() -> None:
    """Compile what the search needs, so that this does not count as time of the search."""
    none, zero, blank = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros(0, dtype=bool)
    path = np.zeros(0, dtype=np.int32)
    nothing = Puzzle(none, zero, zero, path, zero, path, none, True, none, none)
    explore(none, False, nothing, World(none, none, blank, blank), fresh_trail(0, 0, 1), 1)


def lasting_choices(state: State, factors: Bools) -> Choices:
    """Where values never change and groups are known, the people of all components with one of these factors.

    A choice is a value, labelled by the option that has it in the person's first release."""
    m, o = state.model, state.model.observed
    label = state.components()
    wanted = np.isin(label, label[factors & (label >= 0)])
    people = np.unique(o.app_person[(state.open_options > 1) & (wanted & ~m.implied)[m.app_factor]])
    rows = state.free_rows
    start, first_option, path_start, path = list_choices(
        people, o.person_start, m.app_factor, m.implied, m.opt_start, m.opt_cell, m.cell_value, state.alive
    )
    factor = np.repeat(np.arange(m.factors), np.diff(m.cell_start))
    first = path[path_start[:-1]]
    name = label[factor[first]] * len(o.values) + m.cell_value[first]
    _, token = np.unique(name, return_inverse=True)
    taker = np.full(len(rows), -1, dtype=np.int64)
    taker[path] = np.repeat(token, np.diff(path_start))  # the same of all who take it: its value, in its component
    cells = np.nonzero(taker >= 0)[0]
    who = np.repeat(people, np.diff(start))
    kind = alike(token, who, taker[cells], factor[cells], rows[cells])
    return _fresh(people, start, first_option, path_start, path, rows, True, token, kind)


def alike(token: I64, person: I64, cell_token: I64, cell_factor: I64, cell_rows: I64) -> I64:
    """The kind of each token: alike are those that the same people may have, and that have as many rows in the same
    factors (compared by sums of random 128-bit numbers)."""
    sums = np.zeros((token.max(initial=-1) + 1, 2), dtype=np.uint64)
    for column, seed in enumerate((1, 2)):
        rng = np.random.default_rng(seed)
        salt = rng.integers(0, 1 << 63, size=4, dtype=np.uint64)
        np.add.at(sums[:, column], token, scrambled(person, salt[0], salt[1]))
        np.add.at(
            sums[:, column],
            cell_token,
            scrambled(scrambled(cell_factor, salt[2], salt[3]) + cell_rows.astype(np.uint64), salt[0], salt[2]),
        )
    _, kind = np.unique(sums, axis=0, return_inverse=True)
    return kind.astype(np.int64).ravel()


def scrambled(numbers: NDArray[Any], salt: np.uint64, other: np.uint64) -> NDArray[np.uint64]:
    """64 bits that look random (splitmix)."""
    z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + salt
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9) + other
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    hashed: NDArray[np.uint64] = z ^ (z >> np.uint64(31))
    return hashed


def _fresh(
    person: I64, start: I64, label: I64, path_start: I64, path: I32, rows: I64, single: bool, token: I64, kind: I64
) -> Choices:
    blank = np.zeros(len(label), dtype=bool)
    nobody = np.full(len(person), -1, dtype=np.int64)
    return Choices(person, start, label, path_start, path, rows, single, token, kind, nobody, blank, blank.copy())


def problem_choices(problem: CountingProblem) -> Choices:
    """One component as it is counted: a choice is a path, labelled by its number in the whole component."""
    cells = {c: n for n, c in enumerate(problem.free)}
    paths = [path for options in problem.paths for path in options]
    lengths = [len(path.cells) for path in paths]
    return _fresh(
        np.arange(len(problem.chains)),
        offsets_of([len(options) for options in problem.paths]),
        np.arange(len(paths)),
        offsets_of(lengths),
        np.array([cells[c] for path in paths for c in path.cells], dtype=np.int32),
        np.array(list(problem.free.values()), dtype=np.int64),
        False,
        np.arange(len(paths)),
        np.arange(len(paths)),
    )


@kernel
def users_of(path_start: I64, path: I32, cells: int) -> tuple[I64, I32]:
    """The choices that take each cell, in order."""
    start = np.zeros(cells + 1, dtype=np.int64)
    for c in path:
        start[c + 1] += 1
    for c in range(cells):
        start[c + 1] += start[c]
    place, users = start[:-1].copy(), np.empty(len(path), dtype=np.int32)
    for i in range(len(path_start) - 1):
        for c in path[path_start[i] : path_start[i + 1]]:
            users[place[c]] = i
            place[c] += 1
    return start, users


@kernel
def list_choices(
    people: I64,
    person_start: I64,
    app_factor: I64,
    implied: Bools,
    opt_start: I64,
    opt_cell: I32,
    cell_value: I64,
    alive: Bools,
) -> tuple[I64, I64, I64, I32]:
    """The open values of each person and the cells that each takes (start, label, path start, path)."""
    start = np.zeros(len(people) + 1, dtype=np.int64)
    size = 0
    for n in range(len(people)):
        first, last, apps = person_start[people[n]], person_start[people[n] + 1], 0
        for a in range(first, last):
            apps += not implied[app_factor[a]]
        start[n + 1] = start[n]
        for o in range(opt_start[first], opt_start[first + 1]):
            start[n + 1] += alive[o]
        size += (start[n + 1] - start[n]) * apps
    label = np.empty(start[-1], dtype=np.int64)
    path_start = np.zeros(start[-1] + 1, dtype=np.int64)
    path = np.empty(size, dtype=np.int32)
    i, at = 0, 0
    for n in range(len(people)):
        first, last = person_start[people[n]], person_start[people[n] + 1]
        for o in range(opt_start[first], opt_start[first + 1]):
            if not alive[o]:
                continue
            label[i] = o
            for a in range(first, last):
                if not implied[app_factor[a]]:
                    for x in range(opt_start[a], opt_start[a + 1]):
                        if cell_value[opt_cell[x]] == cell_value[opt_cell[o]]:
                            path[at] = opt_cell[x]
                            at += 1
            i += 1
            path_start[i] = at
    return start, label, path_start, path[:at]
