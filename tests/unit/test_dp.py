"""Noisy counts: bins, bounded contributions, one budget for the series, and every refusal."""

from __future__ import annotations

import json
import sqlite3
import sys
from fractions import Fraction
from math import nextafter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import reveil
from reveil.base.errors import ConflictError, GuaranteeError, InfeasibleError, InputError, TamperedError
from reveil.cli.app import app
from reveil.dp import count, mechanism
from reveil.dp.count_policy import Counting
from reveil.dp.counting import _places, bound, cells, grid, read
from reveil.policy.policy import load_as

COLUMNS = {"who": "identifier", "sex": "quasi", "age": "quasi", "note": "drop"}
BINS = {"sex": ["F", "M"], "age": [18, "65.5"]}
BY_SEX = {"name": "by-sex", "by": ["sex"], "spend": "0.1"}
BOTH = {"name": "both", "by": ["sex", "age"], "spend": "0.2"}


def people(rows: int = 30) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "who": [f"p{i}" for i in range(rows)],
            "sex": (["F", "M", "F", "X", None] * rows)[:rows],
            "age": ([17.0, 18.0, 65.5, 65.4, None, 90.0] * rows)[:rows],
            "note": ["secret"] * rows,
        }
    )


def policy(*counts: dict[str, Any], columns: dict[str, Any] = COLUMNS, **dp: Any) -> dict[str, Any]:
    counts = counts or (BY_SEX, BOTH)
    used = {name: bins for name, bins in BINS.items() if any(name in count["by"] for count in counts)}
    return {
        "series": {"name": "wards"},
        "columns": columns,
        "dp": {**({} if "rho" in dp else {"epsilon": 1}), "bins": used, "counts": list(counts), **dp},
    }


def exact(table: pl.DataFrame, rules: dict[str, Any], name: str) -> dict[tuple[str, ...], int]:
    loaded = load_as(Counting, rules)
    marginal = next(count for count in loaded.dp.counts if count.name == name)
    frame = read(table, loaded)
    rows = grid(marginal, loaded.dp, cells(frame, marginal, loaded.dp)).rows()
    return {row[:-1]: row[-1] for row in rows}


def test_every_row_is_in_one_stated_bin() -> None:
    found = exact(people(), policy(), "both")
    assert len(found) == 4 * 5
    assert sum(found.values()) == 30
    by_age = {}
    for (_, age), rows in found.items():
        by_age[age] = by_age.get(age, 0) + rows
    assert by_age == {"<18": 5, "[18-65.5[": 10, ">=65.5": 10, "(other)": 0, "(missing)": 5}
    assert exact(people(), policy(), "by-sex") == {("F",): 12, ("M",): 6, ("(other)",): 6, ("(missing)",): 6}


COUNTED = {
    "zip": ({"role": "quasi", "prefixes": [3]}, ["476", "479"]),
    "seen": ({"role": "quasi", "type": "date", "levels": ["month"]}, ["2024-01", "2024-02"]),
    "born": ({"role": "quasi", "levels": ["decade"]}, ["1980s", "1990s"]),
    "code": ({"role": "quasi", "type": "category", "missing": "refuse"}, ["1", "2"]),
}


def counted(**changed: Any) -> dict[str, Any]:
    specs = {name: (changed.get(name) or spec, bins) for name, (spec, bins) in COUNTED.items()}
    counts = [{"name": name, "by": [name], "spend": "0.1"} for name in specs]
    rules = policy(*counts, columns={"who": "identifier", **{name: spec for name, (spec, _) in specs.items()}})
    rules["dp"]["bins"] = {name: bins for name, (_, bins) in specs.items()}
    return rules


def test_what_columns_say_elsewhere_is_honoured() -> None:
    table = pl.DataFrame(
        {
            "who": list("abcd"),
            "zip": ["47677", "47602", "47905", "1"],
            "seen": ["27.02.2024", "1.1.2024", None, "1.3.2024"],
            "born": ["1981-01-01", "1999-12-31", "1990-01-01", "2000-01-01"],
            "code": [1, 2, 2, 3],
        }
    )
    assert list(exact(table, counted(), "zip").values()) == [2, 1, 1, 0]
    assert list(exact(table, counted(), "seen").values()) == [1, 1, 1, 1]
    assert list(exact(table, counted(), "born").values()) == [1, 2, 1, 0]
    assert list(exact(table, counted(), "code").values()) == [1, 2, 1, 0]
    with pytest.raises(InputError, match=r"R215 column 'code'.*\(1 row: no. 4\)"):
        exact(table.with_columns(code=pl.Series([1, 2, 2, None])), counted(), "code")


@pytest.mark.parametrize(
    ("name", "spec", "part"),
    [
        ("zip", {"role": "quasi", "prefixes": [4, 3]}, "several prefixes"),
        ("zip", {"role": "quasi", "prefixes": [2]}, "'476' is longer"),
        ("seen", {"role": "quasi", "levels": ["month", "year"]}, "several levels"),
        ("seen", {"role": "quasi", "levels": ["year"]}, "years such as '2024'; '2024-01' is none"),
        ("seen", {"role": "quasi", "type": "date"}, "dates are counted by levels"),
        ("code", {"role": "quasi", "type": "number"}, 'has type "number", but its bins are texts'),
        ("code", {"role": "quasi", "hierarchy": {"a": ["1"]}}, "has hierarchy, which does nothing here"),
    ],
)
def test_what_does_not_go_with_the_bins(name: str, spec: dict[str, Any], part: str) -> None:
    with pytest.raises(InputError) as refusal:
        load_as(Counting, counted(**{name: spec}))
    assert part in str(refusal.value)
    rules = policy(columns={**COLUMNS, "age": {"role": "quasi", "levels": ["year"]}})
    with pytest.raises(InputError, match="its bins must be texts"):
        load_as(Counting, rules)


def test_large_whole_numbers_have_bins_of_their_own() -> None:
    """Floats hold whole numbers only up to 2^53."""
    first = 2**62
    table = pl.DataFrame({"who": [str(i) for i in range(201)], "age": [*(first + i for i in range(200)), None]})
    cuts = [str(-(10**30)), first + 50, f"{first + 99}.5", first + 150, str(10**30)]
    rules = policy({"name": "n", "by": ["age"], "spend": 1}, columns={"who": "identifier", "age": "quasi"})
    rules["dp"]["bins"] = {"age": cuts}
    assert list(exact(table, rules, "n").values()) == [0, 50, 50, 50, 50, 0, 0, 1]


CUTS = [
    "0",
    "0.1",
    "0.3",
    "0.10000000000000000001",
    "0.09999999999999999999",
    "9007199254740993",
    "1e30",
    "1" + "0" * 400,
]
DECIMALS = [0.0, -0.0, 0.1, 0.3, nextafter(0.1, 1), nextafter(0.1, 0), 2.0**53, 2.0**53 + 2, 1e30, -1e30, 1e308, None]


@given(st.lists(st.sampled_from(DECIMALS), min_size=1), st.sets(st.sampled_from(CUTS), min_size=1))
def test_decimals_are_in_the_bins_that_they_are_written_for(values: list[float | None], cuts: set[str]) -> None:
    """0.1 means the decimal, not the float next to it; and a cut may lie between two floats."""
    bins = tuple(sorted(map(Fraction, cuts)))
    wanted = [len(bins) + 2 if v is None else sum(cut <= Fraction(str(v)) for cut in bins) for v in values]
    assert _places(pl.Series(values, dtype=pl.Float64), bins).tolist() == wanted


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("FMX")), min_size=1, max_size=30), st.integers(1, 3))
@settings(max_examples=40)
def test_one_person_changes_counts_by_no_more_than_is_stated(rows: list[tuple[int, str]], most: int) -> None:
    """Neighbours: the table with and without one person. The L1 distance of true counts is what noise is made for."""
    table = pl.DataFrame(rows, schema=["who", "sex"], orient="row").cast({"who": pl.String})
    kept, lost = bound(table, "who", most)
    assert kept["who"].value_counts()["count"].max() <= most
    assert kept.height + lost == table.height
    rules = load_as(Counting, policy(BY_SEX, columns={"who": "identifier", "sex": "quasi"}, contributions=most))
    for person in kept["who"].unique():
        counts = [cells(side, rules.dp.counts[0], rules.dp) for side in (kept, kept.filter(pl.col("who") != person))]
        assert np.abs(counts[0] - counts[1]).sum() <= most


@pytest.mark.parametrize(("measure", "amount"), [("epsilon", "1/3"), ("epsilon", 5), ("rho", "0.01"), ("rho", 2)])
@pytest.mark.parametrize("contributions", [1, 4])
def test_noise_is_calibrated_and_composed_by_opendp(measure: Any, amount: Any, contributions: int) -> None:
    spend = Fraction(str(amount))
    scale = mechanism.calibrate(measure, contributions, spend)
    one = mechanism.loss(measure, contributions, [scale])
    assert spend * (1 - Fraction(1, 10**8)) < one <= spend
    assert mechanism.loss(measure, contributions, [scale] * 50) <= 50 * spend
    expected = contributions / float(spend) if measure == "epsilon" else contributions / (2 * float(spend)) ** 0.5
    assert scale == pytest.approx(expected, rel=1e-6)


def test_noise_is_as_wide_as_stated(tmp_path: Path) -> None:
    """Thousands of empty cells show nothing but noise: mean 0, variance of the discrete Laplace distribution."""
    bins = [f"v{i}" for i in range(6_000)]
    rules = policy({"name": "wide", "by": ["sex"], "spend": "0.5"}, bins={"sex": bins})
    noise = reveil.count(people(), rules, home=tmp_path / "home").tables["wide"]["count"].to_numpy()[:6_000]
    ratio = np.exp(-0.5)
    variance = 2 * ratio / (1 - ratio) ** 2
    assert abs(noise.mean()) < 8 * (variance / 6_000) ** 0.5
    assert 0.8 < noise.var() / variance < 1.25


def test_a_series_spends_its_budget_and_ends(tmp_path: Path) -> None:
    home = tmp_path / "home"
    rules = policy()
    for number in (1, 2, 3):
        made = reveil.count(people(), rules, home=home)
        assert made.number == number
        assert made.budget.spent == Fraction(3, 10) * number
    with pytest.raises(InfeasibleError) as refusal:
        reveil.count(people(), rules, home=home)
    (fault,) = refusal.value.faults
    assert fault.code == "R470"
    assert "epsilon 0.9 of 1 is spent by 3 releases, and this one needs 0.3" in fault.message
    assert refusal.value.exit_code == 2
    assert reveil.spent(rules, home).left == Fraction(1, 10)
    assert len(list((home / "releases").iterdir())) == 3


def test_counts_may_be_chosen_anew_and_the_last_tenth_can_be_spent(tmp_path: Path) -> None:
    home, wanted = tmp_path / "home", {**BOTH, "spend": "0.9"}
    reveil.count(people(), policy(wanted), home=home)
    last = reveil.count(people(), policy({**BOTH, "spend": "0.1", "name": "again"}), home=home)
    assert last.budget.left == 0
    with pytest.raises(InfeasibleError):
        reveil.count(people(), policy({**BOTH, "spend": "0.000001"}), home=home)


def test_a_count_can_be_dropped_when_the_budget_runs_low(tmp_path: Path) -> None:
    """The bins of its column stay, because the first release fixed them; at the beginning they would be a mistake."""
    home = tmp_path / "home"
    by_age = {"name": "by-age", "by": ["age"], "spend": "0.6"}
    reveil.count(people(), policy(BY_SEX, by_age), home=home)
    with pytest.raises(InfeasibleError, match="bins stay as they are"):
        reveil.count(people(), policy(BY_SEX, by_age), home=home)
    fewer = policy(BY_SEX, bins=BINS)
    assert reveil.count(people(), fewer, home=home).budget.left == Fraction(1, 5)
    assert reveil.spent(fewer, home).left == Fraction(1, 5)
    with pytest.raises(InputError, match="bins of 'age' are counted nowhere"):
        reveil.count(people(), fewer, home=tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
@pytest.mark.parametrize("spend", ["0.000001", "100"])
@pytest.mark.parametrize("contributions", [1, 1_000])
def test_all_that_the_policy_allows_can_be_counted(
    tmp_path: Path, measure: str, spend: str, contributions: int
) -> None:
    amounts = {"epsilon": 1_000} if measure == "epsilon" else {"rho": 1_000, "delta": "1e-100"}
    rules = policy({**BY_SEX, "spend": spend}, contributions=contributions, **amounts)
    made = reveil.count(people(), rules, home=tmp_path / "home")
    assert np.isfinite(made.privacy["error of 95 in 100 cells"].to_numpy()).all()
    assert made.budget.epsilon is None if measure == "epsilon" else np.isfinite(made.budget.epsilon)


def test_noise_beyond_32_bits_is_not_cut_off() -> None:
    drawn = mechanism.noisy("epsilon", 1e12, np.zeros(50, dtype=np.int64))
    assert np.abs(drawn).max() > 2**31
    assert len(set(drawn.tolist())) == 50


@pytest.mark.parametrize(
    "call",
    [
        lambda: mechanism.calibrate("epsilon", 1, Fraction(1, 10**300)),
        lambda: mechanism.calibrate("epsilon", 2**63, Fraction(1)),
        lambda: mechanism.error("epsilon", 1e-5),
        lambda: mechanism.epsilon_at(1, [1.0], Fraction(1, 10**400)),
        lambda: mechanism.loss("rho", 1, [1e-200]),
    ],
)
def test_what_opendp_refuses_is_told(call: Any) -> None:
    with pytest.raises(InputError) as refusal:
        call()
    assert refusal.value.faults[0].code == "R241"


def test_epsilon_is_known_before_anything_is_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = policy({**BOTH, "spend": "0.005"}, rho="0.01", delta="1e-6")
    with monkeypatch.context() as patch:
        patch.setattr(mechanism, "epsilon_at", lambda *_: (_ for _ in ()).throw(mechanism._impossible("too much")))
        with pytest.raises(InputError, match="R241"):
            reveil.count(people(), rules, home=tmp_path / "home")
    assert reveil.spent(rules, tmp_path / "home").spent == 0


def test_edited_counts_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    made = reveil.count(people(), policy(), home=home)
    file = made.path / "public" / "both.csv"
    file.write_text(file.read_text().replace("F,<18,", "F,<18,9"))
    with pytest.raises(TamperedError) as refusal:
        reveil.spent(policy(), home)
    assert refusal.value.exit_code == 1
    (fault,) = refusal.value.faults
    assert fault.code == "R524"
    assert "both.csv" in str(fault)


def test_a_home_is_for_counts_or_for_tables(tmp_path: Path) -> None:
    tables = {
        "columns": {"who": "identifier", "sex": "quasi", "age": "quasi", "note": "drop"},
        "guarantee": {"k": 2},
    }
    reveil.count(people(), policy(), home=tmp_path / "counts")
    with pytest.raises(InputError) as refusal:
        reveil.open_series(tables, tmp_path / "counts").publish(people())
    (fault,) = refusal.value.faults
    assert (fault.code, "belongs to a series of noisy counts" in fault.message) == ("R502", True)
    reveil.open_series(tables, tmp_path / "tables").publish(people())
    with pytest.raises(InputError) as refusal:
        reveil.count(people(), policy(), home=tmp_path / "tables")
    (fault,) = refusal.value.faults
    assert (fault.code, "belongs to a series of tables" in fault.message) == ("R502", True)


def test_the_budget_cannot_be_raised(tmp_path: Path) -> None:
    home = tmp_path / "home"
    reveil.count(people(), policy(), home=home)
    for change in ({"epsilon": 2}, {"contributions": 2}, {"bins": {**BINS, "sex": ["F", "M", "X"]}}):
        with pytest.raises(InputError) as refusal:
            reveil.count(people(), policy(**change), home=home)
        assert {fault.code for fault in refusal.value.faults} == {"R502"}
    assert reveil.spent(policy(), home).spent == Fraction(3, 10)


def test_what_was_spent_is_told_under_the_recorded_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit of the policy cannot raise the budget; it can be looked up, and counting refuses."""
    home = tmp_path / "home"
    reveil.count(people(), policy(), home=home)
    before = reveil.spent(policy(), home).to_dict()
    bins = {"sex": ["F", "M", "X"], "age": [18, 65]}
    for change in ({"bins": bins}, {"epsilon": 9}, {"contributions": 2}, {"epsilon": None, "rho": 1, "delta": "1e-6"}):
        edited = policy()
        edited["dp"] = {name: value for name, value in {**edited["dp"], **change}.items() if value is not None}
        assert reveil.spent(edited, home).to_dict() == before
        _, changes = count.look_back(edited, home)
        assert {fault.code for fault in changes} == {"R502"}
        with pytest.raises(InputError, match="R502"):
            reveil.count(people(), edited, home=home)
    renamed = {**policy(), "series": {"name": "another"}}
    assert reveil.spent(renamed, home).series == before["series"]


def test_spending_cannot_be_edited_away(tmp_path: Path) -> None:
    home = tmp_path / "home"
    reveil.count(people(), policy(), home=home)
    reveil.count(people(), policy(), home=home)
    with sqlite3.connect(home / "ledger.sqlite") as base:
        base.execute("UPDATE releases SET facts = replace(facts, '3/10', '0/10') WHERE number = 1")
    for call in (lambda: reveil.count(people(), policy(), home=home), lambda: reveil.spent(policy(), home)):
        with pytest.raises(TamperedError) as refusal:
            call()
        assert refusal.value.faults[0].code == "R521"
    with sqlite3.connect(home / "ledger.sqlite") as base:
        base.execute("DELETE FROM releases WHERE number = 2")
    with pytest.raises(TamperedError):
        reveil.spent(policy(), home)


def test_of_two_counts_at_once_one_spends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have found the budget sufficient; the second to record is refused, and its numbers are never seen."""
    home, rules = tmp_path / "home", policy({**BOTH, "spend": "0.6"})
    write = count._write
    inner: list[Any] = []

    def meanwhile(*args: Any) -> Any:
        if not inner:
            inner.append(None)
            inner[0] = reveil.count(people(), rules, home=home)
        return write(*args)

    reveil.count(people(), policy({**BOTH, "spend": "0.1"}), home=home)
    monkeypatch.setattr(count, "_write", meanwhile)
    with pytest.raises(ConflictError):
        reveil.count(people(), rules, home=home)
    assert reveil.spent(rules, home).spent == Fraction(7, 10)
    assert sorted(path.name for path in (home / "releases").iterdir()) == ["0001", "0002"]
    assert not list((home / "staging").iterdir())


def test_what_is_published(tmp_path: Path) -> None:
    made = reveil.count(people(), policy(contributions=2), home=tmp_path / "home")
    public = made.path / "public"
    names = sorted(path.name for path in public.iterdir())
    assert names == ["both.csv", "by-sex.csv", "datapackage.json", "privacy.csv"]
    everything = b"".join(path.read_bytes() for path in public.iterdir())
    assert b"secret" not in everything
    assert b"p1" not in everything
    (first, second) = made.privacy.to_dicts()
    assert first["epsilon"] == "0.1"
    assert first["scale"] == pytest.approx(20, rel=1e-6)
    assert second["noise"] == "discrete Laplace"
    assert first["error of 95 in 100 cells"] > second["error of 95 in 100 cells"]
    assert pl.read_csv(public / "both.csv").height == 20


def test_gaussian_budget(tmp_path: Path) -> None:
    rules = policy({**BOTH, "spend": "0.005"}, rho="0.01", delta="1e-6")
    first = reveil.count(people(), rules, home=tmp_path / "home")
    second = reveil.count(people(), rules, home=tmp_path / "home")
    assert first.budget.epsilon is not None
    assert second.budget.epsilon is not None
    assert 0 < first.budget.epsilon < second.budget.epsilon < 2 * first.budget.epsilon
    assert "0.01-zCDP" in second.budget.statement
    with pytest.raises(InfeasibleError, match=r"rho 0\.01 of 0\.01"):
        reveil.count(people(), rules, home=tmp_path / "home")


def test_rows_beyond_the_bound_are_left_out(tmp_path: Path) -> None:
    table = pl.concat([people(10)] * 3)
    made = reveil.count(table, policy(contributions=2), home=tmp_path / "home")
    assert made.left_out == 10


def test_a_refused_table_leaves_nothing_and_costs_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    bad = people().with_columns(who=pl.lit(None, pl.String), age=pl.lit("old")).drop("sex").with_columns(more=pl.lit(1))
    with pytest.raises(InputError) as refusal:
        reveil.count(bad, policy(), home=home)
    assert sorted(fault.code for fault in refusal.value.faults) == ["R210", "R211"]  # cells are never faults
    assert not home.exists()
    assert reveil.spent(policy(), home).spent == 0
    assert not home.exists()


def test_bytes_that_changed_are_neither_recorded_nor_revealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emit, home = count.emit, tmp_path / "home"

    def torn(tables: Any, counterfeits: Any, rules: Any, folder: Path) -> None:
        emit(tables, counterfeits, rules, folder)
        (folder / "both.csv").write_text((folder / "both.csv").read_text().replace("F,<18,", "F,<18,9"))

    monkeypatch.setattr(count, "emit", torn)
    with pytest.raises(GuaranteeError) as refusal:
        reveil.count(people(), policy(), home=home)
    assert refusal.value.faults[0].code == "R606"
    assert reveil.spent(policy(), home).spent == 0
    assert not list((home / "releases").iterdir())


def test_what_a_stop_left_is_finished_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    with monkeypatch.context() as patch:
        patch.setattr(count.Ledger, "reveal", lambda self, number: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            reveil.count(people(), policy(), home=home)
    assert not list((home / "releases").iterdir())
    assert count.look_back(policy(), home)[0] == ["Release 1 was recorded but not yet revealed; it is revealed now."]
    assert count.look_back(policy(), home) == ([], [])
    assert reveil.spent(policy(), home).spent == Fraction(3, 10)
    assert (home / "releases" / "0001" / "public" / "both.csv").exists()


def test_without_opendp_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(InputError) as refusal:
        reveil.count(people(), policy(), home=tmp_path / "home")
    (fault,) = refusal.value.faults
    assert fault.code == "R240"
    assert "reveil[dp]" in fault.remedy


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"rho": 1, "epsilon": 1, "delta": "1e-6"}, "epsilon or rho"),
        ({"rho": 1}, "rho and delta belong together"),
        ({"delta": "1e-6"}, "rho and delta belong together"),
        ({"counts": [BY_SEX, BY_SEX]}, "two counts are called"),
        ({"counts": [{**BY_SEX, "name": "../x"}]}, "cannot be called"),
        ({"counts": [{**BY_SEX, "name": "privacy"}]}, "cannot be called"),
        ({"counts": [{**BY_SEX, "by": ["sex", "sex"]}]}, "names a column twice"),
        ({"counts": [{**BY_SEX, "by": ["ward"]}]}, "needs bins of 'ward'"),
        ({"counts": [BY_SEX]}, "bins of 'age' are counted nowhere"),
        ({"bins": {"sex": ["F", "F"], "age": [1]}}, "'F' twice"),
        ({"bins": {"sex": ["F"], "age": [3, 2]}}, "must rise"),
        ({"bins": {"sex": ["F"], "age": [0, "1/3"]}}, "no finite decimal"),
        ({"bins": {"sex": [f"v{i}" for i in range(2_000)], "age": list(range(600))}}, "cells"),
        ({"epsilon": 0}, "above 0"),
        ({"contributions": 0}, "contributions"),
        ({"contributions": 2**31}, "10000"),
        ({"epsilon": 1_000_000}, "1000"),
        ({"rho": 1_000_000, "delta": "1e-6"}, "1000"),
        ({"rho": 1, "delta": "1e-400"}, "dp.delta: must be 1e-100 or more"),
        ({"counts": [{**BY_SEX, "spend": "1e-300"}, BOTH]}, "spend: must be 0.000001 or more"),
        ({"counts": [{**BY_SEX, "spend": 100_000}, BOTH]}, "spend"),
        ({"budget": 3}, "is not a key"),
    ],
)
def test_policies_that_promise_nothing(change: dict[str, Any], part: str) -> None:
    with pytest.raises(InputError) as refusal:
        reveil.spent(policy(**change) if "counts" not in change else {**policy(), "dp": {**policy()["dp"], **change}})
    assert part in str(refusal.value)


@pytest.mark.parametrize(
    ("columns", "part"),
    [
        ({**COLUMNS, "who": "drop"}, "role identifier"),
        ({**COLUMNS, "sex": "drop"}, "its role is drop"),
        ({"who": "identifier", "age": "quasi"}, "'sex', which is not in [columns]"),
        ({**COLUMNS, "age": {"role": "quasi", "widths": [5]}}, "widths, which does nothing"),
    ],
)
def test_columns_that_cannot_be_counted(columns: dict[str, Any], part: str) -> None:
    with pytest.raises(InputError) as refusal:
        reveil.spent(policy(columns=columns))
    assert part in str(refusal.value)


def test_publishing_refuses_a_policy_that_counts() -> None:
    with pytest.raises(InputError, match="reveil count"):
        reveil.anonymize(people(), policy())
    with pytest.raises(InputError, match="reveil perturb"):
        reveil.spent({**policy(), "perturb": []})


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    people().write_csv("people.csv")
    Path("counts.toml").write_text(
        """
[series]
name = "wards"
[columns]
who = "identifier"
sex = "quasi"
age = "quasi"
note = "drop"
[input]
encoding = "utf-8"
[dp]
epsilon = 0.5
[dp.bins]
sex = ["F", "M"]
[[dp.counts]]
name = "by-sex"
by = ["sex"]
spend = 0.3
"""
    )
    how = ["-p", "counts.toml", "--home", "home"]
    run = CliRunner().invoke(app, ["count", "people.csv", *how])
    assert run.exit_code == 0
    assert "Spent so far: epsilon 0.3 of 0.5; 0.2 is left." in run.stdout
    assert "at most 1 in each release" in run.stdout
    again = CliRunner().invoke(app, ["count", "people.csv", *how])
    assert isinstance(again.exception, InfeasibleError)
    assert "by-sex" in CliRunner().invoke(app, ["spent", *how]).stdout
    assert json.loads(CliRunner().invoke(app, ["spent", *how, "--json"]).stdout)["left"] == "0.2"


def test_json_does_not_hide_what_was_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a stop left is said on stderr unless --quiet; --json is about stdout only."""
    monkeypatch.chdir(tmp_path)
    Path("counts.toml").write_text(
        """
[columns]
who = "identifier"
sex = "quasi"
age = "quasi"
note = "drop"
[dp]
epsilon = 1
[dp.bins]
sex = ["F", "M"]
[[dp.counts]]
name = "by-sex"
by = ["sex"]
spend = 0.3
"""
    )
    for options, said in (["--json"], True), (["--json", "--quiet"], False):
        with monkeypatch.context() as patch:
            patch.setattr(count.Ledger, "reveal", lambda self, number: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                reveil.count(people(), "counts.toml", home="home")
        run = CliRunner().invoke(app, ["spent", "-p", "counts.toml", "--home", "home", *options])
        assert json.loads(run.stdout)["measure"] == "epsilon"
        assert ("is revealed now" in run.stderr) is said
