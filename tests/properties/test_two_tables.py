"""Random small series in two tables, from their public bytes, against all possible worlds; one line for each model.

python tests/properties/test_two_tables.py 1000     (so many series for each model: figures, no assertions)
"""

from __future__ import annotations

import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # where this is run as a program

import reveil
from oracle import evolving, transient, two_tables, updates, worlds
from properties.test_lasting_plans import numbered_parts
from reveil.base.errors import InfeasibleError

COLUMNS = {"name": "identifier", "age": "quasi", "town": "quasi", "ward": "insensitive", "illness": "sensitive"}
SCALES = {"age": ("number", None), "town": ("flat", None)}
FAMILIES = {v: list(family) for family in ("ab", "cd", "ef", "gh") for v in family}
COHORTS = {"model": "compromise-safety"}
STAR = {"model": "m-distinct-star"}
MANY = {"model": "m-distinct"}
MODELS = {  # the guarantee, how values change, and how many people may be known
    "compromise-safety, nobody known": ({**COHORTS, "m": 2, "compromised": 0}, "never", 0),
    "compromise-safety, one known": ({**COHORTS, "m": 3, "compromised": 1}, "never", 1),
    "compromise-safety, two known": ({**COHORTS, "m": 4, "compromised": 2}, "never", 2),
    "compromise-safety, refilled": ({**COHORTS, "m": 3, "compromised": 1, "refill": 2}, "never", 1),
    "m-invariance": ({"model": "m-invariance", "m": 3}, "never", 0),
    "historical safety": ({"model": "historical-safety", "m": 3, "n": 2}, "never", 0),
    "global": ({"model": "global", "l": 2, "strategy": "constant-ratio", "horizon": 3}, "freely", 0),
    "m-distinct-star, joint": ({**STAR, "m": 2, "compromised": 0}, "transitions", 0),
    "m-distinct-star, joint, one known": ({**STAR, "m": 3, "compromised": 1}, "transitions", 1),
    "m-distinct-star, joint, two known": ({**STAR, "m": 4, "compromised": 2}, "transitions", 2),
    "m-distinct, joint, large cohorts": ({**MANY, "m": 2, "places": 4, "compromised": 0}, "transitions", 0),
    "m-distinct, joint, large cohorts, one known": ({**MANY, "m": 3, "places": 5}, "transitions", 1),
    "m-distinct, joint, large cohorts, two known": (
        {**MANY, "m": 4, "places": 5, "compromised": 2, "tau": "2/3"},
        "transitions",
        2,
    ),
    "m-distinct-star, individual": ({**STAR, "m": 2, "view": "individual"}, "transitions", 0),
}
SUITE = 8  # series of each model in the suite


def population(rng, change, releases, people, stay):
    """Tables of people who come, go and return; quasi-identifiers and insensitive cells change with time."""
    values = rng.choice(list("abcdefgh"), people)
    arrival, tables = rng.integers(-2, releases if stay < 0.9 else 1, people), []
    for number in range(releases):
        here = np.flatnonzero((arrival <= number) & (rng.random(people) < stay))
        if change == "freely":
            values = rng.choice(list("abcdefgh"), people)
        elif change == "transitions" and number:
            values = np.array([rng.choice(FAMILIES[value]) for value in values])
        tables.append(
            pl.DataFrame(
                {
                    "name": [f"p{i:02}" for i in here],
                    "age": [20 + int(i) * 3 + number for i in here],
                    "town": [("x", "y")[i % 2] for i in here],
                    "ward": rng.choice(["1", "2"], len(here)),
                    "illness": values[here],
                }
            )
        )
    return tables


def policy_of(name, people, k):
    guarantee, change, _ = MODELS[name]
    relation = {"transitions": FAMILIES} if change == "transitions" else {}
    boxed = {"k": k} if people == "boxes" else {}
    return {
        "columns": COLUMNS,
        "values": {"change": change, **relation},
        "guarantee": {**guarantee, **boxed},
        "method": {"publish": "anatomy", "people": people, "infeasible": "withhold"},
    }


def published(name, seed, folder, sizes=(6, 14), stay=0.8, people="boxes"):
    """One random series: the policy's releases, with the tables that they were made from."""
    rng = np.random.default_rng([seed, list(MODELS).index(name)])
    k = int(rng.integers(2, 4))
    tables = population(rng, MODELS[name][1], int(rng.integers(2, 4)), int(rng.integers(*sizes)) + 1, stay)
    series = reveil.open_series(policy_of(name, people, k), folder / "home")
    steps = []
    for table in tables:
        if not table.height:
            continue
        try:
            steps.append((table, series.publish(table, seed=seed, new_people=True)))
        except InfeasibleError:
            continue
    return series, steps, k


def told(steps):
    """The series as whoever knows everybody's group reads it from the bytes."""
    return [
        two_tables.groups_of(release.public, "illness", table["name"].to_list(), release.groups.tolist())
        for table, release in steps
    ]


def stood_in(steps):
    """By release the people who are shown beside a group while a counterfeit has their place."""
    return [
        {name for name, back in zip(table["name"].to_list(), release.with_stand_in.tolist(), strict=True) if back}
        for table, release in steps
    ]


def bound_of(steps, name):
    """What the certificate of the newest release promises."""
    model = MODELS[name][0]["model"]
    if model == "historical-safety":  # its verdict is about n
        return Fraction(1, MODELS[name][0]["m"])
    (verdict,) = [v for v in steps[-1][1].certificate.verdicts if v["guarantee"] == model]
    bound = Fraction(verdict["bound"])
    return 1 / bound if bound > 1 else bound


def worst(name, steps):
    """The highest belief in anybody's value, over all worlds, with as many people known as the model allows."""
    _, change, known = MODELS[name]
    series = told(steps)
    if change == "freely":
        return max(_ever(series).values(), default=Fraction(0))
    if "individual" in name:
        return max(_paths(series), default=Fraction(0))  # nobody may be shown
    found = Fraction(0)
    back = stood_in(steps)
    for part in numbered_parts(series):
        people = {p for _, release in part for who, _ in release for p in who}
        if change == "transitions":
            chance = {a: dict.fromkeys(others, 1) for a, others in FAMILIES.items()}
            cohort = [
                (
                    tuple(p for p in who if p not in back[number]),
                    shown,
                    tuple(p for p in who if p in back[number]),
                    number,
                )
                for number, groups in part
                for who, shown in groups
            ]
            if len(cohort[0][1]) ** len(cohort) <= 64 and len(people) <= 5:
                found = max(found, evolving.worst_guess_with_stand_ins(cohort, chance, known))
        elif len(people) <= 8:
            found = max(found, worlds.worst_guess([groups for _, groups in part], known))
    return found


def _ever(series):
    """The chance of ever having been linked, release by release independent: one minus the product."""
    chances = {}
    for release in series:
        once = {}
        for group in release:
            listed = list(transient.worlds_of_group(*group)) if len(group[0]) < 6 else []
            for person in group[0]:
                for value in set(group[1]):
                    share = Fraction(group[1].count(value), len(group[1]))
                    if listed:
                        assert share == Fraction(sum(world[person] == value for world in listed), len(listed))
                    once[person, value] = share
        for key, share in once.items():
            chances[key] = 1 - (1 - chances.get(key, Fraction(0))) * (1 - share)
    return chances


def _paths(series):
    chance = {a: {b: Fraction(1, len(others)) for b in others} for a, others in FAMILIES.items()}
    mine = {}
    for release in series:
        for who, shown in release:
            for person in who:
                mine.setdefault(person, []).append({value: shown.count(value) for value in set(shown)})
    return [share for path in mine.values() for found in updates.path_chances(path, chance) for share in found.values()]


@pytest.mark.parametrize("name", MODELS)
def test_no_belief_is_above_the_certificate(name, tmp_path):
    """Whoever knows everybody's group, and as many values as the model allows."""
    for seed in range(SUITE):
        series, steps, k = published(name, seed, tmp_path / str(seed))
        if not steps:
            continue
        assert worst(name, steps) <= bound_of(steps, name)
        assert all(found.holds for found in series.verify().values())
        for table, release in steps:
            sizes = two_tables.boxes(release.public, "illness", SCALES)
            assert min(sizes.values(), default=k) >= k
            assert sum(sizes.values()) == (release.groups >= 0).sum() <= table.height


def people_of(table):
    return {row["name"]: {n: str(row[n]) for n in SCALES} for row in table.iter_rows(named=True)}


def unplaced(name, steps, known):
    """What an adversary believes who knows quasi-identifiers and who was in the input, and groups from bytes alone."""
    folders, inputs = [release.public for _, release in steps], [people_of(table) for table, _ in steps]
    allowed = two_tables.invariant if name == "m-invariance" else two_tables.closed
    listed = worlds.worlds if name == "m-invariance" else two_tables.cohort_worlds
    return two_tables.worst_unplaced(folders, "illness", inputs, SCALES, known, allowed, listed)


def small(steps):
    """Whether all placements of the first two releases can be listed."""
    return sum(release.table.height for _, release in steps[:2]) <= 14


SMALL = (5, 8)  # people of series that are small enough for that
UNPLACED = [name for name in MODELS if name.startswith("compromise-safety") and "refilled" not in name]


@pytest.mark.parametrize("name", [*UNPLACED, "m-invariance"])
def test_nor_for_an_adversary_who_does_not_know_groups(name, tmp_path):
    """Boxes alone tell who may be in which group; their chances mix, and no mixture is above the bound."""
    placed = 0
    for seed in range(SUITE):
        _, steps, _ = published(name, seed, tmp_path / str(seed), SMALL, 0.95)
        if len(steps) > 1 and small(steps):
            belief, ways = unplaced(name, steps[:2], MODELS[name][2])
            assert belief <= bound_of(steps, name)
            placed += ways > 1
    assert placed  # boxes left it open who is in which group


@pytest.mark.parametrize("people", ["boxes", "exact"])
def test_nobody_waits_for_a_place_without_refills(people, tmp_path):
    for seed in range(3):
        _, steps, _ = published("compromise-safety, one known", seed, tmp_path / str(seed), people=people)
        homes = {}
        for table, release in steps:
            assert not any("refilled" in reason for reason in release.certificate.withheld)
            _, values = two_tables.read(release.public, "illness")
            for name, group in zip(table["name"], release.groups.tolist(), strict=True):
                if group >= 0:  # a place is kept for ever, and with it what the group shows
                    assert homes.setdefault(name, values[group]) == values[group]


def main() -> None:
    """So many series for each model: highest belief beside the certificate's bound."""
    wanted = int(sys.argv[1])
    chosen = [name for name in MODELS if not sys.argv[2:] or any(word in name for word in sys.argv[2:])]
    print(
        "| model | series | releases | stand-ins | above | highest | bound | groups not known: series, above |\n"
        + "|---" * 8
        + "|"
    )
    for name in chosen:
        made = above = releases = back = open_ = open_above = 0
        highest, bounds = Fraction(0), set()
        for seed in range(wanted):
            with tempfile.TemporaryDirectory() as folder:
                few = seed % 4 == 0 and name in (*UNPLACED, "m-invariance")
                _, steps, _ = published(name, seed, Path(folder), *((SMALL, 0.95) if few else ()))
                if not steps:
                    continue
                found, bound = worst(name, steps), bound_of(steps, name)
                made, releases, above = made + 1, releases + len(steps), above + (found > bound)
                back += sum(map(len, stood_in(steps)))
                highest, bounds = max(highest, found / bound), bounds | {bound}
                if few and len(steps) > 1 and small(steps):
                    belief, _ = unplaced(name, steps[:2], MODELS[name][2])
                    open_, open_above = open_ + 1, open_above + (belief > bound)
        stated = ", ".join(str(bound) for bound in sorted(bounds))
        line = (
            name,
            made,
            releases,
            back,
            above,
            f"{float(highest):.3f} of the bound",
            stated,
            f"{open_}, {open_above}",
        )
        print(f"| {' | '.join(map(str, line))} |", flush=True)


if __name__ == "__main__":
    main()
