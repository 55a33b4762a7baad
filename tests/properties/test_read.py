"""Reading numbers at once and reading text first must give the same table, or the same refusal."""

from __future__ import annotations

import csv
import io
from datetime import date
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveil.base.errors import InputError
from reveil.table import text_files
from reveil.table.read import read_table

CELLS = st.sampled_from(["0", "7", "12", "-7", "123456789012345678", "", "007", "+7", "-0", " 7", "1.5", "x", "9" * 19])
PLAIN = st.sampled_from(["0", "7", "12", "-7", "99", "100", "-100"])


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Mostly plain numbers, now and then a cell, a line or a line end that is not."""
    width = draw(st.integers(1, 4))
    lines = [[f"c{n}" for n in range(width)]]
    for _ in range(draw(st.integers(1, 8))):
        cells = draw(st.lists(PLAIN, min_size=width, max_size=width))
        if draw(st.integers(0, 3)) == 0:
            cells[draw(st.integers(0, width - 1))] = draw(CELLS)
        if draw(st.integers(0, 9)) == 0:
            cells = draw(st.sampled_from([cells[:-1], [*cells, "1"], []]))
        lines.append(cells)
    usual, mark = draw(st.sampled_from(["\n", "\r\n"])), draw(st.sampled_from([",", ";"]))
    odd = draw(st.sampled_from([usual, usual, usual, "\n", "\r\n"]))
    ends = [usual] * (len(lines) - 1) + [draw(st.sampled_from([usual, ""]))]
    ends[draw(st.integers(0, len(lines) - 1))] = odd
    return "".join(mark.join(cells) + end for cells, end in zip(lines, ends, strict=True)).encode()


def outcome(path: Path) -> object:
    try:
        frame = read_table(path)
    except InputError as error:
        return [(fault.code, fault.message) for fault in error.faults]
    return frame.schema, frame.rows()


@given(content=files())
def test_numbers_read_at_once_are_those_of_the_text(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("table") / "t.csv"
    path.write_bytes(content)
    quick = outcome(path)
    with patch.object(text_files, "_as_plain", return_value=None):
        assert quick == outcome(path)


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


def says(value: object, text: str) -> bool:
    """Whether what was read is what was written: text letter by letter, numbers by value."""
    if value is None or text == "":
        return value is None and text == ""
    if isinstance(value, float):
        return value == float(text.replace(",", "."))
    return (value.isoformat() if isinstance(value, date) else str(value)) == text


@given(case=written())
def test_what_is_read_is_what_the_csv_module_reads(
    case: tuple[str, str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    text, mark, content = case
    path = tmp_path_factory.mktemp("table") / "t.csv"
    path.write_bytes(content)
    header, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    found = read_table(path, text_files.ReadOptions(delimiter=mark))
    assert found.columns == header
    assert found.height == len(rows)
    assert all(
        says(value, cell) for a, b in zip(found.rows(), rows, strict=True) for value, cell in zip(a, b, strict=True)
    )


def test_plain_numbers_are_read_at_once() -> None:
    data = b"age,name\r\n41,a\r\n-7,b\r\n"
    frame = text_files._as_plain(data, text_files._dialect(data, "t.csv", text_files.ReadOptions()))
    assert frame is not None
    assert frame.rows() == [(41, "a"), (-7, "b")]


@pytest.mark.parametrize("odd", ["07", "+7"])
def test_a_lone_return_does_not_make_up_for_a_longer_number(odd: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(f"a,b\r\n1,y\r\n2,x\rq\n{odd},z\r\n".encode())
    assert read_table(path)["a"].to_list() == ["1", "2", odd]
