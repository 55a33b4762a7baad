"""Whether a table was published before, or is older than the last one: both are asked about.

Of each table the ledger keeps a keyed hash of its rows, in any order, and of every column of days (dropped ones
included) three *late days*: one in two, one in ten and one in a hundred rows are of that day or later. A table is older
than the last one where every day of such a column is before a late day, and has so many rows that this would happen by
chance in less than one of a thousand tables with days like the last one's. People may leave and take the newest days
with them, as with days of birth; that all of so many left together does not happen by chance.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
import polars as pl

from reveil.base.doubts import doubt
from reveil.base.errors import Fault
from reveil.table.types import days_by_look

MEMBER = "table"  # of the facts of a release
SHARES = (2, 10, 100)  # one in so many rows is of a late day or later
UNLIKELY = 1 / 1000
SAMPLE = 5  # cells that tell most columns of other things


@dataclass(frozen=True)
class Trace:
    """What is kept of a table to know it again."""

    hash: str
    late: Mapping[str, tuple[date, ...]] = field(default_factory=dict)  # by column, one for each of `SHARES`

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Trace | None:
        """What a release recorded; earlier versions recorded nothing."""
        said = facts.get(MEMBER)
        if not isinstance(said, Mapping):
            return None
        return cls(said["hash"], {name: tuple(map(date.fromisoformat, days)) for name, days in said["late"].items()})

    def to_dict(self) -> dict[str, Any]:
        late = {name: [day.isoformat() for day in days] for name, days in self.late.items()}
        return {MEMBER: {"hash": self.hash, "late": late}}


def trace_of(prepared: pl.DataFrame, raw: pl.DataFrame, key: bytes) -> Trace:
    """The trace of a table: of its rows as they are used, and of its days as they came."""
    rows = prepared.hash_rows(seed=0).to_numpy().astype(np.uint64)
    both = np.array([rows.sum(dtype=np.uint64), np.bitwise_xor.reduce(rows)], dtype=np.uint64)
    said = f"{prepared.schema} {prepared.height}".encode() + both.tobytes()
    columns = [prepared[name] if name in prepared.columns else raw[name] for name in raw.columns]
    days = [(column.name, _days(column)) for column in columns]
    late = {name: _late(dates) for name, dates in days if dates is not None and len(dates)}
    return Trace(hmac.digest(key, said, "sha256").hex(), late)


def doubtful_table(raw: pl.DataFrame, now: Trace, before: Mapping[int, Trace], accept: Iterable[str]) -> list[Fault]:
    """A table that was published already, or is older than the last one; without what is accepted."""
    same = [number for number, trace in before.items() if trace.hash == now.hash]
    if same:
        message = f"is the same, row by row, as that of release {same[-1]}"
        fault = doubt("same-table", "table", message, "check that it is the new one", raw.height)
        return [] if "same-table" in accept else [fault]
    if not before or "older-table" in accept:
        return []
    last = max(before)
    faults = [_older(raw[name], days, last) for name, days in before[last].late.items() if name in raw.columns]
    return [fault for fault in faults if fault is not None]


def moving_columns(now: Trace, before: Mapping[int, Trace], columns: Iterable[str]) -> list[str]:
    """Which of these columns are days that are later for the table as a whole than in the last release.

    Half of the rows now are of a day, or later, that at most one in a hundred rows of the last release had reached.
    """
    if not before:
        return []
    last = before[max(before)].late
    both = [name for name in columns if name in now.late and name in last]
    return [name for name in both if now.late[name][0] >= last[name][-1]]


def _older(column: pl.Series, late: tuple[date, ...], last: int) -> Fault | None:
    """What a column of days says against the table: all of them before a late day of the last release."""
    days = _days(column)
    newest = None if days is None or days.is_empty() else days.max()
    if days is None or not isinstance(newest, date):
        return None
    for share, day in zip(SHARES, late, strict=True):
        if newest < day and (1 - 1 / share) ** len(days) < UNLIKELY:
            message = f"ends with {newest}, and in release {last} one in {share} rows is of {day} or later"
            remedy = "check that this table is newer than the last one"
            return doubt("older-table", f"column {column.name!r}", message, remedy)
    return None


def _days(column: pl.Series) -> pl.Series | None:
    """The days of a column that holds nothing else; None where it holds other things."""
    if column.dtype in (pl.Date, pl.Datetime):
        return column.dt.date().drop_nulls()
    if column.dtype != pl.String or days_by_look(column.head(SAMPLE).drop_nulls()).null_count():
        return None
    dates = days_by_look(column.drop_nulls())
    return None if dates.null_count() else dates


def _late(days: pl.Series) -> tuple[date, ...]:
    ordered = days.sort(descending=True)
    return tuple(ordered[-(-len(ordered) // share) - 1] for share in SHARES)
