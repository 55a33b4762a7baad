"""t-closeness to the planner. The whole table as one group is always close enough to itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reveil.base.arrays import I64
from reveil.guarantees.t_closeness import TCloseness
from reveil.plan.cutting.conditions.contract import Condition, Test, by_slot, each_code, in_order, neighbours
from reveil.plan.cutting.values import EMD_EQUAL, EMD_ORDERED, EMD_TREE
from reveil.table.encode import Sensitive


def tests(asked: TCloseness, column: Sensitive, total: I64) -> Iterator[Test]:
    distance, t = asked.distance, neighbours(asked.t)[0]
    if distance == "auto":
        ordered = column.numeric or column.order is not None
        distance = "hierarchical" if column.hierarchy is not None else "ordered" if ordered else "equal"
    if distance == "hierarchical" and column.hierarchy is not None:
        leaves = {value: position for position, value in enumerate(column.hierarchy.leaves)}
        slot = np.array([leaves[value] for value in column.values], dtype=np.int64)
        yield Test(EMD_TREE, t, 1, slot, by_slot(total, slot, len(leaves)), tree=column.hierarchy)
    elif distance == "ordered":
        # The scale is made of the values of this table; values of earlier releases have no place on it.
        slot, values = in_order(column, np.flatnonzero(total))
        yield Test(EMD_ORDERED, t, 1, slot, by_slot(total, slot, len(values)))
    else:
        yield Test(EMD_EQUAL, t, 1, each_code(total), total)


CONDITION = Condition(tests=tests)
