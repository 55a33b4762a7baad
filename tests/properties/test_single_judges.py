"""The judges of one release against brute force, on thousands of small tables."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oracle import single as oracle
from reveil.base.errors import InputError
from reveil.guarantees.catalog import descriptors
from reveil.hierarchies.tree import grow
from reveil.history.history import History
from reveil.verify.judges import closeness, counts
from reveil.verify.judges.closeness import TClosenessJudge
from reveil.verify.judges.contract import Background, View
from reveil.verify.judges.k_map import KMapJudge
from reveil.verify.judges.presence import PresenceJudge
from reveil.verify.judges.proximity import EpsilonMJudge
from reveil.verify.judges.single import AlphaKJudge, KAnonymityJudge, LDiversityJudge, diverse_enough

CATEGORIES = ["a", "b", "c", None]
NUMBERS = [-3, -1, 0, 2, 5, None]
DECIMALS = [-0.3, -0.1, 0.0, 0.1, 0.2, 0.3, None]
TINY = Fraction(1, 10**9)
many = settings(max_examples=200, deadline=None)
fewer = settings(max_examples=60, deadline=None)


def tables(values, largest=9):
    """Tables as lists of classes; often one class, one value or equal counts."""
    rows = st.lists(st.sampled_from(values), min_size=1, max_size=largest)
    return st.lists(rows, min_size=1, max_size=5)


def view_of(classes, seed=0, dtype=None):
    """The release of these classes, its rows shuffled and its classes numbered at random."""
    numbers = random.Random(seed).sample(range(len(classes)), len(classes))
    rows = [(number, value) for number, values in zip(numbers, classes, strict=True) for value in values]
    random.Random(seed + 1).shuffle(rows)
    group = np.array([number for number, _ in rows], dtype=np.int64)
    if dtype is None:
        known = next((value for _, value in rows if value is not None), "")
        dtype = {str: pl.String, int: pl.Int64, float: pl.Float64}[type(known)]
    return View(
        classes=group,
        quasi=pl.DataFrame({"box": [f"box {number}" for number in group]}),
        sensitive={"s": pl.Series("s", [value for _, value in rows], dtype=dtype)},
        counterfeits=np.zeros(len(classes), dtype=np.int64),
    )


def only(judge, view):
    (verdict,) = judge.judge(view, History())
    return verdict


def check_at_most(make, view, worst, measure, classes):
    """The verdict is right at the exact worst value, just below it, and counts the classes that violate."""
    at = only(make(worst), view)
    assert (at.holds, at.worst, at.violating_classes, at.violating_rows) == (True, worst, 0, 0)
    if worst > 0:
        below = only(make(worst - TINY), view)
        bad = [rows for rows in classes if measure(rows) > worst - TINY]
        assert not below.holds
        assert (below.worst, below.violating_classes) == (worst, len(bad))
        assert below.violating_rows == sum(map(len, bad))
        assert below.details["class_rows"] in {len(rows) for rows in bad}


@many
@given(tables(CATEGORIES), st.integers(1, 6), st.integers())
def test_k_anonymity(classes, k, seed):
    verdict = only(KAnonymityJudge(k), view_of(classes, seed))
    bad = [rows for rows in classes if len(rows) < k]
    assert verdict.worst == oracle.smallest_class(classes)
    assert (verdict.holds, verdict.violating_classes) == (not bad, len(bad))
    assert verdict.violating_rows == sum(map(len, bad))


@many
@given(tables(CATEGORIES), st.integers(1, 5), st.integers())
def test_distinct_diversity(classes, ell, seed):
    verdict = only(LDiversityJudge(Fraction(ell), "s"), view_of(classes, seed))
    bad = [rows for rows in classes if len(set(rows)) < ell]
    assert verdict.worst == oracle.fewest_values(classes)
    assert (verdict.holds, verdict.violating_classes) == (not bad, len(bad))


# The counts 4, 1, 1, 1, 1 have an entropy of exactly log 4 without being equal.
TIES = [["a"] * 4 + ["b", "c", "d", "e"], ["a", "b"] * 3, ["a", "b", "c"], ["a"], ["a"] * 4 + ["b"] * 4]


@many
@given(
    st.one_of(tables(CATEGORIES), st.lists(st.sampled_from(TIES), min_size=1, max_size=3)),
    st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(2), Fraction(5, 2), Fraction(3), Fraction(4)]),
    st.integers(),
)
def test_entropy_diversity(classes, ell, seed):
    verdict = only(LDiversityJudge(ell, "s", "entropy"), view_of(classes, seed))
    assert verdict.holds == oracle.entropy_diverse(classes, ell)
    assert verdict.violating_classes == sum(not oracle.entropy_diverse([rows], ell) for rows in classes)
    assert verdict.worst == pytest.approx(oracle.lowest_effective_number(classes))
    assert verdict.holds == (verdict.worst >= float(ell))  # the reported float agrees with the exact decision


@pytest.mark.parametrize("c", [Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(3)])
@settings(max_examples=100, deadline=None)
@given(tables(CATEGORIES), st.integers(1, 4), st.integers())
def test_recursive_diversity(c, classes, ell, seed):
    verdict = only(LDiversityJudge(Fraction(ell), "s", "recursive", c), view_of(classes, seed))
    ratios = [oracle.recursive_ratio(rows, ell) for rows in classes]
    assert verdict.holds == oracle.recursively_diverse(classes, c, ell)
    assert verdict.worst == (math.inf if None in ratios else max(ratios))
    assert verdict.violating_classes == sum(not oracle.recursively_diverse([rows], c, ell) for rows in classes)


@many
@given(tables(CATEGORIES), st.integers())
def test_alpha(classes, seed):
    worst = oracle.largest_share(classes)
    check_at_most(
        lambda alpha: AlphaKJudge(alpha, "s"),
        view_of(classes, seed),
        worst,
        lambda rows: oracle.largest_share([rows]),
        classes,
    )


@pytest.mark.parametrize("proximity", ["absolute", "relative"])
@pytest.mark.parametrize("values", [NUMBERS, DECIMALS], ids=["whole", "decimal"])
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_epsilon(proximity, values, data):
    classes, seed = data.draw(tables(values)), data.draw(st.integers())
    epsilon = data.draw(st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1, 5), Fraction(1), Fraction(3)]))
    m = data.draw(st.integers(1, 4))
    dtype = pl.Int64 if values is NUMBERS else pl.Float64
    verdict = only(EpsilonMJudge(epsilon, m, "s", proximity), view_of(classes, seed, dtype))
    shares = [oracle.largest_neighbourhood([rows], epsilon, proximity == "relative") for rows in classes]
    bad = [share for share in shares if share > Fraction(1, m)]
    assert verdict.worst == max(shares)
    assert (verdict.holds, verdict.violating_classes) == (not bad, len(bad))


def published_values(classes):
    return sorted({value for rows in classes for value in rows if value is not None}) + (
        [None] if any(None in rows for rows in classes) else []
    )


def check_close(make, view, classes, ground):
    worst = oracle.furthest_class(classes, ground)
    everything = oracle.distribution([value for rows in classes for value in rows])
    corners = oracle.dual_corners(ground)
    check_at_most(
        make,
        view,
        worst,
        lambda rows: oracle.earth_movers(oracle.distribution(rows), everything, corners),
        classes,
    )


@fewer
@given(tables(CATEGORIES), st.integers())
def test_equal_closeness(classes, seed):
    ground = oracle.ground_equal(published_values(classes))
    check_close(lambda t: TClosenessJudge(t, "s", "equal"), view_of(classes, seed), classes, ground)


@fewer
@given(tables([-3, 0, 2, 7, None]), st.integers())
def test_ordered_closeness_of_numbers(classes, seed):
    assume(len(published_values(classes)) < 5)  # trying all trees takes long beyond four values
    ground = oracle.ground_ordered(published_values(classes))
    check_close(lambda t: TClosenessJudge(t, "s", "ordered"), view_of(classes, seed, pl.Int64), classes, ground)


@fewer
@given(tables(CATEGORIES), st.permutations(["a", "b", "c"]), st.integers())
def test_ordered_closeness_of_stated_categories(classes, order, seed):
    present = published_values(classes)
    ground = oracle.ground_ordered([value for value in [*order, None] if value in present])
    judge = lambda t: TClosenessJudge(t, "s", "auto", order=("unused", *order))  # noqa: E731
    check_close(judge, view_of(classes, seed, pl.String), classes, ground)


TREES = [
    {"a": None, "b": None, "c": None},
    {"ab": {"a": None, "b": None}, "c": None},
    {"left": {"a": None, "x": None}, "right": {"b": None, "y": {"c": None, "z": None}}},
    {"abx": {"ab": {"a": None, "b": None}, "x": None}, "cy": {"c": None, "y": None}},
]


def paths(tree, above=()):
    found = {}
    for label, below in tree.items():
        found |= {label: (*above, label)} if below is None else paths(below, (*above, f"<{label}>"))
    return found


@pytest.mark.parametrize("roof", [(), ("any",)], ids=["plain", "one node on top"])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("tree", TREES)
@settings(max_examples=12, deadline=None)
@given(tables(CATEGORIES), st.integers())
def test_hierarchical_closeness(roof, missing, tree, classes, seed):
    hierarchy = grow("s", paths(tree, roof), missing=missing)
    ground = oracle.ground_hierarchical(published_values(classes), tree)
    judge = lambda t: TClosenessJudge(t, "s", "auto", hierarchy)  # noqa: E731
    check_close(judge, view_of(classes, seed, pl.String), classes, ground)


@settings(max_examples=40, deadline=None)
@given(tables(list(range(9)), largest=30), st.integers())
def test_closeness_on_larger_domains_by_linear_programming(classes, seed):
    view, values = view_of(classes, seed), published_values(classes)
    hierarchy = grow("s", {str(v): (f"<{v // 4}>", f"<<{v // 2}>>", str(v)) for v in range(9)}, missing=False)
    tree = {
        "low": {"01": {0: None, 1: None}, "23": {2: None, 3: None}},
        "high": {"45": {4: None, 5: None}, "67": {6: None, 7: None}},
        8: None,
    }
    for distance, ground in {
        "equal": oracle.ground_equal(values),
        "ordered": oracle.ground_ordered(values),
        "hierarchical": oracle.ground_hierarchical(values, tree),
    }.items():
        found = only(TClosenessJudge(Fraction(1), "s", distance, hierarchy), view).worst
        assert float(found) == pytest.approx(oracle.furthest_by_linear_programming(classes, ground), abs=1e-9)


JUDGES = [
    KAnonymityJudge(3),
    LDiversityJudge(Fraction(2), "s"),
    LDiversityJudge(Fraction(3, 2), "s", "entropy"),
    LDiversityJudge(Fraction(2), "s", "recursive", Fraction(2)),
    AlphaKJudge(Fraction(2, 3), "s"),
    TClosenessJudge(Fraction(3, 10), "s", "equal"),
    TClosenessJudge(Fraction(3, 10), "s", "ordered"),
    TClosenessJudge(
        Fraction(3, 10),
        "s",
        hierarchy=grow("s", paths({"n": {"1": None, "2": None}, "5": None}), missing=True),
    ),
]


@pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: f"{judge.name}-{getattr(judge, 'kind', '')}")
@settings(max_examples=60, deadline=None)
@given(tables([1, 2, 5, None]), st.randoms(use_true_random=False))
def test_merging_classes_never_makes_the_worst_class_worse(judge, classes, chance):
    """So whatever bound held before the merge holds after it: that is what monotone means."""
    assert descriptors()[judge.name].monotone
    classes = [*classes, [1, 2]]
    first, second = chance.sample(range(len(classes)), 2)
    rest = [rows for number, rows in enumerate(classes) if number not in (first, second)]
    merged = only(judge, view_of([*rest, classes[first] + classes[second]], dtype=pl.Int64))
    apart = only(judge, view_of(classes, dtype=pl.Int64))
    assert merged.holds >= apart.holds
    if getattr(judge, "kind", "") == "entropy":
        assert merged.worst >= apart.worst * (1 - 1e-12)
    elif judge.name == "k-anonymity" or getattr(judge, "kind", "") == "distinct":
        assert merged.worst >= apart.worst
    else:
        assert merged.worst <= apart.worst


def test_epsilon_is_not_monotone():
    judge = EpsilonMJudge(Fraction(5), 2, "s")
    assert not descriptors()[judge.name].monotone
    assert only(judge, view_of([[0, 10], [5, -5]])).holds
    merged = only(judge, view_of([[0, 10, 5, -5]]))
    assert (merged.holds, merged.worst) == (False, Fraction(3, 4))


def presence_view(boxes, sizes, counterfeits):
    group = np.repeat(np.arange(len(boxes)), sizes)
    cells = ["{" + ",".join(f"p{kind}" for kind in sorted(box)) + "}" for box in boxes]
    quasi = pl.DataFrame({"kind": [cells[number] for number in group]}, schema={"kind": pl.String})
    return View(group, quasi, {}, np.array(counterfeits, dtype=np.int64))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_presence_bounds_hold_every_chance(data):
    kinds = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=7))
    box = st.sets(st.integers(0, 3), min_size=1, max_size=3)
    boxes = data.draw(st.lists(box, min_size=1, max_size=3))
    sizes = [data.draw(st.integers(1, 3)) for _ in boxes]
    counterfeits = [data.draw(st.integers(0, size - 1)) for size in sizes]
    who = [{person for person, kind in enumerate(kinds) if kind in box} for box in boxes]
    real = [size - invented for size, invented in zip(sizes, counterfeits, strict=True)]
    truth = oracle.chances_of_presence(who, real, len(kinds))
    assume(truth is not None)
    population = pl.DataFrame({"kind": [f"p{kind}" for kind in kinds]})
    judge = PresenceJudge(Fraction(1, 10**6), Fraction(1), Background(population=population))
    most, least = judge.judge(presence_view(boxes, sizes, counterfeits), History())
    assert most.worst >= max(truth)
    assert least.worst <= min(truth)
    if all(one.isdisjoint(other) for n, one in enumerate(who) for other in who[:n]):
        assert most.details["exact"]
        assert (most.worst, least.worst) == (max(truth), min(truth))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_k_map_is_the_fewest_people_who_fit(data):
    kinds = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=9))
    boxes = data.draw(st.lists(st.sets(st.integers(0, 3), min_size=1, max_size=3), min_size=1, max_size=3))
    sizes = [data.draw(st.integers(1, 3)) for _ in boxes]
    counterfeits = [data.draw(st.integers(0, size - 1)) for size in sizes]
    fit = [sum(kind in box for kind in kinds) for box in boxes]
    judge = KMapJudge(
        data.draw(st.integers(2, 4)), Background(population=pl.DataFrame({"kind": [f"p{kind}" for kind in kinds]}))
    )
    view = presence_view(boxes, sizes, counterfeits)
    if any(fits < size - fake for fits, size, fake in zip(fit, sizes, counterfeits, strict=True)):
        with pytest.raises(InputError, match="R408"):  # somebody is shown who is nobody of the population
            judge.judge(view, History())
        return
    verdict = only(judge, view)
    assert (verdict.worst, verdict.holds) == (min(fit), min(fit) >= judge.k)
    bad = [size for fits, size in zip(fit, sizes, strict=True) if fits < judge.k]
    assert (verdict.violating_classes, verdict.violating_rows) == (len(bad), sum(bad))


def test_presence_is_not_monotone():
    """Joining two classes covers the people of the third, whose chance is then only bounded."""
    population = pl.DataFrame({"age": [20, 21, 30, 31, 40, 41]})
    judge = PresenceJudge(Fraction(0), Fraction(1, 2), Background(population=population))

    def view(cells):
        group = np.unique(cells, return_inverse=True)[1]
        return View(group, pl.DataFrame({"age": cells}), {}, np.zeros(len(set(cells)), dtype=np.int64))

    assert not descriptors()[judge.name].monotone
    apart = only(judge, view(["[20-21]", "[30-31]", "[40-41]"]))
    assert (apart.holds, apart.worst, apart.details["exact"]) == (True, Fraction(1, 2), True)
    joined = only(judge, view(["[20-41]", "[20-41]", "[30-31]"]))
    assert (joined.holds, joined.details["exact"]) == (False, False)


def counts_of(classes):
    """Counts as large as nobody would write out row by row: a list of {value: rows} per class."""
    values = sorted({value for rows in classes for value in rows})
    entries = [(g, values.index(v), c) for g, rows in enumerate(classes) for v, c in sorted(rows.items())]
    owner, value, count = (np.array(column, dtype=np.int64) for column in zip(*entries, strict=True))
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    return counts.Counts(owner, value, count, starts, np.arange(len(classes)), pl.Series(values))


@pytest.mark.parametrize("scale", [1, 10**6, 2**31 + 1, 2**40 + 1, 2**58 + 1])
def test_nothing_overflows(scale):
    """ARX's hierarchical t-closeness overflows 32 bits; ours must not overflow 64 either."""
    small = [{1: 3, 2: 1}, {2: 2, 5: 7}, {1: 1, 5: 1}]
    table = counts_of([{value: count * scale for value, count in rows.items()} for rows in small])
    classes = [[value for value, count in rows.items() for _ in range(count)] for rows in small]
    tree = {"12": {1: None, 2: None}, 5: None}
    hierarchy = grow("s", {"1": ("12", "1"), "2": ("12", "2"), "5": ("5",)}, missing=False)
    taxonomy = closeness.taxonomy_of(table, hierarchy, "s")
    everything = oracle.distribution([value for rows in classes for value in rows])
    for (numerators, denominators), ground in (
        (closeness.equal_distance(table, table.totals), oracle.ground_equal([1, 2, 5])),
        (closeness.ordered_distance(table, table.totals), oracle.ground_ordered([1, 2, 5])),
        (closeness.hierarchical_distance(table, taxonomy, table.totals), oracle.ground_hierarchical([1, 2, 5], tree)),
    ):
        found = [Fraction(int(a), int(b)) for a, b in zip(numerators, denominators, strict=True)]
        corners = oracle.dual_corners(ground)
        assert found == [oracle.earth_movers(oracle.distribution(rows), everything, corners) for rows in classes]
        worst = max(found)
        assert not counts.exceeds(numerators, denominators, worst).any()
        assert counts.exceeds(numerators, denominators, worst - Fraction(1, 10**30)).sum() == 1
        assert counts.largest_ratio(numerators, denominators)[0] == worst


def test_a_tie_of_entropies_is_no_matter_of_rounding():
    """Near-ties of large classes, which no float can tell apart."""
    for half, holds in ((50_000_000, True), (50_000_001, False)):
        table = counts_of([{1: half, 2: 100_000_000 - half}])
        assert diverse_enough(table, Fraction(2))[0].tolist() == [holds]


def test_every_value_of_a_column_with_only_missing_values_is_one_value():
    view = view_of([[None, None], [None]], dtype=pl.Float64)
    assert only(LDiversityJudge(Fraction(1), "s"), view).worst == 1
    assert only(AlphaKJudge(Fraction(1), "s"), view).worst == 1
    assert only(EpsilonMJudge(Fraction(1), 1, "s"), view).worst == 1
    assert only(TClosenessJudge(Fraction(0), "s"), view).worst == 0


def test_nan_and_null_are_the_same_missing_value():
    view = view_of([[float("nan"), None, 1.0]])
    assert only(LDiversityJudge(Fraction(2), "s"), view).worst == 2


def test_a_release_without_rows_breaks_nothing():
    view = View(
        np.zeros(0, dtype=np.int64),
        pl.DataFrame({"box": []}, schema={"box": pl.String}),
        {"s": pl.Series("s", [], dtype=pl.Int64)},
        np.zeros(0, dtype=np.int64),
    )
    for judge in [*JUDGES, EpsilonMJudge(Fraction(1), 2, "s")]:
        verdict = only(judge, view)
        assert (verdict.holds, verdict.worst) == (True, None)
