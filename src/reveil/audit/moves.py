"""From a world to another one: somebody chooses differently, and others move out of the way. Arrays only; compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from reveil.audit.observed import I64, Bools

FOUND, NONE, UNKNOWN = 1, 0, -1
DEEPEST = 400  # people moved at once
MOVER, OLD, BADS, CELL, PLACE, PRICE, TRIED, LOCKS, FIELDS = range(9)  # of a frame
LEVEL, HELD, SIZE = range(3)  # frames, locks and bad cells in use


@njit(cache=True, nogil=True)
def explore(
    who: I64,
    placing: bool,
    owner: I64,
    start: I64,
    path_start: I64,
    path: I64,
    user_start: I64,
    users: I64,
    rows: I64,
    single: bool,
    token: I64,
    kind: I64,
    chosen: I64,
    load: I64,
    seen: Bools,
    dead: Bools,
    most: int,
) -> int:
    """Try the open choices of these people. Placing: give each one; NONE if somebody can have none."""
    longest = 1
    for i in range(len(path_start) - 1):
        longest = max(longest, path_start[i + 1] - path_start[i])
    locked = np.zeros(len(chosen), dtype=np.bool_)
    busy = np.zeros(len(kind), dtype=np.int64)  # people who are locked, by the token that they have
    locks = np.empty(len(chosen) + 1, dtype=np.int64)
    frames = np.empty((DEEPEST + 2, FIELDS), dtype=np.int64)
    bad = np.empty((DEEPEST + 3) * longest, dtype=np.int64)
    for p in who:
        unsure = False
        for i in range(start[p], start[p + 1]):
            if dead[i] or (seen[i] and not placing):
                continue
            outcome = reach(
                i, owner, start, path_start, path, user_start, users, rows, single, token, kind, chosen, load, dead,
                most, locked, busy, locks, frames, bad,
            )  # fmt: skip
            if outcome == UNKNOWN:
                unsure = True
            elif outcome == NONE:
                spread(i, dead, owner, start, token, kind)
            elif placing:
                break
            else:
                n = 0
                while frames[n, MOVER] >= 0:
                    spread(chosen[frames[n, MOVER]], seen, owner, start, token, kind)
                    n += 1
        if placing and chosen[p] < 0:
            return UNKNOWN if unsure else NONE
    return FOUND


@njit(cache=True, nogil=True)
def spread(i: int, mark: Bools, owner: I64, start: I64, token: I64, kind: I64) -> None:
    """What is said of one choice is true of those that are alike."""
    for j in range(start[owner[i]], start[owner[i] + 1]):
        mark[j] = mark[j] or kind[token[j]] == kind[token[i]]


@njit(cache=True, nogil=True)
def reach(
    wanted: int,
    owner: I64,
    start: I64,
    path_start: I64,
    path: I64,
    user_start: I64,
    users: I64,
    rows: I64,
    single: bool,
    token: I64,
    kind: I64,
    chosen: I64,
    load: I64,
    dead: Bools,
    most: int,
    locked: Bools,
    busy: I64,
    locks: I64,
    frames: I64,
    bad: I64,
) -> int:
    """A world with this choice, found by moving others out of its way; everything is put back if none is found.

    A frame is a move and a cell that then has too many takers: of those who are not locked, one must leave it.
    """
    at = np.zeros(3, dtype=np.int64)
    move(owner[wanted], wanted, path_start, path, rows, token, chosen, load, locked, busy, locks, frames, bad, at)
    tried, cut = 0, False
    while True:
        tried += 1
        c = tightest(bad, at[SIZE], owner, user_start, users, rows, chosen, load, locked)
        if c < 0 or tried > most:
            release(0, token, chosen, locked, busy, locks, at)
            if c < 0:
                frames[at[LEVEL], MOVER] = -1  # ends the list of those who moved
                return FOUND
            for f in range(at[LEVEL] - 1, -1, -1):
                put_back(f, path_start, path, chosen, load, frames)
            return UNKNOWN
        f = at[LEVEL] - 1
        frames[f, CELL], frames[f, PRICE], frames[f, TRIED], frames[f, LOCKS] = c, -1, -1, at[HELD]
        frames[f, PLACE] = user_start[c]
        if at[LEVEL] > DEEPEST:
            frames[f, PLACE], cut = user_start[c + 1], True
        while not advance(
            owner, start, path_start, path, user_start, users, rows, single, token, kind, chosen, load, dead, locked,
            busy, locks, frames, bad, at,
        ):  # fmt: skip
            f = at[LEVEL] - 1
            release(frames[f, LOCKS] - 1, token, chosen, locked, busy, locks, at)  # with the mover's own
            put_back(f, path_start, path, chosen, load, frames)
            at[SIZE], at[LEVEL] = frames[f, BADS], f
            if f == 0:
                return UNKNOWN if cut else NONE


@njit(cache=True, nogil=True)
def advance(
    owner: I64,
    start: I64,
    path_start: I64,
    path: I64,
    user_start: I64,
    users: I64,
    rows: I64,
    single: bool,
    token: I64,
    kind: I64,
    chosen: I64,
    load: I64,
    dead: Bools,
    locked: Bools,
    busy: I64,
    locks: I64,
    frames: I64,
    bad: I64,
    at: I64,
) -> bool:
    """The next way to relieve the cell of the last frame; False if all were tried.

    Who was tried in all ways stays for the rest of the frame: locked, if leaving the cell means choosing differently.
    """
    f = at[LEVEL] - 1
    c = frames[f, CELL]
    while frames[f, PLACE] < user_start[c + 1]:
        u = users[frames[f, PLACE]]
        q = owner[u]
        if chosen[q] == u and not locked[q]:
            j, price = cheapest(
                q, c, frames[f, PRICE], frames[f, TRIED], start, path_start, path, rows, token, kind, chosen, load,
                dead, busy,
            )  # fmt: skip
            if j >= 0:
                frames[f, PRICE], frames[f, TRIED] = price, j
                move(q, j, path_start, path, rows, token, chosen, load, locked, busy, locks, frames, bad, at)
                return True
            if single:
                lock(q, token, chosen, locked, busy, locks, at)
        frames[f, PLACE] += 1
        frames[f, PRICE], frames[f, TRIED] = -1, -1
    return False


@njit(cache=True, nogil=True)
def move(
    p: int,
    new: int,
    path_start: I64,
    path: I64,
    rows: I64,
    token: I64,
    chosen: I64,
    load: I64,
    locked: Bools,
    busy: I64,
    locks: I64,
    frames: I64,
    bad: I64,
    at: I64,
) -> None:
    """Somebody chooses differently, and keeps to it; cells with too many takers are noted."""
    f = at[LEVEL]
    frames[f, MOVER], frames[f, OLD], frames[f, BADS] = p, chosen[p], at[SIZE]
    if chosen[p] >= 0:
        for x in range(path_start[chosen[p]], path_start[chosen[p] + 1]):
            load[path[x]] -= 1
    for x in range(path_start[new], path_start[new + 1]):
        load[path[x]] += 1
        if load[path[x]] > rows[path[x]]:
            bad[at[SIZE]] = path[x]
            at[SIZE] += 1
    chosen[p] = new
    lock(p, token, chosen, locked, busy, locks, at)
    at[LEVEL] += 1


@njit(cache=True, nogil=True)
def lock(p: int, token: I64, chosen: I64, locked: Bools, busy: I64, locks: I64, at: I64) -> None:
    """Somebody keeps to their choice."""
    locked[p], locks[at[HELD]] = True, p
    busy[token[chosen[p]]] += 1
    at[HELD] += 1


@njit(cache=True, nogil=True)
def release(first: int, token: I64, chosen: I64, locked: Bools, busy: I64, locks: I64, at: I64) -> None:
    """Locks from this one on are undone."""
    for n in range(first, at[HELD]):
        locked[locks[n]] = False
        busy[token[chosen[locks[n]]]] -= 1
    at[HELD] = first


@njit(cache=True, nogil=True)
def put_back(f: int, path_start: I64, path: I64, chosen: I64, load: I64, frames: I64) -> None:
    p, old = frames[f, MOVER], frames[f, OLD]
    for x in range(path_start[chosen[p]], path_start[chosen[p] + 1]):
        load[path[x]] -= 1
    if old >= 0:
        for x in range(path_start[old], path_start[old + 1]):
            load[path[x]] += 1
    chosen[p] = old


@njit(cache=True, nogil=True)
def tightest(
    bad: I64, size: int, owner: I64, user_start: I64, users: I64, rows: I64, chosen: I64, load: I64, locked: Bools
) -> int:
    """Of the cells with too many takers, the one that leaves the least choice of who must go; -1 if there is none."""
    best, fewest = -1, 1 << 40
    for n in range(size - 1, -1, -1):
        c = bad[n]
        if load[c] <= rows[c]:
            continue
        spare = rows[c] - load[c]
        for x in range(user_start[c], user_start[c + 1]):
            spare += chosen[owner[users[x]]] == users[x] and not locked[owner[users[x]]]
        if spare < fewest:
            best, fewest = c, spare
            if spare < 0:
                break
    return best


@njit(cache=True, nogil=True)
def cheapest(
    q: int,
    c: int,
    price: int,
    tried: int,
    start: I64,
    path_start: I64,
    path: I64,
    rows: I64,
    token: I64,
    kind: I64,
    chosen: I64,
    load: I64,
    dead: Bools,
    busy: I64,
) -> tuple[int, int]:
    """The next choice of somebody that leaves cell c, those first that overfill the fewest cells; -1 after the last.

    Of choices that are alike, and that nobody who is locked has, one stands for all.
    """
    first, last = start[q], start[q + 1]
    cost = np.full(last - first, -1, dtype=np.int64)
    for j in range(first, last):
        if j == chosen[q] or dead[j]:
            continue
        cost[j - first] = 0
        for x in range(path_start[j], path_start[j + 1]):
            if path[x] == c:
                cost[j - first] = -1
                break
            cost[j - first] += load[path[x]] >= rows[path[x]]
    best, least = -1, 1 << 40
    for j in range(first, last):
        mine = cost[j - first]
        later = mine > price or (mine == price and j > tried)
        if mine < 0 or mine >= least or not later:
            continue
        if not busy[token[j]]:
            for i in range(first, last):
                other = cost[i - first]
                before = other >= 0 and (other < mine or (other == mine and i < j))
                if before and kind[token[i]] == kind[token[j]] and not busy[token[i]]:
                    mine = least
                    break
        if mine < least:
            best, least = j, mine
    return best, least
