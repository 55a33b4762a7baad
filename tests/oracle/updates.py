"""The update graph and m-Distinct by their definitions: every path is listed, every matching tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import Any

Chance = Mapping[Any, Mapping[Any, Fraction]]  # value -> what it becomes -> probability


def path_chances(shown: Sequence[Mapping[Any, int]], chance: Chance) -> list[dict[Any, Fraction]]:
    """Equation (2) of Li and Zhou, for every value at every appearance, by listing all paths."""
    total, through = Fraction(0), [dict.fromkeys(values, Fraction(0)) for values in shown]
    for path in product(*shown):
        weight = Fraction(1)
        for number, value in enumerate(path):
            weight *= shown[number][value]
            if number:
                weight *= chance.get(path[number - 1], {}).get(value, Fraction(0))
        total += weight
        for number, value in enumerate(path):
            through[number][value] += weight
    return [{value: weight / total if total else Fraction(0) for value, weight in found.items()} for found in through]


def is_legal(before: Sequence[Any], after: Sequence[Any], may_become: Mapping[Any, set[Any]]) -> bool:
    """Definition 14, and besides some way to pair old values with new ones."""
    if len(before) != len(after):
        return False
    covered = all(any(b in may_become[a] for a in before) for b in after)
    served = all(any(b in may_become[a] for b in after) for a in before)
    paired = any(all(b in may_become[a] for a, b in zip(before, order, strict=True)) for order in permutations(after))
    return covered and served and paired


def is_distinct(
    series: Sequence[Sequence[tuple[Sequence[Any], Sequence[Any]]]],
    m: int,
    may_become: Mapping[Any, set[Any]],
    star: bool = False,
) -> bool:
    """Definition 15 for a series of releases, each a list of groups (people, published values)."""
    last: dict[Any, Sequence[Any]] = {}
    for release in series:
        seen = dict(last)
        for people, values in release:
            if len(set(values)) < len(values) or len(values) < m:
                return False
            overlap = any(may_become[a] & may_become[b] for a in values for b in values if a != b)
            for person in people:
                if person in last and not is_legal(last[person], values, may_become):
                    return False
                if star and person not in last and overlap:
                    return False
                seen[person] = values
        last = seen
    return True
