"""What was found by attacking the program itself (SOUNDNESS, section 7), where no other test has the case.

The others are beside what they are about: `section7.toml` lists every finding with its tests. The attacks at large are
in bench/leaks.py.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import reveil
from reveil.audit.audit import audit
from reveil.audit.input.observed import from_groups
from reveil.base.errors import InfeasibleError, InputError

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import leaks

COLUMNS = {"name": "identifier", "age": "quasi", "illness": "sensitive"}


CHAIN = {"All": {"Secondary": {"High School": ["9th", "10th"]}, "Higher": ["MA"]}}
PRESENT: dict[str, tuple[dict[str, Any], list[str], dict[str, set[str]]]] = {  # cells, and whom they stand for
    "codes of unequal length": (
        {"role": "quasi", "prefixes": [3, 2]},
        ["123", "1234", "1299", "88", "881"],
        {"123*": {"123", "1234"}, "12**": {"123", "1234", "1299"}, "88**": {"88", "881"}},
    ),
    "labels over a single label": (
        {"role": "quasi", "hierarchy": CHAIN},
        ["9th", "10th", "MA"],
        {"Secondary": {"9th", "10th"}, "High School": {"9th", "10th"}, "Higher": {"MA"}},
    ),
    "odd names": (
        {"role": "quasi", "type": "category"},
        ["4*", "47", "{47}", "1-3", "2"],
        {"4*": {"4*"}, "47": {"47"}, '{"{47}"}': {"{47}"}, "1-3": {"1-3"}, "{47,2}": {"47", "2"}},
    ),
}


@pytest.mark.parametrize("kind", PRESENT)
def test_presence_counts_whom_a_cell_stands_for(kind: str, tmp_path: Path) -> None:
    """delta-presence: rows of a cell, of the people of the population behind it; by the rule, not by the look."""
    column, codes, cells = PRESENT[kind]
    pl.DataFrame({"code": codes * 3}).write_csv(tmp_path / "people.csv")
    policy = {
        "columns": {"code": column},
        "guarantee": {"k": 2, "population": str(tmp_path / "people.csv"), "delta_min": 0, "delta_max": "0.99"},
        "method": {"recode": "sets"},
    }
    for cell, people in cells.items():
        certificate = reveil.check(pl.DataFrame({"code": [cell]}), policy)
        (verdict,) = [v for v in certificate.verdicts if v["guarantee"] == "presence"]
        assert verdict["worst"] == str(Fraction(1, 3 * len(people))), cell


def limits(steps: list[leaks.Step], words: str) -> list[str]:
    return [text for text in steps[-1].release.certificate.limits if words in text]


def test_counterfeits_named_by_refills_are_certified_with_their_figure(tmp_path: Path) -> None:
    """The verifier's figure is the one that the attack has from outside."""
    guarantee = {"model": "compromise-safety", "m": 6, "refill": 3}
    for seed in range(6):
        folder = tmp_path / str(seed)
        folder.mkdir()
        steps = leaks.series(leaks.arriving(90, seed, 6, 0.25), guarantee, folder)
        found = leaks.named_by_refill(steps)
        told = limits(steps, "Refilled places")
        assert bool(told) == bool(found[1])
        if told:
            assert f"is right in {found[0]:,} of them" in told[0] and f"in {found[1]:,} group" in told[0]
            return
    pytest.fail("nothing was refilled in six series")


def test_leavers_under_plain_lists_are_certified_with_their_figure(tmp_path: Path) -> None:
    leak = leaks.leavers(240, 1, tmp_path)
    assert leak.stated.startswith("limit: Leavers") and leak.hits / leak.guesses == pytest.approx(leak.figure, abs=0.01)


def test_cohorts_that_end_are_certified_with_their_figure(tmp_path: Path) -> None:
    leak = leaks.ended(200, 1, tmp_path)
    assert leak.stated.startswith("limit: Cohorts that end")
    assert leak.hits / leak.guesses == pytest.approx(leak.figure, abs=0.01)


def test_a_home_without_an_anchor_is_a_limit(tmp_path: Path) -> None:
    policy = {"columns": COLUMNS, "values": {"change": "never"}, "guarantee": {"model": "m-invariance", "m": 2}}
    table = pl.DataFrame({"name": list("abcd"), "age": [1, 2, 3, 4], "illness": list("xyxy")})
    plain = reveil.open_series(policy, home=tmp_path / "plain").publish(table, seed=1)
    anchored = {**policy, "output": {"anchor": str(tmp_path / "anchor.json")}}
    kept = reveil.open_series(anchored, home=tmp_path / "kept").publish(table, seed=1)
    told = [any("continued twice" in text for text in one.certificate.limits) for one in (plain, kept)]
    assert told == [True, False]


def test_another_signature_is_seen_through() -> None:
    """A redrawn multiset, or a second home with other values, makes people certain; the audit finds them."""
    policy = {"columns": COLUMNS, "values": {"change": "never"}, "guarantee": {"model": "compromise-safety", "m": 3}}
    assert not audit(from_groups([[("abc", "xyz")], [("ade", "xvw")]]), policy=policy).holds
    found = audit(from_groups([[("ab", "xy")], [("b", "xz")]]), policy=policy)
    assert {row["person"]: row["value"] for row in found.certain.to_dicts()} == {"a": "y", "b": "x"}


def test_counterfeits_that_go_on_do_not_name_the_leaver() -> None:
    """{a, b} and then {a, c}, one of two having left: c was b. Kept values would say that the leaver had a; places that
    go on leave both open."""
    moves = {"a": [], "b": ["c"], "c": []}
    guarantee = {"model": "m-distinct", "m": 2, "compromised": 0}
    policy = {"columns": COLUMNS, "values": {"change": "transitions", "transitions": moves}, "guarantee": guarantee}
    found = audit(from_groups([[("AB", "ab")], [("A", "ac")]]), policy=policy)
    assert found.holds and set(found.posterior["probability"]) == {0.5}


def test_the_gate_does_not_open_for_people_who_match_nothing() -> None:
    one = pl.DataFrame({"age": ["2*", "2*"], "illness": ["flu", "cold"]})
    who = pl.DataFrame({"name": ["Ann", "Bob", "Cid"], "age": [21, 28, 63], "release": [1, 1, 1]})
    with pytest.raises(InputError, match="R724"):
        audit([one], who)
    found = audit([one], who, accept_missing=True)
    assert found.summary["unmatched"] == 1 and "1 person of the population fits no group" in str(found.unmatched)


def test_measure_and_link_read_short_codes_and_chains_as_they_were_written(tmp_path: Path) -> None:
    """Everybody who was published fits at least one row, and a cell has lost what it stands for."""
    columns: dict[str, Any] = {
        "name": "identifier",
        "zip": {"role": "quasi", "prefixes": [3, 2]},
        "school": {"role": "quasi", "hierarchy": CHAIN},
        "illness": "sensitive",
    }
    table = pl.DataFrame(
        {
            "name": list("abcdef"),
            "zip": ["123", "1234", "123", "1234", "88", "881"],
            "school": ["9th", "10th", "9th", "10th", "MA", "MA"],
            "illness": list("uvuvuv"),
        }
    )
    policy = {"columns": columns, "guarantee": {"k": 2}}
    release = reveil.anonymize(table, policy, seed=1, out=tmp_path / "out")
    listed = table.drop("illness")
    assert reveil.link(release.path, listed, policy).people["rows"].min() >= 2  # type: ignore[operator]
    found = reveil.measure(release.path, table, policy, queries=0)
    assert found.suppressed == 0 and all(0 <= loss < 1 for loss in found.ncp.values())
    assert audit([release.path], listed.with_columns(release=pl.lit(1)), policy=policy).summary["unmatched"] == 0


def test_k_counts_people_and_not_counterfeits(tmp_path: Path) -> None:
    """Two of four leave: two people beside two counterfeits are no group of three."""
    table = pl.DataFrame({"name": list("abcd"), "age": [1, 2, 3, 4], "illness": list("wxyz")})
    policy: dict[str, Any] = {
        "columns": COLUMNS,
        "values": {"change": "never"},
        "guarantee": {"model": "compromise-safety", "m": 4, "k": 3},
        "method": {"publish": "generalized", "infeasible": "refuse"},
    }
    series = reveil.open_series(policy, home=tmp_path / "home")
    series.publish(table, seed=1)
    with pytest.raises(InfeasibleError, match="R448"):
        series.publish(table[:2], seed=2)
    kept = reveil.open_series({**policy, "method": {"infeasible": "withhold"}}, home=tmp_path / "home")
    assert (kept.publish(table[:3], seed=2).groups >= 0).all()


def test_leaving_that_depends_on_values_is_an_assumption_with_a_price(tmp_path: Path) -> None:
    """Of cohort abc, leaving with chances 1/2, 1/10, 1/10: who left alone had a with 9/11; the certificate warns."""
    chances = {"a": Fraction(1, 2), "b": Fraction(1, 10), "c": Fraction(1, 10)}
    alone = {v: p * prod(1 - q for w, q in chances.items() if w != v) for v, p in chances.items()}
    assert alone["a"] / sum(alone.values()) == Fraction(9, 11)
    policy = {"columns": COLUMNS, "values": {"change": "never"}, "guarantee": {"model": "compromise-safety", "m": 3}}
    table = pl.DataFrame({"name": list("xyz"), "age": [1, 2, 3], "illness": list("abc")})
    told = reveil.open_series(policy, home=tmp_path / "home").publish(table, seed=1).certificate.assumptions
    assert any("Who leaves does not depend on their value" in text and "people die" in text for text in told)


def test_who_was_away_in_the_middle_makes_both_certain() -> None:
    """a may become b and never goes back. {a, x}, {b, x}, {a, x}: whoever is there all the time cannot have had a."""
    moves = {"a": ["b"], "b": [], "x": []}
    found = audit(from_groups([[("AB", "ax")], [("A", "bx")], [("AB", "ax")]]), change="transitions", transitions=moves)
    assert {(row["person"], row["value"]) for row in found.certain.to_dicts()} == {("A", "x"), ("B", "a")}


def test_no_cohort_is_founded_with_counterfeits(tmp_path: Path) -> None:
    """Where base rates are known, a newcomer who is alone beside a counterfeit has the frequent value with 3/4."""
    guarantee = {"model": "compromise-safety", "m": 2, "compromised": 0, "refill": "never", "k": 2}
    policy = {
        "columns": COLUMNS,
        "values": {"change": "never"},
        "guarantee": guarantee,
        "method": {"publish": "anatomy"},
    }
    first = pl.DataFrame({"name": list("abcd"), "age": [1, 2, 3, 4], "illness": list("xyxy")})
    one_more = pl.DataFrame({"name": ["e"], "age": [5], "illness": ["x"]})
    series = reveil.open_series(policy, home=tmp_path / "home")
    assert series.publish(first, seed=1).counterfeits["count"].sum() == 0
    second = series.publish(pl.concat([first, one_more]), seed=1)
    assert second.groups[4] == -1 and second.counterfeits["count"].sum() == 0


def test_every_finding_is_held_down_by_tests_that_exist() -> None:
    tests = Path(__file__).parents[1]
    findings = tomllib.loads((Path(__file__).parent / "section7.toml").read_text(encoding="utf-8"))["finding"]
    named = {name for finding in findings for name in finding["tests"]}
    assert all(finding["tests"] for finding in findings)
    there = {
        f"{file}::{node.name.removeprefix('test_')}"
        for file in {name.split("::")[0] for name in named}
        for node in ast.walk(ast.parse((tests / file).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    assert named <= there, sorted(named - there)
