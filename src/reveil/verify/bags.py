"""Two tables of a series whose people have several rows: people with all their rows, and values in numbered bundles.

A bundle is read as one value, the *bag* of all it holds, and the rows of a person as one record, so that the judges of
series see people. Everybody of a group shows as many rows as its bundles have values, because that number may be known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import polars as pl

from reveil.base.bags import item_of, joined, rows_in, values_of
from reveil.base.words import some
from reveil.hierarchies.tree import Hierarchy
from reveil.policy.policy import Policy
from reveil.published.format import BUNDLE, COUNT, GROUP
from reveil.verify.bundles import Bundles, bundle_findings
from reveil.verify.judges.contract import View

ITEM, ROWS = "\0item", "\0rows"
Protects = Callable[[object], bool]


def bags_of(stated: pl.DataFrame, column: str) -> pl.DataFrame:
    """Group and bag of each bundle; a ValueError where bundles are numbered in another way than by what they hold."""
    distinct = stated[column].unique()
    items = pl.DataFrame({column: distinct, ITEM: [item_of(value) for value in distinct.to_list()]})
    items = items.cast({ITEM: pl.String})
    each = stated.join(items, on=column, how="left", nulls_equal=True)
    each = each.select(GROUP, BUNDLE, ITEM, pl.int_ranges(COUNT).alias(COUNT)).explode(COUNT)
    bags = each.group_by(GROUP, BUNDLE).agg(pl.col(ITEM).sort()).sort(GROUP, BUNDLE)
    shown = pl.DataFrame([bags[GROUP], bags[BUNDLE], pl.Series(column, map(joined, bags[ITEM].to_list()), pl.String)])
    place = shown.sort(GROUP, column).with_columns((pl.int_range(pl.len()).over(GROUP) + 1).alias(BUNDLE))
    if not shown.equals(place.select(shown.columns).cast(shown.schema)):
        raise ValueError(f"bundles of {column!r} are not numbered from 1 in each group, in the order of what they hold")
    return shown.select(GROUP, column)


def one_row_each(people: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """One record of each person: their group, and in each column the cells of all their rows, in one order for all."""
    assert policy.bundle is not None
    names = list(policy.named("quasi"))
    ordered = people.select(GROUP, policy.bundle, pl.col(names).cast(pl.String)).sort(names, nulls_last=False)
    cells = [pl.col(name).fill_null("\0").str.join("\n") for name in names]
    return ordered.group_by(policy.bundle, maintain_order=True).agg(pl.col(GROUP).first(), *cells).drop(policy.bundle)


def bag_findings(
    people: pl.DataFrame, bags: pl.DataFrame, said: Bundles | None, policy: Policy, stated: Mapping[str, Hierarchy]
) -> list[tuple[str, bool, str]]:
    """What was found of people's rows and of bundles: a name, whether it is as it must be, and the finding."""
    (column,), bundle = policy.named("sensitive"), policy.bundle
    assert bundle is not None
    torn = people.group_by(bundle).agg(pl.col(GROUP).n_unique().alias(ROWS)).filter(pl.col(ROWS) > 1).height
    sizes = people.group_by(GROUP, bundle).len(ROWS).select(GROUP, pl.col(ROWS).cast(pl.Int64))
    held = pl.DataFrame([bags[GROUP], pl.Series(ROWS, [rows_in(bag) for bag in bags[column]], pl.Int64)])
    kinds = pl.concat([sizes, held.select(GROUP, ROWS).cast(sizes.schema)])
    uneven = kinds.unique().group_by(GROUP).len(ROWS).filter(pl.col(ROWS) > 1).height
    who = f"{some(torn, policy.bundled[:-1], policy.bundled)} with rows in several groups"
    alike = f"{some(uneven, 'group')} in which people or bundles have different numbers of rows"
    return [
        (f"groups of {policy.bundled}", not torn, who),
        ("rows of each group", not uneven, alike),
        *bundle_findings(people, said, policy, stated),
    ]


def rows_and_invented(view: View, policy: Policy) -> tuple[int, int]:
    """How many rows all bundles have together, and those that are counterfeits."""
    (column,) = policy.named("sensitive")
    rows = np.array([rows_in(bag) for bag in view.sensitive[column]], dtype=np.int64)
    each = np.zeros(view.count, dtype=np.int64)
    each[view.classes] = rows  # the same for all of a group, or there is a finding
    return int(rows.sum()), int((each * view.counterfeits).sum())


def people_by_value(values: pl.Series, protects: Protects, *, bags: bool) -> list[list[int]]:
    """How many people have each protected value, in lists of values of which nobody has two."""
    if not bags:
        return [[rows for value, rows in values.value_counts().rows() if protects(value)]]
    having: dict[object, int] = {}
    for bag, people in values.value_counts().rows():
        for value in {item_of(one): one for one in values_of(bag)}.values():
            having[value] = having.get(value, 0) + people
    return [[people] for value, people in having.items() if protects(value)]


def largest_share(values: pl.Series, *, bags: bool) -> int:
    """How many people have the value that most of them have."""
    return max((max(one) for one in people_by_value(values, lambda _: True, bags=bags) if one), default=0)
