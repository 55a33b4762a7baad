"""What analysts find in a table and in its release, by the definitions. Imports nothing of ours.

A published row of a column is given as (what it shows as a number or as shares, the values that it may stand for).
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction


def squared_error(original, shown, withheld):
    """`shown`: (number, lowest, highest) of each published row; a value inside is as likely as in the column."""
    mean = Fraction(sum(original), len(original))
    spread = sum((value - mean) ** 2 for value in original)
    lost = Fraction(withheld, len(original)) * spread
    for number, low, high in shown:
        inside = [value for value in original if low <= value <= high]
        lost += sum((value - number) ** 2 for value in inside) / Fraction(len(inside))
    return float(lost / spread) if spread else 0.0


def variation(original, shown):
    """`shown`: the different values of the original that each published row may stand for, all alike."""
    after, before = Counter(), Counter()
    for value in original:
        before[value] += Fraction(1, len(original))
    for values in shown:
        for value in values:
            after[value] += Fraction(1, len(values) * len(shown))
    return float(sum(abs(before[value] - after[value]) for value in {*before, *after}) / 2)


def correlation(xs, ys):
    n = len(xs)
    mx, my = sum(xs) / n, sum(ys) / n
    top = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True))
    bottom = math.sqrt(sum((x - mx) ** 2 for x in xs) * sum((y - my) ** 2 for y in ys))
    return top / bottom if bottom else 0.0


def line(xs, ys):
    """Least squares of y by one x: (constant, slope), each with its standard error, in exact fractions but the root."""
    n, xs, ys = len(xs), [Fraction(x) for x in xs], [Fraction(y) for y in ys]
    mx, my = sum(xs) / n, sum(ys) / n
    sxx = sum((x - mx) ** 2 for x in xs)
    slope = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True)) / sxx
    constant = my - slope * mx
    rest = sum((y - constant - slope * x) ** 2 for x, y in zip(xs, ys, strict=True)) / (n - 2)
    errors = math.sqrt(rest * (Fraction(1, n) + mx**2 / sxx)), math.sqrt(rest / sxx)
    return (float(constant), errors[0]), (float(slope), errors[1])


def overlap(one, other):
    """The mean share of two intervals in common, by looking at a fine grid of points."""
    steps = 20_000

    def share(a, b):
        points = [a[0] + (a[1] - a[0]) * (i + 0.5) / steps for i in range(steps)]
        return sum(b[0] <= point <= b[1] for point in points) / steps

    return (share(one, other) + share(other, one)) / 2
