"""(epsilon, m)-anonymity: in no class do too many rows have nearly the same number.

For each row with number x, at most one row in m of its class (itself included) lies within epsilon of x: from
x - epsilon to x + epsilon, or, where epsilon is relative, at a distance of at most epsilon times |x|. A
missing value is near to missing values only. Numbers are taken as they are written: 0.1 is one tenth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.arrays import offsets_of
from reveil.base.errors import Fault, InputError, stop_if
from reveil.guarantees.epsilon_m import EpsilonM
from reveil.history.history import History
from reveil.policy.column import Column
from reveil.policy.policy import Policy
from reveil.verify.judges.contract import Background, Judge, Verdict, View
from reveil.verify.judges.counts import LIMIT, Counts, Whole, count_values, exceeds, largest_ratio, listed, written
from reveil.verify.judges.verdicts import empty, example, share_of_classes, verdict

Proximity = Literal["absolute", "relative"]


@dataclass
class EpsilonMJudge:
    """At most one row in m of a class has a number within epsilon of any row's number.

    Not monotone: {0, 10} and {5, -5} satisfy epsilon = 5, m = 2, and together they do not.
    """

    epsilon: Fraction
    m: int
    column: str
    proximity: Proximity = "absolute"
    name: str = "epsilon-m"

    def judge(self, view: View, history: History) -> list[Verdict]:
        if not view.sensitive[self.column].dtype.is_numeric():
            raise InputError(_not_numeric(self.column))
        counts = count_values(view, self.column)
        bound = Fraction(1, self.m)
        details: dict[str, Any] = {"column": self.column, "proximity": self.proximity}
        if not counts.rows:
            return [empty(self.name, bound, details)]
        near, sizes = self._nearest(counts), counts.sizes
        bad = exceeds(near, sizes, bound)
        worst, place = largest_ratio(near, sizes)
        distance = written(self.epsilon) if self.proximity == "absolute" else f"{float(100 * self.epsilon):.4g} %"
        what = f"within {distance} of one value of {self.column!r}"
        largest = f"the largest share is {written(worst)}"
        if bad.any():
            statement = f"{share_of_classes(bad)} more than one row in {self.m} {what}; {largest}"
            plain = (
                f"In some groups of look-alikes {float(worst):.1%} of the rows have nearly the same "
                f"{self.column!r}; the promise was at most {float(bound):.1%}."
            )
        else:
            statement = f"every class has at most one row in {self.m} {what}; {largest}"
            plain = (
                f"Whoever knows which group of look-alikes a person is in can guess their {self.column!r} to "
                f"within {distance} with a chance of at most {float(worst):.1%}."
            )
        details |= example(counts, place)
        return [verdict(self.name, statement, plain, bad, sizes, worst=worst, bound=bound, details=details)]

    def _nearest(self, counts: Counts) -> Whole:
        """For each class, the largest number of rows near one of its rows."""
        first, last = neighbourhoods(counts.values, self.epsilon, self.proximity, self.column)
        width = len(counts.values) + 1
        key = counts.owner * width + counts.value
        held = offsets_of(counts.count)
        start = np.searchsorted(key, counts.owner * width + first[counts.value], side="left")
        end = np.searchsorted(key, counts.owner * width + last[counts.value], side="right")
        return np.maximum.reduceat(held[end] - held[start], counts.starts)


def neighbourhoods(
    values: pl.Series, epsilon: Fraction, proximity: Proximity, column: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and last of the sorted values near to each; a missing value, at 0, is near to itself only."""
    missing = int(values.null_count() > 0)
    points, unit = _whole_numbers(values.drop_nulls().to_list(), column)
    size = [abs(point) for point in points] if proximity == "relative" else [unit] * len(points)
    # One more factor, the denominator of epsilon, makes the reach a whole number too.
    reach = [epsilon.numerator * one for one in size]
    scaled = [epsilon.denominator * point for point in points]
    lower = [point - far for point, far in zip(scaled, reach, strict=True)]
    upper = [point + far for point, far in zip(scaled, reach, strict=True)]
    dtype: Any = np.int64 if max(map(abs, [*lower, *upper]), default=0) < LIMIT else object
    line = np.array(scaled, dtype=dtype)
    first = np.searchsorted(line, np.array(lower, dtype=dtype), side="left") + missing
    last = np.searchsorted(line, np.array(upper, dtype=dtype), side="right") - 1 + missing
    return (np.concatenate(([0], first)), np.concatenate(([0], last))) if missing else (first, last)


def _whole_numbers(values: Sequence[Any], column: str) -> tuple[list[int], int]:
    """The values as multiples of one small unit, and how many units make 1."""
    endless = [value for value in values if isinstance(value, float) and math.isinf(value)]
    if endless:
        message = f"holds {listed(endless)}, which is not within any distance of a number"
        raise InputError(Fault("R415", f"column {column!r}", message, "correct these values, or leave them empty"))
    if all(isinstance(value, int) for value in values):
        return [int(value) for value in values], 1
    exact = [Fraction(str(value)) for value in values]
    unit = math.lcm(*(value.denominator for value in exact))
    return [value.numerator * (unit // value.denominator) for value in exact], unit


def _not_numeric(column: str) -> Fault:
    return Fault(
        "R414",
        f"column {column!r}",
        "epsilon is a distance between numbers, and this column is not numeric",
        "remove epsilon and m, or give this column another role",
    )


def build_epsilon(asked: EpsilonM, policy: Policy, background: Background) -> list[Judge]:
    assert asked.m is not None
    names = policy.named("sensitive")
    stop_if([_not_numeric(name) for name in names if not _may_be_numeric(policy.columns[name])])
    return [EpsilonMJudge(asked.epsilon, asked.m, name, asked.proximity) for name in names]


def _may_be_numeric(column: Column) -> bool:
    """Whether the policy leaves that open; the published table has the last word."""
    named = (column.order, column.prefixes, column.levels)
    return column.type in ("auto", "number") and all(way is None for way in named)
