"""The type of every column, fixed before any cell is parsed, and cells parsed one by one under it.

It comes from the policy, or from what the series recorded at its first release. Only where neither says anything is it
decided from the table, once: all texts are numbers, all are days, or the column is a category. A column of which at
least half (of its cells, or of its different texts) are numbers or days, but not all, is refused: so one odd cell can
never turn everybody's numbers into texts, or back.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping

import polars as pl

from reveil.base.errors import Fault, brief
from reveil.base.words import some
from reveil.policy.column import Column, ColumnType, DateOrder
from reveil.table.cells import TYPED, texts
from reveil.table.dates import read_days
from reveil.table.numbers import EXACT, INTEGER, about_thousands, first_rows, mark_of, parse, plain

DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
PADDED = r"[.,][0-9]+0$"  # 250.00: as a number it is published as 250; a lone .0 is how programs write whole floats
ZERO = r"[.,][0-9]*0$"
LISTED = 5  # texts in a refusal
SAMPLE = 1_000


def comparable(column: pl.Series) -> tuple[pl.Series, list[Fault]]:
    """The column, if its values can be published; an empty text is a missing value, because files cannot tell."""
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if not column.dtype.is_numeric() and column.dtype not in TYPED:
        remedy = "turn it into numbers, dates or text before"
        message = f"holds values of type {column.dtype}"
        numbered = pl.int_range(column.len(), eager=True).cast(pl.String).alias(column.name)
        return numbered, [Fault("R221", f"column {column.name!r}", message, remedy, column.len())]
    if column.dtype == pl.String and (empty := column == "").any():
        return column.set(empty, None), []
    return column, []


def whole_numbers(column: pl.Series, spec: Column, before: ColumnType | None) -> pl.Series:
    """A column of texts that are whole numbers one and all, read at once: most columns need no further look.

    Where nothing says that they are numbers, they are only read so if they can be meant in no other way.
    """
    stated = stated_type(spec, before)
    if column.dtype != pl.String or stated not in (None, "number") or column.null_count() == column.len():
        return column
    for part in (column.head(SAMPLE), column):  # a first look at a few rows spares the others
        whole = part.cast(pl.Int64, strict=False)
        if whole.null_count() > part.null_count():
            return column
    zeros = column.str.starts_with("0").sum() == (column == "0").sum() and not column.str.starts_with("-0").any()
    return whole if stated == "number" or (zeros and not column.str.starts_with("+").any()) else column


def stated_type(spec: Column, before: ColumnType | None) -> ColumnType | None:
    """The type that is fixed without a look at the column."""
    if spec.role == "identifier" or spec.hierarchy is not None:
        return "category"
    return spec.type if spec.type != "auto" else _needed(spec) or before


def kind_of(column: pl.Series, spec: Column, before: ColumnType | None) -> tuple[ColumnType, list[Fault]]:
    """What the column holds: as the policy says, as recorded before, as its generalisation needs, or as it looks."""
    stated = stated_type(spec, before)
    return (stated, []) if stated is not None else _decided(column, spec)


def _needed(spec: Column) -> ColumnType | None:
    if spec.prefixes is not None or spec.order is not None:
        return "category"
    if any(way is not None for way in (spec.widths, spec.cuts, spec.bins, spec.bottom, spec.top)):
        return "number"
    return "date" if spec.levels is not None else None


def _decided(column: pl.Series, spec: Column) -> tuple[ColumnType, list[Fault]]:
    if column.dtype.is_numeric():
        return "number", []
    # The time of day is generalised away in a quasi-identifier; elsewhere values are published as they are.
    if column.dtype == pl.Date or (column.dtype == pl.Datetime and spec.role == "quasi"):
        return "date", []
    if column.dtype != pl.String:
        return "category", []
    counts = column.drop_nulls().value_counts(name="\0rows")
    values, rows = counts[column.name], counts["\0rows"]
    wanted: ColumnType
    for wanted, fits in (("number", plain(values)), ("date", days_by_look(values).is_not_null())):
        if len(values) and fits.all():
            codes = wanted == "number" and spec.role != "quasi"
            return wanted, _padded_faults(column, values) if codes else []
        if 2 * fits.sum() >= len(values) > 0 or 2 * int(rows.filter(fits).sum() or 0) >= int(rows.sum() or 0) > 0:
            odd = column.is_in(values.filter(~fits).implode()) & column.is_not_null()
            return "category", [_mixed(column, odd, wanted)]
    return "category", []


def decided_types(
    frame: pl.DataFrame, specs: Mapping[str, Column], before: Mapping[str, ColumnType]
) -> dict[str, ColumnType]:
    """The types that nothing but this table has settled, of a prepared table: people are told, and a series keeps them.

    >>> specs = {"age": Column(role="quasi"), "sex": Column(role="quasi")}
    >>> decided_types(pl.DataFrame({"age": [41], "sex": ["f"]}), specs, {})
    {'age': 'number', 'sex': 'category'}
    """
    open_specs = {
        name: spec
        for name, spec in specs.items()
        if name in frame.columns and spec.role != "identifier" and spec.type == "auto" and name not in before
    }
    decided = [n for n, spec in open_specs.items() if spec.hierarchy is None and _needed(spec) is None]
    return {name: held_type(frame[name]) for name in decided}


def held_type(column: pl.Series) -> ColumnType:
    """What a column of a prepared table holds."""
    if column.dtype.is_numeric():
        return "number"
    return "date" if column.dtype == pl.Date else "category"


def days_by_look(values: pl.Series) -> pl.Series:
    """Days written as 2024-02-27 and nothing else; null for all other texts."""
    days = values.set(~values.str.contains(DAY), None).str.to_date("%Y-%m-%d", strict=False)
    return days.set(~days.is_between(datetime.date.min, datetime.date.max), None)


def _mixed(column: pl.Series, odd: pl.Series, wanted: str) -> Fault:
    """Numbers or days but for some texts: nobody should find out from a release what was made of them."""
    lost = column.filter(odd).value_counts(sort=True, name="\0rows")
    names = lost[column.name].head(LISTED)
    shown = ", ".join(f"{brief(v)} ({some(n, 'row')})" for v, n in lost.head(LISTED).iter_rows())
    message = f"holds {wanted}s but for {some(lost.height, 'text')}: {shown}{', ...' if lost.height > LISTED else ''}"
    nulls = ", ".join(f'"{brief(name)[1:-1]}"' for name in names)
    remedy = (
        f'name them under [input] nulls = ["", {nulls}] if they mean missing, correct them, or set type = "category"'
        f' for this column if all its values are codes (type = "{wanted}" refuses other texts)'
    )
    if wanted == "number" and (advice := about_thousands(lost[column.name])):
        remedy = f"{advice}; {remedy}"
    return Fault("R227", f"column {column.name!r}", message, remedy, int(odd.sum()), first_rows(odd))


def _padded_faults(column: pl.Series, values: pl.Series) -> list[Fault]:
    """Numbers that are published as they are, and whose texts may be codes: 250.00, or 250.0 beside 250."""
    alike = parse(values.str.replace(",", ".", literal=True), ".").real.n_unique() < len(values)
    padded = column.str.contains(ZERO if alike else PADDED).fill_null(False)
    if not padded.any():
        return []
    shown = brief(column.filter(padded)[0])
    message = f"is published as it is, and {shown} would lose its zeros as a number"
    remedy = 'set type = "category" for codes (text as written), or type = "number" for amounts'
    return [Fault("R228", f"column {column.name!r}", message, remedy, int(padded.sum()), first_rows(padded))]


def numbers(column: pl.Series, decimal: str) -> tuple[pl.Series, list[Fault]]:
    """The column as numbers, each cell by itself; what is none is a fault."""
    if column.dtype.is_integer():
        whole = column.cast(pl.Int64, strict=False)
        return whole, conversion_faults(column, whole, "number of 64 bits")
    wanted = "number"
    if column.dtype == pl.String:
        whole, numbers = parse(column, decimal)
        if whole.null_count() == column.null_count():
            return whole, []
        long = (numbers.abs() >= EXACT) & column.str.contains(INTEGER)  # a float would have other digits
        numbers, wanted = numbers.set(long.fill_null(False), None), "number of 64 bits" if long.any() else wanted
    else:
        numbers = column.cast(pl.Float64, strict=False)
    faults = conversion_faults(column, numbers, wanted)
    numbers = numbers.fill_nan(None)
    endless = numbers.is_infinite().fill_null(False)
    if endless.any():
        where, rows = f"column {column.name!r}", int(endless.sum())
        faults.append(Fault("R218", where, "has infinite values", "replace them", rows, first_rows(endless)))
    return numbers, faults


def days(column: pl.Series, order: DateOrder | None) -> tuple[pl.Series, list[Fault]]:
    """The column as days, each cell by itself; what is none is a fault, and so is an order that nobody can tell."""
    if column.dtype in (pl.Date, pl.Datetime):
        days = column.dt.date()  # as a clock shows it where the table was made; a cast would tell the day in UTC
        days = days.set(~days.is_between(datetime.date.min, datetime.date.max), None)
        return days, conversion_faults(column, days, "date")
    days, way, other = read_days(texts(column), order)
    if other is not None:
        shown = next(text for text, day in zip(column, days, strict=True) if day is not None and day.day != day.month)
        message = f"{brief(shown)} and all others could be {way} or {other}, but for one at most"
        remedy = 'set dates = "day-first" or "month-first" under [input], or write them as yyyy-mm-dd'
        rows = column.len() - column.null_count()
        return days, [Fault("R218", f"column {column.name!r}", message, remedy, rows)]
    return days, conversion_faults(column, days, f"date ({way})")


def conversion_faults(column: pl.Series, converted: pl.Series, wanted: str) -> list[Fault]:
    """What was lost in a conversion, with the texts, their rows and the ways out."""
    wrong = converted.is_null() & column.is_not_null()
    lost = column.filter(wrong)
    if lost.is_empty():
        return []
    shown = ", ".join(brief(value) for value in lost.unique(maintain_order=True).head(LISTED).cast(pl.String))
    many = lost.n_unique()
    message = f"{some(many, 'value is', 'values are')} not a {wanted}: {shown}{', ...' if many > LISTED else ''}"
    remedy = "correct them, or name them under [input] nulls if they mean missing"
    remedy += "; dates are best written as yyyy-mm-dd" if "date" in wanted else '; or set type = "category"'
    if "number" in wanted and (advice := about_thousands(lost.cast(pl.String))):
        remedy = f"{advice}; {remedy}"
    return [Fault("R218", f"column {column.name!r}", message, remedy, lost.len(), first_rows(wrong))]


def looked(frame: pl.DataFrame, names: list[str] | None = None) -> pl.DataFrame:
    """Text columns (those named) as numbers or days where every text is one: for tables that no policy describes.

    >>> looked(pl.DataFrame({"zip": ["02139", "10115"], "age": ["41", "29"]})).dtypes
    [String, Int64]
    """
    columns = [c for c in frame if c.dtype == pl.String and (names is None or c.name in names)]
    columns = [column for column in columns if column.null_count() < column.len()]
    numeric = [column for column in columns if plain(column.drop_nulls().unique()).all()]
    mark, unclear = mark_of(numeric, None)
    readings = [] if unclear else [numbers(column, mark) for column in numeric]
    read = {column.name: column for column, faults in readings if not faults}
    dated = {column.name: days_by_look(column) for column in columns if column.name not in read}
    read |= {day.name: day for day in dated.values() if day.null_count() == frame[day.name].null_count()}
    return frame.with_columns(read.values())
