"""Cutting and its tests on values: the same compiled and not, and against plain re-implementations of each test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from fractions import Fraction
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reveil.base.errors import InfeasibleError
from reveil.base.progress import silent
from reveil.history.history import History
from reveil.plan.budgets import remaining_budget
from reveil.plan.cutting import admit, candidates, counted_cuts, cuts, mondrian, values
from reveil.plan.cutting.trees import lay_end_to_end
from reveil.plan.loss import loss_of
from reveil.plan.plan import Plan
from reveil.policy.policy import load_policy
from reveil.table.encode import Encoded, encode

TREE = {"north": {"cold": ["a", "b"], "mild": ["c"]}, "south": ["d", "e", "f"]}
PARENTS = {"cold": "north", "mild": "north", "north": "*", "south": "*"}
ABOVE = {"a": "cold", "b": "cold", "c": "mild", "d": "south", "e": "south", "f": "south"}
GUARANTEES: list[dict[str, Any]] = [
    {"k": 3},
    {"model": "l-diversity", "k": 2, "l": 2},
    {"model": "l-diversity", "l": "2", "diversity": "entropy"},
    {"model": "l-diversity", "l": 2, "diversity": "recursive", "c": 3},
    {"model": "alpha-k", "k": 2, "alpha": "1/2"},
    {"model": "t-closeness", "t": "1/4", "distance": "equal"},
    {"model": "t-closeness", "t": "1/4", "distance": "ordered"},
    {"model": "t-closeness", "t": "1/4", "distance": "hierarchical"},
    {"model": "epsilon-m", "epsilon": 1, "m": 2},
]


def policy_of(guarantee: dict[str, Any], **method: Any) -> Any:
    sensitive: dict[str, Any] = {"role": "sensitive"}
    if guarantee.get("distance") == "hierarchical":
        sensitive["hierarchy"] = TREE
    columns = {"age": "quasi", "place": {"role": "quasi", "hierarchy": TREE}, "sex": "quasi", "value": sensitive}
    return load_policy({"columns": columns, "guarantee": guarantee, "method": method})


def table_of(rows: list[tuple[int, str, str, int]], guarantee: dict[str, Any]) -> pl.DataFrame:
    """Sensitive values are numbers where order or nearness counts, and leaves of the tree otherwise."""
    numeric = guarantee.get("distance") == "ordered" or "epsilon" in guarantee
    shown = [row[3] if numeric else "abcdef"[row[3]] for row in rows]
    return pl.DataFrame(
        {"age": [r[0] for r in rows], "place": [r[1] for r in rows], "sex": [r[2] for r in rows], "value": shown},
        schema={"age": pl.Int64, "place": pl.String, "sex": pl.String, "value": pl.Int64 if numeric else pl.String},
    )


def random_rows(seed: int, n: int) -> list[tuple[int, str, str, int]]:
    rng = np.random.default_rng(seed)
    ages, places, sexes, codes = (rng.integers(0, top, n).tolist() for top in (30, 6, 2, 6))
    return [(a, "abcdef"[p], "fm"[s], v) for a, p, s, v in zip(ages, places, sexes, codes, strict=True)]


def plan_of(rows: list[tuple[int, str, str, int]], guarantee: dict[str, Any], **method: Any) -> tuple[Encoded, Plan]:
    policy = policy_of(guarantee, **method)
    encoded = encode(table_of(rows, guarantee), policy)
    return encoded, mondrian.plan(encoded, History(), policy, seed=1, progress=silent)


KINDS = [(1, "strict"), (2, "relaxed")]


def count_each_once(patch: pytest.MonkeyPatch) -> None:
    """Cut different rows, counted, in small tables as well."""
    for name, value in (("LARGE", 0), ("ROOM", 1e9), ("ALIKE", 0)):
        patch.setattr(counted_cuts, name, value)


# Compiled and plain --------------------------------------------------------------------------------------------------


def cases() -> list[list[int] | str]:
    """Groups of small random tables under every kind of test, form and cut."""
    found: list[list[int] | str] = []
    for seed, guarantee in enumerate(GUARANTEES):
        for recode, kind in (("nodes", "strict"), ("nodes", "relaxed"), ("sets", "relaxed")):
            for suppress in (0, 0.1):
                try:
                    _, plan = plan_of(random_rows(seed, 90), guarantee, recode=recode, cuts=kind, suppress=suppress)
                    found.append(plan.groups.tolist())
                except InfeasibleError:
                    found.append("infeasible")
    with pytest.MonkeyPatch.context() as patch:
        count_each_once(patch)
        found += [plan_of(random_rows(n, 300), {"k": 4}, cuts=kind)[1].groups.tolist() for n, kind in KINDS]
    return found


def test_plain_python_gives_the_same_groups() -> None:
    code = f"import sys, json; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_kernels as t"
    code += "; from numba import config; assert config.DISABLE_JIT; print(json.dumps(t.cases()))"
    plain = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, check=True
    )
    compiled = cases()
    assert json.loads(plain.stdout) == compiled
    assert sum(isinstance(groups, list) for groups in compiled) > len(compiled) // 2


def test_slices_are_assigned_where_arrays_are_in_named_tuples_too() -> None:
    """Numba 0.68 was seen to leave `a[:] = ...` out of a kernel, the array being in a named tuple as well."""
    encoded = encode(table_of(random_rows(1, 90), {"k": 2}), policy_of({"k": 2}))
    trees = lay_end_to_end(encoded, policy_of({"k": 2}))
    rows = np.ascontiguousarray(encoded.positions)
    for t in (3, 90):  # row by row, and all at once
        count = np.zeros(int(trees.first_leaf[-1]), dtype=np.int32)
        for row in rows[:t]:
            count[trees.first_leaf[:-1] + row] += 1
        candidates.clear_counts(trees, rows, 0, t, count)
        assert not count.any()
    rng = np.random.default_rng(2)
    ratio = 1 + rng.random((5, 4))
    past = remaining_budget.EarlierGroups(
        rng.integers(2, 9, 5) * 1.0, np.zeros(6, np.int64), np.zeros(0, np.int32), np.zeros(0), ratio
    )
    target = remaining_budget.Target(np.array([1.0, 2.0]), np.array([2.0, 3.0]), np.array([True, False]))
    visits, kind = rng.integers(-1, 5, (3, 8)).astype(np.int32), rng.integers(0, 2, 8)
    found = [(np.full((8, 4), np.nan), np.full(8, np.nan)) for _ in range(2)]
    for run, (need, worst) in zip(
        (remaining_budget.fill_needs, remaining_budget.fill_needs.py_func), found, strict=True
    ):
        run(visits, past, target, kind, 0, 8, 10, remaining_budget.Needs(need, worst))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-15)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-15)


def test_wide_codes_give_the_same_groups_as_narrow_ones() -> None:
    """Rows of 16 bits where codes fit, of 32 otherwise."""
    policy = policy_of({"k": 3})
    encoded = encode(table_of(random_rows(5, 400), {}), policy)
    trees = lay_end_to_end(encoded, policy)
    tests = admit.tests(encoded, policy)
    found = []
    for kind in (np.int16, np.int32):
        rows, order = mondrian.rows_of(encoded)
        rows = rows.astype(kind)
        starts, _ = cuts.split(trees, tests, rows, order, 0, len(order), 0, True, 0)
        found.append((starts.tolist(), order.tolist()))
    assert found[0] == found[1]


# Every group satisfies the tests, written again ----------------------------------------------------------------------


def holds(guarantee: dict[str, Any], group: list[Any], everybody: list[Any]) -> bool:
    """The definitions, in exact numbers."""
    n, counts = len(group), Counter(group)
    good = n >= guarantee.get("k", 1)
    if "alpha" in guarantee:
        good &= all(Fraction(count, n) <= Fraction(guarantee["alpha"]) for count in counts.values())
    if "l" in guarantee:
        good &= diverse(guarantee, sorted(counts.values(), reverse=True), n)
    if "t" in guarantee:
        good &= distance(guarantee["distance"], counts, Counter(everybody)) <= Fraction(guarantee["t"])
    if "epsilon" in guarantee:
        near = [sum(abs(x - y) <= guarantee["epsilon"] for y in group) for x in group]
        good &= max(near) * guarantee["m"] <= n
    return bool(good)


def diverse(guarantee: dict[str, Any], counts: list[int], n: int) -> bool:
    l = int(guarantee["l"])  # noqa: E741
    if guarantee.get("diversity") == "recursive":
        return len(counts) >= l and counts[0] < Fraction(guarantee["c"]) * sum(counts[l - 1 :])
    if guarantee.get("diversity") == "entropy":
        if len(set(counts)) == 1:  # all equal: the entropy is the logarithm of their number
            return len(counts) >= l
        return -sum(c / n * log(c / n) for c in counts) >= log(l) - 1e-12
    return len(counts) >= l


def distance(kind: str, group: Counter[Any], everybody: Counter[Any]) -> Fraction:
    n, total = sum(group.values()), sum(everybody.values())
    if kind == "hierarchical":
        return tree_distance({v: Fraction(group[v], n) - Fraction(everybody[v], total) for v in ABOVE})
    excess = [Fraction(group[v], n) - Fraction(everybody[v], total) for v in sorted(everybody)]
    if kind == "equal":
        return sum(map(abs, excess), Fraction(0)) / 2
    carried = [sum(excess[: i + 1], Fraction(0)) for i in range(len(excess))]
    return sum(map(abs, carried), Fraction(0)) / max(1, len(excess) - 1)


def tree_distance(excess: dict[str, Fraction]) -> Fraction:
    """Each inner node moves what its children can settle among themselves, at the price of its height over the root's.

    `mild` has one child, so nothing is settled there; its height does not matter.
    """
    net: dict[str, Fraction] = dict(excess)
    work = Fraction(0)
    for node, height in (("cold", 1), ("mild", 1), ("south", 1), ("north", 2), ("*", 3)):
        children = [child for child, parent in {**ABOVE, **PARENTS}.items() if parent == node]
        more = sum((net[c] for c in children if net[c] > 0), Fraction(0))
        less = -sum((net[c] for c in children if net[c] < 0), Fraction(0))
        work += min(more, less) * Fraction(height, 3)
        net[node] = more - less
    return work


row = st.tuples(st.integers(0, 12), st.sampled_from("abcdef"), st.sampled_from("fm"), st.integers(0, 5))


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=st.lists(row, min_size=1, max_size=60),
    guarantee=st.sampled_from(GUARANTEES),
    kind=st.sampled_from(["strict", "relaxed"]),
    recode=st.sampled_from(["nodes", "sets"]),
    suppress=st.sampled_from([0, 0.05, 0.3]),
)
def test_every_group_satisfies_the_tests(
    rows: list[tuple[int, str, str, int]], guarantee: dict[str, Any], kind: str, recode: str, suppress: float
) -> None:
    method = {"cuts": kind, "recode": recode, "suppress": suppress}
    sensitive = table_of(rows, guarantee)["value"].to_list()
    try:
        _, plan = plan_of(rows, guarantee, **method)
    except InfeasibleError:
        assert not holds(guarantee, sensitive, sensitive)  # as one group
        return
    groups: dict[int, list[int]] = defaultdict(list)
    for number, group in enumerate(plan.groups.tolist()):
        groups[group].append(number)
    withheld = groups.pop(-1, [])
    assert len(withheld) <= suppress * len(rows)
    assert sorted(groups) == list(range(plan.count))
    for members in groups.values():
        assert holds(guarantee, [sensitive[i] for i in members], sensitive), (method, members)
    again = plan_of(rows, guarantee, **method)[1]
    assert (again.groups == plan.groups).all()


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(row, min_size=4, max_size=60), recode=st.sampled_from(["nodes", "sets"]))
def test_strict_cuts_keep_equal_rows_together(rows: list[tuple[int, str, str, int]], recode: str) -> None:
    """What strict promises: rows with the same quasi-identifiers are in the same group."""
    _, plan = plan_of(rows, {"k": 2}, cuts="strict", recode=recode)
    home: dict[tuple[int, str, str], int] = {}
    for values_of_row, group in zip(rows, plan.groups.tolist(), strict=True):
        assert home.setdefault(values_of_row[:3], group) == group


# Thresholds met exactly ----------------------------------------------------------------------------------------------

EXACT: list[tuple[dict[str, Any], list[int], list[int]]] = [  # guarantee, a group that just passes, one that does not
    ({"model": "l-diversity", "l": 3}, [0, 1, 2], [0, 1, 1]),
    ({"model": "l-diversity", "l": 2, "diversity": "entropy"}, [0, 0, 1, 1], [0, 0, 0, 1]),
    ({"model": "l-diversity", "l": 2, "diversity": "recursive", "c": 2}, [0, 0, 0, 1, 1], [0, 0, 1]),
    ({"model": "alpha-k", "k": 2, "alpha": "1/3"}, [0, 1, 2], [0, 0, 1, 2]),
    ({"model": "t-closeness", "t": "1/2", "distance": "equal"}, [0, 1], [0, 0]),
    ({"model": "t-closeness", "t": "1/6", "distance": "ordered"}, [0, 2], [0, 0]),
    ({"model": "t-closeness", "t": "1/3", "distance": "hierarchical"}, [0, 3], [0, 0]),
    ({"model": "epsilon-m", "epsilon": 1, "m": 2}, [0, 0, 2, 2], [0, 1, 3]),
]


@pytest.mark.parametrize(("guarantee", "passes", "fails"), EXACT)
def test_thresholds_are_met_exactly(guarantee: dict[str, Any], passes: list[int], fails: list[int]) -> None:
    """The table has each of four values once more than the groups need, so that shares are the same for all cases."""
    whole = [0, 1, 2, 3]
    policy = policy_of(guarantee)
    encoded = encode(table_of([(0, "a", "f", v) for v in whole], guarantee), policy)
    tests = admit.tests(encoded, policy)
    shown = table_of([(0, "a", "f", v) for v in whole], guarantee)["value"].to_list()
    for group, expected in ((passes, True), (fails, False)):
        assert holds(guarantee, [shown[v] for v in group], shown) is expected
        matrix = np.zeros((len(group), 4), dtype=np.int16)
        matrix[:, 3] = [encoded.codes[v, 0] for v in group]
        order = np.arange(len(group), dtype=np.int32)
        assert bool(values.admits(tests, matrix, order, 0, len(group), *values.room_for(tests))) is expected


# Small parts ---------------------------------------------------------------------------------------------------------


def small(rows: list[tuple[int, str, str, int]]) -> tuple[Any, Any, Any, Any, Any]:
    policy = policy_of({"k": 2})
    encoded = encode(table_of(rows, {}), policy)
    trees = lay_end_to_end(encoded, policy)
    tests = admit.tests(encoded, policy)
    matrix, order = mondrian.rows_of(encoded)
    return trees, tests, matrix, order, candidates.scratch_for(trees, tests, matrix)


def test_halve_divides_between_children_of_the_smallest_node() -> None:
    rows = [(0, place, "f", 0) for place in "aabcddef"]
    trees, _, matrix, _, scratch = small(rows)
    assert cuts.halve(trees, 1, matrix, 0, 8, scratch.rows_at) == 2  # a, b, c (north) | d, e, f (south)
    assert cuts.halve(trees, 1, matrix, 4, 8, scratch.rows_at) == 3  # d | e, f: two rows on either side
    assert not scratch.rows_at.any()


def test_lend_takes_the_nearest_rows() -> None:
    near = [(1, "a", "f", 0), (2, "a", "f", 0), (3, "a", "f", 0)]
    far = [(30, "f", "m", 0), (20, "e", "m", 0), (25, "f", "m", 0)]
    rows = [near[0], far[0], near[1], far[1], near[2], far[2]]
    trees, _, matrix, order, scratch = small(rows)
    cut = cuts.lend(trees, matrix, order, 0, 1, 6, 3, scratch)
    assert cut == 3
    assert sorted(order[:cut].tolist()) == [0, 2, 4]
    trees, _, matrix, order, scratch = small(rows[::-1])  # the short side is the second
    cut = cuts.lend(trees, matrix, order, 0, 5, 6, 3, scratch)
    assert cut == 3
    assert sorted(order[cut:].tolist()) == [1, 3, 5]


def test_offer_keeps_the_best_in_order() -> None:
    _, _, _, _, scratch = small([(0, "a", "f", 0)] * 2)
    kept = 0
    scores = np.random.default_rng(1).permutation(np.arange(-3, 40)).tolist()
    for score in scores:
        kept = candidates.offer(scratch, 0, kept, float(score), score, score, score)
    best = sorted(scores, reverse=True)[: candidates.CANDIDATES]
    assert kept == candidates.CANDIDATES
    assert scratch.best[0].tolist() == best
    assert scratch.cuts[0, :, 0].tolist() == best
    assert scratch.inside[0].tolist() == best


def test_partition_moves_rows_with_their_numbers() -> None:
    rows = [(age, "a", "f", 0) for age in (5, 1, 9, 3, 7, 2)]
    _, _, matrix, order, _ = small(rows)
    before = {int(number): line.tolist() for number, line in zip(order, matrix, strict=True)}
    cut = cuts.partition(matrix, order, 0, 6, 0, 0, 2)
    assert cut == 3
    assert sorted(order[:3].tolist()) == [1, 3, 5]
    assert {int(number): line.tolist() for number, line in zip(order, matrix, strict=True)} == before


# Different rows, counted ----------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(10, 400), st.integers(2, 9), st.sampled_from(["nodes", "sets"]))
def test_strict_cuts_of_different_rows_are_those_of_people(seed: int, n: int, k: int, recode: str) -> None:
    rows = random_rows(seed, n)
    groups = [plan_of(rows, {"k": k}, cuts="strict", recode=recode)[1].groups]
    with pytest.MonkeyPatch.context() as patch:
        count_each_once(patch)
        groups.append(plan_of(rows, {"k": k}, cuts="strict", recode=recode)[1].groups)
    by_people, counted = ({tuple(np.flatnonzero(part == g)) for g in np.unique(part)} for part in groups)
    assert counted == by_people


def test_relaxed_cuts_of_different_rows_lose_as_little() -> None:
    """Rows are lent in another order, so single tables differ a little; all together do not."""
    lost: dict[bool, list[float]] = {False: [], True: []}
    for seed in range(40):
        rows = random_rows(seed, 150 + 20 * seed)
        for counted, losses in lost.items():
            with pytest.MonkeyPatch.context() as patch:
                if counted:
                    count_each_once(patch)
                encoded, plan = plan_of(rows, {"k": 5})
            assert np.bincount(plan.groups).min() >= 5
            losses.append(loss_of(encoded, plan, policy_of({"k": 5})).mean)
    assert sum(lost[True]) <= 1.01 * sum(lost[False])
    assert lost[True] != lost[False]  # it was another way indeed


def test_large_segments_that_stay_open_are_cut_on_in_parts() -> None:
    """One row far away: cutting it off leaves a side too short at once, and all people are one open segment."""
    rows = [(age % 30, "abcdef"[age % 6], "fm"[age % 2], 0) for age in range(30_000)] + [(4_000, "f", "m", 0)]
    policy = policy_of({"k": 3})
    encoded = encode(table_of(rows, {}), policy)
    trees, tests = lay_end_to_end(encoded, policy), admit.tests(encoded, policy)
    found = counted_cuts.segments_of(counted_cuts.Rules(trees, tests, True), *mondrian.rows_of(encoded))
    assert found is not None
    assert np.diff(found.bounds)[found.open].max() > 4_096  # parts of this size are planned in one piece
    plan = mondrian.plan(encoded, History(), policy, seed=1, progress=silent)
    assert np.bincount(plan.groups).min() >= 3
    assert loss_of(encoded, plan, policy).mean < 1e-3
