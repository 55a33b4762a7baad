"""Groups that are already good, made better: dissolved into their neighbours, parted again, rows moved and exchanged.

The hot loops of cell recoding, on arrays only. Groups look for neighbours among those next to them in number, so the
caller numbers them anew before each pass, in another order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from reveil.base.arrays import F64, I32
from reveil.base.kernels import bare_kernel
from reveil.plan.cutting.candidates import segment_cost
from reveil.plan.cutting.cuts import Boundaries, Cutting, split_into
from reveil.plan.cutting.repair import Groups, cost_without, measure, move
from reveil.plan.cutting.trees import Trees, run_loss
from reveil.plan.cutting.values import ZERO, Rows, Tests, admits

LARGEST = 64  # rows of a group that is dissolved
WIDE: Any = np.int64  # numbers of rows are 64 bits throughout: for each other type Numba compiles callees again
NONE: Any = WIDE(-1)


class Room(NamedTuple):
    """Memory for one pass over some rows: the rows by group, as they are and cut again, and which these are."""

    homes: I32
    rows: Rows
    cut: Rows
    order: I32
    again: I32
    starts: I32
    pieces: Boundaries


@bare_kernel
def link(trees: Trees, rows: Rows, state: Groups) -> None:
    """Fill the lists, bounds and losses of all groups from `of`."""
    for i in range(len(rows) - 1, -1, -1):
        g = state.of[i]
        state.after[i] = state.head[g]
        state.head[g] = i
    for g in range(len(state.head)):
        measure(trees, rows, g, state)


@bare_kernel
def cost_with(trees: Trees, rows: Rows, h: int, i: int, most: float, state: Groups) -> float:
    """The loss per row of group h with row i in it; only as far as it is below `most`."""
    loss = state.cost[h]
    for c in range(len(trees.form)):
        p, low, high = rows[i, c], state.low[h, c], state.high[h, c]
        if p < low or p > high:
            loss += run_loss(trees, c, min(low, p), max(high, p)) - run_loss(trees, c, low, high)
            if loss >= most:
                return loss
    return loss


@bare_kernel
def nearest(trees: Trees, tests: Tests, rows: Rows, i: int, g: int, most: float, window: int, state: Groups) -> int:
    """The group near g that row i raises least, and by less than `most`; -1 where there is none."""
    home = NONE
    for h in range(max(0, g - window), min(len(state.cost), g + window + 1)):
        size = int(state.size[h])
        if h == g or state.cost[h] >= most or size == 0:
            continue
        loss = cost_with(trees, rows, h, i, (most + state.cost[h] * size) / (size + 1), state)
        more = loss * (size + 1) - state.cost[h] * size
        if more < most - 1e-9 and admits_changed(tests, rows, h, i, NONE, state):
            home, most = h, more
    return home


@bare_kernel
def admits_changed(tests: Tests, rows: Rows, h: int, more: int, less: int, state: Groups) -> bool:
    """Whether group h passes all tests with row `more` and without row `less` (-1: none)."""
    if len(tests.kind) == 0:
        return True  # sizes are the caller's concern
    n, i = ZERO, WIDE(state.head[h])
    while i >= 0 or more >= 0:
        j = i
        if i < 0:
            j, more = more, NONE
        else:
            i = WIDE(state.after[i])
        if j != less:
            for c in range(rows.shape[1]):
                state.members[n, c] = rows[j, c]
            n += 1
    return admits(tests, state.members, state.numbers, ZERO, n, state.tally, state.touched)


@bare_kernel
def improve(trees: Trees, tests: Tests, rows: Rows, window: int, narrow: int, state: Groups, homes: I32) -> None:
    """Dissolve groups into the next `window` on either side, then move and exchange rows among the next `narrow`."""
    for g in range(len(state.head)):
        if 0 < state.size[g] <= LARGEST and 0 < state.cost[g] < np.inf:
            empty(trees, tests, rows, g, window, state, homes)
    for g in range(len(state.head)):
        i = WIDE(state.head[g])
        while i >= 0 and 0 < state.cost[g] < np.inf:
            following = WIDE(state.after[i])
            rest = cost_without(trees, rows, g, i, state)
            if (state.cost[g] - rest) * state.size[g] > 1.0 * state.cost[g]:  # this row sets a bound of its group
                rehome(trees, tests, rows, g, i, rest, narrow, state)
            i = following


@bare_kernel
def empty(trees: Trees, tests: Tests, rows: Rows, g: int, window: int, state: Groups, homes: I32) -> None:
    """Move the rows of group g one by one; back again when that costs more than it saves."""
    before, spent, moved = state.cost[g] * state.size[g], 0.0, 0
    while state.head[g] >= 0:
        i = WIDE(state.head[g])
        h = nearest(trees, tests, rows, i, g, before - spent, window, state)
        if h < 0:
            break
        spent -= state.cost[h] * state.size[h]
        move(g, h, i, state)
        measure(trees, rows, h, state)
        spent += state.cost[h] * state.size[h]
        homes[moved] = h
        moved += 1
    if state.head[g] < 0 and spent < before - 1e-9:
        state.cost[g] = np.inf
        return
    for j in range(moved - 1, -1, -1):  # the last that moved is the first of its new group
        h = WIDE(homes[j])
        move(h, g, WIDE(state.head[h]), state)
        measure(trees, rows, h, state)


@bare_kernel
def rehome(trees: Trees, tests: Tests, rows: Rows, g: int, i: int, rest: float, window: int, state: Groups) -> None:
    """A better place for row i of group g: in another group, or in exchange for one of its rows."""
    size = int(state.size[g])
    if size > tests.least:
        h = nearest(trees, tests, rows, i, g, state.cost[g] * size - rest * (size - 1), window, state)
        if h >= 0 and admits_changed(tests, rows, g, NONE, i, state):
            move(g, h, i, state)
            measure(trees, rows, g, state)
            measure(trees, rows, h, state)
            return
    best, home, other = 1e-9, NONE, NONE
    for h in range(max(0, g - window), min(len(state.cost), g + window + 1)):
        if h == g or state.size[h] == 0 or state.cost[h] == np.inf:
            continue
        fits = cost_with(trees, rows, h, i, np.inf, state) - state.cost[h]
        if fits * state.size[h] >= (state.cost[g] - rest) * size + state.cost[h] * state.size[h]:
            continue
        j = WIDE(state.head[h])
        while j >= 0:
            gain = exchange_gain(trees, rows, g, h, i, j, state)
            if gain > best:
                best, home, other = gain, h, j
            j = WIDE(state.after[j])
    if home < 0 or not (
        admits_changed(tests, rows, home, i, other, state) and admits_changed(tests, rows, g, other, i, state)
    ):
        return
    move(g, home, i, state)
    move(home, g, other, state)
    measure(trees, rows, g, state)
    measure(trees, rows, home, state)


@bare_kernel
def exchange_gain(trees: Trees, rows: Rows, g: int, h: int, i: int, j: int, state: Groups) -> float:
    """What the two groups save together if row i of g and row j of h change places."""
    ours = theirs = 0.0
    for c in range(len(trees.form)):
        p, q = rows[i, c], rows[j, c]
        if p == q:
            ours += run_loss(trees, c, state.low[g, c], state.high[g, c])
            theirs += run_loss(trees, c, state.low[h, c], state.high[h, c])
            continue
        low = state.low_next[g, c] if p == state.low[g, c] else state.low[g, c]
        high = state.high_next[g, c] if p == state.high[g, c] else state.high[g, c]
        if state.size[g] == 1:
            low, high = q, q
        ours += run_loss(trees, c, min(low, q), max(high, q))
        low = state.low_next[h, c] if q == state.low[h, c] else state.low[h, c]
        high = state.high_next[h, c] if q == state.high[h, c] else state.high[h, c]
        if state.size[h] == 1:
            low, high = p, p
        theirs += run_loss(trees, c, min(low, p), max(high, p))
    return (state.cost[g] - ours) * state.size[g] + (state.cost[h] - theirs) * state.size[h]


@bare_kernel
def better(how: Cutting, rows: Rows, window: int, narrow: int, block: int, state: Groups, room: Room) -> float:
    """One pass over the groups of some rows: dissolve, exchange, and cut every `block` neighbouring groups again.

    The groups are `state.of` afterwards, numbered from 0 without gaps. Returns their loss.
    """
    improve(how.trees, how.tests, rows, window, narrow, state, room.homes)
    groups = lay_out(rows, state, room)
    group, loss = ZERO, 0.0
    for b in range(ZERO, groups, block):
        first, last = b, min(b + block, groups)
        s, t = WIDE(room.starts[first]), WIDE(room.starts[last])
        pieces = split_into(how, room.cut, room.again, s, t, ZERO, ZERO, room.pieces)
        before = block_loss(how, room.rows, room.starts, first, last, t)
        after = block_loss(how, room.cut, room.pieces.starts, ZERO, pieces, t)
        again = after < before - 1e-9
        loss += min(before, after)
        if again:
            group = renumber(state, room.again, room.pieces.starts, ZERO, pieces, t, group)
        else:
            group = renumber(state, room.order, room.starts, first, last, t, group)
    return loss


@bare_kernel
def lay_out(rows: Rows, state: Groups, room: Room) -> int:
    """Put the rows of each group side by side, twice; returns how many groups have rows."""
    groups = n = ZERO
    for g in range(len(state.head)):
        i = WIDE(state.head[g])
        if i < 0:
            continue
        room.starts[groups] = n
        groups += 1
        while i >= 0:
            room.order[n] = room.again[n] = i
            for c in range(rows.shape[1]):
                room.rows[n, c] = room.cut[n, c] = rows[i, c]
            n += 1
            i = WIDE(state.after[i])
    room.starts[groups] = n
    return groups


@bare_kernel
def block_loss(how: Cutting, rows: Rows, starts: I32, first: int, last: int, end: int) -> float:
    """The loss of groups first..last, whose rows begin at `starts` and end before `end`."""
    loss = 0.0
    for g in range(first, last):
        s, t = WIDE(starts[g]), WIDE(end if g + 1 == last else starts[g + 1])
        loss += (t - s) * segment_cost(how.trees, rows, s, t, how.scratch.rows_at)
    return loss


@bare_kernel
def renumber(state: Groups, order: I32, starts: I32, first: int, last: int, end: int, group: int) -> int:
    """Say of each row of groups first..last which group it is in, from `group` on; returns the next number."""
    for g in range(first, last):
        for i in range(starts[g], end if g + 1 == last else starts[g + 1]):
            state.of[order[i]] = group
        group += 1
    return group


@bare_kernel
def join_losses(trees: Trees, low: I32, high: I32, g: int, loss: F64) -> None:
    """The loss per row of group g together with each other group, from the bounds of groups."""
    for h in range(len(loss)):
        loss[h] = 0.0
        for c in range(len(trees.form)):
            loss[h] += run_loss(trees, c, WIDE(min(low[g, c], low[h, c])), WIDE(max(high[g, c], high[h, c])))
