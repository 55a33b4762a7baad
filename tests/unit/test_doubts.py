"""What looks like a mistake in a table is asked about: sums, headers, indexes, sheets, tables again or out of order."""

from __future__ import annotations

import io
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import reveil
from reveil.base.errors import InfeasibleError, InputError
from reveil.dp.count import count
from reveil.jobs.specs import PublishSpec, load_spec
from support import cli, workbook

COLUMNS = {"name": "identifier", "age": "quasi", "pay": "quasi", "ill": "sensitive"}
POLICY: dict[str, Any] = {"columns": COLUMNS, "guarantee": {"k": 2}}
LONE = {**POLICY, "columns": {key: role for key, role in COLUMNS.items() if key != "name"}}
ROWS = [[f"p{n}", 20 + n, 100 * n + 7, "flu" if n % 2 else "cold"] for n in range(8)]
SUMS = [sum(row[1] for row in ROWS), sum(row[2] for row in ROWS)]


def table(*more: list[Any], header: bool = False) -> str:
    rows = [list(COLUMNS), *ROWS, *more]
    if header:
        rows.insert(4, list(COLUMNS))
    return "\n".join(";".join("" if cell is None else str(cell) for cell in row) for row in rows) + "\n"


def write(folder: Path, text: str, name: str = "people.csv") -> Path:
    (folder / name).write_text(text)
    return folder / name


def faults(call: Any) -> list[Any]:
    with pytest.raises(InputError) as refusal:
        call()
    return list(refusal.value.faults)


@pytest.mark.parametrize(
    "row",
    [
        ["Summe", *SUMS, None],
        ["Total:", None, SUMS[1], None],
        ["GESAMT", 1, 2, "x"],
        [None, *SUMS, "Total"],
        [None, *SUMS, None],
        [None, None, SUMS[1], None],
        ["zusammen", *SUMS, "Insgesamt"],
    ],
)
def test_a_row_of_sums_is_noticed(row: list[Any], tmp_path: Path) -> None:
    found = faults(lambda: reveil.anonymize(write(tmp_path, table(row)), POLICY))
    assert (found[0].code, found[0].places) == ("R130", (9,)), "the likely cause first"
    assert "--accept total-rows" in found[0].remedy


def test_sums_within_and_without_an_identifier(tmp_path: Path) -> None:
    text = table(["Summe", *SUMS, None]).replace("p3;", "Zwischensumme;")
    assert faults(lambda: reveil.anonymize(write(tmp_path, text), POLICY))[0].places == (4, 9)
    blind = "\n".join(line.partition(";")[2] for line in table([None, *SUMS, None]).splitlines())
    assert faults(lambda: reveil.anonymize(write(tmp_path, blind), LONE))[0].code == "R130"
    blind = "\n".join(line.partition(";")[2] for line in table([None, 3, 4, "total"]).splitlines())
    assert faults(lambda: reveil.anonymize(write(tmp_path, blind), LONE))[0].code == "R130"


def test_people_are_no_sums(tmp_path: Path) -> None:
    """A value called total that others have too; a person of that age by chance; a name that begins like one."""
    rows = [["Sumner", 30, 1, "total"], ["Totalis", 31, 2, "total"], ["p", SUMS[0] + 61, 5, "total"]]
    assert reveil.anonymize(write(tmp_path, table(*rows)), POLICY).certificate.holds
    few = pl.DataFrame({"name": ["a", "b", "c"], "age": [20, 21, 41], "pay": [1, 2, 3], "ill": ["x"] * 3})
    assert reveil.anonymize(few, POLICY).certificate.holds


def test_what_is_accepted_is_published(tmp_path: Path) -> None:
    path = write(tmp_path, table(["Gesamt", 30, 400, "flu"]))
    assert reveil.anonymize(path, POLICY, accept=["total-rows"]).certificate.counts["input rows"] == 9
    assert faults(lambda: reveil.anonymize(path, POLICY, accept=["same-table"]))[0].code == "R130"
    assert faults(lambda: reveil.anonymize(path, POLICY, accept=["totals"]))[0].code == "R136"


def test_a_header_in_the_table(tmp_path: Path) -> None:
    found = faults(lambda: reveil.anonymize(write(tmp_path, table(header=True)), POLICY))
    assert (found[0].code, found[0].places) == ("R131", (4,))
    assert "R227" in {fault.code for fault in found}  # numbers but for the name: told after the cause
    typed = pl.DataFrame({"name": ["name", "a"], "age": [1, 2], "pay": [1, 2], "ill": ["ill", "x"]})
    assert reveil.anonymize(typed, POLICY).certificate.holds


@pytest.mark.parametrize("first", [0, 1])
def test_an_index_without_a_name(first: int, tmp_path: Path) -> None:
    lines = table().splitlines()
    numbered = [";" + lines[0], *(f"{n};{line}" for n, line in enumerate(lines[1:], first))]
    path = write(tmp_path, "\n".join(numbered))
    assert faults(lambda: reveil.anonymize(path, POLICY))[0].code == "R132"
    accepted = reveil.anonymize(path, POLICY, accept=["row-index"])
    assert accepted.certificate.counts["input rows"] == 8
    path.write_text(path.read_text().replace("\n3;", "\n7;"))
    assert faults(lambda: reveil.anonymize(path, POLICY, accept=["row-index"]))[0].code == "R107"


def test_an_index_by_its_name() -> None:
    people = pl.DataFrame(ROWS, schema=list(COLUMNS), orient="row").with_row_index("Unnamed: 0")
    found = faults(lambda: reveil.anonymize(people, POLICY))
    assert [fault.code for fault in found] == ["R132", "R211"]
    assert reveil.anonymize(people, POLICY, accept=["row-index"]).certificate.holds
    known = {**POLICY, "columns": {**COLUMNS, "Unnamed: 0": "drop"}}
    assert reveil.anonymize(people, known).certificate.holds
    used = {**POLICY, "columns": {**COLUMNS, "name": "drop", "Unnamed: 0": "identifier"}}
    assert faults(lambda: reveil.anonymize(people, used))[0].code == "R132"
    assert reveil.anonymize(people, used, accept=["row-index"]).certificate.holds


def test_a_workbook_of_two_sheets(tmp_path: Path) -> None:
    rows = [list(COLUMNS), *ROWS]
    path = workbook(tmp_path / "people.xlsx", {"people": rows, "notes": [["made by Ann"]], "empty": []})
    found = faults(lambda: reveil.anonymize(path, POLICY))
    assert [fault.code for fault in found] == ["R133"] and "'notes'" in found[0].message
    assert reveil.anonymize(path, POLICY, accept=["several-sheets"]).certificate.holds
    assert reveil.anonymize(path, {**POLICY, "input": {"sheet": "people"}}).certificate.holds
    one = workbook(tmp_path / "one.xlsx", {"people": rows, "empty": []})
    assert reveil.anonymize(one, POLICY).certificate.holds


def test_the_same_table_twice(tmp_path: Path) -> None:
    series = reveil.open_series(POLICY, home=tmp_path / "home")
    path = write(tmp_path, table())
    series.publish(path)
    shuffled = pl.DataFrame(ROWS, schema=list(COLUMNS), orient="row").sample(fraction=1, shuffle=True, seed=1)
    for again in (path, shuffled):
        assert faults(lambda again=again: series.publish(again))[0].code == "R134"
        assert faults(lambda again=again: series.plan(again))[0].code == "R134"
    changed = shuffled.with_columns(age=pl.col("age") + 1)
    assert series.publish(changed).number == 2
    assert "release 1" in faults(lambda: series.publish(path))[0].message
    assert series.publish(path, accept=["same-table"]).number == 3


def dated(first: date, rows: int, rng: np.random.Generator, start: int = 0) -> pl.DataFrame:
    days = [first + timedelta(days=int(n)) for n in rng.integers(0, 30, rows)]
    people = {"name": [f"p{start + n}" for n in range(rows)], "born": [date(1950, 1, 1)] * rows, "seen": days}
    born = [date(1950, 1, 1) + timedelta(days=int(n)) for n in rng.integers(0, 18_000, rows)]
    return pl.DataFrame({**people, "born": born})


@pytest.mark.parametrize("role", ["quasi", "drop"])
def test_an_older_table_after_a_newer_one(role: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    policy = {"columns": {"name": "identifier", "born": "quasi", "seen": role}, "guarantee": {"k": 2}}
    series = reveil.open_series(policy, home=tmp_path / "home")
    march, february, april = (dated(date(2024, month, 1), 60, rng) for month in (3, 2, 4))
    born = march["born"]
    series.publish(march)
    born = born.shuffle(seed=1)
    found = faults(lambda: series.publish(february.with_columns(born)))
    assert [(fault.code, fault.where) for fault in found] == [("R135", "column 'seen'")]
    assert series.plan(february.with_columns(born), accept=["older-table"]).number == 2
    assert series.publish(april.with_columns(born)).number == 2


def test_days_of_birth_are_no_alarm(tmp_path: Path) -> None:
    """One in ten leave, the youngest among them, twenty times."""
    rng = np.random.default_rng(5)
    policy = {"columns": {"name": "identifier", "born": "quasi", "seen": "drop"}, "guarantee": {"k": 2}}
    series = reveil.open_series(policy, home=tmp_path / "home")
    people = dated(date(2024, 1, 1), 200, rng).drop("seen").with_columns(seen=pl.lit("x"))
    for number in range(5):
        series.publish(people)
        fresh = dated(date(2024, 1, 1), 20, rng, 1_000 * (number + 1)).drop("seen").with_columns(seen=pl.lit("x"))
        youngest = people.sort("born")[:-2]
        people = pl.concat([youngest.sample(180, seed=number), fresh])


def test_on_a_terminal_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, table(["Gesamt", 30, 400, "flu"]))
    toml = "".join(f'{name} = "{role}"\n' for name, role in COLUMNS.items())
    Path("reveil.toml").write_text(f"[columns]\n{toml}[guarantee]\nk = 2\n")
    code, _, err = cli("publish", str(path))
    assert code == 2 and "R130" in err and "--accept total-rows" in err and "[y/N]" not in err
    monkeypatch.setattr("reveil.cli.terminal.can_ask", lambda: True)
    for answer, wanted in (("\n", 2), ("no\n", 2), ("", 2), ("y\n", 0)):
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        code, _, err = cli("publish", str(path))
        assert code == wanted and "total-rows" in err and "[y/N]" in err
    code, out, err = cli("publish", str(path), "--json")  # programs are not asked
    assert code == 2 and "R130" in out and "[y/N]" not in err
    code, _, err = cli("publish", str(path), "--accept", "same-table,total-rows")
    assert code == 0
    assert cli("plan", str(path), "--accept", "everything")[0] == 2


def test_specs_carry_what_is_accepted(tmp_path: Path) -> None:
    spec = load_spec({"job": "publish", "table": "t.csv", "policy": "p.toml", "accept": ["same-table"]})
    assert isinstance(spec, PublishSpec) and spec.to_dict()["accept"] == ["same-table"]


def test_counting_looks_at_no_rows(tmp_path: Path) -> None:
    """One row must not decide whether a table is counted; it counts as one person at most."""
    dp = {"epsilon": 1, "bins": {"ill": ["flu", "cold"]}, "counts": [{"name": "a", "by": ["ill"], "spend": "0.5"}]}
    policy = {"columns": COLUMNS, "input": {"encoding": "utf-8"}, "dp": dp}
    path = write(tmp_path, table(["Summe", *SUMS, None], header=True))
    assert count(path, policy, home=tmp_path / "home").number == 1
    book = workbook(tmp_path / "people.xlsx", {"people": [list(COLUMNS), *ROWS], "notes": [["x"]]})
    policy = {**policy, "input": {}}
    assert faults(lambda: count(book, policy, home=tmp_path / "home"))[0].code == "R133"
    assert count(book, policy, home=tmp_path / "home", accept=["several-sheets"]).number == 2


def test_perturbing_notices_sums(tmp_path: Path) -> None:
    policy = {"columns": COLUMNS, "perturb": [{"method": "microaggregate", "columns": ["age"], "k": 3}]}
    path = write(tmp_path, table(["Summe", 30, 400, "flu"]))
    assert faults(lambda: reveil.perturb(path, policy))[0].code == "R130"
    assert reveil.perturb(path, policy, accept=["total-rows"]).table.height == 9


# --- releases that are worth nothing


@pytest.mark.parametrize(
    "promise",
    [
        {"k": 1},
        {"model": "l-diversity", "l": 1},
        {"model": "l-diversity", "l": 1, "diversity": "entropy"},
        {"model": "t-closeness", "t": 1},
        {"model": "alpha-k", "alpha": 1, "k": 2},
        {"model": "epsilon-m", "epsilon": 1, "m": 1},
        {"model": "presence", "population": "all.csv", "delta_max": 1},
        {"model": "m-invariance", "m": 1},
        {"model": "historical-safety", "m": 3, "n": 1},
        {"model": "compromise-safety", "m": 3, "tau": 1},
        {"model": "m-distinct", "m": 1},
        {"model": "global", "l": 1, "strategy": "greedy"},
        {"model": "l-diversity", "l": 2, "k": 1},
    ],
)
def test_a_promise_of_nothing_is_refused(promise: dict[str, Any]) -> None:
    found = faults(lambda: reveil.load_policy({"columns": COLUMNS, "guarantee": promise}))
    assert any("promises nothing" in fault.message or "hides nothing" in fault.message for fault in found)


def test_a_release_of_nobody_is_refused(tmp_path: Path) -> None:
    rows = [[f"p{n}", 20 + n, n, "flu"] for n in range(6)]
    people = pl.DataFrame(rows, schema=list(COLUMNS), orient="row")
    promise = {"model": "l-diversity", "l": 2}
    for infeasible in ("withhold", "refuse"):
        policy = {**POLICY, "guarantee": promise, "method": {"infeasible": infeasible}}
        for call in (
            lambda policy=policy: reveil.anonymize(people, policy, out=tmp_path / "out"),
            lambda policy=policy: reveil.open_series(policy, home=tmp_path / "home").plan(people),
            lambda policy=policy: reveil.open_series(policy, home=tmp_path / "home").publish(people),
        ):
            with pytest.raises(InfeasibleError):
                call()
    assert not (tmp_path / "out").exists() and not (tmp_path / "home").exists()
