"""`reveil perturb`: what is in the folders, repeatability, missing values, kinds of columns, and every refusal."""

from __future__ import annotations

import datetime
import json
import stat
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import reveil
from reveil.base.errors import InputError
from reveil.cli.app import app
from reveil.perturb.perturb import Perturbed, perturb

ROLES = {"name": "identifier", "note": "drop", "age": "quasi", "pay": "sensitive", "ill": "sensitive", "ward": "quasi"}


def people(rows: int = 40) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    return pl.DataFrame(
        {
            "name": [f"person{i:03d}" for i in range(rows)],
            "note": ["secret"] * rows,
            "age": rng.integers(20, 80, rows),
            "pay": rng.lognormal(8, 0.5, rows).round(2),
            "ill": rng.choice(["flu", "cold", "gout"], rows),
            "ward": rng.choice(["A", "B"], rows),
        }
    )


def recipe(*steps: dict[str, object], **columns: object) -> dict[str, object]:
    return {"columns": {**ROLES, **columns}, "perturb": list(steps)}


NOISE = {"method": "noise", "columns": ["pay"], "amount": 0.2}


def codes(refusal: pytest.ExceptionInfo[InputError]) -> list[str]:
    return [fault.code for fault in refusal.value.faults]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_two_folders(form: str, tmp_path: Path) -> None:
    policy = {**recipe(NOISE), "output": {"format": form}}
    made = perturb(people(), policy, seed=5, out=tmp_path / "out")
    public, private = tmp_path / "out" / "public", tmp_path / "out" / "private"
    assert sorted(path.name for path in public.iterdir()) == ["datapackage.json", f"table.{form}"]
    assert sorted(path.name for path in private.iterdir()) == ["key", "report.html", "report.json"]
    assert made.table.columns == ["age", "pay", "ill", "ward"]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in private.iterdir())
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    everything = b"".join(path.read_bytes() for path in public.iterdir())
    assert b"person0" not in everything
    assert b"secret" not in everything
    report = json.loads((private / "report.json").read_text())
    assert report["columns"][0]["mean before"] == pytest.approx(report["columns"][0]["mean after"])
    assert report["columns"][0]["variance after"] == pytest.approx(1.04 * report["columns"][0]["variance before"])
    page = (private / "report.html").read_text()
    assert "covariances of pay" in page
    assert "<script" not in page
    assert "http" not in page


def test_rows_are_shuffled_and_the_seed_repeats_them(tmp_path: Path) -> None:
    tables = [perturb(people(), recipe(NOISE), seed=seed, key=bytes(32)).table for seed in (1, 1, 2)]
    assert tables[0].equals(tables[1])
    assert not tables[0].equals(tables[2])
    assert tables[0]["ward"].to_list() != people()["ward"].to_list()
    assert sorted(tables[0]["ward"]) == sorted(people()["ward"])
    unseeded = [perturb(people(), recipe(NOISE)).table for _ in range(2)]
    assert not unseeded[0].equals(unseeded[1])


def test_python_name_is_the_function() -> None:
    assert reveil.perturb is perturb
    assert "perturb" in dir(reveil)


def test_steps_do_not_depend_on_each_other() -> None:
    """A step draws the same whether or not other steps follow it."""
    swap = {"method": "swap", "columns": ["ill"]}
    alone, both = (perturb(people(), recipe(*steps), seed=9, key=bytes(32)) for steps in ([NOISE], [NOISE, swap]))
    assert sorted(alone.table["pay"]) == sorted(both.table["pay"])


def test_missing_values_stay_or_move_as_stated() -> None:
    table = people().with_columns(
        pay=pl.when(pl.int_range(pl.len()) % 5 == 0).then(None).otherwise("pay"),
        ill=pl.when(pl.int_range(pl.len()) % 4 == 0).then(None).otherwise("ill"),
    )
    steps = [NOISE, {"method": "rank-swap", "columns": ["age"], "percent": 20}, {"method": "swap", "columns": ["ill"]}]
    made = perturb(table, recipe(*steps), seed=2)
    assert made.table["pay"].null_count() == 8
    assert made.table["ill"].null_count() == 10
    made = perturb(table, recipe({"method": "rank-swap", "columns": ["pay"], "percent": 20}), seed=2)
    assert sorted(made.table["pay"].drop_nulls()) == sorted(table["pay"].drop_nulls())
    made = perturb(table, recipe({"method": "pram", "columns": ["ill"], "keep": 0.5}), seed=2)
    assert all(item.holds for item in made.checks)


def test_dates_and_stages_have_ranks_and_dates_take_noise() -> None:
    born = pl.Series("born", [datetime.date(1950 + i, 1 + i % 12, 1) for i in range(40)])
    table = people().with_columns(born, stage=pl.Series(["I", "II", "III", None] * 10))
    order = {"role": "sensitive", "order": ["I", "II", "III"]}
    step = {"method": "rank-swap", "columns": ["born", "stage"], "percent": 25}
    made = perturb(table, recipe(step, born="quasi", stage=order), seed=3)
    assert sorted(made.table["born"]) == born.to_list()
    assert sorted(made.table["stage"].drop_nulls()) == sorted(table["stage"].drop_nulls())
    noisy = perturb(table.drop("stage"), recipe({**NOISE, "columns": ["born"]}, born="quasi"), seed=3)
    assert noisy.table["born"].dtype == pl.Date
    assert noisy.table["born"].sort().to_list() != born.to_list()


def test_digits() -> None:
    whole = perturb(people(), recipe({**NOISE, "columns": ["age"]}), seed=1).table["age"]
    assert whole.dtype == pl.Int64
    tenths = perturb(people(), recipe({**NOISE, "columns": ["age"], "digits": 1}), seed=1).table["age"]
    assert tenths.dtype == pl.Float64
    assert (tenths.round(1) == tenths).all()
    assert not (tenths.round(0) == tenths).all()
    whole_pay = perturb(people(), recipe({**NOISE, "digits": 0}), seed=1).table["pay"]
    assert (whole_pay.round(0) == whole_pay).all()


def test_a_stated_matrix_is_followed() -> None:
    stuck = {"flu": {"flu": 1}, "cold": {"cold": 1}, "gout": {"gout": "1/2", "cold": "1/2"}}
    step = {"method": "pram", "columns": ["ill"], "matrix": stuck, "invariant": False}
    made = perturb(people(), recipe(step), seed=1)
    before, after = (table["ill"].value_counts().sort("ill").rows() for table in (people(), made.table))
    assert dict(before)["flu"] == dict(after)["flu"]
    assert dict(before)["gout"] > dict(after)["gout"]


def test_a_large_table_is_grouped_in_blocks_and_says_so() -> None:
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"a": rng.normal(size=60_000), "b": rng.normal(size=60_000)})
    steps = [{"method": "microaggregate", "columns": ["a", "b"], "k": 5}]
    made = perturb(table, {"columns": {"a": "quasi", "b": "quasi"}, "perturb": steps}, seed=0)
    assert made.report["steps"][0]["algorithm"] == "blocks"
    assert made.table.group_by("a", "b").len()["len"].min() >= 5
    assert made.report["record linkage"]["right links"] < 0.3


def test_what_is_measured() -> None:
    table = pl.DataFrame({"x": [float(i) for i in range(100)], "c": ["a", "b"] * 50})
    columns = {"x": "sensitive", "c": "sensitive"}
    step = {"method": "swap", "columns": ["x"], "share": 0.5}
    swapped = perturb(table, {"columns": columns, "perturb": [step]})
    (x,), linked = swapped.report["interval disclosure"], swapped.report["record linkage"]
    assert x["unchanged"] == 0.5
    assert linked == {"rows tried": 100, "right links": 0.5, "by chance": 0.01}
    averaged = perturb(table, {"columns": columns, "perturb": [{"method": "microaggregate", "columns": ["x"], "k": 4}]})
    assert averaged.report["record linkage"]["right links"] == pytest.approx(0.25)  # the mean lies between two of four


def test_categories_alone_whole_numbers_as_categories_and_few_known_values(tmp_path: Path) -> None:
    table = people().with_columns(ward=pl.Series([1, 2] * 20), pay=pl.Series([1.0, 2.0, 3.0] + [None] * 37))
    table.write_csv(tmp_path / "people.csv")
    roles = "\n".join(f'{name} = "{role}"' for name, role in ROLES.items())
    step = '[[perturb]]\nmethod = "pram"\ncolumns = ["ill", "ward"]\nkeep = 0.5\n'
    (tmp_path / "p.toml").write_text(f"[columns]\n{roles}\n{step}")
    how = ["-p", str(tmp_path / "p.toml"), "-o", str(tmp_path / "out")]
    run = CliRunner().invoke(app, ["perturb", str(tmp_path / "people.csv"), *how])
    assert run.exit_code == 0
    assert "invariance of 'ward'" in run.stdout
    only = perturb(table, recipe({"method": "pram", "columns": ["ill"], "keep": 0.5}), seed=1)
    assert list(only.report["interval disclosure"][0]) == ["column", "unchanged"]
    with pytest.raises(InputError, match="the table has 3"):
        perturb(table, recipe(NOISE))


def test_every_fault_of_a_table_at_once() -> None:
    table = people(6).with_columns(
        pay=pl.Series([1.0, None, 2.0, 3.0, 4.0, 5.0]), same=pl.lit(7), born=pl.lit(datetime.date(2020, 1, 1))
    )
    steps = [
        {"method": "noise", "columns": ["age", "pay"], "amount": 1},
        {"method": "noise", "columns": ["same"], "amount": 1},
        {"method": "rank-swap", "columns": ["ill"], "percent": 50},
        {"method": "microaggregate", "columns": ["ward", "born"], "k": 7, "digits": 2},
    ]
    with pytest.raises(InputError) as refusal:
        perturb(table, recipe(*steps, same="quasi", born="quasi"), seed=-1)
    assert sorted(codes(refusal)) == ["R222", "R230", "R230", "R230", "R230", "R231", "R231", "R232"]
    text = str(refusal.value)
    for part in (
        "'same'",
        "needs 7 rows or more",
        "'ill'",
        "'ward'",
        "no decimals",
        "missing values (1 row: no. 2)",
        "seed",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("step", "code", "part"),
    [
        ({"method": "rank-swap", "columns": ["pay"], "percent": 2}, "R230", "less than one rank"),
        ({"method": "condense", "columns": ["pay", "age"], "k": 41}, "R230", "needs 41 rows"),
        ({"method": "pram", "columns": ["ill"], "matrix": {"flu": {"flu": 0.9}}}, "R233", "sums to 9/10"),
        ({"method": "pram", "columns": ["ill"], "matrix": {"flu": {"flu": 1}}}, "R233", "'cold'"),
        ({"method": "pram", "columns": ["ward"], "matrix": {"A": {"C": 1}, "B": {"B": 1}}}, "R233", "'C'"),
    ],
)
def test_steps_that_do_not_fit(step: dict[str, object], code: str, part: str) -> None:
    with pytest.raises(InputError) as refusal:
        perturb(people(), recipe(step))
    assert code in codes(refusal)
    assert part in str(refusal.value)


def test_too_many_categories_for_a_matrix() -> None:
    table = pl.DataFrame({"code": [f"c{i}" for i in range(2_001)]})
    with pytest.raises(InputError, match="up to 2,000"):
        perturb(
            table, {"columns": {"code": "quasi"}, "perturb": [{"method": "pram", "columns": ["code"], "keep": 0.5}]}
        )


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"perturb": [{"method": "noise", "columns": ["pay"]}]}, "needs amount"),
        ({"perturb": [{**NOISE, "k": 3}]}, "k does nothing"),
        ({"perturb": [{**NOISE, "colums": ["pay"]}]}, "did you mean columns"),
        ({"perturb": [{**NOISE, "correlated": True}]}, "correlated does nothing for one column"),
        ({"perturb": [NOISE, NOISE]}, "more than one step"),
        ({"perturb": [{**NOISE, "columns": ["name"]}]}, "not published"),
        ({"perturb": [{**NOISE, "columns": ["nobody"]}]}, "not in [columns]"),
        ({"perturb": [{**NOISE, "columns": ["pay", "pay"]}]}, "a column twice"),
        ({"perturb": [{"method": "pram", "columns": ["ill"]}]}, "keep or matrix"),
        ({"perturb": [{"method": "swap", "columns": ["ill"], "within": ["pay"]}, NOISE]}, "changed itself"),
        ({"perturb": [{"method": "swap", "columns": ["ill"], "together": True}]}, "together does nothing"),
        ({"perturb": [{"method": "condense", "columns": ["pay"], "k": 2}]}, "condenses nothing"),
        (
            {"perturb": [{"method": "microaggregate", "columns": ["pay", "age"], "k": 3, "algorithm": "univariate"}]},
            "for one column",
        ),
        ({"perturb": [{"method": "blur", "columns": ["pay"]}]}, "is not allowed"),
        ({"perturb": []}, "perturb"),
        ({"columns": {**ROLES, "age": {"role": "quasi", "widths": [5]}}}, "has widths, but nothing is generalised"),
        ({"columns": {**ROLES, "ill": {"role": "sensitive", "order": ["flu", "cold", "gout"]}}}, "only rank-swap"),
        ({"guarantee": {"k": 3}}, "reveil publish"),
        ({"columns": {"name": "identifier"}, "perturb": [NOISE]}, "no column is published"),
    ],
)
def test_policies_that_promise_what_nobody_does(change: dict[str, object], part: str) -> None:
    with pytest.raises(InputError) as refusal:
        perturb(people(), {**recipe(NOISE), **change})
    assert part in str(refusal.value)


def test_publishing_refuses_a_policy_that_perturbs(tmp_path: Path) -> None:
    for call in (reveil.anonymize, lambda table, policy: reveil.open_series(policy, tmp_path / "home").publish(table)):
        with pytest.raises(InputError) as refusal:
            call(people(), {**recipe(NOISE), "guarantee": {"k": 2}})
        assert codes(refusal) == ["R224"]
        assert "reveil perturb" in str(refusal.value)
    assert not (tmp_path / "home").exists()


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    people().write_csv("people.csv")
    roles = "\n".join(f'{name} = "{role}"' for name, role in ROLES.items())
    step = '[[perturb]]\nmethod = "rank-swap"\ncolumns = ["pay", "age"]\npercent = 10\n'
    Path("perturb.toml").write_text(f"[columns]\n{roles}\n{step}")
    run = CliRunner().invoke(app, ["perturb", "people.csv", "-p", "perturb.toml", "-o", "out", "--seed", "3"])
    assert run.exit_code == 0
    for part in (
        "ranks of 'pay'",
        "Linked to the right original row",
        "Published exactly: ill, ward",
        "Hand over only",
    ):
        assert part in run.stdout
    assert Path("out/public/table.csv").exists()
    as_json = CliRunner().invoke(app, ["perturb", "people.csv", "-p", "perturb.toml", "-o", "more", "--json"])
    assert json.loads(as_json.stdout)["rows"] == 40
    again = CliRunner().invoke(app, ["perturb", "people.csv", "-p", "perturb.toml", "-o", "out"])
    assert again.exit_code != 0
    assert again.exception.faults[0].code == "R513"


# --- a step that changes nothing, or hardly anything, or too much ----------------------------------------------------


def ages(rows: int = 4_000) -> pl.DataFrame:
    return pl.DataFrame({"age": np.random.default_rng(1).integers(18, 90, rows), "number": np.arange(rows)})


def of_ages(step: dict[str, object], rows: int = 4_000) -> Perturbed:
    return perturb(ages(rows), {"columns": {"age": "quasi", "number": "quasi"}, "perturb": [step]}, seed=1)


@pytest.mark.parametrize(("share", "moved"), [(0.3333333333333333, 1332), (0.1234567890123456, 492), (1, 4000)])
def test_shares_with_many_digits_are_swapped(share: float, moved: int) -> None:
    made = of_ages({"method": "swap", "columns": ["number"], "share": share})
    assert made.report["steps"][0]["rows swapped"] == {"number": moved}
    assert made.report["columns"][0]["rows changed"] == moved
    (found,) = (item.finding for item in made.checks if item.name == "share of number")
    assert found.startswith(f"{moved:,} rows differ; {moved:,} were to be drawn")


@pytest.mark.parametrize(
    ("step", "part"),
    [
        ({"method": "swap", "columns": ["age"], "share": 0.0001}, "is no pair"),
        ({"method": "swap", "columns": ["age"], "within": ["number"]}, "1 row alike in number is no pair"),
        ({"method": "noise", "columns": ["age"], "amount": 1e-5}, "left every row as it was"),
        ({"method": "noise", "columns": ["age"], "amount": "1e-400"}, "left every row as it was"),
        ({"method": "pram", "columns": ["age"], "keep": 1}, "left every row as it was"),
        ({"method": "noise", "columns": ["age"], "amount": 1e15}, "numbers beyond 2^53"),
        ({"method": "noise", "columns": ["age"], "amount": 1e18}, "amount beyond 2^53"),
        ({"method": "noise", "columns": ["age"], "amount": "1e400"}, "amount beyond 2^53"),
    ],
)
def test_steps_that_change_nothing_or_too_much(step: dict[str, object], part: str) -> None:
    with pytest.raises(InputError) as refusal:
        of_ages(step)
    assert codes(refusal) == ["R230"]
    assert part in str(refusal.value)


def test_equal_rows_have_nothing_to_swap_or_to_draw() -> None:
    table = pl.DataFrame({"a": ["x"] * 30, "ward": ["A", "B"] * 15, "doctor": ["Ann", "Bob"] * 15})
    columns = dict.fromkeys(table.columns, "quasi")
    for step, part in (
        ({"method": "swap", "columns": ["a"]}, "rows have equal values"),
        ({"method": "swap", "columns": ["a", "doctor"], "together": True}, "column 'a': rows have equal values"),
        ({"method": "swap", "columns": ["doctor"], "within": ["ward"]}, "rows alike in ward have equal values"),
        ({"method": "pram", "columns": ["a"], "keep": 0.5}, "left every row as it was"),
    ):
        with pytest.raises(InputError, match=part) as refusal:
            perturb(table, {"columns": columns, "perturb": [step]}, seed=1)
        assert codes(refusal) == ["R230"]


@pytest.mark.parametrize(
    "step",
    [
        {"method": "rank-swap", "columns": ["a"], "percent": "1/4"},  # next ranks change places, and these are equal
        {"method": "condense", "columns": ["b"], "k": 5},
    ],
)
def test_equal_neighbours_hide_nothing(step: dict[str, object]) -> None:
    table = pl.DataFrame({"a": [1] * 200 + [2] * 200, "b": np.repeat(np.arange(40), 10)})
    with pytest.raises(InputError, match="left every row as it was"):
        perturb(table, {"columns": {"a": "quasi", "b": "quasi"}, "perturb": [step]}, seed=1)


def test_one_pair_that_changed_ranks_is_hardly_a_change() -> None:
    step = {"method": "rank-swap", "columns": ["a"], "percent": "1/4"}
    table = pl.DataFrame({"a": [1] * 201 + [2] * 199})
    made = perturb(table, {"columns": {"a": "quasi"}, "perturb": [step]}, seed=1)
    assert any(note.startswith("Hardly changed: 'a'. 99.5%") for note in made.notes)


def test_averages_of_equal_values_are_these_values() -> None:
    table = pl.DataFrame({"b": np.repeat(np.arange(40), 10)})
    step = {"method": "microaggregate", "columns": ["b"], "k": 5}
    made = perturb(table, {"columns": {"b": "quasi"}, "perturb": [step]}, seed=1)
    assert "0 of 400, 100.0% are as they were" in [item.finding for item in made.checks]
    assert any("Hardly changed: 'b'. 100.0%" in note for note in made.notes)


def test_noise_that_rounding_nearly_undoes_is_named(tmp_path: Path) -> None:
    ages().write_csv(tmp_path / "ages.csv")
    step = '[[perturb]]\nmethod = "noise"\ncolumns = ["age"]\namount = 0.01\n'
    (tmp_path / "p.toml").write_text(f'[columns]\nage = "quasi"\nnumber = "drop"\n{step}')
    how = ["-p", str(tmp_path / "p.toml"), "-o", str(tmp_path / "out"), "--seed", "1"]
    run = CliRunner().invoke(app, ["perturb", str(tmp_path / "ages.csv"), *how])
    assert run.exit_code == 0
    assert "Hardly changed: 'age'. 9" in run.stdout
    assert "Hardly changed" in (tmp_path / "out" / "private" / "report.html").read_text()
    strong = of_ages({"method": "noise", "columns": ["age"], "amount": 0.5})
    assert not any("Hardly changed" in note for note in strong.notes)


def test_noise_takes_no_date_out_of_the_calendar() -> None:
    born = pl.Series("born", [datetime.date(1950 + i, 1 + i % 12, 1) for i in range(40)])
    for amount in (1e3, 1e6, 1e12):
        step = {"method": "noise", "columns": ["born"], "amount": amount}
        with pytest.raises(InputError, match="leave the years 1 to 9999") as refusal:
            perturb(born.to_frame(), {"columns": {"born": "quasi"}, "perturb": [step]}, seed=1)
        assert codes(refusal) == ["R230"]


NAMES = ["shown", "len", "rows", "value", "code", "moved", "differs", "within", "n", "c", "literal", "index", "count"]
REDONE = [
    ({"method": "microaggregate", "k": 3}, False),
    ({"method": "condense", "k": 3}, False),
    ({"method": "noise", "amount": 1}, False),
    ({"method": "rank-swap", "percent": 20}, False),
    ({"method": "pram", "keep": 0.5}, True),
    ({"method": "swap", "within": ["ward"]}, True),
]


@pytest.mark.parametrize("name", NAMES)
def test_no_name_of_a_column_is_special(name: str) -> None:
    for step, text in REDONE:
        table = people().select(pl.col("ill" if text else "pay").alias(name), "ward")
        policy = {"columns": {name: "quasi", "ward": "quasi"}, "perturb": [{**step, "columns": [name]}]}
        assert all(item.holds for item in perturb(table, policy, seed=1).checks)
    table = people().select(pl.col("ward").alias(name), "ill")
    policy = {"columns": {name: "quasi", "ill": "quasi"}, "perturb": [{**REDONE[5][0], "columns": ["ill"]}]}
    policy["perturb"][0]["within"] = [name]  # type: ignore[index]
    assert perturb(table, policy, seed=1).table.columns == [name, "ill"]
