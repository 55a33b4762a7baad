"""t-closeness against the table as it was put in: judge and planned releases against the definition."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reveil
from oracle import single as oracle
from reveil.base.errors import InfeasibleError
from reveil.hierarchies.tree import grow
from reveil.history.history import History
from reveil.verify.judges.closeness import TClosenessJudge
from reveil.verify.judges.contract import View
from reveil.verify.verify import check_table

VALUES = ["a", "b", "c", None]
CLASSES = st.lists(st.lists(st.sampled_from(VALUES), min_size=1, max_size=7), min_size=1, max_size=4)
WITHHELD = st.lists(st.sampled_from(VALUES), max_size=6)
TREE = {"ab": {"a": None, "b": None}, "c": None}


def view_of(classes, original):
    owner = np.repeat(np.arange(len(classes)), [len(rows) for rows in classes])
    values = pl.Series([value for rows in classes for value in rows], dtype=pl.String)
    counted = Counter(original)
    told = pl.DataFrame({"value": pl.Series(list(counted), dtype=pl.String), "rows": list(counted.values())})
    empty = np.zeros(len(classes), dtype=np.int64)
    return View(owner, pl.DataFrame({"age": owner}), {"s": values}, empty, original={"s": told})


def grounds(original):
    present = [value for value in VALUES if value in original]
    tree = grow("s", {"a": ("ab", "a"), "b": ("ab", "b"), "c": ("c",)}, missing=True)
    yield oracle.ground_equal(present), ("equal",)
    yield oracle.ground_ordered(present), ("ordered", None, ("a", "b", "c"))
    yield oracle.ground_hierarchical(present, TREE), ("hierarchical", tree)


@settings(max_examples=60, deadline=None)
@given(CLASSES, WITHHELD)
def test_the_judge_finds_what_the_definition_says(classes, withheld):
    original = [value for rows in classes for value in rows] + withheld
    view = view_of(classes, original)
    for ground, how in grounds(original):
        worst = oracle.furthest_class(classes, ground, original)
        (at,) = TClosenessJudge(worst, "s", *how, of_original=True).judge(view, History())
        (below,) = TClosenessJudge(worst - Fraction(1, 10**9), "s", *how, of_original=True).judge(view, History())
        assert (at.holds, at.worst, below.holds) == (True, worst, False)


def test_nothing_is_decided_without_the_original():
    view = replace(view_of([["a"]], ["a"]), original={})
    (verdict,) = TClosenessJudge(Fraction(1, 2), "s", "equal", of_original=True).judge(view, History())
    assert (verdict.holds, verdict.decided) == (False, False)


ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.sampled_from(VALUES)), min_size=3, max_size=24)


@pytest.mark.parametrize("scheme", ["mondrian", "full-domain", "cell", "subtree"])
@settings(max_examples=40, deadline=None)
@given(ROWS, st.sampled_from(["1/5", "1/3", "1/2"]), st.sampled_from(["0", "0.2", "0.5"]))
def test_planned_releases_are_close_to_the_original(scheme, rows, t, suppress):
    table = pl.DataFrame(rows, schema={"a": pl.Int64, "b": pl.Int64, "s": pl.String}, orient="row")
    policy = {
        "columns": {"a": "quasi", "b": "quasi", "s": "sensitive"},
        "guarantee": {"k": 2, "t": t, "distance": "equal", "reference": "original"},
        "method": {"name": scheme, "suppress": suppress},
    }
    accept = ["total-rows", "row-index", "same-table"]
    try:
        release = reveil.anonymize(table, policy, seed=1, accept=accept)
    except InfeasibleError:
        assert len(rows) < 2
        return
    original = [value for _, _, value in rows]
    classes = [group["s"].to_list() for _, group in release.table.group_by("a", "b")]
    ground = oracle.ground_equal([value for value in VALUES if value in original])
    assert oracle.furthest_class(classes, ground, original) <= Fraction(t)
    assert release.certificate.holds
    (verdict,) = [
        one for one in check_table(release.table, reveil.load_policy(policy)).verdicts if "t-" in one.guarantee
    ]
    assert not verdict.decided
