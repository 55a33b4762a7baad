"""Values by range and by label: what is protected, planned, judged and audited."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import reveil
from reveil.base.errors import InputError
from reveil.guarantees.selection import Selection
from reveil.policy.policy import load_policy, recorded_policy

TREE = {"infectious": {"viral": ["flu", "HIV"], "bacterial": ["TB"]}, "other": ["none", "asthma", "burn"]}


def people(values: list[Any], size: int = 60) -> pl.DataFrame:
    rng = random.Random(3)
    return pl.DataFrame(
        {"who": [f"p{i}" for i in range(size)], "age": [rng.randrange(20, 70) for _ in range(size)]}
    ).with_columns(pl.Series("value", [values[i % len(values)] for i in range(size)]))


def policy(guarantee: dict[str, Any], change: str = "never", **value: Any) -> dict[str, Any]:
    columns = {"who": "identifier", "age": "quasi", "value": {"role": "sensitive", **value}}
    return {"columns": columns, "values": {"change": change}, "guarantee": guarantee}


def test_a_label_means_every_value_below_it(tmp_path: Path) -> None:
    asked = load_policy(policy({"model": "compromise-safety", "m": 3, "harmless": ["other"]}, hierarchy=TREE))
    protects = asked.guarantee.headline.protects
    assert [protects(value) for value in ("flu", "HIV", "TB", "none", "burn", "other")] == [True] * 3 + [False] * 3
    assert not recorded_policy(asked.fixed(), asked).guarantee.headline.protects("burn")
    (tmp_path / "tree.csv").write_text("flu;viral\nHIV;viral\nnone;other\n")
    from_file = policy(
        {"model": "compromise-safety", "m": 3, "harmless": ["other"]}, hierarchy=str(tmp_path / "tree.csv")
    )
    assert not load_policy(from_file).guarantee.headline.protects("none")


def test_harmless_by_label_is_the_same_release_as_by_names(tmp_path: Path) -> None:
    table = people(["flu", "HIV", "TB", "none", "none", "asthma", "none", "burn"])
    made = []
    for place, names in (("a", ["other"]), ("b", ["none", "asthma", "burn"])):
        asked = policy({"model": "compromise-safety", "m": 3, "harmless": names}, hierarchy=TREE)
        series = reveil.open_series(asked, tmp_path / place)
        series._first_key = bytes(32)
        made.append(series.publish(table, seed=1))
        assert series.audit(share="0").holds
    assert made[0].table.equals(made[1].table)
    assert made[0].certificate.verdicts[-1]["worst"] == made[1].certificate.verdicts[-1]["worst"]


@pytest.mark.parametrize("entry", ["> 0", "1 to 900", ">= 1", "> 0.5"])
def test_protect_by_range_is_the_same_as_by_names(tmp_path: Path, entry: str) -> None:
    table = people([0, 0, 0, 0, 0, 0, 100, 0, 0, 250, 0, 0])
    made = []
    for place, names in (("a", [entry]), ("b", ["100", "250"])):
        terms = {"model": "global", "l": 2, "strategy": "greedy", "protect": names}
        series = reveil.open_series(policy(terms, "freely", type="number"), tmp_path / place)
        series._first_key = bytes(32)
        made.append(series.publish(table, seed=1))
    assert made[0].table.equals(made[1].table)
    assert Fraction(made[0].certificate.verdicts[-1]["worst"]) <= Fraction(1, 2)


def test_a_name_that_looks_like_a_range_is_a_name() -> None:
    terms = {"model": "global", "l": 2, "strategy": "greedy", "protect": [">50K"]}
    protects = load_policy(policy(terms, "freely")).guarantee.headline.protects
    assert protects(">50K")
    assert not protects("<=50K")


def test_what_a_label_stands_for_is_fixed_with_the_first_release(tmp_path: Path) -> None:
    tree = tmp_path / "tree.csv"
    tree.write_text("flu;rest\nHIV;viral\nTB;viral\nnone;rest\n")
    terms = {"model": "compromise-safety", "m": 2, "compromised": 0, "harmless": ["rest"]}
    asked = policy(terms, hierarchy=str(tree))
    table = people(["flu", "HIV", "TB", "none"], 40)
    reveil.open_series(asked, tmp_path / "home").publish(table, seed=1)
    tree.write_text("flu;rest\nHIV;rest\nTB;rest\nnone;rest\n")
    with pytest.raises(InputError, match=r"R502.*labels\.rest"):
        reveil.open_series(asked, tmp_path / "home").publish(table.head(30), seed=1)


@pytest.mark.parametrize(("entry", "inside"), [("<= 0.1", 0.1), (">= 0.3", 0.3), ("0.1 to 0.3", 0.3)])
def test_limits_are_decimal(entry: str, inside: float) -> None:
    assert Selection([entry]).selects(inside)
    assert not Selection(["< 0.3", "> 0.3"]).selects(0.3)


@pytest.mark.parametrize("entry", ["20 to 10", "> 5"])
def test_ranges_that_mean_nothing_are_refused(tmp_path: Path, entry: str) -> None:
    terms = {"model": "global", "l": 2, "strategy": "greedy", "protect": [entry]}
    with pytest.raises(InputError, match="R461"):
        reveil.open_series(policy(terms, "freely", type="category"), tmp_path / "home").plan(people(["flu", "none"]))


def test_what_nobody_has_heard_of_is_refused(tmp_path: Path) -> None:
    terms = {"model": "global", "l": 2, "strategy": "greedy", "protect": ["infectous"]}
    with pytest.raises(InputError, match="R461"):
        reveil.open_series(policy(terms, "freely", hierarchy=TREE), tmp_path / "home").plan(people(["flu", "none"]))
