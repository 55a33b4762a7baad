"""Stated hierarchies: planner and verifier read them with the same code, so both are compared with the paths as stated.

Labels over a single other label count for heights and distances, and can be read where others published them.
"""

from __future__ import annotations

import csv
import itertools
import json
import tempfile
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reveil
from oracle import taxonomy
from reveil.background.loading import load_background
from reveil.base.errors import InputError
from reveil.plan.cutting.admit import heights
from reveil.policy.policy import load_policy
from reveil.published.notation import parse_cell


@st.composite
def trees(draw):
    """Nested tables with many branches of one child; labels may come twice, and values of any depth."""
    values = draw(st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=6, unique=True))

    def grown(part, depth):
        if depth == 4 or draw(st.integers(0, 2)) == 0:
            return list(part)
        cut = draw(st.integers(1, len(part)))
        parts = [part[:cut], part[cut:]] if cut < len(part) else [part]
        names = draw(st.lists(st.sampled_from("PQRSTUVW"), min_size=len(parts), max_size=len(parts), unique=True))
        return {f"{name}{depth}": grown(piece, depth + 1) for name, piece in zip(names, parts, strict=True)}

    content = grown(values, 0)
    return content if isinstance(content, dict) else {"All": content}


def written(tree, folder, suffix):
    """The tree as a file of a kind; ARX's lines have one length, so that short paths repeat their value."""
    file = folder / f"tree{suffix}"
    if suffix == ".json":
        file.write_text(json.dumps(tree), encoding="utf-8")
    else:
        paths = taxonomy.nested(tree)
        depth = max(map(len, paths.values()))
        with file.open("w", encoding="utf-8", newline="") as lines:
            for path in paths.values():
                rising = [path[-1]] * (depth - len(path)) + list(reversed(path))
                csv.writer(lines, delimiter=";", lineterminator="\n").writerow([*rising, "*"])
    return file


def loaded(source, folder, **guarantee):
    columns = {"age": "quasi", "ill": {"role": "sensitive", "hierarchy": source}}
    return load_policy({"columns": columns, "guarantee": guarantee or {"k": 2}, "folder": folder})


def hierarchy_of(policy):
    try:
        return load_background(policy).hierarchies["ill"]
    except InputError as refusal:  # two branches of one name that stand for different values
        assert {fault.code for fault in refusal.faults} <= {"R304", "R303"}
        return None


@settings(max_examples=60)
@given(trees(), st.sampled_from([".json", ".csv", None]))
def test_paths_heights_and_labels_are_those_that_are_stated(tree, suffix):
    folder = Path(tempfile.mkdtemp())
    file = None if suffix is None else written(tree, folder, suffix)
    paths = taxonomy.nested(tree) if file is None else taxonomy.read(file)
    found = hierarchy_of(loaded(tree if file is None else file.name, folder))
    if found is None:
        assert any(len(sets) > 1 for sets in taxonomy.meanings(paths).values())
        return
    assert dict(zip(found.known, found.paths[1:], strict=True)) == paths
    for missing in (True, False):  # with a place for the missing value, and without
        tall, grown = heights(found.regrown(missing)), found.regrown(missing)
        place = {value: number for number, value in enumerate(grown.leaves)}
        for one, other in itertools.combinations(paths, 2):
            low, high = sorted((place[one], place[other]))
            node = grown.node(low, high)
            assert Fraction(int(tall[node]), int(tall[0])) == taxonomy.distance(one, other, paths), (one, other)
            over = taxonomy.lowest(set(grown.leaves[low : high + 1]), paths)
            assert grown.label(low, high) == (over[-1] if over else "*")
    for label, sets in taxonomy.meanings(paths).items():
        if len(sets) == 1 and label != "*":
            cell = parse_cell(label, found)
            assert {value for value in paths if cell.covers(value)} == next(iter(sets)), label


@settings(max_examples=25)
@given(trees(), st.data())
def test_the_verdict_uses_the_stated_distance(tree, data):
    paths = taxonomy.nested(tree)
    policy = loaded(tree, Path(), model="t-closeness", t="0.5", distance="hierarchical")
    if hierarchy_of(policy) is None:
        return
    one, other = data.draw(st.permutations(sorted(paths)))[:2]
    table = pl.DataFrame({"age": ["1", "2"], "ill": [one, other]})  # each is half the distance from both together
    (verdict,) = (v for v in reveil.check(table, policy).verdicts if v["guarantee"] == "t-closeness")
    assert Fraction(verdict["worst"]) == taxonomy.distance(one, other, paths) / 2


def test_labels_over_a_single_label_count_for_the_distance():
    tree = {
        "X": {"P": {"P1": {"P2": ["a"]}}, "Q": {"Q1": {"Q2": ["c"]}}},
        "Y": {"R": {"R1": {"R2": ["d", "e"], "R3": ["f"]}, "R4": ["g"]}, "R5": ["h"]},
    }
    assert taxonomy.distance("a", "c", taxonomy.nested(tree)) == Fraction(4, 5)
    table = pl.DataFrame({"age": ["1", "2"], "ill": ["a", "c"]})
    policy = loaded(tree, Path(), model="t-closeness", t="0.2", distance="hierarchical")
    found = reveil.check(table, policy)
    assert not found.holds
    assert {v["worst"] for v in found.verdicts if v["guarantee"] == "t-closeness"} == {"2/5"}
    people = pl.DataFrame({"age": [1, 1, 1, 9, 9, 9], "ill": ["a", "a", "a", "c", "c", "c"]})
    assert reveil.anonymize(people, policy, seed=1).table["age"].unique().to_list() == ["[1-9]"]  # not cut in two


@pytest.mark.parametrize("label", ["Secondary", "High School"])
def test_audit_link_and_measure_read_a_label_over_a_single_one(label):
    school = {"role": "quasi", "hierarchy": {"Secondary": {"High School": ["9th", "10th"]}, "None": {"Pre": ["1st"]}}}
    policy = {"columns": {"name": "identifier", "school": school, "ill": "sensitive"}, "guarantee": {"k": 2}}
    published = pl.DataFrame({"school": [label, label, "None"], "ill": ["flu", "flu", "gout"]})
    people = pl.DataFrame({"name": ["Ann", "Bob", "Cid"], "school": ["9th", "10th", "1st"]})
    found = reveil.audit([published], people, policy=policy)
    assert {(row["person"], row["value"]) for row in found.certain.iter_rows(named=True)} == {
        ("Ann", "flu"),
        ("Bob", "flu"),
        ("Cid", "gout"),
    }
    linked = reveil.link(published, people, policy)
    assert linked.people["rows"].to_list() == [2, 2, 1]
    original = people.with_columns(pl.Series("ill", ["flu", "flu", "gout"])).drop("name")
    assert reveil.measure(published, original, policy, queries=0).suppressed == 0
