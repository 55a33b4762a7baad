"""Which sensitive values a policy means: by name, by a range of numbers or dates, or by a label above them.

    protect = ["HIV", "> 0", "10 to 20", "Infectious diseases"]

A value that is spelled like a range is meant by its name as well: `>50K` is a name where people earn `>50K`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction

from reveil.base.text import plain_text

_COMPARED = re.compile(r"(>=|<=|>|<)\s*(\S+)")
_BETWEEN = re.compile(r"(\S+)\s+to\s+(\S+)")
Amount = Fraction | date


class Selection(tuple[str, ...]):
    """The entries of a list, and what the labels among them stand for.

    >>> some = Selection(["HIV", "> 0", "10 to 20", "cancer"]).under({"cancer": frozenset({"lung", "skin"})})
    >>> [some.selects(value) for value in ("HIV", "flu", 3, 0, "3", "lung")]
    [True, False, True, False, False, True]
    """

    below: Mapping[str, frozenset[str]] = {}

    def under(self, below: Mapping[str, frozenset[str]]) -> Selection:
        """The same entries, with the values below each label of a hierarchy."""
        self.below = below
        return self

    def selects(self, value: object) -> bool:
        """Whether one of the entries means this value."""
        text = plain_text(value)
        return text in self or any(self._means(entry, value, text) for entry in self)

    def _means(self, entry: str, value: object, text: str) -> bool:
        amount = _amount_of(value)
        return text in self.below.get(entry, ()) or (amount is not None and _within(entry, amount))


NOTHING = Selection()


def is_range(entry: str) -> bool:
    """Whether an entry can stand for a range.

    >>> [is_range(entry) for entry in ("> 0", "10 to 20", "2020-01-01 to 2020-12-31", ">50K", "20 to 10")]
    [True, True, True, False, False]
    """
    return bool(_limits(entry))


def _within(entry: str, amount: Amount) -> bool:
    """Numbers are compared with numbers, and dates with dates."""
    limits = [(sign, limit) for sign, limit in _limits(entry) if isinstance(limit, date) == isinstance(amount, date)]
    return bool(limits) and all(_holds(amount, sign, limit) for sign, limit in limits)


def _holds(amount: Amount, sign: str, limit: Amount) -> bool:
    above, same = amount > limit, amount == limit  # type: ignore[operator]
    return (same and "=" in sign) or (above if sign[0] == ">" else not above and not same)


def _limits(entry: str) -> list[tuple[str, Amount]]:
    pairs: list[tuple[str, str]] = []
    if match := _COMPARED.fullmatch(entry.strip()):
        pairs = [(match[1], match[2])]
    elif match := _BETWEEN.fullmatch(entry.strip()):
        pairs = [(">=", match[1]), ("<=", match[2])]
    limits = [(sign, limit) for sign, text in pairs if (limit := _amount(text)) is not None]
    if len({isinstance(limit, date) for _, limit in limits}) > 1 or len(limits) < len(pairs):
        return []
    empty = len(limits) == 2 and limits[0][1] > limits[1][1]  # type: ignore[operator]
    return [] if empty else limits


def _amount(text: str) -> Amount | None:
    try:
        return date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def _amount_of(value: object) -> Amount | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, Fraction, date)):
        return None
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value if isinstance(value, date) else Fraction(plain_text(value))  # 0.1 is one tenth, as it is written
