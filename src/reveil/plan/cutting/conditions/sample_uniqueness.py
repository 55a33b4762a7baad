"""Sample uniqueness to the planner: so many classes of one row."""

from __future__ import annotations

from collections.abc import Iterator

from reveil.base.arrays import I64
from reveil.base.errors import Fault
from reveil.guarantees.sample_uniqueness import SampleUniqueness
from reveil.plan.cutting.conditions.contract import Condition
from reveil.table.encode import Encoded


def enough(asked: SampleUniqueness) -> int:
    return 2


def keeps(asked: SampleUniqueness, sizes: I64) -> bool:
    share = asked.sample_uniqueness
    return int((sizes == 1).sum()) * share.denominator <= share.numerator * int(sizes.sum())


def table_faults(asked: SampleUniqueness, encoded: Encoded) -> Iterator[Fault]:
    if encoded.rows < 2:
        message = "the table has 1 row, which is like no other"
        yield Fault("R401", "guarantee.sample_uniqueness", message, "publish when more rows are there", encoded.rows)


CONDITION = Condition(table_faults=table_faults, whole=keeps, enough=enough)
