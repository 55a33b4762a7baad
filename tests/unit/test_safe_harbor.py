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
        ("age", ["[85-95]", "[91-95]"], ("C", 1)),
        ("tel", ["?", "none"], ("D", 2)),
        ("fax_no", ["1", "2"], ("E", 2)),
        ("note", ["well", "write to ann@home.org"], ("F", 1)),
        ("code", ["078-05-1120", "x"], ("G", 1)),
        ("mrn", ["a", "b"], ("H", 2)),
        ("IBAN", ["x", "y"], ("J", 2)),
        ("passport", ["x", "y"], ("K", 2)),
        ("license_plate", ["x", "y"], ("L", 2)),
        ("page", ["https://home.org/ann", "no"], ("N", 1)),
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
        ("age", ["[85-95]"]),
        ("year", [2023, 2024]),
        ("state", ["MA", "NY"]),
        ("diagnosis", ["I50.01", "E11.9"]),
        ("sex", ["f", "m"]),
        ("weight", [70.5, 80.25]),
    ],
)
def test_what_may_be_shown(name: str, cells: list[Any]) -> None:
    assert rules(**{name: cells}) == []


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("zip;age\n02139;30\n101;95\n")
    code, out, _ = cli("risk", str(file), "--safe-harbor")
    assert (code, "places smaller than a state (B)" in out, "ages over 89 (C)" in out) == (1, True, True)
    assert [one["rows"] for one in json.loads(cli("risk", str(file), "--safe-harbor", "--json")[1])["found"]] == [1, 1]
    assert "R903" in cli("risk", str(file), "--safe-harbor", "--keys", "zip")[2]
    file.write_text("zip;age\n021;30\n101;55\n")
    assert cli("risk", str(file), "--safe-harbor")[0] == 0
