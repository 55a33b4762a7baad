"""The one way in which a value becomes text: in identifiers, categories, policies, published labels, audits, reports.

A value has one text, whatever column, file or type it came in: 7, 7.0 and Decimal("7.00") are "7", and no other cell of
its column changes that. Whole columns are turned into the same texts by `reveil.table.cells`.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real

MOST_DIGITS = 400  # of a number; floats end with 309


def plain_text(value: object) -> str:
    """A value as a release shows it and as a policy names it; a missing value (also NaN) is the empty text.

    Text is as it was written. Numbers have all their digits and no exponent. A time at midnight is its day.

    >>> plain_text("250.00"), plain_text(3.0), plain_text(Decimal("100.10")), plain_text(True), plain_text(None)
    ('250.00', '3', '100.1', 'true', '')
    >>> plain_text(1e20), plain_text(10**20), plain_text(1e-7), plain_text(Fraction(1, 2))
    ('100000000000000000000', '100000000000000000000', '0.0000001', '0.5')
    >>> plain_text(datetime.datetime(2024, 2, 27)), plain_text(datetime.datetime(2024, 2, 27, 8, 30, 0, 500000))
    ('2024-02-27', '2024-02-27 08:30:00.5')
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):  # also NumPy's
        return str(value).lower()
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Fraction):
        return plain_text(float(value))
    if isinstance(value, Real | Decimal):
        return number_text(Decimal(str(value)))
    if isinstance(value, datetime.datetime):
        return time_text(value.replace(tzinfo=None).isoformat(" "))  # as a clock showed it where the table was made
    return value.hex() if isinstance(value, bytes) else str(value)


def far(text: str) -> bool:
    """Whether a written number has an exponent beyond all floats, so that its digits could fill any memory.

    >>> far("5E20480"), far("1.5e3"), far("7")
    (True, False, False)
    """
    power = text.casefold().partition("e")[2].lstrip("+-")
    return power.isdecimal() and (len(power) > 3 or int(power) > MOST_DIGITS)


def number_text(number: Decimal) -> str:
    """All digits of a number and nothing else.

    >>> [number_text(Decimal(text)) for text in ("1E+3", "-0.50", "-0", "NaN")]
    ['1000', '-0.5', '0', '']
    """
    if number.is_nan():
        return ""
    if not number.is_finite():
        return "inf" if number > 0 else "-inf"
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def time_text(written: str) -> str:
    """A date and time without what its unit adds: zeros at the end of the fraction, midnight.

    >>> time_text("2024-02-27 08:30:00.500000"), time_text("2024-02-27 00:00:00.000")
    ('2024-02-27 08:30:00.5', '2024-02-27')
    """
    text = written.rstrip("0").rstrip(".") if "." in written else written
    return text.removesuffix(" 00:00:00")
