"""Whether a table was published before, or is older than the last one: both are asked about.

Of each table the ledger keeps a keyed hash of its rows, in any order, and of every column of days (dropped ones
included) its *late day*: one in a hundred rows, and five at least, are of that day or later. A table is older than the
last one where every day of such a column is before the last one's late day. People may leave and take the newest days
with them, as with days of birth; that so many of the latest all left together does not happen by chance.
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
FEWEST, SHARE = 5, 100  # rows of the late days: five, and one in a hundred


@dataclass(frozen=True)
class Trace:
    """What is kept of a table to know it again."""

    hash: str
    late: Mapping[str, date] = field(default_factory=dict)  # by column

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Trace | None:
        """What a release recorded; earlier versions recorded nothing."""
        said = facts.get(MEMBER)
        if not isinstance(said, Mapping):
            return None
        return cls(said["hash"], {name: date.fromisoformat(day) for name, day in said["late"].items()})

    def to_dict(self) -> dict[str, Any]:
        return {MEMBER: {"hash": self.hash, "late": {name: day.isoformat() for name, day in self.late.items()}}}


def trace_of(prepared: pl.DataFrame, raw: pl.DataFrame, key: bytes) -> Trace:
    """The trace of a table: of its rows as they are used, and of its days as they came."""
    rows = prepared.hash_rows(seed=0).to_numpy().astype(np.uint64)
    both = np.array([rows.sum(dtype=np.uint64), np.bitwise_xor.reduce(rows)], dtype=np.uint64)
    said = f"{prepared.schema} {prepared.height}".encode() + both.tobytes()
    columns = [prepared[name] if name in prepared.columns else raw[name] for name in raw.columns]
    days = [(column.name, _days(column)) for column in columns]
    late = {name: _late(found) for name, found in days if found is not None and len(found) >= FEWEST}
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
    return [
        doubt(
            "older-table",
            f"column {name!r}",
            f"ends with {newest}, and in release {last} five rows and one in a hundred are of {day} or later",
            "check that this table is newer than the last one",
        )
        for name, day in before[last].late.items()
        if name in raw.columns and (newest := _newest(raw[name])) is not None and newest < day
    ]


def _newest(column: pl.Series) -> date | None:
    days = _days(column)
    found = None if days is None or days.is_empty() else days.max()
    return found if isinstance(found, date) else None


def _days(column: pl.Series) -> pl.Series | None:
    """The days of a column that holds nothing else; None where it holds other things."""
    if column.dtype in (pl.Date, pl.Datetime):
        return column.dt.date().drop_nulls()
    if column.dtype != pl.String or days_by_look(column.head(FEWEST).drop_nulls()).null_count():
        return None
    found = days_by_look(column.drop_nulls())
    return None if found.null_count() else found


def _late(days: pl.Series) -> date:
    rows = max(FEWEST, -(-len(days) // SHARE))
    found = days.top_k(rows).min()
    assert isinstance(found, date)
    return found
