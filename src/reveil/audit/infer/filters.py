"""Which options no world uses, as far as one factor or one person's chain tells. Arrays only; compiled.

Both filters are complete for what they look at: an option stays exactly if the factor alone (or the chain alone) has a
solution with it. Repeated over all factors and chains until nothing changes, they are what people do by hand: counting
within groups, excluding known values, and carrying the result to the person's other releases.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I32, I64, Bools
from reveil.base.kernels import kernel

OPEN, KNOWN, GROUP, CHAIN, EQUAL, SEARCH = 0, 1, 2, 3, 4, 5  # why an option is out
LARGEST = 4096  # cells of a factor; beyond this only exhausted cells are noticed


class Shape(NamedTuple):
    """What the filters read of a model (see `model.Model`), and which factors they leave out."""

    relation: Bools
    never: bool
    person_start: I64
    opt_start: I64
    opt_cell: I32
    cell_value: I64
    cell_cap: I64
    cell_low: I64
    cell_start: I64
    app_person: I64
    app_factor: I64
    factor_start: I64
    factor_apps: I64
    skip: Bools


class Marks(NamedTuple):
    """What they change: options still open, why, where and when the others went, and what to look at again."""

    alive: Bools
    why: NDArray[np.uint8]
    where: I32
    when: I32
    match: I64
    factor: Bools  # something of it changed
    person: Bools


@kernel
def propagate(shape: Shape, marks: Marks, clock: int) -> int:
    """Filter until nothing changes. Returns the clock, or -1 - factor (or - person - factors) if nothing fits."""
    person_start, dirty_factor, dirty_person = shape.person_start, marks.factor, marks.person
    factors, people = len(shape.factor_start) - 1, len(person_start) - 1
    chained = shape.never or not shape.relation.all()
    busy = True
    while busy:
        busy = False
        for p in range(people):
            if dirty_person[p]:
                dirty_person[p] = False
                if not chained or person_start[p + 1] - person_start[p] < 2:
                    continue
                ok = follow(p, shape, marks, clock)
                if ok < 0:
                    return -1 - factors - p
                clock += ok
        for f in range(factors):
            if dirty_factor[f]:
                dirty_factor[f] = False
                if shape.skip[f]:
                    continue
                ok = fill(f, shape, marks, clock)
                if ok < 0:
                    return -1 - f
                busy = busy or ok > 0
                clock += ok
    return clock


@kernel
def follow(p: int, shape: Shape, marks: Marks, clock: int) -> int:
    """Filter one person's chain: what is reachable from the first appearance on, and from the last one back."""
    relation, never, alive = shape.relation, shape.never, marks.alive
    opt_start, opt_cell, cell_value = shape.opt_start, shape.opt_cell, shape.cell_value
    first, last = shape.person_start[p], shape.person_start[p + 1]
    n, size = last - first, len(relation)
    keep = np.zeros((n + 1, size), dtype=np.bool_)  # values that may be the latest before appearance i
    fresh = np.zeros(n + 1, dtype=np.bool_)  # nobody seen yet
    fresh[0] = True
    for i in range(n):
        any_value = False
        for o in range(opt_start[first + i], opt_start[first + i + 1]):
            if not alive[o]:
                continue
            v = cell_value[opt_cell[o]]
            if v < 0:
                keep[i + 1] |= keep[i]
                fresh[i + 1] = fresh[i + 1] or fresh[i]
                any_value = True
            elif fresh[i] or (keep[i, v] if never else reaches(keep[i], relation, v)):
                keep[i + 1, v] = True
                any_value = True
        if not any_value:
            return -1
    ahead = np.ones(size, dtype=np.bool_)  # values that may be the latest after appearance i
    changed = 0
    for i in range(n - 1, -1, -1):
        before = np.zeros(size, dtype=np.bool_)
        unseen = False
        for o in range(opt_start[first + i], opt_start[first + i + 1]):
            if not alive[o]:
                continue
            v = cell_value[opt_cell[o]]
            if v < 0:
                good = (ahead & keep[i]).any() or fresh[i]
                if good:
                    unseen = True
            else:
                good = ahead[v] and (fresh[i] or (keep[i, v] if never else reaches(keep[i], relation, v)))
                if good:
                    if never:
                        before[v] = True
                    else:
                        for u in range(size):
                            before[u] = before[u] or relation[u, v]
            if not good:
                alive[o] = False
                marks.why[o], marks.where[o], marks.when[o] = CHAIN, p, clock
                changed = 1
                marks.factor[shape.app_factor[first + i]] = True
        if unseen:
            before |= ahead
        elif not before.any():
            return -1
        ahead = before
    return changed


@kernel
def reaches(some: Bools, relation: Bools, v: int) -> bool:
    reached = False
    for u in range(len(some)):
        reached = reached or (some[u] and relation[u, v])
    return reached


@kernel
def fill(f: int, shape: Shape, marks: Marks, clock: int) -> int:
    """Filter one factor by matching: an option stays if some way of giving out the rows uses it.

    From one such way, an appearance may move to another cell if rows can be passed on in a circle (or to and from the
    counterfeits). `match` keeps the way found for next time.
    """
    opt_start, opt_cell, alive, match = shape.opt_start, shape.opt_cell, marks.alive, marks.match
    cell_cap, cell_low = shape.cell_cap, shape.cell_low
    apps = shape.factor_apps[shape.factor_start[f] : shape.factor_start[f + 1]]
    base, n, k = shape.cell_start[f], len(apps), shape.cell_start[f + 1] - shape.cell_start[f]
    narrowed, options = False, 0
    for a in apps:
        options = 0
        for o in range(opt_start[a], opt_start[a + 1]):
            options += alive[o]
        narrowed = narrowed or options < k
    tight = False
    for c in range(base, base + k):
        tight = tight or cell_low[c] > 0
    if not narrowed and not tight:
        rows = 0
        for c in range(base, base + k):
            rows += cell_cap[c]
        return 0 if rows >= n else -1
    used = np.zeros(k, dtype=np.int64)
    factor = Factor(apps, base, opt_start, opt_cell, cell_cap, cell_low, alive, match, used)
    if not match_all(factor):
        return -1
    if k > LARGEST:
        return 0
    reach = reachable(factor)
    changed = 0
    for a in apps:
        mine = match[a] - base
        for o in range(opt_start[a], opt_start[a + 1]):
            if alive[o] and not reach[opt_cell[o] - base, mine]:
                alive[o] = False
                marks.why[o], marks.where[o], marks.when[o] = GROUP, f, clock
                changed = 1
                marks.person[shape.app_person[a]] = True
    return changed


class Factor(NamedTuple):
    """One factor while its rows are given out: its appearances, its cells from `base` on, and the way found so far."""

    apps: I64
    base: int
    opt_start: I64
    opt_cell: I32
    cell_cap: I64
    cell_low: I64
    alive: Bools
    match: I64  # the cell of each appearance, -1 for none
    used: I64  # rows given out, by cell of the factor


@kernel
def match_all(factor: Factor) -> bool:
    """Give every appearance a row, starting from the last way found; then fill the cells that must be full."""
    apps, base, opt_start, opt_cell, cell_cap, cell_low, alive, match, used = factor
    k = len(used)
    open_apps = np.zeros(len(apps), dtype=np.bool_)
    for i in range(len(apps)):
        a, matched = apps[i], False
        for o in range(opt_start[a], opt_start[a + 1]):
            if alive[o] and opt_cell[o] == match[a] and used[match[a] - base] < cell_cap[match[a]]:
                matched = True
        if matched:
            used[match[a] - base] += 1
        else:
            match[a] = -1
            open_apps[i] = True
    giver = np.empty(k, dtype=np.int64)  # which appearance would move into the cell
    queue = np.empty(k, dtype=np.int64)
    for i in range(len(apps)):
        if open_apps[i] and not augment(factor, apps[i], giver, queue):
            return False
    for c in range(k):
        while used[c] < cell_low[base + c]:
            if not pull(factor, c, giver, queue):
                return False
    return True


@kernel
def augment(factor: Factor, start: int, giver: I64, queue: I64) -> bool:
    """Find a row for one appearance, moving others if need be."""
    apps, base, opt_start, opt_cell, cell_cap, _, alive, match, used = factor
    giver[:] = -1
    head, tail = 0, 0
    for o in range(opt_start[start], opt_start[start + 1]):
        c = opt_cell[o] - base
        if alive[o] and giver[c] < 0:
            giver[c] = start
            queue[tail] = c
            tail += 1
    while head < tail:
        c = queue[head]
        head += 1
        if used[c] < cell_cap[base + c]:
            used[c] += 1
            while True:
                a = giver[c]
                c, match[a] = match[a] - base, base + c
                if a == start:
                    return True
        for a in apps:
            if match[a] != base + c:
                continue
            for o in range(opt_start[a], opt_start[a + 1]):
                d = opt_cell[o] - base
                if alive[o] and giver[d] < 0:
                    giver[d] = a
                    queue[tail] = d
                    tail += 1
    return False


@kernel
def pull(factor: Factor, start: int, giver: I64, queue: I64) -> bool:
    """Bring one more appearance into a cell that must be full, from a cell that can spare one."""
    apps, base, opt_start, opt_cell, _, cell_low, alive, match, used = factor
    target = np.full(len(used), -1, dtype=np.int64)  # where the mover out of this cell goes
    target[start] = start
    queue[0] = start
    head, tail = 0, 1
    while head < tail:
        c = queue[head]
        head += 1
        for a in apps:
            d = match[a] - base
            if target[d] >= 0:
                continue
            for o in range(opt_start[a], opt_start[a + 1]):
                if alive[o] and opt_cell[o] == base + c:
                    target[d], giver[d] = c, a
                    if used[d] > cell_low[base + d]:
                        used[d] -= 1
                        while d != start:
                            match[giver[d]] = base + target[d]
                            d = target[d]
                        used[start] += 1
                        return True
                    queue[tail] = d
                    tail += 1
                    break
    return False


@kernel
def reachable(factor: Factor) -> Bools:
    """reach[c, d]: a row taken in c can be made up for by giving one free in d. Node k stands for what stays unused."""
    apps, base, opt_start, opt_cell, cell_cap, cell_low, alive, match, used = factor
    k = len(used)
    step = np.zeros((k + 1, k + 1), dtype=np.bool_)
    for a in apps:
        mine = match[a] - base
        for o in range(opt_start[a], opt_start[a + 1]):
            if alive[o]:
                step[mine, opt_cell[o] - base] = True
    for c in range(k):
        step[c, k] = used[c] < cell_cap[base + c]
        step[k, c] = used[c] > cell_low[base + c]
    reach = np.zeros((k + 1, k + 1), dtype=np.bool_)
    queue = np.empty(k + 1, dtype=np.int64)
    for c in range(k + 1):
        reach[c, c] = True
        queue[0] = c
        head, tail = 0, 1
        while head < tail:
            d = queue[head]
            head += 1
            for e in range(k + 1):
                if step[d, e] and not reach[c, e]:
                    reach[c, e] = True
                    queue[tail] = e
                    tail += 1
    return reach
