"""What a condition is to the planner: the rows it takes, its fast test of one group, and why a table cannot keep it.

One module per guarantee that is told from one group at a time; its descriptor names the module. These are the
planner's own words for a guarantee. The judges in `reveil.verify.judges` decide, and share no code with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I64
from reveil.base.errors import Fault, brief
from reveil.base.words import some
from reveil.guarantees.descriptor import Descriptor
from reveil.hierarchies.tree import Hierarchy
from reveil.policy.guarantee import Guarantee
from reveil.table.encode import Encoded, Sensitive

LARGEST = 2**31 - 1  # no table has more rows; products of two numbers up to this fit into 64 bits


@dataclass(frozen=True)
class Test:
    """One test on one sensitive column, before all of them are laid end to end."""

    kind: int
    threshold: Fraction
    l: int  # noqa: E741
    slot: I64  # of each code
    total: I64  # rows in each slot
    near: tuple[I64, I64] | None = None
    shares: tuple[I64, I64] | None = None
    tree: Hierarchy | None = None


@dataclass(frozen=True)
class Spread:
    """One sensitive column of the whole table."""

    column: Sensitive
    counts: I64
    rows: int
    withheld: bool  # rows of too frequent values may be left out

    @property
    def where(self) -> str:
        return f"column {self.column.name!r}"

    @property
    def distinct(self) -> int:
        return int((self.counts > 0).sum())

    @property
    def top(self) -> int:
        return int(self.counts.max(initial=0))

    @property
    def common(self) -> str:
        """The most frequent value in words."""
        value = self.column.values[int(self.counts.argmax())] if self.distinct else None
        return f"value {brief(value)} occurs in {self.top:,} of {some(self.rows, 'row')}"

    @property
    def way(self) -> str:
        way = "lower the parameter, or group rare values together"
        return way + ("" if self.withheld else ', or set method.infeasible = "withhold"')


def _one(parameters: Any) -> int:
    return 1


def _nothing(*seen: Any) -> Iterable[Any]:
    return ()


@dataclass(frozen=True)
class Condition:
    """All that the planner knows of one guarantee; every function takes its parameters first."""

    least: Callable[[Any], int] = _one  # rows that no group may be below
    different: Callable[[Any], int] = _one  # rows that are enough where all values of a group differ
    tests: Callable[[Any, Sensitive, I64], Iterable[Test]] = _nothing  # of one column; rows of each code are given
    table_faults: Callable[[Any, Encoded], Iterable[Fault]] = _nothing  # not even the whole table as one group keeps it
    column_faults: Callable[[Any, Spread], Iterable[Fault]] = _nothing  # because of the values of one column
    whole: Callable[[Any, I64], bool] | None = None  # of the sizes of all classes that are published
    enough: Callable[[Any], int] = _one  # rows of each class with which that holds for certain


def conditions_of(guarantee: Guarantee) -> list[tuple[Condition, Any]]:
    """The conditions that are told from one group at a time, with their parameters."""
    return [(_load(one), parameters) for one, parameters in guarantee.described if one.condition is not None]


def keeps_whole(guarantee: Guarantee, sizes: I64) -> bool:
    """Whether classes of these sizes, all together, keep what is asked of the table as a whole."""
    return all(one.whole is None or one.whole(asked, sizes) for one, asked in conditions_of(guarantee))


def _load(one: Descriptor) -> Condition:
    condition: Condition = import_module(f"reveil.plan.cutting.conditions.{one.condition}").CONDITION
    return condition


def rows_of_different_values(guarantee: Guarantee) -> int:
    """How many rows a group needs where all its values differ, so that every condition on single groups holds.

    >>> rows_of_different_values(Guarantee.of("alpha-k", k=2, alpha="1/4"))
    4
    """
    return max([1, *(condition.different(parameters) for condition, parameters in conditions_of(guarantee))])


def neighbours(x: Fraction) -> tuple[Fraction, Fraction]:
    """The fractions next to x, below and above (x itself where it is one), among those with small enough parts.

    No two counts of rows make a fraction in between, so comparing with a neighbour is comparing with x, and products of
    counts and thresholds fit into 64 bits.

    >>> neighbours(Fraction(1, 3)), neighbours(Fraction(1, 3 * 10**20))
    ((Fraction(1, 3), Fraction(1, 3)), (Fraction(0, 1), Fraction(1, 2147483647)))
    """
    if x >= LARGEST:
        return Fraction(LARGEST), Fraction(LARGEST)
    if x.denominator <= LARGEST and x.numerator <= LARGEST:
        return x, x
    if x > 1:
        below, above = neighbours(1 / x)
        return 1 / above, 1 / below
    last, now = (0, 1), (1, 0)  # convergents of the continued fraction, as (numerator, denominator)
    n, d = x.numerator, x.denominator
    while last[1] + n // d * now[1] <= LARGEST:
        whole = n // d
        last, now = now, (last[0] + whole * now[0], last[1] + whole * now[1])
        n, d = d, n - whole * d
    steps = (LARGEST - last[1]) // now[1]
    between = Fraction(last[0] + steps * now[0], last[1] + steps * now[1])
    ends = sorted((between, Fraction(*now)))
    return ends[0], ends[1]


def each_code(total: I64) -> I64:
    """The order of a test that takes values as they come."""
    return np.arange(len(total), dtype=np.int64)


def in_order(column: Sensitive, codes: NDArray[Any]) -> tuple[I64, list[Any]]:
    """The slot of each code when the given codes are sorted by value (missing first), and the sorted values."""
    place = {value: number for number, value in enumerate(column.order or ())}

    def key(code: int) -> tuple[bool, Any]:
        value = column.values[code]
        return (value is not None, place.get(value, value))

    order = sorted(codes.tolist(), key=key)
    slot = np.zeros(len(column.values), dtype=np.int64)
    slot[order] = np.arange(len(order))
    return slot, [column.values[code] for code in order]


def by_slot(total: I64, slot: I64, slots: int) -> I64:
    return np.bincount(slot, weights=total, minlength=slots).astype(np.int64)
