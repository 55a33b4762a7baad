"""beta-likeness to the planner: for every value a largest share of a group. The whole table as one group keeps it.

The logarithm of the enhanced form is irrational. A number just below it is used, so nothing is admitted that should not
be; the two differ by less than any two shares of rows do.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from reveil.guarantees.beta_likeness import BetaLikeness
from reveil.plan.cutting.conditions.contract import Array, Condition, Test, each_code, neighbours
from reveil.plan.cutting.values import SHARES
from reveil.table.encode import Sensitive

BITS = 160  # of logarithms after the point


def tests(asked: BetaLikeness, column: Sensitive, total: Array) -> Iterator[Test]:
    rows = int(total.sum())
    counts, back = np.unique(total, return_inverse=True)
    caps = [neighbours(largest_share(asked, count, rows))[0] for count in counts.tolist()]
    top, bottom = ([part[side] for part in map(Fraction.as_integer_ratio, caps)] for side in (0, 1))
    shares = (np.array(top, dtype=np.int64)[back], np.array(bottom, dtype=np.int64)[back])
    yield Test(SHARES, Fraction(1), 1, each_code(total), total, shares=shares)


def largest_share(asked: BetaLikeness, count: int, rows: int) -> Fraction:
    """The share that a value with `count` of all rows may have in a group, or a little less.

    >>> largest_share(BetaLikeness(beta=1, likeness="basic"), 1, 4)
    Fraction(1, 2)
    """
    if not count:
        return Fraction(0)
    gain = asked.beta
    if asked.likeness == "enhanced":
        gain = min(gain, logarithm_below(Fraction(rows, count)))
    return min(Fraction(1), (1 + gain) * Fraction(count, rows))


def logarithm_below(x: Fraction) -> Fraction:
    """A number just below the natural logarithm of x, which is 1 or more.

    >>> logarithm_below(Fraction(1)), f"{float(logarithm_below(Fraction(10))):.12f}"
    (Fraction(0, 1), '2.302585092994')
    """
    twos = x.numerator.bit_length() - x.denominator.bit_length()
    twos -= Fraction(2) ** twos > x
    rest = x / 2**twos  # from 1 up to 2
    return twos * _series(Fraction(1, 3)) + _series((rest - 1) / (rest + 1))


def _series(y: Fraction) -> Fraction:
    """ln((1 + y) / (1 - y)) = 2 (y + y^3/3 + y^5/5 + ...): no term is negative, and all are rounded down."""
    power = (y.numerator << BITS) // y.denominator
    square, total, odd = power * power >> BITS, 0, 1
    while power:
        total += power // odd
        power, odd = power * square >> BITS, odd + 2
    return Fraction(2 * total, 1 << BITS)


CONDITION = Condition(tests=tests)
