"""The exact belief of someone who knows a few people of a closed cohort, whatever its refills.

A cohort has s places with s different values. Who comes takes some vacant place; nobody but the publisher
knows which. All worlds are equally likely, and a refill of j of k vacant places has k!/(k-j)! outcomes whatever
happened before. So places are handed on like this: each newcomer of a refill has each vacant place with the
same chance, and refills are independent. Two people have the same value exactly if they had the same place at
different times.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product

Life = tuple[int, int]


@dataclass(frozen=True)
class Lineage:
    """Who came and left when. Event 0 is the foundation, event e > 0 the e-th refill.

    `lives` are (first event, event at which the place was found vacant), with how many people had them;
    people who still hold their place have the number of events as their end.
    """

    places: int
    events: int
    lives: tuple[tuple[Life, int], ...]

    def vacant(self, event: int) -> int:
        """Vacant places just before a refill."""
        return self.places - sum(count for (start, end), count in self.lives if start < event < end)


def lineage(places: int, events: int, lives: list[Life]) -> Lineage:
    """A lineage from the lives of its people."""
    return Lineage(places, events, tuple(sorted(Counter(lives).items())))


@lru_cache(maxsize=200_000)
def worst_guess(line: Lineage, known: int) -> Fraction:
    """The highest chance of guessing a further person's value when the values of any `known` people are known.

    The worst case over who is known and over every way their values may be the same or different. At most two
    can be known.

    >>> founders = [(0, 1)] * 3 + [(0, 2)] * 3  # three of six leave, three newcomers take their places
    >>> worst_guess(lineage(6, 2, founders + [(1, 2)] * 3), 1)
    Fraction(1, 3)
    """
    people = [life for life, count in line.lives for _ in range(min(count, known + 1))]
    if len(people) <= known:
        return worst_guess(line, len(people) - 1) if people else Fraction(0)
    if known == 0:
        return Fraction(1, line.places)
    same = _Same(line)
    worst = Fraction(0)
    for target, *others in _choices(people, known):
        worst = max(worst, *_guesses(line.places, same, target, others))
    return worst


def _choices(people: list[Life], known: int) -> set[tuple[Life, ...]]:
    """Lives of (target, known...). People with equal lives are alike: each combination is looked at once."""
    choices = set()
    for place, target in enumerate(people):
        rest = people[:place] + people[place + 1 :]
        choices |= {(target, *others) for others in combinations(rest, known)}
    return choices


def _guesses(places: int, same: _Same, target: Life, others: list[Life]) -> list[Fraction]:
    if len(others) == 1:
        alike = same(target, others[0])
        return [alike, (1 - alike) / (places - 1)]
    first, second = others
    both = same(first, second)
    three = same.three(target, first, second)
    guesses = []
    if both > 0:  # the two are known to share a value
        guesses += [three / both, (1 - three / both) / (places - 1)]
    if both < 1:  # they are known to differ
        one, two = ((same(target, other) - three) / (1 - both) for other in others)
        left = 1 - one - two
        guesses += [one, two]
        if left > 0:
            guesses.append(left / (places - 2))
    return guesses


class _Same:
    """The chance that people had the same place."""

    def __init__(self, line: Lineage) -> None:
        self.line = line
        self.vacant = {event: line.vacant(event) for event in range(1, line.events)}
        self.joined = {event: sum(n for (start, _), n in line.lives if start == event) for event in self.vacant}
        lives = [life for life, _ in line.lives]
        self.chance = {pair: Fraction(0) for pair in product(lives, lives)}
        for life in lives:
            self._follow(life, lives)

    def _follow(self, life: Life, lives: list[Life]) -> None:
        """Follow the place of one person through the refills after they left."""
        holders: dict[Life, Fraction] = {}  # chance that one given person of this life holds the place now
        empty, counts = Fraction(0), dict(self.line.lives)
        for event in range(1, self.line.events):
            if event == life[1]:
                empty = Fraction(1)
            empty += sum((chance * counts[h] for h, chance in holders.items() if h[1] == event), Fraction(0))
            holders = {h: chance for h, chance in holders.items() if h[1] != event}
            if not empty or not self.joined[event]:
                continue
            each = empty / self.vacant[event]
            for other in lives:
                if other[0] == event:
                    holders[other] = each
                    self.chance[life, other] = self.chance[other, life] = each
            empty -= each * self.joined[event]

    def __call__(self, a: Life, b: Life) -> Fraction:
        """Two people. Those who were there together have different places."""
        return self.chance[a, b]

    def three(self, a: Life, b: Life, c: Life) -> Fraction:
        """Three people: what happens to a place after a person does not depend on what happened before."""
        first, second, third = sorted((a, b, c))
        return self.chance[first, second] * self.chance[second, third]
