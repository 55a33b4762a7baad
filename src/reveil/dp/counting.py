"""True counts: one bounded contribution per person, put into stated bins."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, inf, nextafter
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.dp.count_policy import Budget, Counting, Marginal
from reveil.hierarchies.scales import date_label
from reveil.policy.policy import Column, ColumnType
from reveil.table.read import read_table
from reveil.table.roles import options, prepare


def read(table: Any, policy: Counting) -> pl.DataFrame:
    """The table with the kind of column that its bins are for; every fault at once."""
    kinds = {
        name: Column(role=spec.role, type=_kind(policy.dp, name, spec), missing=spec.missing)
        for name, spec in policy.columns.items()
    }
    typed = policy.model_copy(update={"columns": kinds})
    frame = prepare(read_table(table, options(policy)), typed, once=False)
    return frame.with_columns(_coarse(frame[name], policy.columns[name]) for name in policy.dp.bins)


def _kind(budget: Budget, name: str, spec: Column) -> ColumnType:
    if name not in budget.bins:
        return spec.type
    if spec.levels is not None:
        return "date"
    return "category" if isinstance(budget.bins[name][0], str) else "number"


def _coarse(column: pl.Series, spec: Column) -> pl.Series:
    """Values as their bins name them: the first characters of a code, the month of a day.

    >>> _coarse(pl.Series(["47677", "1"]), Column(role="quasi", prefixes=[3])).to_list()
    ['476', '1']
    """
    if spec.levels is not None:
        days = column.unique()
        names = [None if day is None else date_label(day, spec.levels[0]) for day in days]
        return column.replace_strict(days, names, return_dtype=pl.String)
    return column if spec.prefixes is None else column.str.slice(0, spec.prefixes[0])


def bound(frame: pl.DataFrame, identifier: str, contributions: int) -> tuple[pl.DataFrame, int]:
    """At most so many rows of each person, chosen at random; and how many rows were left out.

    >>> frame = pl.DataFrame({"who": ["a", "a", "b"], "ill": ["flu", "cold", "flu"]})
    >>> kept, lost = bound(frame, "who", 1)
    >>> sorted(kept["who"]), lost
    (['a', 'b'], 1)
    """
    mixed = frame[np.random.default_rng().permutation(frame.height)]
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
    """The bin of each row; other values and missing ones have bins of their own."""
    if isinstance(bins[0], str):
        known = column.is_in(list(bins))
        codes = column.set(~known.fill_null(False), None).cast(pl.Enum(bins)).to_physical().cast(pl.Int64)
        return codes.fill_null(pl.Series(np.where(column.is_null().to_numpy(), len(bins) + 1, len(bins)))).to_numpy()
    if column.dtype.is_integer():  # exactly: floats above 2^53 would merge numbers that differ
        most = np.iinfo(np.int64).max
        steps = [max(ceil(cut), -most - 1) for cut in bins if cut <= most]
        places = np.searchsorted(np.array(steps, dtype=np.int64), column.fill_null(0).to_numpy(), side="right")
        return np.where(column.is_null().to_numpy(), len(bins) + 1, places)
    ladder = np.array([_least_float(cut) for cut in bins])
    numbers = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
    places = np.searchsorted(ladder, numbers, side="right")
    return np.where(np.isnan(numbers), len(bins) + 1, places)


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
