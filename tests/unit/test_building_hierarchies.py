"""Hierarchies by order and by priority: read back, published with, and refused where they make no sense."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import reveil
from reveil.base.errors import InputError
from reveil.hierarchies.builders import as_csv, by_order, by_priority
from reveil.hierarchies.files import arx_paths
from support import cli


@pytest.mark.parametrize("count", [2, 5, 12, 30])
@pytest.mark.parametrize("sizes", [[2], [3, 2], [2, 2, 2]])
def test_runs_are_of_neighbours_and_nested(count: int, sizes: list[int]) -> None:
    values = [f"v{place:02}" for place in range(count)]
    rows = by_order(values, sizes)
    assert [row[0] for row in rows] == values and all(row[-1] == "*" for row in rows)
    width = 1
    for level, size in enumerate(sizes, 1):
        width *= size
        runs = [row[level] for row in rows]
        assert [runs.index(run) for run in runs] == [place // width * width for place in range(count)]
    assert set(arx_paths(as_csv(rows), "built")) == set(values)


def test_the_first_values_stay_longest() -> None:
    values = [f"v{place}" for place in range(9)]
    rows = by_priority(values, [6, 2])
    for level, kept in enumerate([6, 2], 1):
        assert [row[level] == row[0] for row in rows] == [place < kept for place in range(9)]
        assert len({row[level] for row in rows}) == kept + 1
    assert arx_paths(as_csv(rows), "built")["v3"] == ("not among the first 2", "v3", "v3")
    assert set(arx_paths(as_csv(rows), "built")) == set(values)


@pytest.mark.parametrize(
    ("build", "numbers", "words"),
    [
        (by_order, [1], "puts nothing together"),
        (by_order, [], "names no number"),
        (by_priority, [2, 2], "each level keeps fewer"),
        (by_priority, [3], "is not fewer"),
        (by_priority, [0], "is not fewer"),
    ],
)
def test_what_builds_nothing_is_refused(build: object, numbers: list[int], words: str) -> None:
    assert callable(build)
    with pytest.raises(InputError, match=words):
        build(["a", "b", "c"], numbers)
    with pytest.raises(InputError, match="not all different"):
        build(["a", "a"], [2] if build is by_order else [1])


def test_the_command_writes_what_a_policy_reads(tmp_path: Path) -> None:
    jobs = ["nurse"] * 6 + ["clerk"] * 4 + ["pilot"] * 2 + ["diver", "baker"]
    pl.DataFrame({"job": jobs, "age": range(14), "mood": ["low", "high"] * 7}).write_csv(tmp_path / "people.csv")
    source, file = str(tmp_path / "people.csv"), tmp_path / "job.csv"
    code, out, err = cli("hierarchy", source, "job", "--keep", "3,1", "--out", str(file))
    assert code == 0 and "5 values, 2 levels" in out, err
    assert file.read_text().splitlines()[0] == "nurse;nurse;nurse;*"
    assert file.read_text().splitlines()[3] == "baker;not among the first 3;not among the first 1;*"
    columns = {"job": {"role": "quasi", "hierarchy": str(file)}, "age": "drop", "mood": "insensitive"}
    release = reveil.anonymize(pl.read_csv(source), {"columns": columns, "guarantee": {"k": 2}}, seed=1)
    assert set(release.table["job"]) == {"nurse", "clerk", "pilot", "not among the first 3"}
    code, out, err = cli("hierarchy", source, "age", "--sizes", "5", "--out", str(tmp_path / "age.csv"))
    assert code == 0 and (tmp_path / "age.csv").read_text().splitlines()[10] == "10;[10-13];*", err
    code, _, err = cli("hierarchy", source, "mood", "--sizes", "2", "--values", "low", "--out", str(tmp_path / "m.csv"))
    assert code == 2 and "does not name 1 of the column's values" in err
    for wrong in (("--keep", "1", "--sizes", "2"), (), ("--sizes", "two"), ("--keep", "9")):
        code, _, err = cli("hierarchy", source, "job", *wrong, "--out", str(tmp_path / "x.csv"))
        assert code == 2 and "R305" in err
    code, _, err = cli("hierarchy", source, "job", "--keep", "1", "--out", str(file))
    assert code == 2 and "exists already" in err


def test_decimals_stay_as_they_are_written_and_names_can_be_pasted(tmp_path: Path) -> None:
    scores = ["1.0"] * 6 + ["1.50"] * 4 + ["2.00", "10.5"] * 2
    pl.DataFrame({"last score": scores}).write_csv(tmp_path / "t.csv")
    file = tmp_path / "s.csv"
    code, out, _ = cli("hierarchy", str(tmp_path / "t.csv"), "last score", "--sizes", "2", "--out", str(file))
    assert code == 0 and [line.split(";")[0] for line in file.read_text().splitlines()] == [
        "1.0",
        "1.50",
        "2.00",
        "10.5",
    ]
    assert '"last score" = { role = "quasi", hierarchy = "s.csv" }' in out
    columns = {"last score": {"role": "quasi", "type": "category", "hierarchy": str(file)}}
    assert reveil.anonymize(
        str(tmp_path / "t.csv"), {"columns": columns, "guarantee": {"k": 2}}, seed=1
    ).certificate.holds
