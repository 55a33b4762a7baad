"""A table and a policy brought together: every fault of the table at once, or a frame as the policy wants it.

After `prepare`, columns have one of four types: Int64, Float64, Date or String; missing values are nulls everywhere.
"""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Mapping

import numpy as np
import polars as pl

from reveil.base.errors import Fault, brief, stop_if
from reveil.base.words import some
from reveil.policy.policy import Column, ColumnType, DateOrder, Policy, Publication
from reveil.table.dates import read_days
from reveil.table.read import read_table
from reveil.table.text_files import ReadOptions, about_thousands

RESERVED = ("group", "person", "release")  # what the columns of a series' releases and of its memory are called
TOO_FEW = 20  # rows from which on a column of different values tells that it names rows
PLAIN = (pl.String, pl.Boolean, pl.Date, pl.Datetime)  # besides numbers: what a column may hold
SHOWN = 4  # row numbers in a refusal


def options(policy: Publication) -> ReadOptions:
    """How the policy wants its tables read."""
    wanted = policy.input
    return ReadOptions(wanted.delimiter, wanted.encoding, wanted.decimal, wanted.nulls, wanted.query, wanted.sheet)


def prepare(
    frame: pl.DataFrame,
    policy: Publication,
    *,
    series: bool = False,
    types: Mapping[str, ColumnType] | None = None,
    once: bool = True,
) -> pl.DataFrame:
    """The columns that the policy names, in its order and of its types, without the dropped ones.

    `types` are those that columns had in earlier releases: where the policy leaves the type open, they keep it.
    `once`: a person with more than one row is a fault.

    >>> from reveil.policy.policy import load_policy
    >>> policy = load_policy({"columns": {"age": "quasi", "note": "drop"}, "guarantee": {"k": 2}})
    >>> prepare(pl.DataFrame({"note": ["x", "y"], "age": [30, 31]}), policy).columns
    ['age']
    """
    faults = [*_column_faults(frame, policy, series), *_row_faults(frame)]
    columns = []
    for name, spec in policy.columns.items():
        if name in frame.columns and spec.role != "drop":
            column = _typed(frame[name], spec, faults, policy.input.dates, (types or {}).get(name))
            faults += _identifier_faults(column, once) if spec.role == "identifier" else _missing_faults(column, spec)
            faults += _telling_faults(column) if policy.promises_series and spec.role == "insensitive" else []
            columns.append(column)
    stop_if(faults)
    return pl.DataFrame(columns)


def first_rows(wrong: pl.Series) -> tuple[int, ...]:
    """The numbers of the first rows for which this is true, as refusals name them: 1 is the first below the header."""
    return tuple((wrong.arg_true().head(SHOWN) + 1).to_list())


def _column_faults(frame: pl.DataFrame, policy: Publication, series: bool) -> list[Fault]:
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
    if series and policy.identifier is None:
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
    if frame.height:
        return []
    return [Fault("R212", "table", "has no rows", "check that the right file was given", 0)]


def _identifier_faults(column: pl.Series, once: bool) -> list[Fault]:
    faults = []
    if column.null_count():
        remedy = "fill the identifier in, or remove these rows"
        rows, places = column.null_count(), first_rows(column.is_null())
        faults.append(Fault("R213", f"identifier {column.name!r}", "is missing", remedy, rows, places))
    known = column.drop_nulls()
    hashes = np.sort(known.hash().to_numpy())  # equal values have equal hashes, and hashes sort quickly
    if once and (hashes[1:] == hashes[:-1]).any() and known.n_unique() < known.len():
        again = column.is_duplicated() & column.is_not_null()
        message = f"{some(column.filter(again).n_unique(), 'person has', 'people have')} more than one row"
        remedy = "keep one row per person and release, for instance the latest"
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


def _missing_faults(column: pl.Series, spec: Column) -> list[Fault]:
    if spec.missing == "category" or not column.null_count():
        return []
    remedy = 'fill the values in, or set missing = "category"'
    message = "has missing values, which the policy refuses"
    places = first_rows(column.is_null())
    return [Fault("R215", f"column {column.name!r}", message, remedy, column.null_count(), places)]


def _typed(
    column: pl.Series, spec: Column, faults: list[Fault], order: DateOrder | None, before: ColumnType | None = None
) -> pl.Series:
    """The column as the policy wants it; what does not convert is a fault."""
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if not column.dtype.is_numeric() and column.dtype not in PLAIN:
        remedy = "turn it into numbers, dates or text before"
        faults.append(
            Fault("R221", f"column {column.name!r}", f"holds values of type {column.dtype}", remedy, column.len())
        )
        return pl.int_range(column.len(), eager=True).cast(pl.String).alias(column.name)
    if column.dtype == pl.String and (empty := column == "").any():
        column = column.set(empty, None)  # files cannot tell an empty text from a missing one
    wanted = spec.type if spec.type != "auto" else before or natural_type(column, spec)
    if wanted == "number" and spec.hierarchy is None and spec.role != "identifier":
        return _numbers(column, faults)
    if wanted == "date" and spec.hierarchy is None:
        return _dates(column, order, faults)
    return _texts(column)


def natural_type(column: pl.Series, spec: Column) -> ColumnType:
    """What a column is where the policy leaves it open: it follows from how it is generalised, or from the table."""
    if spec.hierarchy is not None or spec.prefixes is not None or spec.order is not None:
        return "category"
    if spec.widths is not None or spec.cuts is not None:
        return "number"
    # The time of day is generalised away in a quasi-identifier; elsewhere values are published as they are.
    if spec.levels is not None or column.dtype == pl.Date or (column.dtype == pl.Datetime and spec.role == "quasi"):
        return "date"
    return "number" if column.dtype.is_numeric() else "category"


def _texts(column: pl.Series) -> pl.Series:
    """Text as people write it: true and false, whole numbers without a point."""
    if column.dtype == pl.Boolean:
        return column.replace_strict({True: "true", False: "false"}, return_dtype=pl.String)
    if column.dtype.is_float():
        column = column.fill_nan(None)
        if (column == column.round()).all() and (column.abs() < 2**53).all():
            column = column.cast(pl.Int64)
    return column.cast(pl.String)


def _numbers(column: pl.Series, faults: list[Fault]) -> pl.Series:
    if column.dtype.is_integer() or column.dtype == pl.String:
        whole = column.cast(pl.Int64, strict=False)
        if whole.null_count() == column.null_count():
            return whole
        if column.dtype.is_integer():
            faults += _conversion_faults(column, whole, "number of 64 bits")
            return whole
    found = column.cast(pl.Float64, strict=False)
    wanted = "number"
    if column.dtype == pl.String:
        found = found.fill_nan(None)  # whether the text NaN means missing is for [input] nulls to say
        long = (found.abs() >= 2**53) & column.str.contains(r"^[+-]?[0-9]+$")  # a float would have other digits
        found, wanted = found.set(long, None), "number of 64 bits" if long.any() else wanted
    faults += _conversion_faults(column, found, wanted)
    found = found.fill_nan(None)
    endless = found.is_infinite().fill_null(False)
    if endless.any():
        where, rows = f"column {column.name!r}", int(endless.sum())
        faults.append(Fault("R218", where, "has infinite values", "replace them", rows, first_rows(endless)))
    return found


def _dates(column: pl.Series, order: DateOrder | None, faults: list[Fault]) -> pl.Series:
    if column.dtype in (pl.Date, pl.Datetime):
        found = column.dt.date()  # as a clock shows it where the table was made; a cast would tell the day in UTC
        found = found.set(~found.is_between(datetime.date.min, datetime.date.max), None)
        faults += _conversion_faults(column, found, "date")
        return found
    found, way, other = read_days(column.cast(pl.String), order)
    if other is not None:
        shown = next(text for text, day in zip(column, found, strict=True) if day is not None and day.day != day.month)
        message = f"{brief(shown)} and all others could be {way} or {other}"
        remedy = 'set dates = "day-first" or "month-first" under [input], or write them as yyyy-mm-dd'
        faults.append(Fault("R218", f"column {column.name!r}", message, remedy, column.len() - column.null_count()))
        return found
    faults += _conversion_faults(column, found, f"date ({way})")
    return found


def _conversion_faults(column: pl.Series, found: pl.Series, wanted: str) -> list[Fault]:
    wrong = found.is_null() & column.is_not_null()
    lost = column.filter(wrong)
    if lost.is_empty():
        return []
    shown = ", ".join(brief(value) for value in lost.unique(maintain_order=True).head(5).cast(pl.String))
    many = lost.n_unique()
    message = f"{some(many, 'value is', 'values are')} not a {wanted}: {shown}{', ...' if many > 5 else ''}"
    remedy = "correct them, or name them under [input] nulls if they mean missing"
    remedy += "; dates are best written as yyyy-mm-dd" if "date" in wanted else '; or set type = "category"'
    if "number" in wanted and (advice := about_thousands(lost.cast(pl.String))):
        remedy = f"{advice}; {remedy}"
    return [Fault("R218", f"column {column.name!r}", message, remedy, lost.len(), first_rows(wrong))]


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
    faults: list[Fault] = []
    columns = []
    for name in policy.named("quasi"):
        if name not in frame.columns:
            message = f"is missing from the population table {policy.guarantee.population}"
            faults.append(Fault("R210", f"column {name!r}", message, "add it: every quasi-identifier is needed"))
        else:
            columns.append(_typed(frame[name], policy.columns[name], faults, policy.input.dates))
    stop_if(faults)
    return pl.DataFrame(columns)
