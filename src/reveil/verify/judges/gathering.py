"""How many places of a cohort may come to share a value, and what withholding it for that would tell: the loops.

Places with the same value go on with the same chances, so they are counted together: a cohort costs its size times its
different values, squared, however often it may show a value.
"""

from __future__ import annotations

import numpy as np

from reveil.base.arrays import F64, I64
from reveil.base.kernels import kernel

RAREST = 1e-100  # what is rarer than this is not divided by: it counts as telling everything


@kernel
def reached(rows: I64, chance: F64) -> I64:
    """How many of these rows can become each value."""
    first_reached = np.zeros(chance.shape[1], np.int64)
    for v in rows:
        for t in range(len(first_reached)):
            first_reached[t] += chance[v, t] > 0.0
    return first_reached


@kernel
def put_together(a: F64, b: F64, both: F64) -> None:
    """The chances of how many events of two independent lots happen together."""
    both[:] = 0.0
    for i in range(len(a)):
        if a[i] > 0.0:
            for j in range(len(b)):
                both[i + j] += a[i] * b[j]


@kernel
def repeated(p: float, found: F64) -> None:
    """The chances that 0, 1, ... of some events of chance p happen; as many as there is room for, but for one."""
    found[:] = 0.0
    found[0] = 1.0
    for done in range(len(found) - 1):
        for j in range(done + 1, 0, -1):
            found[j] = found[j] * (1.0 - p) + found[j - 1] * p
        found[0] *= 1.0 - p


@kernel
def add_up(exactly: F64, at_least: F64) -> None:
    """The chances of j or more from those of exactly j."""
    for j in range(len(exactly) - 1, -1, -1):
        at_least[j] = at_least[j + 1] + exactly[j]


@kernel
def gathering(values: I64, often: I64, chance: F64) -> tuple[F64, F64]:
    """Of places with these values, `often` each: of each next value t, the chances that 0, 1, ... or more come to have
    it. Of all places [t], and of all but one that has the value number y [y, t].

    Places with the same value have the same chances, so they are counted together; what the values before and after y
    come to is worked out once.
    """
    kinds, width, n = len(values), chance.shape[1], often.sum()
    ends = np.zeros(kinds + 1, np.int64)
    for y in range(kinds):
        ends[y + 1] = ends[y] + often[y]
    everybody, others = np.zeros((width, n + 2)), np.zeros((kinds, width, n + 2))
    before, after = np.zeros((kinds + 1, n + 1)), np.zeros((kinds + 1, n + 1))
    own, both, all_others = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1)
    before[0, 0] = after[kinds, 0] = 1.0
    for t in range(width):
        for y in range(kinds):
            repeated(chance[values[y], t], own[: often[y] + 1])
            put_together(before[y, : ends[y] + 1], own[: often[y] + 1], before[y + 1, : ends[y + 1] + 1])
        for y in range(kinds - 1, -1, -1):
            repeated(chance[values[y], t], own[: often[y] + 1])
            put_together(after[y + 1, : n - ends[y + 1] + 1], own[: often[y] + 1], after[y, : n - ends[y] + 1])
        add_up(before[kinds], everybody[t])
        for y in range(kinds):
            repeated(chance[values[y], t], own[: often[y]])
            put_together(before[y, : ends[y] + 1], own[: often[y]], both[: ends[y + 1]])
            put_together(both[: ends[y + 1]], after[y + 1, : n - ends[y + 1] + 1], all_others[:n])
            add_up(all_others[:n], others[y, t])
    return everybody, others


@kernel
def shared(values: I64, often: I64, everybody: F64, others: F64, chance: F64, most: int) -> float:
    """If places with these values go on and more than `most` of them come to share a value: a bound of the expected
    number of places that then have any one value. `everybody` and `others` are what `gathering` says.

    Let A_t be that more than `most` places get value t. The chance that place k gets s and some A_t happens is at most
    the sum over t. The chance that some A_t happens is at least 1 - product of 1 - P(A_t), as numbers of places by
    value are negatively associated (more places at one value leave fewer for the others).
    """
    none, highest = 0.0, 0.0
    for t in range(chance.shape[1]):
        none += np.log1p(-min(everybody[t, most + 1], 1.0))
    if -none < RAREST:
        return np.inf
    for s in range(chance.shape[1]):
        expected = 0.0
        for y in range(len(values)):
            summed = others[y, s, most]
            for t in range(chance.shape[1]):
                summed += others[y, t, most + 1] if t != s else 0.0
            expected += often[y] * chance[values[y], s] * min(1.0, summed)
        highest = max(highest, expected)
    return float(highest / -np.expm1(none))


@kernel
def most_safe(rows: I64, chance: F64, top: int, most: int, bound: float) -> int:
    """The largest number from `most` down to `top` of which `shared` is at most `bound`; 0 where there is none.

    What cannot come to be tells nothing.
    """
    reach = reached(rows, chance).max()
    if reach <= most:
        return most
    there = np.bincount(rows, minlength=chance.shape[1])
    values = np.flatnonzero(there)
    often = there[values]
    everybody, others = gathering(values, often, chance)
    for number in range(most, top - 1, -1):
        if shared(values, often, everybody, others, chance, number) <= bound:
            return number
    return 0
