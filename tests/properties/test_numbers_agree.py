"""What a plan says that it loses is what `measure` finds in the public bytes: column by column, and by classes."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

import reveil
from reveil.base.errors import ReveilError
from reveil.jobs.in_parts import anonymize_in_blocks
from reveil.jobs.table_in_parts import Sizes
from reveil.policy.policy import load_policy

TOWNS = {"North": {"Upper": ["n1", "n2"], "Lower": ["n3"]}, "South": ["s1", "s2", "s3"]}
QUASI: dict[str, list[dict[str, Any]]] = {
    "age": [{}, {"widths": [5, 20]}, {"cuts": [30, 50]}],
    "pay": [{}, {"widths": [2.5]}, {"cuts": [20, 45.5]}],
    "born": [{}, {"levels": ["month", "year"]}, {"levels": ["quarter", "decade"]}],
    "town": [{"hierarchy": TOWNS}],
    "zip": [{"prefixes": [3, 2]}, {"prefixes": [2, 1]}],
    "edu": [{"order": ["low", "mid", "high"]}],
    "job": [{}],
}


def people(rng: Random) -> pl.DataFrame:
    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.08 else value

    rows = [
        {
            "id": f"p{number}",
            "age": maybe(rng.randint(20, 60)),
            "pay": maybe(round(rng.random() * 100, 2)),
            "born": maybe(datetime.date(1950, 1, 1) + datetime.timedelta(days=rng.randrange(9000))),
            "town": rng.choice(["n1", "n2", "n3", "s1", "s2"]),
            "zip": maybe(f"4{rng.randint(0, 3)}{rng.randint(0, 9)}1"),
            "edu": rng.choice(["low", "mid", "high"]),
            "job": maybe(rng.choice("abcde")),
            "ill": "uvwxyz"[(number * 7 + 3) % 6],
        }
        for number in rng.sample(range(90), rng.randint(20, 60))
    ]
    return pl.DataFrame(rows, schema_overrides={"born": pl.Date, "age": pl.Int64, "pay": pl.Float64})


def policy(rng: Random) -> dict[str, Any]:
    chosen = rng.sample(list(QUASI), rng.randint(1, 4))
    columns: dict[str, Any] = {"id": "identifier", "ill": "sensitive"} | dict.fromkeys(QUASI, "drop")
    columns |= {name: {"role": "quasi"} | rng.choice(QUASI[name]) for name in chosen}
    two = {"publish": "anatomy", "people": rng.choice(["boxes", "exact"])}
    if rng.random() < 0.5:
        guarantee = {"model": "compromise-safety", "m": 3, "k": 3}
        method = rng.choice([two, {"publish": "generalized"}])
        return {"columns": columns, "guarantee": guarantee, "values": {"change": "never"}, "method": method}
    method = rng.choice([two, {"recode": "sets"}, {"recode": "suppress"}, {"recode": "nodes"}, {"name": "full-domain"}])
    return {"columns": columns, "guarantee": {"model": "l-diversity", "l": 2, "k": 3}, "method": method}


def releases(rules: dict[str, Any], rng: Random, folder: Path) -> list[tuple[Any, pl.DataFrame]]:
    if "values" not in rules:
        table = people(rng)
        return [(reveil.anonymize(table, rules, out=folder / "out"), table)]
    series = reveil.open_series(rules, home=folder / "home")
    tables = [people(rng), people(rng)]
    return [(series.publish(table, new_people=True), table) for table in tables]


@pytest.mark.parametrize("seed", range(60))
def test_the_plan_and_the_public_bytes_tell_the_same(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    rules = policy(rng)
    try:
        made = releases(rules, rng, tmp_path)
    except ReveilError as error:
        pytest.skip(f"refused: {error.faults[0].code}")
    for release, table in made:
        planned = json.loads(next(iter(release.path.rglob("plan.json"))).read_text())["loss"]
        found = reveil.measure(release.path, table, rules, queries=0)
        assert planned["ncp"] == pytest.approx(found.ncp, abs=1e-6)
        assert planned["discernibility"] == found.discernibility
        assert planned["average_group"] == pytest.approx(found.average_class, abs=1e-3)


@pytest.mark.parametrize("seed", range(30))
def test_a_release_in_blocks_and_its_public_bytes_tell_the_same(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    rules = policy(rng) | {"guarantee": {"model": "l-diversity", "l": 2, "k": 3}, "values": {}}
    rules["method"] = rng.choice([{}, {"recode": "suppress"}, {"recode": "nodes"}, {"suppress": 0.1}])
    table = people(rng)
    table.write_parquet(tmp_path / "people.parquet")
    sizes = Sizes(9, part=12, file=20, sample=40)
    where = [tmp_path / "people.parquet"], load_policy(rules), tmp_path / "out", sizes
    try:
        release = anonymize_in_blocks(*where, seed=1, key=bytes(32))
    except ReveilError as error:
        pytest.skip(f"refused: {error.faults[0].code}")
    found = reveil.measure(tmp_path / "out", table, rules, queries=0)
    assert dict(release.loss.columns) == pytest.approx(found.ncp, abs=1e-6)
    assert release.loss.discernibility == found.discernibility
    assert release.loss.average_group == pytest.approx(found.average_class, abs=1e-3)
