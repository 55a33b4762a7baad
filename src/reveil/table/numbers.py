"""Numbers in text, cell by cell under a fixed decimal mark: what no other cell can change.

`08`, `+7` and `1e3` are numbers where the policy says that a column holds numbers. Where nothing is said, only plain
ones count as numbers: a postcode such as 02139 is a code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import polars as pl

from reveil.base.errors import Fault, brief

INTEGER = r"^-?(?:0|[1-9][0-9]*)$"
# An exponent needs a point or a sign: 1.5e3 and 1e-05 are numbers, 12E5 may well be a code.
PLAIN = r"^-?(?:(?:0|[1-9][0-9]*)?[.,][0-9]+(?:[eE][+-]?[0-9]+)?|(?:0|[1-9][0-9]*)(?:[eE][+-][0-9]+)?)$"
ANY = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"  # with a point
COMMA, POINT = r"^[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?$", r"^[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?$"
UNCLEAR = r"^[+-]?[1-9][0-9]{0,2},[0-9]{3}$"  # 1,234 is a number with three decimals, or has thousands
THOUSANDS = (  # beyond doubt: 1,234 alone may be a number with three decimals
    r"^-?[1-9][0-9]{0,2}(?:(?:\.[0-9]{3})+,[0-9]+|(?:,[0-9]{3})+\.[0-9]+|(?:\.[0-9]{3}){2,}|(?:,[0-9]{3}){2,}"
    r"|(?:[ '’\u00a0\u202f][0-9]{3})+[.,][0-9]+)$"
)
EXACT = 2**53  # from here on floats do not hold every whole number
SHOWN = 4  # row numbers in a refusal


class Parsed(NamedTuple):
    """What each text says: whole numbers of 64 bits exactly, any number as a float; null where it says none."""

    whole: pl.Series
    real: pl.Series


def first_rows(wrong: pl.Series) -> tuple[int, ...]:
    """The numbers of the first rows for which this is true, as refusals name them: 1 is the first below the header."""
    return tuple((wrong.arg_true().head(SHOWN) + 1).to_list())


def about_thousands(texts: pl.Series) -> str | None:
    """How to write numbers instead, where some have thousands separators. It shows no value: policies quote it.

    >>> about_thousands(pl.Series(["99,50", "1.250,00"]))
    'thousands separators are not read: write 8206,72 instead of 8.206,72'
    """
    grouped = texts.filter(texts.str.contains(THOUSANDS))
    if grouped.is_empty():
        return None
    mark = re.sub("[0-9-]", "", grouped[0])[0]
    decimal = "." if mark in ",'’" else ","
    return f"thousands separators are not read: write 8206{decimal}72 instead of 8{mark}206{decimal}72"


def parse(column: pl.Series, decimal: str) -> Parsed:
    """The numbers of a column of texts.

    >>> found = parse(pl.Series(["007", "2,5", "2.5", "old"]), ",")
    >>> found.whole.to_list(), found.real.to_list()
    ([7, None, None, None], [7.0, 2.5, None, None])
    """
    whole = column.cast(pl.Int64, strict=False)
    if whole.null_count() == column.null_count():
        return Parsed(whole, whole.cast(pl.Float64))
    text = pl.col("")
    pointed = pl.when(~text.str.contains(".", literal=True)).then(text.str.replace(",", ".", literal=True))
    said = pointed if decimal == "," else text
    frame = column.alias("").to_frame().select(said.alias(""))
    number = pl.when(text.str.contains(ANY)).then(text).cast(pl.Float64, strict=False)
    return Parsed(whole, frame.select(number).to_series().alias(column.name))


def plain(values: pl.Series) -> pl.Series:
    """Which texts can only be meant as numbers, and can be held as such."""
    shaped = values.str.contains(PLAIN)
    parsed = parse(values.str.replace(",", ".", literal=True), ".")
    beyond = values.str.contains(INTEGER) & parsed.whole.is_null()
    return (shaped & parsed.real.is_finite().fill_null(False) & ~beyond).fill_null(False)


def mark_of(columns: Iterable[pl.Series], given: str | None) -> tuple[str, list[Fault]]:
    """The decimal mark of a table: as given, or as all its numbers have it; and where they do not agree.

    A point needs no witness. A comma needs one that has no other meaning: 1,234 may have thousands.

    >>> mark_of([pl.Series("a", ["1,5", "7"])], None), mark_of([pl.Series("a", ["1,5", "1.5"])], None)[1][0].rows
    ((',', []), 1)
    """
    if given is not None:
        return given, []
    marked = [(column, column.str.contains(COMMA), column.str.contains(POINT)) for column in columns]
    commas = [(column, rows) for column, rows, _ in marked if rows.any()]
    points = [(column, rows) for column, _, rows in marked if rows.any()]
    if not commas:
        return ".", []
    if points:
        fewer = min(commas, points, key=lambda written: sum(int(rows.sum() or 0) for _, rows in written))
        what = "has another decimal mark than other numbers of the table"
        return ".", _mark_faults(fewer, what, 'write them alike, or set decimal = "," (or ".") under [input]')
    if any((rows & ~column.str.contains(UNCLEAR)).any() for column, rows in commas):
        return ",", []
    what = "is a number with three decimals or one with thousands, and nothing in the table tells"
    return ",", _mark_faults(commas, what, 'set decimal = "," under [input], or write these numbers without a comma')


def _mark_faults(written: Sequence[tuple[pl.Series, pl.Series]], what: str, remedy: str) -> list[Fault]:
    return [
        Fault(
            "R218",
            f"column {column.name!r}",
            f"{brief(column.filter(rows)[0])} {what}",
            f'{remedy}; or set type = "category"',
            int(rows.sum()),
            first_rows(rows),
        )
        for column, rows in written
    ]
