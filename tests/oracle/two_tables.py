"""Releases in two tables as anybody reads them, and what an adversary believes who does not know who is in which group.

Plain Python, nothing of the package: the CSV files of `people` and `values` are read here. A person of the input may be
behind every row of `people` whose cells cover their quasi-identifiers. A *placement* gives each row of a release a
person of the input; placements of several releases that fit what is known of the method are equally likely, and within
one, everything is as if groups were known.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations, permutations, product
from pathlib import Path

from oracle.published import covers


def read(folder, column):
    """(rows of people as dicts, group -> sorted values). Every group of one table is in the other."""
    rows, values = _rows(Path(folder) / "people.csv"), defaultdict(list)
    for row in _rows(Path(folder) / "values.csv"):
        assert set(row) == {"group", column, "count"} and int(row["count"]) > 0
        values[int(row["group"])] += [row[column]] * int(row["count"])
    people = Counter(int(row["group"]) for row in rows)
    assert set(people) == set(values)
    assert all(people[group] <= len(shown) for group, shown in values.items())
    return rows, {group: tuple(sorted(shown)) for group, shown in values.items()}


def groups_of(folder, column, names, numbers):
    """One release as a list of (people, values), for whoever knows the group of each of `names` (-1: withheld)."""
    rows, values = read(folder, column)
    people = defaultdict(list)
    for name, group in zip(names, numbers, strict=True):
        if group >= 0:
            people[int(group)].append(name)
    assert Counter(int(row["group"]) for row in rows) == {group: len(who) for group, who in people.items()}
    return [(tuple(people[group]), shown) for group, shown in sorted(values.items())]


def boxes(folder, column, quasi):
    """How many people show each combination of cells."""
    rows, _ = read(folder, column)
    return Counter(tuple(row[name] for name in quasi) for row in rows)


def placements(folder, column, people, scales):
    """Every way to give each row a person of the input (name -> quasi-identifiers as text): (who, values) by group."""
    rows, values = read(folder, column)
    able = [[name for name, own in people.items() if _fits(row, own, scales)] for row in rows]
    order = sorted(range(len(rows)), key=lambda number: len(able[number]))
    found, taken = set(), {}

    def fill(place):
        if place == len(order):
            by_group = defaultdict(list)
            for name, number in taken.items():
                by_group[int(rows[number]["group"])].append(name)
            found.add(frozenset((frozenset(who), values[group], group) for group, who in by_group.items()))
            return
        for name in able[order[place]]:
            if name not in taken:
                taken[name] = order[place]
                fill(place + 1)
                del taken[name]

    fill(0)
    return [[(tuple(sorted(who)), shown) for who, shown, _ in sorted(one, key=lambda g: g[2])] for one in found]


def _fits(row, own, scales):
    return all(covers(row[name], own[name], scale) for name, scale in scales.items())


def closed(series):
    """Whether people who are ever together stay together, with the values that they began with and nobody else."""
    home, cohorts = {}, []
    for release in series:
        for who, shown in release:
            old = {home[name] for name in who if name in home}
            fresh = [name for name in who if name not in home]
            if len(old) > 1 or (old and fresh) or (not old and len(who) != len(shown)):
                return False
            if old and cohorts[next(iter(old))] != shown:
                return False
            if not old:
                cohorts.append(shown)
                home |= dict.fromkeys(who, len(cohorts) - 1)
        if len({home[who[0]] for who, _ in release}) < len(release):
            return False
    return True


def invariant(series):
    """Whether everybody's group shows the same values whenever they are shown."""
    mine = {}
    return all(mine.setdefault(name, shown) == shown for release in series for who, shown in release for name in who)


def worst_unplaced(folders, column, inputs, scales, known, allowed, worlds, harmless=()):
    """The highest posterior of anybody else's value, over all sets of `known` people and all values they may have.

    `allowed` says which placements the method can have made; `worlds(series)` lists the worlds of one, as dicts.
    Returns the posterior and how many placements there were.
    """
    each = [placements(folder, column, people, scales) for folder, people in zip(folders, inputs, strict=True)]
    series = [one for one in product(*each) if allowed(one)]
    weighed = Counter()
    for one in series:
        listed = worlds(one)
        for world in listed:
            weighed[frozenset(world.items())] += Fraction(1, len(listed))
    everybody = sorted({name for people in inputs for name in people})
    worst = Fraction(0)
    for chosen in combinations(everybody, known):
        cases = defaultdict(Counter)
        for world, weight in weighed.items():
            held = dict(world)
            cases[tuple(held.get(name) for name in chosen)][world] += weight
        for case in cases.values():
            total, chances = sum(case.values()), Counter()
            for world, weight in case.items():
                for name, value in world:
                    if name not in chosen and value not in harmless:
                        chances[name, value] += weight
            worst = max([worst, *(chance / total for chance in chances.values())])
    return worst, len(series)


def cohort_worlds(series):
    """All worlds of closed cohorts: the founders of each have its values in some order."""
    founders = {}
    for release in series:
        for who, shown in release:
            if not any(set(who) <= set(others) for others in founders):
                founders[who] = shown
    parts = [[dict(zip(who, order, strict=True)) for order in permutations(shown)] for who, shown in founders.items()]
    return [{name: value for part in one for name, value in part.items()} for one in product(*parts)]


def _rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
