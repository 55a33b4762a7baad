"""beta-likeness: the judge and the releases that are planned, against the definition."""

from __future__ import annotations

from fractions import Fraction
from math import log

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reveil
from oracle import likeness as oracle
from reveil.guarantees.beta_likeness import BetaLikeness
from reveil.history.history import History
from reveil.plan.cutting.conditions.beta_likeness import largest_share, logarithm_below
from reveil.verify.judges.contract import View
from reveil.verify.judges.counts import count_values
from reveil.verify.judges.likeness import BetaLikenessJudge, gains, within_logarithm

BETAS = st.fractions("1/8", 4, max_denominator=8)
CLASSES = st.lists(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=8), min_size=1, max_size=5)


def view_of(classes):
    owner = np.repeat(np.arange(len(classes)), [len(rows) for rows in classes])
    values = pl.Series([value for rows in classes for value in rows], dtype=pl.String)
    return View(owner, pl.DataFrame({"age": owner}), {"s": values}, np.zeros(len(classes), dtype=np.int64))


def judged(classes, beta, enhanced):
    (verdict,) = BetaLikenessJudge(beta, "s", enhanced).judge(view_of(classes), History())
    return verdict


@settings(max_examples=300, deadline=None)
@given(CLASSES, BETAS, st.booleans())
def test_the_judge_finds_what_the_definition_says(classes, beta, enhanced):
    verdict = judged(classes, beta, enhanced)
    assert verdict.holds == oracle.holds(classes, beta, enhanced)
    assert verdict.worst == oracle.largest_gain(classes)
    bad = [rows for rows in classes if not _alone(rows, classes, beta, enhanced)]
    assert (verdict.violating_classes, verdict.violating_rows) == (len(bad), sum(map(len, bad)))


def _alone(rows, classes, beta, enhanced):
    """One class beside the rest of the table, row by row, where nothing gains but what this class makes gain."""
    everything = [value for other in classes for value in other]
    for value in set(rows):
        p = Fraction(everything.count(value), len(everything))
        gain = Fraction(rows.count(value), len(rows)) / p - 1
        if gain > 0 and (gain > beta or (enhanced and not oracle.power_is_at_most(gain, 1 / p))):
            return False
    return True


@settings(max_examples=60, deadline=None)
@given(CLASSES, BETAS, st.booleans(), st.randoms(use_true_random=False))
def test_a_union_of_classes_that_keep_it_keeps_it(classes, beta, enhanced, chance):
    """What the descriptor calls monotone, and the planner relies on."""
    if len(classes) > 1:
        first, second = chance.sample(range(len(classes)), 2)
        rest = [rows for number, rows in enumerate(classes) if number not in (first, second)]
        merged = judged([*rest, classes[first] + classes[second]], beta, enhanced)
        assert merged.holds >= judged(classes, beta, enhanced).holds


@settings(max_examples=200, deadline=None)
@given(st.fractions(0, 6, max_denominator=50), st.fractions(1, 200, max_denominator=50))
def test_logarithms_are_never_on_the_wrong_side(x, y):
    assert within_logarithm(x, y) == (oracle.power_is_at_most(x, y) if x else True)
    below = logarithm_below(y)
    assert below == 0 or oracle.power_is_at_most(below, y)
    assert not oracle.power_is_at_most(below + Fraction(1, 2**140), y)


def test_a_tie_that_floats_cannot_tell():
    """The two fractions next to ln 2 with some forty digits: no float is between them."""
    below = logarithm_below(Fraction(2))
    above = below + Fraction(1, 10**40)
    assert float(below) == float(above)
    assert within_logarithm(below, Fraction(2)) and not within_logarithm(above, Fraction(2))
    assert oracle.power_is_at_most(below, Fraction(2)) and not oracle.power_is_at_most(above, Fraction(2))


@settings(max_examples=100, deadline=None)
@given(BETAS, st.sampled_from(["basic", "enhanced"]), st.integers(1, 60), st.integers(0, 40))
def test_the_largest_share_is_the_formula_and_never_above_it(beta, likeness, count, more):
    p = count / (count + more)
    share = largest_share(BetaLikeness(beta=beta, likeness=likeness), count, count + more)
    gain = float(beta) if likeness == "basic" else min(float(beta), -log(p))
    assert float(share) == pytest.approx(min(1.0, (1 + gain) * p), rel=1e-12)


@pytest.mark.parametrize("scheme", ["mondrian", "full-domain", "subtree", "cell"])
@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(20, 60), st.sampled_from("aaabc")), min_size=4, max_size=40),
    beta=BETAS,
    likeness=st.sampled_from(["basic", "enhanced"]),
    suppress=st.sampled_from(["0", "1/5"]),
)
def test_planned_releases_keep_it(scheme, rows, beta, likeness, suppress):
    people = pl.DataFrame({"age": [age for age, _ in rows], "s": [value for _, value in rows]})
    columns = {"age": {"role": "quasi", "widths": [5, 10, 20]}, "s": "sensitive"}
    promise = {"model": "beta-likeness", "beta": str(beta), "likeness": likeness, "k": 2}
    policy = {"columns": columns, "guarantee": promise, "method": {"name": scheme, "suppress": suppress}}
    release = reveil.anonymize(people, policy, seed=1)
    assert release.certificate.holds
    classes = [group["s"].to_list() for group in release.table.partition_by("age")]
    assert oracle.holds(classes, beta, likeness == "enhanced")


def test_the_enhanced_form_holds_frequent_values_back():
    """Half of all rows have `a`: basic beta = 1 lets a class be all `a`, enhanced gives it at most (1 + ln 2)/2."""
    classes = [["a"] * 9 + ["b"], ["a"] + ["b"] * 9]
    assert judged(classes, Fraction(1), False).holds
    verdict = judged(classes, Fraction(1), True)
    assert not verdict.holds and verdict.worst == Fraction(4, 5)


def test_a_loss_never_counts():
    """Not even where its product with a threshold of many digits would leave 64 bits, and come back as a gain."""
    classes = [["x"] + ["y"] * 4000, ["x"] * 4000 + ["y"]]
    counts = count_values(view_of(classes), "s")
    assert gains(counts)[0].min() == 0
    for beta in (oracle.largest_gain(classes), Fraction(9_997, 10**4) + Fraction(1, 10**12)):
        assert judged(classes, beta, False).holds == oracle.holds(classes, beta, False)


def test_it_goes_with_anatomy_and_with_other_conditions():
    people = pl.DataFrame({"age": range(20, 44), "s": ["a", "b", "c", "d"] * 6})
    columns = {"age": "quasi", "s": "sensitive"}
    for method in ({}, {"publish": "anatomy", "people": "exact"}):
        promise = {"model": "l-diversity", "l": 2, "beta": 1}
        release = reveil.anonymize(people, {"columns": columns, "guarantee": promise, "method": method}, seed=1)
        assert [verdict["guarantee"] for verdict in release.certificate.verdicts] == ["l-diversity", "beta-likeness"]
