"""A series of people with several rows, from public bytes, against all worlds. Plain Python, nothing of the package.

A world gives each founder of a cohort one of the bundles that their group shows. How likely a bundle is for somebody
beforehand may be any weight, the same for everybody. Whoever is known is known with all their values, or with some.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations, permutations
from pathlib import Path


def read(folder, column, bundle="person"):
    """(group -> how many rows each of its people shows, group -> its bundles), from the two tables of a release."""
    rows, groups, shown = Counter(), {}, defaultdict(list)
    for row in _rows(Path(folder) / "people.csv"):
        rows[row[bundle]] += 1
        assert groups.setdefault(row[bundle], int(row["group"])) == int(row["group"])  # nobody is in two groups
    people = defaultdict(list)
    for name, number in rows.items():
        people[groups[name]].append(number)
    for row in _rows(Path(folder) / "values.csv"):
        assert set(row) == {"group", "bundle", column, "count"}
        shown[int(row["group"]), int(row["bundle"])] += [row[column]] * int(row["count"])
    bundles = defaultdict(list)
    for (group, number), values in sorted(shown.items()):
        assert number == len(bundles[group]) + 1
        bundles[group].append(tuple(sorted(values)))
    assert set(bundles) == set(people)
    for group, held in bundles.items():
        assert held == sorted(held, key=lambda one: [v or "" for v in one]) or sorted(
            held
        )  # an order of contents alone
        assert {len(one) for one in held} == set(people[group])  # everybody of a group shows as many rows
    return dict(people), dict(bundles)


def look_alike(folder, columns, bundle="person"):
    """How many people show the same rows, by what these show."""
    cells = defaultdict(list)
    for row in _rows(Path(folder) / "people.csv"):
        cells[row[bundle]].append(tuple(row[name] for name in columns))
    return Counter(tuple(sorted(rows)) for rows in cells.values())


def cohorts(folders, column, names, numbers, bundle="person"):
    """The founders of each cohort with its bundles; refuses what is not a closed cohort of whole bundles.

    `names` and `numbers`: by release, who was put in and their group, -1 where they are not shown.
    """
    home, made = {}, []
    for folder, who, groups in zip(folders, names, numbers, strict=True):
        people, bundles = read(folder, column, bundle)
        members = defaultdict(list)
        for name, group in zip(who, groups, strict=True):
            if group >= 0:
                members[int(group)].append(name)
        assert {group: len(rows) for group, rows in people.items()} == {g: len(own) for g, own in members.items()}
        for group, own in members.items():
            known = {home[name] for name in own if name in home}
            if not known:
                assert len(bundles[group]) == len(own)  # a cohort begins without counterfeits
                home |= dict.fromkeys(own, len(made))
                made.append((tuple(own), sorted(bundles[group])))
            else:
                (cohort,) = known  # nobody of two cohorts in one group
                assert all(name in home for name in own) and made[cohort][1] == sorted(bundles[group])
    return made


def worst_guess(people, bundles, known, harmless=(), weight=None, told=None):
    """The highest belief that somebody else has a value in any row, over all choices of `known` people and what they
    have. `told(bundle)`: what is known of a bundle, all of it unless it is given."""
    worlds = defaultdict(int)
    for dealt in permutations(bundles):
        chance = 1
        for one in dealt:
            chance *= 1 if weight is None else weight(one)
        worlds[dealt] += chance
    worst = Fraction(0)
    for chosen in combinations(range(len(people)), known):
        cases = defaultdict(list)
        for dealt, chance in worlds.items():
            if chance:
                cases[tuple(dealt[p] if told is None else told(dealt[p]) for p in chosen)].append((dealt, chance))
        for case in cases.values():
            total, chances = sum(chance for _, chance in case), Counter()
            for dealt, chance in case:
                for person in set(range(len(people))) - set(chosen):
                    for value in set(dealt[person]) - set(harmless):
                        chances[person, value] += chance
            worst = max([worst, *(Fraction(chance, total) for chance in chances.values())])
    return worst


def worst_without_places(groups, known, harmless=()):
    """The same for somebody who does not know how counterfeits are made: only that values never change.

    `groups`: by release, (people who are there, bundles that are shown). A world gives everybody who was ever shown one
    bundle, such that each group shows those of its people; all worlds are equally likely.
    """
    everybody = sorted({name for people, _ in groups for name in people})
    worlds = []
    _deal(everybody, 0, {}, groups, worlds)
    worst = Fraction(0)
    for chosen in combinations(everybody, known):
        cases = defaultdict(list)
        for world in worlds:
            cases[tuple(world[name] for name in chosen)].append(world)
        for case in cases.values():
            for name in set(everybody) - set(chosen):
                having = Counter(value for world in case for value in set(world[name]) - set(harmless))
                worst = max([worst, *(Fraction(n, len(case)) for n in having.values())])
    return worst


def _deal(everybody, place, world, groups, worlds):
    if place == len(everybody):
        worlds.append(dict(world))
        return
    name = everybody[place]
    mine = [(people, Counter(bundles)) for people, bundles in groups if name in people]
    for bundle in sorted(set.intersection(*(set(bundles) for _, bundles in mine))):
        world[name] = bundle
        if all(Counter(world[p] for p in people if p in world) <= bundles for people, bundles in mine):
            _deal(everybody, place + 1, world, groups, worlds)
        del world[name]


def _rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
