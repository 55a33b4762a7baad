"""Who is tied to whom by adding and subtracting groups: rank over the rationals. Imports nothing of the package.

A series is a list of releases, a release a list of groups, a group (people, values) without counterfeits.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations


def combination(rows, target):
    """How often to take each row so that they add up to the target, or None if nothing does."""
    table = [[Fraction(row[c]) for row in rows] + [Fraction(target[c])] for c in range(len(target))]
    done, pivots = 0, []
    for column in range(len(rows)):
        line = next((i for i in range(done, len(table)) if table[i][column]), None)
        if line is None:
            continue
        table[done], table[line] = table[line], table[done]
        table[done] = [x / table[done][column] for x in table[done]]
        for i, other in enumerate(table):
            if i != done and other[column]:
                table[i] = [x - other[column] * y for x, y in zip(other, table[done], strict=True)]
        pivots.append(column)
        done += 1
    if any(line[-1] for line in table[done:]):
        return None
    found = [Fraction(0)] * len(rows)
    for line, column in enumerate(pivots):
        found[column] = table[line][-1]
    return found


def ties(series):
    """(determined, equal, told apart): person -> value; pairs with one value; pairs -> the values of the two."""
    groups = [(list(people), Counter(values)) for release in series for people, values in release]
    people = sorted({p for members, _ in groups for p in members})
    rows = [[members.count(p) for p in people] for members, _ in groups]

    def left(target):
        times = combination(rows, target)
        if times is None:
            return None
        rest = Counter()
        for often, (_, values) in zip(times, groups, strict=True):
            for value, count in values.items():
                rest[value] += often * count
        return {value: count for value, count in rest.items() if count}

    determined, equal, apart = {}, set(), {}
    for n, person in enumerate(people):
        rest = left([int(c == n) for c in range(len(people))])
        if rest is not None:
            determined[person] = next(iter(rest))
    for (i, one), (j, two) in combinations(enumerate(people), 2):
        if one in determined or two in determined:
            continue
        rest = left([int(c == i) - int(c == j) for c in range(len(people))])
        if rest == {}:
            equal.add((one, two))
        elif rest is not None:
            high = next(value for value, count in rest.items() if count > 0)
            low = next(value for value, count in rest.items() if count < 0)
            apart[one, two] = (high, low)
    return determined, equal, apart
