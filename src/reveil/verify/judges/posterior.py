"""How likely a person has a value, given their group and what was known beforehand (seed 004, equations 1 to
3).

A world gives every person of a group one of its published values; its weight is the product of the priors.
People with the same prior are of one *kind*. The sum over worlds runs over states (how many of each value are
used up), or over the other side (how many people of each kind are served) where that is smaller. All terms
are positive, so floats lose little: `posteriors` comes with a bound of its error, and `exact` does the same
sum in whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm
from typing import NamedTuple

import numpy as np

from reveil.base.arrays import F64, I64
from reveil.base.kernels import kernel

STATES = 1 << 20  # beyond this many states a group is judged by the bound: 20 different values of 20 kinds of people
EXACT_STATES = 1 << 14  # beyond this many, sums in whole numbers take too long
ROUNDING = 2.0**-53
HOMOGENEOUS, SUMMED, BOUNDED = 0, 1, 2  # how a class was judged


@kernel
def states_of(counts: I64) -> float:
    product = 1.0
    for count in counts:
        product *= count + 1.0
    return product


@kernel
def step(digits: I64, limits: I64) -> int:
    """The next state; returns by how much the sum of its digits is larger."""
    gained = 0
    for j in range(len(digits)):
        if digits[j] < limits[j]:
            digits[j] += 1
            return gained + 1
        gained -= digits[j]
        digits[j] = 0
    return gained


@kernel
def step_back(digits: I64, limits: I64) -> int:
    """The state before; returns by how much the sum of its digits is smaller."""
    lost = 0
    for j in range(len(digits)):
        if digits[j] > 0:
            digits[j] -= 1
            return lost + 1
        lost -= limits[j]
        digits[j] = limits[j]
    return lost


@kernel
def sum_worlds(lines: I64, columns: I64, weights: F64, out: F64) -> float:
    """Match every line with a place of some column; out[t, j] becomes the share of worlds in which one given
    line of type t is matched with column j. Returns the total weight.

    A state is the number of places used in each column, as digits of one index; the number of lines served is
    the sum of the digits, so one array serves all levels. Adding a line always makes the index larger.
    """
    kinds, width = len(lines), len(columns)
    stride = np.ones(width + 1, dtype=np.int64)
    for j in range(width):
        stride[j + 1] = stride[j] * (columns[j] + 1)
    size, total = stride[width], lines.sum()
    kind = np.empty(total + 1, dtype=np.int64)
    first = np.zeros(kinds, dtype=np.int64)
    place = 0
    for t in range(kinds):
        first[t] = place
        kind[place : place + lines[t]] = t
        place += lines[t]
    ahead, behind = np.zeros(size), np.zeros(size)
    ahead[0], behind[size - 1] = 1.0, 1.0
    used, served = np.zeros(width, dtype=np.int64), 0
    for state in range(size - 1):
        for j in range(width):
            if used[j] < columns[j]:
                ahead[state + stride[j]] += ahead[state] * weights[kind[served], j]
        served += step(used, columns)
    used[:], served = columns, total
    out[:] = 0.0
    for state in range(size - 2, -1, -1):
        served -= step_back(used, columns)
        t = kind[served]
        for j in range(width):
            if used[j] < columns[j]:
                part = weights[t, j] * behind[state + stride[j]]
                behind[state] += part
                if served == first[t]:
                    out[t, j] += ahead[state] * part
    if ahead[size - 1] > 0.0:
        out /= ahead[size - 1]
    return ahead[size - 1]


@kernel
def scaled(weights: F64) -> F64:
    """Columns, then rows, with largest entry 1. Posteriors do not change: every world has each row and column
    once.
    """
    balanced = weights.copy()
    for j in range(balanced.shape[1]):
        top = balanced[:, j].max()
        if top > 0.0:
            balanced[:, j] /= top
    for t in range(balanced.shape[0]):
        top = balanced[t].max()
        if top > 0.0:
            balanced[t] /= top
    return balanced


@kernel
def posteriors(people: I64, values: I64, weights: F64, chances: F64) -> float:
    """Fill found[kind, value] with P(one person of the kind has the value); returns a bound of its relative
    error.

    The bound is infinite when the group is too large, or when the total leaves the range in which floats are
    exact enough. Otherwise, with u = 2**-53: each entry carries at most 3 roundings (reading, scaling twice),
    a world has N entries and N products, each of N levels adds at most J terms, the final sum at most S, and
    multiplicities and the two divisions take 4 more; numerator and total together stay below K = 2 N (J + 4)
    + S + 16 roundings, a relative error below 1.01 K u as K u is far below 1/100. Entries are at most 1 and
    the total at least 1e-150, so what underflows (below 1e-307 per step) cannot reach u of a posterior that
    matters.
    """
    by_value, by_kind = states_of(values), states_of(people)
    if min(by_value, by_kind) > STATES:
        return np.inf
    table = scaled(weights)
    n = people.sum()
    if by_value <= by_kind:
        total = sum_worlds(people, values, table, chances)
        roundings = 2.0 * n * (len(values) + 4) + by_value + 16
    else:
        turned = np.empty((len(values), len(people)))
        total = sum_worlds(values, people, np.ascontiguousarray(table.T), turned)
        roundings = 2.0 * n * (len(people) + 4) + by_kind + 16
        for t in range(len(people)):
            for j in range(len(values)):
                chances[t, j] = turned[j, t] * values[j] / people[t]
    if not 1e-150 < total < 1e150:
        return np.inf
    return 1.01 * roundings * ROUNDING


@kernel
def exchange_bound(people: I64, values: I64, weights: F64, chances: F64) -> float:
    """Fill found[kind, value] with an upper bound of P(person has value) by row exchange; returns its
    relative error.

    In a world where v holds x and u holds y, exchange the two: the weight changes by the factor f_u(x)/f_v(x)
    * f_v(y)/f_u(y). With the least factor m over the y that u can hold, Z_u >= m Z_v, and the P of all people
    sum to the number k of times x is published: P_v <= k / (1 + sum of m over the others). y runs over the
    published values without one x; y = x has factor 1.
    """
    kinds, width = weights.shape
    for v in range(kinds):
        for x in range(width):
            if weights[v, x] == 0.0:
                chances[v, x] = 0.0
                continue
            total = 0.0
            for u in range(kinds):
                least = np.inf
                for y in range(width):
                    if weights[u, y] > 0.0 and (y != x or values[x] > 1):
                        factor = 1.0
                        if y != x and u != v:
                            factor = weights[u, x] / weights[v, x] * (weights[v, y] / weights[u, y])
                        least = min(least, factor)
                if u == v:
                    total += people[u]
                elif least < np.inf:
                    total += people[u] * least
            chances[v, x] = min(1.0, values[x] / total)
    return 1.01 * ROUNDING * (8.0 + kinds)


@kernel
def blind_bound(n: int, values: I64, weights: F64) -> float:
    """The largest row-exchange bound of a group of n people, each of whom may be of any of the kinds."""
    kinds, width = weights.shape
    worst = 0.0
    for v in range(kinds):
        for x in range(width):
            if weights[v, x] == 0.0:
                continue
            least = 1.0
            for u in range(kinds):
                for y in range(width):
                    if u != v and y != x and weights[u, y] > 0.0:
                        least = min(least, weights[u, x] / weights[v, x] * (weights[v, y] / weights[u, y]))
            worst = max(worst, values[x] / (1.0 + (n - 1) * least))
    return min(1.0, worst)


class ClassCounts(NamedTuple):
    """Who is in each class, by kind, and which values it shows; class c has the kinds from kind_start[c] on."""

    kind_start: I64
    kind: I64
    people: I64
    value_start: I64
    value: I64
    rows: I64


@kernel
def judge_classes(table: F64, counts: ClassCounts, small: int, limit: float) -> tuple[F64, F64, I64]:
    """Of each class: the largest posterior (or its bound), its relative error, and how it was found.

    Classes of up to `small` states are summed; larger ones too if the bound does not settle that they are
    below `limit`.
    """
    kind_start, kind, people, value_start, value, rows = counts
    classes = len(kind_start) - 1
    worst, error, how = np.zeros(classes), np.zeros(classes), np.zeros(classes, dtype=np.int64)
    for c in range(classes):
        kinds, count = kind[kind_start[c] : kind_start[c + 1]], people[kind_start[c] : kind_start[c + 1]]
        values, held = value[value_start[c] : value_start[c + 1]], rows[value_start[c] : value_start[c + 1]]
        weights = np.empty((len(kinds), len(values)))
        for i in range(len(kinds)):
            for j in range(len(values)):
                weights[i, j] = table[kinds[i], values[j]]
        chances = np.zeros_like(weights)
        if len(kinds) == 0:  # nobody is known to be here: nothing can be shown
            worst[c] = np.inf
            continue
        if len(kinds) == 1:
            worst[c] = held.max() / count[0] if weights.min() > 0.0 else np.inf
            error[c] = ROUNDING
            continue
        how[c], error[c] = BOUNDED, exchange_bound(count, held, weights, chances)
        worst[c] = chances.max()
        settled = worst[c] * (1.0 + error[c]) <= limit
        if min(states_of(held), states_of(count)) <= small or not settled:
            again = np.zeros_like(weights)
            wrong = posteriors(count, held, weights, again)
            if wrong < np.inf:
                how[c], error[c], worst[c] = SUMMED, wrong, again.max()
    return worst, error, how


def exact(
    people: Sequence[int], values: Sequence[int], rows: Sequence[Sequence[Fraction]]
) -> list[list[Fraction]] | None:
    """P(one person of the kind has the value), for every kind and value, in whole numbers; None when too
    large.

    A group that the priors make impossible (no world has weight) has no posterior: every entry is then 1.

    >>> third = Fraction(1, 3)
    >>> exact([1, 1], [1, 1], [[Fraction(1, 10), Fraction(9, 10)], [third, 2 * third]])
    [[Fraction(2, 11), Fraction(9, 11)], [Fraction(9, 11), Fraction(2, 11)]]
    """
    whole = [[int(p * lcm(*(q.denominator for q in row))) for p in row] for row in rows]
    by_value, by_kind = states_of(np.array(values)), states_of(np.array(people))
    if min(by_value, by_kind) > EXACT_STATES:
        return None
    chances = None
    if by_value <= by_kind:
        chances = _exact_sum(people, values, whole)
    elif turned := _exact_sum(values, people, [list(column) for column in zip(*whole, strict=True)]):
        chances = [[turned[j][t] * values[j] / n for j in range(len(values))] for t, n in enumerate(people)]
    return chances or [[Fraction(1)] * len(values) for _ in people]


def _exact_sum(
    lines: Sequence[int], columns: Sequence[int], weights: Sequence[Sequence[int]]
) -> list[list[Fraction]] | None:
    """The same sum as `sum_worlds`, level by level over dictionaries of states; None if no world has weight."""
    sequence = [t for t, count in enumerate(lines) for _ in range(count)]
    ahead: list[dict[tuple[int, ...], int]] = [{(0,) * len(columns): 1}]
    for t in sequence:
        after: dict[tuple[int, ...], int] = {}
        for state, weight in ahead[-1].items():
            for j, used in enumerate(state):
                if used < columns[j] and weights[t][j]:
                    following = (*state[:j], used + 1, *state[j + 1 :])
                    after[following] = after.get(following, 0) + weight * weights[t][j]
        ahead.append(after)
    total = ahead[-1].get(tuple(columns), 0)
    if not total:
        return None
    chances = [[0] * len(columns) for _ in lines]
    behind = {tuple(columns): 1}
    for place in range(len(sequence) - 1, -1, -1):
        t, before = sequence[place], {}
        leading = place == sequence.index(t)
        for state, weight in ahead[place].items():
            gained = 0
            for j, used in enumerate(state):
                following = (*state[:j], used + 1, *state[j + 1 :])
                step = weights[t][j] * behind.get(following, 0) if used < columns[j] else 0
                gained += step
                if leading:
                    chances[t][j] += weight * step
            before[state] = gained
        behind = before
    return [[Fraction(entry, total) for entry in row] for row in chances]


def exact_bound(people: Sequence[int], values: Sequence[int], rows: Sequence[Sequence[Fraction]]) -> Fraction:
    """The largest row-exchange bound of a group, as a rational; see `exchange_bound`."""
    worst = Fraction(0)
    for v, own in enumerate(rows):
        for x, held in enumerate(values):
            if not own[x]:
                continue
            total = Fraction(people[v])
            for u, other in enumerate(rows):
                if u == v:
                    continue
                factors = [
                    Fraction(1) if y == x else other[x] / own[x] * (own[y] / other[y])
                    for y in range(len(values))
                    if other[y] and (y != x or values[x] > 1)
                ]
                total += people[u] * min(factors, default=Fraction(0))
            worst = max(worst, Fraction(held) / total)
    return min(Fraction(1), worst)


def delta_ceiling(n: int, r: Fraction, highest: Fraction) -> Fraction:
    """The paper's Delta_ceil: how far the priors of x in a group of n may lie below the highest of them.

    >>> float(delta_ceiling(3, Fraction(2), Fraction(1, 10)))  # Example 2: 9/190
    0.04736842105263158
    """
    if highest in (0, 1):
        return Fraction(0)
    return (n - r) * highest / (highest * (r - 1) / (1 - highest) + (n - 1))
