"""The generator keeps its word: head counts, what changes and what does not, and files that read back."""

from __future__ import annotations

import datetime
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from reveil.base.errors import InputError
from reveil.policy.policy import load_policy
from reveil.simulation.scenario import Scenario
from reveil.simulation.simulate import Simulation, iterate, simulate, transitions, write

SHAPES = ("hospital", "census")
KEY = {"hospital": "patient", "census": "person"}
SENSITIVE = {"hospital": "diagnosis", "census": "occupation"}
PLACE = {"hospital": "zip", "census": "marital"}


def pairs(series: Simulation, column: str) -> pl.DataFrame:
    """Every two successive appearances of a person: release before, release, value before, value."""
    key = KEY[series.scenario.shape]
    long = pl.concat(
        table.select(key, pl.col(column).alias("now"), pl.lit(number).alias("release"))
        for number, table in enumerate(series.tables)
    ).sort(key, "release")
    shifted = pl.col("now", "release").shift(1).over(key).name.suffix("_before")
    return long.with_columns(shifted).drop_nulls("release_before")


def counts(series: Simulation) -> list[tuple[int, int, int, int]]:
    """Stayed, left, came, returned per step, by sets of identifiers."""
    seen: set[str] = set()
    before: set[str] = set()
    found = []
    for table in series.tables:
        now = set(table[KEY[series.scenario.shape]])
        found.append((len(now & before), len(before - now), len(now - seen), len((now & seen) - before)))
        seen, before = seen | now, now
    return found[1:]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("values", ["never", "freely", "transitions"])
def test_same_seed_same_tables_and_another_seed_others(shape: Any, values: Any) -> None:
    one, two = (simulate(Scenario(shape=shape, values=values, rows=300, releases=3, seed=7)) for _ in range(2))
    other = simulate(Scenario(shape=shape, values=values, rows=300, releases=3, seed=8))
    for a, b, c in zip(one.tables, two.tables, other.tables, strict=True):
        assert_frame_equal(a, b)
        assert not a.equals(c)
    assert one.describe() == two.describe()


@pytest.mark.parametrize("shape", SHAPES)
def test_each_row_is_one_person_and_rows_are_in_no_order(shape: Any) -> None:
    for table in iterate(Scenario(shape=shape, rows=500)):
        ids = table.to_series(0)
        assert table.columns[0] == KEY[shape]
        assert ids.is_unique().all()
        assert not ids.is_sorted()
        assert table.null_count().sum_horizontal().item() == 0


def test_shares_are_met_exactly() -> None:
    series = simulate(Scenario(rows=1000, releases=4, arrive=0.3, leave=0.2, returns=0.25))
    # present 1000, 1100, 1260; away 0, 200, 370 (200 + 220 - 50)
    assert counts(series) == [(800, 200, 300, 0), (880, 220, 330, 50), (1008, 252, 378, 92)]
    assert [table.height for table in series.tables] == series.scenario.sizes() == [1000, 1100, 1260, 1478]


def test_absolute_counts_of_the_paper() -> None:
    scenario = Scenario(
        shape="census", rows=20_000, releases=4, arrive_rows=5000, leave_rows=2000, returns=0,
        values="transitions", update_rows=5000, diameter=10,
    )  # fmt: skip
    series = simulate(scenario)
    assert counts(series) == [(18_000, 2000, 5000, 0), (21_000, 2000, 5000, 0), (24_000, 2000, 5000, 0)]
    changed = pairs(series, "occupation").filter(pl.col("now") != pl.col("now_before"))
    assert changed.group_by("release").len().sort("release")["len"].to_list() == [5000, 5000, 5000]


@pytest.mark.parametrize("shape", SHAPES)
def test_persistent_values_never_change_even_after_an_absence(shape: Any) -> None:
    series = simulate(Scenario(shape=shape, rows=600, releases=5, leave=0.3, returns=0.5))
    seen = pairs(series, SENSITIVE[shape])
    assert (seen["release"] - seen["release_before"] > 1).sum() > 50  # people did return
    assert (seen["now"] == seen["now_before"]).all()


def test_transient_values_are_drawn_anew() -> None:
    seen = pairs(simulate(Scenario(rows=2000, values="freely", skew=0)), "diagnosis")
    assert 0.02 < (seen["now"] == seen["now_before"]).mean() < 0.07  # 1 in 24 by chance


@pytest.mark.parametrize(
    ("shape", "diameter", "count"),
    [("hospital", None, 24), ("census", 10, 50), ("census", 4, 50), ("census", 2, 5)],
)
def test_every_change_is_in_a_reflexive_transitive_relation(shape: Any, diameter: int | None, count: int) -> None:
    churn = {"rows": 3000, "releases": 5, "leave": 0.2, "returns": 0.4, "update": 0.3}
    series = simulate(
        Scenario(shape=shape, values="transitions", diameter=diameter, sensitive_values=count, **churn)  # type: ignore[arg-type]
    )
    assert series.transitions is not None
    relation = set(series.transitions.select("from", "to").iter_rows())
    after: dict[str, set[str]] = {}
    for a, b in relation:
        after.setdefault(a, set()).add(b)
    assert len(after) == count
    assert all(a in after[a] for a in after)
    assert all(after[b] <= after[a] for a, b in relation)
    seen = pairs(series, SENSITIVE[shape])
    assert set(seen.select("now_before", "now").iter_rows()) <= relation
    assert series.transitions["probability"].min() > 0  # type: ignore[operator]
    sums = series.transitions.group_by("from").agg(pl.col("probability").sum())["probability"]
    assert ((sums - 1).abs() < 1e-12).all()
    stays = series.transitions.filter(pl.col("from") == pl.col("to"))["probability"]
    assert ((seen["now"] == seen["now_before"]).mean() - stays).abs().max() < 1e-9  # type: ignore[operator]


def test_blocks_have_the_stated_diameter() -> None:
    relation = transitions(Scenario(shape="census", values="transitions", diameter=10))
    assert relation is not None
    assert set(relation.group_by("from").len()["len"]) == {10}
    assert transitions(Scenario(values="freely")) is None


def test_everybody_ages_until_99() -> None:
    seen = pairs(simulate(Scenario(shape="census", rows=3000, leave=0.3, returns=0.5)), "age")
    expected = (seen["now_before"] + seen["release"] - seen["release_before"]).clip(upper_bound=99)
    assert (seen["now"] == expected).all()
    quarter = pairs(simulate(Scenario(rows=4000, releases=2, years_per_release=0.25)), "age")
    assert 0.2 < (quarter["now"] - quarter["now_before"]).mean() < 0.3  # type: ignore[operator]
    still = pairs(simulate(Scenario(rows=300, ages=False)), "age")
    assert (still["now"] == still["now_before"]).all()


def test_newcomers_age_from_when_they_came() -> None:
    series = simulate(Scenario(shape="census", rows=3000, releases=6, years_per_release=5, returns=0))
    *_, before, last = series.tables
    came = last.join(before, on="person", how="anti")
    assert came["age"].min() < 5  # type: ignore[operator]  # would be 25 or older, had they aged from the start


@pytest.mark.parametrize("shape", SHAPES)
def test_moving_touches_the_place_and_nothing_else(shape: Any) -> None:
    still = simulate(Scenario(shape=shape, rows=2000, releases=3, move=0))
    moving = simulate(Scenario(shape=shape, rows=2000, releases=3, move=0.2))
    for a, b in zip(still.tables, moving.tables, strict=True):
        assert_frame_equal(a.drop(PLACE[shape]), b.drop(PLACE[shape]))
    kept = pairs(still, PLACE[shape])
    assert (kept["now"] == kept["now_before"]).all()
    seen = pairs(moving, PLACE[shape]).filter(pl.col("release") - pl.col("release_before") == 1)
    first = seen.filter(pl.col("release") == 1)
    assert (first["now"] != first["now_before"]).sum() == round(0.2 * 1800)


def test_marital_status_changes_as_life_does() -> None:
    seen = pairs(simulate(Scenario(shape="census", rows=2000, move=0.4)), "marital")
    back = seen.filter((pl.col("now") == "never married") & (pl.col("now_before") != "never married"))
    assert back.is_empty()


@pytest.mark.parametrize(("shape", "fixed"), [("hospital", ["sex"]), ("census", ["gender", "birthplace"])])
def test_what_people_keep(shape: Any, fixed: list[str]) -> None:
    series = simulate(Scenario(shape=shape, rows=800, leave=0.3, returns=0.5, move=0.5, values="freely"))
    for column in fixed:
        seen = pairs(series, column)
        assert (seen["now"] == seen["now_before"]).all()


def top_share(scenario: Scenario) -> float:
    table = simulate(scenario).tables[-1]
    return float(table.to_series(-1).value_counts()["count"].max()) / table.height  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", SHAPES)
def test_skew_sets_the_top_share_and_the_default_leaves_room_for_m_6(shape: Any) -> None:
    count = {"hospital": 24, "census": 50}[shape]
    flat, usual, steep = (top_share(Scenario(shape=shape, rows=20_000, skew=s)) for s in (0, 0.5, 1.5))
    assert flat < 1.3 / count
    assert flat < usual < 1 / 6
    expected = 1 / sum(rank**-1.5 for rank in range(1, count + 1))
    assert abs(steep - expected) < 0.06
    for values in ("freely", "transitions"):
        assert top_share(Scenario(shape=shape, rows=5000, releases=6, values=values)) < 1 / 6  # type: ignore[arg-type]


def test_hospital_columns() -> None:
    series = simulate(Scenario(rows=20_000, releases=2))
    first, second = series.tables
    assert first.columns == ["patient", "age", "sex", "zip", "admitted", "ward", "diagnosis"]
    assert first["patient"].str.contains(r"^P\d{7}$").all()
    assert first["zip"].str.contains(r"^\d{5}$").all()
    assert first["zip"].str.starts_with("0").any()
    assert set(first["sex"]) == {"F", "M", "X"}
    assert first["age"].is_between(0, 99).all()
    assert first["admitted"].is_between(datetime.date(2023, 1, 1), datetime.date(2023, 4, 1)).all()
    assert second["admitted"].is_between(datetime.date(2023, 4, 1), datetime.date(2023, 7, 2)).all()
    shares = first["diagnosis"].value_counts().with_columns(pl.col("count") / first.height)
    assert shares.height == 24
    assert shares.filter(pl.col("count") < 0.006).height == 2
    by_region = first.group_by(pl.col("zip").str.head(2)).agg(pl.col("age").mean()).sort("zip")["age"]
    assert by_region.is_sorted()
    assert by_region[-1] - by_region[0] > 20
    heart = first.group_by(pl.col("age") > 60).agg((pl.col("diagnosis") == "Heart failure").mean().alias("p"))
    assert heart.sort("age")["p"].is_sorted()


def test_census_has_the_domains_of_the_papers() -> None:
    table = simulate(Scenario(shape="census", rows=30_000, releases=1)).tables[0]
    sizes = table.select(pl.exclude("person").n_unique()).row(0, named=True)
    assert sizes == {
        "age": 100, "gender": 2, "education": 17, "birthplace": 57, "marital": 6, "occupation": 50
    }  # fmt: skip
    assert table.filter((pl.col("age") < 18) & (pl.col("marital") != "never married")).is_empty()


def test_bad_scenarios_show_all_faults_at_once() -> None:
    with pytest.raises(InputError) as caught:
        Scenario(
            shape="school", rows=0, leave=float("nan"), arrive=0.1, arrive_rows=4, skew="much", seed=True,  # type: ignore[arg-type]
            values="never", diameter=3,
        )  # fmt: skip
    found = {(fault.code, fault.where.removeprefix("scenario, ")) for fault in caught.value.faults}
    assert found == {
        ("R801", "shape"),
        ("R801", "rows"),
        ("R801", "leave"),
        ("R801", "skew"),
        ("R801", "seed"),
        ("R802", "arrive"),
        ("R802", "diameter"),
    }


@pytest.mark.parametrize(
    ("settings", "code", "part"),
    [
        ({"leave_rows": 600, "arrive_rows": 0, "rows": 1000}, "R803", "release 3: 600 of 400 people"),
        ({"leave": 1.0, "arrive": 0.0}, "R803", "nobody would be left"),
        ({"arrive": 10.0, "releases": 999}, "R803", "rows"),
        ({"rows": 100, "values": "transitions", "update_rows": 95}, "R803", "95 of 90 known people"),
        ({"sensitive_values": 25}, "R803", "24 diagnoses"),
        ({"values": "transitions", "diameter": 25}, "R803", "25 is more than all 24"),
        ({"values": "transitions", "diameter": 1}, "R801", "diameter"),
        ({"values": "freely", "update": 0.1}, "R802", "does nothing"),
        ({"shape": "census", "ages": False, "years_per_release": 2.0}, "R802", "does nothing"),
        ({"rows": None}, "R801", "None is not allowed"),
    ],
)
def test_each_fault_says_what_is_wrong(settings: dict[str, Any], code: str, part: str) -> None:
    with pytest.raises(InputError) as caught:
        Scenario(**settings)
    assert [fault.code for fault in caught.value.faults] == [code]
    assert part in str(caught.value)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_written_files_read_back(tmp_path: Path, shape: Any, format: Any) -> None:
    scenario = Scenario(shape=shape, rows=200, releases=3, values="transitions")
    series, folder = simulate(scenario), tmp_path / "new" / "series"
    paths = write(scenario, folder, format)
    assert sorted(paths) == sorted(folder.iterdir())
    assert [path.name for path in paths[:3]] == [f"release-0{n}.{format}" for n in (1, 2, 3)]
    for path, table in zip(paths, series.tables, strict=False):
        back = pl.read_csv(path, schema=table.schema) if format == "csv" else pl.read_parquet(path)
        assert_frame_equal(back, table)
    relation = pl.read_csv(folder / "transitions.csv", separator=";")
    assert series.transitions is not None
    assert_frame_equal(relation, series.transitions)
    policy = tomllib.loads((folder / "reveil.toml").read_text())
    assert policy["values"] == {"change": "transitions", "transitions": "transitions.csv"}
    assert list(policy["columns"]) == series.tables[0].columns
    if shape == "census":
        rows = [line.split(";") for line in (folder / "birthplace.csv").read_text().splitlines()]
        assert {len(row) for row in rows} == {3}
        assert {row[2] for row in rows} == {"*"}
        assert len({row[0] for row in rows}) == len(rows) == 57
        nested = series.policy["columns"]["birthplace"]["hierarchy"]
        assert {(row[0], row[1]) for row in rows} == {(c, region) for region, cs in nested.items() for c in cs}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("values", ["never", "freely"])
def test_the_policy_is_one_that_reveil_accepts(tmp_path: Path, shape: Any, values: Any) -> None:
    scenario = Scenario(shape=shape, rows=50, releases=1, values=values)
    write(scenario, tmp_path)
    for policy in (load_policy(simulate(scenario).policy), load_policy(tmp_path / "reveil.toml")):
        assert policy.identifier == KEY[shape]
        assert policy.named("sensitive") == (SENSITIVE[shape],)
        assert policy.values.change == values
        fitting = {"never": "compromise-safety", "freely": "global", "transitions": "l-diversity"}
        assert policy.guarantee.model == fitting[values]
    assert not (tmp_path / "transitions.csv").exists()


def test_writing_refuses_before_it_touches_anything(tmp_path: Path) -> None:
    (tmp_path / "reveil.toml").write_text("mine")
    with pytest.raises(InputError, match=r"R805.*not empty"):
        write(Scenario(), tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]
    with pytest.raises(InputError, match=r"R805.*cannot be written"):
        write(Scenario(), tmp_path / "reveil.toml")
    with pytest.raises(InputError, match="R804"):
        write(Scenario(), tmp_path / "new", "xlsx")  # type: ignore[arg-type]
    assert not (tmp_path / "new").exists()


def test_describe_counts_what_happened() -> None:
    series = simulate(Scenario(rows=1000, releases=3, values="transitions", update=0.1, returns=0.5))
    lines = series.describe().splitlines()
    assert lines[0].startswith("release 1: 1,000 rows; 0 stayed, 0 left, 1,000 came, 0 returned; 0 values changed")
    assert lines[1].startswith("release 2: 1,000 rows; 900 stayed, 100 left, 100 came, 0 returned; 90 values")
    assert lines[2].startswith("release 3: 1,050 rows; 900 stayed, 100 left, 100 came, 50 returned; 95 values")
    counts = series.tables[2]["diagnosis"].value_counts(sort=True)["count"]
    assert lines[2].endswith(f"{counts[0] / 1050:.1%} (m up to {1050 // counts[0]})")
    assert repr(series) == "Simulation(shape='hospital', rows per release: 1,000, 1,000, 1,050)"


def test_iterate_makes_tables_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    simulate_module = import_module("reveil.simulation.simulate")  # the package shows the function under this name
    make = simulate_module._table
    monkeypatch.setattr(simulate_module, "_table", lambda *given: made.append(1) or make(*given))
    tables = iterate(Scenario(rows=100, releases=3))
    assert made == []
    next(tables)
    assert made == [1]
    assert len(list(tables)) == 2
