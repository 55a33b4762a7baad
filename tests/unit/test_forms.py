"""A planned release in one table and in two, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import reveil
from reveil.cli.app import app
from reveil.jobs.forms import other_form
from reveil.jobs.specs import PlanSpec
from reveil.policy.policy import load_policy
from reveil.simulation.simulate import write

COLUMNS = {"patient": "identifier", "age": "quasi", "sex": "quasi", "diagnosis": "sensitive"}
COHORTS = {"model": "compromise-safety", "m": 4, "compromised": 1}
TWO = {"publish": "anatomy", "infeasible": "withhold"}


def tables(releases: int = 2) -> tuple[pl.DataFrame, ...]:
    made = reveil.simulate(reveil.Scenario(rows=120, releases=releases, values="never", seed=3)).tables
    return tuple(table.select(*COLUMNS) for table in made)


def policy(guarantee: dict[str, Any], method: dict[str, Any]) -> dict[str, Any]:
    return {"columns": COLUMNS, "values": {"change": "never"}, "guarantee": guarantee, "method": method}


@pytest.mark.parametrize("two", [True, False], ids=["two tables", "one table"])
def test_both_forms_of_the_next_release(two: bool, tmp_path: Path) -> None:
    given = policy({**COHORTS, "k": 5}, TWO) if two else policy(COHORTS, {"infeasible": "withhold"})
    first, second = tables()
    series = reveil.open_series(given, home=tmp_path / "home")
    series.publish(first, seed=1)
    found = PlanSpec(second, given, tmp_path / "home", seed=1).run()
    chosen, other = found.forms
    assert (chosen.chosen, chosen.two_tables, other.two_tables) == (True, two, not two)
    parted, whole = (chosen, other) if two else (other, chosen)
    assert parted.promise == "1/3, k = 5" and whole.promise == "1/3"
    assert parted.counterfeits == whole.counterfeits == found.plan.counterfeits > 0
    assert parted.loss is not None and whole.loss is not None and parted.loss < whole.loss
    assert parted.error is not None and whole.error is not None
    assert [table.columns for table in parted.examples] == [
        ["group", "age", "sex"],
        ["group", "diagnosis", "count"],
    ]
    assert [table.columns for table in whole.examples] == [["group", "age", "sex", "diagnosis"]]
    assert all(table.height == 5 for form in found.forms for table in form.examples)
    assert [form["form"] for form in found.to_dict()["forms"]] == [chosen.title, other.title]
    assert len(series.releases) == 1  # nothing was published by looking


def test_the_figures_of_the_chosen_form_are_those_of_publishing(tmp_path: Path) -> None:
    given = policy({**COHORTS, "k": 5}, TWO)
    (table,) = tables(1)
    planned = PlanSpec(table, given, tmp_path / "home", seed=1).run()
    release = reveil.open_series(given, home=tmp_path / "home").publish(table, seed=1)
    chosen = planned.forms[0]
    assert chosen.withheld == release.certificate.counts["withheld rows"]
    assert chosen.counterfeits == release.certificate.counts["counterfeit rows"]


def test_a_form_that_cannot_be_planned_says_why(tmp_path: Path) -> None:
    (table,) = tables(1)
    few = table.unique("diagnosis", keep="first", maintain_order=True).head(4)
    found = PlanSpec(few, policy(COHORTS, {}), tmp_path / "home").run()
    assert found.forms[0].refusal is None
    assert found.forms[1].refusal == "4 people would be shown, and a box is shared by at least k = 5"


def test_promises_about_one_release_have_one_form() -> None:
    columns = {"age": "quasi", "diagnosis": "sensitive"}
    for guarantee in ({"k": 5}, {"model": "l-diversity", "l": 2}):
        assert other_form(load_policy({"columns": columns, "guarantee": guarantee})) is None
    named = {**COLUMNS, "count": "quasi"}  # a name that two tables need for themselves
    assert other_form(load_policy({**policy(COHORTS, {}), "columns": named})) is None


def test_plan_prints_both_forms_and_example_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(reveil.Scenario(rows=120, releases=1, values="never", seed=3), tmp_path / "made")
    monkeypatch.chdir(tmp_path / "made")
    run = CliRunner().invoke(app, ["plan", "release-01.csv"])
    assert run.exit_code == 0, run.output
    assert "two tables: 120 people, and 120 values" in run.output
    for words in ("in both forms", "chosen  two tables  1/5, k = 5", "one table   1/5", "one table, for example:"):
        assert words in run.output
    assert not (tmp_path / "made" / ".reveil").exists()
