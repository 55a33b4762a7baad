"""People who were away are shown with a stand-in: the judge against all worlds, and the planner against the judge."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import evolving as oracle
from properties import lasting
from properties.test_jointly import judge, relations


@st.composite
def cohorts(draw):
    """A cohort of two or three places, one of whose people is away and comes back; others may leave for good."""
    chance, size = draw(relations("abcd")), draw(st.integers(2, 3))
    away, after = draw(st.integers(1, 2)), draw(st.integers(1, 2 if size == 2 else 1))
    rows, series = [draw(st.sampled_from(sorted(chance))) for _ in range(size)], []
    here = list(range(size))
    for release in range(1 + away + after):
        if release:
            rows = [draw(st.sampled_from(sorted(chance[value]))) for value in rows]
            here = [p for p in here if p == 1 or (p > 1 and draw(st.booleans()))]
        series.append((tuple(here), tuple(sorted(rows)), (0,) if release > away else (), release))
    return series, chance


def verdict(series, chance, known, stood, **more):
    """What the judge says of the newest release, beside whose only group these people are shown."""
    releases = [[(people, rows)] for people, rows, _, _ in series]
    past, now = lasting.history_of(releases[:-1]), lasting.view_of(releases[-1])
    back = pl.DataFrame({"person": stood, "class": [0] * len(stood)}, schema={"person": pl.Int64, "class": pl.Int64})
    return judge(chance, known, **more).judge(replace(now, stand_ins=back), past)[0]


@given(cohorts())
@settings(max_examples=400, deadline=None)
def test_with_nobody_known_the_worst_guess_is_that_of_all_worlds(case):
    series, chance = case
    found = verdict(series, chance, 0, series[-1][2], tau="0.999999")
    truth = oracle.worst_guess_with_stand_ins(series, chance, 0)
    size = len(series[0][1])
    shown = max(Fraction(max(rows.count(v) for v in rows), size) for _, rows, _, _ in series)
    assert found.details["not closed"] == 0
    if shown < 1:  # or a value that all places share is certain
        assert truth <= found.worst <= max(shown, truth) + Fraction(1, 10**6) or found.details["too likely"]


@given(cohorts())
@settings(max_examples=200, deadline=None)
def test_with_one_known_nothing_is_guessed_better_than_the_judge_says(case):
    series, chance = case
    if len(series[0][1]) < 3:
        return
    found = verdict(series, chance, 1, series[-1][2], tau="0.999999")
    assert found.details["too likely"] or found.worst >= oracle.worst_guess_with_stand_ins(series, chance, 1)


@given(cohorts(), st.sampled_from(["1/2", "3/5", "2/3"]))
@settings(max_examples=200, deadline=None)
def test_what_holds_is_within_the_promise_in_all_worlds(case, tau):
    series, chance = case
    found = verdict(series, chance, 0, series[-1][2], tau=tau)
    if found.holds:
        assert oracle.worst_guess_with_stand_ins(series, chance, 0) <= Fraction(tau)


def test_what_is_expected_of_somebody_who_was_away_is_bounded_and_strangers_are_not_shown():
    chance = {"a": {"a": 1, "b": 1}, "x": {"x": 1, "b": 3}, "b": {"b": 1}}
    series = [((0, 1), ("a", "x"), (), 0), ((1,), ("a", "x"), (), 1), ((1,), ("a", "x"), (0,), 2)]
    # after two releases a has become b with 3/4, x with 15/16: 27/32 of two places
    truth = oracle.worst_guess_with_stand_ins(series, chance, 0)
    assert truth == Fraction(27, 32)
    bad = verdict(series, chance, 0, [0], tau="4/5")
    assert not bad.holds and bad.details["too likely"] == 1
    good = verdict(series, chance, 0, [0], tau="9/10")
    assert abs(good.worst - truth) <= Fraction(1, 10**6) and good.worst >= truth
    there = [((0, 1), ("a", "x"), (), 0), ((0, 1), ("a", "x"), (), 1), ((1,), ("a", "x"), (0,), 2)]
    never_away = verdict(there, chance, 0, [0], tau="9/10")
    assert not never_away.holds and never_away.details["not closed"] == 1
    stranger = verdict(series, chance, 0, [7], tau="9/10")
    assert not stranger.holds and stranger.details["not closed"] == 1
