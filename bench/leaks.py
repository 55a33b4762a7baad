"""What releases give away around the promise: the attacks that once succeeded on certified series.

    python bench/leaks.py                     (every attack; a table in Markdown)
    python bench/leaks.py --rows 300 withheld refill

Each attack sees what anybody could: public tables, quasi-identifiers, who was in the table and in which group, the
program and its source, and not the key. The truth is used to score guesses alone. `stated` is what the certificate
says: the bound that was promised, or the limit by which it tells of this attack; `figure` is the chance in that. An
attack that the figure bounds (its lower end at 95 %) is *within*, one that publishing refuses is *refused*; *ABOVE*
must not occur. An attack is a function of `ATTACKS`: (rows, seed, folder) -> `Leak`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from reveil.audit.result.attacks import wilson
from reveil.base.errors import ReveilError
from reveil.base.lots import generator
from reveil.jobs.release import Release
from reveil.publish import open_series
from reveil.published.notation import Cell, parse_cell

COLUMNS = {"name": "identifier", "age": "quasi", "town": "quasi", "illness": "sensitive"}
VALUES = [f"v{number}" for number in range(9)]
SKEWED = np.array([22, 14, 12, 11, 10, 9, 8, 8, 6]) / 100


@dataclass(frozen=True)
class Leak:
    """How often guesses of an attack were right, how often plain guessing is, and what the certificate says."""

    hits: int
    guesses: int
    guessing: float
    stated: str
    figure: float | None = None  # the chance that is stated; None: it is refused, or there is none


@dataclass(frozen=True)
class Step:
    """One release: the table that was put in, and what came out."""

    table: pl.DataFrame
    release: Release

    def members(self) -> dict[int, list[str]]:
        """Who is in which group: known in the worst case."""
        found: dict[int, list[str]] = {}
        for name, group in zip(self.table["name"], self.release.groups.tolist(), strict=True):
            found.setdefault(group, []).append(name)
        return found

    def values(self) -> dict[int, Counter[str]]:
        """What each group shows."""
        found: dict[int, Counter[str]] = {}
        if self.release.values is not None:
            for group, value, count in self.release.values["illness"].iter_rows():
                found.setdefault(group, Counter())[value] += count
            return found
        for group, value in self.release.table.select("group", "illness").iter_rows():
            found.setdefault(group, Counter())[value] += 1
        return found

    def truth(self) -> dict[str, str]:
        return dict(self.table.select("name", "illness").iter_rows())


def people(names: range, rng: np.random.Generator, shares: Any = SKEWED) -> pl.DataFrame:
    count = len(names)
    return pl.DataFrame(
        {
            "name": [f"p{n}" for n in names],
            "age": rng.integers(18, 90, count),
            "town": rng.choice(list("stuv"), count),
            "illness": rng.choice(VALUES, count, p=shares),
        }
    )


def _policy(guarantee: dict[str, Any], method: dict[str, Any] | None = None, **values: Any) -> dict[str, Any]:
    return {
        "columns": COLUMNS,
        "values": values or {"change": "never"},
        "guarantee": guarantee,
        "method": {"infeasible": "withhold", "publish": "generalized", **(method or {})},
    }


def series(
    tables: list[pl.DataFrame],
    guarantee: dict[str, Any],
    folder: Path,
    method: dict[str, Any] | None = None,
    **values: Any,
) -> list[Step]:
    made = open_series(_policy(guarantee, method, **values), home=folder / "home")
    return [Step(table, made.publish(table, seed=number)) for number, table in enumerate(tables, 1)]


def arriving(rows: int, seed: int, releases: int, churn: float = 0.15) -> list[pl.DataFrame]:
    """A population of which a share leaves for good and as many arrive from release to release."""
    rng = np.random.default_rng(seed)
    tables, first = [people(range(rows), rng)], rows
    for _ in range(1, releases):
        stay = tables[-1].filter(pl.Series(rng.random(tables[-1].height) >= churn))
        tables.append(pl.concat([stay, people(range(first, first + int(rows * churn)), rng)]))
        first += int(rows * churn)
    return tables


def bound_of(step: Step) -> tuple[str, float]:
    """What was promised."""
    bound = step.release.certificate.verdicts[-1]["bound"]
    return f"at most {bound}", float(Fraction(bound))


def limit_of(step: Step, words: str) -> tuple[str, float]:
    """What the certificate says of this attack, and the chance in it; the promise, where it says nothing."""
    found = [text for text in step.release.certificate.limits if words in text]
    if not found:
        return bound_of(step)
    shares = [float(share) / 100 for share in re.findall(r"right in [\d,]+ of [^(]*\((\d+)%", found[0])]
    chances = [float(Fraction(chance)) for chance in re.findall(r"chance of ([\d./]*\d)", found[0])]
    if not shares + chances:
        return bound_of(step)
    figure = (shares or chances)[0]
    return f"limit: {words}, right with {figure:.2g}", figure


def withheld(rows: int, seed: int, folder: Path) -> Leak:
    """Whoever waits has the most frequent value of those who were shown."""
    (step,) = series([people(range(rows), np.random.default_rng(seed))], {"model": "compromise-safety", "m": 6}, folder)
    shown = sum(step.values().values(), Counter[str]())
    guess, truth = shown.most_common(1)[0][0], step.truth()
    left = step.members().get(-1, [])
    hits = sum(truth[name] == guess for name in left)
    return Leak(hits, len(left), float(SKEWED.max()), *limit_of(step, "wait because of their value"))


def drawn(rows: int, seed: int, folder: Path) -> Leak:
    """Who is drawn by lot to wait has the value that is too frequent; one of them is known not to have it."""
    rng = np.random.default_rng(seed)
    first = people(range(60), rng, np.full(9, 1 / 9)).with_columns(illness=pl.Series((VALUES * 7)[:60]))
    tables = [first, pl.concat([first, people(range(60, 60 + rows), rng)])]
    method = {"infeasible": "wait", "publish": "anatomy", "people": "exact"}
    *_, step = series(tables, {"model": "compromise-safety", "m": 6}, folder, method)
    truth, left = step.truth(), step.members().get(-1, [])
    known = next((name for name in left if truth[name] != VALUES[0]), None)
    others = [name for name in left if name != known]
    hits = sum(truth[name] == VALUES[0] for name in others)
    told = [text for text in step.release.certificate.limits if "drawn by lot" in text]
    surer = re.findall(r"\(([\d./]+)[^,]* with 1 of them known\)", told[0]) if told else []
    if not surer:
        return Leak(hits, len(others), float(SKEWED.max()), *bound_of(step))
    return Leak(
        hits, len(others), float(SKEWED.max()), f"limit: drawn by lot, right with {surer[0]}", float(Fraction(surer[0]))
    )


def shown_later(rows: int, seed: int, folder: Path) -> Leak:
    """Whoever waited while others were shown has, once shown, the most frequent value of that time in their group."""
    steps = series(arriving(rows, seed, 5), {"model": "compromise-safety", "m": 4}, folder)
    waited: dict[str, Counter[str]] = {}
    published: set[str] = set()
    hits = guesses = 0
    for step in steps:
        truth, values = step.truth(), step.values()
        fresh: Counter[str] = Counter()
        for group, names in step.members().items():
            if group >= 0 and not published & set(names):
                fresh += values[group]
            for name in names if group >= 0 else ():
                if name in waited and name not in published:
                    guess = max(values[group], key=lambda value, odds=waited[name]: odds[value])
                    hits, guesses = hits + (truth[name] == guess), guesses + 1
        left = set(step.members().get(-1, [])) - published
        published |= set(truth) - set(step.members().get(-1, []))
        if fresh:
            waited |= {name: fresh for name in left if name not in waited}
    return Leak(hits, guesses, 1 / 4, *bound_of(steps[-1]))


def refill(rows: int, seed: int, folder: Path) -> Leak:
    """A value that stays counterfeit in a refilled cohort is one that no cohort founded now shows."""
    guarantee = {"model": "compromise-safety", "m": 6, "refill": 3}
    steps = series(arriving(max(90, rows // 4), seed, 8, 0.2), guarantee, folder)
    return Leak(*named_by_refill(steps), 1 / 6, *limit_of(steps[-1], "Refilled places"))


def named_by_refill(steps: list[Step]) -> tuple[int, int]:
    """In how many refilled groups the counterfeits are named rightly, and in how many at all."""
    published: set[str] = set()
    hits = guesses = 0
    for step in steps:
        truth, values, members = step.truth(), step.values(), step.members()
        groups = {group: set(names) for group, names in members.items() if group >= 0}
        fresh = {value for group, names in groups.items() if not names & published for value in values[group]}
        for group, names in groups.items():
            if fresh and names & published and names - published:
                named, left = set(values[group]) - fresh, values[group] - Counter(truth[name] for name in names)
                if len(named) == left.total() > 0:
                    hits, guesses = hits + (named == set(left)), guesses + 1
        published |= set().union(*groups.values())
    return hits, guesses


def leavers(rows: int, seed: int, folder: Path, stated: bool = False) -> Leak:
    """People mostly keep their value and counterfeits move as a plain list of changes says: who left is told."""
    kinds = {f"{kind}{i}": [f"{kind}{j}" for j in range(3)] for kind in "abcdef" for i in range(3)}
    true = {a: {b: "29/30" if a == b else "1/60" for b in others} for a, others in kinds.items()}
    rng = np.random.default_rng(seed)
    first = people(range(rows), rng).with_columns(illness=pl.Series(rng.choice(list(kinds), rows)))
    stay = first.filter(pl.Series(rng.random(rows) >= 0.1))
    moved = [value if rng.random() < 0.95 else str(rng.choice(kinds[value])) for value in stay["illness"]]
    second = stay.with_columns(illness=pl.Series(moved))
    guarantee, relation = {"model": "m-distinct-star", "m": 4}, _written(true, folder) if stated else kinds
    one, two = series([first, second], guarantee, folder, change="transitions", transitions=relation)
    before, after, truth = one.values(), two.values(), one.truth()
    home = {name: group for group, names in two.members().items() for name in names}
    hits = guesses = 0
    for group, names in one.members().items():
        here = {home[name] for name in names if home.get(name, -1) >= 0}
        gone = [name for name in names if name not in home]
        if group < 0 or len(gone) != 1 or len(here) != 1:
            continue
        odd = before[group] - after[here.pop()]
        if odd.total() == 1:
            hits, guesses = hits + (truth[gone[0]] in odd), guesses + 1
    return Leak(hits, guesses, 1 / 4, *limit_of(two, "Leavers"))


def _written(chances: dict[str, dict[str, str]], folder: Path) -> str:
    """A file of transitions with their chances."""
    file = folder / "transitions.csv"
    lines = [f"{a};{b};{chance}" for a, row in chances.items() for b, chance in row.items()]
    file.write_text("\n".join(["from;to;probability", *lines]), encoding="utf-8")
    return str(file)


def leavers_stated(rows: int, seed: int, folder: Path) -> Leak:
    """The same where the chances are stated: counterfeits stay as people do."""
    return leavers(rows, seed, folder, stated=True)


def ended(rows: int, seed: int, folder: Path) -> Leak:
    """Cohorts of changing values that are not shown again: their people have what most can have come to share."""
    kinds = {f"{kind}{i}": [f"{kind}{j}" for j in range(4)] for kind in "ab" for i in range(4)}
    rng = np.random.default_rng(seed)
    first = people(range(rows), rng).with_columns(illness=pl.Series(rng.choice(list(kinds), rows)))
    second = first.with_columns(illness=pl.Series([str(rng.choice(kinds[value])) for value in first["illness"]]))
    guarantee = {"model": "m-distinct", "m": 3, "tau": "2/3"}
    one, two = series([first, second], guarantee, folder, change="transitions", transitions=kinds)
    shown, truth, away = one.values(), two.truth(), set(two.members().get(-1, []))
    hits = guesses = 0
    for group, names in one.members().items():
        if group < 0 or not away.issuperset(names):
            continue
        expected: Counter[str] = Counter()
        for value, times in shown[group].items():
            expected.update(dict.fromkeys(kinds[value], times))
        guess = max(sorted(expected), key=expected.__getitem__)
        hits, guesses = hits + sum(truth[name] == guess for name in names), guesses + len(names)
    return Leak(hits, guesses, 1 / 8, *limit_of(two, "Cohorts that end"))


def apart(rows: int, seed: int, folder: Path) -> Leak:
    """Near people who were put apart share a value: guess one that both of their groups show."""
    everybody = people(range(rows), np.random.default_rng(seed))
    (step,) = series([everybody], {"model": "compromise-safety", "m": 3}, folder)
    table = step.table.with_columns(group=pl.Series(step.release.groups)).filter(pl.col("group") >= 0)
    near = table.sort("town", "age", "name")
    values, truth, rng = step.values(), step.truth(), np.random.default_rng([seed, 1])
    hits = guesses = 0
    shares = []
    for one, other in zip(near.iter_rows(named=True), near[1:].iter_rows(named=True), strict=False):
        common = sorted(set(values[one["group"]]) & set(values[other["group"]]))
        if one["group"] != other["group"] and one["town"] == other["town"] and common:
            hits, guesses = hits + (truth[one["name"]] == str(rng.choice(common))), guesses + 1
            shares.append(1 / values[one["group"]].total())
    return Leak(hits, guesses, float(np.mean(shares)) if shares else 0.0, *bound_of(step))


def borders(rows: int, seed: int, folder: Path) -> Leak:
    """Whoever stands at the border of a group's box was reached for, because of a rare value: guess the rarest."""
    (step,) = series([people(range(rows), np.random.default_rng(seed))], {"model": "compromise-safety", "m": 3}, folder)
    age = dict(step.table.select("name", "age").iter_rows())
    values, truth = step.values(), step.truth()
    shown = sum(values.values(), Counter[str]())
    hits = guesses = 0
    shares = []
    for group, names in step.members().items():
        if group >= 0:
            middle = float(np.median([age[name] for name in names]))
            far = max(sorted(names), key=lambda name: abs(age[name] - middle))
            rare = min(sorted(values[group]), key=shown.__getitem__)
            hits, guesses = hits + (truth[far] == rare), guesses + 1
            shares.append(1 / values[group].total())
    return Leak(hits, guesses, float(np.mean(shares)), *bound_of(step))


def program(rows: int, seed: int, folder: Path) -> Leak:
    """Whoever has the program runs it on every input that fits what is public, and believes those that lead there."""
    rng = np.random.default_rng(seed)
    table = people(range(6), rng).with_columns(illness=pl.Series(rng.permutation(list("xyzxyz"))))
    policy = _policy({"model": "compromise-safety", "m": 3})
    (step,) = series([table], {"model": "compromise-safety", "m": 3}, folder)
    names, shown = table["name"].to_list(), step.release.groups.tolist()
    groups = [[n for n, group in enumerate(shown) if group == number] for number in sorted(set(shown))]
    weight: Counter[tuple[str, ...]] = Counter()
    for orders in product(*(permutations([table["illness"][n] for n in group]) for group in groups)):
        held = [""] * 6
        for group, values in zip(groups, orders, strict=True):
            for n, value in zip(group, values, strict=True):
                held[n] = value
        again = table.with_columns(illness=pl.Series(held))
        for _ in range(max(4, rows // 60)):
            found = open_series(policy, home=folder / "none").plan(again).plan.groups.tolist()
            weight[tuple(held)] += {tuple(n for n in range(6) if found[n] == g) for g in set(found)} == set(
                map(tuple, groups)
            )
    truth = step.truth()
    hits = 0
    for n, name in enumerate(names):
        belief: Counter[str] = Counter()
        for held, times in weight.items():
            belief[held[n]] += times
        hits += max(sorted(belief), key=belief.__getitem__) == truth[name] if belief.total() else 0
    return Leak(hits, 6, 1 / 3, *bound_of(step))


SPELLINGS: dict[str, Callable[[int], str]] = {
    "leading zeros lost": str,
    "a blank after": lambda n: f"{n:05d} ",
    "a point and a zero": lambda n: f"{n}.0",
    "plus": lambda n: f"+{n}",
    "exponent": lambda n: f"{n}e0",
    "no-break space": lambda n: f"{n:05d}\u00a0",
    "apostrophe": lambda n: f"'{n:05d}",
    "full-width digits": lambda n: "".join(chr(ord(digit) + 0xFEE0) for digit in f"{n:05d}"),
}
WORDS: dict[str, Callable[[str], str]] = {
    "capitals": str.upper,
    "decomposed": lambda name: unicodedata.normalize("NFD", name),
    "invisible mark": lambda name: f"\ufeff{name}",
}


def respelled(rows: int, seed: int, folder: Path) -> Leak:
    """Identifiers in another spelling: all who stay become newcomers, and their two groups are put together."""
    rng = np.random.default_rng(seed)
    first = people(range(min(rows, 120)), rng, np.full(9, 1 / 9))
    passed = tried = 0
    for number, (kind, way) in enumerate([*SPELLINGS.items(), *WORDS.items()]):
        digits = kind in SPELLINGS
        names = [f"{100 + n:05d}" if digits else f"\u00c4rztin-\u00e9{n}" for n in range(first.height)]
        again = [way(100 + n) if digits else way(names[n]) for n in range(first.height)]  # type: ignore[arg-type]
        tables = [first.with_columns(name=pl.Series(listed)) for listed in (names, again)]
        made = open_series(_policy({"model": "m-invariance", "m": 3}), home=folder / str(number))
        made.publish(tables[0], seed=1)
        tried += 1
        try:
            made.publish(tables[1], seed=2, new_people=True)
            passed += 1
        except ReveilError:
            continue
    return Leak(passed, tried, 1.0, "refused (R317)")


def seeds(rows: int, seed: int, folder: Path) -> Leak:
    """Whoever has the input, the program and its source tries seeds: the order of rows shows which was used."""
    table = people(range(60), np.random.default_rng(seed))
    policy = {"columns": {**COLUMNS, "town": "drop"}, "guarantee": {"k": 60}}
    import reveil

    shown = reveil.anonymize(table, policy, seed=seed).table["illness"].to_list()
    values, hits = table["illness"].to_numpy(), 0
    ways: tuple[Callable[[int], np.random.Generator], ...] = (np.random.default_rng, generator)
    for way in ways:
        for guess in range(min(2_000, 10 * rows)):
            rng = way(guess)
            rng.permutation(1)  # groups are numbered first
            hits += values[rng.permutation(60)].tolist() == shown
    return Leak(min(hits, 1), 1, 0.0, "refused: lots come from a key", 0.0)


def restored(rows: int, seed: int, folder: Path, anchor: bool = False, certain: bool = False) -> Leak:
    """A home that is continued twice: newcomers stand in two groups, and have a value that both of them show."""
    tables = arriving(rows, seed, 2, 0.3)
    policy = _policy({"model": "compromise-safety", "m": 6})
    if anchor:
        policy["output"] = {"anchor": str(folder / "anchor.json")}
    first = open_series(policy, home=folder / "home")
    first.publish(tables[0], seed=1)
    shutil.copytree(folder / "home", folder / "copy")
    one = Step(tables[1], first.publish(tables[1], seed=2))
    fewer = tables[1].sample(fraction=0.9, seed=seed)
    try:
        other = Step(fewer, open_series(policy, home=folder / "copy").publish(fewer, seed=3))
    except ReveilError as error:
        return Leak(0, 0, 1 / 6, f"refused ({error.faults[0].code})")
    old, truth, rng = set(tables[0]["name"]), one.truth(), np.random.default_rng([seed, 2])
    place = {name: group for group, names in other.members().items() for name in names}
    values, twice = one.values(), other.values()
    hits = guesses = 0
    for group, names in one.members().items():
        for name in names if group >= 0 else ():
            if name not in old and place.get(name, -1) >= 0:
                common = sorted(set(values[group]) & set(twice[place[name]]))
                if not certain or len(common) == 1:
                    hits, guesses = hits + (truth[name] == str(rng.choice(common))), guesses + 1
    return Leak(hits, guesses, 1 / 6, *limit_of(one, "continued twice"))


def restored_certain(rows: int, seed: int, folder: Path) -> Leak:
    """Of these newcomers, those whose two groups show one value in common."""
    return restored(rows, seed, folder, certain=True)


def restored_anchored(rows: int, seed: int, folder: Path) -> Leak:
    """The same where the newest id is kept in a second place."""
    return restored(rows, seed, folder, anchor=True)


def boxes(rows: int, seed: int, folder: Path) -> Leak:
    """Follow groups by their values and rows by their boxes; name somebody who fits all boxes of a row.

    The list of people has everybody who was ever in the table, and as many who were not.
    """
    tables = arriving(rows, seed, 6)
    guarantee = {"model": "compromise-safety", "m": 6, "k": 5}
    steps = series(tables, guarantee, folder, {"publish": "anatomy"})
    rng = np.random.default_rng([seed, 2])
    inside = pl.concat([step.table for step in steps]).unique("name", keep="first", maintain_order=True)
    listed = pl.concat([inside, people(range(10**6, 10**6 + inside.height), rng)])
    known = list(listed.select("name", "age", "town").iter_rows())
    hits = guesses = 0
    single = []  # how likely a guess by the first box alone is right
    for trail in followed(steps):
        fits = [[name for name, age, town in known if a.covers(age) and t.covers(town)] for _, a, t in trail]
        fit = sorted(set(fits[0]).intersection(*fits[1:])) or fits[0]
        hits, guesses = hits + (str(rng.choice(fit)) in owners(steps, trail)), guesses + 1
        single.append(1 / len(fits[0]))
    guessing = float(np.mean(single)) if single else 0.0
    said = any("Boxes of people are cut anew" in text for text in steps[-1].release.certificate.limits)
    stated = "limit: boxes are cut anew, one of k = 5 in each release" if said else "nothing"
    return Leak(hits, guesses, guessing, stated, 1 / 5 if said else None)


Trail = list[tuple[tuple[int, int], Cell, Cell]]  # release and group, box of a row


def followed(steps: list[Step]) -> list[Trail]:
    """Rows of groups that alone show their values, from release to release, where one row alone fits."""
    trails: dict[int, Trail] = {}  # by row of the newest release
    done: list[Trail] = []
    before: dict[tuple[str, ...], list[tuple[int, tuple[Cell, Cell]]]] = {}
    for number, step in enumerate(steps):
        table = step.release.table.with_row_index("row")
        signs: dict[int, tuple[str, ...]] = {g: tuple(sorted(v.elements())) for g, v in step.values().items()}
        once = Counter(signs.values())
        now: dict[tuple[str, ...], list[tuple[int, tuple[Cell, Cell]]]] = {}
        longer: dict[int, Trail] = {}
        for row, group, age, town in table.select("row", "group", "age", "town").iter_rows():
            if once[signs[group]] == 1:
                box = (parse_cell(age), parse_cell(town))
                now.setdefault(signs[group], []).append((row, box))
                old = [last for last, other in before.get(signs[group], []) if meet(box, other)]
                start = trails.pop(old[0], []) if len(old) == 1 else []
                longer[row] = [*start, ((number, group), *box)]
        done += [trail for trail in trails.values() if len(trail) > 1]
        trails, before = longer, now
    return done + [trail for trail in trails.values() if len(trail) > 1]


def meet(one: tuple[Cell, Cell], other: tuple[Cell, Cell]) -> bool:
    ages = any(one[0].covers(age) and other[0].covers(age) for age in range(18, 90))
    return ages and any(one[1].covers(town) and other[1].covers(town) for town in "stuv")


def owners(steps: list[Step], trail: Trail) -> set[str]:
    """Who was in all these groups and boxes."""
    found: list[set[str]] = []
    for (number, group), age, town in trail:
        table = steps[number].table.filter(pl.Series(steps[number].release.groups == group))
        rows = table.select("name", "age", "town").iter_rows()
        found.append({name for name, own, place in rows if age.covers(own) and town.covers(place)})
    return set.intersection(*found)


ATTACKS: dict[str, Callable[[int, int, Path], Leak]] = {
    "respelled": respelled,
    "withheld": withheld,
    "drawn by lot": drawn,
    "shown later": shown_later,
    "refill": refill,
    "leavers": leavers,
    "leavers, chances stated": leavers_stated,
    "cohorts that end": ended,
    "near people apart": apart,
    "borders": borders,
    "program known": program,
    "seeds": seeds,
    "restored home": restored,
    "restored home, one value left": restored_certain,
    "restored home, anchored": restored_anchored,
    "boxes of several releases": boxes,
}


@dataclass(frozen=True)
class Result:
    """One attack over several series."""

    name: str
    hits: int
    guesses: int
    guessing: float
    stated: str
    figure: float | None

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.hits / self.guesses if self.guesses else 0.0, self.guesses)

    @property
    def verdict(self) -> str:
        if self.stated.startswith("refused"):
            return "refused" if not self.hits else "ABOVE"
        if not self.guesses:
            return "nobody to guess"
        return "within" if self.figure is not None and self.interval[0] <= self.figure + 1e-9 else "ABOVE"

    def line(self) -> tuple[str, ...]:
        low, high = self.interval
        rate = f"{self.hits / self.guesses:.3f}" if self.guesses else ""
        span = f"{low:.3f} to {high:.3f}" if self.guesses else ""
        counts = f"{self.hits:,} of {self.guesses:,}"
        return self.name, counts, rate, span, f"{self.guessing:.3f}", self.stated, self.verdict


def measured(name: str, rows: int, times: int) -> Result:
    leaks = []
    for seed in range(times):
        with tempfile.TemporaryDirectory() as folder:
            leaks.append(ATTACKS[name](rows, seed, Path(folder)))
    hits, guesses = sum(leak.hits for leak in leaks), sum(leak.guesses for leak in leaks)
    told = [leak for leak in leaks if leak.guesses and leak.figure is not None]
    weight = sum(leak.guesses for leak in told)
    figure = sum(leak.guesses * (leak.figure or 0.0) for leak in told) / weight if weight else None
    stated = leaks[-1].stated
    if stated.startswith("limit") and figure is not None:
        stated = f"{stated.partition(', right with')[0]}, right with {figure:.2f}"
    return Result(name, hits, guesses, float(np.mean([leak.guessing for leak in leaks])), stated, figure)


def main() -> None:
    parser = argparse.ArgumentParser(description="Attacks around the promise.")
    parser.add_argument("attacks", nargs="*", help=f"of {', '.join(ATTACKS)}; all without any")
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--strict", action="store_true", help="exit code 1 where an attack is above what is stated")
    given = parser.parse_args()
    head = ("attack", "right", "rate", "95 % interval", "guessing", "the certificate says", "verdict")
    print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|")
    above = []
    for name in given.attacks or ATTACKS:
        result = measured(name, given.rows, given.times)
        above += [name] if result.verdict == "ABOVE" else []
        print(f"| {' | '.join(result.line())} |", flush=True)
    if above and given.strict:
        sys.exit(f"above what is stated: {', '.join(above)}")


if __name__ == "__main__":
    main()
