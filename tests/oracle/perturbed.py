"""Perturbation by definition: the best grouping by trying all, ranks by counting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction


def partitions(items: Sequence[int], least: int) -> Iterator[list[list[int]]]:
    """Every way to part items into sets of at least `least`."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for mask in range(2 ** len(rest)):
        together = [first, *(item for i, item in enumerate(rest) if mask >> i & 1)]
        if len(together) >= least:
            others = [item for i, item in enumerate(rest) if not mask >> i & 1]
            for more in partitions(others, least):
                yield [together, *more]


def squared_error(values: Sequence[int], groups: list[list[int]]) -> Fraction:
    total = Fraction(0)
    for group in groups:
        mean = Fraction(sum(values[i] for i in group), len(group))
        total += sum((values[i] - mean) ** 2 for i in group)
    return total


def least_error(values: Sequence[int], k: int) -> Fraction:
    return min(squared_error(values, groups) for groups in partitions(range(len(values)), k))


def rank_distance(values: Sequence[int], before: int, after: int) -> int:
    """How many ranks two values are apart at least, with equal values in any order."""
    low, high = min(before, after), max(before, after)
    if low == high:
        return 0
    return sum(low < value < high for value in values) + 1
