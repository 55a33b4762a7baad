"""Worlds next to a known one: they show quickly, for series of any size, that values are possible.

From a world, two values are exchanged along the groups that they connect (a Kempe move). What comes out is a world
again, so every value in it is possible. Nothing is ever shown to be impossible here.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reveil.audit.certain import State

I64 = NDArray[np.int64]
Bools = NDArray[np.bool_]
ROUNDS = 12


def shown_possible(state: State, values: I64) -> Bools:
    """People all of whose open values were shown to be possible. `values`: a world, by person (lasting values)."""
    m, o = state.model, state.model.observed
    return walk_worlds(
        values.copy(), o.person_start, m.app_factor, m.implied, m.cell_start, m.cell_value, m.cell_cap, m.factor_start,
        m.factor_apps, o.app_person, m.opt_start, m.opt_cell, state.alive, ROUNDS,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def walk_worlds(
    values: I64,
    person_start: I64,
    app_factor: I64,
    implied: Bools,
    cell_start: I64,
    cell_value: I64,
    cell_cap: I64,
    factor_start: I64,
    factor_apps: I64,
    app_person: I64,
    opt_start: I64,
    opt_cell: I64,
    alive: Bools,
    rounds: int,
) -> Bools:
    people = len(person_start) - 1
    seen = np.zeros(len(alive), dtype=np.bool_)  # of each person's first appearance
    for p in range(people):
        mark(p, values, person_start, opt_start, opt_cell, cell_value, seen)
    cluster = np.empty(people, dtype=np.int64)
    stamp = np.zeros(people, dtype=np.int64)
    tick = 0
    for _ in range(rounds):
        for p in range(people):
            if person_start[p] == person_start[p + 1]:
                continue
            a = person_start[p]
            for o in range(opt_start[a], opt_start[a + 1]):
                other = cell_value[opt_cell[o]]
                if not alive[o] or seen[o] or other == values[p]:
                    continue
                tick += 1
                size = connect(
                    p, values[p], other, values, person_start, app_factor, implied, cell_start, cell_value, cell_cap,
                    factor_start, factor_apps, app_person, opt_start, opt_cell, alive, cluster, stamp, tick,
                )  # fmt: skip
                one = values[p]
                for i in range(size):
                    q = cluster[i]
                    values[q] = other if values[q] == one else one
                    mark(q, values, person_start, opt_start, opt_cell, cell_value, seen)
    done = np.ones(people, dtype=np.bool_)
    for p in range(people):
        if person_start[p] < person_start[p + 1]:
            a = person_start[p]
            for o in range(opt_start[a], opt_start[a + 1]):
                done[p] = done[p] and (seen[o] or not alive[o])
    return done


@njit(cache=True, nogil=True)
def mark(p: int, values: I64, person_start: I64, opt_start: I64, opt_cell: I64, cell_value: I64, seen: Bools) -> None:
    if person_start[p] < person_start[p + 1]:
        a = person_start[p]
        for o in range(opt_start[a], opt_start[a + 1]):
            if cell_value[opt_cell[o]] == values[p]:
                seen[o] = True


@njit(cache=True, nogil=True)
def connect(
    start: int,
    one: int,
    other: int,
    values: I64,
    person_start: I64,
    app_factor: I64,
    implied: Bools,
    cell_start: I64,
    cell_value: I64,
    cell_cap: I64,
    factor_start: I64,
    factor_apps: I64,
    app_person: I64,
    opt_start: I64,
    opt_cell: I64,
    alive: Bools,
    cluster: I64,
    stamp: I64,
    tick: int,
) -> int:
    """Everybody with one of the two values whom their groups connect; 0 where an exchange is not possible."""
    cluster[0] = start
    stamp[start] = tick
    head, size = 0, 1
    while head < size:
        p = cluster[head]
        head += 1
        new = other if values[p] == one else one
        fits = False
        first = person_start[p]
        for o in range(opt_start[first], opt_start[first + 1]):
            fits = fits or (alive[o] and cell_value[opt_cell[o]] == new)
        if not fits:
            return 0
        for a in range(person_start[p], person_start[p + 1]):
            f = app_factor[a]
            if implied[f]:
                continue
            ones, others = 0, 0
            for c in range(cell_start[f], cell_start[f + 1]):
                if cell_value[c] == one:
                    ones = cell_cap[c]
                elif cell_value[c] == other:
                    others = cell_cap[c]
            if ones != others:  # exchanging everybody keeps within the rows only if there are as many of both
                return 0
            for i in range(factor_start[f], factor_start[f + 1]):
                q = app_person[factor_apps[i]]
                if (values[q] == one or values[q] == other) and stamp[q] != tick:
                    stamp[q] = tick
                    cluster[size] = q
                    size += 1
    return size
