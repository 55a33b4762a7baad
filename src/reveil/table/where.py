"""Some rows of a table: those of one period, ward or country. Never those of a sensitive value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from reveil.base.errors import Fault, InputError, stop_if
from reveil.base.text import plain_text
from reveil.base.words import some
from reveil.table.cells import texts

if TYPE_CHECKING:
    from reveil.policy.policy import Publication

Where = Mapping[str, object]  # column -> a value, or several
SHOWN = 6  # values of a column that a refusal lists


def rows_where(frame: pl.DataFrame, where: Where | None, policy: Publication) -> pl.DataFrame:
    """The rows that have the stated values, compared as texts; every column by which rows cannot be chosen is a fault.

    >>> from reveil.policy.policy import load_policy
    >>> policy = load_policy({"columns": {"year": "drop", "age": "quasi"}, "guarantee": {"k": 2}})
    >>> panel = pl.DataFrame({"year": [1985, 1986, 1986], "age": [30, 31, 52]})
    >>> rows_where(panel, {"year": 1986}, policy)["age"].to_list()
    [31, 52]
    """
    if not where:
        return frame
    chosen = RowsWhere(where, policy)
    found = chosen.of(frame)
    chosen.insist()
    return found


class RowsWhere:
    """The same for a table that comes in blocks: whether any row has the values is known after the last of them."""

    def __init__(self, where: Where | None, policy: Publication) -> None:
        self.where, self.policy = dict(where or {}), policy
        self.values = {column: _several(wanted) for column, wanted in self.where.items()}
        self.others: dict[str, pl.DataFrame] = {}  # column -> value, count: as long as no row had a wanted value
        self.found: set[str] = set()

    def of(self, block: pl.DataFrame) -> pl.DataFrame:
        """The wanted rows of a block."""
        stop_if([fault for column in self.where for fault in _faults(block, column, self.policy)])
        for column, wanted in self.values.items():
            known = texts(block[column])
            chosen = known.is_in([plain_text(value) for value in wanted])
            if chosen.any():
                self.found.add(column)
            elif column not in self.found:
                counts = known.drop_nulls().alias("value").value_counts()
                self.others[column] = _added(self.others.get(column), counts)
            block = block.filter(chosen)
        return block

    def __add__(self, later: RowsWhere) -> RowsWhere:
        both = RowsWhere(self.where, self.policy)
        both.found = self.found | later.found
        both.others = {**self.others, **{c: _added(self.others.get(c), counts) for c, counts in later.others.items()}}
        return both

    def insist(self) -> None:
        """Refuse values that no row has had."""
        for column, wanted in self.values.items():
            if column not in self.found:
                raise InputError(_nothing(column, self.others[column], wanted))


def _several(wanted: object) -> list[object]:
    return list(wanted) if isinstance(wanted, (list, tuple, set, frozenset)) else [wanted]


def _added(one: pl.DataFrame | None, other: pl.DataFrame) -> pl.DataFrame:
    return other if one is None else pl.concat([one, other]).group_by("value").agg(pl.col("count").sum())


def by_column(given: Sequence[str]) -> dict[str, list[str]]:
    """What a command line says: `column=value`, once or more.

    >>> by_column(["year=1985", "year=1986", "ward=A=1"])
    {'year': ['1985', '1986'], 'ward': ['A=1']}
    """
    where: dict[str, list[str]] = {}
    for text in given:
        column, equals, value = text.partition("=")
        if not equals or not column:
            message = f"{text!r} names no column and value"
            raise InputError(Fault("R138", "where", message, "write COLUMN=VALUE, such as year=1985"))
        where.setdefault(column, []).append(value)
    return where


def _faults(frame: pl.DataFrame, column: str, policy: Publication) -> list[Fault]:
    place = f"where {column!r}"
    if column not in frame.columns:
        return [Fault("R138", place, "the table has no such column", f"use one of: {', '.join(frame.columns)}")]
    if column in policy.columns and policy.columns[column].role == "sensitive":
        message = "is sensitive: who is in the release would tell who has the value"
        return [Fault("R138", place, message, "choose rows by another column, or publish everybody")]
    return []


def _nothing(column: str, counts: pl.DataFrame, wanted: Sequence[object]) -> Fault:
    known = counts.sort("count", "value", descending=[True, False])
    listed = [f"{value!r} ({some(rows, 'row')})" for value, rows in known.head(SHOWN).iter_rows()]
    more = f" and {known.height - SHOWN:,} more" if known.height > SHOWN else ""
    message = (
        f"no row has {' or '.join(repr(plain_text(value)) for value in wanted)}; there are {', '.join(listed)}{more}"
    )
    return Fault("R138", f"where {column!r}", message, "name one of these, as it is written in the table")
