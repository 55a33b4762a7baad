"""Lines put together by group are, byte for byte, those that Polars writes cell by cell."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from reveil.emit import write_table
from reveil.recode import Recoded

TEXTS = st.none() | st.text(alphabet='ab",;\r\n\té ', max_size=5)
NAMES = st.lists(st.text(alphabet='ab",;é ', min_size=1, max_size=4), unique=True, min_size=1, max_size=5)


@given(st.data(), NAMES, st.booleans())
@example(None, ["a"], False)
def test_lines_by_group_are_those_of_polars(data: st.DataObject | None, names: list[str], numbered: bool) -> None:
    if data is None:  # one column whose cells are missing
        table = pl.DataFrame({"a": [None, None]}, schema={"a": pl.String})
        recoded = Recoded(table, table.head(1), np.zeros(2, dtype=np.int32))
    else:
        recoded = _drawn(data, names, numbered)
    with tempfile.TemporaryDirectory() as folder:
        ours, plain = Path(folder, "ours.csv"), Path(folder, "plain.csv")
        write_table(recoded, ours)
        recoded.table.write_csv(plain)
        assert ours.read_bytes() == plain.read_bytes()


def _drawn(data: st.DataObject, names: list[str], numbered: bool) -> Recoded:
    count = data.draw(st.integers(1, 3))
    groups = np.array(data.draw(st.lists(st.integers(0, count - 1), max_size=6)), dtype=np.int32)
    shared = [name for name in names if data.draw(st.booleans())]
    drawn = st.lists(TEXTS, min_size=count, max_size=count)
    texts = [pl.Series(name, data.draw(drawn), dtype=pl.String) for name in shared]
    shown = pl.DataFrame([*([pl.Series("group", np.arange(count))] if numbered else []), *texts])
    columns = [pl.Series("group", groups, dtype=pl.Int64)] if numbered else []
    for name in names:
        if name in shared:
            columns.append(shown[name].gather(groups))
        else:
            kind = data.draw(st.sampled_from([TEXTS, st.none() | st.integers(-9, 9), st.none() | st.floats(-5, 5)]))
            cells = data.draw(st.lists(kind, min_size=len(groups), max_size=len(groups)))
            dtype = {id(TEXTS): pl.String}.get(id(kind))
            columns.append(pl.Series(name, cells, dtype=dtype or pl.Float64))
    return Recoded(pl.DataFrame(columns), shown, groups)
