"""The walk over worlds behind sampling: rows change holders, at several temperatures. Arrays only; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I64, Bools
from reveil.base.kernels import kernel

Floats = NDArray[np.float64]
KEMPE = 0.3  # share of moves that exchange two values wherever they meet


class Component(NamedTuple):
    """Rows with their values and groups; appearances and whose they are; log weights (minus infinity: excluded)."""

    row_value: I64
    row_group: I64
    group_start: I64  # rows of group g: group_start[g] to group_start[g + 1]
    app_chain: I64
    chain_start: I64  # appearances of a person: chain_apps[chain_start[c]:chain_start[c + 1]]
    chain_apps: I64
    own: Floats  # of each appearance's values
    step: Floats  # of each change


class States(NamedTuple):
    """One state for each temperature: who holds which row, and what that weighs by person."""

    holders: I64  # appearance of each row, -1 for nobody's
    row_of: I64  # row of each appearance
    value: Floats  # log weight of each person's values, misfits left out
    wrong: I64  # misfits of each person
    misfit: I64


class WalkScratch(NamedTuple):
    block: I64  # rows to exchange, in pairs
    touched: Bools  # people that they are about
    seen: Bools  # groups met
    queue: I64


@kernel
def walk(
    c: Component, states: States, scratch: WalkScratch, ladder: Floats, steps: int, seed: int, tally: Floats
) -> I64:
    """Parallel tempering; tallies the coldest level when nothing misfits there. The first fifth is not counted."""
    np.random.seed(seed)
    levels, rows = states.holders.shape
    for level in range(levels):
        for p in range(len(c.chain_start) - 1):
            states.value[level, p], states.wrong[level, p] = weigh(p, states.row_of[level], c)
            states.misfit[level] += states.wrong[level, p]
    good = np.zeros(2, dtype=np.int64)
    coldest, first = levels - 1, steps // 5
    for n in range(steps):
        for _ in range(max(1, rows // 2)):
            level = np.random.randint(levels)
            r = np.random.randint(rows)
            start, stop = c.group_start[c.row_group[r]], c.group_start[c.row_group[r] + 1]
            s = start + np.random.randint(stop - start)
            if c.row_value[r] == c.row_value[s]:
                continue
            size = kempe(r, s, level, c, states, scratch) if np.random.random() < KEMPE else 0
            if size == 0:
                scratch.block[0], scratch.block[1] = r, s
                size = 2
            try_exchange(size, level, ladder[level], c, states, scratch)
        low = np.random.randint(levels - 1)
        gain = (ladder[low] - ladder[low + 1]) * (states.misfit[low] - states.misfit[low + 1])
        if np.log(np.random.random() + 1e-300) < gain:
            trade(low, states)
        if n >= first and states.misfit[coldest] == 0:
            half = 0 if n < first + (steps - first) // 2 else 1
            good[half] += 1
            for a in range(len(c.app_chain)):
                tally[half, a, c.row_value[states.row_of[coldest, a]]] += 1
    return good


@kernel
def weigh(p: int, row_of: I64, c: Component) -> tuple[float, int]:
    """Log weight of one person's values, misfits left out; and the number of misfits."""
    total, wrong, last = 0.0, 0, -1
    for i in range(c.chain_start[p], c.chain_start[p + 1]):
        app = c.chain_apps[i]
        value = c.row_value[row_of[app]]
        if c.own[app, value] == -np.inf:
            wrong += 1
        else:
            total += c.own[app, value]
        if last >= 0:
            if c.step[last, value] == -np.inf:
                wrong += 1
            else:
                total += c.step[last, value]
        last = value
    return total, wrong


@kernel
def trade(low: int, states: States) -> None:
    """Two neighbouring temperatures exchange their states."""
    for table in (states.holders, states.row_of, states.wrong):
        kept = table[low].copy()
        table[low] = table[low + 1]
        table[low + 1] = kept
    value, misfit = states.value, states.misfit
    spare = value[low].copy()
    value[low] = value[low + 1]
    value[low + 1] = spare
    misfit[low], misfit[low + 1] = misfit[low + 1], misfit[low]


@kernel
def kempe(r: int, s: int, level: int, c: Component, states: States, scratch: WalkScratch) -> int:
    """Pairs of rows with the values of r and s, to exchange in all groups that these values connect; 0 if some group
    has not as many rows of one as of the other."""
    a, b = c.row_value[r], c.row_value[s]
    seen, queue, block = scratch.seen, scratch.queue, scratch.block
    seen[:] = False
    queue[0] = c.row_group[r]
    seen[queue[0]] = True
    head, tail, size = 0, 1, 0
    while head < tail:
        first = size
        size = pair_up(queue[head], a, b, c, block, first)
        head += 1
        if size < 0:
            return 0
        for k in range(first, size):
            app = states.holders[level, block[k]]
            if app < 0:
                continue
            p = c.app_chain[app]
            for x in range(c.chain_start[p], c.chain_start[p + 1]):
                row = states.row_of[level, c.chain_apps[x]]
                g = c.row_group[row]
                if (c.row_value[row] == a or c.row_value[row] == b) and not seen[g]:
                    seen[g] = True
                    queue[tail] = g
                    tail += 1
    return size


@kernel
def pair_up(g: int, a: int, b: int, c: Component, block: I64, first: int) -> int:
    """Enter the rows of a group with value a and b in turn; the end of the block, or -1 if there are not as many."""
    i, j = first, first + 1
    for r in range(c.group_start[g], c.group_start[g + 1]):
        if c.row_value[r] == a:
            if i < len(block):
                block[i] = r
            i += 2
        elif c.row_value[r] == b:
            if j < len(block):
                block[j] = r
            j += 2
    return i if i + 1 == j else -1


@kernel
def exchange(size: int, level: int, states: States, block: I64) -> None:
    holders, row_of = states.holders[level], states.row_of[level]
    for k in range(0, size, 2):
        r, s = block[k], block[k + 1]
        holders[r], holders[s] = holders[s], holders[r]
        if holders[r] >= 0:
            row_of[holders[r]] = r
        if holders[s] >= 0:
            row_of[holders[s]] = s


@kernel
def try_exchange(size: int, level: int, penalty: float, c: Component, states: States, scratch: WalkScratch) -> None:
    """Exchange the pairs of rows, or put them back, by the Metropolis rule."""
    block, touched, holders = scratch.block, scratch.touched, states.holders[level]
    value, wrong, row_of = states.value[level], states.wrong[level], states.row_of[level]
    exchange(size, level, states, block)
    change, odd = 0.0, 0
    for k in range(size):
        app = holders[block[k]]
        if app >= 0 and not touched[c.app_chain[app]]:
            p = c.app_chain[app]
            touched[p] = True
            now, bad = weigh(p, row_of, c)
            change += now - value[p]
            odd += bad - wrong[p]
    keep = np.log(np.random.random() + 1e-300) < change - penalty * odd
    if keep:
        states.misfit[level] += odd
    else:
        exchange(size, level, states, block)
    for k in range(size):
        app = holders[block[k]]
        if app >= 0 and touched[c.app_chain[app]]:
            p = c.app_chain[app]
            touched[p] = False
            if keep:
                value[p], wrong[p] = weigh(p, row_of, c)
