"""Risk by combination of columns against exhaustive minimal uniques."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from oracle import uniques as oracle
from reveil.base.errors import InputError
from reveil.cli.app import app
from reveil.measure.combinations import combination_risk

ROWS = st.integers(1, 5).flatmap(
    lambda width: st.lists(st.tuples(*[st.sampled_from([1, 2, 3, None])] * width), min_size=1, max_size=12)
)


def frame(rows):
    return pl.DataFrame({f"c{c}": pl.Series([row[c] for row in rows], dtype=pl.Int64) for c in range(len(rows[0]))})


@settings(max_examples=400, deadline=None)
@given(ROWS, st.integers(1, 5), st.sampled_from(["0.01", "1/3", "1"]))
def test_scores_are_those_of_exhaustive_minimal_uniques(rows, size, share):
    found, size = combination_risk(frame(rows), size=size, sampled=share), min(size, len(rows[0]))
    assert found.minimal == tuple(len(oracle.minimal_uniques(rows, row, size)) for row in rows)
    assert found.scores == tuple(oracle.score(rows, row, size) for row in rows)
    assert found.dis == oracle.dis(rows, Fraction(share))
    scored = sum(1 for score in found.scores if score)
    if scored:
        wanted = oracle.dis_scores(found.scores, scored, found.dis, len(rows[0]))
        assert found.dis_scores == pytest.approx(wanted, rel=1e-9)
    else:
        assert found.dis_scores == [0.0] * len(rows)


@settings(max_examples=200, deadline=None)
@given(ROWS, st.integers(1, 5))
def test_every_combination_is_counted(rows, size):
    for one in combination_risk(frame(rows), size=size).combinations:
        columns = [int(name[1:]) for name in one.columns]
        around = oracle.sizes(rows, columns)
        assert (one.unique, one.smallest) == (around.count(1), min(around))
        assert one.classes == len({tuple(row[c] for c in columns) for row in rows})
        assert one.separation == oracle.separation(rows, columns)


# The ten people of the SDC practice guide, "Illustrating the calculation of SUDA and DIS-SUDA scores".
GUIDE = [
    ("Urban", "Female", "Secondary incomplete", "Employed"), ("Urban", "Female", "Secondary incomplete", "Employed"),
    ("Urban", "Female", "Primary incomplete", "Non-LF"), ("Urban", "Male", "Secondary complete", "Employed"),
    ("Rural", "Female", "Secondary complete", "Unemployed"), ("Urban", "Male", "Secondary complete", "Employed"),
    ("Urban", "Female", "Primary complete", "Non-LF"), ("Urban", "Male", "Post-secondary", "Unemployed"),
    ("Urban", "Female", "Secondary incomplete", "Non-LF"), ("Urban", "Female", "Secondary incomplete", "Non-LF"),
]  # fmt: skip


def test_the_example_of_the_practice_guide():
    """Its SUDA scores; its DIS scores are of older SUDA scores, which count MSUs of sizes 1, 2, 3 as 7/4, 1/2, 1/4."""
    table = pl.DataFrame(GUIDE, schema=["residence", "gender", "education", "labour"], orient="row")
    found = combination_risk(table, size=3)
    assert found.scores == (0, 0, 6, 0, 12, 0, 6, 10, 0, 0)
    older = [0.0] * 10
    for number, row in enumerate(GUIDE):
        for columns in oracle.minimal_uniques(GUIDE, row, 4):
            older[number] += (1.75, 0.5, 0.25, 0)[len(columns) - 1]
    wanted = [0, 0, 0.0051, 0, 0.0107, 0, 0.0051, 0.0088, 0, 0]
    assert oracle.dis_scores(older, 4, found.dis, 4) == pytest.approx(wanted, abs=6e-5)
    as_older = dataclasses.replace(found, scores=tuple(int(4 * score) for score in older))
    assert as_older.dis_scores == pytest.approx(wanted, abs=6e-5)


def test_an_empty_table_has_no_risk():
    found = combination_risk(pl.DataFrame({"a": pl.Series([], dtype=pl.Int64)}))
    assert (found.dis_scores, found.dis, found.combinations[0].unique) == ([], 0, 0)


def test_refusals_name_column_and_way_out():
    table = pl.DataFrame({f"c{c}": [c] for c in range(60)})
    for how, code in (
        ({"keys": ["zip"]}, "R901"), ({"keys": []}, "R901"), ({"size": 0}, "R902"), ({"size": 4}, "R902"),
        ({"sampled": 2}, "R900"), ({"sampled": "x"}, "R900"),
    ):  # fmt: skip
        with pytest.raises(InputError) as caught:
            combination_risk(table, **how)
        assert [fault.code for fault in caught.value.faults] == [code]


def test_the_command_says_it_in_one_line_and_one_picture(tmp_path):
    source, picture = tmp_path / "people.csv", tmp_path / "risk.html"
    source.write_text("zip,sex,id\n1,f,1\n1,f,2\n2,f,3\n2,m,4\n", encoding="utf-8")
    called = CliRunner().invoke(app, ["risk", str(source), "--keys", "zip,sex", "--picture", str(picture)])
    assert called.exit_code == 0, called.output
    assert called.output.startswith("50.0 % of 4 rows are unique by zip, sex.")
    assert "<svg" in picture.read_text(encoding="utf-8")
    called = CliRunner().invoke(app, ["risk", str(source), "--json"])
    assert json.loads(called.output)["combinations"][0]["columns"] == ["id"]
