"""Lines put together by group are, byte for byte, those that Polars writes cell by cell."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from reveil.table.cells import texts
from reveil.write.emit import escaped_table, write_table
from reveil.write.recode import ColumnBlock, Recoded

TEXTS = st.none() | st.text(alphabet='ab",;\r\n\té ', max_size=5)
KINDS = [(TEXTS, pl.String), (st.none() | st.integers(-9, 9), pl.Int64), (st.none() | st.floats(-5, 5), pl.Float64)]
NAMES = st.lists(st.text(alphabet='ab",;é ', min_size=1, max_size=4), unique=True, min_size=1, max_size=5)


@given(st.data(), NAMES, st.booleans())
def test_lines_by_group_are_those_of_polars(data: st.DataObject, names: list[str], numbered: bool) -> None:
    check(Recoded(tuple(_drawn(data, names, numbered))))


def test_a_missing_cell_alone_in_its_line_is_quoted() -> None:
    cells = pl.DataFrame({"a": [None, "x"]}, schema={"a": pl.String})
    check(Recoded((ColumnBlock(cells, np.array([0, 1, 0])),)))


def check(recoded: Recoded) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ours, plain = Path(folder, "ours.csv"), Path(folder, "plain.csv")
        write_table(recoded, ours)
        whole = escaped_table(recoded.table)
        whole.with_columns(texts(column) for column in whole if column.dtype.is_float()).write_csv(plain)
        assert ours.read_bytes() == plain.read_bytes()


def _drawn(data: st.DataObject, names: list[str], numbered: bool) -> Iterator[ColumnBlock]:
    """Groups of text cells between columns of texts or numbers that have an index of their own."""
    rows = data.draw(st.integers(0, 6))
    for place, name in enumerate(names):
        count = data.draw(st.integers(1, 3))
        index = np.array(data.draw(st.lists(st.integers(0, count - 1), min_size=rows, max_size=rows)), dtype=np.int32)
        kind, dtype = data.draw(st.sampled_from(KINDS))
        cells = pl.DataFrame([pl.Series(name, data.draw(st.lists(kind, min_size=count, max_size=count)), dtype=dtype)])
        if numbered and dtype == pl.String:
            cells.insert_column(0, pl.Series(f"group {place}", np.arange(count)))
            texts = data.draw(st.lists(TEXTS, min_size=count, max_size=count))
            cells.insert_column(1, pl.Series(f"text {place}", texts, dtype=pl.String))
        yield ColumnBlock(cells, index)
