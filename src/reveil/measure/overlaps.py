"""How much of a published cell a condition covers: all, nothing, or a part of it.

Numbers and days of an interval, elements of a set and leaves of a label count alike. `*` counts as the other cells of
its column do on average. A prefix is one in ten of a shorter one by a digit: what its codes are is not known.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import polars as pl

from reveil.hierarchies.tree import Hierarchy
from reveil.published.notation import Cell, End, parse_cell

DIGITS = 10
YEAR = re.compile(r"[12]\d{3}")


@dataclass(frozen=True)
class Fit:
    """Whether what a cell stands for meets a condition: surely, possibly, and with which chance."""

    surely: bool
    possibly: bool
    share: Fraction

    def along(self, other: Fit) -> Fit:
        """Both conditions, on columns of their own."""
        return Fit(self.surely and other.surely, self.possibly and other.possibly, self.share * other.share)


SURELY, NEVER = Fit(True, True, Fraction(1)), Fit(False, False, Fraction(0))


def parts_of(column: pl.Series, wanted: object, tree: Hierarchy | None = None) -> dict[Any, Fit]:
    """What each different cell of a published column has to do with a condition.

    >>> parts = parts_of(pl.Series(["[20-29]", "[30-39]", "31"]), "[25-34]")
    >>> [str(parts[text].share) for text in ("[20-29]", "[30-39]", "31")]
    ['1/2', '1/2', '1']
    """
    texts = column.unique().to_list()
    condition = parse_cell(_text(wanted), tree)
    cells = {text: parse_cell(_text(text), tree) for text in texts}
    if any(map(_of_days, cells.values())):  # 2023 is a year there, and no number
        condition = _year(condition)
        cells = {text: _year(cell) for text, cell in cells.items()}
    parts = {text: _part(cells[text], condition, text) for text in texts}
    if isinstance(wanted, str) and column.dtype == pl.String and wanted in cells:  # it is meant as it is written
        others = [text for text in texts if _single(condition) and _single(cells[text])]
        parts = {**parts, **dict.fromkeys(others, NEVER), wanted: SURELY}
    known = {text: part for text, part in parts.items() if part is not None}
    usual = _usual(column, known) if len(known) < len(texts) else NEVER
    return {text: known.get(text, usual) for text in texts}


def _of_days(cell: Cell) -> bool:
    return isinstance(cell.low, datetime.date) or any(isinstance(value, datetime.date) for value in cell.values)


def _year(cell: Cell) -> Cell:
    """A cell of four digits, read as the days of that year."""
    year = cell.text.strip()
    return parse_cell(f"[{year}-01-01-{year}-12-31]") if YEAR.fullmatch(year) else cell


def _single(cell: Cell) -> bool:
    return cell.kind == "value" and cell.prefix is None and not cell.parts and len(cell.values) <= 1


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _usual(column: pl.Series, known: dict[Any, Fit]) -> Fit:
    """What may be anything matches as often as what is said."""
    counts = column.value_counts(name="\0rows").filter(pl.col(column.name).is_in(list(known), nulls_equal=True))
    rows = dict(counts.iter_rows())
    total = sum(rows.values())
    share = sum((known[text].share * times for text, times in rows.items()), Fraction(0)) / total if total else 1
    return Fit(False, True, Fraction(share))


def _part(cell: Cell, condition: Cell, value: Any) -> Fit | None:
    """None where the cell may be anything and the condition is not."""
    if condition.kind == "any":
        return SURELY
    if cell.kind == "any":
        return None
    if cell.kind == "interval":
        return _interval(cell, condition)
    if cell.parts or len(cell.values) > 1:
        return _elements(cell, condition)
    if cell.prefix is not None:
        return _prefix(cell, condition)
    return SURELY if condition.covers(value) else NEVER


def _elements(cell: Cell, condition: Cell) -> Fit:
    named: list[Hashable] = sorted(cell.values, key=str)
    parts = [SURELY if condition.covers(value) else NEVER for value in named]
    parts += [_part(one, condition, one.text) or Fit(False, True, Fraction(1, 2)) for one in cell.parts]
    share = sum((part.share for part in parts), Fraction(0)) / len(parts)
    return Fit(all(part.surely for part in parts), any(part.possibly for part in parts), share)


def _prefix(cell: Cell, condition: Cell) -> Fit:
    prefix = cell.prefix or ""
    if condition.prefix is not None and prefix.startswith(condition.prefix):
        return SURELY
    wanted = condition.prefix if condition.prefix is not None else condition.text
    if not wanted.startswith(prefix):
        inside = [value for value in condition.values if str(value).startswith(prefix)]
        return Fit(False, bool(inside), Fraction(len(inside), DIGITS ** (len(cell.text) - len(prefix))))
    return Fit(False, True, Fraction(1, DIGITS ** (len(wanted) - len(prefix))))


def _interval(cell: Cell, condition: Cell) -> Fit:
    """The part of an interval that a condition covers, by how many whole numbers or days, or by length."""
    if condition.kind != "interval" and not condition.parts:
        points = [point for point in map(_point, condition.values) if point is not None and cell.covers(point)]
        size = _size(cell.low, cell.high, _whole(cell))
        share = min(Fraction(1), len(set(points)) / size) if size else Fraction(0)
        return Fit(False, bool(points), share)
    parts = [_between(cell, one) for one in condition.parts or (condition,)]
    share = min(Fraction(1), sum((part.share for part in parts), Fraction(0)))
    return Fit(any(part.surely for part in parts) or share == 1, any(part.possibly for part in parts), share)


def _between(cell: Cell, condition: Cell) -> Fit:
    if condition.kind != "interval":
        return _interval(cell, condition)
    lows = [end for end in (cell.low, condition.low) if end is not None]
    highs = [end for end in (cell.high, condition.high) if end is not None]
    if len({isinstance(end, datetime.date) for end in (*lows, *highs)}) > 1:
        return NEVER  # numbers and days
    low, high = max(lows, default=None), min(highs, default=None)
    if low is not None and high is not None and low > high:  # type: ignore[operator]
        return NEVER
    if low == cell.low and high == cell.high:
        return SURELY
    if cell.low is None or cell.high is None:  # without an end nothing says how large it is
        return Fit(False, True, Fraction(1, 2))
    whole = _whole(cell) and _whole(condition)
    size, inside = _size(cell.low, cell.high, whole), _size(low, high, whole)
    return Fit(False, True, min(Fraction(1), inside / size) if size else Fraction(0))


def _whole(cell: Cell) -> bool:
    """Whether an interval is one of whole numbers or days, both ends in it."""
    ends = [end for end in (cell.low, cell.high) if end is not None]
    return all(isinstance(end, int | datetime.date) for end in ends) and cell.low_closed and cell.high_closed


def _size(low: End | None, high: End | None, whole: bool) -> Fraction:
    if low is None or high is None:
        return Fraction(0)
    width = (high - low).days if isinstance(high, datetime.date) else high - low  # type: ignore[operator]
    return Fraction(width) + (1 if whole else 0)


def _point(value: Hashable) -> Any:
    return value if isinstance(value, int | Fraction | datetime.date) else None
