"""Several sensitive columns of closed cohorts, from public bytes, against all worlds. Plain Python, nothing of ours.

A world gives each founder of a cohort one value in every column, such that each column shows what was published. How
columns go together beforehand is a weight on tuples, the same for everybody. Whoever is known is known in some columns.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations, permutations, product
from pathlib import Path


def read(folder, columns):
    """(group of each row of people, group -> the sorted values of each column), each column from a table of its own."""
    people = [int(row["group"]) for row in _rows(Path(folder) / "people.csv")]
    values = defaultdict(lambda: [()] * len(columns))
    for number, column in enumerate(columns):
        listed = defaultdict(list)
        for row in _rows(Path(folder) / f"values-{number + 1}.csv"):
            assert set(row) == {"group", column, "count"}
            listed[int(row["group"])] += [row[column]] * int(row["count"])
        for group, shown in listed.items():
            values[group][number] = tuple(sorted(shown))
    assert set(people) == set(values)
    return people, {group: tuple(shown) for group, shown in values.items()}


def cohorts(folders, columns, names, numbers):
    """The founders of each cohort with what it shows by column; refuses what is not a closed cohort.

    `names` and `numbers`: by release, who was put in and their group, -1 where they are not shown.
    """
    home, made = {}, []
    for folder, who, groups in zip(folders, names, numbers, strict=True):
        rows, values = read(folder, columns)
        members = defaultdict(list)
        for name, group in zip(who, groups, strict=True):
            if group >= 0:
                members[int(group)].append(name)
        assert Counter(rows) == {group: len(people) for group, people in members.items()}
        for group, people in members.items():
            known = {home[name] for name in people if name in home}
            if not known:
                assert all(len(shown) == len(people) for shown in values[group])
                home |= dict.fromkeys(people, len(made))
                made.append((tuple(people), values[group]))
            else:
                (cohort,) = known  # nobody of two cohorts in one group
                assert all(name in home for name in people) and made[cohort][1] == values[group]
    return made


def worlds(people, shown, weight=None):
    """Every world of one cohort, with its weight: a tuple of values for each person."""
    columns = [sorted(set(permutations(values))) for values in shown]
    for chosen in product(*columns):
        world = tuple(zip(*chosen, strict=True))
        chance = 1
        for held in world:
            chance *= 1 if weight is None else weight(held)
        if chance:
            yield world, chance


def worst_guess(people, shown, known, column, harmless=(), weight=None, told=None):
    """The highest belief in a value of `column` of anybody else, over all choices of `known` people and what they have.

    `told`: the columns in which these are known, all unless it is given. A value that is harmless does not count.
    """
    every = list(worlds(people, shown, weight))
    told = range(len(shown)) if told is None else told
    worst = Fraction(0)
    for chosen in combinations(range(len(people)), known):
        cases = defaultdict(list)
        for world, chance in every:
            cases[tuple(world[p][c] for p in chosen for c in told)].append((world, chance))
        for case in cases.values():
            worst = max(worst, highest(case, set(range(len(people))) - set(chosen), column, harmless))
    return worst


def highest(case, people, column, harmless=()):
    """The highest chance of one of these people having one value, over weighed worlds."""
    total, chances = sum(chance for _, chance in case), Counter()
    for world, chance in case:
        for person in people:
            if world[person][column] not in harmless:
                chances[person, world[person][column]] += chance
    return max((Fraction(chance, total) for chance in chances.values()), default=Fraction(0))


def own_other_column(people, shown, column, weight=None):
    """The highest belief in a value of `column` of somebody whose other columns are known."""
    every, worst = list(worlds(people, shown, weight)), Fraction(0)
    others = [c for c in range(len(shown)) if c != column]
    for person in range(len(people)):
        cases = defaultdict(list)
        for world, chance in every:
            cases[tuple(world[person][c] for c in others)].append((world, chance))
        worst = max([worst, *(highest(case, {person}, column) for case in cases.values())])
    return worst


def _rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
