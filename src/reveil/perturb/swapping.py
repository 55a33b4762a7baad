"""Swapping: values change places between rows, so that every column keeps its values and their counts.

Data swapping exchanges a row's values with those of another row, anywhere or among rows alike in stated columns.
Rank swapping (Moore 1996) exchanges values whose ranks are at most a stated distance apart.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from reveil.base.arrays import I64, starts_of
from reveil.base.kernels import kernel


def swap_pairs(strata: I64, share: Fraction, rng: np.random.Generator) -> I64:
    """For each row the row whose value it gets: itself, or its partner of the same stratum.

    In each stratum as many rows as make full pairs within `share` are drawn; every one of them has a partner.

    >>> swap_pairs(np.array([0, 0, 1, 1, 1]), Fraction(1), np.random.default_rng(0)).tolist()[:2]
    [1, 0]
    """
    mixed = rng.permutation(len(strata))
    order = mixed[np.argsort(strata[mixed], kind="stable")]
    sizes = np.bincount(strata)
    starts = starts_of(sizes)
    place = np.arange(len(order)) - np.repeat(starts, sizes)
    pairs = full_pairs(sizes, share)
    chosen = np.flatnonzero(place < np.repeat(2 * pairs, sizes))
    source = np.arange(len(strata))
    source[order[chosen]] = order[chosen + 1 - 2 * (place[chosen] % 2)]
    return source


def full_pairs(sizes: I64, share: Fraction) -> I64:
    """How many pairs `share` of each size makes, rounded down; a numerator may be too long for int64.

    >>> full_pairs(np.array([4, 4000]), Fraction(3333333333333333, 10**16)).tolist()
    [0, 666]
    """
    kinds, which = np.unique(sizes, return_inverse=True)
    halves = [size * share.numerator // (2 * share.denominator) for size in kinds.tolist()]
    return np.array(halves, dtype=np.int64)[which]


def rank_distance(percent: Fraction, rows: int) -> int:
    """How many ranks apart two values may be: `percent` of the rows, rounded down."""
    return int(percent * rows / 100)


def swap_ranks(values: NDArray[np.generic], distance: int, rng: np.random.Generator) -> I64:
    """For each row the row whose value it gets; partners are at most `distance` ranks apart.

    >>> values = np.arange(10)
    >>> source = swap_ranks(values, 2, np.random.default_rng(3))
    >>> bool(np.abs(values[source] - values).max() <= 2), sorted(source.tolist()) == values.tolist()
    (True, True)
    """
    order = np.argsort(values, kind="stable")
    partner = rank_partners(len(values), distance, int(rng.integers(2**62)))
    source = np.empty(len(values), dtype=np.int64)
    source[order] = order[partner]
    return source


@kernel
def rank_partners(count: int, distance: int, seed: int) -> I64:
    """From the lowest rank up, each rank without a partner draws one among those ahead that have none either.

    All that are free in reach are equally likely: a draw that is taken is repeated, and after many a free one is looked
    for from a random place.
    """
    partner = np.full(count, -1, dtype=np.int64)
    state = uint64(seed)
    for rank in range(count):
        if partner[rank] >= 0:
            continue
        partner[rank] = rank
        reach = min(distance, count - 1 - rank)
        if reach == 0:
            continue
        chosen = -1
        for attempt in range(65):
            state += uint64(0x9E3779B97F4A7C15)  # splitmix64
            mixed = state
            mixed = (mixed ^ (mixed >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> uint64(27))) * uint64(0x94D049BB133111EB)
            mixed = mixed ^ (mixed >> uint64(31))
            step = int(mixed % uint64(reach))
            if partner[rank + 1 + step] < 0:
                chosen = rank + 1 + step
                break
            if attempt == 64:
                for further in range(reach):
                    other = rank + 1 + (step + further) % reach
                    if partner[other] < 0:
                        chosen = other
                        break
        if chosen >= 0:
            partner[rank] = chosen
            partner[chosen] = rank
    return partner
