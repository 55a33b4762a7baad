"""Publish, verify, audit and report give one verdict in the same words; plain sentences follow from the exact facts."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from reveil.audit.audit import audit
from reveil.audit.input.observed import from_groups
from reveil.audit.result.audit_report import html
from reveil.audit.result.screen import lines
from reveil.policy.policy import load_policy
from reveil.policy.promise import promise_text, verdict_text
from reveil.publish import open_series
from reveil.report.toml_text import toml_text
from support import cli

COLUMNS = {"name": "identifier", "age": "quasi", "illness": "sensitive"}
FAMILIES = {"x": ["u"], "u": ["x"], "y": ["v"], "v": ["y"], "z": ["w"], "w": ["z"]}
PROMISES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "compromise-safety": (
        {"change": "never"},
        {"m": 3},
        "whoever has all releases and knows 1 person guesses nobody else's 'illness' with more than 1/2",
    ),
    "m-invariance": (
        {"change": "never"},
        {"m": 3},
        "whoever has all releases guesses nobody's 'illness' with more than 1/3",
    ),
    "historical-safety": (
        {"change": "never"},
        {"m": 3, "n": 2},
        "comparing releases ties nobody to fewer than 2 others",
    ),
    "global": (
        {"change": "freely"},
        {"l": 2, "strategy": "constant-ratio", "horizon": 1, "protect": ["x"]},
        "over all releases together nobody is linked to a protected value of 'illness' with more than 1/2",
    ),
    "m-distinct": (
        {"change": "transitions", "transitions": FAMILIES},
        {"m": 3},
        "whoever has all releases and knows 1 person guesses nobody else's 'illness' with more than 1/2",
    ),
    "m-distinct-star": (
        {"change": "transitions", "transitions": FAMILIES},
        {"m": 3, "view": "individual"},
        "whoever has all releases and follows one person alone guesses nobody's 'illness' with more than 1/3",
    ),
}
TABLE = pl.DataFrame({"name": list("abcdef"), "age": [20, 21, 22, 40, 41, 42], "illness": list("xyzxyz")})


@pytest.mark.parametrize("model", PROMISES)
def test_one_verdict_everywhere(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values, terms, promise = PROMISES[model]
    policy = {"columns": COLUMNS, "values": values, "guarantee": {"model": model, **terms}}
    said = verdict_text(promise, True)
    release = open_series(policy, home=tmp_path / "home").publish(TABLE, seed=1)
    assert promise_text(load_policy(policy)) == promise and release.certificate.verdict == said
    assert release.path is not None
    for report in ("report.html", "report-external.html"):
        assert said.replace("'", "&#39;") in (release.path / "private" / report).read_text(encoding="utf-8")
    found = open_series(policy, home=tmp_path / "home").audit()
    if model != "historical-safety":  # promises no bound on a guess: the audit speaks of certainty
        assert found.headline == said and said in " ".join(lines(found).split())
        assert said.replace("'", "&#39;") in html(found) and found.to_dict()["verdict"] == said
    monkeypatch.chdir(tmp_path)
    Path("reveil.toml").write_text(toml_text(policy), encoding="utf-8")
    code, out, _ = cli("verify", "--home", "home")
    assert code == 0 and f"Release 1: {said}" in out
    code, out, _ = cli("show", "--home", "home")
    assert code == 0 and said in out


def test_a_broken_promise_is_one_for_everybody() -> None:
    policy = {"columns": COLUMNS, "values": {"change": "never"}, "guarantee": {"model": "m-invariance", "m": 3}}
    found = audit(from_groups([[("abc", "xyz")], [("abd", "xyw")]]), policy=policy)
    assert not found.holds
    assert found.headline == verdict_text(promise_text(load_policy(policy)), False)
    assert "The promise does not hold." in lines(found) and "The promise does not hold." in html(found)


def test_what_several_people_together_tell_is_outside_of_a_promise_about_each_alone() -> None:
    """Seed 003's second example of section 3: one by one two values stay, together there is one world."""
    moves = {"a": ["d", "f"], "b": ["c", "e"], "x": ["d", "e"], "y": ["c", "e", "f"]}
    seen = from_groups([[("AB", "ab"), ("CD", "xy")], [("AC", "cd"), ("BD", "ef")]])
    guarantee = {"model": "m-distinct", "m": 2, "view": "individual"}
    policy = {"columns": COLUMNS, "values": {"change": "transitions", "transitions": moves}, "guarantee": guarantee}
    found = audit(seen, policy=policy)
    assert found.summary["exposed"] == 4 and found.holds
    assert any("putting several people together" in text for text in found.verdict)
    joint = audit(seen, policy={**policy, "guarantee": {"model": "m-distinct", "m": 2, "compromised": 0}})
    assert not joint.holds


@pytest.mark.parametrize("terms", [{"protect": ["x"]}, {"harmless": ["y"]}, {}])
def test_the_plain_sentence_of_global_is_true(terms: dict[str, Any], tmp_path: Path) -> None:
    """y has most of the rows and needs no protection: the plain sentence must not speak of it."""
    policy = {
        "columns": COLUMNS,
        "values": {"change": "freely"},
        "guarantee": {"model": "global", "l": "10/9" if not terms else 2, "strategy": "greedy", **terms},
        "method": {"publish": "generalized"},
    }
    table = TABLE.with_columns(illness=pl.Series(list("xyyyyy")))
    release = open_series(policy, home=tmp_path / "home").publish(table, seed=1)
    (verdict,) = release.certificate.verdicts
    largest = max(
        Fraction(group["illness"].to_list().count(value), group.height)
        for group in release.table.partition_by("group")
        for value in ("x" if terms else "xy")
    )
    assert Fraction(verdict["worst"]) == largest
    assert f"at most {float(largest):.1%}" in verdict["plain"]
    assert ("certain protected" in verdict["plain"]) == bool(terms)


def test_linkability_near_one_is_said_in_amber(tmp_path: Path) -> None:
    policy = {"columns": COLUMNS, "values": {"change": "never"}, "guarantee": {"model": "compromise-safety", "m": 3}}
    series = open_series(policy, home=tmp_path / "home")
    for seed in (1, 2):
        release = series.publish(TABLE, seed=seed, accept=["same-table"])
    assert release.path is not None
    report = (release.path / "private" / "report.html").read_text(encoding="utf-8")
    warning = report[report.index('class="warning"') :]
    assert "Linkability" in warning[: warning.index("</div>")]
    found = series.audit()
    (attack,) = [one for one in found.attacks if one.name == "linkability"]
    assert attack.rate >= 0.9 and "bar amber" in html(found)
    assert "What this does not give" in lines(found) and "Linkability" in lines(found)
