"""The joint view through the whole pipeline: published, verified, reported; and refused with numbers."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import reveil
from reveil.background.transitions import relation_between, stated_weights
from reveil.base.errors import InfeasibleError
from reveil.plan.evolving import succession
from reveil.plan.evolving.disjoint import kinds_of
from reveil.plan.evolving.evolving_cohorts import AWAY, BEFORE, ENDED

FAMILIES = {"a": ["b"], "b": ["a"], "c": ["d"], "d": ["c"], "e": [], "f": []}
MIXED = {v: {w: "1/2" if w == v else "1/10" for w in "abcdef"} for v in "abcdef"}


def policy(transitions, infeasible="refuse", **guarantee):
    return {
        "columns": {"name": "identifier", "age": "quasi", "illness": "sensitive"},
        "values": {"change": "transitions", "transitions": transitions},
        "guarantee": guarantee,
        "method": {"infeasible": infeasible},
    }


def table(**illness):
    return pl.DataFrame(
        {"name": list(illness), "age": [20 + 3 * n for n in range(len(illness))], "illness": list(illness.values())}
    )


def test_counterfeits_go_on_and_newcomers_take_them_over(tmp_path):
    promise = {"model": "m-distinct-star", "m": 4, "refill": 2}
    series = reveil.open_series(policy(FAMILIES, **promise), home=tmp_path / "home")
    series.publish(table(p="a", q="c", r="e", s="f"), seed=1)
    second = series.publish(table(p="b", q="c"), seed=2)
    assert sorted(second.table["illness"]) == ["b", "c", "e", "f"]
    assert second.counterfeits["count"].to_list() == [2]
    third = series.publish(table(p="b", q="d", t="e", u="f"), seed=3)
    assert third.counterfeits["count"].to_list() == [0]
    assert sorted(third.table["illness"]) == ["b", "d", "e", "f"]
    assert [v["worst"] for v in third.certificate.verdicts] == ["1/2"]
    assert all(found.holds for found in series.verify().values())
    plan = json.loads((third.path / "private" / "plan.json").read_text(encoding="utf-8"))
    assert plan["statistics"]["places refilled"] == 2
    assert "closed cohort" in (third.path / "private" / "report.html").read_text(encoding="utf-8")


def test_who_was_away_is_withheld(tmp_path):
    promise = {"model": "m-distinct-star", "m": 3}
    series = reveil.open_series(policy(FAMILIES, "withhold", **promise), home=tmp_path / "home")
    people = {"p": "a", "q": "c", "r": "e"}
    series.publish(table(**people), seed=1)
    series.publish(table(p="a", q="c"), seed=2)
    preview = series.plan(table(**people), seed=3, accept=["same-table"])
    assert preview.plan.reasons == {AWAY: 1}
    assert preview.plan.counterfeits == 1


def test_a_cohort_that_comes_to_share_a_value_is_withheld_for_good(tmp_path):
    promise = {"model": "m-distinct", "m": 3, "compromised": 0, "k": 4}
    home = tmp_path / "home"
    series = reveil.open_series(policy(MIXED, "withhold", **promise), home=home)
    series.publish(table(p="a", q="b", r="c", s="d"), seed=1)
    ended = table(p="a", q="a", r="a", s="d", t="a", u="b", v="c", w="e")
    release = series.publish(ended, seed=2)
    assert (release.groups[:4] == -1).all()
    assert release.certificate.counts["withheld rows"] == 4
    assert series.plan(table(p="a", q="b", r="c", s="d", t="a", u="b", v="c", w="e"), seed=3).plan.reasons == {
        BEFORE: 4
    }


def test_an_ending_is_refused_with_numbers(tmp_path):
    promise = {"model": "m-distinct", "m": 3, "compromised": 0, "k": 4}
    series = reveil.open_series(policy(MIXED, **promise), home=tmp_path / "home")
    series.publish(table(p="a", q="b", r="c", s="d"), seed=1)
    with pytest.raises(InfeasibleError) as refusal:
        series.plan(table(p="a", q="a", r="a", s="d"), seed=2)
    (fault,) = refusal.value.faults
    assert fault.code == "R445"
    assert "1 of 1 cohort" in fault.message
    assert fault.rows == 4
    assert ENDED.startswith("cohort ended")


def test_cohorts_that_could_be_shown_once_only_are_refused(tmp_path):
    narrow = {"a": ["c"], "b": ["c"], "c": []}
    with pytest.raises(InfeasibleError) as refusal:
        reveil.open_series(policy(narrow, model="m-distinct", m=3, compromised=0), home=tmp_path / "home").plan(
            table(p="a", q="b", r="c")
        )
    (fault,) = refusal.value.faults
    assert fault.code == "R446"
    assert "3 of 3 people of one cohort may come to share 'c'" in fault.message


def test_too_few_families_are_refused(tmp_path):
    with pytest.raises(InfeasibleError) as refusal:
        reveil.open_series(policy(FAMILIES, model="m-distinct-star", m=5), home=tmp_path / "home").plan(
            table(p="a", q="b", r="c", s="d", t="e", u="f")
        )
    (fault,) = refusal.value.faults
    assert fault.code == "R447"
    assert "4 families" in fault.message


def test_families_are_values_that_may_meet():
    relation = relation_between("abcdef", stated_weights(FAMILIES, None))
    assert kinds_of(relation).tolist() == [0, 0, 1, 1, 2, 3]


def test_places_go_on_with_the_exact_chances():
    weights = np.array([[1, 0, 3], [0, 1, 0], [2, 2, 0]])
    lots = np.array([0, 1, 2, 3, 0, 0, 1, 2, 3])
    values = np.array([0, 0, 0, 0, 1, 2, 2, 2, 2])
    assert succession.go_on(values, lots, np.cumsum(weights, axis=1)).tolist() == [0, 2, 2, 2, 1, 0, 0, 1, 1]


def test_what_is_left_behind_counts_repeated_values():
    first, here = np.array([0, 4]), np.array([0, 2])
    starts, values = succession.left_behind(first, np.array([1, 1, 2, 3]), here, np.array([1, 3]))
    assert starts.tolist() == [0, 2]
    assert values.tolist() == [1, 2]
