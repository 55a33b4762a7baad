"""(epsilon, m)-anonymity to the planner."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from reveil.base.arrays import I64, offsets_of
from reveil.base.errors import Fault, InputError
from reveil.base.words import agree, some
from reveil.guarantees.epsilon_m import EpsilonM
from reveil.plan.cutting.conditions.contract import Condition, Spread, Test, by_slot, in_order
from reveil.plan.cutting.values import NEARNESS
from reveil.table.encode import Sensitive


def least(asked: EpsilonM) -> int:
    return asked.m or 1


def tests(asked: EpsilonM, column: Sensitive, total: I64) -> Iterator[Test]:
    if not column.numeric:
        raise InputError(_not_numeric(column.name))
    slot, values = in_order(column, np.arange(len(total)))
    yield Test(NEARNESS, Fraction(1), least(asked), slot, total[np.argsort(slot)], near=_near(asked, values))


def column_faults(asked: EpsilonM, seen: Spread) -> Iterator[Fault]:
    value, near = nearest(asked, seen.column, seen.counts)
    if near * least(asked) > seen.rows:
        message = (
            f"as one group, {near:,} of {some(seen.rows, 'row')} {agree(near, 'lies', 'lie')} within "
            f"epsilon = {asked.epsilon} of {value!r}, more than "
            f"one in m = {asked.m}. Smaller groups may still keep the promise, but none were looked for"
        )
        yield Fault("R404", seen.where, message, "lower epsilon or m", near)


def nearest(asked: EpsilonM, column: Sensitive, counts: I64) -> tuple[Any, int]:
    """The value with the most rows near to it over the whole table, and how many these are."""
    present = np.flatnonzero(counts)
    slot, values = in_order(column, present)
    low, high = _near(asked, values)
    before = offsets_of(by_slot(counts[present], slot[present], len(values)))
    rows = before[high + 1] - before[low]
    return values[int(rows.argmax())], int(rows.max())


def _near(asked: EpsilonM, values: list[Any]) -> tuple[I64, I64]:
    """For each sorted value, the first and last value within epsilon of it; missing is near to itself only."""
    known = [Fraction(str(value)) for value in values if value is not None]
    offset = len(values) - len(known)
    low, high = np.arange(len(values)), np.arange(len(values))
    for place, value in enumerate(known):
        reach = abs(value) * asked.epsilon if asked.proximity == "relative" else asked.epsilon
        low[offset + place] = offset + bisect_left(known, value - reach)
        high[offset + place] = offset + bisect_right(known, value + reach) - 1
    return low.astype(np.int64), high.astype(np.int64)


def _not_numeric(column: str) -> Fault:
    message = "epsilon is a distance between numbers, and this column is not numeric"
    return Fault("R414", f"column {column!r}", message, "remove epsilon and m, or give this column another role")


CONDITION = Condition(least=least, tests=tests, column_faults=column_faults)
