"""What every group must satisfy, as numbers, and the fast tests of it. On arrays only.

The judges in `reveil.verify.judges` decide whether a release holds; they share no code with these tests.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I64
from reveil.base.kernels import allocating_kernel, bare_kernel

Order = NDArray[np.signedinteger[Any]]  # the number of each row in the table; negative for people who are not rows
Rows = NDArray[np.signedinteger[Any]]  # one line per row: positions, then sensitive codes; 16 bits where they fit

# Kinds of tests on the sensitive values of a group.
DISTINCT, ENTROPY, RECURSIVE, FREQUENCY, EMD_EQUAL, EMD_ORDERED, EMD_TREE, NEARNESS, SHARES, FLOORS = range(10)
ZERO: Any = np.int64(0)  # a plain 0 is a type of its own to Numba, for which it compiles callees again
TIES = 4096  # up to this size, ties of entropies are decided by prime factors; beyond it they are refused
SAFE = 2**62  # beyond this an integer product could overflow, and a cautious float comparison is used instead


class Tests(NamedTuple):
    """What every group must satisfy, as numbers. Row i of the arrays is one test."""

    least: int  # rows
    most: tuple[int, int, int, int]  # presence: rows/people >= [0]/[1] and <= [2]/[3]; [1] = 0 when not asked for
    people: int  # k-map: people of the population in a region that has rows, at least; 0 when not asked for
    kind: I64
    column: I64  # of the row matrix, the first of `each` that hold the values of one person
    each: int
    a: I64  # threshold a/b, or l
    b: I64
    l: I64  # noqa: E741
    first_code: I64  # where the codes of a test start in `slot`
    slot: I64  # place of each code in the order of the test
    first_slot: I64  # where the slots of a test start in the arrays below
    total: I64  # rows in each slot over the whole table
    near_lo: I64  # first and last slot that count as near to a slot
    near_hi: I64
    share_a: I64  # the largest (or least) share of a group that each slot may have, a/b
    share_b: I64
    first_node: I64  # the tree of a hierarchical distance
    node_parent: I64
    node_height: I64
    leaf_node: I64  # of each slot


def room_for(tests: Tests) -> tuple[I64, I64]:
    """The memory `count` (zero between uses) and `work` that the tests need."""
    codes = int(np.diff(tests.first_code).max(initial=1))
    return np.zeros(codes + 1, dtype=np.int64), np.zeros(codes + 1, dtype=np.int64)


@bare_kernel
def admits(tests: Tests, rows: Rows, order: Order, s: int, t: int, count: I64, work: I64) -> bool:
    """Whether rows s..t may be published as one group."""
    size = t - s
    if tests.most[1] > 0 or tests.people > 0:
        size = 0
        for i in range(s, t):
            size += order[i] >= 0
        people = t - s - size
        if size * tests.most[1] < tests.most[0] * people or size * tests.most[3] > tests.most[2] * people:
            return False
        if size == 0:
            return tests.most[0] == 0  # a region without published rows shows that nobody there is present
        if people < tests.people:
            return False
    if size < tests.least:
        return False
    for test in range(len(tests.kind)):
        touched = count_values(tests, test, rows, order, s, t, count, work)
        if not decide(tests, test, count, work, touched, size):
            return False
    return True


@bare_kernel
def count_values(tests: Tests, test: int, rows: Rows, order: Order, s: int, t: int, count: I64, work: I64) -> int:
    """Count the codes of rows s..t that a test looks at, as far as it needs; returns how many different ones."""
    column = tests.column[test]
    touched = 0
    kind = tests.kind[test]
    if tests.each > 1:
        return count_bundles(tests, test, rows, order, s, t, count, work)
    enough = tests.l[test] if kind == DISTINCT else t - s + 1
    for i in range(s, t):
        if order[i] < 0:
            continue
        code = rows[i, column]
        if count[code] == 0:
            work[touched] = code
            touched += 1
            if touched == enough:
                break
        count[code] += 1
    return touched


@bare_kernel
def count_bundles(tests: Tests, test: int, rows: Rows, order: Order, s: int, t: int, count: I64, work: I64) -> int:
    """The same where each of s..t has several values: each value is counted once for everybody who has it."""
    touched = 0
    for i in range(s, t):
        for c in range(tests.column[test], tests.column[test] + tests.each):
            code = rows[i, c]
            if order[i] < 0 or code < 0:
                continue
            if count[code] == 0:
                work[touched] = code
                touched += 1
            count[code] += 1
    return touched


@bare_kernel
def decide(tests: Tests, test: int, count: I64, work: I64, touched: int, size: int) -> bool:
    """Whether counts of the `touched` codes in `work` pass the test. The counts are zero afterwards."""
    kind, good = tests.kind[test], True
    if kind == DISTINCT:
        good = touched >= tests.l[test] if tests.each == 1 else uncovered(tests, test, count, work, touched, size)
    elif kind == FREQUENCY:
        for j in range(touched):
            good = good and count[work[j]] * tests.b[test] <= tests.a[test] * size
    elif kind == SHARES:
        base, first = tests.first_code[test], tests.first_slot[test]
        for j in range(touched):
            place = first + tests.slot[base + work[j]]
            good = good and count[work[j]] * tests.share_b[place] <= tests.share_a[place] * size
    elif kind == FLOORS:  # all l values of the table are there, and each reaches its least share
        base, first = tests.first_code[test], tests.first_slot[test]
        good = touched == tests.l[test]
        for j in range(touched):
            place = first + tests.slot[base + work[j]]
            good = good and count[work[j]] * tests.share_b[place] >= tests.share_a[place] * size
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


@bare_kernel
def uncovered(tests: Tests, test: int, count: I64, work: I64, touched: int, size: int) -> bool:
    """Whether the l - 1 most frequent values together are linked to fewer than all `size` people.

    Then no l - 1 values are such that everybody has one of them. With one value for each, these are l different values.
    """
    sort_by(work, touched, count, ZERO)
    linked = 0
    for j in range(max(0, touched - tests.l[test] + 1), touched):
        linked += count[work[j]]
    return linked < size


@bare_kernel
def entropy_reaches(tests: Tests, test: int, count: I64, work: I64, touched: int, size: int) -> bool:
    """Entropy of at least log(a/b). Ties are accepted only where they are certain."""
    low = high = count[work[0]]
    sum_logs = 0.0
    for j in range(touched):
        n = count[work[j]]
        low, high = min(low, n), max(high, n)
        sum_logs += n * np.log(n)
    if low == high:
        return touched * tests.b[test] >= tests.a[test]
    surplus = np.log(size) - sum_logs / size - np.log(tests.a[test] / tests.b[test])
    if surplus > 1e-9 or surplus < -1e-9 or size > TIES:
        return surplus > 1e-9
    return entropy_ties(tests.a[test], tests.b[test], count, work, touched, size)


@bare_kernel
def entropy_ties(a: int, b: int, count: I64, work: I64, touched: int, size: int) -> bool:
    """Whether size^size * b^size = a^size * product of n^n over the counts: each prime occurs alike on both sides."""
    for p in range(2, size + 1):
        prime = True
        for q in range(2, p):
            if q * q > p or not prime:
                break
            prime = p % q != 0
        if not prime:
            continue
        balance = size * (times(size, p) + times(b, p) - times(a, p))
        for j in range(touched):
            balance -= count[work[j]] * times(count[work[j]], p)
        if balance != 0:
            return False
        a //= p ** times(a, p)
        b //= p ** times(b, p)
    return a == 1 and b == 1


@bare_kernel
def times(n: int, p: int) -> int:
    """How often p divides n."""
    count = 0
    while n % p == 0:
        n //= p
        count += 1
    return count


@bare_kernel
def sort_by(numbers: NDArray[Any], n: int, key: NDArray[Any], base: int) -> None:
    """Put the first n numbers in order of key[base + number], by Shell's method: in place, and mostly n is small."""
    gap = n // 2
    while gap > 0:
        for j in range(gap, n):
            number, place = numbers[j], j
            while place >= gap and key[base + numbers[place - gap]] > key[base + number]:
                numbers[place] = numbers[place - gap]
                place -= gap
            numbers[place] = number
        gap = 1 if gap == 2 else gap * 5 // 11


@bare_kernel
def recursive_holds(tests: Tests, test: int, count: I64, work: I64, touched: int) -> bool:
    """Most frequent count < a/b times the sum of the l-th and rarer counts."""
    if touched < tests.l[test]:
        return False
    sort_by(work, touched, count, ZERO)
    tail = 0
    for j in range(touched - tests.l[test] + 1):
        tail += count[work[j]]
    return count[work[touched - 1]] * tests.b[test] < tests.a[test] * tail


@bare_kernel
def few_are_near(tests: Tests, test: int, count: I64, work: I64, touched: int, size: int) -> bool:
    """Around each value present, at most size/l rows are near."""
    first, base, slot = tests.first_slot[test], tests.first_code[test], tests.slot
    sort_by(work, touched, slot, base)
    begin = end = near = 0
    for j in range(touched):  # two fingers over the values present, in order
        here = first + slot[base + work[j]]
        while end < touched and slot[base + work[end]] <= tests.near_hi[here]:
            near += count[work[end]]
            end += 1
        while slot[base + work[begin]] < tests.near_lo[here]:
            near -= count[work[begin]]
            begin += 1
        if near * tests.l[test] > size:
            return False
    return True


@bare_kernel
def distance_within(tests: Tests, test: int, count: I64, work: I64, touched: int, size: int) -> bool:
    """Earth mover's distance to the whole table of at most a/b, in whole numbers where they fit."""
    moved, unit, rows = distance(tests, test, count, work, touched, size)
    limit = float(tests.a[test]) * unit * size * rows
    if limit < SAFE and float(moved) * tests.b[test] < SAFE:
        return moved * tests.b[test] <= tests.a[test] * unit * size * rows
    return float(moved) * tests.b[test] <= limit * (1 - 1e-12)


@bare_kernel
def distance(tests: Tests, test: int, count: I64, work: I64, touched: int, size: int) -> tuple[int, int, int]:
    """Earth mover's distance to the whole table: what is moved, to be divided by the unit, the size and all rows.

    A value's excess is what the group has too much of it, times the rows of the group and of the table.
    """
    first, last, kind = tests.first_slot[test], tests.first_slot[test + 1], tests.kind[test]
    base, rows = tests.first_code[test], ZERO
    for j in range(first, last):
        rows += tests.total[j]
    unit = 2 if kind == EMD_EQUAL else max(1, last - first - 1)
    moved = carried = place = 0
    if kind == EMD_TREE:
        moved = tree_work(tests, test, count, work, touched, size, rows)
        unit = max(1, tests.node_height[tests.first_node[test]])
    else:
        sort_by(work, touched, tests.slot, base)
        for j in range(last - first):
            excess = -tests.total[first + j] * size
            while place < touched and tests.slot[base + work[place]] == j:
                excess += count[work[place]] * rows
                place += 1
            carried += excess
            moved += abs(excess if kind == EMD_EQUAL else carried)
    return moved, unit, rows


@allocating_kernel
def tree_work(tests: Tests, test: int, count: I64, work: I64, touched: int, size: int, rows: int) -> int:
    """The excess that must cross each inner node, times the node's height."""
    base, first = tests.first_node[test], tests.first_slot[test]
    nodes = tests.first_node[test + 1] - base
    net = np.zeros(nodes, dtype=np.int64)
    gain = np.zeros(nodes, dtype=np.int64)  # what the children have too much,
    lack = np.zeros(nodes, dtype=np.int64)  # and too little
    for j in range(first, tests.first_slot[test + 1]):
        net[tests.leaf_node[j]] = -tests.total[j] * size
    for j in range(touched):
        net[tests.leaf_node[first + tests.slot[tests.first_code[test] + work[j]]]] += count[work[j]] * rows
    effort = 0
    for v in range(nodes - 1, 0, -1):  # children come after their parents
        effort += tests.node_height[base + v] * min(gain[v], lack[v])
        p = tests.node_parent[base + v]
        net[p] += net[v]
        if net[v] > 0:
            gain[p] += net[v]
        else:
            lack[p] -= net[v]
    return effort + tests.node_height[base] * min(gain[0], lack[0])
