"""The walk over worlds behind sampling: rows change holders, at several temperatures. Arrays only; compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

I64 = NDArray[np.int64]
Floats = NDArray[np.float64]


@njit(cache=True, nogil=True)
def cost(
    chain: int,
    row_of: I64,
    row_value: I64,
    chain_start: I64,
    chain_apps: I64,
    own: Floats,
    step: Floats,
    penalty: float,
) -> tuple[float, int]:
    """Log weight of one chain, each misfit replaced by the penalty; and the number of misfits."""
    total, wrong, last = 0.0, 0, -1
    for i in range(chain_start[chain], chain_start[chain + 1]):
        app = chain_apps[i]
        value = row_value[row_of[app]]
        if own[app, value] == -np.inf:
            wrong += 1
        else:
            total += own[app, value]
        if last >= 0:
            if step[last, value] == -np.inf:
                wrong += 1
            else:
                total += step[last, value]
        last = value
    return total - penalty * wrong, wrong


@njit(cache=True, nogil=True)
def walk(
    holders: I64,
    row_value: I64,
    row_group: I64,
    group_start: I64,
    app_chain: I64,
    chain_start: I64,
    chain_apps: I64,
    own: Floats,
    step: Floats,
    ladder: Floats,
    steps: int,
    seed: int,
    tally: Floats,
) -> I64:
    """Parallel tempering; tallies the coldest level when nothing misfits there. The first fifth is not counted."""
    np.random.seed(seed)
    levels, rows = holders.shape
    apps, chains = len(app_chain), len(chain_start) - 1
    row_of = np.empty((levels, apps), dtype=np.int64)
    value = np.zeros((levels, chains))  # log weight without penalties
    wrong = np.zeros((levels, chains), dtype=np.int64)
    for level in range(levels):
        for r in range(rows):
            if holders[level, r] >= 0:
                row_of[level, holders[level, r]] = r
        for c in range(chains):
            value[level, c], wrong[level, c] = cost(
                c, row_of[level], row_value, chain_start, chain_apps, own, step, 0.0
            )
    total, misfit = value.sum(axis=1), wrong.sum(axis=1)
    every = max(1, rows // 2)
    good = np.zeros(2, dtype=np.int64)
    block = np.empty(rows, dtype=np.int64)
    touched = np.zeros(chains, dtype=np.bool_)
    for n in range(steps):
        for _ in range(every):
            level = np.random.randint(levels)
            r = np.random.randint(rows)
            g = row_group[r]
            s = group_start[g] + np.random.randint(group_start[g + 1] - group_start[g])
            if row_value[r] == row_value[s]:
                continue
            size = 0
            if np.random.random() < 0.3:
                size = kempe(
                    r,
                    row_value[r],
                    row_value[s],
                    holders[level],
                    row_of[level],
                    row_value,
                    row_group,
                    group_start,
                    app_chain,
                    chain_start,
                    chain_apps,
                    block,
                )
            if size == 0:
                block[0], block[1] = r, s
                size = 2
            total[level], misfit[level] = try_swap(
                block, size, holders[level], row_of[level], row_value, app_chain, chain_start, chain_apps, own, step,
                ladder[level], value[level], wrong[level], total[level], misfit[level], touched,
            )  # fmt: skip
        low = np.random.randint(levels - 1)
        gain = (ladder[low] - ladder[low + 1]) * (misfit[low] - misfit[low + 1])
        if np.log(np.random.random() + 1e-300) < gain:
            trade(low, holders, row_of, value, wrong, total, misfit)
        if n >= steps // 5 and misfit[levels - 1] == 0:
            half = 0 if n < steps // 5 + (steps - steps // 5) // 2 else 1
            good[half] += 1
            for a in range(apps):
                tally[half, a, row_value[row_of[levels - 1, a]]] += 1
    return good


@njit(cache=True, nogil=True)
def trade(low: int, holders: I64, row_of: I64, value: Floats, wrong: I64, total: Floats, misfit: I64) -> None:
    """Two neighbouring temperatures exchange their states."""
    for table in (holders, row_of, wrong):
        kept = table[low].copy()
        table[low] = table[low + 1]
        table[low + 1] = kept
    spare = value[low].copy()
    value[low] = value[low + 1]
    value[low + 1] = spare
    total[low], total[low + 1] = total[low + 1], total[low]
    misfit[low], misfit[low + 1] = misfit[low + 1], misfit[low]


@njit(cache=True, nogil=True)
def kempe(
    start: int,
    a: int,
    b: int,
    holders: I64,
    row_of: I64,
    row_value: I64,
    row_group: I64,
    group_start: I64,
    app_chain: I64,
    chain_start: I64,
    chain_apps: I64,
    block: I64,
) -> int:
    """Pairs of rows (value a, value b) to exchange in all groups that these values connect; 0 if some group has not as
    many rows of one as of the other."""
    groups = len(group_start) - 1
    seen = np.zeros(groups, dtype=np.bool_)
    queue = np.empty(groups, dtype=np.int64)
    queue[0] = row_group[start]
    seen[row_group[start]] = True
    head, tail, size = 0, 1, 0
    while head < tail:
        g = queue[head]
        head += 1
        first = size
        ones, twos = 0, 0
        for r in range(group_start[g], group_start[g + 1]):
            ones += row_value[r] == a
            twos += row_value[r] == b
        if ones != twos:
            return 0
        i, j = 0, 0
        for r in range(group_start[g], group_start[g + 1]):
            if row_value[r] == a:
                block[first + 2 * i] = r
                i += 1
            elif row_value[r] == b:
                block[first + 2 * j + 1] = r
                j += 1
        size = first + 2 * ones
        for k in range(first, size):
            app = holders[block[k]]
            if app < 0:
                continue
            c = app_chain[app]
            for x in range(chain_start[c], chain_start[c + 1]):
                r = row_of[chain_apps[x]]
                if (row_value[r] == a or row_value[r] == b) and not seen[row_group[r]]:
                    seen[row_group[r]] = True
                    queue[tail] = row_group[r]
                    tail += 1
    return size


@njit(cache=True, nogil=True)
def exchange(block: I64, size: int, holders: I64, row_of: I64) -> None:
    for k in range(0, size, 2):
        r, s = block[k], block[k + 1]
        holders[r], holders[s] = holders[s], holders[r]
        if holders[r] >= 0:
            row_of[holders[r]] = r
        if holders[s] >= 0:
            row_of[holders[s]] = s


@njit(cache=True, nogil=True)
def try_swap(
    block: I64,
    size: int,
    holders: I64,
    row_of: I64,
    row_value: I64,
    app_chain: I64,
    chain_start: I64,
    chain_apps: I64,
    own: Floats,
    step: Floats,
    penalty: float,
    value: Floats,
    wrong: I64,
    total: float,
    misfit: int,
    touched: Any,
) -> tuple[float, int]:
    """Exchange the pairs of rows, or put them back, by the Metropolis rule."""
    exchange(block, size, holders, row_of)
    change, odd = 0.0, 0
    for k in range(size):
        app = holders[block[k]]
        if app >= 0 and not touched[app_chain[app]]:
            c = app_chain[app]
            touched[c] = True
            now, bad = cost(c, row_of, row_value, chain_start, chain_apps, own, step, 0.0)
            change += now - value[c]
            odd += bad - wrong[c]
    keep = np.log(np.random.random() + 1e-300) < change - penalty * odd
    if not keep:
        exchange(block, size, holders, row_of)
    for k in range(size):
        app = holders[block[k]]
        if app >= 0 and touched[app_chain[app]]:
            c = app_chain[app]
            touched[c] = False
            if keep:
                value[c], wrong[c] = cost(c, row_of, row_value, chain_start, chain_apps, own, step, 0.0)
    return (total + change, misfit + odd) if keep else (total, misfit)
