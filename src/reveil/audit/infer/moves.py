"""From a world to another one: somebody chooses differently, and others move out of the way. Arrays only; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveil.base.arrays import I32, I64, Bools
from reveil.base.kernels import kernel

FOUND, NONE, UNKNOWN = 1, 0, -1
DEEPEST = 400  # people moved at once
MOVER, OLD, BADS, CELL, PLACE, PRICE, TRIED, LOCKS, FIELDS = range(9)  # of a frame
LEVEL, HELD, SIZE = range(3)  # frames, locks and bad cells in use


class Puzzle(NamedTuple):
    """What everybody may choose, and what each choice takes (see `worlds.Choices`)."""

    owner: I64  # of each choice
    start: I64
    path_start: I64
    path: I32
    user_start: I64  # choices that take cell c: users[user_start[c]:user_start[c + 1]]
    users: I32
    rows: I64
    single: bool
    token: I64
    kind: I64


class World(NamedTuple):
    """What everybody chooses now, how many take each cell, and what is known of each choice."""

    chosen: I64
    load: I64
    seen: Bools
    dead: Bools


class MoveTrail(NamedTuple):
    """The moves of a search that is under way."""

    locked: Bools  # who keeps to their choice
    busy: I64  # people who are locked, by the token that they have
    locks: I64  # in order
    frames: I64  # a frame is a move and a cell that then has too many takers: of those not locked, one must leave it
    bad: I64  # cells that had too many takers
    at: I64  # how many of each are in use


@kernel
def explore(who: I64, placing: bool, puzzle: Puzzle, world: World, trail: MoveTrail, most: int) -> int:
    """Try the open choices of these people. Placing: give each one; NONE if somebody can have none."""
    chosen, seen, dead, frames = world.chosen, world.seen, world.dead, trail.frames
    owner, start, token, kind = puzzle.owner, puzzle.start, puzzle.token, puzzle.kind
    for p in who:
        unsure = False
        for i in range(start[p], start[p + 1]):
            if dead[i] or (seen[i] and not placing):
                continue
            outcome = reach(i, puzzle, world, trail, most)
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


@kernel
def spread(i: int, mark: Bools, owner: I64, start: I64, token: I64, kind: I64) -> None:
    """What is said of one choice is true of those that are alike."""
    for j in range(start[owner[i]], start[owner[i] + 1]):
        mark[j] = mark[j] or kind[token[j]] == kind[token[i]]


@kernel
def reach(wanted: int, puzzle: Puzzle, world: World, trail: MoveTrail, most: int) -> int:
    """A world with this choice, found by moving others out of its way; everything is put back if none is found."""
    frames, at, user_start = trail.frames, trail.at, puzzle.user_start
    chosen, load, path_start, path = world.chosen, world.load, puzzle.path_start, puzzle.path
    at[:] = 0
    move(puzzle.owner[wanted], wanted, puzzle, world, trail)
    tried, cut = 0, False
    while True:
        tried += 1
        c = tightest(puzzle, world, trail)
        if c < 0 or tried > most:
            release(0, puzzle.token, chosen, trail.locked, trail.busy, trail.locks, at)
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
        while not advance(puzzle, world, trail):
            f = at[LEVEL] - 1
            mine = frames[f, LOCKS] - 1  # with the mover's own
            release(mine, puzzle.token, chosen, trail.locked, trail.busy, trail.locks, at)
            put_back(f, path_start, path, chosen, load, frames)
            at[SIZE], at[LEVEL] = frames[f, BADS], f
            if f == 0:
                return UNKNOWN if cut else NONE


@kernel
def advance(puzzle: Puzzle, world: World, trail: MoveTrail) -> bool:
    """The next way to relieve the cell of the last frame; False if all were tried.

    Who was tried in all ways stays for the rest of the frame: locked, if leaving the cell means choosing differently.
    """
    frames, users, owner = trail.frames, puzzle.users, puzzle.owner
    f = trail.at[LEVEL] - 1
    c = frames[f, CELL]
    while frames[f, PLACE] < puzzle.user_start[c + 1]:
        u = users[frames[f, PLACE]]
        q = owner[u]
        if world.chosen[q] == u and not trail.locked[q]:
            j, price = cheapest(q, c, frames[f, PRICE], frames[f, TRIED], puzzle, world, trail.busy)
            if j >= 0:
                frames[f, PRICE], frames[f, TRIED] = price, j
                move(q, j, puzzle, world, trail)
                return True
            if puzzle.single:
                lock(q, puzzle.token[u], trail.locked, trail.busy, trail.locks, trail.at)
        frames[f, PLACE] += 1
        frames[f, PRICE], frames[f, TRIED] = -1, -1
    return False


@kernel
def move(p: int, new: int, puzzle: Puzzle, world: World, trail: MoveTrail) -> None:
    """Somebody chooses differently, and keeps to it; cells with too many takers are noted."""
    chosen, load, frames, at = world.chosen, world.load, trail.frames, trail.at
    path_start, path, rows = puzzle.path_start, puzzle.path, puzzle.rows
    f = at[LEVEL]
    frames[f, MOVER], frames[f, OLD], frames[f, BADS] = p, chosen[p], at[SIZE]
    if chosen[p] >= 0:
        for x in range(path_start[chosen[p]], path_start[chosen[p] + 1]):
            load[path[x]] -= 1
    for x in range(path_start[new], path_start[new + 1]):
        load[path[x]] += 1
        if load[path[x]] > rows[path[x]]:
            trail.bad[at[SIZE]] = path[x]
            at[SIZE] += 1
    chosen[p] = new
    lock(p, puzzle.token[new], trail.locked, trail.busy, trail.locks, at)
    at[LEVEL] += 1


@kernel
def lock(p: int, token: int, locked: Bools, busy: I64, locks: I64, at: I64) -> None:
    """Somebody keeps to their choice, which has this token."""
    locked[p], locks[at[HELD]] = True, p
    busy[token] += 1
    at[HELD] += 1


@kernel
def release(first: int, token: I64, chosen: I64, locked: Bools, busy: I64, locks: I64, at: I64) -> None:
    """Locks from this one on are undone."""
    for n in range(first, at[HELD]):
        locked[locks[n]] = False
        busy[token[chosen[locks[n]]]] -= 1
    at[HELD] = first


@kernel
def put_back(f: int, path_start: I64, path: I32, chosen: I64, load: I64, frames: I64) -> None:
    p, old = frames[f, MOVER], frames[f, OLD]
    for x in range(path_start[chosen[p]], path_start[chosen[p] + 1]):
        load[path[x]] -= 1
    if old >= 0:
        for x in range(path_start[old], path_start[old + 1]):
            load[path[x]] += 1
    chosen[p] = old


@kernel
def tightest(puzzle: Puzzle, world: World, trail: MoveTrail) -> int:
    """Of the cells with too many takers, the one that leaves the least choice of who must go; -1 if there is none."""
    owner, users, user_start, rows = puzzle.owner, puzzle.users, puzzle.user_start, puzzle.rows
    chosen, load, locked = world.chosen, world.load, trail.locked
    best, fewest = -1, 1 << 40
    for n in range(trail.at[SIZE] - 1, -1, -1):
        c = trail.bad[n]
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


@kernel
def cheapest(q: int, c: int, price: int, tried: int, puzzle: Puzzle, world: World, busy: I64) -> tuple[int, int]:
    """The next choice of somebody that leaves cell c, those first that overfill the fewest cells; -1 after the last.

    Of choices that are alike, and that nobody who is locked has, one stands for all.
    """
    path_start, path, rows, token, kind = puzzle.path_start, puzzle.path, puzzle.rows, puzzle.token, puzzle.kind
    load, dead, chosen = world.load, world.dead, world.chosen[q]
    first, last = puzzle.start[q], puzzle.start[q + 1]
    cost = np.full(last - first, -1, dtype=np.int64)
    for j in range(first, last):
        if j == chosen or dead[j]:
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
