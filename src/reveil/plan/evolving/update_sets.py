"""Update set signatures of m-Distinct: which buckets there are, and which rows may go to which.

A person's signature are the candidate update sets (CUS) of the values that their last group showed. There is a bucket
for each signature, and one for each useful intersection of two: a person may go to any bucket whose sets are, paired
one to one, within theirs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from reveil.base.arrays import I32, I64, set_weights, starts_of
from reveil.plan.persistent.buckets import distinct_groups
from reveil.plan.persistent.past import Shown

Sets = NDArray[np.bool_]
COMPARED = 1_000  # signatures that are intersected with others, those of most people
PARTNERS = 8  # signatures that each of them is intersected with, the most alike


@dataclass(frozen=True, eq=False)
class Signatures:
    """Buckets by signature: first those of people's own signatures, then intersections."""

    sets: Sets  # distinct sets x values
    first: I64  # where the entries of each bucket start; one more than buckets
    entry: I64  # the set of each entry
    own: I64  # of each known row: its signature, which is the number of its own bucket
    options: I64  # buckets for the people of a signature, by signature
    option_first: I64

    @property
    def count(self) -> int:
        return len(self.first) - 1


def read_signatures(past: Shown, latest: I32, allowed: Sets) -> Signatures:
    """The signatures of people whose last groups are given, and the buckets they may go to."""
    sets, class_of = np.unique(allowed, axis=0, return_inverse=True)
    class_of = class_of.ravel()
    groups, index = distinct_groups(latest, len(past.first) - 1)
    sizes = past.first[groups + 1] - past.first[groups]
    starts = starts_of(sizes)
    inside = np.arange(int(sizes.sum())) - np.repeat(starts - past.first[groups], sizes)
    classes = class_of[past.codes[inside]]
    of_group, entries = _distinct(classes, starts, sizes, len(sets))
    own = of_group[index] if len(groups) else index
    first = np.cumsum([0, *map(len, entries)])
    if _only_equal(sets):
        options, option_first = np.arange(len(entries)), np.arange(len(entries) + 1)
        return Signatures(sets, first, _flat(entries), own, options, option_first)
    people = np.bincount(own, minlength=len(entries))
    return _with_intersections(sets, entries, own, people)


def _flat(entries: list[I64]) -> I64:
    return np.concatenate([np.empty(0, dtype=np.int64), *entries])


def _distinct(classes: I64, starts: I64, sizes: I64, count: int) -> tuple[I64, list[I64]]:
    """The signature of each group, a multiset of classes, and the classes of each signature in order."""
    if not len(starts):
        return np.empty(0, dtype=np.int64), []
    weights = set_weights(count)
    keys = np.add.reduceat(weights[classes], starts)  # two that meet by chance would be found by the verifier
    _, example, of_group = np.unique(keys, return_index=True, return_inverse=True)
    entries = [np.sort(classes[starts[g] : starts[g] + sizes[g]]) for g in example]
    return of_group, entries


def _only_equal(sets: Sets) -> bool:
    """Whether sets that are not equal never overlap: then no two signatures have an intersection of their own."""
    return bool((sets.sum(axis=0) <= 1).all())


def _with_intersections(sets: Sets, entries: list[I64], own: I64, people: I64) -> Signatures:
    known = {row.tobytes(): number for number, row in enumerate(sets)}
    table = list(sets)
    buckets = {tuple(entry.tolist()): number for number, entry in enumerate(entries)}
    options = [[number] for number in range(len(entries))]
    for i, j in _pairs(sets, entries, people):
        common = _intersection(sets, entries[i], entries[j])
        if common is None:
            continue
        numbers = []
        for row in common:
            number = known.setdefault(row.tobytes(), len(table))
            if number == len(table):
                table.append(row)
            numbers.append(number)
        bucket = buckets.setdefault(tuple(sorted(numbers)), len(buckets))
        for side in (i, j):
            if bucket not in options[side]:
                options[side].append(bucket)
    flat = [np.array(key, dtype=np.int64) for key in buckets]
    return Signatures(
        sets=np.array(table),
        first=np.cumsum([0, *map(len, flat)]),
        entry=_flat(flat),
        own=own,
        options=np.array([bucket for listed in options for bucket in listed], dtype=np.int64),
        option_first=np.cumsum([0, *map(len, options)]),
    )


def _pairs(sets: Sets, entries: list[I64], people: I64) -> list[tuple[int, int]]:
    """Pairs of signatures that may be intersectable: as many sets, and each overlaps some set of the other."""
    busy = np.argsort(-people, kind="stable")[:COMPARED]
    overlap = (sets.astype(np.int32) @ sets.T.astype(np.int32)) > 0
    has = np.zeros((len(busy), len(sets)), dtype=np.float32)
    for row, signature in enumerate(busy):
        np.add.at(has[row], entries[signature], 1)
    size = has.sum(axis=1)
    missed = (has > 0).astype(np.float32) @ ((has @ overlap.astype(np.float32)) == 0).astype(np.float32).T
    fits = (missed + missed.T == 0) & (size[:, None] == size[None])
    np.fill_diagonal(fits, False)
    alike = np.where(fits, (has > 0).astype(np.float32) @ (has > 0).astype(np.float32).T + 1, 0)
    best = np.argsort(-alike, axis=1, kind="stable")[:, :PARTNERS]
    pairs = {(min(i, j), max(i, j)) for i, row in enumerate(best.tolist()) for j in row if fits[i, j]}
    return [(int(busy[i]), int(busy[j])) for i, j in sorted(pairs)]


def _intersection(sets: Sets, a: I64, b: I64) -> Sets | None:
    """The intersection plan with the highest share of common values; None if two signatures have none.

    A plan must leave a different value for each entry, or its groups could not be filled up.
    """
    left, right = sets[a], sets[b]
    common = (left[:, None] & right[None]).sum(axis=2)
    score = common / (left[:, None] | right[None]).sum(axis=2)
    rows, columns = linear_sum_assignment(np.where(common > 0, -score, len(a)))
    if (common[rows, columns] == 0).any():
        return None
    overlap = left[rows] & right[columns]
    matched = maximum_bipartite_matching(csr_array(overlap), perm_type="column")
    return overlap if (matched >= 0).all() else None
