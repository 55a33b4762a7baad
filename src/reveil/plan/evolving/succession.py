"""How cohorts of changing values go on: places that people left, what they become, and which values come to be shared.

The hot loops. A cohort is a run of rows in arrays: cohort g has the rows first[g]:first[g + 1].
"""

from __future__ import annotations

import numpy as np

from reveil.base.arrays import F64, I32, I64, Bools, Ints
from reveil.base.kernels import kernel

RAREST = 1e-90  # the verifier divides by less


@kernel
def left_behind(first: I64, rows: I64, first_here: I64, held: I64) -> tuple[I64, I64]:
    """What each cohort showed (`rows`) beyond what those who stay had (`held`): where that starts, and the values."""
    starts = np.zeros(len(first), np.int64)
    for g in range(len(first) - 1):
        starts[g + 1] = starts[g] + first[g + 1] - first[g] - (first_here[g + 1] - first_here[g])
    values = np.empty(starts[-1], np.int64)
    for g in range(len(first) - 1):
        place, size = starts[g], first[g + 1] - first[g]
        taken = np.zeros(size, np.bool_)
        for i in range(first_here[g], first_here[g + 1]):
            for j in range(size):
                if not taken[j] and rows[first[g] + j] == held[i]:
                    taken[j] = True
                    break
        for j in range(size):
            if not taken[j]:
                values[place] = rows[first[g] + j]
                place += 1
    return starts, values


@kernel
def go_on(values: I64, lots: I64, cumulated: I64) -> I32:
    """The next value of each place, with exact chances: its lot is a whole number below the total of its value."""
    successors = np.empty(len(values), np.int32)
    for i in range(len(values)):
        successors[i] = np.searchsorted(cumulated[values[i]], lots[i], side="right")
    return successors


@kernel
def most_shared(first_a: I64, a: Ints, first_b: I64, b: Ints, harmless: Bools) -> I64:
    """How often the most frequent value occurs among the rows that each cohort has in a and in b together.

    Harmless values do not count.
    """
    most, count = np.zeros(len(first_a) - 1, np.int64), np.zeros(len(harmless), np.int64)
    for g in range(len(most)):
        for i in range(first_a[g], first_a[g + 1]):
            count[a[i]] += not harmless[a[i]]
            most[g] = max(most[g], count[a[i]])
        for i in range(first_b[g], first_b[g + 1]):
            count[b[i]] += not harmless[b[i]]
            most[g] = max(most[g], count[b[i]])
        for i in range(first_a[g], first_a[g + 1]):
            count[a[i]] = 0
        for i in range(first_b[g], first_b[g + 1]):
            count[b[i]] = 0
    return most


@kernel
def exceed(chances: F64, skip: int, least: int) -> float:
    """The chance that `least` or more of some independent events happen, leaving one of them out."""
    if least <= 0:
        return 1.0
    exactly, enough = np.zeros(least), 0.0
    exactly[0] = 1.0
    for k in range(len(chances)):
        p = chances[k]
        if k == skip or p == 0.0:
            continue
        enough += exactly[least - 1] * p
        for j in range(least - 1, 0, -1):
            exactly[j] = exactly[j] * (1.0 - p) + exactly[j - 1] * p
        exactly[0] *= 1.0 - p
    return enough


@kernel
def prospects(first: I64, rows: I64, most: I64, chance: F64) -> tuple[F64, F64]:
    """What may become of each cohort: the chance (at least) that some value is had by more than `most` of its places in
    the next release, and how many places (at most, expected) would then have any one value.

    Bounds as in m-Distinct's joint view (docs): sums over the values that may be shared, and for the chance that any is
    the product of the chances that each is not.
    """
    cohorts, width = len(first) - 1, chance.shape[1]
    likely, expected = np.zeros(cohorts), np.zeros(cohorts)
    reach = np.zeros(width, np.int64)
    for g in range(cohorts):
        mine = rows[first[g] : first[g + 1]]
        reach[:] = 0
        for v in mine:
            for t in range(width):
                reach[t] += chance[v, t] > 0.0
        if reach.max() <= most[g]:
            continue
        there = np.bincount(mine, minlength=width)
        values, none = np.flatnonzero(there), 0.0
        last = np.zeros(width, np.int64)  # a place that has each value stands for all of them
        for k in range(len(mine)):
            last[mine[k]] = k
        elsewhere, here = np.zeros(len(values)), np.zeros((len(values), width))
        for t in range(width):
            if reach[t] > most[g]:
                column = chance[mine, t]
                none += np.log1p(-min(1.0, exceed(column, -1, most[g] + 1)))
                for y in range(len(values)):
                    more = exceed(column, last[values[y]], most[g] + 1)
                    elsewhere[y] += more
                    here[y, t] = exceed(column, last[values[y]], most[g]) - more
        likely[g] = -np.expm1(none)
        if likely[g] < RAREST:  # not divided by: it counts as telling everything
            expected[g] = np.inf
            continue
        for s in range(width):
            total = 0.0
            for y in range(len(values)):
                total += there[values[y]] * chance[values[y], s] * min(1.0, elsewhere[y] + here[y, s])
            expected[g] = max(expected[g], total)
        expected[g] /= likely[g]
    return likely, expected
