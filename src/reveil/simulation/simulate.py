"""An evolving population as a series of tables: people come, leave, return, move, age, and values change.

Everything follows from the seed. Each release and purpose has its own random stream, so that changing one
setting, such as `move`, leaves all that does not depend on it as it was. Nobody in these tables exists.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from reveil.base.errors import Fault, InputError
from reveil.base.words import some
from reveil.simulation.populations import DIAGNOSES, OLDEST, RARE, REGIONS, SHAPES, Array, Traits, draw, text, zipf
from reveil.simulation.scenario import HeadCounts, Scenario

POLICY = """# A simulated series: nobody in it exists.
[series]
name = "{shape}"

[columns]
{columns}
[values]
change = "{change}"   # how a person's sensitive value changes from release to release
{transitions}
[guarantee]
{guarantee}"""
GUARANTEES = {  # what fits each way in which values change
    "never": """model = "compromise-safety"   # people are grouped once and stay together
m = 6             # every group shows 6 different sensitive values
compromised = 1   # even if any 1 person's value is known, nobody else's is guessed with more than 1/5
refill = "never"  # places that people leave stay theirs
{k}
[method]
{two_tables}infeasible = "wait"   # newcomers for whom there is no group yet wait, and are counted
""",
    "freely": """model = "global"
l = 2                         # over all releases: at most 1/2 that a person was ever linked to a value
strategy = "constant-ratio"   # the budget is spent in equal parts
horizon = {horizon}                   # over this many releases
{protect}{k}
[method]
{two_tables}""",
    "transitions": """model = "m-distinct-star"   # people of a group have values that can never become the same
m = 3             # every group shows 3 such values
compromised = 1   # even if any 1 person's values are known, nobody else's can be guessed with more than 1/2
refill = "never"  # places that people leave stay theirs
{k}
[method]
{two_tables}infeasible = "withhold"   # people for whom there is no group now are left out and counted
""",
    "mixing": """model = "m-distinct"   # where too many values can become each other for m-distinct-star
m = 3
compromised = 1
{k}
[method]
{two_tables}infeasible = "withhold"   # people for whom there is no group now are left out and counted
""",
}


SHARED = {  # of all of them
    "k": "k = 5             # at least 5 people of a release share a box\n",
    "two_tables": """publish = "anatomy"   # two tables: people in boxes, and the values of each group; or "generalized"
""",
}


def _value_weights(s: Scenario) -> Array:
    """Frequency of each value in each of 5 x 3 strata (age or education band, sex)."""
    names = s.names
    # A stride coprime to the count spreads frequent values over the list, and so over the blocks.
    stride = next(step for step in range(max(1, len(names) * 3 // 8), len(names) + 1) if gcd(step, len(names)) == 1)
    base = zipf(len(names), s.skew)[np.arange(len(names)) * stride % len(names)]
    if s.shape == "hospital":
        base = np.where(np.isin(names, RARE) & (s.skew > 0), base.min() / 10, base)
        lean, sex = np.array([d[1:] for d in DIAGNOSES[: len(names)]], dtype=float).T
    else:
        lean, sex = np.sin(1.7 * np.arange(len(names))), np.cos(2.3 * np.arange(len(names)))
    band, sign = np.repeat([-1, -0.5, 0, 0.5, 1], 3)[:, None], np.tile([1, -1, 0], 5)[:, None]
    return np.asarray(base * (1 + 0.3 * lean * band + 0.15 * sex * sign))


def iterate(scenario: Scenario) -> Iterator[pl.DataFrame]:
    """One table per release, made when it is asked for. Only the people's traits are kept in between.

    >>> [table.height for table in iterate(Scenario(rows=100, releases=3, arrive=0.2, leave=0.1, returns=0))]
    [100, 110, 121]
    """
    shape, weights, who = SHAPES[scenario.shape], _value_weights(scenario), Traits()
    for release, step in enumerate([HeadCounts(0, 0, scenario.rows, 0, 0), *scenario.steps()]):
        if release:
            known = _leave_and_return(scenario, release, step, who)
            _move(scenario, release, who, known)
            _change_values(scenario, release, step, who, known, weights)
        new = shape.newcomers(scenario.random(release, "arrive"), step.came)
        new["since"] = np.full(step.came, release, dtype=np.int16)
        new["here"] = np.ones(step.came, dtype=bool)
        strata = shape.strata(new, new["age"].astype(np.int16))
        new["value"] = draw(scenario.random(release, "value of newcomers"), weights, strata)
        who = {name: np.concatenate([who[name], new[name]]) if who else new[name] for name in new}
        yield _table(scenario, release, who)


def _leave_and_return(s: Scenario, release: int, step: HeadCounts, who: Traits) -> Array:
    """Settle who of the people seen before is here now. Nobody leaves and returns in the same step."""
    here, away = np.flatnonzero(who["here"]), np.flatnonzero(~who["here"])
    who["here"][s.random(release, "leave").choice(here, step.left, replace=False, shuffle=False)] = False
    who["here"][s.random(release, "return").choice(away, step.returned, replace=False, shuffle=False)] = True
    return np.flatnonzero(who["here"])


def _age(s: Scenario, release: int, who: Traits) -> Array:
    years = (release - who["since"]) * s.years if s.ages else 0
    return np.minimum(who["age"] + years, OLDEST).astype(np.int16)


def _pick(who: Traits, people: Array) -> Traits:
    return {name: trait[people] for name, trait in who.items()}


def _move(s: Scenario, release: int, who: Traits, known: Array) -> None:
    rng, shape = s.random(release, "move"), SHAPES[s.shape]
    able = known[_age(s, release, _pick(who, known)) >= shape.adult]
    count = min(round(s.move * len(known)), len(able))
    shape.move(rng, who, rng.choice(able, count, replace=False, shuffle=False))


def _change_values(s: Scenario, release: int, step: HeadCounts, who: Traits, known: Array, weights: Array) -> None:
    rng = s.random(release, "value")
    if s.values == "freely":
        people = _pick(who, known)
        who["value"][known] = draw(rng, weights, SHAPES[s.shape].strata(people, _age(s, release, people)))
    elif s.values == "transitions":
        first = np.concatenate([np.full(len(block), block[0]) for block in s.blocks])
        size = np.concatenate([np.full(len(block), len(block)) for block in s.blocks])
        updated = rng.choice(known, step.updated, replace=False, shuffle=False)
        now = who["value"][updated]
        shift = rng.integers(1, size[now])  # never 0: an update is a change
        who["value"][updated] = first[now] + (now - first[now] + shift) % size[now]


def _table(s: Scenario, release: int, who: Traits) -> pl.DataFrame:
    shape = SHAPES[s.shape]
    order = s.random(release, "order").permutation(np.flatnonzero(who["here"]))
    rows = _pick(who, order)
    age = _age(s, release, rows)
    number = pl.Series(order + 1).cast(pl.String).str.zfill(7)
    key, value = (shape.prefix + number), text(s.names, rows["value"])
    columns = {
        shape.key: key,
        "age": pl.Series(age),
        **shape.table(s.random(release, "stay"), release, s.years, rows, age),
        shape.sensitive: value,
    }
    return pl.DataFrame(columns)


def transitions(scenario: Scenario) -> pl.DataFrame | None:
    """Which value may become which from one appearance to the next, and how often (mean over all steps).

    >>> relation = transitions(Scenario(values="transitions", diameter=2, update=0.1, releases=2))
    >>> relation.row(1)
    ('Asthma', 'Bronchitis', 0.1)
    """
    if scenario.values != "transitions":
        return None
    steps, names = scenario.steps(max(2, scenario.releases)), scenario.names
    rate = sum(step.updated for step in steps) / max(1, sum(step.known for step in steps))
    rows = [
        (names[a], names[b], 1 - rate if a == b else rate / (len(block) - 1))
        for block in scenario.blocks
        for a in block
        for b in block
    ]
    return pl.DataFrame(rows, schema=["from", "to", "probability"], orient="row")


def _policy_text(s: Scenario) -> str:
    relation = 'transitions = "transitions.csv"\n' if s.values == "transitions" else ""
    columns = SHAPES[s.shape].columns
    protect = 'protect = ["Epilepsy", "Huntington disease", "Obesity"]   # values that must not stick to anyone\n'
    kind = "mixing" if s.values == "transitions" and len(s.blocks) < 3 else s.values
    guarded = protect if s.shape == "hospital" else ""
    guarantee = GUARANTEES[kind].format(horizon=s.releases, protect=guarded, **SHARED)
    return POLICY.format(shape=s.shape, columns=columns, change=s.values, transitions=relation, guarantee=guarantee)


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """A whole series in memory, with the policy to publish it under."""

    scenario: Scenario
    tables: tuple[pl.DataFrame, ...]
    transitions: pl.DataFrame | None
    policy: dict[str, Any]

    def __repr__(self) -> str:
        rows = ", ".join(f"{table.height:,}" for table in self.tables)
        return f"Simulation(shape={self.scenario.shape!r}, rows per release: {rows})"

    def describe(self) -> str:
        """What happened, counted from the tables and not taken from the scenario."""
        key, sensitive = SHAPES[self.scenario.shape].key, SHAPES[self.scenario.shape].sensitive
        lines, last = list[str](), self.tables[0].select(key, sensitive).clear()
        before = last
        for number, table in enumerate(self.tables, start=1):
            now = table.select(key, sensitive)
            known = now.join(last, on=key, suffix=" before")
            stayed = now.join(before, on=key, how="semi").height
            changed = int((known[sensitive] != known[f"{sensitive} before"]).sum())
            value, count = now[sensitive].value_counts().sort("count", sensitive, descending=[True, False]).row(0)
            lines.append(
                f"release {number}: {some(now.height, 'row')}; {stayed:,} stayed, {before.height - stayed:,} left, "
                f"{now.height - known.height:,} came, {known.height - stayed:,} returned; "
                f"{some(changed, 'value')} changed; "
                f"most frequent {value} {count / now.height:.1%} (m up to {now.height // count})"
            )
            before, last = now, pl.concat([now, last.join(now, on=key, how="anti")])
        return "\n".join(lines)


def simulate(scenario: Scenario) -> Simulation:
    """The whole series at once.

    >>> simulate(Scenario(rows=1_000, releases=2))
    Simulation(shape='hospital', rows per release: 1,000, 1,000)
    """
    policy = tomllib.loads(_policy_text(scenario))
    if scenario.shape == "census":  # in memory there is no file to name
        tree = {region: countries.split() for region, countries in REGIONS.items()}
        policy["columns"]["birthplace"]["hierarchy"] = tree
    relation = transitions(scenario)
    if relation is not None:
        policy["values"]["transitions"] = dict(relation.group_by("from", maintain_order=True).agg("to").iter_rows())
    return Simulation(scenario, tuple(iterate(scenario)), relation, policy)


def write(scenario: Scenario, folder: str | Path, format: Literal["csv", "parquet"] = "csv") -> list[Path]:
    """Write release-01.csv and so on, reveil.toml, and the files it names; all their paths in this order."""
    folder = Path(folder)
    if format not in ("csv", "parquet"):
        raise InputError(Fault("R804", "simulate, format", f"{format!r} is not known", "use csv or parquet"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InputError(Fault("R805", f"folder {folder}", "is not empty", "name a new or an empty folder"))
        return [*_write_tables(scenario, folder, format), *_write_policy(scenario, folder)]
    except OSError as error:
        reason = f"cannot be written: {error.strerror or error}"
        raise InputError(Fault("R805", f"folder {folder}", reason, "name a folder you may write to")) from None


def _write_tables(s: Scenario, folder: Path, format: str) -> Iterator[Path]:
    digits = max(2, len(str(s.releases)))
    for number, table in enumerate(iterate(s), start=1):
        path = folder / f"release-{number:0{digits}d}.{format}"
        table.write_csv(path) if format == "csv" else table.write_parquet(path)
        yield path


def _write_policy(s: Scenario, folder: Path) -> Iterator[Path]:
    texts, relation = {"reveil.toml": _policy_text(s)}, transitions(s)
    if relation is not None:
        texts["transitions.csv"] = relation.write_csv(separator=";")
    if s.shape == "census":
        rows = [f"{country};{region};*\n" for region, names in REGIONS.items() for country in names.split()]
        texts["birthplace.csv"] = "".join(rows)
    for name, content in texts.items():
        (folder / name).write_text(content, encoding="utf-8")
        yield folder / name
