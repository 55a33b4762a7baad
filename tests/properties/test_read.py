"""Reading numbers at once and reading text first must give the same table, or the same refusal."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveil import readtext
from reveil.errors import InputError
from reveil.read import read_table

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
    with patch.object(readtext, "_as_plain", return_value=None):
        assert quick == outcome(path)


def test_plain_numbers_are_read_at_once() -> None:
    data = b"age,name\r\n41,a\r\n-7,b\r\n"
    frame = readtext._as_plain(data, readtext._dialect(data, "t.csv", readtext.ReadOptions()))
    assert frame is not None
    assert frame.rows() == [(41, "a"), (-7, "b")]


@pytest.mark.parametrize("odd", ["07", "+7"])
def test_a_lone_return_does_not_make_up_for_a_longer_number(odd: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(f"a,b\r\n1,y\r\n2,x\rq\n{odd},z\r\n".encode())
    assert read_table(path)["a"].to_list() == ["1", "2", odd]
