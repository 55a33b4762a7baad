"""The belief of an adversary over a whole series, by listing every world. Imports nothing of the package.

A series is a list of releases, a release a list of groups, a group (people, values); more values than people means
counterfeits. A world says which published row is whose. Its weight is the product over people of the prior of their
first value and of a transition weight for each later appearance; where values change freely, of the prior of each.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction


def beliefs(series, change="never", priors=None, known=None):
    """(total weight, posteriors, ever): posteriors by (person, release) and ever by person, each value -> Fraction.

    `change` is "never", "freely", or a dict value -> value -> weight. `known` is (person, release) -> value.
    """
    priors, known = priors or {}, known or {}
    groups = [(r, tuple(people), tuple(values)) for r, release in enumerate(series) for people, values in release]
    total = Fraction(0)
    posterior = defaultdict(lambda: defaultdict(Fraction))
    ever = defaultdict(lambda: defaultdict(Fraction))
    last, world = {}, {}

    def step(person, value):
        prior = priors.get(person, {}).get(value, 0) if person in priors else 1
        if change == "freely" or person not in last:
            return prior
        before = last[person]
        if change == "never":
            return int(before == value)
        return change.get(before, {before: 1}).get(value, 0)

    def fill(number, weight):
        nonlocal total
        if number == len(groups):
            total += weight
            mine = defaultdict(set)
            for (person, release), value in world.items():
                posterior[person, release][value] += weight
                mine[person].add(value)
            for person, values in mine.items():
                for value in values:
                    ever[person][value] += weight
            return
        seat(number, 0, Counter(groups[number][2]), weight)

    def seat(number, place, left, weight):
        """The people of a group one after the other; a value that is left twice can be theirs in two ways."""
        release, people, _ = groups[number]
        if place == len(people):
            fill(number + 1, weight)
            return
        person, before = people[place], last.get(people[place])
        for value in [value for value, count in left.items() if count]:
            times = weight * left[value] * step(person, value)
            if not times or known.get((person, release), value) != value:
                continue
            world[person, release] = last[person] = value
            left[value] -= 1
            seat(number, place + 1, left, times)
            left[value] += 1
            del world[person, release]
            if before is None:
                del last[person]
            else:
                last[person] = before

    fill(0, Fraction(1))
    if not total:
        return total, {}, {}
    return (
        total,
        {key: {v: w / total for v, w in found.items() if w} for key, found in posterior.items()},
        {key: {v: w / total for v, w in found.items() if w} for key, found in ever.items()},
    )
