"""`reveil show N --affected TABLE`: who of a table is not shown, by name, for the steward alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from reveil.base.errors import InputError
from reveil.jobs.specs import AffectedSpec
from reveil.publish import open_series
from support import cli

POLICY: dict[str, Any] = {
    "columns": {"name": "identifier", "age": "quasi", "illness": "sensitive"},
    "values": {"change": "never"},
    "guarantee": {"model": "compromise-safety", "m": 3, "compromised": 0},
}


def people(names: str, values: str) -> pl.DataFrame:
    return pl.DataFrame({"name": list(names), "age": [20 + n for n in range(len(names))], "illness": list(values)})


def listed(policy: dict[str, Any], home: Path, table: pl.DataFrame, number: int | None = None) -> dict[str, str]:
    found = AffectedSpec(policy, table, number, home).run()
    return {person: f"{state}: {reason}" for person, state, reason in found.people}


def test_who_waits_is_named_with_the_reason(tmp_path: Path) -> None:
    series = open_series(POLICY, tmp_path / "home")
    series.publish(people("abc", "xyz"))
    second, third = people("abcde", "xyzxy"), people("abcdefgh", "xyzxyyyy")
    series.publish(second)
    few = listed(POLICY, tmp_path / "home", second)
    assert set(few) == {"d", "e"} and all("waits: newcomers are too few" in why for why in few.values())
    series.publish(third)
    crowd = listed(POLICY, tmp_path / "home", third)
    assert set(crowd) == set("defgh") and all("waits: all newcomers wait" in why for why in crowd.values())
    assert set(listed(POLICY, tmp_path / "home", second, 2)) == {"d", "e"}
    found = AffectedSpec(POLICY, people("abcd", "xyzx"), None, tmp_path / "home").run()
    assert [person for person, _, _ in found.people] == ["d"] and found.strangers == 4
    with pytest.raises(InputError, match=r"R541.*not the table of release 2: 3 people of it were not in that table"):
        listed(POLICY, tmp_path / "home", third, 2)


def test_who_is_out_for_good_is_told_apart(tmp_path: Path) -> None:
    withhold = {**POLICY, "method": {"infeasible": "withhold"}}
    table = people("abcdefgh", "xyzxyzzz")
    open_series(withhold, tmp_path / "home").publish(table)
    told = listed(withhold, tmp_path / "home", table)
    assert len(told) == 2 and all("out for good: left out because of their value" in why for why in told.values())
    refilled = {**POLICY, "guarantee": {"model": "compromise-safety", "m": 3, "compromised": 0, "refill": 1}}
    series = open_series({**refilled, "method": {"infeasible": "withhold"}}, tmp_path / "other")
    series.publish(people("abc", "xyz"))
    series.publish(people("abd", "xyz"))
    last = people("abcd", "xyzz")
    series.publish(last)
    assert listed(refilled, tmp_path / "other", last) == {"c": "out for good: place was refilled while away"}


def test_the_command_line_names_people_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("reveil.toml").write_text(
        '[columns]\nname = "identifier"\nage = "quasi"\nillness = "sensitive"\n[values]\nchange = "never"\n'
        '[guarantee]\nmodel = "compromise-safety"\nm = 3\ncompromised = 0\n',
        encoding="utf-8",
    )
    people("abc", "xyz").write_csv("one.csv")
    people("abcd", "xyzx").write_csv("two.csv")
    for file in ("one.csv", "two.csv"):
        assert cli("publish", file, "--quiet")[0] == 0
    code, out, _ = cli("show", "2", "--affected", "two.csv")
    assert code == 0 and "for you alone" in out and "d: waits (newcomers are too few" in " ".join(out.split())
    code, out, _ = cli("show", "--affected", "two.csv", "--json")
    assert json.loads(out)["people"][0]["person"] == "d"
    assert cli("show", "1", "--affected", "one.csv")[1].startswith("0 people of this table")
