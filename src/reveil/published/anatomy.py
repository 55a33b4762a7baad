"""A release in two tables (anatomy): exact quasi-identifiers with a group, and how often each group has each value.

Nothing says which row of a group has which of its values. `pair` lays the two side by side for whoever counts by
group; the order of values within a group is arbitrary there and means nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from reveil.published.format import COUNT, GROUP


def pair(quasi: pl.DataFrame, values: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """One row per row of the first table, with as many values per group as the others state.

    >>> people = pl.DataFrame({"group": [2, 1, 2], "age": [30, 41, 35]})
    >>> pair(people, {"ill": pl.DataFrame({"group": [1, 2], "ill": ["flu", "ache"], "count": [1, 2]})}).rows()
    [(1, 41, 'flu'), (2, 30, 'ache'), (2, 35, 'ache')]
    """
    rows = quasi.sort(GROUP, maintain_order=True)
    for name, table in values.items():
        if table[COUNT].null_count() or (table[COUNT] < 1).any():
            raise ValueError(f"a count of {name!r} is not positive")
        if (table[COUNT] > rows.height).any() or table[COUNT].sum() != rows.height:  # before memory is taken for them
            raise ValueError(f"the groups of the two tables differ in size for {name!r}")
        spread = table.select(pl.all().repeat_by(COUNT)).explode(GROUP, name).sort(GROUP, maintain_order=True)
        if not spread[GROUP].cast(rows.schema[GROUP]).equals(rows[GROUP]):
            raise ValueError(f"the groups of the two tables differ in size for {name!r}")
        rows = rows.with_columns(spread[name])
    return rows


def count(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """How often each group has each value, from one row per person; sorted, so that no order tells anything."""
    return table.group_by(GROUP, name).len(COUNT).sort(GROUP, name, nulls_last=False).cast({COUNT: pl.Int64})
