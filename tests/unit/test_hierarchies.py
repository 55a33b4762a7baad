"""Hierarchies: every generalisation is an interval of positions, and its label stands for exactly the values in it."""

from __future__ import annotations

import datetime
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reveil.base.errors import InputError
from reveil.hierarchies import scales
from reveil.hierarchies.files import arx_paths, nested_paths, read_paths, to_arx_csv
from reveil.hierarchies.tree import grow
from reveil.published.notation import parse_cell

names = st.text(st.sampled_from("abé ;,\t\"'\n\r|-1"), min_size=1, max_size=4)


@st.composite
def path_tables(draw):
    """Leaves of unlike depth, each with the labels above it; chains of single children among them."""
    leaves = draw(st.lists(names, min_size=1, max_size=8, unique=True))
    paths = {}
    for leaf in leaves:
        depth = draw(st.integers(0, 3))
        path, inside = [], "top"
        for _ in range(depth):
            inside = f"{inside}/{draw(st.integers(0, 1))}"
            path.append(inside)
        paths[leaf] = (*path, leaf)
    return paths


def trees():
    return st.builds(lambda paths, missing: grow("x", paths, missing=missing), path_tables(), st.booleans())


def check_intervals(tree):
    """Each node is an interval of positions; children part their parent; parents come first."""
    assert (tree.lo[0], tree.hi[0]) == (0, len(tree) - 1)
    for node in range(1, len(tree.labels)):
        above = tree.parent[node]
        assert above < node
        assert tree.lo[above] <= tree.lo[node] <= tree.hi[node] <= tree.hi[above]
        if above != 0:
            assert (tree.lo[node], tree.hi[node]) != (tree.lo[above], tree.hi[above])  # chains are collapsed
    for position in range(len(tree)):
        children = [n for n in range(1, len(tree.labels)) if tree.lo[n] <= position <= tree.hi[n]]
        heights = [int(tree.hi[n] - tree.lo[n]) for n in children]
        assert heights == sorted(heights, reverse=True)  # nested, never crossing
    if tree.has_missing:
        assert tree.leaves[0] is None
        assert tree.label(0, 0) == ""


def check_losses(tree):
    n = len(tree)
    for a in range(n):
        for b in range(a, n):
            here = tree.loss(a, b)
            assert 0 <= here <= 1
            if b + 1 < n:
                assert here <= tree.loss(a, b + 1) + 1e-12
            if a:
                assert here <= tree.loss(a - 1, b) + 1e-12
    if n > 1:
        assert tree.loss(0, n - 1) == pytest.approx(1)


@settings(max_examples=80, deadline=None)
@given(path_tables(), st.booleans())
def test_nodes_cover_exactly_their_leaves(paths, missing):
    tree = grow("x", paths, missing=missing)
    check_intervals(tree)
    check_losses(tree)
    for a in range(len(tree)):
        for b in range(a, len(tree)):
            first, last = tree.by_label[tree.label(a, b)]
            assert first <= a <= b <= last
            inside = set(tree.leaves[first : last + 1])
            smaller = [(lo, hi) for lo, hi in tree.by_label.values() if lo <= a and b <= hi]
            assert min(hi - lo for lo, hi in smaller) == last - first  # the smallest that covers both
            cell = parse_cell(tree.label(a, b), tree)
            assert all(cell.covers(leaf) for leaf in inside)
            if cell.kind != "any":
                assert not any(cell.covers(leaf) for leaf in set(tree.leaves) - inside)


@settings(max_examples=80, deadline=None)
@given(path_tables(), st.booleans(), st.booleans())
def test_arx_csv_round_trip(tmp_path_factory, paths, missing, through_file):
    tree = grow("x", paths, missing=missing)
    text = to_arx_csv(tree)
    if through_file:
        file = tmp_path_factory.mktemp("arx") / "x.csv"
        file.write_bytes(text.encode())
        found = read_paths("x", file)
    else:
        found = arx_paths(text, "x")
    back = grow("x", found, missing=missing)
    assert back.leaves == tree.leaves
    for position in range(len(tree)):
        assert list(back.ancestors(position)) == list(tree.ancestors(position))


numbers = st.integers(-50, 50) | st.sampled_from([2**53, 2**53 + 1, -(2**63), 2**63 - 1])
decimals = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.1, 0.3, 1e-7, 1e16, 1e23, -0.5])


def sorted_unique(values):
    return st.lists(values, min_size=1, max_size=7, unique=True).map(sorted)


def covers_the_values(built, values):
    """Each label covers the values at its positions and none at the others."""
    tree, leaf = built
    place = {value: tree.leaves.index(leaf[value]) for value in values}
    check_intervals(tree)
    check_losses(tree)
    for a in set(place.values()):
        for b in set(place.values()):
            if a > b:
                continue
            cell = parse_cell(tree.label(a, b), None, numeric=True)
            first, last = (a, b) if tree.free else tree.by_label[tree.label(a, b)]
            for value, position in place.items():
                assert cell.covers(value) == (first <= position <= last), (cell, value)


@settings(max_examples=100, deadline=None)
@given(sorted_unique(numbers) | sorted_unique(decimals), st.booleans())
def test_numbers(values, missing):
    covers_the_values(scales.numbers("x", values, missing), values)


@settings(max_examples=100, deadline=None)
@given(
    sorted_unique(numbers) | sorted_unique(decimals),
    st.sampled_from([["5"], ["0.1", "0.5"], ["1", "2", "20"], ["0.25", "1"], ["1000000"]]),
    st.booleans(),
)
def test_widths(values, steps, missing):
    built = scales.widths("x", values, [Fraction(step) for step in steps], missing)
    covers_the_values(built, values)


@settings(max_examples=100, deadline=None)
@given(
    sorted_unique(numbers) | sorted_unique(decimals),
    st.sampled_from([[["0"]], [["-1.5", "0", "10"], ["0"]], [["0.1", "0.3"], ["0.3"]]]),
    st.booleans(),
)
def test_cuts(values, levels, missing):
    built = scales.cuts("x", values, [[Fraction(cut) for cut in level] for level in levels], missing)
    covers_the_values(built, values)


@pytest.mark.parametrize(
    ("build", "code", "word"),
    [
        (lambda: scales.widths("x", [1], [Fraction(0), Fraction(5)], False), "R202", "positive"),
        (lambda: scales.widths("x", [1], [Fraction(1, 3)], False), "R202", "finite decimal"),
        (lambda: scales.widths("x", [1], [Fraction(5), Fraction(12)], False), "R202", "multiple"),
        (lambda: scales.cuts("x", [1], [[Fraction(1, 3)]], False), "R202", "finite decimal"),
        (lambda: scales.cuts("x", [1], [[Fraction(1)], [Fraction(2)]], False), "R202", "finer level"),
        (lambda: scales.ordered("x", ["a", "a-b", "b", "b-b"], False), "R304", "[a-b-b]"),
        (lambda: scales.ordered("x", ["a", "b", "[a-b]"], False), "R304", "[a-b]"),
        (lambda: scales.ordered("x", ["a", "a"], False), "R202", "twice"),
        (lambda: scales.prefixes("x", ["476**"], [3], False), "R304", "476**"),
        (lambda: scales.prefixes("x", ["4*60"], [2], False), "R304", "4*60"),
        (lambda: scales.flat("x", ["*", "a"], False), "R304", "'*'"),
        (lambda: arx_paths("a;;*\nb;x;*\n", "x"), "R303", "empty"),
        (lambda: arx_paths("a;x;*\nb;y\n", "x"), "R303", "fields"),
        (lambda: arx_paths("a;x;u;*\nb;x;v;*\n", "x"), "R303", "lies under"),
        (lambda: nested_paths({"": ["a"]}, "x"), "R303", "empty"),
        (lambda: nested_paths({"g": ["a", None]}, "x"), "R303", "empty"),
        (lambda: nested_paths({"g": ["a"], "h": ["a"]}, "x"), "R303", "two places"),
    ],
)
def test_refusals(build, code, word):
    with pytest.raises(InputError) as refusal:
        build()
    assert refusal.value.faults[0].code == code
    assert word in str(refusal.value)


def test_short_codes_are_shown_as_they_are():
    tree, leaf = scales.prefixes("zip", ["1", "12", "479", "4790", "47905"], [3, 1], False)
    assert [leaf[code] for code in ("1", "12", "479", "47905")] == ["1", "12", "479**", "479**"]
    assert parse_cell("479**", tree).covers("479")
    assert not parse_cell("1", tree).covers("12")


def test_delimiters_inside_labels():
    assert arx_paths("a,b,c;x,y;*\nd,e,f;x,y;*\n", "x") == {"a,b,c": ("x,y", "a,b,c"), "d,e,f": ("x,y", "d,e,f")}
    assert arx_paths("a\tx;y;z\t*\n", "x") == {"a": ("x;y;z", "a")}
    assert arx_paths("a;*;*\nb;x;*\n", "x") == {"a": ("a",), "b": ("x", "b")}
    assert arx_paths("a;x;*\rb;x;*\r", "x") == {"a": ("x", "a"), "b": ("x", "b")}  # old Macintosh lines


def test_values_of_nested_taxonomies_are_written_like_those_of_tables():
    assert nested_paths({"yes": [True, 1, 2.0], "no": [False]}, "x") == {
        "true": ("yes", "true"),
        "1": ("yes", "1"),
        "2": ("yes", "2"),
        "false": ("no", "false"),
    }


def test_dates_with_levels():
    days = [datetime.date(2019, 12, 31), datetime.date(2020, 1, 1), datetime.date(2020, 5, 1)]
    tree, leaf = scales.dates("x", days, ["month", "quarter", "year", "decade"], False)
    check_intervals(tree)
    check_losses(tree)
    assert [leaf[day] for day in days] == ["2019-12", "2020-01", "2020-05"]
    assert list(tree.ancestors(1)) == ["2020-01", "2020", "*"]  # a decade or quarter with one child is that child


def test_missing_files(tmp_path: Path):
    with pytest.raises(InputError, match="R302"):
        read_paths("x", tmp_path / "none.csv")
