"""HIPAA's eighteen identifiers, found by names and by cells."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import reveil
from support import cli

THIS_YEAR = datetime.date.today().year


def rules(**columns: list[Any]) -> list[tuple[str, str, int]]:
    return [(one.column, one.rule, one.rows) for one in reveil.safe_harbor(pl.DataFrame(columns)).found]


@pytest.mark.parametrize(
    ("name", "cells", "found"),
    [
        ("last_name", ["Lee", "Ng", None], ("A", 2)),
        ("zip", ["021", "10115", "0213*"], ("B", 2)),
        ("zip", ["021", "036", "000"], ("B", 1)),
        ("county", ["Suffolk", "Kent"], ("B", 2)),
        ("admitted", [datetime.date(2024, 1, 2), None], ("C", 1)),
        ("seen", ["2024-03", "2024", "2024-Q1"], ("C", 2)),
        ("age", [89, 90, 91], ("C", 2)),
        ("age", ["[85-95]", "[91-95]", "80-95", "[85-99]", "[30-40]", "95+", ">90", "80-90", "[40,91)"], ("C", 8)),
        ("age", [91.5, 40.95], ("C", 1)),
        ("zip", [36, 102, 21], ("B", 2)),
        ("birth_year", [THIS_YEAR - 90, THIS_YEAR - 89, 2000], ("C", 1)),
        ("Geburtsjahr", [f"[{THIS_YEAR - 95}-{THIS_YEAR - 85}]", f"<{THIS_YEAR - 95}", None], ("C", 2)),
        ("tel", ["?", "none"], ("D", 2)),
        ("code", ["(617)555-1234", "call 617-555-1234.", "12-34"], ("D", 2)),
        ("fax_no", ["1", "2"], ("E", 2)),
        ("note", ["well", "write to ann@home.org"], ("F", 1)),
        ("code", ["078-05-1120", "x"], ("G", 1)),
        ("mrn", ["a", "b"], ("H", 2)),
        ("IBAN", ["x", "y"], ("J", 2)),
        ("passport", ["x", "y"], ("K", 2)),
        ("license_plate", ["x", "y"], ("L", 2)),
        ("page", ["https://home.org/ann", "no"], ("N", 1)),
        ("web", ["www.home.org/ann", "no"], ("N", 1)),
        ("seen_from", ["10.0.0.1", "no"], ("O", 1)),
        ("photo", ["x", "y"], ("Q", 2)),
        ("patient_id", [f"P{n}" for n in range(5)], ("R", 5)),
        ("comments", ["well", "ill"], ("R", 2)),
    ],
)
def test_each_identifier(name: str, cells: list[Any], found: tuple[str, int]) -> None:
    assert rules(**{name: cells}) == [(name, *found)]


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("zip", ["021", "101", "000", "02***"]),
        ("age", [3, 89]),
        ("age", ["[80-89]", "90+", "90 and over", ">=90", ">89", "85+", "[80,90)", "<90", "≥ 90", "[90-inf)"]),
        ("birth_year", [f"<{THIS_YEAR - 89}", f"{THIS_YEAR - 90} or earlier", str(THIS_YEAR - 89), "[2000-2009]"]),
        ("birth_weight", [1850, 3200, 1910]),
        ("decade", ["2010-2019", "2020-2029"]),
        ("year", [2023, 2024]),
        ("state", ["MA", "NY"]),
        ("diagnosis", ["I50.01", "E11.9"]),
        ("sex", ["f", "m"]),
        ("weight", [70.5, 80.25]),
    ],
)
def test_what_may_be_shown(name: str, cells: list[Any]) -> None:
    assert rules(**{name: cells}) == []


def test_postcodes_as_numbers_have_lost_zeros() -> None:
    assert rules(zip=[3601, 2139, None]) == [("zip", "B", 2), ("zip", "B", 1)]
    assert rules(zip=[36.0, 21.0, None]) == [("zip", "B", 1)]


def test_the_way_out_of_ages_is_no_finding() -> None:
    ways = {"age": [95], "birth_year": [1930]}
    (age, birth) = reveil.safe_harbor(pl.DataFrame(ways)).found
    assert str(THIS_YEAR - 89) in birth.way and str(THIS_YEAR) in birth.way
    ways = {name: [one.way.split("(")[-1].rstrip(")")] for name, one in zip(ways, (age, birth), strict=True)}
    assert rules(**ways) == []


def test_what_cannot_be_looked_into_is_said(tmp_path: Path) -> None:
    file = tmp_path / "people.parquet"
    frame = pl.DataFrame({"age": [30], "visits": [[1, 2]], "phone": [["x"]], "gone": pl.Series([None])})
    frame.write_parquet(file)
    seen = reveil.safe_harbor(file)
    assert (seen.unread, seen.clear, [one.rule for one in seen.found]) == (("visits", "phone"), False, ["D"])
    assert "not looked into: visits, phone" in repr(seen)
    frame.drop("phone").write_parquet(file)
    code, out, _ = cli("risk", str(file), "--safe-harbor")
    assert (code, "Not looked into" in out, "visits" in out) == (1, True, True)


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("zip;age\n02139;30\n101;95\n")
    code, out, _ = cli("risk", str(file), "--safe-harbor")
    assert (code, "places smaller than a state (B)" in out, "ages over 89 (C)" in out) == (1, True, True)
    assert [one["rows"] for one in json.loads(cli("risk", str(file), "--safe-harbor", "--json")[1])["found"]] == [1, 1]
    assert "R903" in cli("risk", str(file), "--safe-harbor", "--keys", "zip")[2]
    file.write_text("zip;age\n021;30\n101;55\n")
    assert cli("risk", str(file), "--safe-harbor")[0] == 0
