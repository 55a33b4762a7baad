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

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb

import numpy as np

from reveil.base.arrays import I32, I64, Bools
from reveil.guarantees.lasting import CohortTerms, ManyValues
from reveil.history.history import History
from reveil.plan.crowds import least_people
from reveil.plan.persistent.drawing import are_many
from reveil.plan.persistent.guesses import allowed_guess
from reveil.policy.guarantee import Guarantee

TOLD = "waited because of their value, which showing them would tell"
LARGEST = 400  # people of a crowd whose chance is computed; a larger one stays where it is


@dataclass(frozen=True, eq=False)
class Crowd:
    """People of whom it is told that they did not fit: all who waited in a release, or its newcomers by themselves."""

    people: I64  # numbers, ascending


@dataclass(frozen=True, eq=False)
class Waited:
    """Of the rows of a table: chosen by value once, or of a crowd once; and the crowds of the past."""

    told: Bools
    crowded: Bools
    crowds: list[Crowd] = field(default_factory=list)


def waited_before(history: History, persons: I64, guarantee: Guarantee) -> Waited:
    """What these people, if they were never published, waited for.

    A crowd is one only where the rule was that all wait; where people are withheld by value, all may be left by chance.
    """
    people = max(history.persons.height, int(persons.max(initial=-1)) + 1)
    told, published, crowded = (np.zeros(people, dtype=bool) for _ in range(3))
    crowds: list[Crowd] = []
    least = max(guarantee.require(ManyValues).m, least_people(guarantee))
    if history.members.is_empty() or not (history.members["group"] < 0).any():
        return Waited(told[persons], crowded[persons])
    members = history.members.sort("release")
    ends = np.flatnonzero(np.diff(members["release"].to_numpy())) + 1
    persons_by_release = np.split(members["person"].to_numpy(), ends)
    groups_by_release = np.split(members["group"].to_numpy(), ends)
    releases = members["release"].to_numpy()[[0, *ends.tolist()]].tolist()
    for release, person, group in zip(releases, persons_by_release, groups_by_release, strict=True):
        new, shown = ~(published | told)[person], group >= 0
        fresh = new & ~crowded[person]
        left = fresh & ~shown
        many = are_many(int(fresh.sum()), least) or (release not in history.waits and int(fresh.sum()) >= least)
        if (fresh & shown).any() or many:
            told[person[left]] = True
        if release in history.waits and (new & ~shown & ~told[person]).any() and int(new.sum()) >= least:
            crowds.append(Crowd(np.sort(person[new])))
            if _were_tried_alone(fresh, left, new, least):
                crowds.append(Crowd(np.sort(person[fresh])))
            crowded[person[new & ~shown]] = True
        published[person[shown]] = True
    return Waited(told[persons], (crowded & ~published)[persons], crowds)


def _were_tried_alone(fresh: Bools, left: Bools, new: Bools, least: int) -> bool:
    """Whether newcomers beside a crowd, enough for a group, all wait: then they do not fit by themselves either."""
    return bool((new & ~fresh).any() and fresh.sum() == left.sum() >= least)


def told_by_waiting(history: History, persons: I64, guarantee: Guarantee) -> Bools:
    """Which of these rows are of people who were never published and once waited because of their value."""
    waited = waited_before(history, persons, guarantee)
    return waited.told | waited.crowded


def may_be_shown(persons: I64, codes: I32, mild: Bools, crowds: Sequence[Crowd], terms: CohortTerms) -> bool:
    """Whether all these people may found one cohort, though some are of crowds; codes, and harmless ones, by column."""
    tau, known, size = allowed_guess(terms), terms.compromised, len(persons)
    counts = [np.bincount(codes[~mild[:, n], n], minlength=1) for n in range(codes.shape[1])]
    top = max(int(count.max()) for count in counts)
    missed = Fraction(0)
    for crowd in crowds:
        there = int(np.isin(persons, crowd.people).sum())
        if there:
            most = int(tau * (len(crowd.people) - known))
            missed += 1 - max(chance_of_crowd(count.tolist(), size, there, most, known) for count in counts)
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
