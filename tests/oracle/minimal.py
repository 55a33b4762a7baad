"""A publisher who cuts groups as far as the promise allows, and what its tables give away: every world is published
again, and those count that give the very same groups. Plain Python, nothing of the package."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations, product


def diverse(values, ell, k=1):
    return len(values) >= k and len(set(values)) >= ell


def publish(people, values, ell, where="any"):
    """Groups of people (dict name -> tuple of numbers), cut by the first cut that works, column by column."""

    def cut(group):
        for column in range(len(next(iter(people.values())))):
            places = sorted({people[p][column] for p in group})
            if where == "median":
                ordered = sorted(people[p][column] for p in group)
                middle = ordered[(len(ordered) - 1) // 2]
                places = [place for place in places if place <= middle][-1:] + places[-1:]
                places = sorted(set(places))
            for place in places[:-1]:
                low = [p for p in group if people[p][column] <= place]
                high = [p for p in group if people[p][column] > place]
                if all(diverse([values[p] for p in part], ell) for part in (low, high)):
                    return cut(low) + cut(high)
        return [tuple(sorted(group))]

    return sorted(cut(sorted(people)))


def worlds(groups, values):
    """Every way to give out the values of each group to its people."""
    ways = [sorted(set(permutations([values[p] for p in group]))) for group in groups]
    for chosen in product(*ways):
        yield {p: v for group, given in zip(groups, chosen, strict=True) for p, v in zip(group, given, strict=True)}


def beliefs(possible):
    total, counts = 0, Counter()
    for world in possible:
        total += 1
        counts.update(world.items())
    return {key: Fraction(n, total) for key, n in counts.items()}
