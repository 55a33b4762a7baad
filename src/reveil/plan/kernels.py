"""Cutting for planners that bring tests of their own (`spend`, `robust`): the hot loops, on arrays only.

Mondrian itself cuts with `candidates` and `cuts`, which are faster and lose less. Hierarchies as one set of arrays, and
names for the tests of `values`, are here for all planners.

A *segment* is a run of rows that still belong together. Rows are moved physically when a segment is cut, so that every
segment, and in the end every group, is contiguous in memory. Nothing here knows names, files or policies.

All functions release the interpreter lock and compile once per machine (cached). With NUMBA_DISABLE_JIT=1 they run as
plain Python; the tests compare the two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reveil.plan.values import (
    DISTINCT,
    EMD_EQUAL,
    EMD_ORDERED,
    EMD_TREE,
    ENTROPY,
    FREQUENCY,
    I32,
    I64,
    NEARNESS,
    RECURSIVE,
    Tests,
    admits,
    admits_values,
)

__all__ = [
    "CANDIDATES",
    "DISTINCT",
    "EMD_EQUAL",
    "EMD_ORDERED",
    "EMD_TREE",
    "ENTROPY",
    "EXACT_BELOW",
    "F64",
    "FREQUENCY",
    "I32",
    "I64",
    "NEARNESS",
    "RECURSIVE",
    "WEIGHED",
    "Tests",
    "Trees",
    "admits",
    "admits_values",
    "find_cuts",
    "halve",
    "partition",
    "run_cost",
    "segment_cost",
    "split",
    "weigh",
]

F64 = NDArray[np.float64]

EXACT_BELOW = 256  # segments up to this size weigh cuts by the loss of all columns, larger ones by the cut column
CANDIDATES = 4  # cuts kept per column and segment
WEIGHED = 1  # of these, how many are weighed exactly; the others are tried only when those fail
# How much of a segment's size a cut uses up: the entropy of its two shares, by the smaller in 1/2048ths of the whole.
SPREAD = np.array([-(q * np.log(q) + (1 - q) * np.log(1 - q)) for q in (np.arange(1025) + 0.5) / 2049])


class Trees(NamedTuple):
    """The hierarchies of all quasi-identifiers, end to end. Node and leaf numbers are local to their column."""

    first: I64  # where the nodes of a column start; one more entry than columns
    lo: I32
    hi: I32
    parent: I32
    cost: F64
    first_leaf: I64
    leaf_node: I32
    scale: F64
    free: NDArray[np.bool_]  # any run of neighbours may be published
    missing: NDArray[np.bool_]  # position 0 is the missing value
    sets: bool  # columns that are not free publish the set of their values instead of a node
    weight: F64


@njit(cache=True, nogil=True)
def smallest_node(trees: Trees, c: int, a: int, b: int) -> int:
    """The smallest node of column c that covers positions a..b."""
    base = trees.first[c]
    v = trees.leaf_node[trees.first_leaf[c] + a]
    while trees.hi[base + v] < b or trees.lo[base + v] > a:
        v = trees.parent[base + v]
    return v


@njit(cache=True, nogil=True)
def run_cost(trees: Trees, c: int, a: int, b: int) -> float:
    """Loss of publishing positions a..b of column c as a run or as a node."""
    if trees.free[c] and not (trees.missing[c] and a == 0 and b > 0):
        base = trees.first_leaf[c]
        return trees.scale[base + b] - trees.scale[base + a]
    return trees.cost[trees.first[c] + smallest_node(trees, c, a, b)]


@njit(cache=True, nogil=True)
def segment_cost(trees: Trees, rows: I32, s: int, t: int, seen: I32) -> float:
    """Loss per row of publishing rows s..t as one group."""
    loss = 0.0
    for c in range(len(trees.free)):
        if trees.sets and not trees.free[c]:
            distinct = 0
            for i in range(s, t):
                if seen[rows[i, c]] == 0:
                    seen[rows[i, c]] = 1
                    distinct += 1
            for i in range(s, t):
                seen[rows[i, c]] = 0
            domain = trees.first_leaf[c + 1] - trees.first_leaf[c]
            loss += trees.weight[c] * (distinct - 1) / max(1, domain - 1)
        else:
            a = b = rows[s, c]
            for i in range(s + 1, t):
                p = rows[i, c]
                a = min(a, p)
                b = max(b, p)
            if a != b:
                loss += trees.weight[c] * run_cost(trees, c, a, b)
    return loss


@njit(cache=True, nogil=True)
def offer(
    best: F64, cuts: I64, c: int, kept: int, gain: float, a: int, b: int, inside: int, size: int, least: int
) -> int:
    """Keep a cut of column c among its best, by gain in relation to the size it uses up."""
    if gain <= 0:
        return kept
    small = max(min(inside, size - inside), min(least, size // 2))
    score = gain / SPREAD[small * 2048 // size]
    place = kept
    while place > 0 and best[c, place - 1] < score:
        place -= 1
    if place == CANDIDATES:
        return kept
    last = min(kept, CANDIDATES - 1)
    for j in range(last, place, -1):
        best[c, j] = best[c, j - 1]
        cuts[c, j] = cuts[c, j - 1]
    best[c, place] = score
    cuts[c, place, 0] = a
    cuts[c, place, 1] = b
    cuts[c, place, 2] = inside
    return min(kept + 1, CANDIDATES)


@njit(cache=True, nogil=True)
def find_cuts(
    trees: Trees,
    c: int,
    rows: I32,
    s: int,
    t: int,
    least: int,
    relaxed: bool,
    count: I64,
    work: I64,
    node_count: I64,
    best: F64,
    cuts: I64,
) -> int:
    """The best cuts of column c: rows with positions a..b against the others. Returns how many were found."""
    touched = 0
    low = high = rows[s, c]
    for i in range(s, t):
        p = rows[i, c]
        if count[p] == 0:
            work[touched] = p
            touched += 1
            low = min(low, p)
            high = max(high, p)
        count[p] += 1
    kept = 0
    if touched > 1:
        if trees.free[c]:
            kept = free_cuts(trees, c, low, high, touched, t - s, least, relaxed, count, work, best, cuts)
        else:
            kept = node_cuts(trees, c, low, high, touched, t - s, least, relaxed, count, work, node_count, best, cuts)
    for j in range(touched):
        count[work[j]] = 0
    return kept


@njit(cache=True, nogil=True)
def free_cuts(
    trees: Trees,
    c: int,
    low: int,
    high: int,
    touched: int,
    size: int,
    least: int,
    relaxed: bool,
    count: I64,
    work: I64,
    best: F64,
    cuts: I64,
) -> int:
    if high - low < 4 * touched:
        touched = 0
        for p in range(low, high + 1):
            if count[p] > 0:
                work[touched] = p
                touched += 1
    elif touched > 64:
        work[:touched].sort()
    else:  # by insertion: the library's sort costs more to call than to run on a handful of values
        for j in range(1, touched):
            p, place = work[j], j
            while place > 0 and work[place - 1] > p:
                work[place] = work[place - 1]
                place -= 1
            work[place] = p
    before = size * run_cost(trees, c, low, high)
    left, kept = 0, 0
    for j in range(touched - 1):
        left += count[work[j]]
        smaller = min(left, size - left)
        if smaller < least and not relaxed:
            continue
        after = left * run_cost(trees, c, low, work[j]) + (size - left) * run_cost(trees, c, work[j + 1], high)
        gain = trees.weight[c] * (before - after) * (1.0 if smaller >= least else (size - least) / size)
        kept = offer(best, cuts, c, kept, gain, low, work[j], left, size, least)
    return kept


@njit(cache=True, nogil=True)
def node_cuts(
    trees: Trees,
    c: int,
    low: int,
    high: int,
    touched: int,
    size: int,
    least: int,
    relaxed: bool,
    count: I64,
    work: I64,
    node_count: I64,
    best: F64,
    cuts: I64,
) -> int:
    base = trees.first[c]
    top = smallest_node(trees, c, low, high)
    domain = max(1, trees.first_leaf[c + 1] - trees.first_leaf[c] - 1)
    nodes, children = touched, 0
    # node_count[v] = rows below v, node_count[offset + v] = distinct leaves below v; work[touched:] lists the nodes.
    offset = len(node_count) // 2
    for j in range(touched):
        p = work[j]
        v = trees.leaf_node[trees.first_leaf[c] + p]
        while v != top:
            if node_count[v] == 0:
                work[nodes] = v
                nodes += 1
                children += trees.parent[base + v] == top
            node_count[v] += count[p]
            node_count[offset + v] += 1
            v = trees.parent[base + v]
    whole = (touched - 1) / domain if trees.sets else trees.cost[base + top]
    kept = 0
    for j in range(touched, nodes):
        v = work[j]
        inside = node_count[v]
        smaller = min(inside, size - inside)
        if smaller >= least or relaxed:
            if trees.sets:
                mine = (node_count[offset + v] - 1) / domain
                others = (touched - node_count[offset + v] - 1) / domain
            else:
                mine = trees.cost[base + v]
                others = whole
                if children == 2 and trees.parent[base + v] == top:
                    others = other_child_cost(trees, c, top, v, node_count, work, touched, nodes)
            gain = trees.weight[c] * (size * whole - inside * mine - (size - inside) * others)
            if smaller < least:
                gain = gain * (size - least) / size if inside > size - inside or trees.sets else 0.0
            a, b = trees.lo[base + v], trees.hi[base + v]
            kept = offer(best, cuts, c, kept, gain, a, b, inside, size, least)
    for j in range(touched, nodes):
        node_count[work[j]] = 0
        node_count[offset + work[j]] = 0
    return kept


@njit(cache=True, nogil=True)
def other_child_cost(
    trees: Trees, c: int, top: int, v: int, node_count: I64, work: I64, touched: int, nodes: int
) -> float:
    base = trees.first[c]
    for j in range(touched, nodes):
        u = work[j]
        if u != v and trees.parent[base + u] == top:
            return trees.cost[base + u]
    return 0.0


@njit(cache=True, nogil=True)
def halve(trees: Trees, c: int, rows: I32, s: int, t: int, count: I64) -> int:
    """A position that divides column c near the middle, between two children of its smallest node.

    Many values of few rows each would otherwise be cut off one by one, each time passing over the whole segment.
    """
    low = high = rows[s, c]
    for i in range(s, t):
        p = rows[i, c]
        count[p] += 1
        low = min(low, p)
        high = max(high, p)
    top = smallest_node(trees, c, low, high)
    left, cut, distance = 0, -1, t - s
    for p in range(low, high):
        left += count[p]
        child = trees.leaf_node[trees.first_leaf[c] + p]
        while trees.parent[trees.first[c] + child] != top:
            child = trees.parent[trees.first[c] + child]
        if trees.hi[trees.first[c] + child] == p and abs(2 * left - (t - s)) < distance and left > 0:
            distance = abs(2 * left - (t - s))
            cut = p
    for p in range(low, high + 1):
        count[p] = 0
    return cut


@njit(cache=True, nogil=True)
def weigh(trees: Trees, rows: I32, s: int, t: int, c: int, a: int, b: int, least: int, box: I32, seen: I32) -> float:
    """Loss of all columns if rows s..t are cut into positions a..b of column c and the others."""
    columns = len(trees.free)
    inside = 0
    for j in range(columns):
        box[0, j] = box[2, j] = 2**31 - 1
        box[1, j] = box[3, j] = -1
    for i in range(s, t):
        side = 2
        if a <= rows[i, c] <= b:
            side = 0
            inside += 1
        for j in range(columns):
            p = rows[i, j]
            box[side, j] = min(box[side, j], p)
            box[side + 1, j] = max(box[side + 1, j], p)
    outside = t - s - inside
    ins = outs = 0.0
    for j in range(columns):
        if trees.sets and not trees.free[j]:
            continue
        ins += trees.weight[j] * run_cost(trees, j, box[0, j], box[1, j])
        outs += trees.weight[j] * run_cost(trees, j, box[2, j], box[3, j])
    if trees.sets:
        ins += distinct_cost(trees, rows, s, t, c, a, b, True, seen)
        outs += distinct_cost(trees, rows, s, t, c, a, b, False, seen)
    # The short side of a relaxed cut takes rows from the other; what they will cost is not known yet: count all as now.
    if inside < least:
        return ins * least + outs * (t - s - least)
    if outside < least:
        return outs * least + ins * (t - s - least)
    return ins * inside + outs * outside


@njit(cache=True, nogil=True)
def distinct_cost(trees: Trees, rows: I32, s: int, t: int, c: int, a: int, b: int, inside: bool, seen: I32) -> float:
    loss = 0.0
    for j in range(len(trees.free)):
        if trees.free[j]:
            continue
        distinct = 0
        for i in range(s, t):
            if (a <= rows[i, c] <= b) == inside and seen[rows[i, j]] == 0:
                seen[rows[i, j]] = 1
                distinct += 1
        for i in range(s, t):
            seen[rows[i, j]] = 0
        domain = trees.first_leaf[j + 1] - trees.first_leaf[j]
        loss += trees.weight[j] * (distinct - 1) / max(1, domain - 1)
    return loss


@njit(cache=True, nogil=True)
def partition(rows: I32, order: I64, s: int, t: int, c: int, a: int, b: int, spare: I32, spare_order: I64) -> int:
    """Move rows with positions a..b of column c to the front of s..t, keeping their order. Returns where they end."""
    front, back, width = s, 0, rows.shape[1]
    for i in range(s, t):
        if a <= rows[i, c] <= b:
            for j in range(width):
                rows[front, j] = rows[i, j]
            order[front] = order[i]
            front += 1
        else:
            for j in range(width):
                spare[back, j] = rows[i, j]
            spare_order[back] = order[i]
            back += 1
    for i in range(back):
        for j in range(width):
            rows[front + i, j] = spare[i, j]
        order[front + i] = spare_order[i]
    return front


@njit(cache=True, nogil=True)
def lend(trees: Trees, rows: I32, order: I64, s: int, cut: int, t: int, least: int, box: I32) -> int:
    """Fill the shorter of s..cut and cut..t up to `least` rows with the nearest of the other. Returns the new cut."""
    columns = len(trees.free)
    short_first = cut - s < t - cut
    a, b = (s, cut) if short_first else (cut, t)
    for j in range(columns):
        box[0, j] = 2**31 - 1
        box[1, j] = -1
        for i in range(a, b):
            box[0, j] = min(box[0, j], rows[i, j])
            box[1, j] = max(box[1, j], rows[i, j])
    while min(cut - s, t - cut) < least:
        x, y = (cut, t) if short_first else (s, cut)
        nearest, lowest = x, np.inf
        for i in range(x, y):
            cost = 0.0
            for j in range(columns):
                p = rows[i, j]
                if p < box[0, j] or p > box[1, j]:
                    cost += trees.weight[j] * run_cost(trees, j, min(p, box[0, j]), max(p, box[1, j]))
                else:
                    cost += trees.weight[j] * run_cost(trees, j, box[0, j], box[1, j])
                if cost >= lowest:
                    break
            if cost < lowest:
                nearest, lowest = i, cost
        edge = cut if short_first else cut - 1
        for j in range(rows.shape[1]):
            rows[nearest, j], rows[edge, j] = rows[edge, j], rows[nearest, j]
        order[nearest], order[edge] = order[edge], order[nearest]
        for j in range(columns):
            box[0, j] = min(box[0, j], rows[edge, j])
            box[1, j] = max(box[1, j], rows[edge, j])
        cut += 1 if short_first else -1
    return cut


@njit(cache=True, nogil=True)
def split(
    trees: Trees, tests: Tests, rows: I32, order: I64, start: int, end: int, stop: int, relaxed: bool, withhold: int
) -> tuple[I64, I64]:
    """Cut rows start..end into groups, top down, each cut the one that loses least.

    Segments of at most `stop` rows are left as they are. Up to `withhold` rows may be withheld where that loses less
    than generalising others for their sake. Returns where the groups begin, and whether each is withheld.
    """
    columns = len(trees.free)
    widest = 1
    for c in range(columns):
        widest = max(widest, trees.first[c + 1] - trees.first[c])
    for test in range(len(tests.kind)):
        widest = max(widest, tests.first_code[test + 1] - tests.first_code[test])
    count = np.zeros(widest + 1, dtype=np.int64)
    work = np.zeros(2 * widest + 2, dtype=np.int64)
    node_count = np.zeros(2 * widest + 2, dtype=np.int64)
    seen = np.zeros(widest + 1, dtype=np.int32)
    best = np.zeros((columns, CANDIDATES))
    cuts = np.zeros((columns, CANDIDATES, 3), dtype=np.int64)
    box = np.zeros((4, columns), dtype=np.int32)
    spare = np.empty((end - start, rows.shape[1]), dtype=np.int32)
    spare_order = np.empty(end - start, dtype=np.int64)
    bounds = [start]
    dropped = [0]
    bounds.pop()
    dropped.pop()
    stack = [(start, end)]
    while len(stack) > 0:
        s, t = stack.pop()
        cut, drop = s, 0
        if t - s > stop and t - s >= 2 * tests.least:
            cut, drop = cut_segment(
                trees,
                tests,
                rows,
                order,
                s,
                t,
                relaxed,
                withhold,
                count,
                work,
                node_count,
                seen,
                best,
                cuts,
                box,
                spare,
                spare_order,
            )
        if cut == s:
            bounds.append(s)
            dropped.append(0)
        elif drop > 0:  # the rows behind the cut are withheld
            withhold -= drop
            bounds.append(cut)
            dropped.append(1)
            stack.append((s, cut))
        else:
            stack.append((s, cut))
            stack.append((cut, t))
    return np.array(bounds), np.array(dropped)


@njit(cache=True, nogil=True)
def cut_segment(
    trees: Trees,
    tests: Tests,
    rows: I32,
    order: I64,
    s: int,
    t: int,
    relaxed: bool,
    withhold: int,
    count: I64,
    work: I64,
    node_count: I64,
    seen: I32,
    best: F64,
    cuts: I64,
    box: I32,
    spare: I32,
    spare_order: I64,
) -> tuple[int, int]:
    """Cut rows s..t in two, in place. Returns where (s: not at all) and how many rows behind the cut to withhold."""
    columns, size, least = len(trees.free), t - s, tests.least
    exact = size <= EXACT_BELOW
    loose = relaxed or withhold > 0
    now = segment_cost(trees, rows, s, t, seen) if exact or loose else 0.0
    for c in range(columns):
        best[c, :] = 0.0
        kept = find_cuts(trees, c, rows, s, t, least, loose, count, work, node_count, best, cuts)
        for j in range(kept if exact else 0):
            if j < WEIGHED:
                best[c, j] = now * size - weigh(trees, rows, s, t, c, cuts[c, j, 0], cuts[c, j, 1], least, box, seen)
            else:
                best[c, j] *= 1e-9
    while True:
        c, j = 0, 0
        for x in range(columns):
            for y in range(CANDIDATES):
                if best[x, y] > best[c, j]:
                    c, j = x, y
        if best[c, j] <= 0:
            return s, 0
        best[c, j] = 0.0
        a, b, inside = cuts[c, j]
        if 8 * inside < size and size > EXACT_BELOW and not trees.free[c]:
            middle = halve(trees, c, rows, s, t, count)
            if middle >= 0:
                a, b = 0, middle
        cut = partition(rows, order, s, t, c, a, b, spare, spare_order)
        short = min(cut - s, t - cut) < least
        if short and withhold > 0:
            cut, drop = try_withholding(
                trees, tests, rows, order, s, cut, t, now, relaxed, withhold, count, work, seen, box, spare, spare_order
            )
            if drop > 0:
                return cut, drop
        if short and relaxed:
            cut = lend(trees, rows, order, s, cut, t, least, box)
            after = (cut - s) * segment_cost(trees, rows, s, cut, seen)
            after += (t - cut) * segment_cost(trees, rows, cut, t, seen)
            if after >= now * size - 1e-9:
                continue
        if admits(tests, rows, order, s, cut, count, work) and admits(tests, rows, order, cut, t, count, work):
            return cut, 0


@njit(cache=True, nogil=True)
def try_withholding(
    trees: Trees,
    tests: Tests,
    rows: I32,
    order: I64,
    s: int,
    cut: int,
    t: int,
    now: float,
    relaxed: bool,
    withhold: int,
    count: I64,
    work: I64,
    seen: I32,
    box: I32,
    spare: I32,
    spare_order: I64,
) -> tuple[int, int]:
    """Withhold the short side of a cut if that loses less than keeping it. Returns the cut and the rows withheld."""
    if cut - s < t - cut:  # bring the short side to the back
        front = cut - s
        spare[:front] = rows[s:cut]
        spare_order[:front] = order[s:cut]
        for i in range(cut, t):
            rows[i - front] = rows[i]
            order[i - front] = order[i]
        rows[t - front : t] = spare[:front]
        order[t - front : t] = spare_order[:front]
        cut = t - front
    drop = t - cut
    if drop > withhold or not admits(tests, rows, order, s, cut, count, work):
        return cut, 0
    total = 0.0
    for c in range(len(trees.free)):
        total += trees.weight[c]
    without = (cut - s) * segment_cost(trees, rows, s, cut, seen) + drop * total
    kept = now * (t - s)
    if relaxed:  # the alternative is to let the short side take `least` rows along
        kept = (t - s - tests.least) * segment_cost(trees, rows, s, cut, seen) + tests.least * now
    return cut, drop if without < kept else 0
