"""Whether published cells stand for what was put in: each member's own values, behind the cells of their group."""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from os import cpu_count

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.hierarchies.tree import Hierarchy
from reveil.published.notation import Cell, parse_column
from reveil.verify.judges.counts import ranked, tally


@dataclass(frozen=True, eq=False)
class Held:
    """A column of the input; and, to save looking for them, its different values in rising order as others say."""

    values: pl.Series
    said: Sequence[Hashable]
    index: NDArray[np.int32]  # which of them each row is said to have

    def numbered(self) -> tuple[pl.Series, NDArray[np.int64]]:
        """Different values and which of them each row has. What was said is taken only if it gives the column."""
        said = pl.Series(self.said, dtype=self.values.dtype, strict=False)
        rising = said.dtype == pl.String or said.is_sorted()
        if rising and said.gather(self.index).equals(self.values):
            return said, self.index.astype(np.int64)
        return ranked(self.values)


def uncovered(
    shown: pl.DataFrame, classes: NDArray[np.int64], members: Mapping[str, Held], trees: Mapping[str, Hierarchy]
) -> dict[str, int]:
    """By column, how many members have a value that the cell of their class does not cover.

    `shown` are the cells by class, `classes` the class of each member.

    >>> ages = Held(pl.Series([21, 30, 99]), [21, 30, 99], np.arange(3, dtype=np.int32))
    >>> uncovered(pl.DataFrame({"age": ["[20-29]", "*"]}), np.array([0, 0, 1]), {"age": ages}, {})
    {'age': 1}
    """

    def wrong(name: str, held: Held) -> int:
        return _column(shown[name], classes, held, trees.get(name))

    with ThreadPoolExecutor(cpu_count() or 1) as columns_at_once:
        return dict(zip(members, columns_at_once.map(wrong, members, members.values()), strict=True))


def _column(shown: pl.Series, classes: NDArray[np.int64], held: Held, hierarchy: Hierarchy | None) -> int:
    dtype = held.values.dtype
    numeric = dtype.is_numeric() if hierarchy is None and dtype != pl.Date else None
    cells, label = parse_column(shown, hierarchy, numeric)
    values, index = held.numbered()
    pairs, rows = tally(label[classes] * len(values) + index)
    cell, value = np.divmod(pairs, max(1, len(values)))
    bounds = np.append(np.flatnonzero(np.diff(cell, prepend=-1)), len(pairs)).tolist()
    known, wrong = values.to_list(), 0
    for first, last in pairwise(bounds):
        behind = [known[place] for place in value[first:last].tolist()]
        wrong += _outside(cells[cell[first]], behind, rows[first:last])
    return wrong


def _outside(cell: Cell, values: list[object], rows: NDArray[np.int64]) -> int:
    """Rows of the values, in rising order, that a cell does not cover. An interval that has both ends has them all."""
    ordered = isinstance(values[0], int | float | datetime.date)
    if cell.kind == "any" or (
        ordered and cell.kind == "interval" and cell.covers(values[0]) and cell.covers(values[-1])
    ):
        return 0
    return sum(count for value, count in zip(values, rows.tolist(), strict=True) if not cell.covers(value))
