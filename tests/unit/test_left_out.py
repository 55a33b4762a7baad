"""The adversary knows everybody who was put in, also those whom a release does not show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from reveil.audit.audit import audit
from reveil.audit.input.left_out import LeftOut, what_it_tells
from reveil.audit.input.observed import from_groups
from reveil.audit.result.audit_report import html
from reveil.audit.result.screen import lines
from reveil.policy.policy import load_policy
from reveil.publish import Series, open_series
from support import cli

POLICY: dict[str, Any] = {
    "columns": {"name": "identifier", "age": "quasi", "illness": "sensitive"},
    "values": {"change": "never"},
    "guarantee": {"model": "compromise-safety", "m": 3, "compromised": 0},
    "method": {"infeasible": "withhold"},
}


def people(names: str, values: str) -> pl.DataFrame:
    return pl.DataFrame({"name": list(names), "age": [20 + n for n in range(len(names))], "illness": list(values)})


@pytest.fixture
def made(tmp_path: Path) -> Series:
    """Eight people, of whom two are left out for their frequent value z."""
    series = open_series(POLICY, home=tmp_path / "home")
    series.publish(people("abcdefgh", "xyzxyzzz"), seed=1)
    return series


def test_people_who_are_left_out_for_their_value_are_part_of_the_audit(made: Series) -> None:
    found = made.audit()
    assert found.summary["left_out"] == {
        "people": 2, "by_value": 2, "guesses": 2, "guessed_right": 2, "shown_later": 0,
    }  # fmt: skip
    (attack,) = [one for one in found.attacks if one.name == "being left out"]
    assert attack.rate == 1 and attack.targets == 2 and attack.baseline == pytest.approx(1 / 3)
    assert found.holds  # the promise does not speak of them, and its certificate says so
    assert any("Outside the promise: 2 people" in text and "right in 2 of 2" in text for text in found.verdict)
    assert "Outside the promise" in lines(found) and "Outside the promise" in html(found)


def test_somebody_who_was_never_shown_can_be_asked_about(made: Series) -> None:
    hidden = [name for name, group in zip("abcdefgh", made.releases[0].groups, strict=True) if group < 0]
    found = made.audit(people=hidden)
    assert found.summary["exposed"] == 0
    assert f"{hidden[0]}, release 1: was in the table and is not shown" in lines(found)
    assert "guess: z" in lines(found)


def test_too_few_newcomers_tell_nothing(made: Series) -> None:
    made.publish(people("abcdefghi", "xyzxyzzzx"), seed=2)
    told = made.audit().summary["left_out"]
    assert told["people"] == 3 and told["by_value"] == 2


def test_showing_them_later_breaks_the_promise() -> None:
    """As an earlier version did: the group and what waiting told are put together."""
    seen = from_groups([[("abc", "xyz")], [("abc", "xyz"), ("def", "xyz")]])
    number = {name: n for n, name in enumerate(seen.persons)}
    left = LeftOut(np.array([number["d"]]), np.array([0]), np.array([seen.values.index("z")]))
    guarantee = load_policy(POLICY).guarantee
    told = what_it_tells(seen, left, guarantee, guarantee.headline.protects)
    assert told.by_value.tolist() == [True] and told.later.tolist() == [number["d"]]
    found = audit(seen, policy=POLICY, left_out=left)
    assert not found.holds and "The promise does not hold" in found.headline
    assert any("left out before because of their value" in text for text in found.verdict)


def test_harmless_values_are_nobodys_secret() -> None:
    policy = load_policy({**POLICY, "guarantee": {"model": "compromise-safety", "m": 3, "harmless": ["h"]}})
    seen = from_groups([[("abcd", "hhhv")]])
    names = seen.persons.to_list()
    left = LeftOut(np.array([len(names)]), np.array([0]), np.array([-1]))
    assert seen.values[what_it_tells(seen, left, policy.guarantee, policy.guarantee.headline.protects).named[0]] == "v"


def test_the_command_line_says_the_same(made: Series, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("reveil.toml").write_text(
        '[columns]\nname = "identifier"\nage = "quasi"\nillness = "sensitive"\n[values]\nchange = "never"\n'
        '[guarantee]\nmodel = "compromise-safety"\nm = 3\ncompromised = 0\n[method]\ninfeasible = "withhold"\n',
        encoding="utf-8",
    )
    code, out, _ = cli("audit", "--home", "home")
    assert code == 0 and "Outside the promise: - 2 people" in " ".join(out.split())
    code, out, _ = cli("audit", "--home", "home", "--json")
    assert json.loads(out)["summary"]["left_out"]["by_value"] == 2
