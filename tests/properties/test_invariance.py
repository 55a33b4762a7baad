"""m-invariance and historical safety: judges against enumeration of all worlds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import worlds as oracle
from properties import lasting
from properties import test_cohorts as counterexamples
from reveil.verify.judges.correlation import HistoricalSafetyJudge, null_space, small_correlation
from reveil.verify.judges.invariance import MInvarianceJudge

group = lasting.group


@st.composite
def invariant(draw):
    """Two or three releases of groups of one signature; people are regrouped at will."""
    size = draw(st.integers(2, 3))
    values = tuple("abc"[:size])
    series, people = [], 0
    holders = []  # value of each person
    for _ in range(draw(st.integers(2, 3))):
        release = []
        free = {v: [p for p, held in enumerate(holders) if held == v] for v in values}
        for _ in range(draw(st.integers(1, 2))):
            members = []
            for v in values:
                kind = draw(st.sampled_from(["old", "new", "counterfeit"]))
                if kind == "old" and free[v]:
                    members.append(free[v].pop(draw(st.integers(0, len(free[v]) - 1))))
                elif kind != "counterfeit" and people < 8:
                    members.append(people)
                    holders.append(v)
                    people += 1
            if members:
                release.append((tuple(sorted(members)), values))
        if release:
            series.append(release)
    return series or [[((0,), values)]]


@given(invariant())
@settings(max_examples=200, deadline=None)
def test_m_invariant_series_leave_everybody_at_one_in_m(series):
    verdicts = lasting.judged(MInvarianceJudge(2, "illness"), series)
    size = len(series[0][0][1])
    assert all(verdict.holds for verdict in verdicts)
    posteriors = oracle.posteriors(oracle.worlds(series))
    assert {chance for found in posteriors.values() for chance in found.values()} == {Fraction(1, size)}
    assert verdicts[-1].worst == Fraction(1, size)


def test_another_signature_is_found_however_long_ago():
    series = [
        [((0, 1), "ab"), ((2, 3), "ab")],
        [((2, 3), "ab")],
        [((0, 4), "ac"), ((2, 3), "ab")],
    ]
    verdicts = lasting.judged(MInvarianceJudge(2, "illness"), series)
    assert [v.holds for v in verdicts] == [True, True, False]
    assert verdicts[2].violating_classes == 1
    assert oracle.posteriors(oracle.worlds(series))[0] == {"a": 1}


def test_repeated_values_and_small_groups_are_found():
    judge = MInvarianceJudge(3, "illness")
    assert not lasting.judged(judge, [[group([0, 1, 2, 3], "aabc")]])[0].holds
    assert not lasting.judged(judge, [[group([0, 1])]])[0].holds
    assert lasting.judged(judge, [[group([0, 1], "abc", 1)]])[0].holds


PAIRWISE_ONLY = {  # counterexample -> m, n
    "triangle": (3, 2),
    "triangle, contiguous": (3, 2),
    "union": (4, 2),
    "union of six": (6, 3),
    "star": (6, 3),
    "merge": (3, 3),
    "merge of two": (2, 2),
    "chain": (4, 2),
    "grid": (3, 2),
}


@pytest.mark.parametrize("name", PAIRWISE_ONLY)
def test_what_pairs_do_not_show_is_refused_transitively(name):
    series = counterexamples.COUNTEREXAMPLES[name]
    m, n = PAIRWISE_ONLY[name]
    pairwise = lasting.judged(HistoricalSafetyJudge(m, n, "pairwise", "illness"), series)
    transitive = lasting.judged(HistoricalSafetyJudge(m, n, "transitive", "illness"), series)
    assert all(verdict.holds for verdict in pairwise)
    assert transitive[0].holds
    assert not transitive[-1].holds


def test_a_counterfeit_does_not_launder():
    for closure in ("pairwise", "transitive"):
        judge = HistoricalSafetyJudge(3, 2, closure, "illness")
        assert not lasting.judged(judge, counterexamples.COUNTEREXAMPLES["laundered"])[-1].holds
    harmless = [[((0, 1), "abc")], [((0, 1, 3), "abc")]]
    assert not lasting.judged(HistoricalSafetyJudge(3, 2, "pairwise", "illness"), harmless)[-1].holds
    assert lasting.judged(HistoricalSafetyJudge(3, 2, "transitive", "illness"), harmless)[-1].holds


def hc_safe(group, past, n):
    """Figure 6, as printed."""
    people, values = group
    for release in past:
        together = [len(set(people) & set(other)) for other, _ in release]
        most = max(together, default=0)
        if len(values) - n < most < len(values):
            return False
    return True


@given(invariant(), st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_pairwise_is_the_test_of_the_paper(series, n):
    n = min(n, len(series[0][0][1]))
    verdicts = lasting.judged(HistoricalSafetyJudge(2, n, "pairwise", "illness"), series)
    for number, verdict in enumerate(verdicts):
        unsafe = [g for g in series[number] if not hc_safe(g, series[:number], n)]
        assert verdict.violating_classes == len(unsafe)


@given(invariant())
@settings(max_examples=100, deadline=None)
def test_what_passes_transitively_forces_nobody_equal(series):
    """With degree 2 no two people are tied: the two rules together find every forced equality of these series."""
    verdicts = lasting.judged(HistoricalSafetyJudge(2, 2, "transitive", "illness"), series)
    if all(verdict.holds for verdict in verdicts):
        assert not oracle.forced_equal(series)


def test_a_group_of_nobody_ties_nobody():
    """All rows of a group may be counterfeits: nobody is in it, and there is nothing to tie."""
    nobody = ([], 3, True)
    assert small_correlation([nobody], 2) is False
    assert small_correlation([nobody, nobody], 3) is False
    union = [([0, 1, 2, 3], 0, True), ([4, 5, 6, 7], 0, True), ([0, 1, 4, 5], 0, True), ([2, 3, 6, 8], 0, True)]
    assert small_correlation([nobody, *union], 2) is True  # the others are still looked at
    assert small_correlation([nobody, *union[:3]], 2) is False


def test_null_space_is_one():
    rng = np.random.default_rng(5)
    for _ in range(30):
        matrix = rng.integers(0, 2, size=(rng.integers(1, 6), rng.integers(2, 9)))
        basis = null_space(matrix.astype(np.int64), 2_147_483_647)
        assert not ((matrix @ basis) % 2_147_483_647).any()
        assert basis.shape[1] == matrix.shape[1] - np.linalg.matrix_rank(matrix)
