"""Several publishers about overlapping people, against enumeration: what each tells alone, and what all together do."""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reveil
from oracle import overlapping
from reveil.audit.input.publishers import publishers_of, refuse_lines
from reveil.audit.result.audit_report import html
from reveil.audit.result.beside import only_together, publisher_rows
from reveil.audit.result.screen import lines
from reveil.base.errors import InputError

FEW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
VALUES = "wxyz"


@st.composite
def publishers(draw):
    """Of each publisher its releases: (rows, people); a row says whom it may be about, and a value that lasts."""
    everybody = "ABCDEF"[: draw(st.integers(3, 6))]
    now = {p: draw(st.sampled_from(VALUES)) for p in everybody}
    found = []
    for _ in range(2):
        mine = [p for p in everybody if draw(st.integers(0, 3))] or list(everybody)
        releases = []
        for _ in range(draw(st.integers(1, 2))):
            shown, rows = draw(st.permutations(mine)), []
            size = draw(st.integers(2, 3))
            for first in range(0, len(shown), size):
                members = shown[first : first + size]
                others = [p for p in mine if not draw(st.integers(0, 5))]
                rows += [(frozenset((*members, *others)), now[p]) for p in members]
            releases.append((rows, mine))
        found.append(releases)
    return found


def written(folder, found, *, named):
    """Folders with tables, and a population; without `named` it does not say who is with whom."""
    people = []
    for letter, releases in zip("ab", found, strict=True):
        (folder / letter).mkdir()
        for number, (rows, held) in enumerate(releases, 1):
            cells = [("{" + ",".join(sorted(f)) + "}" if len(f) > 1 else min(f), value) for f, value in rows]
            table = pl.DataFrame(cells, schema=["who", "value"], orient="row")
            table.write_csv(folder / letter / f"{number}.csv")
            people += [(p, p, letter, number) for p in held]
    frame = pl.DataFrame(people, schema=["name", "who", "publisher", "release"], orient="row")
    return frame if named else frame.select("name", "who").unique(maintain_order=True)


def sure(releases):
    return {p for (p, _), row in overlapping.beliefs(releases).items() if len(row) == 1 and None not in row}


@FEW
@given(publishers())
def test_each_alone_and_all_together(found):
    """Who is certain, and what is believed, is what enumeration says of the releases of one, and of all."""
    every = [[(rows, held, True) for rows, held in releases] for releases in found]
    with tempfile.TemporaryDirectory() as place:
        people = written(Path(place), found, named=True)
        both = reveil.audit([Path(place, "a"), Path(place, "b")], people, sensitive="value", worst=0)
    alone = [sure(releases) for releases in every]
    joint = sure([*every[0], *every[1]])
    assert set(both.certain["person"]) == joint
    assert [set(one.certain["person"]) for _, one in both.publishers] == alone
    assert only_together(both) == sorted(joint - alone[0] - alone[1])
    assert [row["exposed"] for row in publisher_rows(both)] == [len(alone[0]), len(alone[1]), len(joint)]
    expected = overlapping.beliefs([*every[0], *every[1]])
    names = [f"{letter} {n}" for letter, part in zip("ab", found, strict=True) for n in range(1, len(part) + 1)]
    for person, release, value, chance in both.posterior.iter_rows():
        assert chance == pytest.approx(float(expected[person, names.index(release)].get(value, 0)))


@FEW
@given(publishers())
def test_nobody_says_who_is_with_whom(found):
    """A line without a publisher is about any of them: who fits may be there, or surely is where numbers agree."""
    listed = sorted({p for releases in found for _, held in releases for p in held})
    worlds = []
    for releases in found:
        for rows, _ in releases:
            fits = [p for p in listed if any(p in row for row, _ in rows)]
            worlds.append((rows, fits, len(fits) == len(rows)))
    with tempfile.TemporaryDirectory() as place:
        people = written(Path(place), found, named=False)
        both = reveil.audit([Path(place, "a"), Path(place, "b")], people, sensitive="value", worst=0)
    assert set(both.certain["person"]) == sure(worlds)


def clinic_and_survey(folder):
    (folder / "clinic").mkdir()
    (folder / "survey").mkdir()
    pl.DataFrame(
        {"age": ["2*"] * 3 + ["3*"] * 3, "illness": ["flu", "gout", "mumps", "flu", "ulcer", "cold"]}
    ).write_csv(folder / "clinic" / "2020.csv")
    pl.DataFrame(
        {"zip": ["1*"] * 3 + ["2*"] * 3, "illness": ["flu", "ulcer", "lupus", "mumps", "cold", "cancer"]}
    ).write_csv(folder / "survey" / "2020.csv")
    clinic = [("Ann", 21), ("Bob", 25), ("Cid", 28), ("Dan", 31), ("Eve", 35), ("Fay", 38)]
    survey = [("Ann", 10), ("Dan", 11), ("Gus", 12), ("Cid", 20), ("Eve", 21), ("Hal", 22)]
    rows = [*((n, a, None, "clinic") for n, a in clinic), *((n, None, z, "survey") for n, z in survey)]
    return pl.DataFrame(rows, schema=["name", "age", "zip", "publisher"], orient="row")


def test_what_is_said_of_two_publishers(tmp_path):
    people = clinic_and_survey(tmp_path)
    both = reveil.audit([tmp_path / "clinic", tmp_path / "survey"], people)
    assert [row["exposed"] for row in publisher_rows(both)] == [0, 0, 8]
    for text in (lines(both), html(both)):
        assert "all together" in text and "Only together: Ann, Bob, Cid" in text
        assert "same value with all of them" in " ".join(text.split())
    for text in (lines(both, external=True), html(both, external=True)):
        assert "all together" in text and "Ann" not in text
    assert both.to_dict()["only_together"] == ["Ann", "Bob", "Cid", "Dan", "Eve", "Fay", "Gus", "Hal"]
    assert "only_together" not in both.to_dict(names=False)
    single = reveil.audit([tmp_path / "clinic"], people.filter(publisher="clinic").drop("publisher", "zip"))
    assert not single.publishers and single.summary["exposed"] == 0


def test_what_cannot_be_put_together_is_refused(tmp_path):
    people = clinic_and_survey(tmp_path)
    folders = [tmp_path / "clinic", tmp_path / "survey"]
    (tmp_path / "empty").mkdir()

    def code(tables, frame, **how):
        with pytest.raises(reveil.ReveilError) as caught:
            reveil.audit(tables, frame, **how)
        return [fault.code for fault in caught.value.faults]

    assert code([folders[0], folders[1] / "2020.csv"], people) == ["R723"]
    assert code([folders[0], tmp_path / "empty"], people) == ["R723"]
    assert code(folders, people, change="freely") == ["R732"]
    other = people.with_columns(publisher=pl.lit("Clinic"))
    assert code(folders, other) == ["R724"]
    assert code(folders, people.with_columns(release=pl.lit(3))) == ["R724"]


def test_lines_that_name_no_table_of_their_publisher_are_refused_and_tables_are_in_order(tmp_path):
    for name, tables in (("a", 2), ("b", 11)):
        (tmp_path / name).mkdir()
        for number in range(1, tables + 1):
            table = pl.DataFrame({"age": [20, 30], "ill": ["x", "y"]})
            table.write_csv(tmp_path / name / f"{number}.csv")
    (tmp_path / "a" / "notes").mkdir()
    found = publishers_of([tmp_path / "a", tmp_path / "b"])
    assert [one.name for one in found[1].tables] == [f"{number}.csv" for number in range(1, 12)]
    assert len(found[0].tables) == 2
    good = {"name": ["p", "q"], "age": [20, 30], "publisher": ["a", "b"], "release": [2, 11]}
    refuse_lines(pl.DataFrame(good), found)
    for wrong in ({"publisher": ["a", None]}, {"release": [3, 11]}, {"publisher": ["a", "c"]}, {"release": [2, None]}):
        with pytest.raises(InputError) as refusal:
            refuse_lines(pl.DataFrame(good | wrong), found)
        assert {fault.code for fault in refusal.value.faults} == {"R724"}
