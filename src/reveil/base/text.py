"""The one way in which a value becomes text: in policies, published labels, audits, priors and reports."""

from __future__ import annotations

from fractions import Fraction

EXACT = 2**53  # from here on, a float written as a whole number would show digits that nobody has meant


def plain_text(value: object) -> str:
    """A value as a release shows it and as a policy names it; the missing value is the empty text.

    >>> plain_text("flu"), plain_text(3.0), plain_text(0.5), plain_text(True), plain_text(None)
    ('flu', '3', '0.5', 'true', '')
    >>> plain_text(1e20), plain_text(10**20), plain_text(Fraction(1, 2))
    ('1e+20', '100000000000000000000', '0.5')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    if isinstance(value, Fraction) and value.denominator != 1:
        return str(float(value))
    return str(value)
