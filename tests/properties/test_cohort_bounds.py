"""Descriptor, planner and judge each work out what a cohort's terms promise; listing all worlds gives the same."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import cohort_bounds as oracle
from reveil.background.breach_formulas import p_ct, p_hc, p_pb
from reveil.base.errors import InputError
from reveil.guarantees.compromise_safety import CompromiseSafety
from reveil.guarantees.historical_safety import HistoricalSafety
from reveil.guarantees.m_distinct import MDistinct
from reveil.plan.persistent import guesses
from reveil.plan.persistent.degree import degree
from reveil.policy.guarantee import Guarantee
from reveil.verify.judges import cohort_bounds
from reveil.verify.judges.correlation import least_degree

TERMS = [
    (m, known, refill)
    for m in (2, 3, 4, 5)
    for known in (0, 1, 2)
    for refill in (None, 1, 2, 3)
    if m - known >= 2 and (refill is None or (refill < m <= 4 and (known == 0 or refill > known)))
]


@pytest.mark.parametrize(("m", "known", "refill"), TERMS)
def test_the_lowest_bound_is_what_all_worlds_give(m: int, known: int, refill: int | None) -> None:
    for kind in (CompromiseSafety, MDistinct):
        terms = kind(m=m, compromised=known, refill="never" if refill is None else refill)
        expected = oracle.lowest_bound(m, known, refill)
        assert terms.promised == expected
        assert guesses.lowest_guess(terms, m) == guesses.allowed_guess(terms) == expected
        assert cohort_bounds.promised_guess(terms) == expected


@settings(max_examples=60, deadline=None)
@given(size=st.integers(2, 6), known=st.integers(0, 2), tau=st.fractions("1/6", "11/12", max_denominator=12))
def test_how_often_a_value_may_be_shown_is_what_all_worlds_give(size: int, known: int, tau: Fraction) -> None:
    m = known + 2
    if size < m or tau < Fraction(1, m - known):
        return
    promise = Guarantee.of("m-distinct", m=m, compromised=known, tau=tau)
    expected = oracle.most_alike(size, known, tau)
    assert min(size, guesses.repeats(promise, size)) == cohort_bounds.most_alike(promise, size) == expected
    diverse = Guarantee.of("m-distinct", m=m, compromised=known, tau=tau, l=2)
    assert guesses.repeats(diverse, size) == cohort_bounds.most_alike(diverse, size) == min(1, expected)


@settings(max_examples=60, deadline=None)
@given(
    p=st.fractions("1/100", "1/4", max_denominator=100),
    releases=st.integers(1, 12),
    m=st.integers(2, 6),
    data=st.data(),
)
def test_breach_formulas_are_the_chances_of_what_they_speak_of(
    p: Fraction, releases: int, m: int, data: st.DataObject
) -> None:
    n = data.draw(st.integers(1, m))
    expected = oracle.breach(p, releases, m, n)
    assert (p_ct(p, releases), p_hc(p, m, n, releases), p_pb(p, m, n, releases)) == expected


@settings(max_examples=200, deadline=None)
@given(
    p=st.fractions("1/100", "1/4", max_denominator=100),
    releases=st.integers(1, 30),
    m=st.integers(2, 8),
    h=st.fractions("1/100", "1/2", max_denominator=100),
)
def test_the_degree_is_the_smallest_that_the_formulas_allow(p: Fraction, releases: int, m: int, h: Fraction) -> None:
    asked = HistoricalSafety(m=m, p=p, L=releases, h=h)
    expected = oracle.smallest_degree(p, releases, m, h)
    for found in (degree, least_degree):
        if expected is None:
            with pytest.raises(InputError, match="R421"):
                found(asked)
        else:
            assert found(asked) == expected
