"""Who was published where, over a whole series: what the judges of series with lasting values look at.

A *trail* puts the past and the release being judged into one set of arrays. Groups are numbered through, the
past first. The judges' own layout of the `History`, so that a mistake in the planner's is not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.arrays import I64, starts_of
from reveil.history.history import History
from reveil.verify.judges.contract import View


@dataclass(frozen=True, eq=False)
class Trail:
    """All publications of people up to and including the release that is judged."""

    person: I64  # one entry per person and release
    group: I64  # of each entry
    release: I64  # of each group
    rows: I64  # of each group, counterfeits included
    counterfeits: I64  # of each group
    value_group: I64  # one entry per group and value that it shows, sorted by both
    value: I64
    value_rows: I64
    now: int  # the first group of the release that is judged
    book: tuple[Any, ...] = ()  # the values by number

    @property
    def groups(self) -> int:
        return len(self.release)

    @property
    def when(self) -> I64:
        """The release of each entry."""
        return self.release[self.group]

    def distinct(self) -> I64:
        """How many different values each group shows."""
        return np.bincount(self.value_group, minlength=self.groups)

    def only(self, groups: NDArray[np.bool_]) -> Trail:
        """The same, with some of the groups only."""
        number = np.cumsum(groups) - 1
        entries, values = groups[self.group], groups[self.value_group]
        return Trail(
            self.person[entries],
            number[self.group[entries]],
            self.release[groups],
            self.rows[groups],
            self.counterfeits[groups],
            number[self.value_group[values]],
            self.value[values],
            self.value_rows[values],
            int(groups[: self.now].sum()),
            self.book,
        )

    def harmless(self, protects: Callable[[object], bool]) -> NDArray[np.bool_]:
        """Whether each entry of `value` is of a value for which nothing is promised."""
        return np.array([not protects(value) for value in self.book], dtype=bool)[self.value]

    @cached_property
    def signatures(self) -> I64:
        """A number for each group's set of values: equal sets, and only those, have equal numbers."""
        return self._numbered(self.value)

    @cached_property
    def multisets(self) -> I64:
        """The same with how often each value is shown."""
        return self._numbered(self.value * (int(self.value_rows.max(initial=0)) + 1) + self.value_rows)

    def _numbered(self, entries: I64) -> I64:
        """A number for each group's set of entries, which rise within a group."""
        sizes = self.distinct()
        starts = starts_of(sizes)
        numbers = np.full(self.groups, -1, dtype=np.int64)
        known = 0
        for size in np.unique(sizes[sizes > 0]).tolist():
            mine = np.flatnonzero(sizes == size)
            sets = np.ascontiguousarray(entries[starts[mine][:, None] + np.arange(size)])
            keys = sets.view(np.dtype((np.void, sets.dtype.itemsize * size))).ravel()
            distinct, index = np.unique(keys, return_inverse=True)
            numbers[mine] = known + index
            known += len(distinct)
        return numbers


def trail(view: View, history: History, column: str) -> Trail | None:
    """The trail of a series, or None where it is not known who is in which group of the release."""
    if view.members is None:
        return None
    base, past = _past(history, column)
    sizes = view.sizes()
    codes, book = _codes(view.sensitive[column], history.codebook.get(column, ()))
    width = int(codes.max(initial=0)) + 1
    keys, shown = np.unique(view.classes * width + codes, return_counts=True)
    release = int(history.head) + 1
    return Trail(
        person=np.concatenate([past.person, _ints(view.members["person"])]),
        group=np.concatenate([past.group, base + _ints(view.members["class"])]),
        release=np.concatenate([past.release, np.full(view.count, release, dtype=np.int64)]),
        rows=np.concatenate([past.rows, sizes]),
        counterfeits=np.concatenate([past.counterfeits, view.counterfeits.astype(np.int64)]),
        value_group=np.concatenate([past.value_group, base + keys // width]),
        value=np.concatenate([past.value, keys % width]),
        value_rows=np.concatenate([past.value_rows, shown.astype(np.int64)]),
        now=base,
        book=book,
    )


def _past(history: History, column: str) -> tuple[int, Trail]:
    if history.groups.is_empty():
        none = np.empty(0, dtype=np.int64)
        return 0, Trail(none, none, none, none, none, none, none, none, 0)
    groups = history.groups.sort("release", "group").with_row_index("number")
    first = groups.group_by("release").agg(pl.col("number").min().cast(pl.Int64).alias("first"))
    number = (pl.col("first") + pl.col("group")).alias("number")  # groups of a release are numbered from 0
    members = history.members.filter(pl.col("group") >= 0).select("person", "release", "group")
    members = members.join(first, on="release", how="left", maintain_order="left").with_columns(number)
    values = history.values.filter(pl.col("column") == column)
    values = values.join(first, on="release", how="left").with_columns(number).sort("number", "code")
    past = Trail(
        person=_ints(members["person"]),
        group=_ints(members["number"]),
        release=_ints(groups["release"]),
        rows=_ints(groups["rows"]),
        counterfeits=_ints(groups["counterfeits"]),
        value_group=_ints(values["number"]),
        value=_ints(values["code"]),
        value_rows=_ints(values["rows"]),
        now=groups.height,
    )
    return groups.height, past


def _ints(values: pl.Series) -> I64:
    return values.cast(pl.Int64).to_numpy()


def _codes(published: pl.Series, known: Sequence[Any]) -> tuple[I64, tuple[Any, ...]]:
    """The code of each published value, and the values by code; those that are new to the series get the next ones."""
    code = {_key(value): number for number, value in enumerate(known)}
    book, distinct = list(known), published.unique()
    numbers = [code.setdefault(_key(value), len(code)) for value in distinct.to_list()]
    book += [value for value, number in zip(distinct.to_list(), numbers, strict=True) if number >= len(known)]
    lookup = pl.DataFrame({"value": distinct, "code": numbers}, schema_overrides={"code": pl.Int64})
    shown = pl.DataFrame({"value": published})
    coded = shown.join(lookup, on="value", how="left", nulls_equal=True, maintain_order="left")
    return _ints(coded["code"]), tuple(book)


def _key(value: Any) -> Any:
    """A number is the same value whether it was read as 3 or as 3.0; dates and text go by their writing."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
