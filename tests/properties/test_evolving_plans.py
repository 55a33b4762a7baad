"""The planner of the joint view on random small series: judged release by release, and against all possible worlds."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import evolving as oracle
from properties import test_lasting_plans as plans
from properties.test_jointly import bound_of
from reveil.background.transitions import Relation
from reveil.plan.evolving.evolving_cohorts import limits
from reveil.plan.evolving.succession import prospects
from reveil.policy.guarantee import Guarantee
from reveil.policy.policy import load_policy
from reveil.verify.judges.contract import Background
from reveil.verify.judges.registry import judges

publish = plans.planned
FAMILIES = {v: dict.fromkeys(family, 1) for family in ("ab", "cd", "ef", "gh") for v in family}
MIXED = {v: {w: 6 if w == v else 1 for w in "abcdefgh"} for v in "abcdefgh"}
UNEVEN = {v: {w: 9 if w == v else 1 + "abcdefgh".index(w) % 3 for w in "abcdefgh"} for v in "abcdefgh"}
APART = {"publish": "anatomy", "people": "exact"}
CASES = {
    "star": (FAMILIES, {"model": "m-distinct-star", "m": 3}),
    "star, refilled": (FAMILIES, {"model": "m-distinct-star", "m": 3, "refill": 2}),
    "star, two known": (FAMILIES, {"model": "m-distinct-star", "m": 4, "compromised": 2}),
    "families": (FAMILIES, {"model": "m-distinct", "m": 3, "compromised": 0}),
    "mixed": (MIXED, {"model": "m-distinct", "m": 4, "tau": "1/2"}),
    "mixed, refilled": (MIXED, {"model": "m-distinct", "m": 4, "refill": 2, "tau": "1/2"}),
    "mixed, large": (MIXED, {"model": "m-distinct", "m": 3, "k": 5}),
    "mixed, harmless": (MIXED, {"model": "m-distinct", "m": 3, "harmless": ["a", "b"]}),
    "uneven, harmless": (UNEVEN, {"model": "m-distinct", "m": 3, "compromised": 0, "refill": 1, "harmless": ["a"]}),
    "uneven, nobody known": (UNEVEN, {"model": "m-distinct", "m": 3, "compromised": 0, "refill": 1}),
    "uneven, tight": (UNEVEN, {"model": "m-distinct", "m": 3}),
    "mixed, many places": (MIXED, {"model": "m-distinct", "m": 3, "places": 5}),
    "uneven, many places": (UNEVEN, {"model": "m-distinct", "m": 2, "places": 4, "compromised": 0, "harmless": ["b"]}),
}


def policy_of(name, infeasible="withhold"):
    chance, guarantee = CASES[name]
    table = {a: {b: f"{w}/{sum(row.values())}" for b, w in row.items()} for a, row in chance.items()}
    return load_policy(
        {
            "columns": plans.COLUMNS,
            "values": {"change": "transitions", "transitions": table},
            "guarantee": guarantee,
            "method": {"infeasible": infeasible} | (APART if "places" in guarantee else {}),
        }
    )


@st.composite
def populations(draw, name):
    """People who come, go and come back, whose values change as they may."""
    people, releases = draw(st.integers(8, 26)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    chance = CASES[name][0]
    values = list(rng.choice(sorted(chance), size=people))
    arrival = rng.integers(-2, releases, size=people)
    town, age = rng.choice(["x", "y", "z"], size=people), rng.integers(20, 60, size=people)
    tables = []
    for release in range(releases):
        here = np.flatnonzero((arrival <= release) & (rng.random(people) < 0.8))
        for p in here:
            line = chance[values[p]]
            weights = np.array(list(line.values()), dtype=float)
            values[p] = rng.choice(list(line), p=weights / weights.sum())
        names = {"name": [f"p{p}" for p in here], "age": age[here], "town": town[here]}
        tables.append(
            pl.DataFrame({**names, "illness": [values[p] for p in here]}, schema_overrides={"illness": pl.String})
        )
    return tables


@pytest.mark.parametrize("name", CASES)
@given(st.data())
@settings(max_examples=12, deadline=None)
def test_every_planned_release_holds_in_all_worlds(name, data):
    tables, policy = data.draw(populations(name)), policy_of(name)
    series, book = [], ()
    for e, plan, verdicts, groups in publish(tables, policy):
        assert all(v.holds for v in verdicts), [v.statement for v in verdicts]
        assert sum(plan.reasons.values()) == plan.withheld
        assert sum(len(people) for people, _ in groups) + plan.stood_in + plan.withheld == e.rows
        assert all(people for people, _ in groups)
        series.append(groups)
        book = e.sensitive[0].values
    (judge,) = [judge for judge in judges(policy, Background()) if judge.name == policy.guarantee.model]
    code = {value: number for number, value in enumerate(book)}
    chance = {code[a]: {code[b]: w for b, w in row.items()} for a, row in CASES[name][0].items() if a in code}
    for part in plans.parts(series):
        cohort = [groups[0] for groups in part]
        assert all(len(groups) == 1 for groups in part)
        size, people = len(cohort[0][1]), {p for members, _ in cohort for p in members}
        if size ** len(cohort) <= 27 and len(people) <= 5:  # others have too many worlds to list
            harmless = {code[value] for value in CASES[name][1].get("harmless", ()) if value in code}
            assert oracle.worst_guess(cohort, chance, policy.guarantee.headline.compromised, harmless) <= judge.tau


@given(st.data())
@settings(max_examples=8, deadline=None)
def test_cohorts_of_families_never_end(data):
    for _, plan, _, _ in publish(data.draw(populations("star")), policy_of("star")):
        assert not any(reason.startswith("cohort ended") for reason in plan.reasons)
        assert plan.statistics.get("share of cohorts expected to end with the next release", 0) == 0


@given(st.integers(0, 2**32), st.integers(2, 9), st.integers(3, 7), st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_planner_and_verifier_bound_what_withholding_tells_alike(seed, places, values, most):
    rng = np.random.default_rng(seed)
    chance = rng.random((values, values)) * (rng.random((values, values)) < 0.6) + np.eye(values)
    chance /= chance.sum(axis=1, keepdims=True)
    rows = rng.integers(0, values, size=places)
    likely, expected = prospects(np.array([0, places]), rows, np.array([most]), chance)
    assert expected[0] == pytest.approx(bound_of(rows, chance, most), rel=1e-9)
    assert (likely[0] > 0) == (expected[0] > 0)
    assert likely[0] <= 1


@given(st.integers(0, 2**32), st.integers(3, 5), st.integers(0, 1), st.sampled_from(["1/2", "2/3", "3/5", "3/4"]))
@settings(max_examples=150, deadline=None)
def test_a_cohort_that_ends_tells_no_more_than_tau(seed, size, known, tau):
    rng = np.random.default_rng(seed)
    values = int(rng.integers(3, 7))
    weights = rng.integers(0, 4, (values, values)) * (rng.random((values, values)) < 0.7) + np.eye(
        values, dtype=np.int64
    )
    rows = np.sort(rng.integers(0, values, size=size))
    promise = Guarantee.of("m-distinct", m=known + 2 + (tau == "1/2" and known == 0), compromised=known, tau=tau)
    (limit,), _ = limits(promise, np.array([0, size]), rows, Relation(tuple(range(values)), weights))
    chance = {a: {b: int(w) for b, w in enumerate(line) if w} for a, line in enumerate(weights)}
    if limit:
        told = oracle.withheld_guess([(tuple(range(size)), tuple(rows.tolist()))], chance, int(limit), known)
        assert told is None or told <= promise.headline.tau
    elif all(rows.tolist().count(v) == 1 for v in rows.tolist()) and size > known + 2:
        assert (weights[rows] > 0).sum(axis=0).max() > 1  # only what may come to be shared can be a reason
