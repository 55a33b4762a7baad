"""People who had to wait for a group: what that tells of their values, and when they may be shown all the same.

Where all newcomers of a release waited because they were too few, that follows from their number and tells nothing.
Where some were taken and others not, by value or drawn from many (`drawing.py`), whoever knows who was in the table
knows that a value was too frequent among those who waited: showing them later would tell it.

Where all newcomers, not many, waited because some value was too frequent among them (a *crowd*), only that is told,
of the crowd as a whole. They may be shown later together with everybody else who waits, in one cohort. Given what the
cohort shows, an event of chance q raises no belief above 1/q of what it was: n / (s - c) becomes n / (s - c) / q at
most, where q is the chance that the crowds were what they were, whoever of the cohort is known. The verifier looks for
itself (`reveil.verify.waiting`), and the proof is in docs/persistent-values.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I32, I64, Bools
from reveil.guarantees.lasting import CohortTerms, ManyValues
from reveil.history.history import History
from reveil.plan.crowds import least_people
from reveil.plan.persistent.drawing import are_many
from reveil.plan.persistent.guesses import allowed_guess
from reveil.policy.guarantee import Guarantee
from reveil.policy.policy import Policy
from reveil.policy.reasons import ALL, BY_VALUE, CROWD, DRAWN, FEW, FOR_GOOD, REASONS, SHOWN

LARGEST = 400  # people of a crowd whose chance is computed; a larger one stays where it is


@dataclass(frozen=True, eq=False)
class Crowd:
    """People of whom it is told that they did not fit: all who waited in a release, or its newcomers by themselves."""

    people: I64  # numbers, ascending


@dataclass(eq=False)
class Unshown:
    """Everybody who was ever in a table and never published: why, and the crowds that met; `least`: of a group.

    A crowd is one only where the rule was that all wait; where people are withheld by value, all may be left by chance.
    """

    least: int
    published: Bools  # by person
    reason: NDArray[np.int8]
    crowds: list[Crowd] = field(default_factory=list)

    def go_on(self, person: I64, group: I32, *, together: bool, by_lot: bool) -> None:
        """One release more, and its rule: newcomers without a group all wait; or of many, some are drawn to."""
        new, shown = ~self.published[person] & (self.reason[person] < FOR_GOOD), group >= 0
        fresh = new & (self.reason[person] != CROWD)
        left, enough = fresh & ~shown, int(fresh.sum()) >= self.least
        if not together:
            self.reason[person[left]] = BY_VALUE if enough or (fresh & shown).any() else FEW
        elif (fresh & shown).any() or (by_lot and are_many(int(fresh.sum()), self.least)):
            self.reason[person[left]] = DRAWN if (fresh & shown).any() else ALL
        elif int(new.sum()) < self.least:
            self.reason[person[left]] = FEW
        on = new & ~shown & (self.reason[person] < FOR_GOOD)
        if together and on.any() and int(new.sum()) >= self.least:
            self.crowds.append(Crowd(np.sort(person[new])))
            if _were_tried_alone(fresh, left, new, self.least):
                self.crowds.append(Crowd(np.sort(person[fresh])))
            self.reason[person[on]] = CROWD
        self.published[person[shown]] = True

    def told(self, persons: I64) -> Bools:
        """Who of these was chosen, and never published since: showing them would tell why."""
        return np.asarray((self.reason[persons] >= FOR_GOOD) & ~self.published[persons])

    def crowded(self, persons: I64) -> Bools:
        """Who of these waits in a crowd."""
        return np.asarray((self.reason[persons] == CROWD) & ~self.published[persons])

    def why(self, persons: I64) -> list[str]:
        """The reason of each of these, empty for whoever was published once."""
        return [REASONS[reason] for reason in np.where(self.published[persons], SHOWN, self.reason[persons])]


def waiting_of(history: History, persons: I64, guarantee: Guarantee) -> Unshown:
    """What these people, and everybody before them, waited for."""
    people = max(history.persons.height, int(persons.max(initial=-1)) + 1)
    least = max(guarantee.require(ManyValues).founders, least_people(guarantee))
    waiting = Unshown(least, np.zeros(people, dtype=bool), np.zeros(people, dtype=np.int8))
    if history.members.is_empty() or not (history.members["group"] < 0).any():
        return waiting
    members = history.members.sort("release")
    ends = np.flatnonzero(np.diff(members["release"].to_numpy())) + 1
    releases = members["release"].to_numpy()[[0, *ends.tolist()]].tolist()
    who = np.split(members["person"].to_numpy(), ends), np.split(members["group"].to_numpy(), ends)
    for release, person, group in zip(releases, *who, strict=True):
        waiting.go_on(person, group, together=release in history.waits, by_lot=release in history.by_lot)
    return waiting


def _were_tried_alone(fresh: Bools, left: Bools, new: Bools, least: int) -> bool:
    """Whether newcomers beside a crowd, enough for a group, all wait: then they do not fit by themselves either."""
    return bool((new & ~fresh).any() and fresh.sum() == left.sum() >= least)


def reasons_to_wait(waiting: Unshown, persons: I64, known: Bools, groups: I32, policy: Policy) -> dict[str, int]:
    """Why people of this release are not shown who are not `known` from another -> how many; it is one more of all."""
    if not (groups < 0).any():
        return {}
    wait = policy.method.infeasible == "wait"
    waiting.published[persons[known]] = True  # where nobody ever waited, the past was not looked at
    waiting.go_on(persons, groups, together=wait, by_lot=wait)
    return dict(Counter(filter(None, waiting.why(persons[groups < 0]))))


def may_be_shown(persons: I64, counts: Sequence[Sequence[int]], crowds: Sequence[Crowd], terms: CohortTerms) -> bool:
    """Whether all these people may found one cohort, though some are of crowds.

    `counts`: how many of them have each protected value, in lists of values of which nobody has two.
    """
    tau, known, size = allowed_guess(terms), terms.compromised, len(persons)
    top = max((max(count, default=0) for count in counts), default=0)
    missed = Fraction(0)
    for crowd in crowds:
        there = int(np.isin(persons, crowd.people).sum())
        if there:
            most = int(tau * (len(crowd.people) - known))
            missed += 1 - max((chance_of_crowd(one, size, there, most, known) for one in counts), default=Fraction(0))
    return size > known and Fraction(top, size - known) <= tau * (1 - missed)


def chance_of_crowd(counts: Sequence[int], size: int, there: int, most: int, known: int) -> Fraction:
    """At least this is the chance that of `there` people of a cohort some value has more than `most`.

    The cohort has `size` people, `counts` of them with each value. Whoever is known does not help: their number is
    taken from those who are drawn, and from the people of every value.

    >>> chance_of_crowd([3, 3], 6, 4, 2, 0)  # 4 of 6 that are two values, three times each: more than 2 alike
    Fraction(2, 5)
    """
    drawn, population = there - known, size - known
    frequent = [count - known for count in counts if count - known > most]
    if drawn <= most or not frequent or there > LARGEST:
        return Fraction(0)
    ways = [comb(population - sum(frequent), number) for number in range(drawn + 1)]
    for count in frequent:
        own = [comb(count, number) for number in range(min(most, drawn) + 1)]
        ways = [sum(own[j] * ways[i - j] for j in range(min(i, len(own) - 1) + 1)) for i in range(drawn + 1)]
    return 1 - Fraction(ways[drawn], comb(population, drawn))
