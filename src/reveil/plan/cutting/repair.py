"""After the cuts: single rows move to a group near by where that lowers the loss of both groups together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveil.base.arrays import F64, I32, I64
from reveil.base.kernels import bare_kernel
from reveil.plan.cutting.trees import Trees, run_loss
from reveil.plan.cutting.values import ZERO, Rows, Tests, admits, room_for


class Groups(NamedTuple):
    """The groups of a part of the table while rows move between them."""

    of: I32  # the group of each row
    head: I32  # the rows of a group as a linked list: its first row,
    after: I32  # and the one after each; -1 at the end
    size: I32
    cost: F64  # loss per row; infinite where withheld
    low: Rows  # groups x columns
    high: Rows
    low_next: Rows  # the bounds without the row that sets them: what is left if that row moves away
    high_next: Rows
    members: Rows  # room for the rows of one group, their numbers, and counts for the tests
    numbers: I32
    tally: I64
    touched: I64


def repair(trees: Trees, tests: Tests, rows: Rows, bounds: I32, gone: I32, window: int) -> tuple[I32, int]:
    """Move single rows to one of the next `window` groups on either side, where that lowers the loss.

    Groups that are gone (withheld) take no part. Returns the group of each row from bounds[0] to bounds[-1], and how
    many rows moved.
    """
    columns, groups, n = len(trees.form), len(bounds) - 1, int(bounds[-1] - bounds[0])
    tally, touched = room_for(tests)
    box = [np.empty((groups, columns), dtype=rows.dtype) for _ in range(4)]
    state = Groups(
        of=np.repeat(np.arange(groups, dtype=np.int32), np.diff(bounds)),
        head=np.full(groups, -1, dtype=np.int32),
        after=np.full(n, -1, dtype=np.int32),
        size=np.diff(bounds).astype(np.int32),
        cost=np.where(gone == 1, np.inf, 0.0),
        low=box[0],
        high=box[1],
        low_next=box[2],
        high_next=box[3],
        members=np.empty((n, rows.shape[1]), dtype=rows.dtype),
        numbers=np.zeros(n, dtype=np.int32),
        tally=tally,
        touched=touched,
    )
    moved = move_rows(trees, tests, rows[bounds[0] : bounds[-1]], window, state)
    return state.of, int(moved)


@bare_kernel
def move_rows(trees: Trees, tests: Tests, rows: Rows, window: int, state: Groups) -> int:
    """The loop of `repair`: every row of every group that can spare one, in turn. Returns how many moved."""
    head, after, size, cost, of = state.head, state.after, state.size, state.cost, state.of
    for i in range(len(rows) - 1, -1, -1):
        after[i] = head[of[i]]
        head[of[i]] = i
    for g in range(len(head)):
        measure(trees, rows, g, state)
    moved = 0
    for g in range(len(head)):
        i = head[g]
        while i >= 0 and size[g] > tests.least and 0 < cost[g] < np.inf:
            following = after[i]
            saved = cost[g] * size[g] - cost_without(trees, rows, g, i, state) * (size[g] - 1)
            h = best_home(trees, rows, i, g, saved, window, state)
            if h >= 0 and still_admitted(tests, rows, g, h, i, state):
                move(g, h, i, state)
                measure(trees, rows, g, state)
                measure(trees, rows, h, state)
                moved += 1
            i = following
    return moved


@bare_kernel
def measure(trees: Trees, rows: Rows, g: int, state: Groups) -> None:
    """The bounds and loss of group g."""
    if state.cost[g] == np.inf:
        return
    first, loss = state.head[g], 0.0
    for c in range(len(trees.form)):
        low = high = rows[first, c]
        low_next, high_next = np.iinfo(rows.dtype).max, -1
        i = state.after[first]
        while i >= 0:
            p = rows[i, c]
            if p <= low:
                low, low_next = p, low
            elif p < low_next:
                low_next = p
            if p >= high:
                high, high_next = p, high
            elif p > high_next:
                high_next = p
            i = state.after[i]
        state.low[g, c], state.low_next[g, c] = low, low_next
        state.high[g, c], state.high_next[g, c] = high, high_next
        loss += run_loss(trees, c, low, high)
    state.cost[g] = loss


@bare_kernel
def cost_without(trees: Trees, rows: Rows, g: int, i: int, state: Groups) -> float:
    """The loss per row of group g if row i leaves it."""
    loss = 0.0
    for c in range(len(trees.form)):
        low, high = state.low[g, c], state.high[g, c]
        if low != high:
            low = state.low_next[g, c] if rows[i, c] == low else low
            high = state.high_next[g, c] if rows[i, c] == high else high
            loss += run_loss(trees, c, low, high)
    return loss


@bare_kernel
def best_home(trees: Trees, rows: Rows, i: int, g: int, saved: float, window: int, state: Groups) -> int:
    """The group near g where row i costs least, if that is less than `saved`; otherwise -1."""
    home, profit, cost = -1, 1e-9, state.cost
    for h in range(max(0, g - window), min(len(cost), g + window + 1)):
        if h == g or cost[h] >= saved:
            continue
        size = int(state.size[h])
        loss, bearable = cost[h], (saved - profit + cost[h] * size) / (size + 1)
        for c in range(len(trees.form)):
            p, low, high = rows[i, c], state.low[h, c], state.high[h, c]
            if p < low or p > high:
                loss += run_loss(trees, c, min(low, p), max(high, p)) - run_loss(trees, c, low, high)
                if loss >= bearable:
                    break
        gain = saved - (loss * (size + 1) - cost[h] * size)
        if gain > profit:
            home, profit = h, gain
    return home


@bare_kernel
def still_admitted(tests: Tests, rows: Rows, g: int, h: int, row: int, state: Groups) -> bool:
    """Whether group g without the row, and group h with it, pass all tests."""
    if len(tests.kind) == 0:
        return True  # sizes were looked at already
    for source in (g, h):
        n = 0
        i = state.head[source]
        while i >= 0:
            if i != row:
                for c in range(rows.shape[1]):
                    state.members[n, c] = rows[i, c]
                n += 1
            i = state.after[i]
        if source == h:
            for c in range(rows.shape[1]):
                state.members[n, c] = rows[row, c]
            n += 1
        if not admits(tests, state.members, state.numbers, ZERO, n, state.tally, state.touched):
            return False
    return True


@bare_kernel
def move(g: int, h: int, row: int, state: Groups) -> None:
    """Take the row out of the list of group g, and put it first in that of h."""
    head, after = state.head, state.after
    if head[g] == row:
        head[g] = after[row]
    else:
        i = head[g]
        while after[i] != row:
            i = after[i]
        after[i] = after[row]
    after[row] = head[h]
    head[h] = row
    state.of[row] = h
    state.size[g] -= 1
    state.size[h] += 1
