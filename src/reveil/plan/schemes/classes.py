"""Equivalence classes of a recoded table, by counts: which rows look alike, and which classes may be published.

A `Tally` holds every different row once, with how often it occurs. Recoding replaces each position by the label of a
table per column (`Recoding`), packs the labels of a row into one integer, and numbers the different integers. Coarser
recodings are counted from finer tallies, never from the rows again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I32, I64
from reveil.base.kernels import bare_kernel
from reveil.plan.cutting.values import Rows, Tests, decide, room_for

LARGEST = 2**62  # no packed key may be larger
Flags = NDArray[np.bool_]
EMPTY: Any = np.int64(-1)


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
        size = np.array(sizes[begin:end], dtype=np.int64)
        count = number_into(rows, begin, np.concatenate(part), first, size, direct, keys, owner, ids)
        begin = end
    return ids, count


@bare_kernel
def number_into(
    rows: Rows, begin: int, label: I64, first: I64, size: I64, direct: bool, keys: I64, owner: I32, ids: I32
) -> int:
    """Number the rows by their class so far (`ids`) and the labels of the columns from `begin` on."""
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
        order = np.argsort(ids, kind="stable")
        ends = np.cumsum(np.bincount(ids, minlength=count))
        judge(tests, counted.rows, counted.weight, order, ends, sizes, bad, *room_for(tests))
    return bad, sizes


@bare_kernel
def judge(
    tests: Tests,
    rows: Rows,
    weight: I64,
    order: I64,
    ends: I64,
    sizes: I64,
    bad: Flags,
    count: I64,
    work: I64,
) -> None:
    """Mark the classes whose sensitive values fail a test."""
    begin = 0
    for g in range(len(ends)):
        for test in range(len(tests.kind)):
            if bad[g]:
                break
            touched = 0
            for j in range(begin, ends[g]):
                code = rows[order[j], tests.column[test]]
                if count[code] == 0:
                    work[touched] = code
                    touched += 1
                count[code] += weight[order[j]]
            bad[g] = not decide(tests, test, count, work, touched, sizes[g])
        begin = ends[g]
