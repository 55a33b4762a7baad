"""People who were away come back to a closed cohort of changing values: all worlds of small cases. Nothing of ours.

Everybody's value goes on with the public chances, seen or not. The place of somebody who is away shows a counterfeit,
which goes on from what the place showed, with the same chances. Ways to go on when they are there again:

- "own": the place shows their own value from then on;
- "stand-in": it goes on as a counterfeit for good; they are there, and their own value is not shown any more;
- "meeting": it goes on as a counterfeit until it comes to show what they have, and shows their own from then on.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import combinations, permutations, product


def trajectories(first, there, chance, way):
    """(own values, values shown, chance) of one person and their place, by release; `there`: when they are."""
    found = [((first,), (first,), Fraction(1), True)]
    for release in range(1, len(there)):
        following = []
        for own, shown, weight, joined in found:
            for value, odds in chance[own[-1]].items():
                if there[release] and (joined or way == "own"):
                    following.append(((*own, value), (*shown, value), weight * odds, True))
                    continue
                for fake, lot in chance[shown[-1]].items():
                    met = there[release] and way == "meeting" and fake == value
                    following.append(((*own, value), (*shown, fake), weight * odds * lot, met))
        found = following
    return [(own, shown, weight) for own, shown, weight, _ in found]


def outcomes(first, there, chance, way):
    """What a cohort can show -> its worlds: by person (own values, values of the place), and the chance.

    `first` are the values of the first release, equally likely to be anybody's; `there`: when each person is there.
    """
    shown = defaultdict(list)
    for order in set(permutations(first)):
        each = [trajectories(value, when, chance, way) for value, when in zip(order, there, strict=True)]
        for world in product(*each):
            weight = Fraction(1)
            for _, _, odds in world:
                weight *= odds
            rows = tuple(tuple(sorted(values)) for values in zip(*(place for _, place, _ in world), strict=True))
            shown[rows].append(([(own, place) for own, place, _ in world], weight))
    return shown


def beliefs(worlds, side, known=(), told=None):
    """By (person, release, value): the chance, of people's own values (side 0) or of those of their places (side 1).

    `known` are people of whom one knows `told`: their own values where they are there.
    """
    total, found = Fraction(0), defaultdict(Fraction)
    for world, weight in worlds:
        if told is not None and told != tuple(world[p][0] for p in known):
            continue
        total += weight
        for person, both in enumerate(world):
            for release, value in enumerate(both[side]):
                found[person, release, value] += weight
    return {question: chance / total for question, chance in found.items()}


def worst_guess(worlds, there, known):
    """The highest chance of anybody's own value where they are there, whichever `known` people are known wholly."""
    worst = Fraction(0)
    for chosen in combinations(range(len(there)), known):
        cases = {tuple(world[p][0] for p in chosen) for world, _ in worlds}
        for told in cases:
            for (person, release, _), chance in beliefs(worlds, 0, chosen, told).items():
                if person not in chosen and there[person][release]:
                    worst = max(worst, chance)
    return worst


def ahead(rows, chance, steps):
    """How many places are expected at each value after so many steps, if those that show `rows` go on."""
    expected = defaultdict(Fraction)
    for value in rows:
        expected[value] += 1
    for _ in range(steps):
        following = defaultdict(Fraction)
        for value, many in expected.items():
            for after, odds in chance[value].items():
                following[after] += many * odds
        expected = following
    return expected
