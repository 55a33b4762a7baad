"""What a release tells of people (or households) with several rows, by enumeration. Nothing of the package.

It reads the published text, in which one column says which rows belong together, and puts itself in the place of
somebody who knows all quasi-identifiers of everybody, in every row, and how many rows each person has.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from fractions import Fraction


def bundles(header, rows, column, quasi, sensitive):
    """By number of the bundle: its rows as (cells, value)."""
    found = defaultdict(list)
    for row in rows:
        cells = dict(zip(header, row, strict=True))
        found[cells[column]].append((tuple(cells[name] for name in quasi), cells[sensitive]))
    return dict(found)


def classes(found):
    """Bundles that nobody can tell apart by what their rows show, as lists of lists of values."""
    alike = defaultdict(list)
    for rows in found.values():
        alike[tuple(sorted(cells for cells, _ in rows))].append([value for _, value in rows])
    return list(alike.values())


def highest_link(group):
    """The highest chance that one of the people of a class has some value, over all ways of dealing out its bundles."""
    people = range(len(group))
    ways = list(itertools.permutations(people))
    return max(
        Fraction(sum(value in group[way[person]] for way in ways), len(ways))
        for person in people
        for value in {value for bundle in group for value in bundle}
    )


def certain_after(group, exclusions):
    """Whether ruling out at most so many values for somebody of a class can name one that they have for certain."""
    values = sorted({value for bundle in group for value in bundle})
    for number in range(exclusions + 1):
        for ruled_out in itertools.combinations(values, number):
            left = [set(bundle) for bundle in group if not set(bundle) & set(ruled_out)]
            if not left or set.intersection(*left):
                return True
    return False


def covers(cell, value):
    """Whether a cell may stand for a value: `*`, an interval, or the value itself; an empty cell is missing."""
    if cell == "*":
        return True
    bounds = re.fullmatch(r"\[(-?\d+)-(-?\d+)\]", cell)
    if bounds and re.fullmatch(r"-?\d+", value):
        return int(bounds[1]) <= int(value) <= int(bounds[2])
    return cell == value


def may_be(bundle, known):
    """Whether the rows of a bundle can be some of those that somebody is known to have."""
    return any(
        all(all(map(covers, cells, row)) for (cells, _), row in zip(bundle, chosen, strict=True))
        for chosen in itertools.permutations(known, len(bundle))
    )


def candidates(found, known, size):
    """How many bundles of so many rows can be those of somebody of whom all rows are known."""
    return sum(len(rows) == size and may_be(rows, known) for rows in found.values())
