"""Tables that others made: what is read, who is placed, and what is said before anybody is called safe."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from reveil.audit.alone import first_verdict
from reveil.audit.audit import audit
from reveil.audit.input.locate import locate
from reveil.audit.result import screen
from reveil.base.errors import InputError
from reveil.cli.app import app
from reveil.published.foreign import as_ours


def frame(columns: str, *rows: str) -> pl.DataFrame:
    """A table from words: cells are separated by blanks."""
    return pl.DataFrame([row.split() for row in rows], schema=columns.split(), orient="row")


def lines(found) -> str:
    """What is on the screen, as one line."""
    return " ".join(screen.lines(found).split())


def sure(found) -> dict[str, str]:
    return dict(found.certain.select("person", "value").iter_rows())


def placements(fits: list[set[int]], rows: list[int]) -> list[tuple[int, ...]]:
    """Every way to give everybody a group that fits, all groups being full."""
    ways: list[tuple[int, ...]] = [()]
    for mine in fits:
        ways = [(*way, g) for way in ways for g in mine if way.count(g) < rows[g]]
    return ways


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_counting_places_people_as_all_ways_to_do_so(data) -> None:
    groups = data.draw(st.integers(1, 4))
    truth = data.draw(st.lists(st.integers(0, groups - 1), min_size=1, max_size=6))
    fits = [{g, *data.draw(st.sets(st.integers(0, groups - 1)))} for g in truth]
    rows = [truth.count(g) for g in range(groups)]
    ways = placements(fits, rows)
    pairs = [(p, g) for p, mine in enumerate(fits) for g in sorted(mine)]
    person, group = np.array(pairs).T
    for present in (True, False):  # as many rows as people: it follows that all are there
        found = locate(person, group, np.array(rows), present=present)
        assert found.possible.tolist() == [any(way[p] == g for way in ways) for p, g in pairs]
        assert found.sure.all() and found.full.all() and not found.strangers


def test_suppressed_rows_leave_everybody_placed() -> None:
    table = frame("age illness", "[20,30[ flu", "[20,30[ cold", "* gout", "* gout")
    people = pl.DataFrame({"name": list("ABCD"), "age": [21, 28, 40, 50]})
    found = audit(table, people)
    assert found.observed.located and sure(found) == {"C": "gout", "D": "gout"}
    text = lines(found)
    assert "Placed in one group: 4 of 4 appearances" in text and "1 release has groups that overlap" in text
    assert "'illness' is taken as sensitive, age as known of everybody, and 'name' as who they are" in text
    assert "Every row fits somebody" in text and "Who is in which group is known" not in text


def test_the_smallest_false_refusal() -> None:
    """One class, then two that overlap and show the same: it was refused with R722."""
    one = frame("age s", *["[20-29] x", "[20-29] x", "[20-29] y", "[20-29] z"])
    two = frame("age s", "[20-24] x", "[22-29] x")
    people = pl.DataFrame({"n": list("ABCDAC"), "age": [21, 23, 23, 27, 21, 23], "release": [1] * 4 + [2] * 2})
    assert sure(audit([one, two], people)) == {"A": "x", "C": "x"}
    assert audit([one, two], people.filter(pl.col("release") == 1).drop("release")).summary["exposed"] == 0


def test_counts_lists_sets_and_row_numbers_are_read(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text(",age,job,illness,count\n0,['20-29'],\"a,b\",flu,2\n1,['30'],NA,cold,1\n")
    people = pl.DataFrame({"name": list("ABC"), "age": [20, 29, 30], "job": ["a", "b", "c"], "release": [1] * 3})
    assert sure(audit(str(tmp_path / "one.csv"), people)) == {"A": "flu", "B": "flu", "C": "cold"}
    read = as_ours(pl.Series(["1,3", "x, y", "['a', 'b']", None]), {"1", "3", "x, y"}, missing=True)
    assert read.to_list() == ["{1,3}", "x, y", "{a,b}", None]
    told = CliRunner().invoke(app, ["audit", "--notation", str(tmp_path / "one.csv")])
    assert told.exit_code == 0 and "from 20 to 29" in told.stdout and "one of a, b" in told.stdout
    answer = CliRunner().invoke(app, ["audit", "--notation", "--json", str(tmp_path / "one.csv")])
    assert {one["column"] for one in json.loads(answer.stdout)} == {"age", "job", "illness", "count"}
    assert CliRunner().invoke(app, ["audit", "--notation"]).exception.exit_code == 2


def test_every_column_that_may_be_sensitive_is_attacked() -> None:
    """The first one exposes nobody; whoever looked at it alone would say so."""
    table = frame("age blood illness", "[20-29] a flu", "[20-29] b flu")
    people = pl.DataFrame({"name": ["A", "B"], "age": [21, 28]})
    found = audit(table, people)
    assert [one.summary["exposed"] for one in (found, *found.also)] == [0, 2]
    assert found.broken and not found.holds and "'illness' is taken as sensitive" in lines(found)
    assert audit(table, people, sensitive="blood").also == ()
    assert [part["summary"]["exposed"] for part in found.to_dict()["also"]] == [2]


def test_a_column_of_a_later_release_counts_and_a_missing_one_is_said() -> None:
    one = frame("age illness", "[20-29] flu", "[20-29] cold")
    two = frame("age sex illness", "[20-29] m flu", "[20-29] f cold")
    people = pl.DataFrame({"name": list("ABAB"), "age": [21, 28] * 2, "sex": ["m", "f"] * 2, "release": [0, 0, 1, 1]})
    found = audit([one, two], people)
    assert sure(found) == {"A": "flu", "B": "cold"} and found.observed.releases == ("0", "1")
    text = lines(found)
    assert "Release 0 does not show sex." in text and "0 is table 1, 1 is table 2" in text
    without = audit([one, two.drop("illness").with_columns(ward=pl.lit("x"))], people, sensitive="illness")
    assert without.summary["exposed"] == 0 and "Nothing follows from release 1" in lines(without)


def test_rows_that_other_columns_follow() -> None:
    """Nobody is certain by illness alone; the ward, which nobody protects, says which rows are one person's."""
    one = frame("age ward illness", "[20-29] w1 flu", "[20-29] w2 cold")
    two = frame("age ward illness", "[20-24] w1 flu", "[20-24] w3 flu", "[25-29] w2 cold", "[25-29] w4 cold")
    two = two.with_columns(illness=pl.Series(["x", "y", "z", "v"]))
    people = pl.DataFrame({"name": list("ABABCD"), "age": [21, 28, 21, 28, 22, 27], "release": [1, 1, 2, 2, 2, 2]})
    found = audit([one, two], people, sensitive="illness", change="freely")
    assert found.summary["exposed"] == 0 and found.summary["traced"] == 2 and found.broken
    assert {a.name: a.rate for a in found.attacks}["followed rows"] == pytest.approx(1 / 2)
    assert "following rows with the same ward" in " ".join(found.within)


def test_suppressed_rows_that_are_left_out_are_accepted_by_name() -> None:
    table = frame("age illness", "[20-29] flu", "[20-29] cold")
    people = pl.DataFrame({"name": list("ABCD"), "age": [21, 22, 23, 50], "release": [1] * 4})
    with pytest.raises(InputError, match="R724"):
        audit(table, people)
    found = audit(table, people, accept_missing=True)
    beliefs = {(p, v): share for p, _, v, share in found.posterior.iter_rows()}
    assert beliefs["A", "flu"] == pytest.approx(1 / 3) and found.summary["above_half"] == 0
    assert "need not be in the release" in lines(found)


def test_not_being_there_is_no_value() -> None:
    """Nobody is guessed above one half because they are probably away."""
    table = frame("age illness", "[20-29] flu")
    people = pl.DataFrame({"name": list("ABCDE"), "age": [21, 22, 23, 24, 25]})
    found = audit(table, people)
    assert found.summary["highest"] == pytest.approx(1 / 5) and found.summary["above_half"] == 0


def test_without_a_population_nothing_is_called_safe(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("age,illness\n2*,flu\n2*,cold\n", encoding="utf-8")
    (tmp_path / "two.csv").write_text("age,illness\n2*,flu\n2*,flu\n", encoding="utf-8")
    first, both = (str(tmp_path / "one.csv"),), (str(tmp_path / "one.csv"), str(tmp_path / "two.csv"))
    seen = CliRunner().invoke(app, ["audit", *first, "--sensitive", "illness"])
    assert seen.exit_code == 3 and "cannot say who is exposed" in " ".join(seen.stdout.split())
    assert CliRunner().invoke(app, ["audit", *both, "--sensitive", "illness"]).exit_code == 1
    found = first_verdict(both, "illness")
    assert found.single_value == (0, 2) and found.vanished == ((), ("cold",)) and found.pairs == ((1.0, 0.0),)
    with pytest.raises(InputError, match="R723"):
        first_verdict([frame("a b", "1 2")])


def test_random_tables_never_look_safer_than_they_are() -> None:
    """Overlapping boxes and people who may be away, against enumeration; the long version is bench/others.py."""
    from oracle import overlapping

    for seed in range(60):
        rng = random.Random(seed)
        truth = {p: rng.choice("xyz") for p in "ABCDE"}
        ages = {p: rng.randint(0, 9) for p in truth}
        tables, releases, listed = [], [], []
        for number in (1, 2):
            here = sorted(rng.sample(sorted(truth), rng.randint(2, 5)))
            boxes = [(max(0, ages[p] - rng.randint(0, 3)), ages[p] + rng.randint(0, 3)) for p in here]
            tables.append(
                pl.DataFrame(
                    [(f"[{low}-{high}]", truth[p]) for p, (low, high) in zip(here, boxes, strict=True)],
                    schema=["age", "s"],
                    orient="row",
                )
            )
            inside = [{p for p in here if low <= ages[p] <= high} for low, high in boxes]
            fits = [(people, truth[p]) for people, p in zip(inside, here, strict=True)]
            releases.append((fits, here, True))
            listed += [(p, ages[p], number) for p in here]
        found = audit(tables, pl.DataFrame(listed, schema=["name", "age", "release"], orient="row"), worst=0)
        expected = overlapping.beliefs(releases)
        certain = {p for (p, _), row in expected.items() if len(row) == 1}
        assert set(found.certain["person"]) == certain, seed
        for person, release, value, chance in found.posterior.iter_rows():
            assert chance == pytest.approx(float(expected[person, int(release) - 1][value])), seed
