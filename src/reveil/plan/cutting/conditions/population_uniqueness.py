"""Population uniqueness to the planner: estimated from the sizes of the classes, with a little to spare.

The judge estimates for itself. Two searches for the most likely parameters end a little apart, so that what is nearer
to the threshold than `SPARE` is not taken.
"""

from __future__ import annotations

from collections.abc import Iterator

from reveil.base.arrays import I64
from reveil.base.errors import Fault
from reveil.guarantees.population_uniqueness import PopulationUniqueness
from reveil.measure.population_risk import expected_uniques
from reveil.plan.cutting.conditions.contract import Condition
from reveil.table.encode import Encoded

SPARE = 1e-2  # of the threshold


def enough(asked: PopulationUniqueness) -> int:
    return 2


def keeps(asked: PopulationUniqueness, sizes: I64) -> bool:
    if not (sizes == 1).any():
        return True
    assert asked.sampled is not None  # or the policy was refused
    people = float(int(sizes.sum()) / asked.sampled)
    return expected_uniques(sizes, people) <= (1 - SPARE) * float(asked.population_uniqueness) * people


def table_faults(asked: PopulationUniqueness, encoded: Encoded) -> Iterator[Fault]:
    if encoded.rows < 2:
        message = "the table has 1 row, from which nothing can be estimated"
        remedy = "publish when more rows are there"
        yield Fault("R401", "guarantee.population_uniqueness", message, remedy, encoded.rows)


CONDITION = Condition(table_faults=table_faults, whole=keeps, enough=enough)
