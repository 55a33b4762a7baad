"""What a rule for corrections, merges and erasures tells, over all worlds. Plain Python, exact.

A world is what happened, with its weight; a *rule* says what everybody sees of it. Two rules are compared by the belief
in each statement about people, given what is seen.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import permutations


def beliefs(worlds, seen, statements):
    """By what is seen: the belief in each statement. `worlds` are pairs of a world and its weight."""
    total, held = defaultdict(Fraction), defaultdict(lambda: defaultdict(Fraction))
    for world, weight in worlds:
        total[seen(world)] += weight
        for statement in statements(world):
            held[seen(world)][statement] += weight
    return {one: {s: weight / total[one] for s, weight in told.items()} for one, told in held.items()}


def highest(told):
    """The highest belief in anything, whatever is seen."""
    return max(belief for one in told.values() for belief in one.values())


def change(worlds, before, after, statements):
    """By how much a belief can move when `after` is seen as well as `before`."""
    first, then = beliefs(worlds, before, statements), beliefs(worlds, lambda w: (before(w), after(w)), statements)
    moved = [
        abs(told.get(s, Fraction(0)) - first[seen[0]].get(s, Fraction(0)))
        for seen, told in then.items()
        for s in {*told, *first[seen[0]]}
    ]
    return max(moved)


def corrected_cohorts(size, domain, newcomers, wrong):
    """A cohort that shows each value 0..size-1 once; perhaps its person 0 was recorded wrong, and two newcomers come.

    `wrong(recorded, true)` is the chance that a recorded value is wrong and another one true. A world: the recorded
    values, the true value of person 0 (or None: recorded right), and the values of the newcomers.
    """
    for recorded in permutations(range(size)):
        others = [value for value in range(domain) if value != recorded[0]]
        right = 1 - sum(wrong(recorded[0], value) for value in others)
        for true in (None, *others):
            chance = right if true is None else wrong(recorded[0], true)
            for fresh in permutations(range(domain), newcomers):
                yield (recorded, true, fresh), Fraction(chance)


def merged_places(size, same):
    """Two cohorts with values of their own, and in each a place of what is one person: recorded twice, true once.

    A world: the recorded values of both cohorts, and which of the two records is true; `same` are the chances.
    """
    for one in permutations(range(size)):
        for other in permutations(range(size, 2 * size)):
            for true, chance in enumerate(same):
                yield (one, other, true), Fraction(chance)


def erasures(size, asks):
    """A cohort in which one person may ask to be erased; `asks(value)` is the chance that a person with it does."""
    for recorded in permutations(range(size)):
        nobody = Fraction(1)
        for person in range(size):
            chance = Fraction(asks(recorded[person])) / size
            nobody -= chance
            yield (recorded, person), chance
        yield (recorded, None), nobody
