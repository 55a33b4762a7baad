"""The adversary knows everybody who was put in, also those whom a release does not show."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from reveil.audit.audit import audit
from reveil.audit.input.left_out import LeftOut, what_it_tells
from reveil.audit.input.observed import from_groups
from reveil.audit.result.audit_report import html
from reveil.audit.result.screen import left_out_texts, lines
from reveil.jobs.specs import AffectedSpec
from reveil.policy.policy import load_policy
from reveil.policy.reasons import BY_VALUE, CROWD, DRAWN, FEW, REASONS
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
        "people": 2, "reasons": {REASONS[BY_VALUE]: 2}, "by_value": 2, "guesses": 2, "guessed_right": 2,
        "shown_later": 0,
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
    assert told["people"] == 3 and told["reasons"] == {REASONS[FEW]: 1, REASONS[BY_VALUE]: 2}


def test_showing_them_later_breaks_the_promise() -> None:
    """As an earlier version did: the group and what waiting told are put together."""
    seen = from_groups([[("abc", "xyz")], [("abc", "xyz"), ("def", "xyz")]])
    number = {name: n for n, name in enumerate(seen.persons)}
    left = LeftOut(np.array([number["d"]]), np.array([0]), np.array([seen.values.index("z")]))
    policy = load_policy(POLICY)
    told = what_it_tells(seen, left, policy, policy.guarantee.headline.protects)
    assert told.reason.tolist() == [BY_VALUE] and told.guessed.all() and told.later.tolist() == [number["d"]]
    found = audit(seen, policy=POLICY, left_out=left)
    assert not found.holds and "The promise does not hold" in found.headline
    assert any("left out before for a value that was too frequent" in text for text in found.verdict)


def test_harmless_values_are_nobodys_secret() -> None:
    policy = load_policy({**POLICY, "guarantee": {"model": "compromise-safety", "m": 3, "harmless": ["h"]}})
    seen = from_groups([[("abcd", "hhhv")]])
    names = seen.persons.to_list()
    left = LeftOut(np.array([len(names)]), np.array([0]), np.array([-1]))
    assert seen.values[what_it_tells(seen, left, policy, policy.guarantee.headline.protects).named[0]] == "v"


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


WAIT: dict[str, Any] = {
    **POLICY,
    "guarantee": {"model": "compromise-safety", "m": 3, "compromised": 0, "refill": "never"},
    "method": {"infeasible": "wait"},
}


def reasons_of(series: Series, table: pl.DataFrame, home: Path) -> tuple[dict[str, int], dict[str, int]]:
    """How many people of the latest table wait for which reason: as the steward is told, and as the audit finds it."""
    named = AffectedSpec(WAIT, table, None, home).run().people
    last = [line.split(": was in the table and is not shown: ")[1] for line in lines_of_latest(series, named)]
    return dict(Counter(why for _, _, why in named)), dict(Counter(last))


def lines_of_latest(series: Series, named: Any) -> list[str]:
    found, number = series.audit(people=[name for name, _, _ in named]), len(series.releases)
    told = [text for text in left_out_texts(found) if f", release {number}: " in text]
    return [text.split(". Best guess")[0].removesuffix(".") for text in told]


def test_who_waits_by_lot_or_in_a_crowd_is_not_said_to_be_chosen_by_value(tmp_path: Path) -> None:
    """Planner, steward and audit give everybody the same reason."""
    series = open_series(WAIT, home=tmp_path / "home")
    series.publish(people("abc", "xyz"), seed=1)
    few = people("abcde", "xyzxy")
    assert series.publish(few, seed=1).certificate.withheld == {REASONS[FEW]: 2}
    assert reasons_of(series, few, tmp_path / "home") == ({REASONS[FEW]: 2},) * 2
    crowd = people("abcdefgh", "xyzxyyyy")
    assert series.publish(crowd, seed=1).certificate.withheld == {REASONS[CROWD]: 5}
    assert reasons_of(series, crowd, tmp_path / "home") == ({REASONS[CROWD]: 5},) * 2
    many = people("abcdefghijklmnopqrstuvwxyz", "xyzxyyyy" + "xyz" * 5 + "xyy")
    drawn = series.publish(many, seed=1).certificate.withheld
    assert set(drawn) == {REASONS[CROWD], REASONS[DRAWN]}
    assert reasons_of(series, many, tmp_path / "home") == (drawn, drawn)
    found = series.audit()
    (text,) = [one for one in found.verdict if "not shown by some release" in one]
    assert "because of their value" not in text and f"{drawn[REASONS[DRAWN]]:,}: drawn by lot" in text
    assert "Whoever knows that they were in the table, and the rule, guesses a value right in" in text
    told = found.summary["left_out"]
    assert told["by_value"] == 0 and told["reasons"] == drawn and told["guesses"] == sum(drawn.values())
    assert found.holds
