"""Utility against brute force, on small tables of every kind of column and on the Adult table."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import utility as oracle
from reveil.background.loading import stated_hierarchy
from reveil.base.errors import InputError
from reveil.measure.axes import axis_of, classes_of, read_column
from reveil.measure.measure import entropy_cells, measure, ncp_column
from reveil.measure.queries import Questions
from reveil.policy.column import Column
from reveil.policy.policy import load_policy
from reveil.table.encode import positions_of

POLICY = {
    "columns": {
        "name": "identifier",
        "age": "quasi",
        "job": {
            "role": "quasi",
            "hierarchy": {"desk": ["clerk", "judge"], "hand": ["cook", "smith", "weaver"]},
        },
        "sex": "quasi",
        "ill": "sensitive",
    },
    "guarantee": {"k": 2},
}
JOBS = ["clerk", "judge", "cook", "smith", "weaver"]
ILLS = ["cold", "flu", "gout", "mumps"]
AGES = list(range(20, 40))

# What a text stands for, written down by hand: the oracle's reading of the published table.
AGE_CELLS = {
    "[20-24]": range(20, 25),
    "[25-40[": range(25, 40),
    "30": [30],
    ">=35": range(35, 40),
    "<22": range(20, 22),
    "3*": range(30, 40),
    "*": range(20, 40),
    "{20,39}": [20, 39],
}
JOB_CELLS = {
    "clerk": ["clerk"],
    "desk": ["clerk", "judge"],
    "hand": ["cook", "smith", "weaver"],
    "*": JOBS,
    "{clerk,cook}": ["clerk", "cook"],
    "{desk,weaver}": ["clerk", "judge", "weaver"],
}
SEX_CELLS = {"f": ["f"], "m": ["m"], "*": ["f", "m"], "{f,m}": ["f", "m"]}

people = st.tuples(st.sampled_from(AGES), st.sampled_from(JOBS), st.sampled_from("fm"), st.sampled_from(ILLS))
shown = st.tuples(
    st.sampled_from(list(AGE_CELLS)),
    st.sampled_from(list(JOB_CELLS)),
    st.sampled_from(list(SEX_CELLS)),
    st.sampled_from(ILLS),
)
# All values occur, so that the domains of the oracle are those of the table.
BASE = [(AGES[i], JOBS[i % 5], "fm"[i % 2], ILLS[i % 4]) for i in range(20)]


def frame(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    schema = ["age", "job", "sex", "ill"]
    return pl.DataFrame(rows, schema=schema, orient="row", infer_schema_length=None)


def values_of(row: tuple[str, ...]) -> list[list[Any]]:
    return [list(AGE_CELLS[row[0]]), JOB_CELLS[row[1]], SEX_CELLS[row[2]]]


POLICY_OF_AGES = {"columns": {"age": "quasi", "ill": "sensitive"}, "guarantee": {"k": 2}}


@settings(max_examples=60, deadline=None)
@given(st.lists(people, max_size=10), st.lists(shown, min_size=1, max_size=20))
def test_losses_agree_with_brute_force(more: list[tuple[Any, ...]], published: list[tuple[str, ...]]) -> None:
    original = BASE + more
    found = measure(frame(published), frame(original), POLICY, queries=0)
    stars = [row for row in published if row[:3] == ("*", "*", "*")]
    kept = [row for row in published if row[:3] != ("*", "*", "*")]
    suppressed = len(original) - len(kept)
    assert found.suppressed == suppressed
    assert found.suppressed >= len(stars)
    for i, (name, domain) in enumerate((("age", AGES), ("job", JOBS), ("sex", ["f", "m"]))):
        column = [row[i] for row in original]
        losses, hidden = [1.0] * suppressed, [1.0] * suppressed
        for row in kept:
            cell = values_of(row)[i]
            by_width = name == "age" and not row[i].startswith("{")
            losses.append(oracle.ncp_of_range(cell, domain) if by_width else oracle.ncp_of_values(cell, domain))
            hidden.append(oracle.entropy_of(cell, column))
        assert found.ncp[name] == pytest.approx(sum(losses) / len(original))
        assert found.entropy[name] == pytest.approx(sum(hidden) / len(original))
    assert found.ncp_mean == pytest.approx(sum(found.ncp.values()) / 3)
    keys = [row[:3] for row in kept]
    assert found.discernibility == oracle.discernibility(keys, suppressed, len(original))
    assert found.classes == len(set(keys))
    assert found.average_class == pytest.approx(len(keys) / len(set(keys)) if keys else 0)
    assert found.c_avg == pytest.approx(found.average_class / 2)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(people, max_size=15),
    st.lists(st.tuples(shown, st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=8),
    st.sampled_from([0.01, 0.1, 0.5, 1.0]),
    st.integers(0, 5),
)
def test_queries_agree_with_brute_force(
    more: list[tuple[Any, ...]], groups: list[tuple[tuple[str, ...], int, int]], selectivity: float, seed: int
) -> None:
    original, rows, fakes, expected = BASE + more, [], [], []
    for number, (cells, size, fake) in enumerate(groups):
        ills = [ILLS[(number + i) % 4] for i in range(size)]
        rows += [(number, *cells[:3], ill) for ill in ills]
        fakes.append((number, min(fake, size)))
        expected.append((values_of(cells), ills, min(fake, size)))
    published = pl.DataFrame(rows, schema=["group", "age", "job", "sex", "ill"], orient="row")
    counterfeits = pl.DataFrame(fakes, schema=["group", "count"], orient="row")
    policy = load_policy(POLICY)
    table = frame(original)
    classes = classes_of(published, table, policy, counterfeits)
    asked = (questions := Questions(classes, published, table, policy)).draw(20, selectivity, seed)
    truths, estimates = [], []
    for query in range(20):
        accepted = []
        for pick, (low, high), domain in zip(asked.picks, asked.quasi, (None, JOBS, ["f", "m"]), strict=True):
            first, last = int(low[pick[query]]), int(high[pick[query]])
            accepted.append(range(first, last + 1) if domain is None else domain[first : last + 1])
        low, high = asked.sensitive[0]
        accepted.append(ILLS[int(low[asked.value[query]]) : int(high[asked.value[query]]) + 1])
        sides = [len(part) for part in accepted]
        assert sides == [max(1, round(n * selectivity**0.25)) for n in (20, 5, 2, 4)]
        truths.append(oracle.true_count(original, accepted))
        estimates.append(oracle.estimate(expected, accepted))
    assert questions.truth(asked).tolist() == truths
    assert questions.estimates(asked) == pytest.approx(estimates)
    error = questions.error(20, selectivity, seed)
    off = [abs(a - b) for a, b in zip(estimates, truths, strict=True)]
    known = [a / b for a, b in zip(off, truths, strict=True) if b]
    assert error.skipped == pytest.approx(truths.count(0) / 20)
    assert error.median_relative == (pytest.approx(oracle.median(known)) if known else None)
    assert error.mean_absolute == pytest.approx(sum(off) / 20)


def test_a_table_published_as_it_is_loses_nothing() -> None:
    table = frame(BASE)
    found = measure(table.sample(fraction=1, shuffle=True, seed=3), table, POLICY, queries=500)
    assert (found.ncp_mean, found.entropy_mean, found.suppressed) == (0, 0, 0)
    assert [error.median_relative for error in found.queries if error.skipped < 1] == [0.0] * 3
    assert [error.mean_absolute for error in found.queries] == pytest.approx([0.0] * 3)


def test_the_same_seed_asks_the_same_queries() -> None:
    published = frame([("[20-24]", "desk", "*", "flu")] * 10)
    first, again, other = (measure(published, frame(BASE), POLICY, queries=200, seed=s) for s in (1, 1, 2))
    assert first == again
    assert first.queries != other.queries


def test_withheld_and_starred_rows_cost_everything() -> None:
    found = measure(frame([("*", "*", "*", "flu")] * 3), frame(BASE), POLICY, queries=0)
    assert (found.suppressed, found.ncp_mean, found.discernibility, found.classes) == (20, 1.0, 400, 0)
    nothing = measure(frame(BASE).clear(), frame(BASE), POLICY, queries=50)
    assert (nothing.suppressed, nothing.ncp_mean) == (20, 1.0)


def test_counterfeits_lose_nothing_and_are_not_counted_as_people() -> None:
    rows = [(1, "20", "desk", "f", "flu")] * 3 + [(2, "20", "desk", "f", "cold")] * 17
    published = pl.DataFrame(rows, schema=["group", "age", "job", "sex", "ill"], orient="row")
    fakes = pl.DataFrame({"group": [1], "count": [2]})
    found = measure(published, frame(BASE), POLICY, counterfeits=fakes, queries=0)
    assert (found.counterfeits, found.suppressed, found.classes) == (2, 2, 2)
    assert found.ncp["job"] == pytest.approx((18 * 0.25 + 2) / 20)
    assert found.discernibility == 9 + 289 + 2 * 20


def test_rows_without_a_group_are_a_class_of_their_own() -> None:
    published = frame(BASE).with_columns(group=pl.Series([1] * 10 + [None] * 10))
    found = measure(published, frame(BASE), POLICY, queries=100)
    assert (found.classes, found.suppressed) == (20, 0)
    assert [error.mean_absolute for error in found.queries] == pytest.approx([0.0] * 3)


def test_empty_cells_beyond_those_of_the_original_are_suppressed_ones() -> None:
    original = pl.DataFrame({"age": [20, None, 40, 50]})
    published = pl.DataFrame({"age": ["20", None, None, "50"]})
    policy = {"columns": {"age": "quasi"}, "guarantee": {"k": 2}}
    assert measure(published, original, policy, queries=0).ncp["age"] == 0.25
    assert measure(original, original, policy, queries=10).ncp["age"] == 0


def losses(spec: dict[str, Any], values: list[Any], texts: list[str | None]) -> list[float]:
    column = Column(role="quasi", **spec)
    tree = None if column.hierarchy is None else stated_hierarchy("x", column.hierarchy, Path())
    axis = axis_of("x", column, pl.Series("x", values), tree)
    read, faults = read_column(axis, pl.Series(texts))
    assert faults == []
    return ncp_column(read).round(6).tolist()


def test_loss_of_every_kind_of_column() -> None:
    day = datetime.date
    days = [day(2026, 1, 1), day(2026, 2, 10), day(2026, 4, 11)]
    assert losses({}, days, ["2026-02-10", "[2026-01-01/2026-02-10]", "2026-02", "2026", "*"]) == [
        0,
        0.4,
        0.27,
        1,
        1,
    ]
    whole = ["(20,25]", "[20.5-25.5]", "[20-25[", "]19,41["]
    assert losses({}, [20, 25, 40], whole) == [0.2, 0.2, 0.2, 1]
    assert losses({}, [0.5, 1.0, 2.5], ["[0.5-1.5[", "{0.5,1}", "0.75"]) == [0.5, 0.5, 0]
    zips = ["47602", "47677", "47905"]
    assert losses({"prefixes": (3,)}, zips, ["476**", "479**", "4****", "47602"]) == [0.5, 0, 1, 0]
    stages = {"order": ("I", "II", "III", "IV")}
    assert losses(stages, ["I", "III"], ["[I-III]", "II", "*"]) == pytest.approx([2 / 3, 0, 1], abs=1e-6)
    ages = {"hierarchy": {"young": ["1", "2", "4"], "old": ["70", "101"]}}
    assert losses(ages, [1, 4, 101], ["young", "101", "[1-51]", "{1,4}"]) == [0.03, 0, 0.5, 0.5]
    assert losses({"type": "category"}, [1, 2, 10], ["{1,10}", "2"]) == [0.5, 0]
    assert losses({}, ["a", "a"], ["a", "*"]) == [0, 0]


def test_loss_of_our_own_labels_is_the_loss_that_planning_saw() -> None:
    values = pl.Series("job", JOBS)
    spec = Column.model_validate(POLICY["columns"]["job"])  # type: ignore[index]
    assert spec.hierarchy is not None
    tree, _ = positions_of("job", spec, values, stated_hierarchy("job", spec.hierarchy, Path()))
    read, _ = read_column(axis_of("job", spec, values, tree), pl.Series(tree.labels))
    assert ncp_column(read) == pytest.approx(tree.cost)


def test_entropy_of_one_value_is_nothing() -> None:
    assert entropy_cells(np.array([4, 0]), [[(0, 1)], [(1, 1)], []]).tolist() == [0, 0, 0]


def test_all_faults_are_reported_at_once_and_name_what_is_wrong() -> None:
    with pytest.raises(InputError) as lacking:
        measure(frame(BASE).rename({"age": "agge"}).drop("ill"), frame(BASE), POLICY, queries=-1)
    assert [fault.code for fault in lacking.value.faults] == ["R701", "R701", "R705"]
    assert "rename 'agge' to 'age'" in str(lacking.value)
    dark = frame([("young", "desks", "f", "flu"), ("30", "desks", "f", "flu")])
    with pytest.raises(InputError) as unread:
        measure(dark, frame(BASE), POLICY)
    assert [fault.rows for fault in unread.value.faults] == [1, 2]
    assert "'desks' (2 rows, nearest 'desk')" in str(unread.value)
    with pytest.raises(InputError, match="R703"):
        measure(frame(BASE + BASE), frame(BASE), POLICY)
    with pytest.raises(InputError, match="R706"):
        measure(frame(BASE), frame(BASE).clear(), POLICY)


def test_counterfeits_must_belong_to_the_release() -> None:
    fakes = pl.DataFrame({"group": [7], "count": [1]})
    with pytest.raises(InputError, match=r"R704.*no column 'group'"):
        measure(frame(BASE), frame(BASE), POLICY, counterfeits=fakes)
    with pytest.raises(InputError, match=r"R704.*not published"):
        measure(frame(BASE).with_columns(group=1), frame(BASE), POLICY, counterfeits=fakes)
    with pytest.raises(InputError, match=r"R704.*no column 'count'"):
        measure(frame(BASE).with_columns(group=1), frame(BASE), POLICY, counterfeits=fakes.drop("count"))


def test_results_are_shown_and_saved() -> None:
    found = measure(frame(BASE), frame(BASE), POLICY, queries=10)
    assert "20 classes of 1.0 rows" in repr(found)
    assert "<td>age</td><td>0.0000</td>" in found._repr_html_()
    assert found.to_dict()["queries"][0]["queries"] == 10


def test_many_queries_on_many_rows_take_seconds() -> None:
    random = np.random.default_rng(5)
    size = 30_000
    number = random.integers(0, 60, (size, 6))
    names = [f"q{i}" for i in range(6)]
    original = pl.DataFrame({name: number[:, i] for i, name in enumerate(names)})
    original = original.with_columns(ill=pl.Series(random.integers(0, 50, size)).cast(pl.String))
    low = number // 30 * 30
    texts = {name: [f"[{a}-{a + 29}]" for a in low[:, i]] for i, name in enumerate(names)}
    published = pl.DataFrame({**texts, "ill": original["ill"]})
    policy = {"columns": {**dict.fromkeys(names, "quasi"), "ill": "sensitive"}, "guarantee": {"k": 5}}
    found = measure(published, original, policy, selectivity=[0.1])
    assert found.queries[0].median_relative is not None
    assert found.queries[0].median_relative < 0.1  # the rows are uniform, so the estimate is near the truth


@pytest.mark.parametrize("start", [0, 2**62, -(2**62), 2**63 - 200])
def test_large_numbers_lose_what_small_ones_lose(start: int) -> None:
    """Floats hold whole numbers only up to 2^53; a shifted column must still lose the same."""
    rules = {"columns": {"n": "quasi", "ill": "sensitive"}, "guarantee": {"k": 2}}

    def utility(first: int) -> Any:
        ill = [ILLS[i % 4] for i in range(200)]
        original = pl.DataFrame({"n": [first + i for i in range(200)], "ill": ill})
        cells = [f"[{first + i // 10 * 10}-{first + i // 10 * 10 + 10}[" for i in range(200)]
        return measure(pl.DataFrame({"n": cells, "ill": ill}), original, rules, queries=200)

    found, plain = utility(start), utility(0)
    assert plain.ncp["n"] == pytest.approx(9 / 199)
    assert found == plain


def test_whole_numbers_of_which_floats_are_the_same_have_ranks_of_their_own() -> None:
    values = pl.Series("n", [None, 2**62 + 1, 2**62, -(2**63), 2**63 - 1])
    axis = axis_of("n", Column(role="quasi"), values)
    assert axis.rows(values, ranked=True).tolist() == [0, 3, 2, 1, 4]
    read, faults = read_column(axis, pl.Series("n", [str(2**62 + 1), f"[{2**62 + 1}-{2**62 + 5}]", f">{2**62}", None]))
    assert not faults
    assert [read.runs[i] for i in read.index] == [[(3, 3)], [(3, 3)], [(3, 4)], [(0, 0)]]


def test_numbers_beyond_64_bits_are_refused() -> None:
    with pytest.raises(InputError) as refusal:
        axis_of("n", Column(role="quasi"), pl.Series("n", [1, 2**64 - 1], dtype=pl.UInt64))
    (fault,) = refusal.value.faults
    assert (fault.code, fault.rows) == ("R708", 1)


@settings(max_examples=1000)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)).map(sorted), min_size=1, max_size=8),
)
def test_rows_that_the_original_does_not_explain(ages: list[int], spans: list[list[int]]) -> None:
    """As many as stay over in the best matching, where cells are intervals."""
    published, original = spans[: len(ages)], pl.DataFrame({"age": ages, "ill": ["x"] * len(ages)})
    table = pl.DataFrame({"age": [f"[{a}-{b}]" for a, b in published], "ill": ["x"] * len(published)})
    found = measure(table, original, POLICY_OF_AGES, queries=0).unexplained
    least = oracle.without_original([range(a, b + 1) for a, b in published], ages)
    assert found == least


def test_another_years_table_is_noticed_and_ones_own_is_not() -> None:
    own = pl.DataFrame({"age": [20, 25, 40, 41], "ill": ["flu", "cold", "flu", "flu"]})
    published = pl.DataFrame({"age": ["[20-25]", "[20-25]", "*", ""], "ill": ["cold", "flu", "flu", "flu"]})
    assert measure(published, own, POLICY_OF_AGES, queries=0).unexplained == 0
    assert measure(published, own.with_columns(pl.col("age") + 5), POLICY_OF_AGES, queries=0).unexplained == 1
