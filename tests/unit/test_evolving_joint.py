"""The joint view through the whole pipeline: published, verified, reported; and refused with numbers."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import reveil
from reveil.background.transitions import relation_between, stated_weights
from reveil.base.errors import InfeasibleError, InputError
from reveil.plan.evolving import succession
from reveil.plan.evolving.disjoint import kinds_of
from reveil.plan.evolving.evolving_cohorts import AWAY, BEFORE, ENDED
from reveil.plan.evolving.large_cohorts import dealt
from reveil.policy.policy import load_policy
from reveil.policy.reasons import FEW, REASONS

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


def apart(transitions=MIXED, **guarantee):
    asked = policy(transitions, infeasible="withhold", **guarantee)
    return {**asked, "method": {"infeasible": "withhold", "publish": "anatomy"}}


def test_large_cohorts_keep_their_people_where_small_ones_end(tmp_path):
    rng = np.random.default_rng(5)
    chance = np.full((6, 6), 0.05) + 0.7 * np.eye(6)
    slow = {v: {w: "3/4" if w == v else "1/20" for w in "abcdef"} for v in "abcdef"}
    held, kept = rng.integers(0, 6, 240), {}
    later = [rng.choice(6, p=chance[v]) for v in held]
    tables = [table(**{f"p{n:03}": "abcdef"[v] for n, v in enumerate(one)}) for one in (held, later)]
    for name, more in (("small", {}), ("large", {"places": 40})):
        promise = apart(slow, model="m-distinct", m=4, k=3, **more)
        series = reveil.open_series(promise, home=tmp_path / name)
        releases = [series.publish(one, seed=n) for n, one in enumerate(tables, 1)]
        assert all(release.certificate.holds for release in releases)
        kept[name] = [240 - release.certificate.counts["withheld rows"] for release in releases]
    first = np.bincount(releases[0].groups)
    assert first.min() >= 40 and len(first) == 6
    assert kept["large"] == [240] * 2 and kept["small"][-1] < 120
    boxes = releases[-1].table.group_by("age").len()["len"]
    assert boxes.min() >= 3 and boxes.max() < 40  # as small as k allows


def test_every_value_is_dealt_evenly_over_large_cohorts():
    rng = np.random.default_rng(2)
    for _ in range(50):
        counts, cohorts = rng.integers(0, 30, rng.integers(1, 9)), int(rng.integers(1, 8))
        found = dealt(counts, cohorts)
        assert (found.sum(axis=1) == counts).all() and np.ptp(found.sum(axis=0)) <= 1
        assert (np.ptp(found, axis=1) <= 1).all() and found.min(initial=0) >= 0


def test_newcomers_too_few_for_a_large_cohort_wait_and_are_shown_when_more_come(tmp_path):
    series = reveil.open_series(apart(model="m-distinct", m=3, k=3, places=6), home=tmp_path / "home")
    people = {f"p{n:02}": "abcdef"[n % 6] for n in range(12)}
    series.publish(table(**people), seed=1)
    few = {**people, "q": "a", "r": "b", "s": "c", "t": "d"}
    assert series.publish(table(**few), seed=1).certificate.withheld == {REASONS[FEW]: 4}
    release = series.publish(table(**few, u="e", v="f"), seed=1)
    assert not release.certificate.withheld and release.certificate.holds
    assert not any(name.startswith("trade-offs") for name in series.plan(table(**few, u="f", v="e")).plan.statistics)
    assert len(set(release.groups[12:].tolist()) - set(release.groups[:12].tolist())) == 1


def test_a_value_too_frequent_for_large_cohorts_is_refused_with_its_number(tmp_path):
    people = {f"p{n:02}": "aabcdef"[n % 7] if n < 14 else "a" for n in range(24)}
    asked = apart(model="m-distinct", m=3, k=3, places=8)
    with pytest.raises(InfeasibleError, match=r"R445.*one value has 14 of 24 new rows"):
        refuse = {**asked, "method": {"infeasible": "refuse", "publish": "anatomy"}}
        reveil.open_series(refuse, home=tmp_path / "a").publish(table(**people))
    release = reveil.open_series(asked, home=tmp_path / "b").publish(table(**people), seed=1)
    assert release.certificate.holds and release.certificate.counts["withheld rows"] > 0


@pytest.mark.parametrize(
    ("guarantee", "said"),
    [
        ({"model": "m-distinct-star", "m": 3, "places": 6}, "values of different families"),
        ({"model": "m-distinct", "m": 4, "places": 3}, "less than m = 4"),
        ({"model": "m-distinct", "m": 3, "places": 6, "refill": 2}, 'needs refill = "never"'),
        ({"model": "m-distinct", "m": 3, "places": 6, "view": "individual"}, "places does nothing"),
        ({"model": "m-distinct", "m": 3, "places": 6, "k": 5}, "two tables"),
    ],
)
def test_places_are_refused_where_they_do_nothing(guarantee, said):
    with pytest.raises(InputError, match=said):
        load_policy(policy(MIXED, infeasible="withhold", **guarantee))
