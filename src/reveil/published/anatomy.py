"""A release in two tables (anatomy): people with a group, and how often each group has each value.

Nothing says which person of a group has which of its values. A group may have more values than people: what it has
beyond them are counterfeits, which need no quasi-identifiers and are only counts.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from reveil.published.format import COUNT, GROUP


def counterfeits_of(people: pl.DataFrame, values: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """How many values each group has beyond its people; a ValueError where the tables do not fit together.

    >>> people = pl.DataFrame({"group": [2, 1, 2], "age": [30, 41, 35]})
    >>> shown = pl.DataFrame({"group": [1, 2, 2], "ill": ["flu", "ache", "flu"], "count": [1, 2, 1]})
    >>> counterfeits_of(people, {"ill": shown}).rows()
    [(1, 0), (2, 1)]
    """
    members = people.group_by(GROUP).len("\0people").sort(GROUP)
    stated: pl.DataFrame | None = None
    for name, table in values.items():
        if table[COUNT].null_count() or (table[COUNT] < 1).any():
            raise ValueError(f"a count of {name!r} is not positive")
        sizes = table.group_by(GROUP).agg(pl.col(COUNT).cast(pl.Int128).sum()).sort(GROUP)
        if not sizes[GROUP].cast(members.schema[GROUP]).equals(members[GROUP]):
            raise ValueError(f"people and values of {name!r} are not of the same groups")
        if (sizes[COUNT] < members["\0people"].cast(pl.Int128)).any():
            raise ValueError(f"a group has more people than values of {name!r}")
        if stated is not None and not stated[COUNT].equals(sizes[COUNT]):
            raise ValueError(f"groups have not as many values of {name!r} as of another column")
        stated = sizes
    if stated is None:
        raise ValueError("there is no table of values")
    beyond = (stated[COUNT] - members["\0people"].cast(pl.Int128)).cast(pl.Int64)
    return pl.DataFrame([members[GROUP], beyond])
