"""Posteriors under a prior by listing every world. Imports nothing from the package."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from math import lcm, prod


def enumerate_posteriors(rows: Sequence[Sequence[Fraction]], values: Sequence[int]) -> list[dict[int, Fraction]] | None:
    """P(person i has value x) for every person and published value; None if no world has weight.

    `rows[i][x]` is the prior of person i for value x; `values` is the published multiset, one value per
    person.
    """
    scale = lcm(*(p.denominator for row in rows for p in row))
    whole = [[int(p * scale) for p in row] for row in rows]  # every world has each person once: the scale cancels
    found: list[dict[int, int]] = [dict.fromkeys(values, 0) for _ in rows]
    total = 0
    for world in set(permutations(values)):
        weight = prod(whole[person][value] for person, value in enumerate(world))
        total += weight
        for person, value in enumerate(world):
            found[person][value] += weight
    if not total:
        return None
    return [{value: Fraction(weight, total) for value, weight in row.items()} for row in found]


def x_or_not_posterior(chances: Sequence[Fraction], person: int) -> Fraction:
    """P(person has x) when exactly one of the group has x and only 'x or not x' is weighed (Theorem 1's
    reading).
    """
    weights = []
    for holder in range(len(chances)):
        weight = Fraction(1)
        for other, chance in enumerate(chances):
            weight *= chance if other == holder else 1 - chance
        weights.append(weight)
    return weights[person] / sum(weights, Fraction(0))
