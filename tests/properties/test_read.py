"""The cells of a text file are the texts that were written."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveil.table.options import ReadOptions
from reveil.table.read import read_table

ODD = ["007", "1e5", "-0", "+1", "1_000", "NaN", "null", "1.50", ".5", "5.", "1E+3", "12E5", " 1", "\u0661", "\uff11"]
ODD += [
    "a,b",
    "a;b",
    'say "x"',
    "two\nlines",
    "two\r\nlines",
    "\u00e9",
    "\u00a0",
    "\x0c",
    "\ufeffz",
    "x" * 300,
    "{a,b}",
    "*",
]
KINDS = {
    "number": ["1", "-7", "105"],
    "decimal": ["0.5", "-3.25"],
    "day": ["2024-02-29"],
    "text": ["a", "b c"],
    "odd": ODD,
}


@st.composite
def written(draw: st.DrawFn) -> tuple[str, str, bytes]:
    """The text of a table, its delimiter, and the bytes of its file."""
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=2, max_size=4))
    cell = [st.sampled_from(KINDS[kind]) | st.sampled_from([*ODD, ""]) for kind in kinds]
    plain = [st.sampled_from(KINDS[kind]) for kind in kinds]
    rows = draw(st.lists(st.tuples(*draw(st.sampled_from([cell, plain, plain]))), min_size=1, max_size=5))
    mark, end = draw(st.sampled_from(",;\t|")), draw(st.sampled_from(["\n", "\r\n"]))
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    text = io.StringIO()
    writer = csv.writer(text, delimiter=mark, lineterminator=end, quoting=quoting)
    writer.writerows([[f"c{n}" for n in range(len(kinds))], *rows])
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
    return text.getvalue(), mark, text.getvalue().encode(encoding)


@given(case=written())
def test_what_is_read_is_what_the_csv_module_reads(
    case: tuple[str, str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    text, mark, content = case
    path = tmp_path_factory.mktemp("table") / "t.csv"
    path.write_bytes(content)
    header, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    found = read_table(path, ReadOptions(delimiter=mark))
    assert found.columns == header
    assert found.height == len(rows)
    assert found.rows() == [tuple(cell or None for cell in row) for row in rows]


@pytest.mark.parametrize("odd", ["07", "+7"])
def test_a_lone_return_is_part_of_its_cell(odd: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(f"a,b\r\n1,y\r\n2,x\rq\n{odd},z\r\n".encode())
    assert read_table(path)["a"].to_list() == ["1", "2", odd]
