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
    stop_if([fault for column in where for fault in _faults(frame, column, policy)])
    for column, wanted in where.items():
        values = list(wanted) if isinstance(wanted, (list, tuple, set, frozenset)) else [wanted]
        found = frame.filter(texts(frame[column]).is_in([plain_text(value) for value in values]))
        if found.is_empty():
            raise InputError(_nothing(frame[column], values))
        frame = found
    return frame


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


def _nothing(column: pl.Series, wanted: Sequence[object]) -> Fault:
    known = texts(column).drop_nulls().value_counts(sort=True).sort("count", column.name, descending=[True, False])
    listed = [f"{value!r} ({some(rows, 'row')})" for value, rows in known.head(SHOWN).iter_rows()]
    more = f" and {known.height - SHOWN:,} more" if known.height > SHOWN else ""
    message = (
        f"no row has {' or '.join(repr(plain_text(value)) for value in wanted)}; there are {', '.join(listed)}{more}"
    )
    return Fault("R138", f"where {column.name!r}", message, "name one of these, as it is written in the table")
