"""delta-disclosure privacy: the judge and the releases that are planned, against the definition."""

from __future__ import annotations

from fractions import Fraction
from math import inf, log

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reveil
from oracle import disclosure as oracle
from reveil.base.errors import InputError
from reveil.history.history import History
from reveil.plan.cutting.conditions.delta_disclosure import power_below
from reveil.verify.judges.contract import View
from reveil.verify.judges.disclosure import DeltaDisclosureJudge

DELTAS = st.fractions("1/8", 4, max_denominator=8)
CLASSES = st.lists(st.lists(st.sampled_from(["a", "b", None]), min_size=1, max_size=9), min_size=1, max_size=4)


def judged(classes, delta):
    owner = np.repeat(np.arange(len(classes)), [len(rows) for rows in classes])
    values = pl.Series([value for rows in classes for value in rows], dtype=pl.String)
    view = View(owner, pl.DataFrame({"age": owner}), {"s": values}, np.zeros(len(classes), dtype=np.int64))
    (verdict,) = DeltaDisclosureJudge(delta, "s").judge(view, History())
    return verdict


@settings(max_examples=400, deadline=None)
@given(CLASSES, DELTAS)
def test_the_judge_finds_what_the_definition_says(classes, delta):
    everything = [value for rows in classes for value in rows]
    verdict = judged(classes, delta)
    assert verdict.holds == oracle.holds(classes, delta)
    bad = [rows for rows in classes if not oracle.class_holds(rows, everything, delta)]
    assert (verdict.violating_classes, verdict.violating_rows) == (len(bad), sum(map(len, bad)))
    gone = any(value not in rows for rows in classes for value in everything)
    assert (verdict.worst == inf) == gone


@settings(max_examples=100, deadline=None)
@given(CLASSES, DELTAS, st.randoms(use_true_random=False))
def test_a_union_of_classes_that_keep_it_keeps_it(classes, delta, chance):
    """What the descriptor calls monotone, and the planner relies on."""
    if len(classes) > 1:
        first, second = chance.sample(range(len(classes)), 2)
        rest = [rows for number, rows in enumerate(classes) if number not in (first, second)]
        merged = judged([*rest, classes[first] + classes[second]], delta)
        assert merged.holds >= judged(classes, delta).holds


@settings(max_examples=100, deadline=None)
@given(st.fractions("1/50", 64, max_denominator=50))
def test_powers_are_just_below(x):
    below = power_below(x)
    assert not oracle.exponential_is_at_most(x, below)
    assert oracle.exponential_is_at_most(x, below + Fraction(1, 2**30))


def test_a_tie_that_floats_cannot_tell():
    """Two deltas next to ln 2: a class with twice the share of the table is within one of them only."""
    classes = [["a", "b"], ["a", "b", "b", "b", "b", "b"]]  # a: 1/4 of all rows, 1/2 of the first class
    near = Fraction(log(2))
    close = [near - Fraction(1, 10**17), near + Fraction(1, 10**15)]
    assert [judged(classes, delta).holds for delta in close] == [oracle.holds(classes, delta) for delta in close]
    assert not judged(classes, close[0]).holds and judged(classes, close[1]).holds


@pytest.mark.parametrize("scheme", ["mondrian", "full-domain", "subtree", "sibling", "cell"])
@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(20, 60), st.sampled_from(["a", "a", "b", None])), min_size=4, max_size=40),
    delta=DELTAS,
    suppress=st.sampled_from(["0", "1/5"]),
)
def test_planned_releases_keep_it(scheme, rows, delta, suppress):
    people = pl.DataFrame(
        {"age": [age for age, _ in rows], "s": pl.Series([value for _, value in rows], dtype=pl.String)}
    )
    columns = {"age": {"role": "quasi", "widths": [5, 10, 20]}, "s": "sensitive"}
    promise = {"model": "delta-disclosure", "delta": str(delta), "k": 2}
    policy = {"columns": columns, "guarantee": promise, "method": {"name": scheme, "suppress": suppress}}
    release = reveil.anonymize(people, policy, seed=1, accept=["total-rows"])
    assert release.certificate.holds
    classes = [group["s"].to_list() for group in release.table.partition_by("age")]
    assert oracle.holds(classes, delta)


def test_the_planner_does_part_a_table_that_can_be_parted():
    people = pl.DataFrame({"age": list(range(20, 60)), "s": ["a", "b"] * 20})
    policy = {"columns": {"age": "quasi", "s": "sensitive"}, "guarantee": {"delta": "0.1", "k": 4}}
    assert reveil.anonymize(people, policy, seed=1).table["age"].n_unique() >= 8


def test_a_delta_without_meaning_is_refused():
    columns = {"age": "quasi", "s": "sensitive"}
    for delta in (0, "-1", 65):
        with pytest.raises(InputError):
            reveil.anonymize(
                pl.DataFrame({"age": [1, 2], "s": ["a", "b"]}), {"columns": columns, "guarantee": {"delta": delta}}
            )
