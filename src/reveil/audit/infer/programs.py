"""A component as a linear program: what no world has, proved by weights of its equations, and worlds found by a solver.

Columns are 0 or 1: that a person has a value (where it lasts), and that an appearance is in a cell, where one value may
be in several. A *fact* is a value of a person, or of an appearance that may be absent.

What the solver of linear programs says is not taken on trust. Any weights of the equations bound what a set of facts
can add up to, so its weights are rounded to whole numbers and the bound is worked out from these: if it is below one,
no world has any of the facts. A world that a solver finds is put into all equations before it counts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from reveil.audit.infer.certain import State
from reveil.audit.model.model import UNLIMITED
from reveil.base.arrays import I64, Bools

SCALE = 1 << 20  # weights are whole multiples of 1/SCALE
HEAVIEST = 1 << 40  # weights from here on prove nothing; of lighter ones four million entries add up within 64 bits
POSITIVE = 1e-6  # a share that is no rounding error
WIDEST = 60_000  # columns of a program
FRUITFUL = 20  # a world with less than one in so many of the facts that are wanted: better exclude some first
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
    fact: I64  # of each column, -1: it belongs to none
    person: I64  # of each fact
    option: I64  # options of the model,
    option_column: I64  # the column
    option_fact: I64  # and the fact that each stands for

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

    def of(self, columns: Bools) -> Bools:
        """Facts of these columns."""
        shown = np.zeros(self.facts, dtype=bool)
        shown[self.fact[columns & (self.fact >= 0)]] = True
        return shown

    def bound(self, count: I64, most: I64, weights: I64) -> float:
        """What `count` adds up to at most, by these weights of the rows (times SCALE), in whole numbers.

        Infinite where a weight is so large that sums of 64 bits could wrap around: it then proves nothing.
        """
        if (weights >= HEAVIEST).any() or (weights <= -HEAVIEST).any():
            return float("inf")
        rows = int(np.where(weights > 0, self.high, self.low) @ weights)
        rest = count * SCALE - self.matrix.T @ weights
        return (rows + int(np.maximum(rest, 0) @ most)) / SCALE

    def is_world(self, columns: I64, most: I64) -> bool:
        held = self.matrix @ columns
        inside = (held >= self.low).all() and (held <= self.high).all()
        return bool(inside and (columns >= 0).all() and (columns <= most).all())


def program_of(state: State, factors: Bools) -> Program | None:
    """The program of one component, or None if it is too wide."""
    m, o = state.model, state.model.observed
    inside = factors[m.app_factor] & (state.open_options > 1) & ~m.implied[m.app_factor]
    options = np.nonzero(state.alive & m.by_option(inside))[0]
    app = np.searchsorted(m.opt_start, options, side="right") - 1
    cell = m.opt_cell[options].astype(np.int64)
    value, person = m.cell_value[cell], o.app_person[app]
    unsure = np.zeros(len(m.app_factor), dtype=bool)
    unsure[app[value < 0]] = True
    away, width = value < 0, len(o.values) + 1
    of_person = np.where(away, -1, person * width + value)
    keys, own = np.unique(of_person[~away], return_inverse=True)
    having = np.full(len(options), -1)
    having[~away] = own
    _, pair, often = np.unique(app * width + value + 1, return_inverse=True, return_counts=True)
    single = (often[pair] == 1) & ~unsure[app]
    column = np.where(single, having, -1)
    column[~single] = len(keys) + np.arange(np.count_nonzero(~single))
    columns = len(keys) + int(np.count_nonzero(~single))
    if columns > WIDEST:
        return None
    rows = _Equations(columns)
    rows.add(keys // width, np.arange(len(keys)), 1, 1, 1)  # everybody has one value
    linked = ~single & ~away
    both = np.concatenate([column[linked], having[linked]]), np.concatenate([pair[linked], pair[linked]])
    sign = np.repeat([1, -1], np.count_nonzero(linked))
    once = np.unique(np.stack([*both, sign]), axis=1)  # in all cells of the value together as often as they have it
    rows.add(once[1], once[0], once[2], np.where(unsure[_first(pair, app)], -1, 0)[np.unique(once[1])], 0)
    perhaps = unsure[app]
    rows.add(app[perhaps], column[perhaps], 1, 1, 1)  # in one cell, or away
    _add_cells(rows, state, factors, cell, column)
    fact_key = np.where(perhaps, len(m.app_factor) * width + app * width + value + 1, of_person)
    _, first, fact = np.unique(fact_key, return_index=True, return_inverse=True)
    of_column = np.full(columns, -1)
    target = np.where(perhaps, column, having)
    of_column[target] = fact
    return Program(*rows.matrix(), of_column, person[first], options, column, fact.astype(np.int64))


def _first(keys: I64, what: I64) -> I64:
    """Of each key, what belongs to its first place."""
    _, first = np.unique(keys, return_index=True)
    return what[first]


def _add_cells(rows: _Equations, state: State, factors: Bools, cell: I64, column: I64) -> None:
    """Rows of each cell, and of groups of which it is known how many rows are invented."""
    m, o = state.model, state.model.observed
    owner = np.repeat(np.arange(m.factors), np.diff(m.cell_start))
    free = state.free_rows
    taken = m.cell_cap - free
    low = np.where(m.tight[owner], free, np.maximum(0, m.cell_low - taken))
    bounded = m.cell_cap[cell] < UNLIMITED
    listed = np.unique(cell[bounded])
    rows.add(cell[bounded], column[bounded], 1, low[listed], free[listed])
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
    world: I64 | None = None

    @property
    def most(self) -> I64:
        """0 for columns of facts that no world has, otherwise 1."""
        return 1 - self.program.count(self.dead)

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

    def _worlds(self, asked: Bools, urgent: bool, *, fruitful: bool) -> None:
        """Worlds with as many of the wanted facts as can be had, as long as there are (fruitful: enough of) them."""
        while self.left > 0 and (wanted := self.wanted(asked, urgent)).any():
            columns = found_world(self.program, self.program.count(wanted), self.most, self.left)
            shown = None if columns is None else self.program.of(columns > 0)
            if columns is not None and shown is not None:
                self.seen |= shown
                self.world = columns
            news = 0 if shown is None else int((shown & wanted).sum())
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
                self.seen |= self.program.of(whole > 0)
                self.world = whole
            shown = wanted & self.program.of(columns > POSITIVE)
            if not shown.any():
                return
            wanted &= ~shown


def relaxed(program: Program, count: I64, most: I64, seconds: float) -> tuple[Any, I64 | None]:
    """Shares of columns with which `count` adds up to as much as it can, and the weights of rows that show it.

    None if there were none in about so many seconds, or if a weight is no number that can be counted with.
    """
    from scipy.optimize import linprog

    equal, matrix = program.exact, program.matrix
    bounds = np.stack([np.zeros(len(most)), most], axis=1)
    solved = linprog(
        -count,
        *(matrix[~equal], program.high[~equal], matrix[equal], program.high[equal], bounds),
        method="highs",
        options={"time_limit": patience() * seconds},
    )
    if solved.x is None or not solved.success:
        return None, None
    weights = np.zeros(len(equal))
    weights[equal], weights[~equal] = -solved.eqlin.marginals, -solved.ineqlin.marginals
    scaled = np.rint(weights * SCALE)
    if not (np.abs(scaled) < HEAVIEST).all():  # nor is it below if it is not a number
        return None, None
    return solved.x, scaled.astype(np.int64)


def found_world(program: Program, count: I64, most: I64, seconds: float) -> I64 | None:
    """A world in which `count` adds up to much; None if none was found in about so many seconds."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    solved = milp(
        -count,
        integrality=np.ones(len(most)),
        bounds=Bounds(0, most),
        constraints=LinearConstraint(program.matrix, program.low, program.high),
        options={"time_limit": patience() * min(AMPLE, seconds), "mip_rel_gap": 0.05},
    )
    if solved.x is None:
        return None
    columns = np.rint(solved.x).astype(np.int64)
    return columns if program.is_world(columns, most) else None


def patience() -> float:
    """How much longer by the clock a second of computing takes on this machine, which may be busy."""
    clock, computing = time.perf_counter() - BEGUN[0], time.process_time() - BEGUN[1]
    return float(np.clip(1.5 * clock / max(computing, 1e-3), *PATIENT))


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
