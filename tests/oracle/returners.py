"""People who come back after their place was refilled, over all worlds. Plain Python, nothing of ours.

A history is a list of what everybody sees happen: ("found", people), a cohort that shows every value of the signature
once, and ("refill", who left, who came), newcomers who together have the values of those who left. People may be in
several cohorts. A world gives everybody a value for good; all worlds that fit are equally likely.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations, permutations


def worlds(history, values, held=None):
    """Everybody's value in each world, for a signature of so many values."""
    held = held or {}
    if not history:
        yield held
        return
    (kind, *who), *later = history
    people = who[-1]
    left = Counter(range(values)) if kind == "found" else Counter(held[p] for p in who[0])
    known = Counter(held[p] for p in people if p in held)
    if known - left:
        return
    new = [p for p in people if p not in held]
    for order in permutations(sorted((left - known).elements())):
        yield from worlds(later, values, {**held, **dict(zip(new, order, strict=True))})


def worst_belief(history, values, known):
    """The highest belief in a value of anybody, whichever `known` people are known, and whatever they have."""
    every = list(worlds(history, values))
    people, worst = sorted(every[0]), Fraction(0)
    for chosen in combinations(people, known):
        cases = defaultdict(list)
        for held in every:
            cases[tuple(held[p] for p in chosen)].append(held)
        for case in cases.values():
            for person in set(people) - set(chosen):
                top = max(Counter(held[person] for held in case).values())
                worst = max(worst, Fraction(top, len(case)))
    return worst


def promised(values, known, refill):
    """What refilled cohorts promise: the others of a cohort, or of a refill, who are not known."""
    return max(Fraction(1, values - known), Fraction(1, refill - known + 1) if known else Fraction(1, refill))
