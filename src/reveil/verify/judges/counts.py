"""How often each sensitive value occurs in each class, and comparisons that never round.

Everything here is whole numbers. They are 64-bit where that is certain to be enough and Python integers
(arrays of dtype object) otherwise, so that no product can overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.verify.judges.contract import View

Whole = NDArray[Any]  # int64, or object (Python integers) where 64 bits might not do
LIMIT = 1 << 62


def wide(array: Whole, largest: int) -> Whole:
    """The array, as Python integers if a result as large as `largest` would not fit into 64 bits."""
    return array if largest < LIMIT else array.astype(object)


def top(array: Whole) -> int:
    """The largest number of an array, 0 for an empty one."""
    return int(array.max()) if len(array) else 0


@dataclass(frozen=True, eq=False)
class Counts:
    """One entry for each value of each class that occurs, sorted by class, then by value.

    Classes without rows are left out. Values are numbered in rising order, the missing value (null or NaN)
    first.
    """

    owner: Whole  # class of each entry, numbered 0.. without gaps
    value: Whole  # number of the value of each entry
    count: Whole  # rows of this class that have this value; never 0
    starts: NDArray[np.int64]  # first entry of each class
    classes: NDArray[np.int64]  # the number each class has in the view
    values: pl.Series  # the values themselves, by number
    overall: Whole | None = None  # rows of the whole table by value, where these classes are a part of it

    @property
    def sizes(self) -> Whole:
        return self.per_class(self.count)

    @property
    def rows(self) -> int:
        """Rows of the whole table."""
        return int((self.count if self.overall is None else self.overall).sum())

    @property
    def totals(self) -> Whole:
        """Rows of the whole table by value."""
        if self.overall is not None:
            return self.overall
        order = np.argsort(self.value, kind="stable")
        starts = np.searchsorted(self.value[order], np.arange(len(self.values)))
        return np.add.reduceat(self.count[order], starts) if len(order) else self.count

    @property
    def distinct(self) -> NDArray[np.int64]:
        """Number of different values of each class."""
        return np.diff(self.starts, append=len(self.owner))

    def per_class(self, entries: Whole) -> Whole:
        """The sum over the entries of each class."""
        return np.add.reduceat(entries, self.starts) if len(entries) else entries

    def most(self) -> Whole:
        """Rows of the most frequent value of each class."""
        return np.maximum.reduceat(self.count, self.starts) if len(self.count) else self.count

    def relabelled(self, numbers: NDArray[np.int64]) -> Counts:
        """The same counts with value i renumbered `numbers[i]` (a permutation)."""
        value = numbers[self.value]
        order = np.lexsort((value, self.owner))
        before = np.argsort(numbers)
        values, overall = self.values.gather(before), None if self.overall is None else self.overall[before]
        return Counts(self.owner, value[order], self.count[order], self.starts, self.classes, values, overall)


def count_values(view: View, column: str) -> Counts:
    """Count the values of a sensitive column in the classes of a release; a view is counted once for all judges."""
    if column not in view.counted:
        if view.totals is None:
            values, ranks = ranked(view.sensitive[column])
            view.counted[column] = _count(view.classes, ranks, values)
        else:
            view.counted[column] = _count_part(view, column, view.totals[column])
    counts: Counts = view.counted[column]
    return counts


def _count_part(view: View, column: str, totals: pl.DataFrame) -> Counts:
    """The classes of one part, whose values are numbered as those of the whole table."""
    values, ranks = ranked(totals["value"])
    overall = np.zeros(len(values), dtype=np.int64)
    np.add.at(overall, ranks, totals["rows"].to_numpy())
    counts = _count(view.classes, places(_without_nan(view.sensitive[column]), values), values)
    return replace(counts, overall=overall)


def _count(classes: NDArray[np.int64], ranks: NDArray[np.int64], values: pl.Series) -> Counts:
    width = max(1, len(values))
    keys, count = tally(classes * width + ranks)
    of_class = keys // width
    first = np.diff(of_class, prepend=-1) > 0
    starts = np.flatnonzero(first)
    owner = np.cumsum(first) - 1
    return Counts(owner, keys - of_class * width, count, starts, of_class[starts], values)


def tally(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different keys (none below 0), rising, and how often each occurs: by a table if that is small, or by sorting.

    >>> [part.tolist() for part in tally(np.array([7, 5, 7]))]
    [[5, 7], [1, 2]]
    """
    if not len(keys) or int(keys.max()) > 16 * len(keys) + 1024:
        distinct, times = np.unique(keys, return_counts=True)
        return distinct, times.astype(np.int64)
    table = np.bincount(keys)
    distinct = np.flatnonzero(table)
    return distinct, table[distinct]


def beyond(counts: Counts, classes: NDArray[np.int64], values: pl.Series) -> int:
    """How many of these values, each with its class (-1: none), are more than the class has of them.

    >>> view = View(np.array([0, 0, 1]), pl.DataFrame(), {"s": pl.Series(["a", "b", "a"])}, np.zeros(2, dtype=np.int64))
    >>> beyond(count_values(view, "s"), np.array([0, 0, 1]), pl.Series(["a", "a", "c"]))
    2
    """
    width, ranks = max(1, len(counts.values)), places(_without_nan(values), counts.values)
    known = (ranks >= 0) & (classes >= 0)
    held, times = tally(classes[known] * width + ranks[known])
    shown = counts.classes[counts.owner] * width + counts.value
    at = among(held, shown)
    there = np.append(counts.count, 0)[at]  # nothing where it is not among them
    return int(np.count_nonzero(~known) + np.maximum(times - there, 0).sum())


def ranked(values: pl.Series) -> tuple[pl.Series, NDArray[np.int64]]:
    """The distinct values in rising order and the place of each row's value among them; missing comes first.

    >>> distinct, ranks = ranked(pl.Series(["b", None, "a"]))
    >>> distinct.to_list(), ranks.tolist()
    ([None, 'a', 'b'], [2, 0, 1])
    """
    known = _without_nan(values)
    distinct = known.unique().drop_nulls().sort()
    if known.null_count():
        distinct = pl.concat([pl.Series(distinct.name, [None], dtype=distinct.dtype), distinct])
    return distinct, places(known, distinct)


def _without_nan(values: pl.Series) -> pl.Series:
    return values.fill_nan(None) if values.dtype.is_float() else values


def places(values: pl.Series, distinct: pl.Series) -> NDArray[np.int64]:
    """Where each value stands among different ones in rising order, the missing one first; -1 where it does not.

    >>> places(pl.Series([3, 1, None, 4]), pl.Series([None, 1, 3])).tolist()
    [2, 1, 0, -1]
    """
    missing = int(distinct.null_count() > 0)
    known = distinct.slice(missing)
    if len(known) and (values.dtype == pl.String or values.dtype.is_decimal()):  # NumPy has no decimals
        words = values.cast(known.dtype).cast(pl.String).cast(pl.Enum(known.cast(pl.String)), strict=False)
        codes = words.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
    elif len(known):
        keys = known.to_physical().to_numpy()
        codes = among(values.to_physical().fill_null(keys[0].item()).to_numpy(), keys)
    else:
        codes = np.full(len(values), -1, dtype=np.int64)
    if missing:
        codes = np.where(codes >= 0, codes + 1, -1)
    return np.where(values.is_null().to_numpy(), missing - 1, codes) if values.null_count() else codes


def among(wanted: NDArray[Any], keys: NDArray[Any]) -> NDArray[np.int64]:
    """Where each number stands among rising keys, -1 where it does not: by a table if that is small, or by bisection.

    >>> among(np.array([7, 5, 9]), np.array([5, 7])).tolist()
    [1, 0, -1]
    """
    if not len(keys):
        return np.full(len(wanted), -1, dtype=np.int64)
    low, high = keys[0], keys[-1]
    if keys.dtype.kind == wanted.dtype.kind == "i" and int(high) - int(low) <= 4 * len(wanted) + 1024:
        wanted, keys, low = wanted.astype(np.int64, copy=False), keys.astype(np.int64, copy=False), np.int64(low)
        table = np.full(int(high) - int(low) + 1, -1, dtype=np.int64)
        table[keys - low] = np.arange(len(keys))
        inside = (wanted >= low) & (wanted <= high)
        return table[wanted - low] if inside.all() else np.where(inside, table[np.where(inside, wanted - low, 0)], -1)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, at, -1)


def exceeds(numerators: Whole, denominators: Whole, bound: Fraction, *, or_equals: bool = False) -> NDArray[np.bool_]:
    """Whether each fraction is larger than the bound (or not smaller than it), decided exactly.

    >>> exceeds(np.array([1, 2]), np.array([3, 3]), Fraction(1, 3)).tolist()
    [False, True]
    """
    p, q = bound.numerator, bound.denominator
    largest = max(top(numerators) * q, top(denominators) * p)
    left, right = wide(numerators, largest) * q, wide(denominators, largest) * p
    return np.asarray(left >= right if or_equals else left > right, dtype=np.bool_)


def largest_ratio(numerators: Whole, denominators: Whole) -> tuple[Fraction, int]:
    """The largest of some fractions, exactly, and where it stands first.

    Floats only narrow the search: a quotient of two correctly rounded numbers is within 4 units of 1.2e-16 of
    the truth, so everything within 1e-14 of the largest quotient is compared exactly.
    """
    rough = numerators.astype(np.float64) / denominators.astype(np.float64)
    near = np.flatnonzero(rough >= rough.max() * (1 - 1e-14))
    pairs: dict[tuple[int, int], int] = {}
    for place in near.tolist():
        pairs.setdefault((int(numerators[place]), int(denominators[place])), place)
    best = max(pairs, key=lambda pair: Fraction(*pair))
    worst = Fraction(*best)
    return worst, min(place for pair, place in pairs.items() if Fraction(*pair) == worst)


def written(number: Fraction | float | int) -> str:
    """A number as a reader wants it: exact, with a decimal approximation beside a fraction.

    >>> written(Fraction(3)), written(Fraction(1, 5)), written(Fraction(1, 3)), written(2.5)
    ('3', '0.2', '1/3 (about 0.3333)', '2.5')
    """
    if isinstance(number, float):
        return f"{number:.6g}"
    exact = Fraction(number)
    if exact.denominator == 1:
        return str(exact.numerator)
    short = f"{float(exact):.4g}"
    return short if Fraction(short) == exact else f"{exact} (about {short})"


def listed(words: Sequence[object], limit: int = 5) -> str:
    """The first few of a list, for a message."""
    shown = ", ".join(repr(word) for word in words[:limit])
    return shown if len(words) <= limit else f"{shown} and {len(words) - limit} more"
