"""Compromise safety by closed cohorts: the judge against enumeration of all worlds."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import worlds as oracle
from properties import lasting
from reveil.verify.judges.cohorts import CompromiseSafetyJudge

group = lasting.group


def judge(known, m=2, tau=Fraction(1)):
    return CompromiseSafetyJudge(m, known, tau, "illness")


@st.composite
def cohorts(draw):
    """One cohort over a few releases: people leave, return unless a refill came between, and places are refilled."""
    size = draw(st.integers(3, 4))
    values = tuple("abcdef"[:size])
    present = set(range(draw(st.integers(2, size))))
    away, following = set(), len(present)
    series = [[(tuple(sorted(present)), values)]]
    for _ in range(draw(st.integers(1, 3))):
        leaving = draw(st.sets(st.sampled_from(sorted(present)), max_size=len(present) - 1)) if present else set()
        back = draw(st.sets(st.sampled_from(sorted(away)))) if away else set()
        present, away = (present - leaving) | back, (away | leaving) - back
        joining = draw(st.integers(0, min(size - len(present), 7 - following)))
        if joining:
            away = set()  # who missed a refill does not come back
            present |= set(range(following, following + joining))
            following += joining
        series.append([(tuple(sorted(present)), values)])
    return series


@given(cohorts(), st.integers(0, 2))
@settings(max_examples=300, deadline=None)
def test_the_worst_guess_is_that_of_all_worlds(series, known):
    truth = oracle.worst_guess(series, known)
    size = len(series[0][0][1])
    verdict = lasting.judged(judge(known), series)[-1]
    assert verdict.details["not closed"] == 0
    # The judge also counts cohorts in which fewer people than `known` remain; it may then be too strict, never lax.
    assert verdict.worst >= truth
    people = {p for release in series for p in release[0][0]}
    if len(people) > known + 1 and size - known > 0:
        assert verdict.worst == max(truth, Fraction(1, size - known))


@given(cohorts(), st.integers(1, 2))
@settings(max_examples=100, deadline=None)
def test_a_later_release_without_refill_changes_no_posterior(series, known):
    people = series[-1][0][0]
    later = [*series, [(people[:1], series[0][0][1])]]
    before, after = (oracle.posteriors(oracle.worlds(s)) for s in (series, later))
    assert before == after
    assert oracle.worst_guess(series, known) == oracle.worst_guess(later, known)


COUNTEREXAMPLES = {
    "triangle": [[group([0, 1, 2])], [group([0, 3, 4])], [group([1, 3, 5])]],
    "triangle, contiguous": [
        [group([0, 1, 2])],
        [group([0, 3, 4]), group([1, 6, 7])],
        [group([1, 3, 5])],
    ],
    "union": [[group([0, 1, 2, 3]), group([4, 5, 6, 7])], [group([0, 1, 4, 5]), group([2, 3, 6, 8])]],
    "union of six": [
        [group(range(1, 7)), group(range(7, 13))],
        [group([1, 2, 3, 7, 8, 9]), group([4, 5, 6, 10, 11, 13])],
    ],
    "star": [[group([1, 2, 3, 4, 5, 6])], [group([0, 1, 2, 3, 7, 8])], [group([0, 4, 5, 9, 10, 11])]],
    "merge": [[group([0, 1, 2]), group([3, 4, 5])], [group([0, 1, 2, 3, 4, 6], "aabbcc")]],
    "merge of two": [[group([0, 1]), group([2, 3])], [group([0, 1, 2, 4], "aabb")]],
    "chain": [[group([1, 2, 3, 4])], [group([1, 2, 5, 6])], [group([3, 5, 7, 8])], [group([4, 7, 8, 9])]],
    "grid": [
        [group([0, 1, 2]), group([3, 4, 5]), group([6, 7, 8])],
        [group([0, 3, 6]), group([1, 4, 7]), group([2, 5, 8])],
        [group([0, 4, 8]), group([1, 5, 6]), group([2, 3, 7])],
    ],
    "laundered": [[group([0, 1, 2])], [group([0, 1], "abc", 1)], [group([0, 1, 3])]],
}


@pytest.mark.parametrize("name", COUNTEREXAMPLES)
def test_counterexamples_are_refused(name):
    series = COUNTEREXAMPLES[name]
    m = min(len(set(values)) for release in series for _, values in release)
    verdicts = lasting.judged(judge(1, m, Fraction(1, 2)), series)
    assert verdicts[0].holds or m == 2
    assert not verdicts[-1].holds


@pytest.mark.parametrize("name", COUNTEREXAMPLES)
def test_one_known_person_does_reveal_another_in_them(name):
    if name == "union of six":
        pytest.skip("too many worlds to enumerate")
    assert oracle.worst_guess(COUNTEREXAMPLES[name], 1) == 1


def test_a_counterfeit_of_the_first_release_may_be_replaced():
    series = [[((0, 1), "abc")], [((0, 1, 3), "abc")]]
    assert oracle.worst_guess(series, 1) == Fraction(1, 2)
    assert lasting.judged(judge(1, 3, Fraction(1, 2)), series)[-1].holds


def test_without_members_nothing_is_shown():
    from dataclasses import replace

    view = replace(lasting.view_of([group([0, 1, 2])]), members=None)
    assert not judge(1).judge(view, lasting.history_of([]))[0].holds


def test_a_bound_of_many_digits_is_compared_exactly():
    """tau a hair below and above 1/3 in a cohort of four of whom one is known; 64 bits do not hold its digits."""
    series = [[group((0, 1, 2, 3), "abcd")]]
    below, above = Fraction("0.33333333333333333333"), Fraction("0.33333333333333333334")
    assert [lasting.judged(judge(1, 4, tau), series)[0].holds for tau in (below, above)] == [False, True]
