"""Published cells read back: every notation, and round trips with the labels that our own builders make."""

from __future__ import annotations

import datetime
import time
from collections import Counter
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reveil.base.errors import InputError
from reveil.hierarchies import scales
from reveil.hierarchies.tree import Hierarchy, grow
from reveil.published.notation import Cell, parse_cell, parse_column
from reveil.published.sets import format_set, split_set

D = datetime.date


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("[20-29]", (20, 29), (19, 30, 29.5)),
        ("[20-30[", (20, 29.99), (30, 19.99)),
        ("[20, 30)", (20, 29), (30,)),
        ("(20,30]", (21, 30), (20,)),
        ("]20,30]", (20.5, 30), (20,)),
        ("]20;30[", (21, 29), (20, 30)),
        ("20-29", (20, 29), (19, 30)),
        ("20 – 29", (20, 29), (19, 30)),
        ("20..29", (20, 29), (19, 30)),
        (">=40", (40, 41), (39,)),
        ("≥40", (40,), (39.9,)),
        ("> 40", (41,), (40,)),
        ("<18", (17, -3), (18,)),
        ("<=40", (40,), (41,)),
        ("≤ 40", (40, 0), (40.5,)),
        ("[-5--1]", (-5, -1), (0, -6, 5)),
        ("[-5-3]", (-5, 0, 3), (4, -6)),
        ("[0.5-1.25]", (0.5, 1, 1.25), (0.49, 1.26)),
        ("[0.1-0.3[", (0.1, 0.2), (0.3,)),
        ("[1e-05-0.5]", (1e-05, 0.1), (0,)),
        ("[0-10]", (0, 10), (-1, 11)),
        (">=0", (0,), (-1,)),
        ("37", (37, 37.0, "37"), (36, "037", D(2026, 1, 1))),
        ("-0.5", (-0.5,), (0.5,)),
        ("2*", ("2x", "29", 23), ("2", "200", "3x")),
        ("476**", ("47677", 47602), ("47777", "4767", "476777")),
        ("*", (1, "x", None, D(2026, 1, 1)), ()),
        ("*****", ("47677", None), ()),
        ("{a,b}", ("a", "b"), ("c", "a,b", None)),
        ("{,a}", (None, "a"), ("b",)),
        ("{1,2,5}", (1, 2.0, "5"), (3, None)),
        ('{"a,b"," c","say ""x"""}', ("a,b", " c", 'say "x"'), ("a", "c")),
        ("{[20-24],[35-39]}", (22, 35), (30,)),
        ("[2026-01-03/2026-02-11]", (D(2026, 1, 3), D(2026, 2, 11), "2026-01-31"), (D(2026, 2, 12),)),
        (">=2026-01-03", (D(2026, 1, 3),), (D(2026, 1, 2),)),
        ("2026-03", (D(2026, 3, 1), D(2026, 3, 31)), (D(2026, 4, 1), D(2025, 3, 5))),
        ("2026-12", (D(2026, 12, 31),), (D(2027, 1, 1),)),
        ("2026-Q1", (D(2026, 1, 1), D(2026, 3, 31)), (D(2026, 4, 1),)),
        ("2026-Q4", (D(2026, 12, 31),), (D(2026, 9, 30),)),
        ("2026", (D(2026, 7, 1), 2026, "2026"), (D(2027, 1, 1), 2027)),
        ("2020s", (D(2020, 1, 1), D(2029, 12, 31)), (D(2030, 1, 1), D(2019, 12, 31))),
        ("9990s", (D(9999, 12, 31),), (D(9989, 1, 1),)),
        ("2026-03-14", (D(2026, 3, 14), datetime.datetime(2026, 3, 14, 5), "2026-03-14"), (D(2026, 3, 15),)),
        ("00501", ("00501",), ("501", 501)),
        ("Self-emp-inc", ("Self-emp-inc",), ("Self",)),
        (">50K", (">50K",), (60,)),
    ],
)
def test_what_a_text_covers(text: str, inside: tuple[object, ...], outside: tuple[object, ...]) -> None:
    cell = parse_cell(text)
    assert [value for value in inside if not cell.covers(value)] == []
    assert [value for value in outside if cell.covers(value)] == []


def test_missing_is_missing_and_nothing_else() -> None:
    for text in ("", None):
        cell = parse_cell(text)
        assert cell.kind == "missing"
        assert cell.covers(None)
        assert not cell.covers("x")
        assert not cell.covers(0)
    assert not parse_cell("a").covers(None)
    assert parse_cell("{}").values == {None}


def test_ends_are_exact_and_open_or_closed_as_written() -> None:
    cell = parse_cell("(0.1,0.3]")
    assert (cell.low, cell.high, cell.low_closed, cell.high_closed) == (
        Fraction(1, 10),
        Fraction(3, 10),
        False,
        True,
    )
    half = parse_cell("<18")
    assert (half.low, half.high, half.high_closed) == (None, 18, False)
    assert parse_cell("2026-Q2").low == D(2026, 4, 1)


@pytest.mark.parametrize(
    "text", ["[30-20]", "[20-29", "2026-13", "2026-02-30", "[2026-01-03/5]", "a-b", "{a", '{"a}', "1/3"]
)
def test_what_is_no_notation_is_an_exact_text(text: str) -> None:
    assert parse_cell(text) == Cell(text, "value", values=frozenset([text]))


def test_a_category_column_takes_numbers_as_names() -> None:
    cell = parse_cell("20-29", numeric=False)
    assert cell.kind == "value"
    assert cell.covers("20-29")
    assert not cell.covers("25")


def test_a_numeric_column_reads_codes_and_prefixes_as_numbers() -> None:
    assert parse_cell("007", numeric=True).covers(7)
    cell = parse_cell("-2*", numeric=True)
    assert (cell.kind, cell.low, cell.high) == ("interval", -29, -20)
    assert parse_cell("2026-03", numeric=True).kind == "value"


def test_a_taxonomy_label_wins_over_notation() -> None:
    paths = {
        "1": ("1-3", "1"),
        "9": ("1-3", "9"),
        "2": ("other", "2"),
        "4": ("other", "4"),
        "A*": ("A*x", "A*"),
        "AB": ("A*x", "AB"),
    }
    tree = grow("code", paths, missing=True)
    cell = parse_cell("1-3", tree)
    assert (cell.kind, cell.values, cell.label) == ("set", {"1", "9"}, True)
    assert cell.covers("9")
    assert cell.covers(9)
    assert not cell.covers("2")
    assert not cell.covers("1-3")
    assert parse_cell("A*", tree).covers("A*")
    assert not parse_cell("A*", tree).covers("AB")
    mixed = parse_cell("{other,9,}", tree)
    assert [value for value in ("1", "9", "2", "4", None, "A*") if mixed.covers(value)] == [
        "9",
        "2",
        "4",
        None,
    ]


def test_ordered_categories_need_their_order() -> None:
    tree, _ = scales.ordered("stage", ["I", "II", "II-b", "III"], missing=True)
    assert parse_cell("[II-II-b]", tree).values == {"II", "II-b"}
    assert parse_cell("[I-III]", tree).values == {"I", "II", "II-b", "III"}
    assert parse_cell("[I-III]").kind == "value"
    assert not parse_cell("[I-III]", tree).covers(None)


def test_years_alone_are_values_of_a_category_and_periods_of_a_date() -> None:
    tree, _ = scales.dates("born", [D(1990, 1, 1), D(1991, 5, 5)], ["year", "decade"], missing=False)
    assert parse_cell("1991", tree).covers(D(1991, 12, 31))
    assert parse_cell("1990s", tree).covers(D(1991, 12, 31))
    assert not parse_cell("1991", tree).covers(D(1990, 12, 31))


def labels_cover(tree: Hierarchy, leaf: dict[object, object], missing: bool) -> None:
    """Every label of the tree covers exactly the values whose leaf lies in its interval."""
    place = {value: tree.leaves.index(value_leaf) for value, value_leaf in leaf.items()}
    spans = {**tree.by_label}
    if tree.free:
        start = int(missing)
        spans |= {tree.label(a, b): (a, b) for a in range(start, len(tree)) for b in range(a, len(tree))}
    for label, (a, b) in spans.items():
        cell = parse_cell(label, tree)
        for value, position in place.items():
            assert cell.covers(value) == (a <= position <= b), (label, value)
        if missing:
            assert cell.covers(None) == (a == 0), label


whole = st.lists(st.integers(-300, 300), min_size=1, max_size=8, unique=True).map(sorted)
decimals = st.lists(st.integers(-3000, 3000), min_size=1, max_size=8, unique=True).map(
    lambda numbers: [number / 1000 for number in sorted(numbers)]
)
eighths = st.lists(st.integers(-3000, 3000), min_size=1, max_size=8, unique=True).map(
    lambda numbers: [number / 8 for number in sorted(numbers)]
)
days = st.lists(st.dates(D(1, 1, 1), D(9999, 12, 31)), min_size=1, max_size=6, unique=True).map(sorted)


@given(st.one_of(whole, decimals), st.booleans())
def test_round_trip_of_free_numbers(values: list[float], missing: bool) -> None:
    labels_cover(*scales.numbers("x", values, missing), missing)


@given(st.one_of(whole, eighths), st.sampled_from([(1,), (5,), (5, 20), (1, 10), ("1/2", 3)]), st.booleans())
def test_round_trip_of_widths(values: list[float], steps: tuple[object, ...], missing: bool) -> None:
    labels_cover(*scales.widths("x", values, [Fraction(step) for step in steps], missing), missing)


@given(st.one_of(whole, eighths), st.sets(st.integers(-200, 200), min_size=1, max_size=5), st.booleans())
def test_round_trip_of_cuts(values: list[float], cuts: set[int], missing: bool) -> None:
    levels = [[Fraction(cut) for cut in cuts], [Fraction(max(cuts))]]
    labels_cover(*scales.cuts("x", values, levels, missing), missing)


@given(
    days,
    st.sampled_from(
        [
            None,
            ["month", "quarter", "year"],
            ["day", "month"],
            ["year"],
            ["quarter", "decade"],
            ["year", "decade"],
        ]
    ),
    st.booleans(),
)
def test_round_trip_of_dates(values: list[datetime.date], levels: list[scales.DateLevel] | None, missing: bool) -> None:
    labels_cover(*scales.dates("x", values, levels, missing), missing)


@given(
    st.lists(st.text("0123", min_size=3, max_size=5), min_size=1, max_size=8, unique=True).map(sorted),
    st.sampled_from([(3, 2), (4, 3, 1), (2,), (5, 2)]),
    st.booleans(),
)
def test_round_trip_of_prefixes(values: list[str], lengths: tuple[int, ...], missing: bool) -> None:
    try:
        built = scales.prefixes("x", values, lengths, missing)
    except Exception as error:  # values of unlike length may make the same label twice, which grow refuses
        assert "R304" in str(error)
        return
    tree, leaf = built
    for value in values:
        for label in tree.ancestors(tree.leaves.index(leaf[value])):
            assert parse_cell(label, tree).covers(value)


names = st.text("ab-I ", min_size=1, max_size=4).filter(lambda name: name != "*")


@given(st.lists(names, min_size=2, max_size=6, unique=True))
def test_round_trip_of_ordered_runs(order: list[str]) -> None:
    runs = [(a, b) for b in range(len(order)) for a in range(b)]
    labels = Counter(f"[{order[a]}-{order[b]}]" for a, b in runs)
    if max(labels.values()) > 1 or labels.keys() & set(order):  # hyphens in names may make two runs alike
        with pytest.raises(InputError, match="R304"):
            scales.ordered("x", order, missing=False)
        return
    tree, _ = scales.ordered("x", order, missing=False)
    for a, b in runs:
        assert parse_cell(tree.label(a, b), tree).values == set(order[a : b + 1])


texts = st.text(st.sampled_from('ab,{}" *-[]12'), min_size=1, max_size=5)


@given(st.lists(st.one_of(st.none(), texts), min_size=1, max_size=6, unique=True))
def test_round_trip_of_sets(values: list[str | None]) -> None:
    text = format_set(values)
    assert split_set(text) == ["" if value is None else value for value in values]
    cell = parse_cell(text)
    assert cell.kind == "set"
    assert all(cell.covers(value) for value in values)
    assert cell.covers(None) == (None in values)


@given(st.lists(st.one_of(st.none(), st.integers(-99, 99)), min_size=1, max_size=6, unique=True))
def test_round_trip_of_sets_of_numbers(values: list[int | None]) -> None:
    assert parse_cell(format_set(values), numeric=True).values == set(values)


def test_sets_of_buckets_are_read_with_their_hierarchy() -> None:
    tree, leaf = scales.prefixes("zip", ["47602", "47677", "47905"], [4, 3], missing=False)
    cell = parse_cell(format_set(tree.leaves[:2]), tree)
    assert [cell.covers(value) for value in leaf] == [True, True, False]
    assert cell.covers("47679")


def test_a_python_set_is_written_in_a_fixed_order() -> None:
    assert format_set({"b", "a", None}) == "{,a,b}"
    assert format_set(frozenset({3, 20})) == "{20,3}"
    with pytest.raises(ValueError, match="no value"):
        format_set([])


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["[20-29]", "*", None, "", "37", "{1,2}"]), max_size=20))
def test_a_column_is_read_as_its_cells_one_by_one(column: list[str | None]) -> None:
    cells, index = parse_column(pl.Series(column, dtype=pl.String))
    assert [cells[i] for i in index] == [parse_cell(text) for text in column]


def test_a_typed_column_is_read_through_its_text() -> None:
    cells, index = parse_column(pl.Series([20, 21, None, 20]), numeric=True)
    assert [cells[i].low for i in index] == [20, 21, None, 20]
    assert parse_column(pl.Series([20.0]), numeric=True)[0][0].low == 20
    assert parse_column(pl.Series([D(2026, 3, 14)]))[0][0].low == D(2026, 3, 14)


def test_a_long_column_is_read_by_its_distinct_texts() -> None:
    column = pl.Series([f"[{20 + i % 500}-{900 + i % 700}]" for i in range(600_000)])
    start = time.perf_counter()
    cells, _ = parse_column(column)
    assert time.perf_counter() - start < 2
    assert len(cells) == 3500


def test_years_of_a_set_are_periods_of_days() -> None:
    days = [datetime.date(2001, 1, 5), datetime.date(2002, 1, 5), datetime.date(2003, 2, 2)]
    for text, covered in (("{2001,2003}", [True, False, True]), ("{,2001}", [True, False, False])):
        assert [parse_cell(text).covers(day) for day in days] == covered
