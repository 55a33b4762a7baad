"""Re-identification risk against brute force over rows and people."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reveil
from oracle import utility as oracle
from reveil.base.errors import InputError
from reveil.measure.risk import Attacker, Threshold, class_risk, risk_change
from support import cli

POLICY = {"columns": {"age": "quasi", "sex": "quasi"}, "guarantee": {"k": 2}}
thresholds = st.sampled_from(["0.05", "0.09", "1/11", "0.2", "1/3", "0.5", "1"])


def attack(found: tuple[Fraction, Fraction, Fraction]) -> Attacker:
    return Attacker(*found)


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 40)), min_size=1, max_size=12), thresholds)
def test_class_sizes_agree_with_brute_force(sizes: list[tuple[int, int]], threshold: str) -> None:
    f, big = [a for a, _ in sizes], [a + b for a, b in sizes]
    rows = [number for number, size in enumerate(f) for _ in range(size)]
    people = [big[number] for number in rows]
    found = class_risk(np.array(f), threshold, population=np.array(big))
    assert found.prosecutor == attack(oracle.prosecutor(rows, Fraction(threshold)))
    assert found.journalist == attack(oracle.journalist(rows, people, Fraction(threshold)))
    assert found.marketer == oracle.marketer(people)
    alone = class_risk(np.array(f), threshold)
    assert alone.journalist is None
    assert alone.marketer == alone.prosecutor.average == Fraction(len(f), sum(f))
    assert (alone.rows, alone.classes, alone.smallest, alone.unique) == (sum(f), len(f), min(f), f.count(1))


ages, sexes = st.integers(20, 29), st.sampled_from(["f", "m", None])
AGE_CELLS = {"[20-24]": range(20, 25), "[25-29]": range(25, 30), "*": range(20, 30), "[22-27]": range(22, 28)}
SEX_CELLS = {"f": ["f"], "{f,m}": ["f", "m"], "*": ["f", "m", None], "": [None]}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(ages, sexes), min_size=2, max_size=12),
    st.lists(st.tuples(ages, sexes), max_size=12),
    st.lists(st.tuples(st.sampled_from(list(AGE_CELLS)), st.sampled_from(list(SEX_CELLS))), max_size=2),
    thresholds,
)
def test_tables_agree_with_brute_force(
    table: list[tuple[int, str | None]],
    others: list[tuple[int, str | None]],
    shown: list[tuple[str, str]],
    threshold: str,
) -> None:
    everyone = [*table, *others, (20, "f"), (29, "m")]  # a category that nobody has cannot be read
    schema = {"age": pl.Int64, "sex": pl.String}
    original = pl.DataFrame(table, schema=schema, orient="row")
    published = pl.DataFrame(shown, schema={"age": pl.String, "sex": pl.String}, orient="row")
    population = pl.DataFrame(everyone, schema={"age": pl.Int32, "sex": pl.String}, orient="row")
    rows = [row for row in shown if row != ("*", "*")]
    people = [sum(a in AGE_CELLS[x] and s in SEX_CELLS[y] for a, s in everyone) for x, y in rows]
    if any(n < rows.count(row) for row, n in zip(rows, people, strict=True)):
        with pytest.raises(InputError, match="R711"):
            risk_change(published, original, POLICY, population=population)
        return
    found = risk_change(published, original, POLICY, threshold=threshold, population=population)
    limit = Fraction(threshold)
    assert found.before.prosecutor == attack(oracle.prosecutor(table, limit))
    around = [everyone.count(row) for row in table]
    assert found.before.journalist == attack(oracle.journalist(table, around, limit))
    assert found.before.marketer == oracle.marketer(around)
    assert (found.after.rows, found.after.suppressed) == (len(rows), len(table) - len(rows))
    if rows:
        assert found.after.prosecutor == attack(oracle.prosecutor(rows, limit))
        assert found.after.journalist == attack(oracle.journalist(rows, people, limit))
        assert found.after.marketer == oracle.marketer(people)


def test_both_readings_of_nine_per_cent() -> None:
    eleven, twelve = class_risk(np.array([11]), "0.09"), class_risk(np.array([12]), "0.09")
    assert (eleven.prosecutor.above, twelve.prosecutor.above) == (1, 0)
    assert (eleven.threshold.spoken, eleven.threshold.strict) == (11, 12)
    assert "k = 11" in str(eleven.threshold)
    assert "1/11 = 0.0909" in str(eleven.threshold)
    assert "k = 12" in str(eleven.threshold)


@given(st.fractions(min_value=Fraction(1, 500), max_value=1))
def test_the_strict_k_is_the_least_that_keeps_the_bound(bound: Fraction) -> None:
    k = Threshold(bound).strict
    assert Fraction(1, k) <= bound
    assert k == 1 or Fraction(1, k - 1) > bound


@pytest.mark.parametrize(("bound", "k"), [("0.2", 5), ("0.05", 20), ("1/3", 3), ("1", 1)])
def test_usual_thresholds(bound: str, k: int) -> None:
    assert (Threshold(Fraction(bound)).spoken, Threshold(Fraction(bound)).strict) == (k, k)


def test_a_class_at_the_threshold_is_not_above_it() -> None:
    assert class_risk(np.array([3]), "1/3").prosecutor.above == 0
    assert class_risk(np.array([10]), 0.1).prosecutor.above == 0


def test_counterfeits_hide_people() -> None:
    original = pl.DataFrame({"age": [20, 21], "sex": ["f", "m"]})
    published = pl.DataFrame({"age": ["20", "20", "21"], "sex": ["f", "f", "m"], "group": [1, 1, 2]})
    fakes = pl.DataFrame({"group": [1], "count": [1]})
    found = risk_change(published, original, POLICY, population=original, counterfeits=fakes)
    assert found.after.journalist is not None
    assert (found.after.rows, found.after.suppressed, found.after.unique) == (3, 0, 1)
    assert found.after.journalist.average == Fraction(2, 3)


def test_a_table_with_nothing_published_has_no_risk() -> None:
    found = class_risk(np.array([], dtype=np.int64), suppressed=4)
    assert (found.rows, found.suppressed, found.prosecutor.maximum, found.marketer) == (0, 4, 0, 0)


def test_faults_say_what_to_change() -> None:
    table = pl.DataFrame({"age": [20], "sex": ["f"]})
    with pytest.raises(InputError) as lacking:
        risk_change(table.drop("age"), table, POLICY, population=table.drop("sex"))
    assert [fault.code for fault in lacking.value.faults] == ["R701", "R701"]
    for threshold in (0, 1.5, "much", -1):
        with pytest.raises(InputError, match="R710"):
            risk_change(table, table, POLICY, threshold=threshold)
    with pytest.raises(InputError, match="R711"):
        class_risk(np.array([3]), population=np.array([2]))
    with pytest.raises(InputError, match="R712"):
        risk_change(table, table, POLICY, population=pl.DataFrame({"age": ["old"], "sex": ["f"]}))


def test_results_can_be_saved() -> None:
    table = pl.DataFrame({"age": [20, 20], "sex": ["f", "f"]})
    saved = json.loads(json.dumps(risk_change(table, table, POLICY, population=table, threshold="0.09").to_dict()))
    assert saved["after"]["prosecutor"] == {"maximum": 0.5, "average": 0.5, "above": 1.0}
    assert saved["before"]["threshold"]["strict"] == 12


def test_cells_apart_by_blanks_and_folders_of_releases(tmp_path: Path) -> None:
    """`risk` and `link` read files of statistics packages, and say what a release folder is."""
    rows = [("age", "sex"), *((str(20 + n), "fm"[n % 2]) for n in range(6))]
    (tmp_path / "people.dat").write_text("\n".join(f"{a:>5} {b:>4}" for a, b in rows) + "\n")
    (tmp_path / "voters.dat").write_text("name   age sex\nann     20   f\n")
    table = pl.DataFrame({"age": [20 + n for n in range(6)], "sex": list("fmfmfm"), "ill": list("abcabc")})
    apart = reveil.risk(tmp_path / "people.dat", delimiter="blanks")
    assert apart.headline == reveil.risk(table.drop("ill")).headline
    assert reveil.safe_harbor(tmp_path / "people.dat", delimiter="blanks").clear
    linked = reveil.link(table, tmp_path / "voters.dat", delimiter="blanks")
    assert linked.people["rows"].to_list() == [1]
    code, out, err = cli("risk", str(tmp_path / "people.dat"), "--delimiter", "blanks")
    assert code == 0 and "100.0 %" in out, err
    table.write_csv(tmp_path / "shown.csv")
    code, out, err = cli("link", str(tmp_path / "shown.csv"), str(tmp_path / "voters.dat"), "--delimiter", "blanks")
    assert code == 1 and "R731" in err, out + err
    columns = {"age": "quasi", "sex": "quasi", "ill": "sensitive"}
    policy = {"columns": columns, "guarantee": {"model": "l-diversity", "k": 2, "l": 2}}
    policy["method"] = {"publish": "anatomy"}
    reveil.anonymize(table, policy, out=tmp_path / "out", seed=1)
    with pytest.raises(InputError, match=r"R903.*people\.csv"):
        reveil.risk(tmp_path / "out")
