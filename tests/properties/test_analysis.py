"""What analysts find before and after, against the definitions."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reveil
from oracle import analysis as oracle
from reveil.base.errors import InputError
from reveil.measure.analysis import WIDTH, fitted, overlap
from reveil.measure.expand import a_world
from reveil.measure.measure import measure
from support import cli

POLICY = {
    "columns": {"age": "quasi", "sex": "quasi", "income": "sensitive", "job": "insensitive"},
    "guarantee": {"k": 2},
}


@st.composite
def releases(draw: st.DrawFn) -> tuple[pl.DataFrame, pl.DataFrame, list[tuple[int, int]]]:
    """An original, a release in which every age is an interval around it, and the intervals."""
    ages = draw(st.lists(st.integers(20, 40), min_size=6, max_size=14).filter(lambda ages: len({*ages}) > 1))
    shown = [(age - draw(st.integers(0, 3)), age + draw(st.integers(0, 3))) for age in ages]
    sexes = [draw(st.sampled_from("fm")) for _ in ages]
    income = [draw(st.integers(0, 9)) for _ in ages]
    original = pl.DataFrame({"age": ages, "sex": sexes, "income": income, "job": ["a"] * len(ages)})
    published = original.with_columns(
        age=pl.Series([str(a) if a == b else f"[{a}-{b}]" for a, b in shown]),
        sex=pl.Series([sex if draw(st.booleans()) else "*" for sex in sexes]),
    )
    return original, published, shown


@settings(max_examples=40, deadline=None)
@given(releases())
def test_analyses_are_what_the_definitions_say(
    case: tuple[pl.DataFrame, pl.DataFrame, list[tuple[int, int]]],
) -> None:
    original, published, shown = case
    found = measure(published, original, POLICY, queries=0, analysis=True).analysis
    assert found is not None and found.prediction is None and found.regression is None
    ages = original["age"].to_list()
    shown = [(max(a, min(ages)), min(b, max(ages))) for a, b in shown]  # nothing is outside of the column
    middles = [(a + b) / 2 for a, b in shown]
    wanted = oracle.squared_error(ages, [(m, a, b) for m, (a, b) in zip(middles, shown, strict=True)], 0)
    assert found.squared_error["age"] == pytest.approx(wanted)
    inside = [[age for age in {*ages} if a <= age <= b] for a, b in shown]
    assert found.distributions["age"] == pytest.approx(oracle.variation(ages, inside))
    sexes = [[*{*original["sex"]}] if cell == "*" else [cell] for cell in published["sex"]]
    assert found.distributions["sex"] == pytest.approx(oracle.variation(original["sex"].to_list(), sexes))
    before, after = found.correlations["age ~ income"]
    assert before == pytest.approx(oracle.correlation(ages, original["income"].to_list()), abs=1e-9)
    assert after == pytest.approx(oracle.correlation(middles, original["income"].to_list()), abs=1e-9)
    assert found.eigenvalues[0] == pytest.approx((1 + abs(before), 1 - abs(before)))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-9, 9)), min_size=4, max_size=12))
def test_regressions_are_least_squares(points: list[tuple[int, int]]) -> None:
    xs, ys = zip(*points, strict=True)
    if len({*xs}) < 2:
        return
    (constant, slope), _ = fitted(np.array(xs, dtype=float).reshape(-1, 1), pl.Series(ys))
    for mine, (value, error) in zip((constant, slope), oracle.line(xs, ys), strict=True):
        assert mine == pytest.approx((value, value - WIDTH * error, value + WIDTH * error), abs=1e-6)


@pytest.mark.parametrize(("one", "other"), [((0, 2), (1, 5)), ((0, 1), (2, 3)), ((0, 4), (1, 2)), ((-1, 1), (-1, 1))])
def test_overlaps_are_shares_in_common(one: tuple[float, float], other: tuple[float, float]) -> None:
    assert overlap(one, other) == pytest.approx(oracle.overlap(one, other), abs=1e-3)


def people(rows: int = 200) -> pl.DataFrame:
    """The job follows from the age, the income does nearly."""
    lots = random.Random(3)
    ages = [lots.randint(20, 59) for _ in range(rows)]
    return pl.DataFrame(
        {
            "age": ages,
            "sex": [lots.choice("fm") for _ in ages],
            "income": [10 * age + lots.randint(-20, 20) for age in ages],
            "job": ["old" if age >= 40 else "young" for age in ages],
        }
    )


def test_what_is_blanked_predicts_no_more_than_the_most_frequent_value() -> None:
    original = people()
    most = original["job"].value_counts(normalize=True)["proportion"].max()
    same = measure(original.cast({"age": pl.String}), original, POLICY, queries=0, predict="job").analysis
    blank = original.with_columns(age=pl.lit("*"), sex=pl.lit("*"))
    nothing = measure(blank, original, POLICY, queries=0, predict="job").analysis
    assert same is not None and same.prediction is not None and nothing is not None and nothing.prediction is not None
    assert same.prediction.before == same.prediction.after > 0.95 and same.prediction.kept == 1
    assert nothing.prediction.baseline == most
    assert nothing.prediction.after == pytest.approx(float(most), abs=0.02)  # the folds differ a little
    assert nothing.squared_error["age"] >= 1  # the middle of the range is no nearer than the mean


def test_a_regression_of_a_release_is_like_that_of_its_original() -> None:
    original = people()
    release = reveil.anonymize(original, POLICY, seed=1)
    found = measure(release.table, original, POLICY, queries=0, predict="income").analysis
    assert found is not None and found.regression is not None
    age = next(one for one in found.regression.coefficients if one.feature == "age")
    assert age.before[0] == pytest.approx(10, abs=0.5) and age.overlap > 0.5
    assert found.regression.r_squared[0] >= found.regression.r_squared[1] > 0.9


def test_the_command_says_it_and_refuses_what_it_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    people().write_csv("people.csv")
    Path("reveil.toml").write_text(
        '[columns]\nage = "quasi"\nsex = "quasi"\nincome = "sensitive"\njob = "insensitive"\n[guarantee]\nk = 2\n'
    )
    assert cli("anonymize", "people.csv", "--out", "out", "--quiet")[0] == 0
    code, out, err = cli("measure", "out", "people.csv", "--queries", "0", "--predict", "job")
    assert code == 0 and "predicted right" in out and "squared error" in out, err
    code, out, _ = cli("measure", "out", "people.csv", "--queries", "0", "--predict", "income", "--json")
    assert json.loads(out)["analysis"]["regression"]["overlap"] > 0
    assert "analysis" not in json.loads(cli("measure", "out", "people.csv", "--queries", "0", "--json")[1])
    assert "R914" in cli("measure", "out", "people.csv", "--predict", "age")[2]


def test_of_two_tables_a_world_is_analysed() -> None:
    two = {**POLICY, "guarantee": {"model": "l-diversity", "l": 2, "k": 2}, "method": {"publish": "anatomy"}}
    pair = reveil.anonymize(people(), two)
    worlds = [a_world(pair.table, pair.values, seed) for seed in range(2)]
    assert not worlds[0].equals(worlds[1])
    for world in worlds:
        assert world.select(pair.table.columns).equals(pair.table)
        dealt = world.group_by("group", "income").len("count").with_columns(pl.col("count").cast(pl.Int64))
        shown = pair.values["income"].select("group", "income", pl.col("count").cast(pl.Int64))
        assert dealt.sort(dealt.columns).equals(shown.sort(shown.columns))
    found = measure(pair.table, people(), two, values=pair.values, queries=0, predict="income").analysis
    assert found is not None and found.regression is not None
    one = measure(worlds[0].drop("group"), people(), POLICY, queries=0, predict="income").analysis
    assert one is not None and found.regression == one.regression and found.correlations == one.correlations


def test_people_with_several_rows_are_counted_as_their_release_counts_them() -> None:
    table = pl.DataFrame({"id": [n % 20 for n in range(60)], "day": [n * 7 % 31 for n in range(60)]})
    policy = {"columns": {"id": "identifier", "day": "quasi"}, "guarantee": {"k": 3}, "people": {"rows": "many"}}
    release = reveil.anonymize(table, policy)
    utility = measure(release.table, table, policy, queries=0)
    classes: dict[tuple[str, ...], int] = {}
    for _, days in sorted(release.table.group_by("person").agg(pl.col("day").sort()).rows()):
        classes[tuple(days)] = classes.get(tuple(days), 0) + 1
    assert (utility.classes, utility.counted) == (len(classes), "people")
    assert utility.average_class == pytest.approx(sum(classes.values()) / len(classes))
    withheld = table.height - release.table.height
    hidden = sum(len(days) * people**2 for days, people in classes.items())
    assert utility.discernibility == hidden + withheld * table.height


def test_some_rows_of_a_panel_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    panel = pl.concat([people().select("age", "income", year=pl.lit(year)) for year in (2001, 2002)])
    panel.write_csv("panel.csv")
    Path("reveil.toml").write_text(
        '[columns]\nage = "quasi"\nyear = "drop"\nincome = "sensitive"\n[guarantee]\nk = 2\n'
    )
    assert cli("anonymize", "panel.csv", "--where", "year=2001", "--out", "out", "--quiet")[0] == 0
    out = cli("measure", "out", "panel.csv", "--where", "year=2001", "--queries", "0")[1]
    assert f"0 of {people().height} rows suppressed" in out


def test_a_column_of_one_value_predicts_nothing_and_is_no_crash() -> None:
    original = people().with_columns(age=pl.lit(40), sex=pl.lit("f"))
    found = measure(original.cast({"age": pl.String}), original, POLICY, queries=0, predict="job").analysis
    assert found is not None and found.prediction is not None
    assert found.prediction.after == pytest.approx(float(found.prediction.baseline), abs=0.05)
    with pytest.raises(InputError, match="has missing values"):
        odd = people().with_columns(
            income=pl.when(pl.int_range(pl.len()) == 0).then(float("nan")).otherwise(pl.col("income"))
        )
        measure(odd.cast({"age": pl.String}), odd, POLICY, queries=0, predict="income")
