"""The hot loops of planning under priors: groups are dealt, or grow row by row, as long as `odds` accepts them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveil.base.arrays import I32, I64
from reveil.base.kernels import kernel
from reveil.plan.cutting.trees import Trees, run_cost
from reveil.plan.priors.odds import Odds, accepts

LARGEST = 4  # groups grow to at most this many times the size they need


class RowSpace(NamedTuple):
    """Where rows lie, what boxes cost, and which value each row has."""

    trees: Trees
    positions: I32
    codes: I32


class Rest(NamedTuple):
    """The rows of a list that are left: each knows the one after it and the one before it."""

    rows: I64
    following: I64
    before: I64


class Box(NamedTuple):
    """Lowest and highest position in each column."""

    low: I32
    high: I32


@kernel
def box_for(columns: int) -> Box:
    return Box(np.empty(columns, dtype=np.int32), np.empty(columns, dtype=np.int32))


@kernel
def added_loss(space: RowSpace, row: int, box: Box) -> float:
    """Loss per row of a box when one more row is in it."""
    trees, low, high, loss = space.trees, box.low, box.high, 0.0
    for c in range(len(low)):
        p = space.positions[row, c]
        a, b = min(low[c], p), max(high[c], p)
        if a != b:
            loss += trees.weight[c] * run_cost(trees, c, a, b)
    return loss


@kernel
def widen(positions: I32, row: int, box: Box) -> None:
    for c in range(len(box.low)):
        box.low[c], box.high[c] = min(box.low[c], positions[row, c]), max(box.high[c], positions[row, c])


@kernel
def begin_box(positions: I32, row: int, box: Box) -> None:
    for c in range(len(box.low)):
        box.low[c], box.high[c] = positions[row, c], positions[row, c]


@kernel
def deal_segments(space: RowSpace, rows: I64, bounds: I64, bases: I64, size: int, window: int, group: I64) -> None:
    """Deal each segment rows[bounds[i]:bounds[i + 1]]; its groups are numbered from bases[i]."""
    top = space.codes.max() + 1
    count, seen = np.zeros(top, dtype=np.int64), np.full(top, -1, dtype=np.int64)
    for i in range(len(bounds) - 1):
        deal(space, rows[bounds[i] : bounds[i + 1]], size, window, group, bases[i], count, seen)


@kernel
def count_due(codes: I32, rows: I64, following: I64, start: int, count: I64, seen: I64, g: int, mark: int) -> int:
    """Values that are left g times, each counted at one of its rows."""
    due, i = 0, start
    while i < len(rows):
        code = codes[rows[i]]
        if count[code] >= g and seen[code] != mark:
            seen[code] = mark
            due += 1
        i = following[i]
    return due


@kernel
def deal(space: RowSpace, rows: I64, size: int, window: int, group: I64, fresh: int, count: I64, seen: I64) -> None:
    """Part rows of one kind into groups of at least `size` different values, numbered from `fresh`.

    No value may occur in more than len(rows) // size of them. With g groups still to make, a value that is
    left g times must be in each; the other places are filled with the rows that widen the box least, among
    the next `window` rows of the list. So the list should be in an order in which near rows are alike.
    `count` is zero before and after.
    """
    positions, codes, box = space.positions, space.codes, box_for(space.positions.shape[1])
    n, left, start = len(rows), len(rows), 0
    for i in range(n):
        count[codes[rows[i]]] += 1
    following, before = np.arange(1, n + 1), np.arange(-1, n - 1)  # the rows that are left
    for g in range(n // size, 0, -1):
        due = count_due(codes, rows, following, start, count, seen, g, -2 - fresh) if g > 1 else 0
        wanted = left if g == 1 else max(size, due)
        begin_box(positions, rows[start], box)
        for taken in range(wanted):
            only_due = g > 1 and wanted - taken <= due
            best, least, i, scanned = -1, np.inf, start, 0
            while i < n and (scanned < window or best < 0):
                code = codes[rows[i]]
                if seen[code] != fresh and (not only_due or count[code] >= g):
                    loss = 0.0 if g == 1 else added_loss(space, rows[i], box)
                    if loss < least:
                        best, least = i, loss
                    if (taken == 0 and not only_due) or g == 1:
                        break
                scanned += 1
                i = following[i]
            code = codes[rows[best]]
            due -= count[code] >= g
            count[code] -= 1
            seen[code] = fresh
            group[rows[best]] = fresh
            widen(positions, rows[best], box)
            if before[best] < 0:
                start = following[best]
            else:
                following[before[best]] = following[best]
            if following[best] < n:
                before[following[best]] = before[best]
        left -= wanted
        fresh += 1


@kernel
def apart(odds: Odds, a: int, b: int) -> float:
    """How unlike the odds of two rows are."""
    total = 0.0
    for c in range(odds.place.shape[1]):
        total += abs(odds.place[a, c] - odds.place[b, c])
    return total


@kernel
def link(odds: Odds, space: RowSpace, rows: I64, window: int, group: I64, fresh: int) -> int:
    """Merge single rows into groups from the bottom up: the next row is the nearest in odds and box whose
    value is new.

    Seeds are rows of the value that is left most often, so that frequent values are not what remains. A seed
    that no group of up to LARGEST times the least size accepts stays alone. Returns the next free group
    number.
    """
    positions, codes, box = space.positions, space.codes, box_for(space.positions.shape[1])
    n, top = len(rows), codes[rows].max() + 1
    count, head = np.zeros(top, dtype=np.int64), np.full(top, -1, dtype=np.int64)
    later = np.full(n, -1, dtype=np.int64)  # list of each value
    for i in range(n - 1, -1, -1):
        code = codes[rows[i]]
        later[i], head[code] = head[code], i
        count[code] += 1
    following, before = np.arange(1, n + 1), np.arange(-1, n - 1)
    rest = Rest(rows, following, before)
    most = LARGEST * odds.size
    picked, members = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    gone = np.zeros(n, dtype=np.bool_)
    while count.max() > 0:
        code = count.argmax()
        while gone[head[code]]:
            head[code] = later[head[code]]
        picked[0], taken = head[code], 1
        members[0] = rows[picked[0]]
        begin_box(positions, members[0], box)
        while taken < most and not accepts(odds, codes, members, taken):
            best = nearest(odds, space, rest, members, taken, box, picked[0], window)
            if best < 0:
                break
            picked[taken], members[taken] = best, rows[best]
            widen(positions, rows[best], box)
            taken += 1
        good = accepts(odds, codes, members, taken)
        for i in picked[: taken if good else 1]:
            gone[i] = True
            count[codes[rows[i]]] -= 1
            if before[i] >= 0:
                following[before[i]] = following[i]
            if following[i] < n:
                before[following[i]] = before[i]
            if good:
                group[rows[i]] = fresh
        fresh += good
    return fresh


@kernel
def nearest(odds: Odds, space: RowSpace, rest: Rest, members: I64, taken: int, box: Box, seed: int, window: int) -> int:
    """The row of the list that costs least to add, among the window on both sides of the seed; -1 when there
    is none.
    """
    rows, following, before = rest
    best, least = -1, np.inf
    for direction in range(2):
        i = following[seed] if direction == 0 else before[seed]
        scanned = 0
        while 0 <= i < len(rows) and scanned < window:
            if is_new(space.codes, members, taken, rows[i]):
                cost = apart(odds, members[0], rows[i])
                if cost < least:
                    cost += added_loss(space, rows[i], box)
                if cost < least:
                    best, least = i, cost
            scanned += 1
            i = following[i] if direction == 0 else before[i]
    return best


@kernel
def is_new(codes: I32, members: I64, n: int, row: int) -> bool:
    """Whether neither the row nor its value is among the members."""
    known = False
    for i in range(n):
        known = known or codes[members[i]] == codes[row]
    return not known


@kernel
def join(odds: Odds, space: RowSpace, loose: I64, starts: I64, listed: I64, reach: int, group: I64) -> int:
    """Let loose rows into groups that stay acceptable with them; returns how many found a home.

    Groups are listed end to end in `listed`, ordered by odds; each row tries the `reach` groups around those
    whose first members are most like it.
    """
    positions, codes, box = space.positions, space.codes, box_for(space.positions.shape[1])
    groups, homed = len(starts) - 1, 0
    most = LARGEST * odds.size
    extra = np.full((groups, most), -1, dtype=np.int64)
    added = np.zeros(groups, dtype=np.int64)
    members = np.empty(most, dtype=np.int64)
    for row in loose:
        a, b = 0, groups  # the first group whose leader is not before the row
        while a < b:
            middle = (a + b) // 2
            if odds.place[listed[starts[middle]], 0] < odds.place[row, 0]:
                a = middle + 1
            else:
                b = middle
        best, least = -1, np.inf
        for g in range(max(0, a - reach // 2), min(groups, a + reach // 2)):
            n = starts[g + 1] - starts[g]
            if n + added[g] >= most:
                continue
            members[:n] = listed[starts[g] : starts[g + 1]]
            members[n : n + added[g]] = extra[g, : added[g]]
            n += added[g]
            if not is_new(codes, members, n, row):
                continue
            begin_box(positions, row, box)
            for i in range(n):
                widen(positions, members[i], box)
            members[n] = row
            cost = added_loss(space, row, box)
            if cost < least and accepts(odds, codes, members, n + 1):
                best, least = g, cost
        if best >= 0:
            extra[best, added[best]] = row
            added[best] += 1
            group[row] = group[listed[starts[best]]]
            homed += 1
    return homed
