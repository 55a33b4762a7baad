"""Brute force for recoding schemes: every full-domain recoding, and every way to suppress cells. Plain Python.

A table is a list of (quasi-identifier values, sensitive value). A column is a dict from each value of its domain to the
labels of the value, level by level, from the value itself to `*`.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction


def full_domain(rows, columns, passes, most, weights=None, geometric=False, target=None, within=None):
    """The least loss over all levels, and all level vectors that have it. None where none may be published.

    `passes(class, published)` judges the sensitive values of a class against all published ones. Classes that fail are
    withheld, and the others judged again, until none fails; at most `most` rows may be withheld.
    """
    found = {}
    ends = within or [(0, depth(column) - 1) for column in columns]
    for levels in itertools.product(*(range(low, high + 1) for low, high in ends)):
        classes = defaultdict(list)
        for number, (values, _) in enumerate(rows):
            classes[tuple(c[v][at] for c, v, at in zip(columns, values, levels, strict=True))].append(number)
        shown, withheld = publishable(list(classes.values()), rows, passes)
        if shown and withheld <= most:
            kept = [number for members in shown for number in members]
            found[levels] = (
                loss(rows, columns, levels, kept, weights, geometric)
                if target is None
                else TARGETS[target](rows, columns, levels, shown, withheld)
            )
    if not found:
        return None
    least = min(found.values())
    return least, [levels for levels, value in found.items() if abs(value - least) < 1e-12]


def publishable(classes, rows, passes):
    """The classes that may be published, and how many rows may not."""
    while True:
        published = [rows[number][1] for members in classes for number in members]
        good = [members for members in classes if passes([rows[number][1] for number in members], published)]
        if len(good) == len(classes):
            return good, len(rows) - len(published)
        classes = good


def depth(column):
    return len(next(iter(column.values())))


def penalty(column, label, level):
    """The share of the other values that a label may also stand for."""
    covered = sum(labels[level] == label for labels in column.values())
    return Fraction(covered - 1, max(1, len(column) - 1))


def loss(rows, columns, levels, kept, weights, geometric):
    """The mean penalty of all cells, by weight; a withheld row loses everything."""
    shares = weights or [1] * len(columns)
    total, means = sum(shares), []
    for place, (column, level) in enumerate(zip(columns, levels, strict=True)):
        shown = sum(penalty(column, column[rows[number][0][place]][level], level) for number in kept)
        means.append(Fraction(shown + len(rows) - len(kept)) / len(rows))
    if geometric:
        return math.prod((1 + float(mean)) ** (share / total) for mean, share in zip(means, shares, strict=True)) - 1
    return float(sum(mean * Fraction(share) for mean, share in zip(means, shares, strict=True)) / Fraction(total))


def discernibility(rows, columns, levels, shown, withheld):
    """Pairs of rows that cannot be told apart, over all pairs; a withheld row cannot be told from anybody."""
    return float(Fraction(sum(len(members) ** 2 for members in shown) + withheld * len(rows), len(rows) ** 2))


def average_class(rows, columns, levels, shown, withheld):
    """Rows of the table for each class that is published, over the rows."""
    return 1 / len(shown)


def hidden_entropy(rows, columns, levels, shown, withheld):
    """The mean share of a column's entropy that cells hide, at most all of it; a withheld row loses everything."""
    lost = 0.0
    for place, (column, level) in enumerate(zip(columns, levels, strict=True)):
        values = [row[place] for row, _ in rows]
        whole = bits(values)
        for members in shown:
            label = column[values[members[0]]][level]
            inside = bits([value for value in values if column[value][level] == label])
            lost += len(members) * (min(1.0, inside / whole) if whole else 0.0)
        lost += withheld
    return lost / len(rows) / len(columns)


def bits(values):
    return -sum(n / len(values) * math.log2(n / len(values)) for n in Counter(values).values())


def largest(rows, columns, levels, shown, withheld):
    """The mean penalty of the column that loses most; a withheld row loses everything."""
    kept = [number for members in shown for number in members]
    means = []
    for place, (column, level) in enumerate(zip(columns, levels, strict=True)):
        lost = sum(penalty(column, column[rows[number][0][place]][level], level) for number in kept)
        means.append(Fraction(lost + withheld) / len(rows))
    return float(max(means))


TARGETS = {
    "maximum": largest,
    "discernibility": discernibility,
    "average-class": average_class,
    "entropy": hidden_entropy,
}


def fewest_cells(rows, k, weights):
    """The least weight of suppressed cells so that every row equals k - 1 others, `*` being a value like any other.

    Over all partitions into groups of at least k: a group shows the values that all its rows share.
    """
    best = math.inf
    for parts in partitions(list(range(len(rows))), k):
        cost = 0
        for members in parts:
            for place, weight in enumerate(weights):
                if len({rows[number][place] for number in members}) > 1:
                    cost += weight * len(members)
        best = min(best, cost)
    return best


def partitions(items, k):
    """All partitions into groups of k to 2k - 1; larger groups are never better."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for size in range(k - 1, min(2 * k - 2, len(rest)) + 1):
        for others in itertools.combinations(rest, size):
            left = [item for item in rest if item not in others]
            if not left or len(left) >= k:
                for more in partitions(left, k):
                    yield [(first, *others), *more]


def at_least(k, ell=1, alpha=None):
    """A judge of classes: k rows, ell different values, none with more than a share alpha."""

    def passes(values, _):
        most = max(Counter(values).values())
        return len(values) >= k and len(set(values)) >= ell and (alpha is None or most <= alpha * len(values))

    return passes


def close(k, t):
    """A judge of classes: k rows, and a variational distance of at most t from all published rows."""

    def passes(values, published):
        mine, all_rows = Counter(values), Counter(published)
        distance = sum(
            abs(Fraction(mine[value], len(values)) - Fraction(rows, len(published))) for value, rows in all_rows.items()
        )
        return len(values) >= k and distance / 2 <= t

    return passes
