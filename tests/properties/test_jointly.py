"""The joint view of values that change: the judge against enumeration of all worlds."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import evolving as oracle
from oracle import joint as free
from properties import lasting
from reveil.plan.evolving.succession import prospects
from reveil.policy.policy import load_policy
from reveil.verify.judges.contract import Background
from reveil.verify.judges.gathering import gathering, most_safe, reached, shared
from reveil.verify.judges.joint_view import build_joint, can_follow


def judge(chance, known, *, m=None, model="m-distinct", **more):
    columns = {"name": "identifier", "age": "quasi", "illness": "sensitive"}
    table = {a: {b: str(w) for b, w in row.items()} for a, row in chance.items()}
    values = {"change": "transitions", "transitions": table}
    if model == "m-distinct":
        values["closure"] = "one-step"
    guarantee = {"model": model, "m": m or known + 2, "compromised": known, **more}
    (found,) = build_joint(load_policy({"columns": columns, "values": values, "guarantee": guarantee}), Background())
    return found


@st.composite
def relations(draw, letters="abcdef"):
    """Chances of every change: some impossible, some likely. A value may always stay."""
    values = letters[: draw(st.integers(3, len(letters)))]
    chance = {}
    for a in values:
        weights = {b: draw(st.sampled_from([0, 0, 0, 1, 1, 2, 5])) for b in values if b != a}
        weights[a] = draw(st.integers(1, 4))
        chance[a] = {b: w for b, w in weights.items() if w}
    return chance  # in proportion: only ratios within a line matter


@st.composite
def cohorts(draw, refilled):
    """A cohort over a few releases: places change as they may, people leave for good, newcomers take vacant places."""
    chance = draw(relations())
    size, releases = draw(st.sampled_from([(3, 2), (3, 3), (4, 2), *([] if refilled else [(3, 4)])]))
    rows = [draw(st.sampled_from(sorted(chance))) for _ in range(size)]
    people = list(range(draw(st.integers(2, size))))
    following = len(people)
    series = [(tuple(people), tuple(rows))]
    for _ in range(releases - 1):
        rows = [draw(st.sampled_from(sorted(chance[value]))) for value in rows]
        people = [p for p in people if draw(st.integers(0, 2))] or people[:1]
        if refilled and following < 6:
            joining = draw(st.integers(0, min(size - len(people), 6 - following)))
            people += range(following, following + joining)
            following += joining
        series.append((tuple(people), tuple(sorted(rows))))
    return series, chance


def chances(chance):
    weights = np.array([[chance[a].get(b, 0) for b in sorted(chance)] for a in sorted(chance)], dtype=float)
    return weights / weights.sum(axis=1, keepdims=True)


def verdict(series, chance, known, **more):
    releases = [[group] for group in series]
    past, now = lasting.history_of(releases[:-1]), lasting.view_of(releases[-1])
    return judge(chance, known, **more).judge(now, past)[0]


@given(cohorts(refilled=False), st.integers(0, 1))
@settings(max_examples=200, deadline=None)
def test_the_worst_guess_is_that_of_all_worlds(case, known):
    series, chance = case
    found, truth = verdict(series, chance, known), oracle.worst_guess(series, chance, known)
    assert found.details["not closed"] == 0
    assert found.worst >= truth
    size = len(series[0][1])
    enough = [max(rows.count(v) for v in rows) for people, rows in series if len(people) > known]
    if enough and max(enough) == max(rows.count(v) for _, rows in series for v in rows) and size - max(enough) >= known:
        assert found.worst == truth


@given(cohorts(refilled=True), st.integers(0, 2))
@settings(max_examples=100, deadline=None)
def test_refills_never_tell_more_than_the_judge_says(case, known):
    series, chance = case
    if len(series[0][1]) - known < 2:
        return
    found = verdict(series, chance, known)
    assert found.details["not closed"] == 0
    assert found.worst >= oracle.worst_guess(series, chance, known)


def bound_of(rows, chance, most):
    """How many places are expected at one value if more than `most` come to share one; 0 where they cannot."""
    if reached(rows, chance).max() <= most:
        return 0
    values, often = np.unique(rows, return_counts=True)
    return shared(values, often, *gathering(values, often, chance), chance, most)


@given(relations("abcd"), st.lists(st.integers(0, 3), min_size=2, max_size=6), st.integers(1, 4))
@settings(max_examples=150, deadline=None)
def test_places_are_counted_together_as_one_by_one(chance, rows, most):
    """The bound by its definition: each place by itself, every way to go on listed."""
    chance = chances(chance)
    rows = np.array(rows) % len(chance)
    width = len(chance)
    all_ways = list(product(range(width), repeat=len(rows)))
    ways = [(after, float(np.prod([chance[a, b] for a, b in zip(rows, after, strict=True)]))) for after in all_ways]
    exceed = [sum(w for after, w in ways if after.count(t) > most) for t in range(width)]
    some = 1 - np.prod([1 - p for p in exceed])
    highest = 0.0
    for s in range(width):
        expected = 0.0
        for k in range(len(rows)):
            given = [sum(w for after, w in ways if after[k] == s and after.count(t) > most) for t in range(width)]
            expected += min(chance[rows[k], s], sum(given))
        highest = max(highest, expected)
    found, limit = bound_of(rows, chance, most), 1.7
    if max(exceed) == 0:
        assert found == 0 or not np.isfinite(found)
    else:
        assert np.isclose(found, highest / some, rtol=1e-9)
        likely, planned = prospects(np.array([0, len(rows)]), rows, np.array([most]), chance)
        assert np.isclose(likely[0], some, rtol=1e-9) and np.isclose(planned[0], found, rtol=1e-9)
    safe = [n for n in range(1, most + 1) if bound_of(rows, chance, n) <= limit]
    assert most_safe(rows, chance, 1, most, limit) == max(safe, default=0)


@given(cohorts(refilled=True), st.integers(0, 2), st.integers(1, 2))
@settings(max_examples=100, deadline=None)
def test_withholding_a_cohort_tells_no_more_than_the_bound(case, known, most):
    series, chance = case
    size, book = len(series[0][1]), sorted(chance)
    if size - known < 2:
        return
    truth = oracle.withheld_guess(series, chance, most, known)
    rows = np.array([book.index(value) for value in series[-1][1]])
    ceiling = bound_of(rows, chances(chance), most)
    assert (truth is None) == (ceiling == 0)
    if truth is not None:
        top = max(rows.count(v) for _, rows in series for v in rows)
        found = verdict(series, chance, known)
        if found.worst < 1:  # above, it says nothing about a single place
            assert float(truth) <= float(max(found.worst / top, Fraction(1, size - known))) * ceiling * (1 + 1e-9)


@given(relations("abcd"), st.data())
@settings(max_examples=200, deadline=None)
def test_what_can_follow_is_what_has_a_world(chance, data):
    rows = st.lists(st.sampled_from(sorted(chance)), min_size=3, max_size=4)
    before = data.draw(rows)
    after = data.draw(st.lists(st.sampled_from(sorted(chance)), min_size=len(before), max_size=len(before)))
    book = sorted(chance)
    codes = [np.array([book.index(v) for v in values]) for values in (before, after)]
    assert can_follow(*codes, chances(chance)) == oracle.possible([((0,), before), ((0,), after)], chance)


@given(cohorts(refilled=False))
@settings(max_examples=60, deadline=None)
def test_nobody_is_certain_to_readers_who_know_nothing_of_counterfeits(case):
    series, chance = case
    _, posterior, _ = free.beliefs([[group] for group in series], chance)
    for (_, release), beliefs in posterior.items():
        assert set(beliefs) == set(series[release][1])


def test_a_bound_of_many_digits_is_compared_exactly():
    """Four different values that never meet, one person known: 1/3. 64 bits do not hold the digits of tau."""
    never = {v: {v: Fraction(1)} for v in "abcd"}
    found = judge(never, 1, m=4, tau="0.33333333333333333334")
    assert lasting.judged(found, [[((0, 1, 2, 3), "abcd")]])[0].holds
    found.tau = Fraction("0.33333333333333333333")  # a policy would refuse to promise it
    assert not lasting.judged(found, [[((0, 1, 2, 3), "abcd")]])[0].holds
