"""True counts: one bounded contribution per person, put into stated bins."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from math import ceil, inf, nextafter
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.errors import stop_if
from reveil.dp.count_policy import OTHER, Budget, Counting, Marginal
from reveil.hierarchies.scales import date_label
from reveil.policy.column import DateLevel, DateOrder
from reveil.table.cells import texts
from reveil.table.dates import each_day
from reveil.table.numbers import parse
from reveil.table.read import read_table
from reveil.table.roles import column_faults, missing_faults, options
from reveil.table.types import comparable


def read(table: Any, policy: Counting, accept: Sequence[str] = ()) -> pl.DataFrame:
    """The identifier and every counted column as texts or numbers, each cell by itself.

    Types, encoding and bins are the policy's: nothing is told from the rows, so that one person's odd cell changes no
    other cell and refuses no table. It is counted as (other). Only what the file as a whole is can be a fault.
    """
    frame = read_table(table, options(policy, accept), found_out=False)
    faults = column_faults(frame, policy, series=False)
    wanted = [name for name in (policy.identifier, *policy.dp.bins) if name in frame.columns]
    usable = [comparable(frame[name]) for name in wanted]
    faults += [fault for _, of_column in usable for fault in of_column]
    for column, _ in usable:
        if column.name in policy.dp.bins:
            faults += missing_faults(column, policy.columns[column.name])
    stop_if(faults)
    return pl.DataFrame([_binnable(column, policy) for column, _ in usable])


def _binnable(column: pl.Series, policy: Counting) -> pl.Series:
    """Values as their bins name them: whole texts, the first characters of a code, the month of a day, or numbers.

    Numbers of a text have a point; their decimal mark is told by the policy alone.
    """
    spec = policy.columns[column.name]
    if spec.levels is not None:
        return _periods(column, spec.levels[0], policy.input.dates)
    numeric = column.name in policy.dp.bins and not isinstance(policy.dp.bins[column.name][0], str)
    if numeric and column.dtype == pl.String and policy.input.decimal == ",":
        swapped = column.str.replace_all(".", "\0", literal=True).str.replace_all(",", ".", literal=True)
        return swapped.str.replace_all("\0", ",", literal=True)
    if numeric and column.dtype.is_numeric():
        return column
    written = texts(column)
    return written if spec.prefixes is None else written.str.slice(0, spec.prefixes[0])


def _periods(column: pl.Series, level: DateLevel, order: DateOrder | None) -> pl.Series:
    """The month (or the like) of each day; what is no day is (other)."""
    typed = column.dtype in (pl.Date, pl.Datetime)
    days = column.dt.date() if typed else each_day(texts(column), order)
    days = days.set(~days.is_between(date.min, date.max), None)
    known = days.drop_nulls().unique()
    named = days.replace_strict(known, [date_label(day, level) for day in known], default=None, return_dtype=pl.String)
    return named.set(named.is_null() & column.is_not_null(), OTHER)


def bound(frame: pl.DataFrame, identifier: str, contributions: int) -> tuple[pl.DataFrame, int]:
    """At most so many rows of each person, chosen at random; and how many rows were left out.

    Rows without an identifier are nobody's, so they are left out too: what one of them adds could not be bounded.

    >>> frame = pl.DataFrame({"who": ["a", "a", "b"], "ill": ["flu", "cold", "flu"]})
    >>> kept, lost = bound(frame, "who", 1)
    >>> sorted(kept["who"]), lost
    (['a', 'b'], 1)
    """
    mixed = frame[np.random.default_rng().permutation(frame.height)]
    mixed = mixed.filter(pl.col(identifier).is_not_null())
    kept = mixed.filter(pl.int_range(pl.len()).over(identifier) < contributions)
    return kept, frame.height - kept.height


def cells(frame: pl.DataFrame, marginal: Marginal, budget: Budget) -> NDArray[np.int64]:
    """The true count of every combination of bins, in the order of `grid`."""
    place = np.zeros(frame.height, dtype=np.int64)
    size = 1
    for name in marginal.by:
        width = len(budget.labels(name))
        place = place * width + _places(frame[name], budget.bins[name])
        size *= width
    return np.bincount(place, minlength=size)


def _places(column: pl.Series, bins: tuple[Any, ...]) -> NDArray[np.int64]:
    """The bin of each row; other values and missing ones have bins of their own, the last two."""
    if isinstance(bins[0], str):
        known = column.is_in(list(bins))
        codes = column.set(~known.fill_null(False), None).cast(pl.Enum(bins)).to_physical().cast(pl.Int64)
        return codes.fill_null(pl.Series(np.where(column.is_null().to_numpy(), len(bins) + 1, len(bins)))).to_numpy()
    whole, real = _numbers(column)
    most = np.iinfo(np.int64).max
    steps = [max(ceil(cut), -most - 1) for cut in bins if cut <= most]
    # Whole numbers exactly, each by itself: as floats those above 2^53 would merge with others that differ.
    exactly = np.searchsorted(np.array(steps, dtype=np.int64), whole.fill_null(0).to_numpy(), side="right")
    ladder = np.array([_least_float(cut) for cut in bins])
    nearly = np.searchsorted(ladder, real.fill_null(0.0).to_numpy(), side="right")
    places = np.where(whole.is_not_null().to_numpy(), exactly, nearly)
    odd = whole.is_null() & ~real.is_finite().fill_null(False)
    places = np.where(odd.to_numpy(), len(bins) + 1, places)
    return np.where(column.is_null().to_numpy(), len(bins) + 2, places)


def _numbers(column: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Each cell as a whole number and as a float; null where it is none."""
    if column.dtype == pl.String:
        return parse(column, ".")
    real = column.cast(pl.Float64, strict=False)
    whole = column.cast(pl.Int64, strict=False) if column.dtype.is_integer() else pl.Series([None], dtype=pl.Int64)
    return whole if len(whole) == len(real) else whole.new_from_index(0, len(real)), real


def _least_float(cut: Fraction) -> float:
    """The least float that, written as a decimal, is not below the cut.

    >>> _least_float(Fraction("0.1")), _least_float(Fraction("0.10000000000000000001")) > 0.1
    (0.1, True)
    """
    try:
        near = float(cut)
    except OverflowError:
        return inf if cut > 0 else -inf
    return near if Fraction(str(near)) >= cut else nextafter(near, inf)


def grid(marginal: Marginal, budget: Budget, counts: NDArray[np.int64]) -> pl.DataFrame:
    """A published table: every combination of bins with its count."""
    labels = [pl.Series(name, budget.labels(name)) for name in marginal.by]
    index = np.unravel_index(np.arange(len(counts)), [len(label) for label in labels])
    columns = [label.gather(places) for label, places in zip(labels, index, strict=True)]
    return pl.DataFrame([*columns, pl.Series("count", counts)])


def exact_text(value: Fraction) -> str:
    """A spending as people wrote it: a decimal where it is one."""
    text = f"{float(value):g}"
    return text if Fraction(text) == value else str(value)
