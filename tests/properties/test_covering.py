"""Cells that do not cover their members' values are counted as one would by hand, whatever the publisher says."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from reveil.published.notation import parse_cell
from reveil.verify.covering import Held, uncovered

NUMBERS = st.none() | st.integers(-3, 12)
CELLS = st.sampled_from(["[0-5]", "[3-3]", "[-3-12]", "7", "*", "{1, 4}", "{, [2-6]}", "[0-5[", "]0-9]", None])


@given(
    st.lists(CELLS, min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), NUMBERS), min_size=1, max_size=12),
    st.randoms(),
)
def test_numbers_that_cells_do_not_cover(cells: list[str | None], members: list[tuple[int, int | None]], rng) -> None:  # type: ignore[no-untyped-def]
    classes = np.array([number % len(cells) for number, _ in members])
    values = pl.Series([value for _, value in members], dtype=pl.Int64)
    expected = sum(not parse_cell(cells[c], numeric=True).covers(v) for c, (_, v) in zip(classes, members, strict=True))
    for held in said_about(values, rng):
        found = uncovered(pl.DataFrame({"x": pl.Series(cells, dtype=pl.String)}), classes, {"x": held}, {})
        assert found == {"x": expected}


def said_about(values: pl.Series, rng) -> list[Held]:  # type: ignore[no-untyped-def]
    """The truth, the truth in a wrong order, and lies."""
    said = values.unique().sort()
    place = {value: number for number, value in enumerate(said)}
    index = np.array([place[value] for value in values], dtype=np.int32)
    order = list(range(len(said)))
    rng.shuffle(order)
    back = np.argsort(order).astype(np.int32)
    lie = np.array([rng.randrange(len(said)) for _ in index], dtype=np.int32)
    known = said.to_list()
    return [Held(values, known, index), Held(values, [known[p] for p in order], back[index]), Held(values, known, lie)]
