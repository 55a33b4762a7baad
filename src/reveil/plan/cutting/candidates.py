"""Where a segment could be cut, and what each cut would save. On arrays only.

A cut parts the rows under one node of a hierarchy (or one run of a free column) from the others. In large segments it
is scored by the loss of its own column; in small ones by that of all columns, because there the others shrink with it.
Most segments have a handful of rows, so what counts is the fixed price of a segment: few calls, no allocation, few
branches that cannot be foretold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveil.base.arrays import F64, I32, I64
from reveil.base.kernels import bare_kernel
from reveil.plan.cutting.trees import RUN, RUN_BUT_MISSING, SET, Trees, run_loss, smallest_node
from reveil.plan.cutting.values import ZERO, Rows, Tests, room_for, sort_by

EXACT_BELOW = 1024  # segments up to this size weigh cuts by the loss of all columns, larger ones by the cut column
CANDIDATES = 16  # cuts kept per column and segment: the first is weighed exactly, the others are tried if that fails
LANES = 64  # rows that one round of vector instructions handles; local copies are filled up to a multiple of it
# How much of a segment's size a cut uses up is the entropy of its two shares. Here its inverse, by the smaller share
# in 1/2048ths of the whole.
THRIFT = np.array([-1 / (q * np.log(q) + (1 - q) * np.log(1 - q)) for q in (np.arange(1025) + 0.5) / 2049])


class Scratch(NamedTuple):
    """Memory that is allocated once and used for every segment. Counts are zero, between uses."""

    rows_at: I32  # each leaf of each column: how many
    present: I32  # positions that occur in one column, in order
    nodes: I32  # nodes above them
    below: I32  # rows [0] and distinct leaves [1] below a node
    mark: I32  # when a leaf was last seen inside [0] and outside [1] a cut
    clock: I64  # the time for `mark`
    low: Rows  # of each column
    high: Rows
    loss: F64  # of each column, per row
    best: F64  # score of the cuts of each column, best first
    cuts: Rows  # first and last position of each
    inside: I64  # rows between these
    local: Rows  # a small segment, by column
    tally: I64  # for the tests on sensitive values
    touched: I64


def scratch_for(trees: Trees, tests: Tests, rows: Rows) -> Scratch:
    """Scratch memory for cutting these rows."""
    columns, leaves, widest = len(trees.form), trees.first_leaf[-1], int(np.diff(trees.first).max(initial=1))
    tally, touched = room_for(tests)
    return Scratch(
        np.zeros(leaves, dtype=np.int32),
        np.zeros(widest + 1, dtype=np.int32),
        np.zeros(widest, dtype=np.int32),
        np.zeros((2, widest), dtype=np.int32),
        np.zeros((2, leaves), dtype=np.int32),
        np.zeros(1, dtype=np.int64),
        np.zeros(columns, dtype=rows.dtype),
        np.zeros(columns, dtype=rows.dtype),
        np.zeros(columns),
        np.zeros((columns, CANDIDATES)),
        np.zeros((columns, CANDIDATES, 2), dtype=rows.dtype),
        np.zeros((columns, CANDIDATES), dtype=np.int64),
        np.zeros((columns, EXACT_BELOW), dtype=rows.dtype),
        tally,
        touched,
    )


@bare_kernel
def bounds_of(rows: Rows, s: int, t: int, c: int) -> tuple[int, int]:
    """The lowest and highest position of column c in rows s..t."""
    a = b = rows[s, c]
    for i in range(s + 1, t):
        p = rows[i, c]
        a = p if p < a else a
        b = p if p > b else b
    return a, b


@bare_kernel
def segment_cost(trees: Trees, rows: Rows, s: int, t: int, seen: I32) -> float:
    """Loss per row of publishing rows s..t as one group."""
    loss = 0.0
    for c in range(len(trees.form)):
        if trees.form[c] != SET:
            a, b = bounds_of(rows, s, t, c)
            loss += run_loss(trees, c, a, b)
            continue
        distinct = 0
        for i in range(s, t):
            distinct += 1 - seen[rows[i, c]]
            seen[rows[i, c]] = 1
        for i in range(s, t):
            seen[rows[i, c]] = 0
        loss += (distinct - 1) * trees.step[c]
    return loss


@bare_kernel
def count_values(trees: Trees, rows: Rows, s: int, t: int, scratch: Scratch) -> None:
    """Rows at each leaf of every column, and the lowest and highest leaf of each."""
    count, first = scratch.rows_at, trees.first_leaf
    for i in range(s, t):  # all columns of a row at once: neighbouring increments then rarely wait for each other
        for c in range(len(trees.form)):
            count[first[c] + rows[i, c]] += 1
    find_ends(trees, rows, s, t, scratch)


@bare_kernel
def find_ends(trees: Trees, rows: Rows, s: int, t: int, scratch: Scratch) -> None:
    """The lowest and highest leaf of every column, whose rows are counted."""
    count, first = scratch.rows_at, trees.first_leaf
    for c in range(len(trees.form)):
        if first[c + 1] - first[c] > t - s:
            scratch.low[c], scratch.high[c] = bounds_of(rows, s, t, c)
            continue
        a, b = first[c], first[c + 1] - 1
        while count[a] == 0:
            a += 1
        while count[b] == 0:
            b -= 1
        scratch.low[c], scratch.high[c] = a - first[c], b - first[c]


@bare_kernel
def clear_counts(trees: Trees, rows: Rows, s: int, t: int, count: I32) -> None:
    """Undo `count_values`."""
    if t - s > len(count):
        count[:] = 0
        return
    for i in range(s, t):
        for c in range(len(trees.form)):
            count[trees.first_leaf[c] + rows[i, c]] = 0


@bare_kernel
def list_present(trees: Trees, c: int, rows: Rows, s: int, t: int, scratch: Scratch) -> int:
    """Put the positions of column c that occur into `present`, in order. Returns how many they are."""
    base, low, high = trees.first_leaf[c], int(scratch.low[c]), int(scratch.high[c])
    count, present = scratch.rows_at, scratch.present
    listed = ZERO
    if high - low <= 8 * (t - s):
        for p in range(low, high + 1):
            present[listed] = p
            listed += count[base + p] > 0
        return listed
    for i in range(s, t):  # a negative count says that the position is on the list
        p = rows[i, c]
        if count[base + p] > 0:
            count[base + p] = -count[base + p]
            present[listed] = p
            listed += 1
    sort_by(present, listed, trees.leaf_node, base)  # nodes are numbered in the order of their leaves
    for j in range(listed):
        count[base + present[j]] = -count[base + present[j]]
    return listed


@bare_kernel
def offer(scratch: Scratch, c: int, kept: int, score: float, a: int, b: int, inside: int) -> int:
    """Keep a cut of column c among its best. Returns how many are kept."""
    best, cuts = scratch.best, scratch.cuts
    place = kept
    while place > 0 and best[c, place - 1] < score:
        place -= 1
    if place == CANDIDATES or score <= 0:
        return kept
    for j in range(min(kept, CANDIDATES - 1), place, -1):
        best[c, j] = best[c, j - 1]
        cuts[c, j, 0] = cuts[c, j - 1, 0]
        cuts[c, j, 1] = cuts[c, j - 1, 1]
        scratch.inside[c, j] = scratch.inside[c, j - 1]
    best[c, place] = score
    cuts[c, place, 0] = a
    cuts[c, place, 1] = b
    scratch.inside[c, place] = inside
    return min(kept + 1, CANDIDATES)


@bare_kernel
def thrift(inside: int, size: int, least: int) -> float:
    """What a cut is worth in relation to the size it uses up. A short side will be filled up to `least` rows."""
    small = max(min(inside, size - inside), min(least, size // 2))
    return THRIFT[int(small * (2048.0 / size))]


@bare_kernel
def run_cuts(trees: Trees, c: int, count: int, size: int, least: int, loose: bool, scratch: Scratch) -> None:
    """The best cuts of a column whose runs are published: positions up to some value against the others."""
    base, present = trees.first_leaf[c], scratch.present
    low, high = present[0], present[count - 1]
    before = size * scratch.loss[c]
    left, kept = 0, ZERO
    for j in range(count - 1):
        left += scratch.rows_at[base + present[j]]
        short = min(left, size - left) < least
        if short and not loose:
            continue
        after = left * run_loss(trees, c, low, present[j]) + (size - left) * run_loss(trees, c, present[j + 1], high)
        gain = before - after
        if short:
            gain = gain * (size - least) / size
        score = gain * thrift(left, size, least)
        if kept < CANDIDATES or score > scratch.best[c, CANDIDATES - 1]:
            kept = offer(scratch, c, kept, score, low, present[j], left)


@bare_kernel
def node_cuts(trees: Trees, c: int, present: int, size: int, least: int, loose: bool, scratch: Scratch) -> None:
    """The best cuts of a column with a taxonomy: positions under one node against the others."""
    base, node, below, nodes, weight = trees.first[c], trees.node, scratch.below, scratch.nodes, trees.weight[c]
    top = smallest_node(trees, c, scratch.low[c], scratch.high[c])
    listed, children, sum_costs = 0, 0, 0.0  # of the children of `top`
    for j in range(present):
        p = scratch.present[j]
        v = trees.leaf_node[trees.first_leaf[c] + p]
        while v != top:
            if below[0, v] == 0:
                nodes[listed] = v
                listed += 1
                if node[base + v, 2] == top:
                    children += 1
                    sum_costs += weight * trees.cost[base + v]
            below[0, v] += scratch.rows_at[trees.first_leaf[c] + p]
            below[1, v] += 1
            v = node[base + v, 2]
    kept = ZERO
    for j in range(listed):
        v = nodes[j]
        inside = ZERO + below[0, v]
        short = min(inside, size - inside) < least
        if short and not loose:
            continue
        if trees.form[c] == SET:
            mine, others = (below[1, v] - 1) * trees.step[c], (present - below[1, v] - 1) * trees.step[c]
        else:  # without one of two children only the other is left
            alone = children == 2 and node[base + v, 2] == top
            mine = weight * trees.cost[base + v]
            others = sum_costs - mine if alone else weight * trees.cost[base + top]
        gain = size * scratch.loss[c] - inside * mine - (size - inside) * others
        if short:
            gain = gain * (size - least) / size if 2 * inside > size or trees.form[c] == SET else 0.0
        score = gain * thrift(inside, size, least)
        if kept < CANDIDATES or score > scratch.best[c, CANDIDATES - 1]:
            kept = offer(scratch, c, kept, score, node[base + v, 0], node[base + v, 1], inside)
    for j in range(listed):
        below[0, nodes[j]] = below[1, nodes[j]] = 0


@bare_kernel
def find_cuts(trees: Trees, rows: Rows, s: int, t: int, least: int, loose: bool, scratch: Scratch) -> float:
    """The best cuts of every column, each by the loss of its own column. Returns the loss per row without a cut."""
    count_values(trees, rows, s, t, scratch)
    return cuts_of_counted(trees, rows, s, t, t - s, least, loose, scratch)


@bare_kernel
def cuts_of_counted(
    trees: Trees, rows: Rows, s: int, t: int, size: int, least: int, loose: bool, scratch: Scratch
) -> float:
    """The same of a segment that is counted already, and stands for `size` people. The counts are zero afterwards."""
    now = 0.0
    for c in range(len(trees.form)):
        for j in range(CANDIDATES):
            scratch.best[c, j] = 0.0
        if scratch.low[c] == scratch.high[c]:
            continue
        present = list_present(trees, c, rows, s, t, scratch)
        if trees.form[c] == SET:
            scratch.loss[c] = (present - 1) * trees.step[c]
        else:
            scratch.loss[c] = run_loss(trees, c, scratch.low[c], scratch.high[c])
        now += scratch.loss[c]
        if trees.form[c] == RUN or trees.form[c] == RUN_BUT_MISSING:
            run_cuts(trees, c, present, size, least, loose, scratch)
        else:
            node_cuts(trees, c, present, size, least, loose, scratch)
    clear_counts(trees, rows, s, t, scratch.rows_at)
    return now


@bare_kernel
def weigh_cuts(trees: Trees, rows: Rows, s: int, t: int, now: float, least: int, scratch: Scratch) -> None:
    """Score the first cut of each column by what it saves in all columns; the others stay behind in reserve."""
    weigh_cuts_of(trees, rows, s, t, t - s, now, least, scratch)


@bare_kernel
def weigh_cuts_of(
    trees: Trees, rows: Rows, s: int, t: int, size: int, now: float, least: int, scratch: Scratch
) -> None:
    """The same where rows s..t stand for `size` people."""
    columns, lines, local, best = len(trees.form), t - s, scratch.local, scratch.best
    filled = (lines + LANES - 1) // LANES * LANES
    for j in range(columns):
        for i in range(lines):
            local[j, i] = rows[s + i, j]
        for i in range(lines, filled):  # the last row again changes no bounds
            local[j, i] = rows[t - 1, j]
    for c in range(columns):
        if best[c, 0] <= 0:
            continue
        inside = scratch.inside[c, 0]
        ins, outs = cost_of_sides(trees, c, lines, filled, scratch)
        # The short side of a relaxed cut takes rows from the other; what they will cost is not known: count all as now.
        if inside < least:
            inside = least
        elif size - inside < least:
            inside = size - least
        best[c, 0] = (now - outs) * size + (outs - ins) * inside
        for j in range(1, CANDIDATES):
            best[c, j] *= 1e-9


@bare_kernel
def cost_of_sides(trees: Trees, c: int, size: int, filled: int, scratch: Scratch) -> tuple[float, float]:
    """Loss per row inside and outside the first cut of column c, over all columns of the local copy."""
    local, a, b = scratch.local, scratch.cuts[c, 0, 0], scratch.cuts[c, 0, 1]
    ins = outs = 0.0
    for j in range(len(trees.form)):
        low, high = scratch.low[j], scratch.high[j]
        if low == high:
            continue
        if trees.form[j] == SET:
            n, m = distinct_sides(scratch, c, j, a, b, size, trees.first_leaf[j])
            ins += (n - 1) * trees.step[j]
            outs += (m - 1) * trees.step[j]
            continue
        in_low = out_low = high
        in_high = out_high = low
        for i in range(filled):  # without branches, so that it becomes a few vector instructions
            x, y = local[c, i], local[j, i]
            chosen = (x >= a) & (x <= b)
            y_low = y if chosen else high
            y_high = y if chosen else low
            z_low = high if chosen else y
            z_high = low if chosen else y
            in_low = y_low if y_low < in_low else in_low
            in_high = y_high if y_high > in_high else in_high
            out_low = z_low if z_low < out_low else out_low
            out_high = z_high if z_high > out_high else out_high
        ins += run_loss(trees, j, in_low, in_high)
        outs += run_loss(trees, j, out_low, out_high)
    return ins, outs


@bare_kernel
def distinct_sides(scratch: Scratch, c: int, j: int, a: int, b: int, size: int, base: int) -> tuple[int, int]:
    """How many different values column j has inside and outside positions a..b of column c."""
    local, mark, clock = scratch.local, scratch.mark, scratch.clock
    clock[0] += 1
    now, ins, both = clock[0], 0, 0
    for i in range(size):
        side = 0 if a <= local[c, i] <= b else 1
        fresh = mark[side, base + local[j, i]] != now
        mark[side, base + local[j, i]] = now
        both += fresh
        ins += fresh and side == 0
    return ins, both - ins


@bare_kernel
def best_cut(best: F64) -> tuple[int, int]:
    """Column and number of the cut with the highest score."""
    c, j = 0, 0
    for x in range(best.shape[0]):
        for y in range(best.shape[1]):
            if best[x, y] > best[c, j]:
                c, j = x, y
    return c, j
