"""Minimal sample uniques by trying everything. Imports nothing of the package. Rows are tuples; None is a value."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from math import factorial


def alone(rows, row, columns):
    return sum(all(other[c] == row[c] for c in columns) for other in rows) == 1


def minimal_uniques(rows, row, size):
    """Every combination that singles the row out while no proper part of any size does."""
    found = []
    for m in range(1, size + 1):
        for columns in combinations(range(len(row)), m):
            parts = [part for k in range(1, m) for part in combinations(columns, k)]
            if alone(rows, row, columns) and not any(alone(rows, row, part) for part in parts):
                found.append(columns)
    return found


def score(rows, row, size):
    """With the product of (A - i) from the size of each to the largest size, which is (A - m)! for M = A - 1."""
    width, last, total = len(row), min(size, len(row) - 1), 0
    for columns in minimal_uniques(rows, row, size):
        m = len(columns)
        total += factorial(width - m) // factorial(width - last - 1) if m <= last else 1
    return total


def separation(rows, columns):
    pairs = list(combinations(rows, 2))
    apart = sum(any(a[c] != b[c] for c in columns) for a, b in pairs)
    return Fraction(apart, len(pairs)) if pairs else Fraction(1)


def sizes(rows, columns):
    return [sum(all(a[c] == b[c] for c in columns) for b in rows) for a in rows]


def dis(rows, share):
    everything = sizes(rows, range(len(rows[0])))
    unique, pairs = everything.count(1), everything.count(2) // 2
    below = share * unique + 2 * (1 - share) * pairs
    return share * unique / below if below else Fraction(0)


def dis_scores(scores, unique, share_of_file, width):
    """sdcMicro's DIS-SUDA: 1 / (1 + (U/DIS - U) / (S^Q x sum of 1/S^Q)), for a DIS above 0."""
    q = max(0, Fraction(28 - width, 20))
    total = sum(1 / Decimal(s) ** (Decimal(q.numerator) / q.denominator) for s in map(str, scores) if float(s))
    found = []
    for score in scores:
        if not score:
            found.append(0.0)
            continue
        weight = Decimal(str(score)) ** (Decimal(q.numerator) / q.denominator) * total
        rest = unique / share_of_file - unique
        found.append(float(1 / (1 + Decimal(rest.numerator) / rest.denominator / weight)))
    return found
