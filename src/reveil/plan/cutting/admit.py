"""The policy's single-release conditions as numbers for the planner's kernels.

These are the fast tests. The judges in `reveil.verify.judges` decide whether a release holds, and share no code with
them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I64, offsets_of
from reveil.base.errors import Fault, InputError
from reveil.hierarchies.tree import Hierarchy
from reveil.plan.cutting.values import (
    DISTINCT,
    EMD_EQUAL,
    EMD_ORDERED,
    EMD_TREE,
    ENTROPY,
    FREQUENCY,
    NEARNESS,
    RECURSIVE,
    Tests,
)
from reveil.policy.guarantee import Guarantee
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded, Sensitive

LARGEST = 2**31 - 1  # no table has more rows; products of two numbers up to this fit into 64 bits


@dataclass(frozen=True)
class _Test:
    """One test on one sensitive column, before all of them are laid end to end."""

    kind: int
    threshold: Fraction
    l: int  # noqa: E741
    slot: I64  # of each code
    total: I64  # rows in each slot
    near: tuple[I64, I64] | None = None
    tree: Hierarchy | None = None


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


def not_numeric(column: str) -> Fault:
    message = "epsilon is a distance between numbers, and this column is not numeric"
    return Fault("R414", f"column {column!r}", message, "remove epsilon and m, or give this column another role")


def monotone(guarantee: Guarantee) -> bool:
    """Whether a union of admitted groups is admitted. Nearness is not: two groups can be close to a third value."""
    return guarantee.epsilon is None


def tests(encoded: Encoded, policy: Policy, published: NDArray[Any] | None = None) -> Tests:
    """The conditions of the policy for this table, or for those of its rows that are published."""
    g, rows = policy.guarantee, slice(None) if published is None else published
    found = [
        (len(encoded.quasi) + number, test)
        for number, column in enumerate(encoded.sensitive)
        for test in _column_tests(g, column, encoded.codes[rows, number])
    ]
    every = [test for _, test in found]
    sized = [test.l for test in every if test.kind in (DISTINCT, NEARNESS, RECURSIVE)]
    return Tests(
        least=min(LARGEST, max([g.k or 1, *sized])),
        most=_presence(g),
        kind=_ints(test.kind for test in every),
        column=_ints(place for place, _ in found),
        a=_ints(test.threshold.numerator for test in every),
        b=_ints(test.threshold.denominator for test in every),
        l=_ints(min(LARGEST, test.l) for test in every),
        first_code=_starts(len(test.slot) for test in every),
        slot=_join(test.slot for test in every),
        first_slot=_starts(len(test.total) for test in every),
        total=_join(test.total for test in every),
        near_lo=_join(_zeros(test) if test.near is None else test.near[0] for test in every),
        near_hi=_join(_zeros(test) if test.near is None else test.near[1] for test in every),
        first_node=_starts(0 if test.tree is None else len(test.tree.labels) for test in every),
        node_parent=_join(test.tree.parent for test in every if test.tree is not None),
        node_height=_join(heights(test.tree) for test in every if test.tree is not None),
        leaf_node=_join(_zeros(test) if test.tree is None else test.tree.leaf_node for test in every),
    )


def _presence(g: Guarantee) -> tuple[int, int, int, int]:
    if g.delta_max is None:
        return (0, 0, 0, 0)
    return (*neighbours(g.delta_min)[1].as_integer_ratio(), *neighbours(g.delta_max)[0].as_integer_ratio())


def _column_tests(g: Guarantee, column: Sensitive, codes: NDArray[np.int32]) -> Iterator[_Test]:
    domain = len(column.values)
    total = np.bincount(codes, minlength=domain).astype(np.int64)
    same = np.arange(domain, dtype=np.int64)
    if g.l is not None:
        kinds = {"distinct": DISTINCT, "entropy": ENTROPY, "recursive": RECURSIVE}
        threshold = g.c if g.diversity == "recursive" and g.c is not None else g.l
        # Strictly below c is below the next fraction; a group that reaches the next fraction after l reaches l.
        yield _Test(kinds[g.diversity], neighbours(threshold)[1], ceil(g.l), same, total)
    if g.alpha is not None:
        yield _Test(FREQUENCY, neighbours(g.alpha)[0], 1, same, total)
    if g.t is not None:
        yield _closeness(g, g.t, column, total)
    if g.epsilon is not None and g.m is not None:
        if not column.numeric:
            raise InputError(not_numeric(column.name))
        slot, values = _in_order(column, np.arange(domain))
        near = _near(values, g.epsilon, g.proximity == "relative")
        yield _Test(NEARNESS, Fraction(1), g.m, slot, total[np.argsort(slot)], near=near)


def _closeness(g: Guarantee, t: Fraction, column: Sensitive, total: I64) -> _Test:
    distance, t = g.distance, neighbours(t)[0]
    if distance == "auto":
        ordered = column.numeric or column.order is not None
        distance = "hierarchical" if column.hierarchy is not None else "ordered" if ordered else "equal"
    if distance == "hierarchical" and column.hierarchy is not None:
        leaves = {value: position for position, value in enumerate(column.hierarchy.leaves)}
        slot = _ints(leaves[value] for value in column.values)
        return _Test(EMD_TREE, t, 1, slot, _by_slot(total, slot, len(leaves)), tree=column.hierarchy)
    if distance == "ordered":
        # The scale is made of the values of this table; values of earlier releases have no place on it.
        slot, values = _in_order(column, np.flatnonzero(total))
        return _Test(EMD_ORDERED, t, 1, slot, _by_slot(total, slot, len(values)))
    return _Test(EMD_EQUAL, t, 1, np.arange(len(total), dtype=np.int64), total)


def _in_order(column: Sensitive, codes: NDArray[Any]) -> tuple[I64, list[Any]]:
    """The slot of each code when the given codes are sorted by value (missing first), and the sorted values."""
    place = {value: number for number, value in enumerate(column.order or ())}

    def key(code: int) -> tuple[bool, Any]:
        value = column.values[code]
        return (value is not None, place.get(value, value))

    order = sorted(codes.tolist(), key=key)
    slot = np.zeros(len(column.values), dtype=np.int64)
    slot[order] = np.arange(len(order))
    return slot, [column.values[code] for code in order]


def _by_slot(total: I64, slot: I64, slots: int) -> I64:
    return np.bincount(slot, weights=total, minlength=slots).astype(np.int64)


def nearest(g: Guarantee, column: Sensitive, counts: I64) -> tuple[Any, int]:
    """The value with the most rows near to it over the whole table, and how many these are."""
    assert g.epsilon is not None
    present = np.flatnonzero(counts)
    slot, values = _in_order(column, present)
    low, high = _near(values, g.epsilon, g.proximity == "relative")
    before = offsets_of(_by_slot(counts[present], slot[present], len(values)))
    rows = before[high + 1] - before[low]
    return values[int(rows.argmax())], int(rows.max())


def _near(values: list[Any], epsilon: Fraction, relative: bool) -> tuple[I64, I64]:
    """For each sorted value, the first and last value within epsilon of it; missing is near to itself only."""
    known = [Fraction(str(value)) for value in values if value is not None]
    offset = len(values) - len(known)
    low, high = np.arange(len(values)), np.arange(len(values))
    begin = end = 0
    for place, value in enumerate(known):
        reach = abs(value) * epsilon if relative else epsilon
        begin = bisect_left(known, value - reach)
        end = bisect_right(known, value + reach)
        low[offset + place], high[offset + place] = offset + begin, offset + end - 1
    return low.astype(np.int64), high.astype(np.int64)


def heights(tree: Hierarchy) -> I64:
    """Steps from each node down to its deepest leaf. The root is as high as the lowest node over all known values."""
    height = tree.height.astype(np.int64)
    first = int(tree.has_missing)
    peak = np.flatnonzero((tree.lo <= first) & (tree.hi == len(tree) - 1)).max()
    height[0] = max(1, height[peak])
    return height


def _zeros(test: _Test) -> I64:
    return np.zeros(len(test.total), dtype=np.int64)


def _ints(numbers: Iterable[int]) -> I64:
    return np.fromiter(numbers, dtype=np.int64)


def _starts(lengths: Iterable[int]) -> I64:
    return np.cumsum([0, *lengths], dtype=np.int64)


def _join(arrays: Iterable[NDArray[Any]]) -> I64:
    return np.concatenate([np.empty(0, dtype=np.int64), *arrays]).astype(np.int64)
