"""delta-disclosure to the planner: for every value a largest and a least share of a group.

The factor e^delta is irrational. A number just below it is used for both, so nothing is admitted that should not be;
the two differ by less than any two shares of rows do. The whole table as one group keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from reveil.base.arrays import I64
from reveil.guarantees.delta_disclosure import DeltaDisclosure
from reveil.plan.cutting.conditions.contract import Condition, Test, each_code, neighbours
from reveil.plan.cutting.values import FLOORS, SHARES
from reveil.table.encode import Sensitive

BITS = 160  # of powers after the point


def tests(asked: DeltaDisclosure, column: Sensitive, total: I64) -> Iterator[Test]:
    factor, rows = power_below(asked.delta), max(1, int(total.sum()))
    counts, back = np.unique(total, return_inverse=True)
    shares = [Fraction(count, rows) for count in counts.tolist()]
    most = [neighbours(min(Fraction(1), share * factor))[0] for share in shares]
    least = [neighbours(share / factor)[1] for share in shares]
    slot, values = each_code(total), int((total > 0).sum())
    yield Test(SHARES, Fraction(1), 1, slot, total, shares=_parts(most, back))
    yield Test(FLOORS, Fraction(1), values, slot, total, shares=_parts(least, back))


def _parts(shares: list[Fraction], back: I64) -> tuple[I64, I64]:
    top, bottom = ([part[side] for part in map(Fraction.as_integer_ratio, shares)] for side in (0, 1))
    return np.array(top, dtype=np.int64)[back], np.array(bottom, dtype=np.int64)[back]


def power_below(x: Fraction) -> Fraction:
    """A number just below e^x for x > 0: no term of 1 + x + x^2/2 + ... is negative, and all are rounded down.

    >>> f"{float(power_below(Fraction(1))):.12f}"
    '2.718281828459'
    """
    term, total, n = 1 << BITS, 0, 0
    while term:
        total, n = total + term, n + 1
        term = term * x.numerator // (x.denominator * n)
    return Fraction(total, 1 << BITS)


CONDITION = Condition(tests=tests)
