"""What is asked of all options at once: one compiled pass each, so that nothing as long as the options is made for it.

A large series has tens of millions of options; a handful of temporary arrays of that length is more than everything
else together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I32, I64, Bools
from reveil.base.kernels import kernel

Floats = NDArray[np.float64]


@kernel
def count_of(opt_start: I64, marked: Bools) -> I64:
    """Marked options of each appearance."""
    counts = np.zeros(len(opt_start) - 1, dtype=np.int64)
    for a in range(len(counts)):
        for o in range(opt_start[a], opt_start[a + 1]):
            counts[a] += marked[o]
    return counts


@kernel
def having(opt_start: I64, opt_cell: I32, cell_value: I64, wanted: I64) -> Bools:
    """Options with the value that is wanted of their appearance."""
    holds = np.zeros(len(opt_cell), dtype=np.bool_)
    for a in range(len(wanted)):
        for o in range(opt_start[a], opt_start[a + 1]):
            holds[o] = cell_value[opt_cell[o]] == wanted[a]
    return holds


@kernel
def sole(opt_start: I64, opt_cell: I32, cell_value: I64, alive: Bools) -> I64:
    """The only value that is left to each appearance; -1 where there are several, or perhaps none."""
    only = np.full(len(opt_start) - 1, -1, dtype=np.int64)
    for a in range(len(only)):
        least, most = 1 << 60, -1
        for o in range(opt_start[a], opt_start[a + 1]):
            if alive[o]:
                v = cell_value[opt_cell[o]]
                least, most = min(least, v), max(most, v)
        if least == most:
            only[a] = most
    return only


@kernel
def sums_of(apps: I64, opt_start: I64, opt_cell: I32, cell_value: I64, alive: Bools, amount: I64) -> I64:
    """The amounts of the open values of these appearances, added up."""
    sums = np.zeros(len(apps), dtype=np.int64)
    for n in range(len(apps)):
        for o in range(opt_start[apps[n]], opt_start[apps[n] + 1]):
            if alive[o]:
                sums[n] += amount[cell_value[opt_cell[o]]]
    return sums


@kernel
def likeliest(
    opt_start: I64, opt_cell: I32, cell_value: I64, alive: Bools, share: Floats, wanted: I64, values: int
) -> tuple[I64, I64, Floats, Floats]:
    """By appearance: how many values are open, the first of them, the highest probability of one, and that of the
    wanted value (nan: not computed, or not open). Options of one value in several groups are added up."""
    apps = len(opt_start) - 1
    count, first = np.zeros(apps, dtype=np.int64), np.full(apps, -1, dtype=np.int64)
    high, of_wanted = np.full(apps, np.nan), np.full(apps, np.nan)
    total, owner = np.zeros(values + 1), np.full(values + 1, -1, dtype=np.int64)  # the last: absent
    for a in range(apps):
        for o in range(opt_start[a], opt_start[a + 1]):
            if alive[o]:
                v = cell_value[opt_cell[o]]
                if owner[v] != a:
                    owner[v], total[v] = a, 0.0
                    first[a] = v if count[a] == 0 else first[a]
                    count[a] += 1
                total[v] += share[o]
        for o in range(opt_start[a], opt_start[a + 1]):
            v = cell_value[opt_cell[o]]
            if owner[v] == a and v >= 0:  # not being there is no value
                high[a] = total[v] if np.isnan(high[a]) or total[v] > high[a] else high[a]
                of_wanted[a] = total[v] if v == wanted[a] else of_wanted[a]
    return count, first, high, of_wanted


@kernel
def carry_over(
    person_start: I64, opt_start: I64, opt_cell: I32, cell_value: I64, alive: Bools, share: Floats, values: int
) -> None:
    """Lasting values: what is believed of a value in one release is believed in all others of the person."""
    known, owner = np.zeros(values), np.full(values, -1, dtype=np.int64)
    for p in range(len(person_start) - 1):
        first, last = opt_start[person_start[p]], opt_start[person_start[p + 1]]
        for o in range(first, last):
            v = cell_value[opt_cell[o]]
            if owner[v] != p and not np.isnan(share[o]):
                owner[v], known[v] = p, share[o]
        for o in range(first, last):
            v = cell_value[opt_cell[o]]
            if alive[o] and owner[v] == p and np.isnan(share[o]):
                share[o] = known[v]


@kernel
def lacking(person_start: I64, opt_start: I64, opt_cell: I32, cell_value: I64, values: int) -> Bools:
    """People with a value in one of their groups that another one does not show."""
    lacks = np.zeros(len(person_start) - 1, dtype=np.bool_)
    often, owner = np.zeros(values, dtype=np.int64), np.full(values, -1, dtype=np.int64)
    for p in range(len(lacks)):
        first, last = opt_start[person_start[p]], opt_start[person_start[p + 1]]
        for o in range(first, last):
            v = cell_value[opt_cell[o]]
            if v >= 0:
                often[v] = 1 + (often[v] if owner[v] == p else 0)
                owner[v] = p
        for o in range(first, last):
            v = cell_value[opt_cell[o]]
            lacks[p] = lacks[p] or (v >= 0 and often[v] < person_start[p + 1] - person_start[p])
    return lacks


class OptionCells(NamedTuple):
    """The cells that each appearance may be in, their values, and how many rows they have."""

    opt_start: I64
    opt_cell: I32
    cell_value: I64
    cell_cap: I64


@kernel
def best_links(
    factor_start: I64, factor_apps: I64, follows: Bools, lists: OptionCells, alive: Bools, share: Floats
) -> float:
    """Of each cell the chance of the likeliest cell of the next release for one of its rows, all added up.

    `follows` marks appearances to reach from the one before. Cells of a group are in order of their values."""
    opt_start, longest = lists.opt_start, 0
    for f in range(len(factor_start) - 1):
        size = 0
        for a in factor_apps[factor_start[f] : factor_start[f + 1]]:
            size += opt_start[a + 1] - opt_start[a]
        longest = max(longest, size)
    key, chance = np.empty(longest, dtype=np.int64), np.empty(longest)
    cells, sum_of_best = len(lists.cell_cap), 0.0
    for f in range(len(factor_start) - 1):
        size = 0
        for a in factor_apps[factor_start[f] : factor_start[f + 1]]:
            if a + 1 < len(follows) and follows[a + 1]:
                size = link(a, lists, alive, share, key, chance, size)
        best, so_far, order = 0.0, 0.0, np.argsort(key[:size])
        for n in range(size):
            so_far += chance[order[n]]
            ahead = key[order[n + 1]] if n + 1 < size else -1
            if ahead != key[order[n]]:
                best, so_far = max(best, so_far), 0.0
            if ahead // cells != key[order[n]] // cells:
                sum_of_best += best
                best = 0.0
    return sum_of_best


@kernel
def link(a: int, lists: OptionCells, alive: Bools, share: Floats, key: I64, chance: Floats, size: int) -> int:
    """Enter the cells of appearance a, each with that of the same value in the next appearance, by its chance."""
    opt_start, opt_cell, cell_value, cell_cap = lists
    cells, count = len(cell_cap), 0
    for o in range(opt_start[a + 1], opt_start[a + 2]):
        count += alive[o]
    before = opt_start[a]
    for o in range(opt_start[a + 1], opt_start[a + 2]):
        v = cell_value[opt_cell[o]]
        while before < opt_start[a + 1] and cell_value[opt_cell[before]] < v:
            before += 1
        if before == opt_start[a + 1]:
            break
        if alive[o] and cell_value[opt_cell[before]] == v and not share[o] <= 0:
            weight = 1 / count if np.isnan(share[o]) else share[o]
            key[size] = opt_cell[before] * cells + opt_cell[o]
            chance[size] = weight / cell_cap[opt_cell[o]]
            size += 1
    return size
