"""A component as a linear program: what no world has, proved by weights of its equations, and worlds found by a solver.

Columns count people of a class (of whom nothing tells any two apart, `alike.py`): how many have a value (where it
lasts), and how many are in a cell in one release, where one value may be in several. A *fact* is a value of a class, or
of its appearances in one release, where they may be absent: that somebody has it, and so that anybody may.

What the solver of linear programs says is not taken on trust. Any weights of the equations bound what a set of facts
can add up to, so its weights are rounded to whole numbers and the bound is worked out from these: if it is below one,
no world has any of the facts. A world that a solver finds is put into all equations before it counts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import bmat, coo_array, csr_array, eye_array, vstack

from reveil.audit.infer.alike import AlikePeople, classes_of
from reveil.audit.infer.certain import State
from reveil.audit.model.model import UNLIMITED, Model
from reveil.base.arrays import I64, Bools

SCALE = 1 << 20  # weights are whole multiples of 1/SCALE
HEAVIEST = 1 << 40  # weights from here on prove nothing; of lighter ones four million entries add up within 64 bits,
LARGEST = float(1 << 61)  # and sums up to here are taken
POSITIVE = 1e-6  # a share that is no rounding error
WIDEST = 60_000  # columns of a program
FRUITFUL = 20  # a world with less than one in so many of the facts that are wanted: better exclude some first
STEPS = 200_000  # of a solver of linear programs
NODES = 50  # of its tree that a solver looks at for one world
AMPLE = 10.0  # seconds for one world, at most
PATIENT = (1.5, 10.0)  # times as long by the clock, at least and at most
PROOF = 5.0  # the exact solver's own measure of work for one proof
BEGUN = time.perf_counter(), time.process_time()


@dataclass(frozen=True, eq=False)
class Program:
    """low <= matrix x columns <= high, and of each fact the columns that add up to it."""

    matrix: csr_array
    low: I64
    high: I64
    size: I64  # of each column: people of its class, so that it is no more
    fact: I64  # of each column, -1: it belongs to none
    person: I64  # of each fact, the first of its class
    classes: AlikePeople
    option: I64  # options of the model,
    option_app: I64  # whose they are,
    option_value: I64  # what they say,
    option_column: I64  # the column,
    option_having: I64  # that of having the value at all (-1: away)
    option_fact: I64  # and the fact that each stands for; -1 of either: being away where it only counts who has what
    option_cell: I64
    rows: I64  # of each cell of the model

    @property
    def facts(self) -> int:
        return len(self.person)

    @cached_property
    def exact(self) -> Bools:
        """Rows that are equations."""
        equal: Bools = self.low == self.high
        return equal

    def count(self, facts: Bools) -> I64:
        """1 for the columns of these facts."""
        return ((self.fact >= 0) & facts[self.fact]).astype(np.int64)

    def most(self, dead: Bools) -> I64:
        """How large columns may be if no world has these facts."""
        return self.size * (1 - self.count(dead))

    def of(self, columns: Bools) -> Bools:
        """Facts of these columns."""
        shown = np.zeros(self.facts, dtype=bool)
        shown[self.fact[columns & (self.fact >= 0)]] = True
        return shown

    def bound(self, count: I64, most: I64, weights: I64) -> float:
        """What `count` adds up to at most, by these weights of the rows (times SCALE), in whole numbers.

        Infinite where weights are so large that sums of 64 bits could wrap around: they then prove nothing.
        """
        if (weights >= HEAVIEST).any() or (weights <= -HEAVIEST).any():
            return float("inf")
        ends = np.where(weights > 0, self.high, self.low)
        rest = np.maximum(count * SCALE - self.matrix.T @ weights, 0)
        if np.abs(ends.astype(float)) @ np.abs(weights.astype(float)) + rest.astype(float) @ most > LARGEST:
            return float("inf")
        return (int(ends @ weights) + int(rest @ most)) / SCALE

    def is_world(self, columns: I64, most: I64) -> bool:
        held = self.matrix @ columns
        inside = (held >= self.low).all() and (held <= self.high).all()
        return bool(inside and (columns >= 0).all() and (columns <= most).all())


def program_of(state: State, factors: Bools) -> Program | None:
    """The program of one component, or None if it is too wide. Its columns are those of the first of each class."""
    m, o = state.model, state.model.observed
    inside = factors[m.app_factor] & (state.open_options > 1) & ~m.implied[m.app_factor]
    options = np.nonzero(state.alive & m.by_option(inside))[0]
    apps = np.searchsorted(m.opt_start, options, side="right") - 1
    classes = classes_of(o.app_person[apps], m.opt_cell[options].astype(np.int64), m.priors)
    app, cell = apps[classes.leading], m.opt_cell[options[classes.leading]].astype(np.int64)
    value, person = m.cell_value[cell], o.app_person[app]
    size = classes.size[classes.of_person[classes.owner[classes.leading]]]
    away, width = value < 0, len(o.values) + 1
    unsure = np.zeros(len(m.app_factor), dtype=bool)
    unsure[app[away]] = True
    _, pair, often = np.unique(app * width + value + 1, return_inverse=True, return_counts=True)
    enough = _covered(m, app, often[pair] > 1, unsure)[m.app_factor[app]]
    of_person = np.where(away, -1, person * width + value)
    keys, own = np.unique(of_person[~away], return_inverse=True)
    having = np.full(len(cell), -1)
    having[~away] = own
    listed = ~(enough & away)  # options that something is said of
    single = ~away & (enough | ((often[pair] == 1) & ~unsure[app]))
    column = np.where(single, having, -1)
    column[listed & ~single] = len(keys) + np.arange(np.count_nonzero(listed & ~single))
    if (columns := len(keys) + int(np.count_nonzero(listed & ~single))) > WIDEST:
        return None
    rows = _Equations(columns)
    first = np.unique(person, return_index=True)[1]
    rows.add(keys // width, np.arange(len(keys)), 1, size[first], size[first])  # everybody has one value
    linked = listed & ~single & ~away
    both = np.concatenate([column[linked], having[linked]]), np.concatenate([pair[linked], pair[linked]])
    sign = np.repeat([1, -1], np.count_nonzero(linked))
    once = np.unique(np.stack([*both, sign]), axis=1)  # in all cells of the value together as often as they have it
    low = np.where(unsure[_first(pair, app)], -_first(pair, size), 0)[np.unique(once[1])]
    rows.add(once[1], once[0], once[2], low, 0)
    perhaps = unsure[app] & ~enough
    many = size[perhaps][np.unique(app[perhaps], return_index=True)[1]]
    rows.add(app[perhaps], column[perhaps], 1, many, many)  # in one cell, or away
    _add_cells(rows, state, factors, cell[listed], column[listed], enough[listed])
    fact_key = np.where(perhaps, len(m.app_factor) * width + app * width + value + 1, of_person)[listed]
    _, leads, number = np.unique(fact_key, return_index=True, return_inverse=True)
    fact = np.full(len(cell), -1)
    fact[listed] = number
    of_column, sizes = np.full(columns, -1), np.empty(columns, dtype=np.int64)
    target = np.where(perhaps, column, having)
    of_column[target[listed]] = number
    sizes[column[listed]], sizes[having[~away]] = size[listed], size[~away]
    place = (np.cumsum(classes.leading) - 1)[classes.twin]  # of each option, that of the first of its class
    return Program(
        *rows.matrix(), sizes, of_column, person[listed][leads], classes, options, apps, value[place], column[place],
        having[place], fact[place], cell[place], state.free_rows,
    )  # fmt: skip


def _covered(m: Model, app: I64, several: Bools, unsure: Bools) -> Bools:
    """Factors of which it only matters that enough people have each value: everybody may be away, in one group at most,
    and who is there is whoever its rows are for."""
    bad = several | ~unsure[app]
    covered = m.tight.copy()
    covered[m.app_factor[app[bad]]] = False
    return covered


def _first(keys: I64, what: I64) -> I64:
    """Of each key, what belongs to its first place."""
    _, first = np.unique(keys, return_index=True)
    return what[first]


def _add_cells(rows: _Equations, state: State, factors: Bools, cell: I64, column: I64, enough: Bools) -> None:
    """Rows of each cell, and of groups of which it is known how many rows are invented. `enough`: options of cells that
    more people may have the value of."""
    m, o = state.model, state.model.observed
    owner = np.repeat(np.arange(m.factors), np.diff(m.cell_start))
    free = state.free_rows
    taken = m.cell_cap - free
    low = np.where(m.tight[owner], free, np.maximum(0, m.cell_low - taken))
    bounded = m.cell_cap[cell] < UNLIMITED
    listed = np.unique(cell[bounded])
    high = free.copy()
    high[cell[enough]] = m.observed.people
    rows.add(cell[bounded], column[bounded], 1, low[listed], high[listed])
    if o.located or not (factors & ~m.tight).any():
        return
    group = m.cell_group[cell]
    counted = (group >= 0) & ~m.tight[owner[cell]] & (o.group_fakes[group] >= 0)
    listed = np.unique(group[counted])
    shown = m.cell_group >= 0
    real = np.bincount(m.cell_group[shown], free[shown], len(o.group_fakes)).astype(np.int64) - o.group_fakes
    rows.add(group[counted], column[counted], 1, real[listed], real[listed])


class _Equations:
    """Rows of a program in the making."""

    def __init__(self, columns: int) -> None:
        self.columns, self.height = columns, 0
        self.parts: list[tuple[I64, I64, I64]] = []
        self.low: list[I64] = []
        self.high: list[I64] = []

    def add(self, key: I64, column: I64, sign: Any, low: Any, high: Any) -> None:
        """A row for each key, with these columns; `low` and `high` in the order of the keys."""
        listed, row = np.unique(key, return_inverse=True)
        self.parts.append((row + self.height, column, np.broadcast_to(sign, row.shape)))
        self.low.append(np.broadcast_to(low, listed.shape).astype(np.int64))
        self.high.append(np.broadcast_to(high, listed.shape).astype(np.int64))
        self.height += len(listed)

    def matrix(self) -> tuple[csr_array, I64, I64]:
        row, column, sign = (np.concatenate(part) for part in zip(*self.parts, strict=True))
        shape = (self.height, self.columns)
        matrix = coo_array((sign.astype(np.int64), (row, column)), shape=shape).tocsr()
        return matrix, np.concatenate(self.low), np.concatenate(self.high)


@dataclass(eq=False)
class Decided:
    """What is known of a program's facts so far: some world has them, or none does."""

    program: Program
    seen: Bools
    end: float  # of processor time
    dead: Bools
    worlds: list[I64] = field(default_factory=list)

    @property
    def most(self) -> I64:
        """0 for columns of facts that no world has."""
        return self.program.most(self.dead)

    def run(self, asked: Bools) -> None:
        """First whoever was seen with fewer than two values, then whatever else is open; of facts asked about."""
        for urgent in (True, False):
            self._worlds(asked, urgent, fruitful=True)
            self._exclude(asked, urgent)
            self._worlds(asked, urgent, fruitful=False)

    def wanted(self, asked: Bools, urgent: bool) -> Bools:
        still = asked & ~self.seen & ~self.dead
        if urgent:
            person = self.program.person
            often = np.bincount(person[self.seen], minlength=int(person.max(initial=0)) + 1)
            still &= often[person] < 2
        return still

    @property
    def left(self) -> float:
        return self.end - time.process_time()

    def _enter(self, columns: I64) -> Bools:
        """A world; says what it has."""
        shown = self.program.of(columns > 0)
        self.seen |= shown
        self.worlds.append(columns)
        return shown

    def _worlds(self, asked: Bools, urgent: bool, *, fruitful: bool) -> None:
        """Worlds with as many of the wanted facts as can be had, as long as there are (fruitful: enough of) them."""
        once = np.ones(len(self.program.size), dtype=np.int64)
        while self.left > 0 and (wanted := self.wanted(asked, urgent)).any():
            columns = found_world(self.program, Wish(self.program.count(wanted), once), self.most, self.left)
            news = 0 if columns is None else int((self._enter(columns) & wanted).sum())
            if fruitful and news * FRUITFUL < wanted.sum():
                return
            if not news:
                if columns is not None and impossible(self.program, wanted, self.most, self.left):
                    self.dead |= wanted
                return

    def _exclude(self, asked: Bools, urgent: bool) -> None:
        """Facts that no world has, by bounds of linear programs."""
        wanted = self.wanted(asked, urgent)
        while self.left > 0 and wanted.any():
            count = self.program.count(wanted)
            columns, weights = relaxed(self.program, count, self.most, self.left)
            if columns is None or weights is None:
                return
            if self.program.bound(count, self.most, weights) < 1:
                self.dead |= wanted
                return
            whole = np.rint(columns).astype(np.int64)
            if self.program.is_world(whole, self.most):
                self._enter(whole)
            shown = wanted & self.program.of(columns > POSITIVE)
            if not shown.any():
                return
            wanted &= ~shown


def relaxed(program: Program, count: I64, most: I64, seconds: float) -> tuple[Any, I64 | None]:
    """Shares of columns with which `count` adds up to as much as it can, and the weights of rows that show it.

    None if there were none in so many steps (and in about so many seconds), or if a weight is no number to count with.
    """
    from scipy.optimize import linprog

    if seconds <= 0:
        return None, None
    equal, matrix = program.exact, program.matrix
    bounds = np.stack([np.zeros(len(most)), most], axis=1)
    solved = linprog(
        -count,
        A_ub=vstack([matrix[~equal], -matrix[~equal]]),
        b_ub=np.append(program.high[~equal], -program.low[~equal]),
        A_eq=matrix[equal],
        b_eq=program.high[equal],
        bounds=bounds,
        method="highs",
        options={"time_limit": patience(seconds), "maxiter": STEPS},
    )
    if solved.x is None or not solved.success:
        return None, None
    weights, loose = np.zeros(len(equal)), -solved.ineqlin.marginals
    weights[equal], weights[~equal] = -solved.eqlin.marginals, loose[: len(loose) // 2] - loose[len(loose) // 2 :]
    scaled = np.rint(weights * SCALE)
    if not (np.abs(scaled) < HEAVIEST).all():  # nor is it below if it is not a number
        return None, None
    return solved.x, scaled.astype(np.int64)


class Wish(NamedTuple):
    """What a world should have: of each column, what one more is worth, as long as there are not `enough`."""

    worth: I64
    enough: I64


def found_world(program: Program, wish: Wish, most: I64, seconds: float) -> I64 | None:
    """A world that has much of what is wished for; None if none was found within so many steps and seconds."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    width = len(most)
    capped = np.flatnonzero((wish.worth > 0) & (wish.enough < most))  # these get a column that says how much counts
    extra = len(capped)
    counted = coo_array((np.ones(extra), (np.arange(extra), capped)), shape=(extra, width))
    matrix = bmat([[program.matrix, None], [counted, -eye_array(extra)]], format="csr") if extra else program.matrix
    worth = np.append(wish.worth, wish.worth[capped])
    worth[capped] = 0
    solved = milp(
        -worth,
        integrality=np.append(np.ones(width), np.zeros(extra)),
        bounds=Bounds(0, np.append(most, wish.enough[capped])),
        constraints=LinearConstraint(
            matrix, np.append(program.low, np.zeros(extra)), np.append(program.high, np.full(extra, np.inf))
        ),
        options={"time_limit": patience(min(AMPLE, seconds)), "node_limit": NODES, "mip_rel_gap": 0.05},
    )
    if solved.x is None:
        return None
    columns = np.rint(solved.x[:width]).astype(np.int64)
    return columns if program.is_world(columns, most) else None


def patience(seconds: float) -> float:
    """So many seconds of computing by the clock, which go by faster on this machine where it is busy."""
    clock, computing = time.perf_counter() - BEGUN[0], time.process_time() - BEGUN[1]
    return max(0.0, seconds) * float(np.clip(1.5 * clock / max(computing, 1e-3), *PATIENT))


def impossible(program: Program, wanted: Bools, most: I64, seconds: float) -> bool:
    """Whether an exact solver shows that no world has any of these facts."""
    from ortools.sat.python import cp_model

    from reveil.audit.infer.search import exact_solver

    model = cp_model.CpModel()
    variables = [model.new_int_var(0, int(high), "") for high in most]
    start, column, sign = program.matrix.indptr, program.matrix.indices, program.matrix.data
    for row, (low, high) in enumerate(zip(program.low.tolist(), program.high.tolist(), strict=True)):
        span = range(start[row], start[row + 1])
        model.add_linear_constraint(sum(int(sign[n]) * variables[column[n]] for n in span), low, high)
    model.add(sum(variables[n] for n in np.flatnonzero(program.count(wanted)).tolist()) >= 1)
    solver = exact_solver(min(PROOF, seconds))
    return bool(solver.solve(model) == cp_model.INFEASIBLE)
