"""What every group must satisfy, as numbers, and the fast tests of it. On arrays only.

The judges in `reveil.guarantees` decide whether a release holds; they share no code with these tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Rows = NDArray[np.signedinteger[Any]]  # one line per row: positions, then sensitive codes; 16 bits where they fit
Function = TypeVar("Function", bound=Callable[..., Any])

# Kinds of tests on the sensitive values of a group.
DISTINCT, ENTROPY, RECURSIVE, FREQUENCY, EMD_EQUAL, EMD_ORDERED, EMD_TREE, NEARNESS = range(8)
SAFE = 2**62  # beyond this an integer product could overflow, and a cautious float comparison is used instead


def kernel(function: Function) -> Function:
    """Compile once per machine (cached), and release the interpreter lock while running."""
    return cast(Function, njit(cache=True, nogil=True, error_model="numpy")(function))


class Tests(NamedTuple):
    """What every group must satisfy, as numbers. Row i of the arrays is one test."""

    least: int  # rows
    most: tuple[int, int, int, int]  # presence: rows/people >= [0]/[1] and <= [2]/[3]; [1] = 0 when not asked for
    kind: I64
    column: I64  # of the row matrix
    a: I64  # threshold a/b, or l
    b: I64
    l: I64
    first_code: I64  # where the codes of a test start in `slot`
    slot: I64  # place of each code in the order of the test
    first_slot: I64  # where the slots of a test start in the arrays below
    total: I64  # rows in each slot over the whole table
    near_lo: I64  # first and last slot that count as near to a slot
    near_hi: I64
    first_node: I64  # the tree of a hierarchical distance
    node_parent: I64
    node_height: I64
    leaf_node: I64  # of each slot


@kernel
def admits(tests: Tests, rows: Rows, order: I32, s: int, t: int, count: I64, work: I64) -> bool:
    """Whether rows s..t may be published as one group."""
    size = t - s
    if tests.most[1] > 0:
        size = 0
        for i in range(s, t):
            size += order[i] >= 0
        people = t - s - size
        if size * tests.most[1] < tests.most[0] * people or size * tests.most[3] > tests.most[2] * people:
            return False
        if size == 0:
            return tests.most[0] == 0  # a region without published rows shows that nobody there is present
    if size < tests.least:
        return False
    for test in range(len(tests.kind)):
        if not admits_values(tests, test, rows, order, s, t, size, count, work):
            return False
    return True


@kernel
def admits_values(
    tests: Tests, test: int, rows: Rows, order: I32, s: int, t: int, size: int, count: I64, work: I64
) -> bool:
    column = tests.column[test]
    touched = 0
    for i in range(s, t):
        if order[i] < 0:
            continue
        code = rows[i, column]
        if count[code] == 0:
            work[touched] = code
            touched += 1
        count[code] += 1
    kind = tests.kind[test]
    good = True
    if kind == DISTINCT:
        good = touched >= tests.l[test]
    elif kind == FREQUENCY:
        for j in range(touched):
            good = good and count[work[j]] * tests.b[test] <= tests.a[test] * size
    elif kind == ENTROPY:
        good = entropy_reaches(tests, test, count, work, touched, size)
    elif kind == RECURSIVE:
        good = recursive_holds(tests, test, count, work, touched)
    elif kind == NEARNESS:
        good = few_are_near(tests, test, count, work, touched, size)
    else:
        good = distance_within(tests, test, count, work, touched, size)
    for j in range(touched):
        count[work[j]] = 0
    return good


@kernel
def entropy_reaches(tests: Tests, test: int, count: I64, work: I64, touched: int, size: int) -> bool:
    """Entropy of at least log(a/b). Ties are accepted only where they are certain: all counts equal."""
    low = high = count[work[0]]
    sum_logs = 0.0
    for j in range(touched):
        n = count[work[j]]
        low, high = min(low, n), max(high, n)
        sum_logs += n * np.log(n)
    if low == high:
        return touched * tests.b[test] >= tests.a[test]
    entropy = np.log(size) - sum_logs / size
    return entropy > np.log(tests.a[test] / tests.b[test]) + 1e-9


@kernel
def recursive_holds(tests: Tests, test: int, count: I64, work: I64, touched: int) -> bool:
    """Most frequent count < a/b times the sum of the l-th and rarer counts."""
    l = tests.l[test]  # noqa: E741
    if touched < l:
        return False
    counts = np.empty(touched, dtype=np.int64)
    for j in range(touched):
        counts[j] = count[work[j]]
    counts.sort()
    tail = 0
    for j in range(touched - l + 1):
        tail += counts[j]
    return counts[touched - 1] * tests.b[test] < tests.a[test] * tail


@kernel
def few_are_near(tests: Tests, test: int, count: I64, work: I64, touched: int, size: int) -> bool:
    """Around each value present, at most size/l rows are near."""
    first = tests.first_slot[test]
    slots = np.empty(touched, dtype=np.int64)
    for j in range(touched):
        slots[j] = tests.slot[tests.first_code[test] + work[j]]
    places = np.argsort(slots)
    begin = end = near = 0
    for j in range(touched):  # two fingers over the values present, in order
        here = first + slots[places[j]]
        while end < touched and slots[places[end]] <= tests.near_hi[here]:
            near += count[work[places[end]]]
            end += 1
        while slots[places[begin]] < tests.near_lo[here]:
            near -= count[work[places[begin]]]
            begin += 1
        if near * tests.l[test] > size:
            return False
    return True


@kernel
def distance_within(tests: Tests, test: int, count: I64, work: I64, touched: int, size: int) -> bool:
    """Earth mover's distance to the whole table of at most a/b, in whole numbers where they fit."""
    first, last = tests.first_slot[test], tests.first_slot[test + 1]
    rows = 0
    for j in range(first, last):
        rows += tests.total[j]
    excess = np.empty(last - first, dtype=np.int64)  # what the group has too much of a value, times size * rows
    for j in range(last - first):
        excess[j] = -tests.total[first + j] * size
    for j in range(touched):
        excess[tests.slot[tests.first_code[test] + work[j]]] += count[work[j]] * rows
    moved, unit = 0, 2
    if tests.kind[test] == EMD_EQUAL:
        for j in range(last - first):
            moved += abs(excess[j])
    elif tests.kind[test] == EMD_ORDERED:
        unit = max(1, last - first - 1)
        carried = 0
        for j in range(last - first):
            carried += excess[j]
            moved += abs(carried)
    else:
        moved = tree_work(tests, test, excess)
        unit = max(1, tests.node_height[tests.first_node[test]])
    limit = float(tests.a[test]) * unit * size * rows
    if limit < SAFE and float(moved) * tests.b[test] < SAFE:
        return moved * tests.b[test] <= tests.a[test] * unit * size * rows
    return float(moved) * tests.b[test] <= limit * (1 - 1e-12)


@kernel
def tree_work(tests: Tests, test: int, excess: I64) -> int:
    """Mass that must cross each inner node, times the node's height."""
    base, end = tests.first_node[test], tests.first_node[test + 1]
    nodes = end - base
    net = np.zeros(nodes, dtype=np.int64)
    gain = np.zeros(nodes, dtype=np.int64)
    lack = np.zeros(nodes, dtype=np.int64)
    for j in range(len(excess)):
        net[tests.leaf_node[tests.first_slot[test] + j]] = excess[j]
    work = 0
    for v in range(nodes - 1, 0, -1):  # children come after their parents
        work += tests.node_height[base + v] * min(gain[v], lack[v])
        p = tests.node_parent[base + v]
        net[p] += net[v]
        if net[v] > 0:
            gain[p] += net[v]
        else:
            lack[p] -= net[v]
    return work + tests.node_height[base] * min(gain[0], lack[0])
