"""What people can still bear, on arrays only: needs, added up from the groups of the past.

A *need* is the share of a group that must not have a value, for one person: (n - n_s)/n >= need. It is a float, off
the truth by a little on purpose: above it, so that rounding cannot let through what is too much; or, where need and
share are quotients of whole numbers so small that different ones differ by more, below it, so that no tie is refused.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import F64, I32, I64, Ints
from reveil.base.kernels import allocating_kernel, bare_kernel

# Quotients a/b and c/n differ by at least 1/(b * n) unless they are equal. Up to here that is more than rounding does:
# groups of two rows or more reach this product in at most 44 releases, and the margin below is 2e-14 then.
EXACT = 2.0**44
ROUNDING = 4e-16  # more than three roundings, for each release of the past and four more


class RemainingBudget(NamedTuple):
    """What the rows of a table may still be exposed to."""

    line: I64  # which line of `need` belongs to a row of the table; newcomers share one
    need: F64  # lines x slots
    worst: F64  # of each row: the largest need over all slots
    least: I32  # of each row: no group with this person is smaller, because it has the person's own value
    column: I64  # of the row matrix, one for each sensitive column
    first_code: I64  # where the codes of a sensitive column start in `slot`
    slot: I64  # of each code; -1 where the value is not protected


class EarlierGroups(NamedTuple):
    """Earlier groups, numbered through over all releases, and what was published in them.

    A layout of its own: budgets need the ratios of protected values only, as their kernels read them.
    """

    size: F64
    first: I64  # where the values of a group start; one more entry than groups
    slot: I32  # of protected values only
    ratio: F64  # by how much a group with this value raises the need for it: n / (n - n_s)
    table: F64  # the same as groups x slots, or without lines where that would be mostly ones


class Target(NamedTuple):
    """The survival that must remain for each kind of row, as a quotient; `whole` where that is exact."""

    top: F64
    bottom: F64
    whole: NDArray[np.bool_]


@bare_kernel
def place_visits(person: Ints, release: Ints, group: Ints, line: I64, offset: I64, visits: I32) -> None:
    """Enter the group of each member in `visits` (releases x lines). Withheld rows are left out."""
    for i in range(len(person)):
        if group[i] >= 0 and line[person[i]] >= 0:
            visits[release[i] - 1, line[person[i]]] = offset[release[i]] + group[i]


@allocating_kernel
def shelve(release: Ints, group: Ints, code: Ints, held: Ints, slot: I64, offset: I64, size: F64) -> EarlierGroups:
    """The protected values of each group, side by side, from one line for each value of each group."""
    first = np.zeros(len(size) + 2, dtype=np.int64)
    for i in range(len(group)):
        if slot[code[i]] >= 0:
            first[offset[release[i]] + group[i] + 2] += 1
    for g in range(2, len(first)):
        first[g] += first[g - 1]
    slots = np.empty(first[len(size) + 1], dtype=np.int32)
    ratio = np.empty(first[len(size) + 1])
    for i in range(len(group)):
        if slot[code[i]] >= 0:
            g = offset[release[i]] + group[i]
            place = first[g + 1]
            free = size[g] - held[i]
            slots[place] = slot[code[i]]
            ratio[place] = size[g] / free if free > 0 else np.inf
            first[g + 1] += 1
    return EarlierGroups(size, first[: len(size) + 1], slots, ratio, np.empty((0, 0)))


@allocating_kernel
def tabulate(past: EarlierGroups, slots: int) -> F64:
    """The ratios of all groups as a table: faster to multiply by where groups have many values."""
    table = np.ones((len(past.size), slots))
    for g in range(len(past.size)):
        for j in range(past.first[g], past.first[g + 1]):
            table[g, past.slot[j]] = past.ratio[j]
    return table


class Needs(NamedTuple):
    """The share of a group that must be without a value, by person and slot; and the largest of each person."""

    need: F64
    worst: F64


@bare_kernel
def fill_needs(
    visits: I32, past: EarlierGroups, target: Target, kind: I64, begin: int, end: int, rows: int, needs: Needs
) -> None:
    """The needs of people begin..end, who were in the groups visits[:, i] (-1: not in this release)."""
    need, worst = needs
    for i in range(begin, end):
        k, product, present = kind[i], target.bottom[kind[i]] * rows, 0
        for r in range(len(visits)):
            if visits[r, i] >= 0:
                product *= past.size[visits[r, i]]
                present += 1
        margin = ROUNDING * (present + 4)
        exact = target.whole[k] and product < EXACT
        line = need[i]
        line[:] = target.top[k] / target.bottom[k] * (1.0 - margin if exact else 1.0 + margin)
        for r in range(len(visits)):
            g = visits[r, i]
            if g < 0:
                continue
            if len(past.table) > 0:
                for j in range(len(line)):
                    line[j] *= past.table[g, j]
            else:
                for j in range(past.first[g], past.first[g + 1]):
                    line[past.slot[j]] *= past.ratio[j]
        high = 0.0
        for j in range(len(line)):
            high = max(high, line[j])
        worst[i] = high


@bare_kernel
def fill_least(remaining: RemainingBudget, codes: I32) -> None:
    """A lower bound for the size of each row's group: its own value occurs there."""
    for i in range(len(codes)):
        least = 1.0
        for c in range(codes.shape[1]):
            slot = remaining.slot[remaining.first_code[c] + codes[i, c]]
            if slot >= 0:
                least = max(least, smallest(remaining.need[remaining.line[i], slot]))
        remaining.least[i] = least


@bare_kernel
def smallest(need: float) -> float:
    """A lower bound for the size of a group in which a value occurs, for one person."""
    return min(2.0**30, np.ceil(1.0 / (1.0 - need) * (1 - 1e-9))) if need < 1.0 else 2.0**30
