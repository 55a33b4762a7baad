"""After the cuts: single rows move to a group near by where that lowers the loss of both groups together."""

from __future__ import annotations

import numpy as np

from reveil.plan.kernels import F64, I32, I64, Rows, Trees, kernel, run_cost
from reveil.plan.values import Tests, admits


@kernel
def repair(
    trees: Trees, tests: Tests, rows: Rows, order: I32, bounds: I64, gone: I64, window: int
) -> tuple[I64, int]:
    """Move single rows to a group near by where that lowers the loss of both groups together.

    Groups that are gone (withheld) take no part. Returns the group of each row of the segment bounds[0]..bounds[-1], and
    how many rows moved.
    """
    columns, groups, origin = len(trees.free), len(bounds) - 1, bounds[0]
    n = bounds[groups] - origin
    group = np.empty(n, dtype=np.int64)
    size = np.empty(groups, dtype=np.int64)
    cost = np.empty(groups)
    low = np.empty((groups, columns), dtype=np.int32)
    high = np.empty((groups, columns), dtype=np.int32)
    head = np.empty(groups, dtype=np.int64)  # the rows of a group as a linked list
    after = np.empty(n, dtype=np.int64)
    for g in range(groups):
        head[g] = -1
        size[g] = bounds[g + 1] - bounds[g]
        for i in range(bounds[g] - origin, bounds[g + 1] - origin):
            group[i] = g
            after[i] = head[g]
            head[g] = i
        bound_group(rows, origin, head[g], -1, after, low[g], high[g])
        cost[g] = np.inf if gone[g] else box_cost(trees, low[g], high[g])
    moved = 0
    a = np.empty(columns, dtype=np.int32)
    b = np.empty(columns, dtype=np.int32)
    for g in range(groups):
        i = -1 if gone[g] else head[g]
        while i >= 0:
            following = after[i]
            if size[g] > tests.least and cost[g] > 0:
                bound_group(rows, origin, head[g], i, after, a, b)
                lower = box_cost(trees, a, b)
                saved = cost[g] * size[g] - lower * (size[g] - 1)
                h, new_cost = best_home(trees, rows[origin + i], g, saved, window, low, high, cost, size)
                if h >= 0 and still_admitted(tests, rows, order, origin, head, after, g, h, i, size):
                    unlink(head, after, g, i)
                    after[i] = head[h]
                    head[h] = i
                    group[i] = h
                    size[g] -= 1
                    size[h] += 1
                    cost[g], cost[h] = lower, new_cost
                    low[g], high[g] = a, b
                    for c in range(columns):
                        low[h, c] = min(low[h, c], rows[origin + i, c])
                        high[h, c] = max(high[h, c], rows[origin + i, c])
                    moved += 1
            i = following
    return group, moved


@kernel
def bound_group(rows: Rows, origin: int, first: int, without: int, after: I64, low: I32, high: I32) -> None:
    """The smallest and largest position in each column over a linked list of rows, one of them left out."""
    for c in range(len(low)):
        low[c] = 2**31 - 1
        high[c] = -1
    i = first
    while i >= 0:
        if i != without:
            for c in range(len(low)):
                p = rows[origin + i, c]
                low[c] = min(low[c], p)
                high[c] = max(high[c], p)
        i = after[i]


@kernel
def box_cost(trees: Trees, low: I32, high: I32) -> float:
    loss = 0.0
    for c in range(len(low)):
        if low[c] != high[c]:
            loss += trees.weight[c] * run_cost(trees, c, low[c], high[c])
    return loss


@kernel
def best_home(
    trees: Trees, row: Rows, g: int, saved: float, window: int, low: I32, high: I32, cost: F64, size: I64
) -> tuple[int, float]:
    """The group near g where the row costs least, if less than `saved`; -1 otherwise. Also that group's new cost."""
    home, home_cost, profit = -1, 0.0, 1e-9
    for h in range(max(0, g - window), min(len(cost), g + window + 1)):
        if h == g or cost[h] >= saved:
            continue
        loss, bearable = 0.0, (saved - profit + cost[h] * size[h]) / (size[h] + 1)
        for c in range(len(trees.free)):
            a, b = min(low[h, c], row[c]), max(high[h, c], row[c])
            if a != b:
                loss += trees.weight[c] * run_cost(trees, c, a, b)
            if loss >= bearable:
                break
        gain = saved - (loss * (size[h] + 1) - cost[h] * size[h])
        if gain > profit:
            home, home_cost, profit = h, loss, gain
    return home, home_cost


@kernel
def still_admitted(
    tests: Tests, rows: Rows, order: I32, origin: int, head: I64, after: I64, g: int, h: int, row: int, size: I64
) -> bool:
    """Whether group g without the row, and group h with it, pass all tests."""
    if len(tests.kind) == 0:
        return True  # sizes were looked at already
    widest = 1
    for test in range(len(tests.kind)):
        widest = max(widest, tests.first_code[test + 1] - tests.first_code[test])
    count = np.zeros(widest + 1, dtype=np.int64)
    work = np.zeros(widest + 1, dtype=np.int64)
    members = np.empty((max(size[g], size[h] + 1), rows.shape[1]), dtype=np.int32)
    numbers = np.zeros(len(members), dtype=np.int64)
    for source in (g, h):
        n = 0
        i = head[source]
        while i >= 0:
            if i != row:
                members[n] = rows[origin + i]
                n += 1
            i = after[i]
        if source == h:
            members[n] = rows[origin + row]
            n += 1
        if not admits(tests, members, numbers, 0, n, count, work):
            return False
    return True


@kernel
def unlink(head: I64, after: I64, g: int, row: int) -> None:
    if head[g] == row:
        head[g] = after[row]
        return
    i = head[g]
    while after[i] != row:
        i = after[i]
    after[i] = after[row]
