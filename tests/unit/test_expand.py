"""Two tables as one weighted table: what recipients compute with it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import reveil
from reveil.base.errors import InputError
from reveil.measure.ask import ask
from reveil.measure.expand import expand, write_expanded
from support import cli

COLUMNS: dict[str, Any] = {
    "patient": "identifier",
    "age": "quasi",
    "sex": "quasi",
    "zip": {"role": "quasi", "prefixes": [3]},
    "diagnosis": "sensitive",
}
POLICY: dict[str, Any] = {
    "columns": COLUMNS,
    "values": {"change": "never"},
    "guarantee": {"model": "compromise-safety", "m": 4, "k": 5},
    "method": {"publish": "anatomy", "infeasible": "withhold"},
}


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[pl.DataFrame], reveil.Series]:
    tables = [
        table.select(*COLUMNS) for table in reveil.simulate(reveil.Scenario(rows=3000, releases=4, seed=2)).tables
    ]
    made = reveil.open_series(POLICY, tmp_path_factory.mktemp("series") / "home")
    for table in tables:
        made.publish(table, seed=1)
    return tables, made


def test_weights_are_those_of_the_groups(series: tuple[list[pl.DataFrame], reveil.Series]) -> None:
    release = series[1].releases[-1]
    made = expand(release)
    long = made.tables["diagnosis"]
    assert made.counterfeits == release.certificate.counts["counterfeit rows"] > 0
    assert long.group_by("person").agg(pl.col("weight").sum())["weight"].to_numpy() == pytest.approx(1)
    assert long["weight"].sum() == pytest.approx(release.table.height)
    counts = {(g, v): c for g, v, c in release.values["diagnosis"].rows()}  # type: ignore[index]
    totals: dict[int, int] = {}
    for (group, _), count in counts.items():
        totals[group] = totals.get(group, 0) + count
    for group, value, weight in long.select("group", "diagnosis", "weight").unique().rows():
        assert weight == pytest.approx(float(Fraction(counts[group, value], totals[group])))


def test_counts_are_the_expectations_of_ask(series: tuple[list[pl.DataFrame], reveil.Series]) -> None:
    release = series[1].releases[-1]
    long = expand(release).tables["diagnosis"]
    for value, weight in long.group_by("diagnosis").agg(pl.col("weight").sum()).rows():
        assert weight == pytest.approx(float(ask(release, {"diagnosis": value}).expected))
    for sex in ("F", "M"):
        value = long["diagnosis"][0]
        mine = long.filter((pl.col("sex") == sex) & (pl.col("diagnosis") == value))["weight"].sum()
        asked = ask(release, {"sex": sex, "diagnosis": value})
        assert asked.least - 1e-9 <= mine <= asked.most + 1e-9


def test_estimates_are_near_the_truth_and_differences_are_pulled_together(
    series: tuple[list[pl.DataFrame], reveil.Series],
) -> None:
    """The worked analysis of docs/anatomy.md: a cross table and a regression, against the truth."""
    truth, release = series[0][-1], series[1].releases[-1]
    long = expand(release).tables["diagnosis"]
    true = {value: count / truth.height for value, count in truth["diagnosis"].value_counts().rows()}
    seen = {v: w / release.table.height for v, w in long.group_by("diagnosis").agg(pl.col("weight").sum()).rows()}
    assert max(abs(true[value] - seen.get(value, 0)) for value in true) < 0.02

    value = max(true, key=lambda one: true[one])
    age = truth["age"].cast(pl.Float64).to_numpy()
    slope = np.polyfit(age, (truth["diagnosis"] == value).cast(pl.Float64).to_numpy(), 1)[0]
    bounds = long["age"].cast(pl.String).str.extract_all(r"\d+").list.eval(pl.element().cast(pl.Float64))
    middle = bounds.list.mean().to_numpy()
    has = (long["diagnosis"] == value).cast(pl.Float64).to_numpy()
    weighted = np.polyfit(middle, has, 1, w=np.sqrt(long["weight"].to_numpy()))[0]
    assert abs(weighted) < abs(slope) + 0.001  # never larger than it is, but for chance


def test_what_cannot_be_expanded_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"R690.*one table"):
        expand(pl.DataFrame({"age": ["[20-29]"], "ill": ["flu"]}))
    people = pl.DataFrame({"group": [1], "weight": [70]})
    with pytest.raises(InputError, match="R690 column 'weight'"):
        expand((people, {"ill": pl.DataFrame({"group": [1], "ill": ["flu"], "count": [1]})}))
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    made = expand((people.drop("weight"), {"ill": pl.DataFrame({"group": [1], "ill": ["flu"], "count": [1]})}))
    with pytest.raises(InputError, match="not empty"):
        write_expanded(made, tmp_path / "there")


def test_the_command(series: tuple[list[pl.DataFrame], reveil.Series], tmp_path: Path) -> None:
    release = series[1].releases[-1]
    code, said, _ = cli("expand", str(release.path), "--out", str(tmp_path / "long"))
    assert code == 0
    assert "Count with the column weight" in said
    read = pl.read_csv(tmp_path / "long" / "expanded.csv", infer_schema_length=None)
    assert read["weight"].sum() == pytest.approx(release.table.height)
    assert "counterfeits" in (tmp_path / "long" / "expanded.md").read_text()
