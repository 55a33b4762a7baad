"""Stable boxes: whether people who share a cell of the first release still share a box, read from the cuts as recorded.

Cuts are read by their meaning (a value, labels as anybody reads them in a release), not by positions in a plan.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.background.loading import text_hierarchies
from reveil.base.words import some
from reveil.hierarchies.tree import Hierarchy
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.published.notation import parse_column
from reveil.verify.comparing import Check, Truth
from reveil.verify.covering import Held

Bools = NDArray[np.bool_]
NAME = "boxes as in the first release"


def steady_boxes(truth: Truth, policy: Policy, history: History, stated: Mapping[str, Hierarchy]) -> list[Check]:
    """Nobody is in another box than those in the same cell; the first release says what the cells are."""
    if not policy.method.steady or truth.crowds is None or not truth.quasi:
        return []
    cuts = history.cuts if history.head else truth.crowds.cuts
    if cuts is None or cuts.is_empty():
        return [Check(NAME, False, "no cuts are recorded")]
    people = pl.DataFrame([held.values for held in truth.quasi.values()])
    trees = {**text_hierarchies(policy, people), **stated}
    return [Check(NAME, *parted(truth.crowds.box, truth.quasi, cuts, policy, trees))]


def parted(
    box: NDArray[np.int32],
    quasi: Mapping[str, Held],
    cuts: pl.DataFrame,
    policy: Policy,
    trees: Mapping[str, Hierarchy],
) -> tuple[bool, str]:
    """Whether every cell is in one box; `box` is that of each member."""
    sides = _CutReader(quasi, policy, trees)
    entries, work = cuts.rows(), [np.arange(len(box))]
    cells, apart = 0, 0
    for column, upto, under in entries:
        rows = work.pop()
        if column is not None:
            inside = sides.inside(column, upto, under)[sides.index[column][rows]]
            work += [rows[~inside], rows[inside]]
        elif len(rows):
            cells += 1
            apart += bool((box[rows] != box[rows[0]]).any())
    whole = not work
    finding = f"people in {some(cells, 'cell')} of the first release, {apart:,} of them in more than one box"
    return whole and not apart, finding if whole else "the recorded cuts end before their time"


class _CutReader:
    """Which values of a column are inside a cut."""

    def __init__(self, quasi: Mapping[str, Held], policy: Policy, trees: Mapping[str, Hierarchy]) -> None:
        self.policy, self.trees, self.known = policy, trees, dict[tuple[Any, ...], Bools]()
        numbered = {name: held.numbered() for name, held in quasi.items()}
        self.values = {name: values for name, (values, _) in numbered.items()}
        self.index = {name: index for name, (_, index) in numbered.items()}

    def inside(self, column: str, upto: str | None, under: str | None) -> Bools:
        key = (column, upto, under)
        if key not in self.known:
            values = self.values[column].to_list()
            if under is not None:
                chosen = self._under(column, values, json.loads(under))
            else:
                chosen = _upto(values, json.loads(upto or "null"), self.policy.columns[column].order)
            self.known[key] = np.array(chosen, dtype=bool)
        return self.known[key]

    def _under(self, column: str, values: list[Hashable], labels: list[str]) -> list[bool]:
        tree, dtype = self.trees.get(column), self.values[column].dtype
        numeric = dtype.is_numeric() if tree is None and dtype != pl.Date else None
        texts = pl.Series([label or None for label in labels], dtype=pl.String)
        cells, _ = parse_column(texts, tree, numeric)
        return [any(cell.covers(value) for cell in cells) for value in values]


def _upto(values: list[Hashable], last: Any, order: tuple[str, ...] | None) -> list[bool]:
    """Values up to one of a number, a date or a stated order; none is before all."""
    if isinstance(last, dict):
        last = datetime.date.fromisoformat(last["date"])
    if last is None:
        return [value is None for value in values]
    if order is not None:
        place = {value: number for number, value in enumerate(order)}
        return [value is None or place[str(value)] <= place[last] for value in values]
    return [value is None or value <= last for value in values]
