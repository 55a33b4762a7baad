"""Equivalence classes of a recoded table, by counts: which rows look alike, and which classes may be published.

A `Tally` holds every different row once, with how often it occurs. Recoding replaces each position by the label of a
table per column (`Recoding`), packs the labels of a row into one integer, and numbers the different integers. Coarser
recodings are counted from finer tallies, never from the rows again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import F64, I32, I64
from reveil.base.kernels import bare_kernel
from reveil.plan.cutting.values import (
    DISTINCT,
    EMD_EQUAL,
    EMD_ORDERED,
    EMD_TREE,
    FREQUENCY,
    Rows,
    Tests,
    decide,
    distance,
    room_for,
)

LARGEST = 2**62  # no packed key may be larger
Flags = NDArray[np.bool_]
EMPTY: Any = np.int64(-1)
ROUNDING = 1e-9  # far more than floats are off, far less than any row matters


@dataclass(frozen=True, eq=False)
class Tally:
    """Different rows (positions, then sensitive codes) and how many rows of the table each stands for."""

    rows: Rows
    weight: I64

    def __len__(self) -> int:
        return len(self.weight)


@dataclass(frozen=True, eq=False)
class Recoding:
    """For each column the label of every position, numbered from 0, and a position that stands for each label."""

    label: tuple[I64, ...]
    stand_in: tuple[I64, ...]

    @property
    def sizes(self) -> list[int]:
        return [len(places) for places in self.stand_in]


class Labels(NamedTuple):
    """The labels of the positions of some columns, end to end; where each column's begin, and how many it has."""

    label: I64
    first: I64
    size: I64


class CountedClasses(NamedTuple):
    """Different rows in the order of their classes: where each class ends, and how many rows of the table it has."""

    rows: Rows
    weight: I64
    order: I64
    ends: I64
    sizes: I64


def recoding(labels: Sequence[NDArray[Any]]) -> Recoding:
    """Any labels of the positions of each column, renumbered without gaps."""
    distinct = [np.unique(column, return_index=True, return_inverse=True) for column in labels]
    return Recoding(
        tuple(inverse.astype(np.int64) for _, _, inverse in distinct),
        tuple(first.astype(np.int64) for _, first, _ in distinct),
    )


def number(rows: Rows, how: Recoding) -> tuple[I32, int]:
    """The class of each row: rows share one where all their labels are equal. Classes are numbered as they appear."""
    ids, count = np.zeros(len(rows), dtype=np.int32), 1
    sizes, begin = how.sizes, 0
    while begin < len(sizes) and len(rows):
        end, span = begin, count
        while end < len(sizes) and (end == begin or span * sizes[end] < LARGEST):
            span *= sizes[end]
            end += 1
        direct = span <= 4 * len(rows)
        room = span if direct else 1 << int(2 * len(rows)).bit_length()
        keys, owner = np.full(1 if direct else room, EMPTY), np.full(room, -1, dtype=np.int32)
        part = how.label[begin:end]
        first = np.cumsum([0, *(len(column) for column in part)], dtype=np.int64)
        labels = Labels(np.concatenate(part), first, np.array(sizes[begin:end], dtype=np.int64))
        count = number_into(rows, begin, labels, direct, keys, owner, ids)
        begin = end
    return ids, count


@bare_kernel
def number_into(rows: Rows, begin: int, labels: Labels, direct: bool, keys: I64, owner: I32, ids: I32) -> int:
    """Number the rows by their class so far (`ids`) and the labels of the columns from `begin` on."""
    label, first, size = labels
    count, mask = 0, len(owner) - 1
    for i in range(len(rows)):
        key = np.int64(ids[i])
        for c in range(len(size)):
            key = key * size[c] + label[first[c] + rows[i, begin + c]]
        place = key
        if not direct:
            place = (key ^ (key >> 29)) * -7046029254386353131
            place = (place ^ (place >> 32)) & mask
            while owner[place] >= 0 and keys[place] != key:
                place = (place + 1) & mask
            keys[place] = key
        if owner[place] < 0:
            owner[place] = count
            count += 1
        ids[i] = owner[place]
    return count


def tally(rows: Rows, weight: I64 | None, how: Recoding, sensitive: int) -> Tally:
    """Count the rows of a table (or of a finer tally) that are alike after recoding; sensitive codes stay apart.

    The positions of a tally are stand-ins: any coarser recoding maps them as it maps the originals.
    """
    ids, count = number(rows, how)
    examples = np.empty((count, rows.shape[1]), dtype=rows.dtype)
    examples[ids] = rows
    for c in range(rows.shape[1] - sensitive):
        examples[:, c] = how.stand_in[c][how.label[c][examples[:, c]]]
    weights = np.bincount(ids, minlength=count) if weight is None else np.bincount(ids, weight, minlength=count)
    return Tally(examples, weights.astype(np.int64))


def failing(counted: Tally, ids: I32, count: int, tests: Tests) -> tuple[Flags, I64]:
    """Which classes may not be published, and the rows of each class."""
    sizes = np.bincount(ids, counted.weight, minlength=count).astype(np.int64)
    bad = sizes < tests.least
    if len(tests.kind):
        judge(tests, _in_order(counted, ids, count, sizes), bad, *room_for(tests))
    return bad, sizes


def _in_order(counted: Tally, ids: I32, count: int, sizes: I64) -> CountedClasses:
    ends = np.cumsum(np.bincount(ids, minlength=count))
    return CountedClasses(counted.rows, counted.weight, np.argsort(ids, kind="stable"), ends, sizes)


def least_withheld(counted: Tally, ids: I32, count: int, sizes: I64, tests: Tests, slack: float) -> float:
    """How many rows any finer recoding withholds at least; `slack` is the share of rows that it may withhold.

    What a finer recoding keeps of a class is a union of classes that pass, so it is large, diverse and close enough
    itself. Leaving out x of n rows moves their distribution by x/n at most, and that of the published table by `slack`.
    """
    gone = np.where(sizes < tests.least, sizes, 0).astype(np.float64)
    if len(tests.kind):
        bound_withheld(tests, _in_order(counted, ids, count, sizes), slack, gone, *room_for(tests))
    return float(gone.sum())


@bare_kernel
def count_codes(classes: CountedClasses, begin: int, end: int, column: int, count: I64, work: I64) -> int:
    """Count the codes of one class in a column; those that occur are put into `work`. Returns how many they are."""
    weight, order, touched = classes.weight, classes.order, 0
    for j in range(begin, end):
        code = classes.rows[order[j], column]
        if count[code] == 0:
            work[touched] = code
            touched += 1
        count[code] += weight[order[j]]
    return touched


@bare_kernel
def bound_withheld(tests: Tests, classes: CountedClasses, slack: float, gone: F64, count: I64, work: I64) -> None:
    """Raise `gone` of each class to what its sensitive values tell."""
    begin, ends = 0, classes.ends
    for g in range(len(ends)):
        for test in range(len(tests.kind)):
            touched = count_codes(classes, begin, ends[g], tests.column[test], count, work)
            gone[g] = max(gone[g], beyond(tests, test, count, work, touched, classes.sizes[g], slack))
            for j in range(touched):
                count[work[j]] = 0
        begin = ends[g]


@bare_kernel
def beyond(tests: Tests, test: int, count: I64, work: I64, touched: int, size: int, slack: float) -> float:
    """Rows of a class that are in no union of passing classes, as far as one test tells; 0 where it tells nothing."""
    kind, limit = tests.kind[test], tests.a[test] / tests.b[test]
    if kind == DISTINCT:
        return float(size) if touched < tests.l[test] else 0.0
    if kind == FREQUENCY and limit < 1:
        most = 0
        for j in range(touched):
            most = max(most, count[work[j]])
        return max(0.0, most - limit / (1 - limit) * (size - most) - ROUNDING * size)
    if kind in (EMD_EQUAL, EMD_ORDERED, EMD_TREE):
        moved, unit, whole = distance(tests, test, count, work, touched, size)
        excess = moved / (float(unit) * size * whole) - limit - slack - ROUNDING
        others = 1.0
        if kind == EMD_EQUAL:  # with fewer rows, the share that the values in excess may have is fewer rows, too
            base, first, taken = tests.first_code[test], tests.first_slot[test], 0
            for j in range(touched):
                total = tests.total[first + tests.slot[base + work[j]]]
                if count[work[j]] * whole > total * size:
                    taken += total
            others = max(ROUNDING, 1 - taken / whole - limit - slack)
        return min(float(size), max(0.0, size * excess / others))
    return 0.0


@bare_kernel
def judge(tests: Tests, classes: CountedClasses, bad: Flags, count: I64, work: I64) -> None:
    """Mark the classes whose sensitive values fail a test."""
    begin, ends = 0, classes.ends
    for g in range(len(ends)):
        for test in range(len(tests.kind)):
            if bad[g]:
                break
            touched = count_codes(classes, begin, ends[g], tests.column[test], count, work)
            bad[g] = not decide(tests, test, count, work, touched, classes.sizes[g])
        begin = ends[g]
