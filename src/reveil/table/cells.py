"""Cells of a column as texts, each by itself: what one cell says never depends on the others.

This is `reveil.base.text.plain_text` for whole columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import polars as pl

from reveil.base.text import number_text, plain_text

TYPED = (pl.Boolean, pl.Date, pl.Datetime, pl.String)  # besides numbers: what a column may hold


def texts(column: pl.Series) -> pl.Series:
    """Every cell as its plain text; NaN is missing.

    >>> texts(pl.Series([7.0, 100.1, 1e20, None])).to_list()
    ['7', '100.1', '100000000000000000000', None]
    >>> texts(pl.Series([Decimal("7.00"), Decimal("2.50")])).to_list()
    ['7', '2.5']
    """
    kind = column.dtype
    if kind == pl.Boolean:
        return column.replace_strict({True: "true", False: "false"}, return_dtype=pl.String)
    if kind.is_float():
        return _floats(column.fill_nan(None).cast(pl.String))
    if kind == pl.Object:
        return text_series(column.name, column)
    if kind == pl.Datetime:
        return _times(column)
    written = column.cast(pl.String)
    return _unpadded(written) if kind.is_decimal() else written


def text_series(name: str, values: Iterable[Any]) -> pl.Series:
    """Texts of values of any types, such as labels amid codes that have none."""
    return pl.Series(name, [plain_text(value) or None for value in values], pl.String)


def _unpadded(written: pl.Series) -> pl.Series:
    """Numbers without zeros at the end of their fraction."""
    text = pl.col("")
    short = text.str.strip_chars_end("0").str.strip_chars_end(".")
    plain = pl.when(text.str.contains(".", literal=True)).then(short).otherwise(text)
    unpadded = written.alias("").to_frame().select(plain).to_series()
    return unpadded.replace({"-0": "0"}).alias(written.name)


def _floats(written: pl.Series) -> pl.Series:
    """Polars writes the shortest digits that are this float, large and small ones with an exponent."""
    plain = _unpadded(written)
    powers = written.filter(written.str.contains("e", literal=True)).unique()
    return plain.replace(powers, [number_text(Decimal(text)) for text in powers]) if len(powers) else plain


def _times(column: pl.Series) -> pl.Series:
    """Dates and times as a clock showed them where the table was made, alike for all units."""
    written = column.dt.replace_time_zone(None).cast(pl.String)
    trimmed = written.str.replace(r"(\.\d*?)0+$", "${1}").str.strip_chars_end(".")
    return trimmed.str.strip_suffix(" 00:00:00")
