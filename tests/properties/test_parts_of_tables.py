"""A table that is read in blocks is the table that is read at once: its cells, and what is doubted about it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveil.base.errors import InputError
from reveil.policy.policy import load_policy
from reveil.table.books import seen_in
from reveil.table.doubts import doubtful_rows
from reveil.table.doubts_in_parts import DoubtsInParts
from reveil.table.facts import facts_of
from reveil.table.options import ReadOptions
from reveil.table.parts import Parts
from reveil.table.read import read_table
from reveil.table.text_files import parse_text
from reveil.table.text_parts import text_blocks

CELLS = ["a", "b c", "", "x,y", "two\nlines", 'say ""this""', "Köln", "1.5", '"', "\r", "zwölf"]


def written(cells: list[list[str]], end: str) -> str:
    def one(cell: str) -> str:
        marked = any(mark in cell for mark in ',"\n\r')
        return '"' + cell.replace('"', '""') + '"' if marked else cell

    return end.join(",".join(map(one, row)) for row in [["name", "what", "n"], *cells]) + end


@given(
    st.lists(st.tuples(st.sampled_from(CELLS), st.sampled_from(CELLS), st.sampled_from("123")).map(list), min_size=1),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(1, 200),
    st.booleans(),
)
def test_a_text_file_in_blocks_is_the_file(cells: list[list[str]], end: str, step: int, mark: bool) -> None:
    options = ReadOptions(multiline=True)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "t.csv"
        file.write_bytes(b"\xef\xbb\xbf" * mark + written(cells, end).encode())
        whole = read_table(file, options)
        blocks = list(text_blocks(file, options, step))
        assert pl.concat(blocks).equals(whole)
        assert len(blocks) > 1 or step > 20 or whole.height < 3


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("name,n\n" + "x,1\n" * 30 + "y\n" + "x,1\n" * 30, "R108"),
        ("name,n\n" + "x,1\n" * 30 + 'y"z,1\n' + "x,1\n" * 30, "R109"),
        ("name,n\n" + "x,1\n" * 30 + "K\xf6ln,1\n", "R105"),
    ],
)
def test_broken_lines_of_later_blocks_are_refused(tmp_path: Path, content: str, code: str) -> None:
    (tmp_path / "t.csv").write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError) as error:
        list(text_blocks(tmp_path / "t.csv", ReadOptions(), 40))
    assert [fault.code for fault in error.value.faults] == [code]


def test_a_stated_encoding_and_no_header(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("Köln;1\nBonn;2\nAachen;3\n".encode("cp1252"))
    options = ReadOptions(encoding="cp1252", header=False)
    assert pl.concat(text_blocks(tmp_path / "t.csv", options, 7)).equals(read_table(tmp_path / "t.csv", options))


def summed(seed: int, identifier: str) -> tuple[pl.DataFrame, dict[str, Any]]:
    """People, and sums among them or not, in many ways of writing."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(3, 30))
    people = pl.DataFrame(
        {
            "who": [f"p{i}" for i in range(rows)],
            "ward": rng.choice(["A", "B", "Total", "all rows"], rows, p=[0.6, 0.3, 0.05, 0.05]),
            "age": rng.integers(1, 90, rows),
            "cost": rng.integers(1, 9, rows) / 2,
        }
    )
    words = ["Summe", "total", "Ann", None, "A"]
    adds_up = rng.random() < 0.6
    last = pl.DataFrame(
        {
            "who": pl.Series([words[rng.integers(5)]], dtype=pl.String),
            "ward": pl.Series([words[rng.integers(5)]], dtype=pl.String),
            "age": [people["age"].sum() if adds_up else int(rng.integers(90))],
            "cost": [people["cost"].sum() if adds_up else None],
        },
        schema=people.schema,
    )
    kind = rng.integers(4)
    table = people if kind == 0 else pl.concat([people, last])
    table = pl.concat([table, last]) if kind == 3 else table
    if rng.random() < 0.5:
        table = table.with_columns(pl.col("age", "cost").cast(pl.String))
    roles: dict[str, Any] = {"who": identifier, "ward": "quasi", "age": "quasi", "cost": "sensitive"}
    return table, {"columns": roles, "guarantee": {"k": 2}}


@given(st.integers(0, 10**6), st.sampled_from(["identifier", "drop", "insensitive"]), st.integers(1, 12))
def test_sums_are_noticed_in_blocks_as_at_once(seed: int, identifier: str, at_once: int) -> None:
    table, stated = summed(seed, identifier)
    policy = load_policy(stated)
    facts = reduce(add, (facts_of(block, policy, (), None) for block in table.iter_slices(at_once)))
    assert facts.noticed.faults(facts.seen.values) == doubtful_rows(table, policy, ())
    assert facts_of(table, policy, ("total-rows",), None).noticed.faults(facts.seen.values) == []


def test_a_sum_of_all_blocks_is_noticed_and_can_be_accepted(tmp_path: Path) -> None:
    table = pl.DataFrame({"ward": ["A", "B"] * 20 + [None], "age": [*range(40), sum(range(40))]})
    table.write_csv(tmp_path / "t.csv")
    columns = {"ward": {"role": "quasi", "type": "category"}, "age": {"role": "quasi", "type": "number"}}
    policy = load_policy({"columns": columns, "guarantee": {"k": 2}})
    parts = Parts((tmp_path / "t.csv",), policy, 1)
    blocks = list(parts)
    assert len(blocks) > 1
    noticed = reduce(add, (DoubtsInParts(policy, (), block) for block in blocks))
    seen = seen_in(table.with_columns(pl.col("age").cast(pl.String)), policy)
    assert [fault.places for fault in noticed.sums(seen.values)] == [(41,)]


@pytest.mark.parametrize(("mark", "delimiter"), [(";", None), ("   ", "blanks")])
def test_titles_above_the_header_are_left_out_of_every_part(tmp_path: Path, mark: str, delimiter: str | None) -> None:
    people = "".join(f"{n};{n % 7}\n" for n in range(50))
    (tmp_path / "t.csv").write_text(f"Klinik; Haus A\n\nNr;Alter\n{people}".replace(";", mark))
    for header, lines in ((True, 2), (False, 3)):
        options = ReadOptions(skip_lines=lines, header=header, delimiter=delimiter)
        whole = read_table(tmp_path / "t.csv", options)
        assert (whole.height, whole.width) == (50, 2)
        for step in (1, 8, 20, 40):  # the first of them is shorter than the titles
            assert pl.concat(text_blocks(tmp_path / "t.csv", options, step)).equals(whole)


@pytest.mark.parametrize("rows", [("1 a 4\n", "7 1 a 4\n"), ("7 1 a 4\n", "1 a 4\n")])
def test_whether_rows_are_numbered_is_told_once_for_all_blocks(tmp_path: Path, rows: tuple[str, str]) -> None:
    (tmp_path / "t.dat").write_text("id town n\n" + rows[0] * 3 + rows[1] * 5)
    options = ReadOptions(delimiter="blanks")
    for step in (None, 1, 10, 16, 18, 28, 1000):
        with pytest.raises(InputError, match="a value with blanks in it") as error:
            read_table(tmp_path / "t.dat", options) if step is None else list(
                text_blocks(tmp_path / "t.dat", options, step)
            )
        assert [fault.code for fault in error.value.faults] == ["R108"]


def test_numbered_rows_and_doubled_marks_are_the_same_in_every_block(tmp_path: Path) -> None:
    rows = "".join(f'"{n}" "a ""b" {n % 7} c\n' for n in range(1, 40))
    for titles in ("", "Klinik  Haus A\n\n"):
        (tmp_path / "t.dat").write_text(f"{titles} town n z\n{rows}")
        options = ReadOptions(delimiter="blanks", row_index=True, skip_lines=titles.count("\n"))
        whole = read_table(tmp_path / "t.dat", options)
        assert whole.rows()[:2] == [('a "b', "1", "c"), ('a "b', "2", "c")]
        for step in (1, 8, 20, 60, 9000):
            first, *later = text_blocks(tmp_path / "t.dat", options, step)
            assert first.width == 4  # by its first rows a column is known to number them
            assert pl.concat([first.drop(first.columns[0]), *later]).equals(whole)


@given(st.lists(st.tuples(*[st.text("ab 1\t", min_size=1, max_size=4)] * 3), min_size=2, max_size=9), st.randoms())
def test_cells_set_apart_by_blanks_are_those_set_apart_by_commas(rows: list[tuple[str, ...]], random: Random) -> None:
    def line(row: Sequence[str]) -> str:
        run = "".join(random.choices(" \t", k=random.randint(1, 3)))
        cells = (f'"{cell}"' if set(cell) & set(" \t") or random.random() < 0.2 else cell for cell in row)
        return random.choice(["", run]) + run.join(cells) + random.choice(["", run]) + random.choice(["\n", "\r\n"])

    def comma(row: Sequence[str]) -> str:
        return ",".join(f'"{cell}"' for cell in row) + "\n"

    table = [("x", "y", "z"), *rows]
    apart, plain = ("".join(map(write, table)).encode() for write in (line, comma))
    assert parse_text(apart, "t", ReadOptions(delimiter="blanks")).equals(parse_text(plain, "t", ReadOptions()))
