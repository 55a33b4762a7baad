"""A table and a policy brought together: every fault of the table at once, or a frame as the policy wants it.

After `prepare`, columns have one of four types: Int64, Float64, Date or String; missing values are nulls everywhere.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import polars as pl

from reveil.base.errors import Fault, InputError, stop_if
from reveil.base.words import some
from reveil.policy.column import Column, ColumnType, DateOrder
from reveil.policy.policy import Policy, Publication
from reveil.table.bins import in_bins
from reveil.table.cells import texts
from reveil.table.doubts import NO_ROWS, doubtful_rows, without_index
from reveil.table.numbers import first_rows, mark_of
from reveil.table.options import ReadOptions
from reveil.table.read import declares_types, read_table
from reveil.table.types import comparable, days, kind_of, numbers, whole_numbers
from reveil.table.where import Where, rows_where

RESERVED = ("group", "person", "release")  # what the columns of a series' releases and of its memory are called
TOO_FEW = 20  # rows from which on a column of different values tells that it names rows


def options(policy: Publication, accept: Sequence[str] = ()) -> ReadOptions:
    """How the policy wants its tables read, and which doubts about them are accepted."""
    stated = [field.name for field in fields(ReadOptions) if field.name != "accept"]
    return ReadOptions(**{name: getattr(policy.input, name) for name in stated}, accept=tuple(accept))


def read_prepared(
    source: Any,
    policy: Publication,
    *,
    series: bool = False,
    types: Mapping[str, ColumnType] | None = None,
    accept: Sequence[str] = (),
    where: Where | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A table (or `where` says which rows of it) as it was read, and as `prepare` makes it; doubts and faults together,
    the likely cause first."""
    raw = without_index(read_table(source, options(policy, accept)), policy, accept)
    raw = rows_where(raw, where, policy)
    doubts = doubtful_rows(raw, policy, accept)
    try:
        frame = prepare(raw, policy, series=series, types=types, declared=declares_types(source))
    except InputError as error:
        raise InputError([*doubts, *error.faults]) from None
    stop_if(doubts)
    return raw, frame


def prepare(
    frame: pl.DataFrame,
    policy: Publication,
    *,
    series: bool = False,
    types: Mapping[str, ColumnType] | None = None,
    once: bool = True,
    declared: bool = True,
) -> pl.DataFrame:
    """The columns that the policy names, in its order and of its types, without the dropped ones.

    `types` are those that columns had in earlier releases: where the policy leaves the type open, they keep it.
    `once`: a person with more than one row is a fault. `declared`: the source says of texts that they are texts
    (`read.declares_types`), so that they are no numbers unless the policy says so.

    >>> from reveil.policy.policy import load_policy
    >>> policy = load_policy({"columns": {"age": "quasi", "note": "drop"}, "guarantee": {"k": 2}})
    >>> prepare(pl.DataFrame({"note": ["x", "y"], "age": [30, 31]}), policy).columns
    ['age']
    """
    faults = [*column_faults(frame, policy, series), *_row_faults(frame)]
    used = [name for name, spec in policy.columns.items() if name in frame.columns and spec.role != "drop"]
    columns, more = as_kinds([frame[name] for name in used], policy, types or {}, declared)
    faults += more
    many = isinstance(policy, Policy) and policy.people.rows == "many"
    for column in columns:
        spec = policy.columns[column.name]
        if spec.role in ("identifier", "household"):
            faults += _owner_faults(column, spec.role, once and spec.role == "identifier" and not many)
        else:
            faults += missing_faults(column, spec)
        faults += _telling_faults(column) if policy.promises_series and spec.role == "insensitive" else []
    stop_if(faults)
    return in_bins(pl.DataFrame(columns), policy)


def as_kinds(
    columns: Sequence[pl.Series], policy: Publication, types: Mapping[str, ColumnType], declared: bool
) -> tuple[list[pl.Series], list[Fault]]:
    """Columns of the types that the policy, the past or else their look gives them; and what does not fit its type.

    Types and the decimal mark are settled before any cell is parsed, and no cell can change them after.
    """
    usable = [comparable(column) for column in columns]
    faults = [fault for _, column_faults in usable for fault in column_faults]
    texts_by_source: dict[str, ColumnType] = {c.name: "category" for c in columns if declared and c.dtype == pl.String}
    types = {**texts_by_source, **types}
    plain = [whole_numbers(c, policy.columns[c.name], types.get(c.name)) for c, _ in usable]
    kinds: list[ColumnType] = []
    for column in plain:
        kind, column_faults = kind_of(column, policy.columns[column.name], types.get(column.name))
        kinds.append(kind)
        faults += column_faults
    written = [c for c, kind in zip(plain, kinds, strict=True) if kind == "number" and c.dtype == pl.String]
    mark, column_faults = mark_of(written, policy.input.decimal)
    typed = [_as_kind(c, kind, mark, policy.input.dates) for c, kind in zip(plain, kinds, strict=True)]
    # Where it is not known which mark is the decimal one, cells with the other are no faults of their own.
    lost = [] if column_faults else [fault for _, wrong in typed for fault in wrong]
    return [column for column, _ in typed], [*faults, *column_faults, *lost]


def _as_kind(column: pl.Series, kind: ColumnType, mark: str, order: DateOrder | None) -> tuple[pl.Series, list[Fault]]:
    if kind == "number":
        return numbers(column, mark)
    return days(column, order) if kind == "date" else (texts(column), [])


def column_faults(frame: pl.DataFrame, policy: Publication, series: bool) -> list[Fault]:
    """Columns that are in the table or in the policy only, or have a name that cannot be used."""
    faults = []
    for name in policy.columns:
        if name not in frame.columns:
            near = difflib.get_close_matches(name, frame.columns, n=1)
            hint = f"the table has {near[0]!r}; use that name" if near else "add it, or remove it from the policy"
            faults.append(Fault("R210", f"column {name!r}", "is in the policy but not in the table", hint))
    for name in frame.columns:
        if name not in policy.columns:
            remedy = 'give it a role in [columns]; "drop" leaves it out of the release'
            faults.append(Fault("R211", f"column {name!r}", "has no role in the policy", remedy, frame.height))
    if series and policy.followed is None:
        message = "no column has the role identifier, so the same person cannot be found again in a later release"
        remedy = (
            "give that column the role identifier (it is never published), or use `reveil anonymize` for one release"
        )
        faults.append(Fault("R216", "policy", message, remedy))
    faults += [
        Fault("R217", f"column {name!r}", "is a name that a series uses for itself", "rename the column in the table")
        for name, spec in policy.columns.items()
        if (series or policy.numbers_groups) and name in RESERVED and spec.role in ("quasi", "sensitive", "insensitive")
    ]
    faults += [
        Fault("R217", f"column {name!r}", "has a NUL character in its name", "rename the column in the table")
        for name in frame.columns
        if "\0" in name
    ]
    return faults


def _row_faults(frame: pl.DataFrame) -> list[Fault]:
    return [] if frame.height else [NO_ROWS]


def _owner_faults(column: pl.Series, role: str, once: bool) -> list[Fault]:
    faults = []
    if column.null_count():
        remedy = f"fill the {role} in, or remove these rows"
        rows, places = column.null_count(), first_rows(column.is_null())
        faults.append(Fault("R213", f"{role} {column.name!r}", "is missing", remedy, rows, places))
    known = column.drop_nulls()
    hashes = np.sort(known.hash().to_numpy())  # equal values have equal hashes, and hashes sort quickly
    if once and (hashes[1:] == hashes[:-1]).any() and known.n_unique() < known.len():
        again = column.is_duplicated() & column.is_not_null()
        message = f"{some(column.filter(again).n_unique(), 'person has', 'people have')} more than one row"
        remedy = (
            "keep one row per person and release, for instance the latest; of a panel one period (--where year=1985); "
            'or publish all rows of a person as one (people.rows = "many")'
        )
        where = f"identifier {column.name!r}"
        faults.append(Fault("R214", where, message, remedy, int(again.sum()), first_rows(again)))
    return faults


def _telling_faults(column: pl.Series) -> list[Fault]:
    """A column published as it is must not name its rows: they would be known again in the next release."""
    counts = column.drop_nulls().value_counts(name="rows")
    alone = int((counts["rows"] == 1).sum())
    if len(column) < TOO_FEW or 2 * alone <= len(column):
        return []
    message = (
        f"is to be published as it is, and {alone:,} of {some(len(column), 'row')} have a value that no other row has"
    )
    remedy = "make it a quasi-identifier, make it coarser, or drop it: rows could be followed from release to release"
    return [Fault("R226", f"column {column.name!r}", message, remedy, alone)]


def missing_faults(column: pl.Series, spec: Column) -> list[Fault]:
    """Missing values that the policy refuses."""
    if spec.missing == "category" or not column.null_count():
        return []
    return [missing_fault(column.name, column.null_count(), first_rows(column.is_null()))]


def missing_fault(name: str, rows: int, places: tuple[int, ...] = ()) -> Fault:
    remedy = 'fill the values in, or set missing = "category"'
    message = "has missing values, which the policy refuses"
    return Fault("R215", f"column {name!r}", message, remedy, rows, places)


def order_faults(frame: pl.DataFrame, policy: Policy) -> list[Fault]:
    """Sensitive text whose values cannot be put in the order that the promise counts on."""
    if not any(condition.needs_order for condition in policy.guarantee.conditions):
        return []
    texts = [name for name in policy.named("sensitive") if frame[name].dtype == pl.String]
    return [no_order(name) for name in texts if policy.columns[name].order is None]


def no_order(column: str) -> Fault:
    return Fault(
        "R412",
        f"column {column!r}",
        'distance = "ordered" needs values that have an order, and these are text',
        'state it (order = ["low", "middle", "high"]), or use distance = "equal" or "hierarchical"',
    )


def population(policy: Policy) -> pl.DataFrame | None:
    """The population table that the policy names, with the quasi-identifiers as the policy wants them."""
    if policy.guarantee.population is None:
        return None
    frame = read_table(str(policy.folder / policy.guarantee.population))
    missing = [name for name in policy.named("quasi") if name not in frame.columns]
    message = f"is missing from the population table {policy.guarantee.population}"
    remedy = "add it: every quasi-identifier is needed"
    faults = [Fault("R210", f"column {name!r}", message, remedy) for name in missing]
    known = [frame[name] for name in policy.named("quasi") if name in frame.columns]
    columns, more = as_kinds(known, policy, {}, declares_types(policy.guarantee.population))
    stop_if([*faults, *more])
    return pl.DataFrame(columns)
