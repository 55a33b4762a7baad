"""Published cells, read back: what each text stands for, whoever wrote it.

Reveil, ARX and scripts write intervals, prefixes, sets and labels in their own ways; here all become cells.
Numbers are exact: a whole number is an `int`, any other a `Fraction` of the decimal that is written, and a
float is the decimal that its shortest text shows (0.3 is 3/10, not a hair less). Dates are `datetime.date`.

A label of the hierarchy wins over every other reading. Where the leaves of a hierarchy are themselves buckets
(`[20-24]`, `2026-03`, `476**`), its labels are read as the buckets that they name.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Hashable, Iterable, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.text import MOST_DIGITS, far, plain_text
from reveil.hierarchies.tree import ANY, Hierarchy
from reveil.published.sets import split_set

Kind = Literal["value", "interval", "set", "any", "missing"]
Sort = Literal["number", "date", "text"]
End = int | Fraction | datetime.date

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_DATE = r"\d{4}-\d{2}-\d{2}"
_END = rf"({_DATE}|{_NUMBER})"
_IN_BRACKETS = re.compile(rf"([\[\](])\s*{_END}\s*(/|,|;|\.\.|-|–)\s*{_END}\s*([\[\])])")
_BARE = re.compile(rf"{_END}\s*(\.\.|-|–|/)\s*{_END}")
_HALF_LINE = re.compile(rf"(>=|<=|≥|≤|>|<)\s*{_END}")
_PLAIN_NUMBER = re.compile(_NUMBER)
_LEADING_ZERO = re.compile(r"[-+]?0\d|\+")  # codes such as 00501, which only a numeric column holds as numbers
_PERIOD = re.compile(r"(\d{4})(?:-(\d{2})|-Q([1-4])|(s)|)")
_PREFIX = re.compile(r"(.*[^*])(\*+)", re.DOTALL)


@dataclass(frozen=True)
class Cell:
    """What one published text stands for.

    An interval has `low` and `high` (None: no bound on that side). `values` are the values or leaves that are
    named one by one. A `prefix` stands for the values of the text's length that start with it; where
    `padded`, shorter ones as well. `parts` are the elements of a set that are not single values.
    """

    text: str
    kind: Kind
    low: End | None = None
    high: End | None = None
    low_closed: bool = True
    high_closed: bool = True
    values: frozenset[Hashable] = frozenset()
    prefix: str | None = None
    padded: bool = False
    parts: tuple[Cell, ...] = ()
    label: bool = False  # it is a label of the hierarchy

    def covers(self, value: object) -> bool:
        """Whether the original value may stand behind this cell.

        >>> parse_cell("[20-30[").covers(30), parse_cell("476**").covers("47677")
        (False, True)
        """
        if self.kind == "any":
            return True
        if value is None or value == "":
            return self.kind == "missing" or None in self.values
        text = plain_text(value.date() if isinstance(value, datetime.datetime) else value)
        return (
            (text == self.text and not self.label)
            or value in self.values
            or text in self.values
            or self._has_prefix(text)
            or self._has_point(value, text)
            or any(part.covers(value) for part in self.parts)
        )

    def _has_prefix(self, text: str) -> bool:
        if self.prefix is None or not text.startswith(self.prefix):
            return False
        return len(text) == len(self.text) or (self.padded and len(text) < len(self.text))

    def _has_point(self, value: object, text: str) -> bool:
        dated = isinstance(self.low, datetime.date) or isinstance(self.high, datetime.date)
        point = value if type(value) is int else _point(text, None)
        day = value if isinstance(value, datetime.date) else point
        if isinstance(day, datetime.date) and not dated:
            return self._names_period_of(day)
        if point is None or isinstance(point, datetime.date) != dated:
            return False
        return point in self.values or (self.kind == "interval" and self._between(point))

    def _between(self, point: End) -> bool:
        low, high = self.low, self.high
        if low is not None and (point < low or (point == low and not self.low_closed)):  # type: ignore[operator]
            return False
        return high is None or point < high or (point == high and self.high_closed)  # type: ignore[operator]

    def _names_period_of(self, value: datetime.date) -> bool:
        """`2026` alone is a number or a category at first sight; against a date it is a year."""
        day = value.date() if isinstance(value, datetime.datetime) else value
        periods = (_period(str(item)) for item in (*self.values, self.text) if isinstance(item, str | int))
        return any(first <= day <= last for first, last in filter(None, periods))


def exact_number(text: str) -> int | Fraction | None:
    """The number that is written, exactly; None where the text is not a number.

    >>> exact_number("-5"), exact_number("0.1"), exact_number("2.0"), exact_number("x")
    (-5, Fraction(1, 10), 2, None)
    """
    if len(text) > MOST_DIGITS:
        return None  # a text of digits: no table holds such a number
    if text.isascii() and text.isdigit():
        return int(text)
    if not _PLAIN_NUMBER.fullmatch(text) or far(text):
        return None
    number = Fraction(text)
    return int(number) if number.denominator == 1 else number


def read_date(text: str) -> datetime.date | None:
    """The day that is written as year-month-day, or None."""
    if not re.fullmatch(_DATE, text):
        return None
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return None


def parse_cell(text: str | None, hierarchy: Hierarchy | None = None, *, numeric: bool | None = None) -> Cell:
    """Read one published cell.

    `numeric` says what the column holds: True for numbers, False for categories (then `20-29` is a name like
    any other), None to go by the hierarchy or, without one, by the look of the text.

    >>> cell = parse_cell("[-5--1]")
    >>> cell.kind, cell.low, cell.high, cell.covers(-3)
    ('interval', -5, -1, True)
    >>> parse_cell("2026-Q1").high
    datetime.date(2026, 3, 31)
    """
    return _Reader(hierarchy, numeric).cell(text)


def parse_column(
    series: pl.Series,
    hierarchy: Hierarchy | None = None,
    numeric: bool | None = None,
    *,
    padded: bool = False,
    names: bool = False,
) -> tuple[list[Cell], NDArray[np.int64]]:
    """Read a published column: its distinct cells, and the index of the cell of each row.

    `padded`: codes shorter than the longest are filled up with `*` like all others, so that `123*` may be 123.
    `names`: Reveil wrote it, and it holds categories: a cell is one of them, whatever it looks like, but for `*`, sets
    in braces and runs of an order.

    >>> cells, index = parse_column(pl.Series(["[20-29]", "*", "[20-29]", None]))
    >>> [cell.kind for cell in cells], index.tolist()
    (['interval', 'any', 'missing'], [0, 1, 0, 2])
    """
    texts = series.cast(pl.String)
    distinct = texts.drop_nulls().unique(maintain_order=True)
    reader = _Reader(hierarchy, numeric, padded, names)
    cells = [reader.cell(text) for text in distinct]
    if texts.null_count():
        cells.append(reader.cell(None))
    codes = texts.cast(pl.Enum(distinct)).to_physical().cast(pl.Int64)
    return cells, codes.fill_null(len(distinct)).to_numpy()


def as_written(cells: Iterable[Cell], values: Set[str]) -> list[Cell]:
    """Cells in which a text that is one of the column's own values is that value and no notation.

    >>> [cell.kind for cell in as_written([parse_cell("1-3"), parse_cell("4-6")], {"1-3", "5"})]
    ['value', 'interval']
    """

    def read(cell: Cell) -> Cell:
        if cell.text in values and not cell.label:
            return _literal(cell.text)
        return replace(cell, parts=tuple(map(read, cell.parts))) if cell.parts else cell

    return [read(cell) for cell in cells]


class _Reader:
    """Reads the cells of one column."""

    def __init__(
        self, hierarchy: Hierarchy | None, numeric: bool | None, padded: bool = False, names: bool = False
    ) -> None:
        self.hierarchy, self.numeric, self.padded, self.names = hierarchy, numeric, padded, names

    @cached_property
    def sort(self) -> Sort | None:
        """What bare texts are; None: whatever they look like."""
        if self.numeric is not None:
            return "number" if self.numeric else "text"
        leaf = next((leaf for leaf in self._leaves if leaf is not None), None)
        if isinstance(leaf, datetime.date):
            return "date"
        if isinstance(leaf, int | float):
            return "number"
        return self.buckets

    @cached_property
    def buckets(self) -> Sort | None:
        """The sort of notation that all leaves are written in, where they are buckets and not values."""
        if self.names:
            return None
        leaves = [leaf for leaf in self._leaves if leaf is not None]
        sorts: tuple[Sort, ...] = ("number", "date", "text")
        return next((sort for sort in sorts if leaves and _are_buckets(leaves, sort)), None)

    @property
    def _leaves(self) -> tuple[Hashable, ...]:
        return self.hierarchy.leaves if self.hierarchy is not None else ()

    def cell(self, text: str | None) -> Cell:
        if not text:
            return Cell("", "missing")
        span = self._by_label(text)
        if span is None and (elements := split_set(text)) is not None:
            return self._set(text, elements)
        read = span or self._run(text) or self._notation(text) or _literal(text)
        return replace(read, padded=True) if self.padded and read.prefix is not None else read

    def _notation(self, text: str) -> Cell | None:
        """The text as notation; among names, `*` alone is any."""
        if self.names:
            return Cell(text, "any") if text == ANY else None
        return _notation(text, self.sort)

    def _by_label(self, text: str) -> Cell | None:
        hierarchy = self.hierarchy
        if hierarchy is None or text not in hierarchy.by_label:
            return None
        first, last = hierarchy.by_label[text]
        if text == ANY and first == 0 and last == len(hierarchy) - 1:
            return Cell(text, "any", label=True)
        leaves = hierarchy.leaves[first : last + 1]
        named = Cell(text, "value" if first == last else "set", values=frozenset(leaves), label=True)
        if first == last and not isinstance(leaves[0], str):
            return _single(text, leaves[0])
        if self.buckets is None:
            return named
        bucket = _notation(text, self.buckets)
        if bucket is None or bucket.kind in ("value", "any"):
            return named
        return replace(bucket, values=named.values, padded=bucket.prefix is not None, label=True)

    def _run(self, text: str) -> Cell | None:
        """A run of ordered categories, such as `[I-III]`; a name may itself hold a hyphen."""
        hierarchy = self.hierarchy
        if hierarchy is None or not hierarchy.free or not (text.startswith("[") and text.endswith("]")):
            return None
        for hyphen in re.finditer("-", text):
            ends = text[1 : hyphen.start()], text[hyphen.end() : -1]
            if all(end in hierarchy.by_label and end != ANY for end in ends):
                first, last = (hierarchy.by_label[end][0] for end in ends)
                leaves = hierarchy.leaves[first : last + 1]
                if leaves and isinstance(leaves[0], str):
                    return Cell(text, "set", values=frozenset(leaves))
        return None

    def _set(self, text: str, elements: list[str]) -> Cell:
        values: set[Hashable] = set()
        parts: list[Cell] = []
        for element in elements:
            cell = self._element(element)
            if cell.kind in ("value", "missing"):
                values |= cell.values or {None}
            else:
                parts.append(cell)
        return Cell(text, "set", values=frozenset(values), parts=tuple(parts))

    def _element(self, text: str) -> Cell:
        if not text:
            return Cell("", "missing")
        read = self._by_label(text) or self._run(text) or self._notation(text)
        return _literal(text) if read is None or read.kind == "any" else read


def _are_buckets(leaves: Iterable[Hashable], sort: Sort) -> bool:
    """Whether all leaves are this sort of notation. Bare numbers and years alone may as well be values."""
    starred = [match[1] for leaf in leaves if sort == "text" and (match := _PREFIX.fullmatch(str(leaf)))]
    kept, bare = min(map(len, starred), default=0), True
    for leaf in leaves:
        if isinstance(leaf, str) and len(leaf) < kept:
            continue  # too short to be shortened
        cell = _notation(leaf, sort) if isinstance(leaf, str) else None
        if cell is None or cell.kind == "any" or (sort == "text") != (cell.prefix is not None):
            return False
        bare = bare and (cell.kind == "value" or cell.text.isdigit())
    return not bare


def _literal(text: str) -> Cell:
    return Cell(text, "value", values=frozenset([text]))


def _single(text: str, value: Hashable) -> Cell:
    """One number or one day."""
    point: End | None = value if isinstance(value, datetime.date) else exact_number(plain_text(value))
    return Cell(text, "value", low=point, high=point, values=frozenset([value if point is None else point]))


def _notation(text: str, sort: Sort | None) -> Cell | None:
    """The text read as notation, without a hierarchy; None where it is none."""
    if not text.strip(ANY):
        return Cell(text, "any")
    if (match := _PREFIX.fullmatch(text)) is not None:
        return _prefixed(text, match[1], len(match[2]), sort)
    if sort == "text":
        return None
    if (point := _point(text.strip() if sort == "number" else text, sort)) is not None:
        return _single(text, point)
    return _interval(text, sort) or _dated(text, sort)


def _prefixed(text: str, prefix: str, stars: int, sort: Sort | None) -> Cell:
    if sort != "number" or not re.fullmatch(r"-?\d+", prefix):
        return Cell(text, "set", prefix=prefix)
    near, far = int(prefix) * 10**stars, (abs(int(prefix)) + 1) * 10**stars - 1
    low, high = (-far, near) if prefix.startswith("-") else (near, far)
    return Cell(text, "interval", low=low, high=high, prefix=prefix)


def _point(text: str, sort: Sort | None) -> End | None:
    if sort != "number" and (day := read_date(text)) is not None:
        return day
    if sort == "date" or (sort is None and _LEADING_ZERO.match(text)):
        return None
    return exact_number(text)


def _interval(whole: str, sort: Sort | None) -> Cell | None:
    text = whole.strip()
    if (match := _HALF_LINE.fullmatch(text)) is not None:
        sign, point = match[1], _point(match[2], sort)
        if point is None:
            return None
        closed = sign in (">=", "<=", "≥", "≤")
        if sign[0] in ">≥":
            return Cell(whole, "interval", low=point, low_closed=closed)
        return Cell(whole, "interval", high=point, high_closed=closed)
    if (match := _IN_BRACKETS.fullmatch(text)) is not None:
        opening, first, between, second, closing = match.groups()
    elif (match := _BARE.fullmatch(text)) is not None:
        (first, between, second), opening, closing = match.groups(), "[", "]"
    else:
        return None
    low, high = _point(first, sort), _point(second, sort)
    if low is None or high is None or isinstance(low, datetime.date) != isinstance(high, datetime.date):
        return None
    if low > high or (between == "/" and not isinstance(low, datetime.date)):  # type: ignore[operator]
        return None
    return Cell(whole, "interval", low, high, low_closed=opening == "[", high_closed=closing == "]")


def _dated(text: str, sort: Sort | None) -> Cell | None:
    days = _period(text) if sort != "number" else None
    return None if days is None else Cell(text, "interval", low=days[0], high=days[1])


def _period(text: str) -> tuple[datetime.date, datetime.date] | None:
    """First and last day of a month, quarter, year or decade."""
    match = _PERIOD.fullmatch(text)
    if match is None or (match[1] == "0000" and not match[4]):
        return None
    year, month, quarter = int(match[1]), int(match[2] or 0), int(match[3] or 0)
    if match[2] is not None and not 1 <= month <= 12:
        return None
    first = month or (quarter - 1) * 3 + 1 if quarter or month else 1
    months = 1 if month else 3 if quarter else 120 if match[4] else 12
    after = year * 12 + first - 1 + months
    begin = datetime.date(max(year, 1), first, 1)  # the first decade has no year 0
    if after // 12 > datetime.MAXYEAR:
        return begin, datetime.date.max
    return begin, datetime.date(after // 12, after % 12 + 1, 1) - datetime.timedelta(days=1)
