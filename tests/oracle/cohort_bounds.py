"""What the terms of a cohort can promise, by listing every world; and the paper's choice of n. No package code.

A cohort is founded by people with one value each. Perhaps some of them leave, and as many newcomers take over their
values, one each, nobody knows which. All ways in which this can have happened are equally likely. The adversary sees
all of it but who has what, and is told the values of any `known` people: past or present, whichever tell the most.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations
from math import comb


def worlds(values, leavers):
    """Everybody's value: the founders 0, 1, ..., of whom the first `leavers` left, then the newcomers."""
    for founders in permutations(values):
        for newcomers in permutations(founders[:leavers]):
            yield (*founders, *newcomers)


def worst_guess(values, leavers, known):
    """The highest chance of anybody's value over all ways to know `known` other people."""
    everything, worst = list(worlds(values, leavers)), Fraction(0)
    people = range(len(values) + leavers)
    for told in combinations(people, known):
        for person in set(people) - set(told):
            together = Counter(tuple(world[p] for p in (*told, person)) for world in everything)
            seen = Counter(tuple(world[p] for p in told) for world in everything)
            worst = max(worst, *(Fraction(n, seen[values_told[:-1]]) for values_told, n in together.items()))
    return worst


def lowest_bound(m, known, refill):
    """The lowest bound that can be promised: the worst guess where all values differ, refilled as little as allowed."""
    founded = worst_guess(range(m), 0, known)
    return founded if refill is None else max(founded, worst_guess(range(m), refill, known))


def most_alike(size, known, tau):
    """How many of `size` founders may have one value, all others different ones, so that no guess exceeds tau."""
    fits = [n for n in range(1, size + 1) if worst_guess([0] * n + list(range(1, size - n + 1)), 0, known) <= tau]
    return max((n for n in fits if all(smaller in fits for smaller in range(1, n))), default=0)


def breach(p, releases, m, n):
    """Lemma 1, Lemma 2 and Theorem 2 of the same paper as chances of events, each by listing what may happen.

    A value is ruled out by its holder if that person is compromised in some release, and by a set of n people none of
    whom has it if all n are; m // n such sets are looked at in each release.
    """
    holder = sum(_all(p, releases, hits) for hits in range(1, releases + 1))
    sets = releases * (m // n)
    together = sum(_all((p - p / m) ** n, sets, hits) for hits in range(1, sets + 1))
    either = holder + together - holder * together
    return holder, together, either ** (m - 1)


def _all(p, times, hits):
    """The chance that exactly so many of independent trials succeed."""
    return comb(times, hits) * p**hits * (1 - p) ** (times - hits)


def smallest_degree(p, releases, m, h):
    """n-Choose (Riboni and Bettini 2009, Figure 3): Lemma 1, Lemma 2 and Theorem 2, step by step."""
    for n in range(1, m + 1):
        nobody_known = Fraction(1)
        for _ in range(releases):
            nobody_known *= 1 - p  # Lemma 1: the holder of a value is not compromised
        no_set_known = Fraction(1)
        for _ in range(releases * (m // n)):
            no_set_known *= 1 - (p - p / m) ** n  # Lemma 2: not all n of a set are, none of whom has the value
        ruled_out = 1 - nobody_known * no_set_known
        if ruled_out ** (m - 1) < h:  # Theorem 2: all values but one are ruled out
            return n
    return None
