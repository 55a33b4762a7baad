"""Utility and risk by brute force: row by row, value by value, by definition. Imports nothing of ours.

A published cell is given as the list of the values that it stands for (within the domain of its column).
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product


def ncp_of_values(cell, domain):
    """(values - 1) / (domain - 1)."""
    return 0.0 if len(domain) < 2 else (len(set(cell)) - 1) / (len(domain) - 1)


def ncp_of_range(cell, domain):
    """Width over range."""
    width = max(domain) - min(domain)
    return 0.0 if width == 0 else (max(cell) - min(cell)) / width


def entropy_of(cell, column):
    """Entropy of the original values inside a cell, over the entropy of the whole column."""

    def bits(values):
        counts = Counter(values)
        return -sum(n / len(values) * math.log2(n / len(values)) for n in counts.values()) if values else 0.0

    whole = bits(column)
    return bits([value for value in column if value in set(cell)]) / whole if whole else 0.0


def discernibility(classes, suppressed, rows):
    """Pairs of rows that cannot be told apart, a row with itself included; suppressed rows with everybody."""
    pairs = sum(1 for a, b in product(classes, repeat=2) if a == b)
    return pairs + suppressed * rows


def true_count(rows, query):
    """`query` gives the accepted values of each column."""
    return sum(all(value in accepted for value, accepted in zip(row, query, strict=True)) for row in rows)


def estimate(groups, query):
    """`groups`: (cells, sensitive value of each row, counterfeits). A query ends with sensitive values."""
    total = 0.0
    for cells, values, counterfeits in groups:
        share = sum(value in query[-1] for value in values) / len(values)
        for cell, accepted in zip(cells, query[:-1], strict=True):
            share *= sum(value in accepted for value in cell) / len(cell) if cell else 0.0
        total += (len(values) - counterfeits) * share
    return total


def median(numbers):
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def prosecutor(classes, threshold):
    """`classes`: the class of every row. Largest risk, mean risk, share of rows above the threshold."""
    risks = [Fraction(1, classes.count(mine)) for mine in classes]
    return max(risks), sum(risks) / len(risks), Fraction(sum(r > threshold for r in risks), len(risks))


def journalist(classes, people, threshold):
    """`people`: for every row, the number of people of the population who fit its class."""
    risks = [Fraction(1, n) for n in people]
    reached = dict(zip(classes, people, strict=True))
    mean = max(sum(risks) / len(risks), Fraction(len(reached), sum(reached.values())))
    return max(risks), mean, Fraction(sum(r > threshold for r in risks), len(risks))


def marketer(people):
    return sum(Fraction(1, n) for n in people) / len(people)


def without_original(published, original):
    """How many published rows stay over when each takes an original row of its own: covers, a column, and values."""
    taken = {}

    def takes(row, seen):
        for i, value in enumerate(original):
            if value in published[row] and i not in seen:
                seen.add(i)
                if i not in taken or takes(taken[i], seen):
                    taken[i] = row
                    return True
        return False

    return sum(not takes(row, set()) for row in range(len(published)))
