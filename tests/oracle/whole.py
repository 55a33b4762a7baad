"""Conditions on all classes of a table together, by their definitions. Plain Python, nothing of the package."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import exp, lgamma, log


def average_risk(cells):
    """The mean, over all rows, of one over how many rows show the same."""
    alike = Counter(cells)
    return sum(Fraction(1, alike[one]) for one in cells) / len(cells)


def sample_uniqueness(cells):
    """The share of rows that show what no other row shows."""
    alike = Counter(cells)
    return Fraction(sum(alike[one] == 1 for one in cells), len(cells))


def population_uniqueness(cells, people, steps=40):
    """Pitman's formula: of each alpha the likeliest theta, and the likeliest alpha, by thirds."""
    sizes = sorted(Counter(cells).values())
    if sizes[0] > 1:
        return 0.0
    if sizes[-1] == 1:
        return 1.0

    def theta_of(alpha):
        return exp(by_thirds(lambda t: likelihood(exp(t), alpha, sizes), log(1e-6), log(1e9), steps))

    alpha = by_thirds(lambda a: likelihood(theta_of(a), a, sizes), 1e-9, 1 - 1e-9, steps)
    theta = theta_of(alpha)
    return exp(lgamma(theta + alpha + people - 1) - lgamma(theta + alpha) + lgamma(theta + 1) - lgamma(theta + people))


def by_thirds(value, low, high, steps):
    """Where a function with one top is highest."""
    for _ in range(steps):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (a, high) if value(a) < value(b) else (low, b)
    return (low + high) / 2


def likelihood(theta, alpha, sizes):
    """The logarithm of the chance that people fall into classes of these sizes, one after the other."""
    chance, there = 0.0, 0
    for classes, size in enumerate(sizes):
        for inside in range(size):
            if there:
                chance += log((theta + classes * alpha if not inside else inside - alpha) / (theta + there))
            there += 1
    return chance


def best_nodes(rows, columns, passes, most=0):
    """The least mean penalty over all level vectors whose whole table passes; None where none does.

    `rows`: values by column; a column is a dict from each value to its labels, level by level. `passes(cells)`.
    """
    from itertools import product

    best = None
    for levels in product(*(range(len(next(iter(column.values())))) for column in columns)):
        cells = [tuple(c[v][at] for c, v, at in zip(columns, row, levels, strict=True)) for row in rows]
        if not passes(cells):
            continue
        lost = Fraction(0)
        for place, (column, at) in enumerate(zip(columns, levels, strict=True)):
            for row in rows:
                label = column[row[place]][at]
                covered = sum(labels[at] == label for labels in column.values())
                lost += Fraction(covered - 1, max(1, len(column) - 1))
        lost /= len(rows) * len(columns)
        best = lost if best is None else min(best, lost)
    return best
