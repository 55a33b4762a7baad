"""(alpha, k)-anonymity to the planner."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil

from reveil.base.arrays import I64
from reveil.base.errors import Fault
from reveil.guarantees.alpha_k import AlphaK
from reveil.plan.cutting.conditions.contract import Condition, Spread, Test, each_code, neighbours
from reveil.plan.cutting.values import FREQUENCY
from reveil.table.encode import Sensitive


def different(asked: AlphaK) -> int:
    return ceil(1 / asked.alpha)


def tests(asked: AlphaK, column: Sensitive, total: I64) -> Iterator[Test]:
    yield Test(FREQUENCY, neighbours(asked.alpha)[0], 1, each_code(total), total)


def column_faults(asked: AlphaK, seen: Spread) -> Iterator[Fault]:
    if Fraction(seen.top, max(1, seen.rows)) > asked.alpha:
        yield Fault("R403", seen.where, f"{seen.common}: a share above alpha = {asked.alpha}", seen.way, seen.top)


CONDITION = Condition(different=different, tests=tests, column_faults=column_faults)
