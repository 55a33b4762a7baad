"""The policy's conditions on single groups, laid end to end as numbers for the planner's kernels.

These are the fast tests, one module of `conditions` for each guarantee. The judges in `reveil.verify.judges` decide
whether a release holds, and share no code with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I64
from reveil.guarantees.k_map import KMap
from reveil.guarantees.presence import Presence
from reveil.hierarchies.tree import Hierarchy
from reveil.plan.cutting.conditions import k_map, presence
from reveil.plan.cutting.conditions.contract import LARGEST, Test, conditions_of
from reveil.plan.cutting.values import Tests
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded


def tests(encoded: Encoded, policy: Policy, published: NDArray[Any] | None = None) -> Tests:
    """The conditions of the policy for this table, or for those of its rows that are published.

    Of a part of a table, all rows are published as far as other parts are concerned: who plans it sees to that.
    """
    if encoded.totals is not None:
        return tests_of(encoded, policy, encoded.totals)
    return tests_of(encoded, policy, [encoded.spread(n, published) for n in range(len(encoded.sensitive))])


def tests_of(encoded: Encoded, policy: Policy, totals: Sequence[NDArray[Any]]) -> Tests:
    """The same, where it is known how often each code of each sensitive column is published."""
    asked = conditions_of(policy.guarantee)
    all_tests = []
    for number, column in enumerate(encoded.sensitive):
        total = totals[number].astype(np.int64)
        for condition, parameters in asked:
            whole = encoded.spread(number) if parameters.of_original else total
            place = len(encoded.quasi) + number * encoded.each
            all_tests += [(place, test) for test in condition.tests(parameters, column, whole)]
    every = [test for _, test in all_tests]
    return Tests(
        least=min(LARGEST, max([1, *(condition.least(parameters) for condition, parameters in asked)])),
        most=presence.bounds(policy.guarantee.find(Presence)),
        people=k_map.people(policy.guarantee.find(KMap)),
        kind=_ints(test.kind for test in every),
        column=_ints(place for place, _ in all_tests),
        each=encoded.each,
        a=_ints(test.threshold.numerator for test in every),
        b=_ints(test.threshold.denominator for test in every),
        l=_ints(min(LARGEST, test.l) for test in every),
        first_code=_starts(len(test.slot) for test in every),
        slot=_join(test.slot for test in every),
        first_slot=_starts(len(test.total) for test in every),
        total=_join(test.total for test in every),
        near_lo=_join(_of_slots(test, test.near, 0) for test in every),
        near_hi=_join(_of_slots(test, test.near, 1) for test in every),
        share_a=_join(_of_slots(test, test.shares, 0) for test in every),
        share_b=_join(_of_slots(test, test.shares, 1) for test in every),
        first_node=_starts(0 if test.tree is None else len(test.tree.labels) for test in every),
        node_parent=_join(test.tree.parent for test in every if test.tree is not None),
        node_height=_join(heights(test.tree) for test in every if test.tree is not None),
        leaf_node=_join(_zeros(test) if test.tree is None else test.tree.leaf_node for test in every),
    )


def heights(tree: Hierarchy) -> I64:
    """Steps from each node down to its deepest leaf. The root is as high as the lowest node over all known values."""
    height = tree.height.astype(np.int64)
    first = int(tree.has_missing)
    peak = np.flatnonzero((tree.lo <= first) & (tree.hi == len(tree) - 1)).max()
    height[0] = max(1, height[peak])
    return height


def _of_slots(test: Test, pair: tuple[I64, I64] | None, side: int) -> I64:
    return _zeros(test) if pair is None else pair[side]


def _zeros(test: Test) -> I64:
    return np.zeros(len(test.total), dtype=np.int64)


def _ints(numbers: Iterable[int]) -> I64:
    return np.fromiter(numbers, dtype=np.int64)


def _starts(lengths: Iterable[int]) -> I64:
    return np.cumsum([0, *lengths], dtype=np.int64)


def _join(arrays: Iterable[NDArray[Any]]) -> I64:
    return np.concatenate([np.empty(0, dtype=np.int64), *arrays]).astype(np.int64)
