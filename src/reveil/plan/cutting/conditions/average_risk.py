"""Average risk to the planner: so many classes, for so many rows."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from reveil.base.arrays import I64
from reveil.base.errors import Fault
from reveil.base.words import some
from reveil.guarantees.average_risk import AverageRisk
from reveil.plan.cutting.conditions.contract import Condition
from reveil.table.encode import Encoded


def enough(asked: AverageRisk) -> int:
    return ceil(1 / asked.average_risk)


def keeps(asked: AverageRisk, sizes: I64) -> bool:
    """The mean over rows of one over the size of their class is classes by rows."""
    return len(sizes) * asked.average_risk.denominator <= asked.average_risk.numerator * int(sizes.sum())


def table_faults(asked: AverageRisk, encoded: Encoded) -> Iterator[Fault]:
    if encoded.rows < enough(asked):
        message = f"the table has {some(encoded.rows, 'row')}: even as one class, the average risk is 1/{encoded.rows}"
        yield Fault("R401", "guarantee.average_risk", message, "allow a higher average risk", encoded.rows)


CONDITION = Condition(table_faults=table_faults, whole=keeps, enough=enough)
