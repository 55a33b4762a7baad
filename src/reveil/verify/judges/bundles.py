"""Guarantees of one release about people (or households) with several rows: bundles of rows are what is counted.

A class is one of bundles that show the same cells row by row. Each of its people may have any of its bundles, all
equally likely; somebody is linked to a value if any of their rows has it. Nothing is rounded.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reveil.base.words import some
from reveil.history.history import History
from reveil.verify.judges.contract import Verdict, View
from reveil.verify.judges.counts import exceeds, largest_ratio, ranked, written
from reveil.verify.judges.verdicts import empty, share_of_classes, verdict

Bundle = frozenset[int]  # the values of somebody, by number


@dataclass
class BundlesJudge:
    """Every class has the bundles of at least k people."""

    k: int
    people: str
    name: str = "k-anonymity"

    def judge(self, view: View, history: History) -> list[Verdict]:
        owners = view.owners()
        if not len(owners):
            return [empty(self.name, self.k, {})]
        bad, smallest = owners < self.k, int(owners.min())
        found = share_of_classes(bad) + " fewer than" if bad.any() else "every class has the rows of at least"
        statement = f"{found} {self.k:,} {self.people}; the smallest has {smallest:,}"
        plain = (
            f"Whoever knows all rows of one of the {self.people} in the columns by which they could be known finds at "
            f"least {smallest:,} {self.people} who show the same rows."
        )
        details = {"class": int(owners.argmin()), "class_people": smallest}
        worst = Fraction(smallest)
        return [verdict(self.name, statement, plain, bad, view.sizes(), worst=worst, bound=self.k, details=details)]


@dataclass
class LinkedJudge:
    """In no class more than a share alpha of the people are linked to one value."""

    alpha: Fraction
    column: str
    people: str
    name: str = "alpha-k"

    def judge(self, view: View, history: History) -> list[Verdict]:
        classes, linked = linked_people(view, self.column)
        details = {"column": self.column}
        if not len(classes):
            return [empty(self.name, self.alpha, details)]
        owners = view.owners()
        worst, place = largest_ratio(linked, owners[classes])
        bad = np.zeros(view.count, dtype=np.bool_)
        bad[classes[exceeds(linked, owners[classes], self.alpha)]] = True
        found = share_of_classes(bad) + " a value of" if bad.any() else "no class has a value of"
        statement = (
            f"{found} {self.column!r} in the rows of more than {written(self.alpha)} of its {self.people}; the "
            f"largest share is {written(worst)}"
        )
        plain = (
            f"In no group more than {written(worst)} of the {self.people} have one and the same value of "
            f"{self.column!r} in any of their rows."
        )
        at = int(classes[place])
        seen = details | {"class": at, "class_people": int(owners[at])}
        return [verdict(self.name, statement, plain, bad, view.sizes(), worst=worst, bound=self.alpha, details=seen)]


@dataclass
class CoveringJudge:
    """In every class, any l - 1 values leave somebody who has none of them: so many exclusions name nobody's value."""

    l: int  # noqa: E741 - the name the field uses
    column: str
    people: str
    name: str = "l-diversity"

    def judge(self, view: View, history: History) -> list[Verdict]:
        details = {"column": self.column, "diversity": "distinct"}
        found = bundles_by_class(view, self.column)
        if not found:
            return [empty(self.name, self.l, details)]
        least = np.array([covering(people, self.l) for people in found])
        bad, poorest = least < self.l, int(least.min())
        what = f"{some(poorest, 'value')} of {self.column!r} such that everybody has one of them"
        statement = (
            f"{share_of_classes(bad)} fewer than {self.l} values of {self.column!r} such that all its {self.people} "
            f"have one of them; the poorest has {poorest}"
            if bad.any()
            else f"no class has {some(self.l - 1, 'value')} of {self.column!r} of which all its {self.people} have one"
        )
        plain = (
            f"A group has {what}: whoever rules out the others is certain."
            if bad.any()
            else f"In no group do all {self.people} have one value of {self.column!r} in common."
            if self.l == 2
            else f"Whoever rules out {some(self.l - 2, 'value')} of {self.column!r} is still certain of nobody's."
        )
        seen = details | {"class": int(least.argmin())}
        sizes = view.sizes()
        return [verdict(self.name, statement, plain, bad, sizes, worst=Fraction(poorest), bound=self.l, details=seen)]


def linked_people(view: View, column: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each value of each class that occurs: the class, and how many of its people have the value in any row."""
    assert view.bundles is not None
    values, ranks = ranked(view.sensitive[column])
    width = max(1, len(values))
    once, first = np.unique(view.bundles * width + ranks, return_index=True)
    keys, linked = np.unique(view.classes[first] * width + once % width, return_counts=True)
    return keys // width, linked


def bundles_by_class(view: View, column: str) -> list[list[Bundle]]:
    """The values of each of the people of each class."""
    assert view.bundles is not None
    _, ranks = ranked(view.sensitive[column])
    held: dict[int, set[int]] = {}
    of_class: dict[int, int] = {}
    for bundle, rank, place in zip(view.bundles.tolist(), ranks.tolist(), view.classes.tolist(), strict=True):
        held.setdefault(bundle, set()).add(rank)
        of_class[bundle] = place
    people: list[list[Bundle]] = [[] for _ in range(view.count)]
    for bundle, values in held.items():
        people[of_class[bundle]].append(frozenset(values))
    return people


def covering(people: list[Bundle], l: int) -> int:  # noqa: E741
    """The least number of values such that everybody has one of them; l where it is l or more.

    >>> covering([frozenset({1, 2}), frozenset({2, 3}), frozenset({3, 1})], 4)
    2
    """
    return next((number for number in range(1, l) if _covered(people, number)), l)


def _covered(people: list[Bundle], number: int) -> bool:
    """Whether some `number` values are such that everybody has one: one value of whoever has fewest is among them."""
    if not people or not number:
        return not people
    linked = Counter(value for one in people for value in one)
    if sum(count for _, count in linked.most_common(number)) < len(people):
        return False  # not even the most frequent ones are enough: nearly always, and the search is long
    return any(_covered([one for one in people if value not in one], number - 1) for value in min(people, key=len))
