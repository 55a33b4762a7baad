"""Published columns read against their originals: which of the original's values each cell stands for.

Measuring loss and risk needs more than the text of a cell: how much of the column it covers, and which rows.
An `Axis` puts the values of an original column in order; a cell then is a few runs of neighbours.
"""

from __future__ import annotations

import datetime
import difflib
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.background.loading import load_hierarchies
from reveil.base.arrays import I64
from reveil.base.errors import Fault, InputError, stop_if
from reveil.base.text import plain_text
from reveil.base.words import some
from reveil.hierarchies import scales
from reveil.hierarchies.tree import Hierarchy
from reveil.policy.column import Column
from reveil.policy.policy import Policy
from reveil.published.format import COUNT, GROUP
from reveil.published.notation import Cell, as_written, exact_number, parse_column, read_date
from reveil.table.cells import texts
from reveil.table.encode import positions_of

Floats = NDArray[np.float64]
Runs = list[tuple[int, int]]  # first and last rank of each
EXACT = 2**53  # whole numbers beyond it are not exact as floats


@dataclass(frozen=True, eq=False)
class Axis:
    """The values of one original column in order, None first where some are missing."""

    name: str
    values: tuple[Hashable, ...]
    counts: I64  # original rows with each value
    numbers: Floats | I64 | None  # the known values on a scale (days for dates); None for categories
    step: float  # distance of neighbours: 1 for whole numbers, days and categories, 0 for real numbers
    hierarchy: Hierarchy | None
    numeric: bool | None  # how published texts are to be read
    named: bool = False  # by labels of the hierarchy alone, whatever these look like

    @property
    def sorted(self) -> bool:
        """Whether the order is that of the texts, not that of a hierarchy."""
        return self.numbers is None and (self.hierarchy is None or self.values != self.hierarchy.leaves)

    @property
    def missing(self) -> int:
        return int(self.counts[0]) if self.values and self.values[0] is None else 0

    @cached_property
    def place(self) -> dict[Hashable, int]:
        return {self._key(value): rank for rank, value in enumerate(self.values)}

    def rank(self, value: Hashable) -> int:
        """The place of a value of the original."""
        return self.place[self._key(value)]

    def _key(self, value: Hashable) -> Hashable:
        """What values of the original and values named in a cell are compared by."""
        if value is None or self.numbers is None:
            return None if value is None else plain_text(value)
        if isinstance(value, str):
            value = read_date(value) if isinstance(self.values[-1], datetime.date) else exact_number(value)
        return None if value is None else self._number(value)

    @cached_property
    def texts(self) -> frozenset[str]:
        """The values as they are written."""
        return frozenset(plain_text(value) for value in self.values if value is not None)

    @property
    def whole(self) -> bool:
        """Whether the scale is held in whole numbers, exact however large they are."""
        return self.numbers is not None and self.numbers.dtype.kind == "i"

    def _number(self, value: object) -> float:
        """A value on the scale: where that is whole, whole numbers stay so, because floats above 2^53 merge them."""
        number = _number(value)
        return int(number) if self.whole and number == int(number) else float(number)

    @cached_property
    def origin(self) -> int:
        """Where measuring starts. Whole numbers beyond 2^53 are measured from the least, or floats would merge them."""
        if not self.whole or self.numbers is None or not len(self.numbers):
            return 0
        least, most = int(self.numbers[0]), int(self.numbers[-1])
        return least if max(-least, most) > EXACT and most - least < 2**63 else 0

    def points(self, cell: Cell) -> list[float]:
        """The numbers that a cell names one by one."""
        keys = (self._key(value) for value in cell.values)
        return sorted(key for key in keys if isinstance(key, int | float))

    def ranks(self, cell: Cell) -> Runs:
        """The runs of neighbouring values that a cell stands for."""
        if cell.kind == "any":
            return [(0, len(self.values) - 1)] if self.values else []
        if cell.kind == "interval" and self.numbers is not None:
            low, high = self.ends(cell)
            if low > high:
                return []
            offset = len(self.values) - len(self.numbers)
            first, last = (
                np.searchsorted(self.numbers, low),
                np.searchsorted(self.numbers, high, side="right"),
            )
            return [(int(first) + offset, int(last) + offset - 1)] if first < last else []
        if cell.kind == "missing":
            return [(0, 0)] if self.missing else []
        ranks = {self.place[key] for key in map(self._key, cell.values) if key in self.place}
        if cell.prefix is not None or cell.kind == "interval":
            ranks |= self._covered(cell)
        for part in cell.parts:
            ranks |= {rank for a, b in self.ranks(part) for rank in range(a, b + 1)}
        return _runs(sorted(ranks))

    def _covered(self, cell: Cell) -> set[int]:
        """The categories that a prefix or an interval covers. Sorted, those with a prefix are neighbours."""
        first, last = int(self.missing > 0), len(self.values)
        if cell.prefix is not None and self.sorted:
            first = bisect_left(self.values, cell.prefix, first)  # type: ignore[type-var]
            last = bisect_left(self.values, cell.prefix + "\U0010ffff", first)  # type: ignore[type-var]
        return {rank for rank in range(first, last) if cell.covers(self.values[rank])}

    def ends(self, cell: Cell) -> tuple[float, float]:
        """The ends of an interval, both included, within the range of the original."""
        assert self.numbers is not None
        least, most = (self.numbers[0].item(), self.numbers[-1].item()) if len(self.numbers) else (0, 0)
        low = least if cell.low is None else _number(cell.low)
        high = most if cell.high is None else _number(cell.high)
        if self.step:
            low = ceil(low) if cell.low_closed or cell.low is None else floor(low) + 1
            high = floor(high) if cell.high_closed or cell.high is None else ceil(high) - 1
            return max(low, least), min(high, most)
        if cell.low is not None and not cell.low_closed:
            low = np.nextafter(float(low), np.inf)
        if cell.high is not None and not cell.high_closed:
            high = np.nextafter(float(high), -np.inf)
        return max(float(low), least), min(float(high), most)

    def spans(self, cell: Cell) -> list[tuple[float, float]]:
        """The stretches of the scale that a cell stands for; of ranks where there is no scale."""
        if self.numbers is None or not len(self.numbers):
            return [(float(a), float(b)) for a, b in self.ranks(cell)]
        if cell.kind == "any":
            return [(self.numbers[0].item(), self.numbers[-1].item())]
        if cell.kind == "interval":
            low, high = self.ends(cell)
            return [(low, high)] if low <= high else []
        points = [point for point in self.points(cell) if self.numbers[0] <= point <= self.numbers[-1]]
        if cell.label:  # a taxonomy over numbers: its label stands for all between its least and its greatest
            return [(points[0], points[-1])] if points else []
        return [(point, point) for point in points] + [span for part in cell.parts for span in self.spans(part)]

    def rows(self, values: pl.Series, ranked: bool) -> Floats:
        """Where each row lies on the scale, from its origin, or its rank; a missing number is nowhere (nan)."""
        if self.numbers is None:
            known = self.values[1:] if self.missing else self.values
            names = pl.Series([plain_text(value) for value in known], dtype=pl.String)
            codes = texts(values).cast(pl.Enum(names)).to_physical().cast(pl.Float64) + (len(self.values) - len(known))
            return codes.fill_null(0.0).to_numpy()
        scale = values.to_physical().cast(pl.Int64 if self.whole else pl.Float64)
        if values.dtype == pl.Date:
            scale = scale + datetime.date(1970, 1, 1).toordinal()
        scale = scale.fill_nan(None) if not self.whole else scale
        if not ranked:
            return (scale - self.origin).cast(pl.Float64).fill_null(np.nan).to_numpy()
        places = np.searchsorted(self.numbers, scale.fill_null(0).to_numpy()) + len(self.values) - len(self.numbers)
        return np.where(scale.is_null().to_numpy(), 0, places).astype(np.float64)


def axis_of(name: str, spec: Column, values: pl.Series, tree: Hierarchy | None = None) -> Axis:
    """The values of an original column, in the order of its hierarchy (`tree`) where the policy states one."""
    categorical = spec.type == "category" or spec.prefixes is not None or spec.order is not None
    numeric = (values.dtype.is_numeric() or values.dtype == pl.Date) and not categorical
    hierarchy = None
    if spec.hierarchy is not None or spec.prefixes is not None or spec.order is not None:
        hierarchy, _ = positions_of(name, spec, texts(values), tree)
    if not numeric:
        values = texts(values)
    table = values.value_counts(name="\0rows").sort(values.name)
    known: list[Hashable] = table[values.name].to_list()
    counts: dict[Hashable, int] = dict(zip(known, table["\0rows"].to_list(), strict=True))
    ordered: Iterable[Hashable] = known
    if hierarchy is not None and not numeric and spec.prefixes is None:
        ordered = hierarchy.leaves
    elif values.dtype == pl.Date and hierarchy is None:
        days = [value for value in known if isinstance(value, datetime.date)]
        hierarchy, _ = scales.dates(name, days, None, missing=False)
    order = tuple(ordered)
    numbers = _scale(name, values, [value for value in order if value is not None]) if numeric else None
    whole = numbers is None or bool(np.all(numbers == np.floor(numbers)))
    return Axis(
        name,
        order,
        np.array([counts.get(value, 0) for value in order], dtype=np.int64),
        numbers,
        1.0 if whole else 0.0,
        hierarchy,
        None if values.dtype == pl.Date or (hierarchy is not None and not numeric) else numeric,
        hierarchy is not None and spec.named,
    )


def _scale(name: str, values: pl.Series, known: list[Hashable]) -> Floats | I64:
    """The values as numbers: whole ones and days exactly, others as the floats that they are."""
    if not values.dtype.is_integer() and values.dtype != pl.Date:
        return np.array([float(_number(value)) for value in known])
    beyond = values.dtype.is_integer() and values.cast(pl.Int64, strict=False).null_count() - values.null_count()
    if beyond:
        remedy = "use smaller units, or pass the column as text if it holds codes"
        raise InputError(Fault("R708", f"column {name!r}", "has whole numbers beyond 64 bits", remedy, beyond))
    return np.array([_number(value) for value in known], dtype=np.int64)


def _number(value: object) -> int | float | Fraction:
    return value.toordinal() if isinstance(value, datetime.date) else value  # type: ignore[return-value]


def _runs(ranks: Sequence[int]) -> Runs:
    runs: Runs = []
    for rank in ranks:
        if runs and runs[-1][1] == rank - 1:
            runs[-1] = (runs[-1][0], rank)
        else:
            runs.append((rank, rank))
    return runs


@dataclass(frozen=True, eq=False)
class Read:
    """A published column, read against the axis of its original."""

    axis: Axis
    cells: list[Cell]
    index: I64  # cell of each published row
    runs: list[Runs]  # of each cell


def read_column(axis: Axis, published: pl.Series) -> tuple[Read, list[Fault]]:
    """Read a published column, and the texts in it that no notation and no hierarchy explains."""
    cells, index = parse_column(published, axis.hierarchy, axis.numeric, names=axis.named)
    if axis.numbers is None:
        cells = as_written(cells, axis.texts)
    read = Read(axis, cells, index, [axis.ranks(cell) for cell in cells])
    dark = [i for i, cell in enumerate(cells) if not read.runs[i] and not _readable(axis, cell)]
    return read, [_unreadable(axis, read, dark)] if dark else []


def _readable(axis: Axis, cell: Cell) -> bool:
    """Whether a cell that covers no value of the original is at least understood."""
    if cell.kind in ("any", "missing"):
        return True
    return axis.numbers is not None and (cell.kind == "interval" or bool(axis.points(cell)))


def _unreadable(axis: Axis, read: Read, dark: list[int]) -> Fault:
    rows = np.bincount(read.index, minlength=len(read.cells))
    labels = axis.hierarchy.labels if axis.hierarchy is not None else ()
    known = [*map(plain_text, axis.values[:10_000]), *labels[:10_000]]
    shown = []
    for i in sorted(dark, key=lambda i: -int(rows[i]))[:10]:
        near = difflib.get_close_matches(read.cells[i].text, known, n=1)
        nearest = f", nearest {near[0]!r}" if near else ""
        shown.append(f"{read.cells[i].text!r} ({some(int(rows[i]), 'row')}{nearest})")
    more = f" and {len(dark) - 10} more" if len(dark) > 10 else ""
    message = (
        f"{some(len(dark), 'text is', 'texts are')} neither original values, nor labels of the hierarchy, "
        "nor a notation"
    )
    remedy = "name the hierarchy that the table was published with in the policy, or correct the column's type"
    total = int(rows[dark].sum())
    return Fault("R702", f"published column {axis.name!r}", f"{message}: {', '.join(shown)}{more}", remedy, total)


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a published table."""

    reads: tuple[Read, ...]  # quasi-identifiers
    cells: I64  # classes x quasi-identifiers
    sizes: I64  # rows as published
    real: I64  # of them not counterfeit
    starred: NDArray[np.bool_]  # all quasi-identifiers are `*`
    index: I64  # class of each published row

    @property
    def suppressed(self) -> int:
        return int(self.real[self.starred].sum())


def classes_of(
    published: pl.DataFrame, original: pl.DataFrame, policy: Policy, counterfeits: pl.DataFrame | None = None
) -> Classes:
    """Read the quasi-identifiers of a published table and put its rows into classes."""
    reads, faults = [], []
    trees = load_hierarchies(policy, policy.named("quasi"))
    for name in policy.named("quasi"):
        axis = axis_of(name, policy.columns[name], original[name], trees.get(name))
        read, unread = read_column(axis, published[name])
        reads.append(read)
        faults += unread
    stop_if(faults)
    keys = pl.DataFrame({str(i): read.index for i, read in enumerate(reads)})
    grouped = GROUP in published.columns and GROUP not in policy.columns
    if grouped:
        keys = keys.with_columns(published[GROUP].alias(GROUP))
    table = keys.group_by(keys.columns, maintain_order=True).len("rows").with_row_index("class")
    classed = keys.join(table, on=keys.columns, how="left", nulls_equal=True, maintain_order="left")["class"]
    cells = table.select(map(str, range(len(reads)))).to_numpy()
    stars = [np.array([cell.kind == "any" for cell in read.cells], dtype=bool) for read in reads]
    sizes = table["rows"].to_numpy().astype(np.int64)
    return Classes(
        reads=tuple(reads),
        cells=cells,
        sizes=sizes,
        real=sizes - _counterfeits(table, counterfeits, grouped),
        starred=np.logical_and.reduce([star[cells[:, i]] for i, star in enumerate(stars)]),
        index=classed.to_numpy().astype(np.int64),
    )


def _counterfeits(table: pl.DataFrame, counterfeits: pl.DataFrame | None, grouped: bool) -> I64:
    """Counterfeit rows of each class, from the counts per group."""
    if counterfeits is None or counterfeits.is_empty():
        return np.zeros(table.height, dtype=np.int64)
    lacking = [name for name in (GROUP, COUNT) if name not in counterfeits.columns]
    if lacking or not grouped:
        which = f"counterfeits have no column {lacking[0]!r}" if lacking else "published rows have no column 'group'"
        remedy = "pass the published table and its counterfeits as Reveil wrote them"
        raise InputError(Fault("R704", "counterfeits", which, remedy))
    counts = counterfeits.select(pl.col(GROUP).cast(table[GROUP].dtype), pl.col(COUNT).cast(pl.Int64))
    joined = table.join(counts, on=GROUP, how="left", maintain_order="left")
    amount = joined[COUNT].fill_null(0)
    if amount.sum() != counts[COUNT].sum() or (amount > joined["rows"]).any():
        message = "name a group that was not published, or more rows than a group has"
        raise InputError(Fault("R704", "counterfeits", message, "pass the counterfeits of this very release"))
    return amount.to_numpy().astype(np.int64)
