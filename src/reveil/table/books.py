"""Values to integers in two passes over a table: first the different values of each column, then every row.

All that is settled about cells (their types, what is missing, hierarchies, codes) is settled on the different values of
a column, once and for all rows. So blocks of rows are encoded alike, whatever their bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.background.loading import Background
from reveil.base.errors import Fault, InputError, stop_if
from reveil.hierarchies.tree import Hierarchy
from reveil.policy.policy import Policy
from reveil.table.bins import in_bins
from reveil.table.cells import texts
from reveil.table.doubts import NO_ROWS
from reveil.table.encode import Codes, Sensitive, as_published, look_up, positions_of, sensitive_of
from reveil.table.roles import as_kinds, column_faults, missing_fault, order_faults
from reveil.table.types import stated_type

ROWS = "\0rows"


@dataclass(frozen=True, eq=False)
class SeenValues:
    """What some rows hold: by column its different values and how often each occurs."""

    rows: int
    head: pl.DataFrame  # without rows: names and types
    values: Mapping[str, pl.DataFrame]  # value, rows
    unknown: int = 0  # rows without an identifier

    def __add__(self, other: SeenValues) -> SeenValues:
        both = {name: _added(mine, other.values[name]) for name, mine in self.values.items()}
        return SeenValues(self.rows + other.rows, self.head, both, self.unknown + other.unknown)


def _added(one: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([one, other]).group_by("value").agg(pl.col(ROWS).sum())


def seen_in(block: pl.DataFrame, policy: Policy) -> SeenValues:
    values = {
        name: pl.DataFrame({"value": _plain(block[name])}).group_by("value").agg(pl.len().cast(pl.Int64).alias(ROWS))
        for name in _used(block, policy)
    }
    unknown = block[policy.identifier].null_count() if policy.identifier in block.columns else 0
    return SeenValues(block.height, block.clear(), values, unknown)


def _used(block: pl.DataFrame, policy: Policy) -> list[str]:
    shown = ("quasi", "sensitive", "insensitive")
    return [name for name, spec in policy.columns.items() if spec.role in shown and name in block.columns]


def _plain(column: pl.Series) -> pl.Series:
    """A column in one of the types that are told apart here; what a value means is settled later."""
    if column.dtype.is_decimal():
        return column.cast(pl.Float64)
    if column.dtype.is_float():
        return column.cast(pl.Float64).fill_nan(None)
    if column.dtype.is_integer() or column.dtype in (pl.String, pl.Date, pl.Datetime) or column.dtype.is_nested():
        return column
    return texts(column)


@dataclass(frozen=True, eq=False)
class Book:
    """One column: its different values as they are read, rising, and the number of each; that of a missing one."""

    values: pl.Series
    numbers: Codes
    missing: int

    def look_up(self, column: pl.Series) -> Codes:
        plain = _plain(column)
        codes = look_up(plain, self.values, self.numbers)
        if plain.null_count():
            codes[plain.is_null().to_numpy()] = self.missing
        return codes


@dataclass(frozen=True, eq=False)
class Books:
    """How rows of a table become integers: quasi-identifiers, sensitive and insensitive columns, in this order."""

    quasi: tuple[Hierarchy, ...]
    sensitive: tuple[Sensitive, ...]
    insensitive: Mapping[str, pl.Series]  # the values themselves, by number
    dtypes: Mapping[str, pl.DataType]  # of columns as they are prepared
    columns: Mapping[str, Book]
    rows: int
    values: Mapping[str, pl.DataFrame]  # sensitive column -> value, rows in the input
    texts: Mapping[str, pl.Series]  # column of texts -> its different values, as they are prepared

    def encode(self, block: pl.DataFrame) -> NDArray[np.int32]:
        return np.column_stack([book.look_up(block[name]) for name, book in self.columns.items()])


def books_of(seen: SeenValues, policy: Policy, background: Background, declared: bool) -> Books:
    """Every fault of the table at once, or the books by which all its rows are encoded."""
    faults = column_faults(seen.head, policy, series=False)
    faults += [] if seen.rows else [NO_ROWS]
    if seen.unknown:
        remedy = "fill the identifier in, or remove these rows"
        faults.append(Fault("R213", f"identifier {policy.identifier!r}", "is missing", remedy, seen.unknown))
    faults += [] if declared else _open_types(policy)
    stop_if(faults)
    raw = {name: _distinct(counts, name) for name, counts in seen.values.items()}
    typed, wrong = as_kinds(list(raw.values()), policy, {}, declared)
    # Faults of conversion are told by value here: rows and places would be those of a list of values.
    stop_if([replace(fault, rows=None, places=()) for fault in wrong])
    prepared = {column.name: in_bins(column.to_frame(), policy).to_series() for column in typed}
    counted = {name: seen.values[name].sort("value", nulls_last=True)[ROWS] for name in raw}
    for name, column in prepared.items():
        nulls = int(counted[name].filter(column.is_null()).sum() or 0)
        faults += [missing_fault(name, nulls)] if nulls and policy.columns[name].missing != "category" else []
    faults += order_faults(pl.DataFrame([column.clear() for column in prepared.values()]), policy)
    stop_if(faults)
    return _built(raw, prepared, counted, seen.rows, policy, background)


def _distinct(counts: pl.DataFrame, name: str) -> pl.Series:
    """Different values, rising, the missing one last."""
    return counts.sort("value", nulls_last=True)["value"].alias(name)


def _open_types(policy: Policy) -> list[Fault]:
    """Files of texts: with many blocks no look at all cells settles a type."""
    roles = ("quasi", "sensitive", "insensitive")
    wanted = [name for name, spec in policy.columns.items() if spec.role in roles and stated_type(spec, None) is None]
    message = "is of no stated type, and the look of its texts settles none where a table is read in blocks"
    remedy = 'give it a type ("number", "date" or "category") in [columns], or write the table as Parquet'
    return [Fault("R873", f"column {name!r}", message, remedy) for name in wanted]


def _built(
    raw: Mapping[str, pl.Series],
    prepared: Mapping[str, pl.Series],
    counted: Mapping[str, pl.Series],
    rows: int,
    policy: Policy,
    background: Background,
) -> Books:
    quasi, sensitive, faults = list[Hierarchy](), list[Sensitive](), list[Fault]()
    insensitive, columns = dict[str, pl.Series](), dict[str, Book]()
    stated = background.hierarchies
    for name in (*policy.named("quasi"), *policy.named("sensitive"), *policy.named("insensitive")):
        spec, column = policy.columns[name], prepared[name]
        try:
            if spec.role == "quasi":
                tree, numbers = positions_of(name, spec, column, stated.get(name))
                quasi.append(as_published(tree, policy.method))
            elif spec.role == "sensitive":
                kept, numbers = sensitive_of(column, policy, (), stated.get(name))
                sensitive.append(kept)
            else:
                insensitive[name], numbers = column, np.arange(len(column), dtype=np.int32)
        except InputError as error:
            faults += [replace(fault, rows=None, places=()) for fault in error.faults]
            continue
        known = len(raw[name]) - raw[name].null_count()
        missing = int(numbers[known]) if raw[name].null_count() else 0
        columns[name] = Book(raw[name].head(known), numbers[:known], missing)
    stop_if(faults)
    values = {
        name: pl.DataFrame({"value": prepared[name], "rows": counted[name]}).group_by("value").agg(pl.col("rows").sum())
        for name in policy.named("sensitive")
    }
    dtypes = {name: column.dtype for name, column in prepared.items()}
    texts = {name: column for name, column in prepared.items() if column.dtype == pl.String}
    return Books(tuple(quasi), tuple(sensitive), insensitive, dtypes, columns, rows, values, texts)
