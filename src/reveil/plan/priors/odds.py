"""What a group must satisfy under priors, tested fast.

People with the same odds are of one *kind*. In a group every value occurs at most once. These tests are
written apart from the judge's (`reveil.verify.judges.posterior`) and share no code with it; they lean to the
cautious side of rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveil.base.arrays import F64, I32, I64
from reveil.base.kernels import kernel

CAUTION = 1e-9  # by how much a threshold must be met, so that no rounding can carry a group over it
SUBSETS = 10  # groups up to this size are tested over all subsets of values when the bound does not settle them


class Odds(NamedTuple):
    """What is known beforehand, and what is promised."""

    kinds: I32  # rows x priors: number of the row's distribution
    first: I64  # where the distributions of each prior start in `table`
    table: F64  # distributions x codes
    r: float
    delta: bool  # the paper's condition instead of the bound
    size: int  # least rows of a group
    place: F64  # rows' distributions as points: rows x coordinates, near where odds are alike


@kernel
def accepts(odds: Odds, codes: I32, members: I64, n: int) -> bool:
    """Whether the first n members, whose values differ, may be a group under every prior."""
    if n < odds.size:
        return False
    for prior in range(odds.kinds.shape[1]):
        alike = True
        for i in range(1, n):
            alike = alike and odds.kinds[members[i], prior] == odds.kinds[members[0], prior]
        if alike:
            continue  # then everybody's chance is 1/n, and n >= size >= r
        if odds.delta:
            if not deviations_small(odds, prior, codes, members, n):
                return False
        elif not (exchange_settles(odds, prior, codes, members, n) or subsets_settle(odds, prior, codes, members, n)):
            return False
    return True


@kernel
def chance(odds: Odds, prior: int, codes: I32, members: I64, person: int, holder: int) -> float:
    """The prior of one member for the value of another."""
    return odds.table[odds.first[prior] + odds.kinds[members[person], prior], codes[members[holder]]]


@kernel
def deviations_small(odds: Odds, prior: int, codes: I32, members: I64, n: int) -> bool:
    """The paper's condition: for each value, the odds of all members lie within Delta_ceil of the highest."""
    for x in range(n):
        high, low = 0.0, 1.0
        for v in range(n):
            f = chance(odds, prior, codes, members, v, x)
            high, low = max(high, f), min(low, f)
        if high >= 1.0 and low < high:
            return False
        ceiling = (n - odds.r) * high / (high * (odds.r - 1) / (1 - high) + n - 1) if 0.0 < high < 1.0 else 0.0
        if low < high and high - low > ceiling * (1 - CAUTION):
            return False
    return True


@kernel
def exchange_settles(odds: Odds, prior: int, codes: I32, members: I64, n: int) -> bool:
    """Whether exchanging two people's values shows that everybody's chance is at most 1/r."""
    total = np.empty(n)
    for v in range(n):
        total[:] = 1.0
        for u in range(n):
            if u == v:
                continue
            least, second, where = np.inf, np.inf, -1
            for y in range(n):
                f = chance(odds, prior, codes, members, u, y)
                if f > 0.0:
                    ratio = chance(odds, prior, codes, members, v, y) / f
                    if ratio < least:
                        least, second, where = ratio, least, y
                    elif ratio < second:
                        second = ratio
            for x in range(n):
                f = chance(odds, prior, codes, members, v, x)
                rest = second if where == x else least
                if f > 0.0 and rest < np.inf:
                    total[x] += chance(odds, prior, codes, members, u, x) / f * rest
        for x in range(n):
            if chance(odds, prior, codes, members, v, x) > 0.0 and total[x] < odds.r * (1 + CAUTION):
                return False
    return True


@kernel
def subsets_settle(odds: Odds, prior: int, codes: I32, members: I64, n: int) -> bool:
    """Whether the sum over all worlds shows it: `ways[s]` is the weight of giving the first |s| people the
    values s.
    """
    if n > SUBSETS:
        return False
    full = (1 << n) - 1
    ways, rest = np.zeros(full + 1), np.zeros(full + 1)
    ways[0], rest[full] = 1.0, 1.0
    share = np.empty((n, n))
    for person in range(n):
        top = 0.0
        for x in range(n):
            share[person, x] = chance(odds, prior, codes, members, person, x)
            top = max(top, share[person, x])
        if top > 0.0:
            share[person] /= top
    for s in range(full):
        person = bits(s)
        for x in range(n):
            if not s >> x & 1:
                ways[s | 1 << x] += ways[s] * share[person, x]
    if not ways[full] > 1e-200:
        return False
    held = np.zeros((n, n))
    for s in range(full - 1, -1, -1):
        person = bits(s)
        for x in range(n):
            if not s >> x & 1:
                part = share[person, x] * rest[s | 1 << x]
                rest[s] += part
                held[person, x] += ways[s] * part
    return bool(held.max() * odds.r * (1 + CAUTION) <= ways[full])


@kernel
def bits(s: int) -> int:
    count = 0
    while s:
        s &= s - 1
        count += 1
    return count
