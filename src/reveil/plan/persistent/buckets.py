"""Division, balancing and assignment of m-invariance (Xiao and Tao 2007), on counts.

How many rows of each value go where is settled first, for all buckets; which rows these are is settled afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I32, I64, Ints, offsets_of, set_weights, starts_of
from reveil.base.kernels import kernel
from reveil.plan.cutting.values import ZERO
from reveil.plan.cutting.values import sort_by as sort_by_key
from reveil.plan.persistent.past import Shown, sort_by


@dataclass(frozen=True, eq=False)
class Buckets:
    """One slot for each value of each bucket; slots of a bucket are contiguous, values ascending."""

    first: I64  # where the slots of each bucket start; one more entry than buckets
    code: I32  # of each slot
    height: I64  # places per value, by bucket
    order: I64  # rows, sorted by slot
    start: I64  # where the rows of each slot start in `order`
    rows: I64  # of each slot

    @property
    def counterfeits(self) -> int:
        return int(np.repeat(self.height, np.diff(self.first)).sum() - self.rows.sum())


def divide(past: Shown, latest: I32) -> tuple[I64, I64, I32]:
    """Buckets of people published before: the bucket of each, and first slot and codes of the buckets."""
    groups, index = distinct_groups(latest, len(past.first) - 1)
    sizes = past.first[groups + 1] - past.first[groups]
    keys = _hashes(past, groups, sizes)
    distinct, example, of_group = np.unique(keys, return_index=True, return_inverse=True)
    first = offsets_of(sizes[example])
    inside = np.arange(first[-1]) - np.repeat(first[:-1] - past.first[groups[example]], sizes[example])
    return of_group[index] if len(distinct) else index, first, past.codes[inside]


@kernel
def distinct_groups(latest: Ints, count: int) -> tuple[I64, I64]:
    """The groups that occur, ascending, and the place of each entry's group among them."""
    place = np.full(count, -1, np.int64)
    for group in latest:
        place[group] = 0
    groups = np.flatnonzero(place == 0)
    place[groups] = np.arange(len(groups))
    return groups, place[latest]


def _hashes(past: Shown, groups: I64, sizes: I64) -> NDArray[np.uint64]:
    """A random number for each set of values. Two sets that meet by chance would be found by the verifier."""
    weights = set_weights(int(past.codes.max(initial=0)) + 1)
    if not len(groups):
        return np.empty(0, dtype=np.uint64)
    starts = starts_of(sizes)
    inside = np.arange(int(sizes.sum())) - np.repeat(starts - past.first[groups], sizes)
    return np.add.reduceat(weights[past.codes[inside]], starts)


@kernel
def balance(first: I64, code: I32, counts: I64, free: I64, m: int) -> I64:
    """Fill the slots of each bucket up to its largest with new rows, while the rest of these stays m-eligible.

    `counts` are rows per slot, `free` new rows per value; both are changed. Most frequent values are served first.
    Returns the height of each bucket.
    """
    heights = np.zeros(len(first) - 1, np.int64)
    slots, rarity = np.zeros(len(code), np.int64), np.zeros(len(code), np.int64)
    total = free.sum()
    for b in range(len(first) - 1):
        tall = 0
        for s in range(first[b], first[b + 1]):
            tall = max(tall, counts[s])
        heights[b] = tall
        for s in range(first[b], first[b + 1]):
            slots[s - first[b]], rarity[s] = s, -free[code[s]]
        sort_by_key(slots, first[b + 1] - first[b], rarity, ZERO)
        for s in slots[: first[b + 1] - first[b]]:
            need = min(tall - counts[s], free[code[s]])
            if need <= 0:
                continue
            others = 0
            for v in range(len(free)):
                if v != code[s]:
                    others = max(others, free[v])
            take = max(0, min(need, total - m * others))
            counts[s] += take
            free[code[s]] -= take
            total -= take
    return heights


@kernel
def assign(free: I64, m: int) -> tuple[list[np.int64], list[np.int64], list[np.int64]]:
    """Deal an m-eligible rest into signatures of m or more values: (values, how often), until nothing is left."""
    codes, ends, often = (
        [np.int64(0) for _ in range(0)],
        [np.int64(0) for _ in range(0)],
        [np.int64(0) for _ in range(0)],
    )
    order, rarity, chosen = np.arange(len(free)), np.zeros(len(free), np.int64), np.zeros(len(free), np.bool_)
    total = free.sum()
    while total > 0:
        for v in range(len(free)):
            rarity[v] = -free[v]
        sort_by_key(order, len(free), rarity, ZERO)
        width, alpha = m, np.int64(0)
        while True:
            alpha = free[order[width - 1]]
            if width > m:
                alpha = min(alpha, (total - m * free[order[0]]) // (width - m))
            if width < len(free):
                alpha = min(alpha, (total - m * free[order[width]]) // width)
            if alpha >= 1 or width >= len(free):
                break
            width += 1
        if alpha < 1:
            break
        for v in order[:width]:
            chosen[v] = True
        for v in range(len(free)):
            if chosen[v]:
                codes.append(np.int64(v))
                free[v] -= alpha
                chosen[v] = False
        ends.append(np.int64(len(codes)))
        often.append(alpha)
        total -= alpha * width
    return codes, ends, often


Keep = Callable[[I64], I64]  # from free rows by value to those of them that can be grouped


def fill(past: Shown, latest: I32, known: I64, codes: I32, fresh: I64, width: int, m: int, keep: Keep) -> Buckets:
    """Put rows into balanced buckets: `known` rows (last group: `latest`) into theirs, `fresh` rows where they fit.

    `codes` are those of all rows, `width` how many there are. Fresh rows that cannot be grouped are left out.
    """
    of_row, first, code = divide(past, latest)
    slot = slots_of(first, code, of_row, known, codes)
    counts = np.bincount(slot, minlength=len(code)).astype(np.int64)
    free = np.bincount(codes[fresh], minlength=width).astype(np.int64)
    taken = counts.copy()
    height = balance(first, code.astype(np.int64), counts, free, m)
    taken = counts - taken
    rest = keep(free.copy())
    new_codes, ends, often = assign(rest, m)
    lengths = np.diff([0, *ends])
    first = np.concatenate([first, first[-1] + np.array(ends, dtype=np.int64)])
    code = np.concatenate([code, np.array(new_codes, dtype=np.int32)])
    height = np.concatenate([height, np.array(often, dtype=np.int64)])
    taken = np.concatenate([taken, np.repeat(np.array(often, dtype=np.int64), lengths)])
    first, code, height, slot, taken = _merged(first, code, height, slot, taken)
    chosen, joins = _hand_out(codes, fresh, code, taken, width)
    rows, slots = np.concatenate([known, chosen]), np.concatenate([slot, joins])
    by_slot, starts = sort_by(slots, len(code))
    return Buckets(first, code, height, rows[by_slot], starts[:-1], np.diff(starts))


@kernel
def slots_of(first: I64, code: I32, bucket: I64, rows: I64, codes: I32) -> I64:
    """The slot of each row, from its bucket and its code."""
    slots = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        slot = first[bucket[i]]
        while code[slot] != codes[rows[i]]:
            slot += 1
        slots[i] = slot
    return slots


def _merged(first: I64, code: I32, height: I64, slot: I64, taken: I64) -> tuple[I64, I32, I64, I64, I64]:
    """Buckets of equal signature as one."""
    sizes = np.diff(first)
    if not len(sizes):
        return first, code, height, slot, taken
    weights = set_weights(int(code.max()) + 1)
    keys = np.add.reduceat(weights[code], first[:-1])
    _, example, index = np.unique(keys, return_index=True, return_inverse=True)
    new_first = offsets_of(sizes[example])
    owner = np.repeat(np.arange(len(sizes)), sizes)
    target = new_first[index[owner]] + np.arange(len(code)) - first[owner]
    new_code = np.zeros(int(new_first[-1]), dtype=np.int32)
    new_code[target] = code
    heights = np.bincount(index, weights=height).astype(np.int64)
    return new_first, new_code, heights, target[slot], np.bincount(target, weights=taken).astype(np.int64)


def _hand_out(codes: I32, fresh: I64, code: I32, taken: I64, width: int) -> tuple[I64, I64]:
    """Which fresh row goes to which slot: rows of a value in the order given, slots of a value in turn."""
    by_value = np.argsort(code, kind="stable")
    joins = np.repeat(by_value, taken[by_value])
    rows = fresh[sort_by(codes[fresh], width)[0]]
    have = np.bincount(codes[fresh], minlength=width)
    want = np.bincount(code, weights=taken, minlength=width).astype(np.int64)
    starts = starts_of(have)
    inside = np.arange(int(want.sum())) - np.repeat(starts_of(want) - starts, want)
    return rows[inside], joins
