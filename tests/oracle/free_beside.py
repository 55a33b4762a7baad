"""A column that changes freely beside one that never changes, in closed cohorts: all worlds of small cases.

A world gives each person a diagnosis for good and a cost in each release in which they are there. Before anything is
published, people are alike and independent: a diagnosis has chance `sick[d]`, a cost `pays[d][c]` given the diagnosis,
each release by itself. `show` says what is published of a world, with the chance of each lot that is drawn for it.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import product


def worlds(there, sick, pays):
    """Every world and its chance. `there`: by release, the people in it; people are numbered from 0."""
    people = 1 + max(person for here in there for person in here)
    appearances = [(person, release) for release, here in enumerate(there) for person in sorted(here)]
    for diagnoses in product(sick, repeat=people):
        chance = Fraction(1)
        for d in diagnoses:
            chance *= sick[d]
        for costs in product(*[pays[diagnoses[person]] for person, _ in appearances]):
            weight = chance
            for (person, _), cost in zip(appearances, costs, strict=True):
                weight *= pays[diagnoses[person]][cost]
            if weight:
                yield diagnoses, dict(zip(appearances, costs, strict=True)), weight


def beliefs(there, sick, pays, show):
    """What can be published -> by question (person, value), its chance then: diagnoses, and costs ever linked."""
    seen = defaultdict(lambda: defaultdict(Fraction))
    for diagnoses, costs, weight in worlds(there, sick, pays):
        for published, lot in show(diagnoses, costs):
            case = seen[published]
            case["all"] += weight * lot
            for person, d in enumerate(diagnoses):
                case[person, d] += weight * lot
            for question in {(person, cost) for (person, _), cost in costs.items()}:
                case[question] += weight * lot
    return {
        published: {question: chance / case["all"] for question, chance in case.items() if question != "all"}
        for published, case in seen.items()
        if case["all"]
    }


def multiset(values):
    return tuple(sorted(values))
