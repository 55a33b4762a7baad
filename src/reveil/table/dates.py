"""Dates as people write them, read in one way for a whole column, or not at all.

27.02.2024 has the day first by custom. With slashes or dashes the day or the month may be first: a column tells which
by numbers beyond 12 in two rows of it at least, or the policy does (`[input] dates`). If one row sufficed, another date
there would turn everybody's days into others. Years have four digits.
"""

from __future__ import annotations

import datetime
from typing import NamedTuple

import polars as pl

from reveil.policy.column import DateOrder

TIME = r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d+)?)?( ?(Z|[+-]\d\d(:?\d\d)?))?"
WAYS: dict[str, tuple[str, str, DateOrder | None]] = {  # how it looks -> shape, what Polars calls it, what is first
    "yyyy-mm-dd": (r"^\d{4}-\d\d?-\d\d?$", "%Y-%m-%d", None),
    "yyyy-mm-dd and a time": (rf"^\d{{4}}-\d\d-\d\d([T ]{TIME})?$", "%Y-%m-%d", None),
    "yyyy/mm/dd": (r"^\d{4}/\d\d?/\d\d?$", "%Y/%m/%d", None),
    "yyyymmdd": (r"^\d{8}$", "%Y%m%d", None),
    "dd.mm.yyyy": (r"^\d\d?\.\d\d?\.\d{4}$", "%d.%m.%Y", None),
    "dd/mm/yyyy": (r"^\d\d?/\d\d?/\d{4}$", "%d/%m/%Y", "day-first"),
    "mm/dd/yyyy": (r"^\d\d?/\d\d?/\d{4}$", "%m/%d/%Y", "month-first"),
    "dd-mm-yyyy": (r"^\d\d?-\d\d?-\d{4}$", "%d-%m-%Y", "day-first"),
    "mm-dd-yyyy": (r"^\d\d?-\d\d?-\d{4}$", "%m-%d-%Y", "month-first"),
}


class Days(NamedTuple):
    """What was read: a day or nothing for each text, and how the column is written."""

    days: pl.Series
    way: str
    other: str | None = None  # another way in which all texts but one at most are dates, and some are other days


def read_days(texts: pl.Series, order: DateOrder | None = None) -> Days:
    """The days of a column of texts, in the way of writing that fits most of them.

    >>> read_days(pl.Series(["27.02.2024", "1.3.2024"])).days.to_list()
    [datetime.date(2024, 2, 27), datetime.date(2024, 3, 1)]
    >>> read_days(pl.Series(["01/02/2024", "27/02/2024", "31/03/2024"])).way
    'dd/mm/yyyy'
    >>> read_days(pl.Series(["01/02/2024", "27/02/2024"])).other  # only one tells
    'mm/dd/yyyy'
    """
    readings: list[Days] = []
    for way, (_, _, first) in WAYS.items():
        if first is None or order in (None, first):
            readings.append(Days(_read(texts, way), way))
            if first is None and readings[-1].days.null_count() == texts.null_count():
                return readings[-1]
    best = min(readings, key=lambda each: each.days.null_count())
    if best.days.null_count() > texts.null_count():
        return best  # some are no dates in any way
    nearly = [each for each in readings if each.days.null_count() <= texts.null_count() + 1]
    return best._replace(other=next((each.way for each in nearly if (each.days != best.days).any()), None))


def each_day(texts: pl.Series, order: DateOrder | None = None) -> pl.Series:
    """The day of each text by itself, however it is written; null where it is none, or nobody has said what is first.

    >>> each_day(pl.Series(["27.02.2024", "2024-02-27", "02/03/2024"])).to_list()
    [datetime.date(2024, 2, 27), datetime.date(2024, 2, 27), None]
    """
    ways = [way for way, (_, _, first) in WAYS.items() if first is None or first == order]
    frame = pl.DataFrame([_read(texts, way).alias(way) for way in ways])
    return frame.select(pl.coalesce(ways)).to_series().alias(texts.name)


def _read(texts: pl.Series, way: str) -> pl.Series:
    shape, name, _ = WAYS[way]
    plain = texts.set(~texts.str.contains(shape), None)
    if way == "yyyy-mm-dd and a time":
        plain = plain.str.slice(0, 10)
    days = plain.str.to_date(name, strict=False)
    return days.set(~days.is_between(datetime.date.min, datetime.date.max), None)
