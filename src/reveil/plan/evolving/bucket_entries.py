"""Buckets of m-Distinct: entries that take any value of a set. The hot loops.

A bucket has one entry for each candidate update set of its signature and, once settled, `height` rows in each entry:
people, then counterfeits. A row is an edge between its entry and its value. An edge colouring of this bipartite graph
with `height` colours exists whenever no value has more rows than that (Koenig), so a bucket can always be parted into
groups with one row of each entry and no value twice. Parting goes by position, and values that would meet are moved
along alternating paths, so there is no blind search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveil.base.arrays import I32, I64, Bools
from reveil.base.kernels import kernel
from reveil.plan.cutting.trees import Trees
from reveil.plan.persistent.split import Ordered, boxes_for, cut


class Entries(NamedTuple):
    """The entries of all buckets: bucket b has entry[first[b]:first[b + 1]], numbers of rows of `sets`."""

    first: I64
    entry: I64
    sets: Bools  # update set x value


class Bucket(NamedTuple):
    """One bucket while it is balanced."""

    mine: I64  # its entries
    sets: Bools
    held: I64  # rows by entry and value
    fakes: I64  # counterfeits by entry and value
    load: I64  # rows by entry
    came: I64  # the path so far: from which entry, by which value, and who is next
    by: I64
    queue: I64


class Sides(NamedTuple):
    """Of each entry, `size` places from `here` on are on the side that is looked at, `others` from `there` on not."""

    here: int
    size: int
    there: int
    others: int


class Paths(NamedTuple):
    """Alternating paths between values, by value."""

    held: I64  # rows on the side that is looked at
    came: I64
    low: I64  # places to swap
    high: I64
    queue: I64


class Settled(NamedTuple):
    """Balanced buckets: where their rows start, how many entries and groups they have, and their first group."""

    start: I64
    entries: I64
    height: I64
    first: I64


@kernel
def assign(
    shape: Entries, options: I64, option_first: I64, signature: I64, code: I32, positions: I32, order: I64, buckets: I64
) -> None:
    """The bucket of each row by the paper's score, rows in the order given (fewest options first).

    A row that needs no further counterfeit scores 1/growth, any other -growth, where growth is how much the area that
    the bucket's rows cover grows. Fills `buckets`.
    """
    first, entry, sets = shape
    count, columns = len(first) - 1, positions.shape[1]
    load = np.zeros(len(entry), np.int64)
    often = np.zeros((count, sets.shape[1]), np.int32)
    height = np.zeros(count, np.int64)
    box = np.zeros((count, 2, columns), np.int32)
    for i in order:
        v, s = code[i], signature[i]
        best, best_score, best_entry = -1, -np.inf, -1
        for o in range(option_first[s], option_first[s + 1]):
            b = options[o]
            least = -1
            for e in range(first[b], first[b + 1]):
                if sets[entry[e], v] and (least < 0 or load[e] < load[least]):
                    least = e
            if least < 0:
                continue
            growth = 1.0
            for c in range(columns):
                if height[b] > 0:
                    p, a, z = positions[i, c], box[b, 0, c], box[b, 1, c]
                    growth *= (max(z, p) - min(a, p) + 1) / (z - a + 1)
            score = 1 / growth if often[b, v] < height[b] and load[least] < height[b] else -growth
            if score > best_score:
                best, best_score, best_entry = b, score, least
        for c in range(columns):
            p = positions[i, c]
            box[best, 0, c] = min(box[best, 0, c], p) if height[best] else p
            box[best, 1, c] = max(box[best, 1, c], p) if height[best] else p
        load[best_entry] += 1
        often[best, v] += 1
        height[best] = max(height[best], load[best_entry], often[best, v])
        buckets[i] = best


@kernel
def push(bucket: Bucket, v: int, amount: int, cap: int) -> int:
    """Put rows of value v into entries with fewer than `cap`, moving others to make room; returns how many."""
    mine, sets, held, _, load, came, by, queue = bucket
    pushed = 0
    while pushed < amount:
        tail = head = 0
        for e in range(len(mine)):
            came[e] = -2
            if sets[mine[e], v]:
                came[e], queue[tail], tail = -1, e, tail + 1
        end = -1
        while head < tail:
            e = queue[head]
            head += 1
            if load[e] < cap:
                end = e
                break
            for u in range(held.shape[1]):
                if held[e, u] > 0:
                    for f in range(len(mine)):
                        if came[f] == -2 and sets[mine[f], u]:
                            came[f], by[f], queue[tail], tail = e, u, f, tail + 1
        if end < 0:
            break
        units, f = min(amount - pushed, cap - load[end]), end
        while came[f] >= 0:
            units, f = min(units, held[came[f], by[f]]), came[f]
        load[end] += units
        f = end
        while came[f] >= 0:
            held[f, by[f]] += units
            held[came[f], by[f]] -= units
            f = came[f]
        held[f, v] += units
        pushed += units
    return pushed


@kernel
def invent(bucket: Bucket, root: int, cap: int, degree: I64, turn: int) -> int:
    """Give an entry one counterfeit, of a value with fewer than `cap` rows; others change entries if need be.

    Values are taken in turn. Such a value can always be reached: the old group's values stand for one way to do it.
    """
    mine, sets, held, fakes, _, came, by, queue = bucket
    width = len(degree)
    for i in range(len(came)):  # not came[:]: Numba 0.68 may leave out slices of arrays in named tuples
        came[i] = -2
    came[root], queue[0], head, tail = -1, root, 0, 1
    while head < tail:
        e = queue[head]
        head += 1
        for i in range(width):
            v = (turn + i) % width
            if sets[mine[e], v] and degree[v] < cap:
                fakes[e, v] += 1
                degree[v] += 1
                while came[e] >= 0:  # a row of by[e] goes from e to where it is missing
                    moved = fakes if fakes[e, by[e]] > 0 else held
                    moved[e, by[e]] -= 1
                    moved[came[e], by[e]] += 1
                    e = came[e]
                return v + 1
        for u in range(width):
            if sets[mine[e], u]:
                for f in range(len(mine)):
                    if came[f] == -2 and held[f, u] + fakes[f, u] > 0:
                        came[f], by[f], queue[tail], tail = e, u, f, tail + 1
    return -1


@kernel
def welcome(v: int, most: int, total: int, kind: I64, free: I64, by_kind: I64, size: int) -> int:
    """How many new rows of a value may join buckets so that the others can still be grouped, `size` kinds at a time."""
    others = 0
    for k in range(len(by_kind)):
        if k != kind[v]:
            others = max(others, by_kind[k])
    return max(0, min(most, free[v], total - size * others))


@kernel
def settle(
    shape: Entries, counts: I64, free: I64, kind: I64, by_kind: I64, size: int, shuffled: I64
) -> tuple[I64, I32, Bools]:
    """Balance all buckets: place their rows in entries, fill up with new rows, then with counterfeits.

    `counts` are rows by bucket and value, `free` new rows by value (both are changed). New rows join where they cost no
    counterfeit. Returns the height of each bucket, and value and realness of each row: by bucket, then entry, with
    `height` rows in every entry.
    """
    first, entry, sets = shape
    width = len(free)
    heights = np.zeros(len(first) - 1, np.int64)
    value, real, made = np.empty(1024, np.int32), np.empty(1024, np.bool_), 0
    total, turn = by_kind.sum(), 0
    for b in range(len(first) - 1):
        mine = entry[first[b] : first[b + 1]]
        q = len(mine)
        held, fakes = np.zeros((q, width), np.int64), np.zeros((q, width), np.int64)
        load, queue = np.zeros(q, np.int64), np.empty(q, np.int64)
        came, by = np.empty(q, np.int64), np.empty(q, np.int64)
        bucket = Bucket(mine, sets, held, fakes, load, came, by, queue)
        cap = max(counts[b].max(), -(-counts[b].sum() // q))
        for v in range(width):
            left = counts[b, v]
            while left > 0:
                left -= push(bucket, v, left, cap)
                cap += left > 0
        room = q * cap - load.sum()
        for v in np.argsort(-free[shuffled]):
            v = shuffled[v]
            if room == 0 or free[v] == 0:
                break
            wanted = min(room, cap - counts[b, v])
            if wanted > 0:
                wanted = welcome(v, wanted, total, kind, free, by_kind, size)
                wanted = push(bucket, v, wanted, cap)
                counts[b, v] += wanted
                free[v] -= wanted
                by_kind[kind[v]] -= wanted
                total -= wanted
                room -= wanted
        degree = counts[b].copy()
        for e in range(q):
            for _ in range(cap - load[e]):
                turn = invent(bucket, e, cap, degree, turn)
                if turn < 0:
                    raise RuntimeError("a signature without different values for its entries")
        if made + q * cap > len(value):
            larger = 2 * (made + q * cap)
            value = np.concatenate((value[:made], np.empty(larger - made, np.int32)))
            real = np.concatenate((real[:made], np.empty(larger - made, np.bool_)))
        for e in range(q):
            for v in range(width):
                for kept in range(2):
                    for _ in range(held[e, v] if kept else fakes[e, v]):
                        value[made], real[made], made = v, kept == 1, made + 1
        heights[b] = cap
    return heights, value[:made], real[:made]


@kernel
def exchange(order: I64, value: I32, begin: I64, sides: Sides, paths: Paths, top: int) -> int:
    """How to take one row of value `top` out of the side in which it is too often, along an alternating path.

    Places count from begin[e] on in entry e. Fills the places to swap, and returns the value at the end of the path.
    """
    here, size, there, others = sides
    count, came, low, high, queue = paths
    for i in range(len(came)):
        came[i] = -2
    came[top], queue[0], head, tail = -1, top, 0, 1
    scanned = np.zeros(len(begin), np.bool_)
    while head < tail:
        u = queue[head]
        head += 1
        for e in range(len(begin)):
            if scanned[e]:
                continue
            own = -1
            for i in range(begin[e] + here, begin[e] + here + size):
                if value[order[i]] == u:
                    own = i
                    break
            if own < 0:
                continue
            scanned[e] = True
            for j in range(begin[e] + there, begin[e] + there + others):
                w = value[order[j]]
                if came[w] == -2:
                    came[w], low[w], high[w], queue[tail], tail = u, own, j, w, tail + 1
                    if count[w] < size:
                        return w
    return -1


@kernel
def keep_apart(placed: Ordered, value: I32, begin: I64, tall: int, part: int, paths: Paths) -> None:
    """After a cut, exchange rows between its sides until no value has more rows on a side than that has groups.

    A cut without such values exists, so there is a path from each value that is too often to one that is not.
    """
    order, near = placed
    count, came, low, high, _ = paths
    for side in range(2):
        here, there = (0, part) if side == 0 else (part, 0)
        size, others = (part, tall - part) if side == 0 else (tall - part, part)
        for v in range(len(count)):
            count[v] = 0
        for e in range(len(begin)):
            for i in range(begin[e] + here, begin[e] + here + size):
                count[value[order[i]]] += 1
        for v in range(len(count)):
            while count[v] > size:
                end = exchange(order, value, begin, Sides(here, size, there, others), paths, v)
                count[end] += 1
                count[v] -= 1
                while came[end] >= 0:
                    i, j = low[end], high[end]
                    order[i], order[j] = order[j], order[i]
                    for c in range(near.shape[1]):
                        near[i, c], near[j, c] = near[j, c], near[i, c]
                    end = came[end]


@kernel
def paths_for(width: int) -> Paths:
    room = np.zeros((5, width), np.int64)
    return Paths(room[0], room[1], room[2], room[3], room[4])


@kernel
def part_bucket(trees: Trees, placed: Ordered, value: I32, width: int, buckets: Settled, b: int, group: I32) -> None:
    """Part bucket b, whose rows lie in their order by entry, into groups."""
    start, entries, height, first = buckets.start[b], buckets.entries[b], buckets.height[b], buckets.first[b]
    boxes, paths = boxes_for(placed.near.shape[1]), paths_for(width)
    begin, full = np.zeros(entries, np.int64), np.zeros(entries, np.int64)
    offsets, heights, top = np.zeros(128, np.int64), np.zeros(128, np.int64), 1
    heights[0] = height
    while top > 0:
        top -= 1
        tall, offset = heights[top], offsets[top]
        for e in range(entries):
            begin[e], full[e] = start + e * height + offset, tall
        if tall == 1:
            for e in range(entries):
                group[placed.order[begin[e]]] = first + offset
            continue
        part = tall // 2
        cut(trees, placed, begin, full, tall, part, boxes)
        keep_apart(placed, value, begin, tall, part, paths)
        heights[top], offsets[top] = part, offset
        heights[top + 1], offsets[top + 1] = tall - part, offset + part
        top += 2


@kernel
def part_all(trees: Trees, placed: Ordered, value: I32, width: int, buckets: Settled, group: I32, which: I64) -> None:
    """Part the buckets of one thread."""
    for b in which:
        if buckets.height[b] > 0:
            part_bucket(trees, placed, value, width, buckets, b, group)
