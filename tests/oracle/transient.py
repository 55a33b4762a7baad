"""Brute force for values that change freely: list every possible world and count. Plain Python, nothing of the package.

A release is a list of groups; a group is (members, values): who is in it, and the published multiset, which is longer
than the list of members where rows are counterfeit. A world gives each member of each group one published *row*, no
row to two people; all worlds are equally likely, and releases are independent.
"""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction


def worlds_of_group(members, values):
    """Every way to give the members different rows, as dicts person -> value (rows that look alike count apart)."""
    for rows in itertools.permutations(range(len(values)), len(members)):
        yield {person: values[row] for person, row in zip(members, rows, strict=True)}


def worlds_of_release(groups):
    for parts in itertools.product(*(list(worlds_of_group(*group)) for group in groups)):
        yield {person: value for part in parts for person, value in part.items()}


def chances(releases):
    """For each person and value, the share of all worlds in which the person has the value at least once.

    The second result has the same for each release apart: (person, value, release) -> share.
    """
    ever, once, total = Counter(), Counter(), 0
    for worlds in itertools.product(*(list(worlds_of_release(groups)) for groups in releases)):
        total += 1
        had = {(person, value, j) for j, world in enumerate(worlds) for person, value in world.items()}
        once.update(had)
        ever.update({(person, value) for person, value, _ in had})
    return (
        {key: Fraction(count, total) for key, count in ever.items()},
        {key: Fraction(count, total) for key, count in once.items()},
    )


def ever_linked_if_persistent(releases, person, value):
    """The same chance if nobody's value ever changes: worlds that give somebody two values are dropped."""
    linked = total = 0
    for worlds in itertools.product(*(list(worlds_of_release(groups)) for groups in releases)):
        known: dict = {}
        if all(known.setdefault(p, v) == v for world in worlds for p, v in world.items()):
            total += 1
            linked += known.get(person) == value
    return Fraction(linked, total)
