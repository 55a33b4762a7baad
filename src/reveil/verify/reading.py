"""The verifier's own reading of a release: a second opinion also on what the published bytes say.

With `reveil.published.reader`, by which everybody else reads releases, it shares only the names of the format.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from reveil.policy.policy import Policy
from reveil.published.format import (
    APOSTROPHE,
    BUNDLE,
    COUNT,
    COUNTERFEITS,
    DATE,
    ESCAPED,
    FORMER,
    FORMULAS,
    GROUP,
    INTEGER,
    NUMBER,
    PACKAGE,
    PEOPLE,
    TABLE,
    TUPLES,
    VALUES,
    is_part,
    value_tables,
)
from reveil.table.read import read_table
from reveil.table.types import looked
from reveil.verify.bags import bags_of

MOST = 1_000  # values for each person that two tables may have; beyond it nobody made them so


@dataclass(frozen=True, eq=False)
class Reading:
    """The data package, the table and the counterfeit counts; or values row by row (with their group), and people.

    Where somebody has several rows, a value is the bag of all values of a bundle.
    """

    package: Mapping[str, Any]
    table: pl.DataFrame
    counterfeits: pl.DataFrame | None = None
    people: pl.DataFrame | None = None
    tuples: pl.DataFrame | None = None  # values of several columns side by side: group, each of them, count


def published_columns(policy: Policy) -> list[str]:
    names = [name for name, spec in policy.columns.items() if spec.published]
    return names if policy.bundle is None else [policy.bundle, *names]


def grouped(table: pl.DataFrame, policy: Policy) -> bool:
    """Whether the table carries numbers of groups, and not a column of the policy that has this name by chance."""
    return GROUP in table.columns and GROUP not in published_columns(policy)


def read_release(public: Path, policy: Policy) -> Reading:
    """The public files of a release, in the form that the policy publishes."""
    package = json.loads((public / PACKAGE).read_text(encoding="utf-8"))
    names = {resource["name"]: public / resource["path"] for resource in package["resources"]}
    if policy.method.two_tables:
        if former := [name for name in FORMER if name in names]:
            raise ValueError(f"{' and '.join(former)} are tables of an earlier version, now {PEOPLE} and {VALUES}")
        tables = {name: typed(read_published(path), package, name) for name, path in names.items()}
        return Reading(package, _spread(tables, policy), None, tables[PEOPLE], _beside(tables, policy))
    parts = [typed(read_published(path), package, name) for name, path in names.items() if is_part(name)]
    table = pl.concat(parts) if parts else typed(read_published(names[TABLE]), package)
    if COUNTERFEITS not in names:
        return Reading(package, table)
    return Reading(package, table, read_published(names[COUNTERFEITS]).select(pl.col(GROUP, COUNT).cast(pl.Int64)))


def read_published(path: Path) -> pl.DataFrame:
    """A published table as text cells; null is a missing value."""
    if path.suffix == ".parquet":
        return pl.read_parquet(path)
    table = pl.read_csv(path, infer_schema=False, null_values=[""])
    with path.open(encoding="utf-8", newline="") as file:
        table.columns = next(csv.reader(file))  # Polars leaves quotation marks doubled in names
    return table


def typed(table: pl.DataFrame, package: Mapping[str, Any], resource: str = TABLE) -> pl.DataFrame:
    """Cells as the data package declares them."""
    described = {r["name"]: r for r in package["resources"]}[resource]
    if ESCAPED in described:
        texts = [name for name, kind in table.schema.items() if kind == pl.String]
        table = table.with_columns(map(_plain_cells, texts)).rename(_plain)
    fields = described["schema"]["fields"]
    kinds = {field["name"]: field["type"] for field in fields if field["name"] in table.columns}
    days = [name for name, kind in kinds.items() if kind == DATE and table.schema[name] == pl.String]
    numbers = {INTEGER: pl.Int64, NUMBER: pl.Float64}
    return table.with_columns(pl.col(days).str.to_date("%Y-%m-%d")).cast(
        {name: numbers[kind] for name, kind in kinds.items() if kind in numbers}
    )


def _plain(name: str) -> str:
    """A name, without the apostrophe of something that begins like a formula."""
    rest = name.lstrip(APOSTROPHE)
    return name[1:] if name[:1] == APOSTROPHE and rest[:1] and rest[0] in FORMULAS else name


def _plain_cells(name: str) -> pl.Expr:
    """The cells of a column in the same way."""
    cell = pl.col(name)
    first = cell.str.strip_chars_start(APOSTROPHE).str.slice(0, 1)
    marked = cell.str.starts_with(APOSTROPHE) & first.is_in(list(FORMULAS))
    return pl.when(marked).then(cell.str.slice(1)).otherwise(cell).alias(name)


def _spread(tables: Mapping[str, pl.DataFrame], policy: Policy) -> pl.DataFrame:
    """Each value as often as its group has it, columns side by side; within a group any order will do."""
    most, spread = MOST * (tables[PEOPLE].height + 10), pl.DataFrame()
    for column, name in value_tables(policy.named("sensitive")).items():
        stated, names = tables[name], [GROUP, *([BUNDLE] if policy.bundled else []), column, COUNT]
        if stated.columns != names:
            raise ValueError(f"table {name!r} has other columns than {', '.join(names)}")
        if not (stated[COUNT] > 0).all() or stated[COUNT].null_count():
            raise ValueError(f"a count of {column!r} is not positive")
        if (stated[COUNT] > most).any() or stated[COUNT].sum() > most:  # before memory is taken for them
            raise ValueError(f"the counts of {column!r} are out of proportion to the people")
        if policy.bundled:
            return bags_of(stated, column)
        values = stated.select(GROUP, column, pl.int_ranges(COUNT).alias("\0each")).explode("\0each").sort(GROUP)
        if spread.width and not values[GROUP].equals(spread[GROUP]):
            raise ValueError(f"the groups of the tables of values differ in size for {column!r}")
        spread = spread.with_columns(values[column]) if spread.width else values.select(GROUP, column)
    return spread


def _beside(tables: Mapping[str, pl.DataFrame], policy: Policy) -> pl.DataFrame | None:
    """The table of values side by side, where the policy has one and nowhere else."""
    together, stated = policy.method.together, tables.get(TUPLES)
    if (stated is None) != (together is None):
        raise ValueError(f"table {TUPLES!r} is {'missing' if stated is None else 'not what the policy publishes'}")
    if stated is not None and (
        stated.columns != [GROUP, *(together or ()), COUNT] or not (stated[COUNT].fill_null(0) > 0).all()
    ):
        raise ValueError(f"table {TUPLES!r} has other columns than the policy says, or a count that is not positive")
    return stated


def read_others(published: Any, policy: Policy) -> pl.DataFrame:
    """A table that somebody has published. A file of a release has the types that its data package states.

    Files of others state no types, so that numbers among them are known by their look.
    """
    path = Path(published) if isinstance(published, str | Path) and "://" not in str(published) else None
    if path is not None and (path.parent / PACKAGE).is_file():
        package = json.loads((path.parent / PACKAGE).read_text(encoding="utf-8"))
        for resource in package["resources"]:
            if resource["path"] == path.name:
                return typed(read_published(path), package, resource["name"])
    table = read_table(published)
    texts = [name for name, spec in policy.columns.items() if spec.type == "category"]
    return looked(table, [name for name in table.columns if name not in texts])
