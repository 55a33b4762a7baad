"""Possible worlds of series in which values last: plain enumeration, nothing of the package.

A series is a list of releases, a release a list of groups, a group (people, values): the people known to be in
it and the published values. More values than people means counterfeits. A world gives each person one value so
that in every group the people's values are among the published ones (as often as those occur).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations


def worlds(series):
    """Every world, as a dict person -> value."""
    groups = [(tuple(people), Counter(values)) for release in series for people, values in release]
    people = sorted({person for members, _ in groups for person in members})
    mine = {person: [number for number, (members, _) in enumerate(groups) if person in members] for person in people}
    left = [Counter(values) for _, values in groups]
    found, world = [], {}

    def fill(place):
        if place == len(people):
            found.append(dict(world))
            return
        person = people[place]
        first, *rest = mine[person]
        for value in [v for v, count in left[first].items() if count > 0]:
            if all(left[g][value] > 0 for g in rest):
                for g in mine[person]:
                    left[g][value] -= 1
                world[person] = value
                fill(place + 1)
                for g in mine[person]:
                    left[g][value] += 1
        world.pop(person, None)

    fill(0)
    return found


def posteriors(possible):
    """person -> value -> probability, all worlds being equally likely."""
    counts = {person: Counter(world[person] for world in possible) for person in possible[0]}
    return {p: {v: Fraction(n, len(possible)) for v, n in found.items()} for p, found in counts.items()}


def placed(series):
    """Every world of people who stay together, one for each way to give them places: worlds of equal weight.

    A cohort shows the same values in every release. Where one of them is shown twice these are two places, and people
    keep theirs; taking each assignment of values once would weigh counterfeits of the same value anew in each release.
    """
    told = []
    for release in series:
        for people, values in release:
            seen = Counter()
            marked = []
            for value in sorted(values):
                seen[value] += 1
                marked.append((value, seen[value]))
            told.append([(people, marked)])
    return [{person: place[0] for person, place in world.items()} for world in worlds(told)]


def worst_guess(series, known, harmless=(), places=False):
    """The highest posterior of anybody else over all sets of `known` people and all values they may have.

    Guesses of harmless values do not count. With `places`, worlds are ways to give people places.
    """
    possible = placed(series) if places else worlds(series)
    people = sorted(possible[0])
    worst = Fraction(0)
    for chosen in combinations(people, min(known, len(people) - 1)):
        cases = {}
        for world in possible:
            cases.setdefault(tuple(world[p] for p in chosen), []).append(world)
        for case in cases.values():
            for person, found in posteriors(case).items():
                if person not in chosen:
                    worst = max([worst, *(chance for value, chance in found.items() if value not in harmless)])
    return worst


def forced_equal(series):
    """Pairs of people who have the same value in every world."""
    possible = worlds(series)
    people = sorted(possible[0])
    return {(a, b) for a, b in combinations(people, 2) if all(w[a] == w[b] for w in possible)}


def revealed(series, known):
    """Who is certain once these people's values (a dict) are known."""
    possible = [w for w in worlds(series) if all(w[p] == v for p, v in known.items())]
    return {p: next(iter(f)) for p, f in posteriors(possible).items() if len(f) == 1 and p not in known}
