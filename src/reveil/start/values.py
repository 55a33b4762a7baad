"""The values of a column in an order, for a hierarchy of them."""

from __future__ import annotations

from typing import Any

import polars as pl

from reveil.base.errors import Fault, InputError, brief
from reveil.table.cells import texts
from reveil.table.read import declares_types, read_table
from reveil.table.types import looked


def listed(source: Any, column: str, stated: str | None, *, frequent: bool) -> list[str]:
    """The different values of a column, as texts; a missing value has a place in every hierarchy anyway.

    In the order that is `stated`; else the most frequent first, or by number, day or letter.

    >>> import polars as pl
    >>> listed(pl.DataFrame({"a": ["x", "y", "y", None]}), "a", None, frequent=True)
    ['y', 'x']
    """
    frame = read_table(source)
    if column not in frame.columns:
        names = ", ".join(map(repr, frame.columns))
        raise InputError(Fault("R210", f"column {column!r}", "is not in the table", f"use one of {names}"))
    # Values are those of a category, as they are written; what they look like only says how they are ordered.
    ordered = frame[column] if declares_types(source) else looked(frame.select(column), [column])[column]
    cells = pl.DataFrame({"value": texts(frame[column]), "order": ordered}).drop_nulls("value")
    counted = cells.group_by("value").agg(pl.len().alias("rows"), pl.col("order").first()).sort("order", "value")
    counts = counted.sort("rows", descending=True, maintain_order=True) if frequent else counted
    known = counts["value"].to_list()
    if stated is None:
        return known
    given = [value.strip() for value in stated.split(",")]
    if strange := [value for value in known if value not in given]:
        message = f"does not name {len(strange)} of the column's values: {', '.join(map(brief, strange[:5]))}"
        raise InputError(Fault("R305", "--values", message, "add them in their place", len(strange)))
    return given
