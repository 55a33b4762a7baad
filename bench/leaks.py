"""What releases give away around the promise: the attacks that once succeeded on certified series.

    python bench/leaks.py                     (every attack; a table in Markdown)
    python bench/leaks.py --rows 300 withheld refill

Each attack sees what anybody could: public tables, quasi-identifiers, who was in the table and in which group. The
truth is used to score guesses alone. `stated` is what the certificate says: the bound that was promised, or the limit
by which it tells of this attack. An attack is a function of `ATTACKS`: (rows, seed, folder) -> `Leak`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from reveil.audit.result.attacks import wilson
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


def series(
    tables: list[pl.DataFrame],
    guarantee: dict[str, Any],
    folder: Path,
    method: dict[str, Any] | None = None,
    **values: Any,
) -> list[Step]:
    policy = {
        "columns": COLUMNS,
        "values": values or {"change": "never"},
        "guarantee": guarantee,
        "method": {"infeasible": "withhold", **(method or {})},
    }
    made = open_series(policy, home=folder / "home")
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


def bound_of(step: Step) -> str:
    return f"at most {step.release.certificate.verdicts[-1]['bound']}"


def limit_of(step: Step, words: str) -> str:
    found = [text for text in step.release.certificate.limits if words in text]
    return f"limit: {found[0].split('. ')[0].split(' (')[0]}" if found else "nothing"


def withheld(rows: int, seed: int, folder: Path) -> Leak:
    """Whoever waits has the most frequent value of those who were shown."""
    (step,) = series([people(range(rows), np.random.default_rng(seed))], {"model": "compromise-safety", "m": 6}, folder)
    shown = sum(step.values().values(), Counter[str]())
    guess, truth = shown.most_common(1)[0][0], step.truth()
    left = step.members().get(-1, [])
    hits = sum(truth[name] == guess for name in left)
    return Leak(hits, len(left), float(SKEWED.max()), limit_of(step, "wait because of their value"))


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
    return Leak(hits, guesses, 1 / 4, bound_of(steps[-1]))


def refill(rows: int, seed: int, folder: Path) -> Leak:
    """A value that stays counterfeit in a refilled cohort is one that no cohort founded now shows."""
    guarantee = {"model": "compromise-safety", "m": 6, "refill": 3}
    steps = series(arriving(max(90, rows // 4), seed, 8, 0.2), guarantee, folder)
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
    return Leak(hits, guesses, 1 / 6, bound_of(steps[-1]))


def leavers(rows: int, seed: int, folder: Path) -> Leak:
    """People mostly keep their value and counterfeits move as a plain list of changes says: who left is told."""
    kinds = {f"{kind}{i}": [f"{kind}{j}" for j in range(3)] for kind in "abcdef" for i in range(3)}
    rng = np.random.default_rng(seed)
    first = people(range(rows), rng).with_columns(illness=pl.Series(rng.choice(list(kinds), rows)))
    stay = first.filter(pl.Series(rng.random(rows) >= 0.1))
    moved = [value if rng.random() < 0.95 else str(rng.choice(kinds[value])) for value in stay["illness"]]
    second = stay.with_columns(illness=pl.Series(moved))
    guarantee = {"model": "m-distinct-star", "m": 4}
    one, two = series([first, second], guarantee, folder, change="transitions", transitions=kinds)
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
    return Leak(hits, guesses, 1 / 4, limit_of(two, "stated chances"))


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
    return Leak(hits, guesses, float(np.mean(shares)) if shares else 0.0, bound_of(step))


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
    return Leak(hits, guesses, guessing, limit_of(steps[-1], "Boxes of people are cut anew"))


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
    "withheld": withheld,
    "shown later": shown_later,
    "refill": refill,
    "leavers": leavers,
    "near people apart": apart,
    "boxes of several releases": boxes,
}


def measured(name: str, rows: int, times: int) -> tuple[str, ...]:
    leaks = []
    for seed in range(times):
        with tempfile.TemporaryDirectory() as folder:
            leaks.append(ATTACKS[name](rows, seed, Path(folder)))
    hits, guesses = sum(leak.hits for leak in leaks), sum(leak.guesses for leak in leaks)
    rate = hits / guesses if guesses else 0.0
    low, high = wilson(rate, guesses)
    span = f"{low:.3f} to {high:.3f}" if guesses else "nobody to guess"
    guessing = float(np.mean([leak.guessing for leak in leaks]))
    return name, f"{hits:,} of {guesses:,}", f"{rate:.3f}", span, f"{guessing:.3f}", leaks[-1].stated


def main() -> None:
    parser = argparse.ArgumentParser(description="Attacks around the promise.")
    parser.add_argument("attacks", nargs="*", help=f"of {', '.join(ATTACKS)}; all without any")
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    print("| attack | right | rate | 95 % interval | guessing | the certificate says |\n|---|---|---|---|---|---|")
    for name in given.attacks or ATTACKS:
        print(f"| {' | '.join(measured(name, given.rows, given.times))} |", flush=True)


if __name__ == "__main__":
    main()
