"""Forward and backward through everybody's update graph: the hot loops.

Sums are kept in floats, and in whole numbers as long as 63 bits reach.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveil.base.arrays import F64, I64
from reveil.base.kernels import kernel

LARGEST = 2**26  # of a forward or backward sum that is kept exactly: a product of two and a sum of these fit 63 bits
WIDEST = 2**10  # values of a group
TINY = 1e-120  # what is possible stays positive, however unlikely


class Nodes(NamedTuple):
    """The nodes of everybody's graph: `Chains`, and where the nodes of each entry start."""

    first: I64
    group: I64
    start: I64
    value: I64
    rows: I64
    node: I64


class Updates(NamedTuple):
    """The edges between values: weight / total of the value that is left, in floats and, scaled, in whole numbers."""

    weights: I64
    totals: I64
    scale: I64


class Sums(NamedTuple):
    """Weights of the ways that end in each node of one entry, in floats and in whole numbers."""

    floats: F64
    whole: I64


class Shares(NamedTuple):
    """What the walks find out, as in `Risks`."""

    possible: I64
    highest: F64
    numerator: I64
    denominator: I64
    chance: F64


@kernel
def reduce(numbers: I64, count: int) -> int:
    """Divide whole numbers by what they have in common; returns the largest."""
    common = largest = np.int64(0)
    for i in range(count):
        a, b = numbers[i], common
        while b:
            a, b = b, a % b
        common = a
    if common > 1:
        for i in range(count):
            numbers[i] //= common
    for i in range(count):
        largest = max(largest, numbers[i])
    return int(largest)


@kernel
def step(nodes: Nodes, updates: Updates, e: int, f: int, sums: Sums, spare: Sums) -> None:
    """From the sums over the nodes of entry e to those of f, one release later or earlier."""
    value, weights = nodes.value, updates.weights
    a, b = nodes.start[nodes.group[e]], nodes.start[nodes.group[f]]
    na, nb = nodes.start[nodes.group[e] + 1] - a, nodes.start[nodes.group[f] + 1] - b
    for j in range(nb):
        total, count = 0.0, np.int64(0)
        for i in range(na):
            u, v = (value[b + j], value[a + i]) if f < e else (value[a + i], value[b + j])
            if weights[u, v]:
                total += sums.floats[i] * weights[u, v] / updates.totals[u]
                count += sums.whole[i] * weights[u, v] * updates.scale[u]
        spare.floats[j], spare.whole[j] = total, count
    for j in range(nb):
        sums.floats[j], sums.whole[j] = spare.floats[j], spare.whole[j]


@kernel
def open_ways(nodes: Nodes, e: int, sums: Sums) -> None:
    """One way to each node of an entry. By a loop: Numba 0.68 may leave out slices of arrays in named tuples."""
    for j in range(nodes.start[nodes.group[e] + 1] - nodes.start[nodes.group[e]]):
        sums.floats[j], sums.whole[j] = 1.0, 1


@kernel
def weigh(nodes: Nodes, e: int, both: Sums) -> bool:
    """Multiply by the rows of each node of an entry and keep numbers small. Returns whether all is still exact."""
    a, rows, sums, whole = nodes.start[nodes.group[e]], nodes.rows, both.floats, both.whole
    count = nodes.start[nodes.group[e] + 1] - a
    total, most = 0.0, np.int64(1)
    for i in range(count):
        sums[i] *= rows[a + i]
        total += sums[i]
        most = max(most, rows[a + i])
    for i in range(count):
        if sums[i] > 0:
            sums[i] = max(sums[i] / total, TINY)
    exact = count <= WIDEST and reduce(whole, count) <= LARGEST // most
    for i in range(count):
        whole[i] = whole[i] * rows[a + i] if exact else 0
    return bool(exact)


@kernel
def walk(nodes: Nodes, updates: Updates, widest: int, shares: Shares) -> None:
    """Forward and backward through each person's graph. No entry has more nodes than `widest`."""
    first, group, start, node = nodes.first, nodes.group, nodes.start, nodes.node
    possible, highest, numerator, denominator, chance = shares
    both = Sums(np.zeros(widest), np.zeros(widest, np.int64))
    spare = Sums(np.zeros(widest), np.zeros(widest, np.int64))
    sums, whole = both
    forward, forward_whole = np.zeros(1), np.zeros(1, np.int64)
    for p in range(len(first) - 1):
        begin, end = first[p], first[p + 1]
        if begin == end:
            continue
        last = start[group[end - 1] + 1] - start[group[end - 1]]
        needed = node[end - 1] + last - node[begin]
        if needed > len(forward):
            forward, forward_whole = np.zeros(2 * needed), np.zeros(2 * needed, np.int64)
        exact = updates.scale[0] > 0 or end - begin == 1
        for e in range(begin, end):
            n = start[group[e] + 1] - start[group[e]]
            if e == begin:
                open_ways(nodes, e, both)
            else:
                step(nodes, updates, e - 1, e, both, spare)
            exact = weigh(nodes, e, both) and exact
            place = node[e] - node[begin]
            forward[place : place + n], forward_whole[place : place + n] = sums[:n], whole[:n]
        for e in range(end - 1, begin - 1, -1):
            n = start[group[e] + 1] - start[group[e]]
            if e == end - 1:
                open_ways(nodes, e, both)
            else:
                exact = weigh(nodes, e + 1, both) and exact
                step(nodes, updates, e + 1, e, both, spare)
                exact = reduce(whole, n) <= LARGEST and exact
            total, count, place = 0.0, np.int64(0), node[e] - node[begin]
            for i in range(n):
                total += forward[place + i] * sums[i]
                count += forward_whole[place + i] * whole[i] if exact else 0
            for i in range(n):
                share = forward[place + i] * sums[i]
                possible[e] += share > 0
                chance[node[e] + i] = share / total if total > 0 else 0.0
                highest[e] = max(highest[e], chance[node[e] + i])
                if exact:
                    numerator[e] = max(numerator[e], forward_whole[place + i] * whole[i])
            denominator[e] = count
        if not exact:
            for e in range(begin, end):
                numerator[e], denominator[e] = 0, 0
