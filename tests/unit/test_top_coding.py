"""Numbers coded at their ends: nothing beyond `bottom` and `top` is told apart, under any promise and method."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl
import pytest

import reveil
from reveil.base.errors import InputError
from reveil.measure.measure import measure
from reveil.policy.policy import load_policy


def people(rows: int, seed: int, *, whole: bool = True) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    ages = rng.integers(0, 100, rows).astype(float) if whole else (rng.random(rows) * 100).round(1)
    held: list[float | int | None] = [int(age) if whole else float(age) for age in ages.tolist()]
    held[0] = None
    return pl.DataFrame({"age": held, "sex": rng.choice(["f", "m"], rows), "ill": rng.choice(list("abcdef"), rows)})


def policy_of(promise: dict[str, Any], *, ends: dict[str, Any], **method: Any) -> dict[str, Any]:
    columns = {"age": {"role": "quasi", **ends}, "sex": "quasi", "ill": "sensitive"}
    return {"columns": columns, "guarantee": promise, "method": method}


def covers(cell: str | None, value: float | None) -> bool:
    """Read by a program of its own: a number, an interval, or an open end."""
    if cell == "*":
        return True
    if cell is None or value is None:
        return cell is None and value is None
    if found := re.fullmatch(r"(<=|>=|<)(-?[\d.]+)", cell):
        end = float(found[2])
        return {"<": value < end, "<=": value <= end, ">=": value >= end}[found[1]]
    if found := re.fullmatch(r"\[(-?[\d.]+)-(-?[\d.]+)\]", cell):
        return float(found[1]) <= value <= float(found[2])
    return float(cell) == value


def ends_of(cell: str) -> list[float]:
    return [float(number) for number in re.findall(r"[\d.]+", cell)]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    ("ends", "method"),
    [
        ({"bottom": 18, "top": 85}, {"name": "mondrian"}),
        ({"top": "89.5"}, {"name": "mondrian", "cuts": "strict"}),
        ({"bottom": 18, "top": 85}, {"name": "cell"}),
        ({"bottom": 18, "top": 85}, {"name": "sibling"}),
        ({"bottom": 18, "top": 85}, {"name": "cell", "recode": "suppress"}),
    ],
)
def test_nothing_beyond_the_ends_is_told_apart(whole: bool, ends: dict[str, Any], method: dict[str, Any]) -> None:
    table = people(120, 1, whole=whole)
    release = reveil.anonymize(table, policy_of({"k": 3}, ends=ends, **method), seed=1)
    assert release.certificate.holds
    low, high = float(ends.get("bottom", -1)), float(ends.get("top", 1000))
    shown = sorted(filter(None, release.table["age"].unique().to_list()))
    assert all(low <= end <= high for cell in shown for end in ends_of(cell))
    order = np.argsort(release.groups, kind="stable")
    assert len(order) == 120
    for cell in shown:  # every published cell is one of the people's, and each person is covered by some cell
        assert any(covers(cell, value) for value in table["age"])
    assert all(any(covers(cell, value) for cell in [*shown, None]) for value in table["age"])


def test_what_is_lost_is_what_measure_finds() -> None:
    """An open end stands for all values of the table beyond it, in the plan as in the published cells."""
    table = people(200, 3).drop_nulls()
    policy = policy_of({"k": 4}, ends={"bottom": 20, "top": 70})
    trial = reveil.compare(table, policy, schemes=["mondrian"]).trials[0]
    found = measure(reveil.anonymize(table, policy, seed=0), table, policy, queries=0)
    assert trial.columns is not None and found.ncp["age"] == pytest.approx(trial.columns["age"], abs=0.02)
    alone = policy_of({"k": 2}, ends={"bottom": 20, "top": 70}, name="cell", recode="suppress")
    assert measure(reveil.anonymize(table, alone, seed=0), table, alone, queries=0).ncp["age"] > 0


def test_groups_show_their_own_people(tmp_path: Any) -> None:
    """In a series the verifier compares each cell with the values behind it."""
    table = people(90, 5).with_columns(who=pl.Series([f"p{i}" for i in range(90)]))
    columns = {
        "who": "identifier",
        "age": {"role": "quasi", "bottom": 18, "top": 85},
        "sex": "quasi",
        "ill": "sensitive",
    }
    policy = {"columns": columns, "values": {"change": "never"}}
    policy |= {"guarantee": {"model": "compromise-safety", "m": 3, "k": 4}, "method": {"publish": "anatomy"}}
    series = reveil.open_series(policy, tmp_path / "home")
    series.publish(table, seed=1)
    second = series.publish(table[10:], seed=2)
    assert second.certificate.holds and all(found.holds for found in series.verify().values())
    assert not any("9" in cell for cell in second.table["age"].drop_nulls() if cell.startswith((">", "9")))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ({"role": "sensitive", "top": 5}, "only quasi columns of numbers"),
        ({"role": "quasi", "type": "category", "top": 5}, "only quasi columns of numbers"),
        ({"role": "quasi", "widths": [5], "top": 85}, "among its cut points"),
        ({"role": "quasi", "bottom": 85, "top": 85}, "not below top"),
    ],
)
def test_ends_that_make_no_sense_are_refused(column: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        load_policy({"columns": {"age": column, "sex": "quasi"}, "guarantee": {"k": 2}})


def test_policies_without_ends_keep_their_form() -> None:
    fixed = load_policy({"columns": {"age": "quasi"}, "guarantee": {"k": 2}}).fixed()
    assert not {"top", "bottom"} & set(fixed["columns"]["age"])
    with pytest.raises(InputError, match="R202"):
        reveil.anonymize(people(20, 1), policy_of({"k": 2}, ends={"top": "1/3"}))
