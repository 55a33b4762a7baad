"""Somebody with several rows (a person, or a household) is one unit: their rows are published together, as one bundle.

A bundle is one wide record, its rows side by side in the order of their quasi-identifiers. People who have the same
number of rows are cut as such records, so that a group shows the same cells, row by row, for everybody in it: whoever
knows all quasi-identifiers and how many rows each person has cannot tell whose bundle is whose. Which rows are kept
where there are too many, and who keeps fewer so that nobody stands out by a number of rows, is drawn by lot: values are
not looked at.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I32, I64
from reveil.base.errors import InfeasibleError
from reveil.base.lots import generator
from reveil.base.progress import Progress
from reveil.base.words import some
from reveil.history.history import History
from reveil.plan.cutting.conditions.contract import conditions_of
from reveil.plan.plan import Plan, Planner
from reveil.policy.policy import Policy
from reveil.table.encode import Codes, Encoded

STREAM = 13  # of the lots of a release: these are drawn for nothing else
BEYOND = "more rows than are shown of one of them, drawn by lot"


def in_bundles(planner: Planner) -> Planner:
    """The planner of single rows, given whole bundles; the groups of its plan are those of each row of a bundle."""

    def plan(encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress) -> Plan:
        assert encoded.owners is not None  # a table without them was refused
        rng = generator(seed, STREAM)
        kept = drawn(encoded.owners, policy, rng)
        groups = np.full(encoded.rows, -1, dtype=np.int32)
        reasons, statistics, names = Counter[str]({BEYOND: int((~kept).sum())}), Counter[str](), set[str]()
        first = 0
        for rows in side_by_side(encoded, kept, rng):
            wide = beside(encoded, rows)
            try:
                part = planner(wide, history, policy, seed=seed, progress=progress)
            except InfeasibleError as error:
                error.add_note(_among(rows, policy))
                raise
            each = wide.each
            shown = part.groups >= 0
            groups[rows[shown]] = first + part.groups[shown, None] * each + np.arange(each, dtype=np.int32)
            first += part.count * each
            reasons.update({reason: people * each for reason, people in part.reasons.items()})
            statistics.update(part.statistics)
            names.add(part.method)
        return Plan(
            groups=groups,
            method=f"{names.pop()}, {policy.bundled} as one",
            bundles=numbered(encoded.owners, groups, rng),
            reasons={reason: number for reason, number in reasons.items() if number},
            statistics=dict(statistics),
        )

    return plan


def drawn(owners: I64, policy: Policy, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which rows are shown: at most so many of each owner, and of so many owners the same number that k can hide."""
    order = np.lexsort((rng.permutation(len(owners)), owners))
    starts = np.concatenate([[0], np.cumsum(np.bincount(owners))])
    place = np.empty(len(owners), dtype=np.int64)
    place[order] = np.arange(len(owners)) - starts[owners[order]]
    least = max([1, *(one.least(asked) for one, asked in conditions_of(policy.guarantee))])
    return place < levelled(np.diff(starts), policy.people.most, least, rng)[owners]


def levelled(sizes: I64, most: int | None, least: int, rng: np.random.Generator) -> I64:
    """How many rows each owner shows. From the top down: where fewer than `least` show a number, they show one less.

    Where fewer than `least` show one row, others join them by lot: of the next larger number, all if too few would
    stay.

    >>> levelled(np.array([9, 3, 3, 2, 2, 1]), 4, 2, np.random.default_rng(0)).tolist()
    [3, 3, 3, 1, 1, 1]
    """
    shown = sizes.copy() if most is None else np.minimum(sizes, most)
    for number in range(int(shown.max(initial=1)), 1, -1):
        if (shown == number).sum() < least:
            shown[shown == number] = number - 1
    while 0 < (lacking := least - int((shown == 1).sum())) < least and (shown > 1).any():
        others = rng.permutation(np.flatnonzero(shown == shown[shown > 1].min()))
        shown[others if len(others) - lacking < least else others[:lacking]] = 1
    return shown


def side_by_side(encoded: Encoded, kept: NDArray[np.bool_], rng: np.random.Generator) -> list[I64]:
    """Row numbers, by how many each owner shows: owners x rows, in the order of the quasi-identifiers of the rows."""
    assert encoded.owners is not None
    lots = rng.permutation(encoded.rows)
    rows = np.flatnonzero(kept)
    keys = [lots[rows], *(encoded.positions[rows, c] for c in reversed(range(encoded.positions.shape[1])))]
    rows = rows[np.lexsort((*keys, encoded.owners[rows]))]
    sizes = np.bincount(encoded.owners[rows])
    each = sizes[encoded.owners[rows]]
    return [rows[each == number].reshape(-1, number) for number in np.unique(each).tolist()]


def beside(encoded: Encoded, rows: I64) -> Encoded:
    """Owners as records of their rows side by side."""
    owners, each = rows.shape
    codes = [once(encoded.codes[:, number][rows]) for number in range(len(encoded.sensitive))]
    return Encoded(
        quasi=encoded.quasi * each,
        positions=np.ascontiguousarray(encoded.positions[rows].reshape(owners, -1)),
        sensitive=encoded.sensitive,
        codes=np.hstack(codes) if codes else np.empty((owners, 0), dtype=np.int32),
        each=each,
    )


def once(codes: Codes) -> Codes:
    """The values of each owner, -1 where one comes again: whoever has it in any row has it."""
    ranked = np.sort(codes, axis=1)
    ranked[:, 1:][ranked[:, 1:] == ranked[:, :-1]] = -1
    return ranked


def numbered(owners: I64, groups: I32, rng: np.random.Generator) -> I32:
    """Numbers of the release for those who are shown, in an order drawn by lot."""
    shown = groups >= 0
    there = np.unique(owners[shown])
    numbers = np.full(int(owners.max(initial=-1)) + 1, -1, dtype=np.int32)
    numbers[there] = rng.permutation(len(there)).astype(np.int32) + 1
    return np.where(shown, numbers[owners], np.int32(-1))


def _among(rows: I64, policy: Policy) -> str:
    owners, each = rows.shape
    return (
        f"This is about the {owners:,} {policy.bundled} of whom {some(each, 'row')} would be shown: those who share a "
        f"group show the same number of rows. A smaller people.most puts more {policy.bundled} side by side."
    )
