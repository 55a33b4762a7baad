"""Why a table cannot be published under a policy, in words, and which rows stand in the way.

Every condition that is planned here holds for the whole table as one group, or for no way of cutting it. Nearness is
the exception: it may hold for small groups only, which planning top down does not find.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.base.errors import Fault
from reveil.plan.cutting import values
from reveil.plan.cutting.conditions.contract import Spread, conditions_of
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded


def faults(encoded: Encoded, policy: Policy) -> list[Fault]:
    """One fault per condition that not even the whole table as one group satisfies."""
    asked = conditions_of(policy.guarantee)
    reasons = [fault for condition, parameters in asked for fault in condition.table_faults(parameters, encoded)]
    for number, column in enumerate(encoded.sensitive):
        seen = Spread(column, encoded.spread(number), encoded.rows, policy.method.infeasible == "withhold")
        reasons += [fault for condition, parameters in asked for fault in condition.column_faults(parameters, seen)]
    if not reasons:
        message = "the whole table as one group does not satisfy all conditions together"
        reasons.append(Fault("R401", "guarantee", message, "relax the strictest condition", encoded.rows))
    return reasons


def without_excess(tests: values.Tests, rows: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which rows to keep: the fewest rows of too frequent values are left out, chosen at random among their like."""
    keep = np.ones(len(rows), dtype=bool)
    for test in range(len(tests.kind)):
        if tests.kind[test] not in (values.FREQUENCY, values.ENTROPY, values.RECURSIVE):
            continue
        codes = rows[:, tests.column[test]]  # -1: people of a population table, who have no value here
        counts = np.bincount(codes[keep & (codes >= 0)], minlength=int(np.diff(tests.first_code)[test]))
        cap = _largest_cap(tests, test, counts)
        for code in np.flatnonzero(counts > cap):
            mine = np.flatnonzero(keep & (codes == code))
            keep[rng.permutation(mine)[cap:]] = False
    return keep


def _largest_cap(tests: values.Tests, test: int, counts: NDArray[Any]) -> int:
    """The largest number of rows that each value may keep so that the test is passed; 0 when there is none."""
    low, high = 0, int(counts.max(initial=0))
    while low < high:
        cap = (low + high + 1) // 2
        if _passes(tests, test, np.minimum(counts, cap)):
            low = cap
        else:
            high = cap - 1
    return low


def _passes(tests: values.Tests, test: int, counts: NDArray[Any]) -> bool:
    column = int(tests.column[test])
    rows = np.zeros((int(counts.sum()), column + 1), dtype=np.int32)
    rows[:, column] = np.repeat(np.arange(len(counts)), counts)
    count, work = np.zeros(len(counts) + 1, dtype=np.int64), np.zeros(len(counts) + 1, dtype=np.int64)
    order = np.arange(len(rows))
    touched = values.count_values(tests, test, rows, order, 0, len(rows), count, work)
    return len(rows) > 0 and bool(values.decide(tests, test, count, work, touched, len(rows)))
