"""Groups for an adversary who knows the odds: people whose odds are alike are published together.

Two methods. *signatures* sorts the table by what is known beforehand: people with the same odds for every
value are one kind, each kind is cut like any other table, and in a group of one kind everybody's chance of a
value is exactly its share. *linkage* merges single rows from the bottom up by likeness of odds and loss (the
paper's sketch), and so may mix kinds. In both, a value occurs at most once in a group, and rows left over
join a group that stays acceptable with them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from os import cpu_count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.background.prior import Prior, load
from reveil.base.arrays import offsets_of
from reveil.base.errors import Fault, InfeasibleError
from reveil.base.lots import generator
from reveil.base.progress import Progress
from reveil.base.words import agree, some
from reveil.guarantees.r_robustness import RRobustness
from reveil.history.history import History
from reveil.plan.cutting import admit, cuts
from reveil.plan.cutting.conditions.contract import rows_of_different_values
from reveil.plan.cutting.mondrian import rows_of
from reveil.plan.cutting.trees import lay_end_to_end
from reveil.plan.plan import Plan
from reveil.plan.priors import linkage
from reveil.plan.priors.odds import Odds
from reveil.policy.guarantee import Guarantee
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded

WINDOW = 48  # rows looked at for each place of a group
REACH = 512  # groups tried for each row left over
COORDINATES = 3
UNPLACED = "odds unlike those of any group, or too frequent value"

Rows = NDArray[np.int64]


def plan(encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress) -> Plan:
    """Group by kinds first, cut each kind for least loss, then place what is left over."""
    work = _Grouping(encoded, policy, seed)
    work.by_kind(progress)
    return work.finish("signatures", progress)


def plan_linkage(encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress) -> Plan:
    """Merge rows from the bottom up by likeness of odds, then place what is left over."""
    work = _Grouping(encoded, policy, seed)
    work.bring_near(progress)
    progress("linking", 0.0)
    work.link(work.order)
    return work.finish("linkage", progress)


def least_size(guarantee: Guarantee) -> int:
    """Rows that a group of different values needs for r and for the conditions beside it.

    >>> least_size(Guarantee.of("r-robustness", r=3, priors=("a.csv",), k=5, alpha="1/4"))
    5
    """
    return max(ceil(guarantee.require(RRobustness).r or 1), rows_of_different_values(guarantee))


@dataclass(frozen=True, eq=False)
class _Kinds:
    """The distinct odds of each prior, the kind of each row, and kinds ordered by likeness."""

    odds: Odds
    rank: NDArray[Any]  # of each row: place of its combination of odds, in the order of likeness
    count: int


def _kinds(encoded: Encoded, priors: list[Prior], g: Guarantee) -> _Kinds:
    values = encoded.sensitive[0].values
    signatures = encoded.signatures
    assert signatures is not None  # publish.draft matches them whenever the policy has priors
    tables, columns = [], []
    for number, prior in enumerate(priors):
        rows = prior.rows(values)
        keys = [tuple(p.as_integer_ratio() for p in row) for row in rows]  # fractions themselves are slow to hash
        index = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        distinct = dict(zip(keys, rows, strict=True))
        tables.append(np.array([[float(p) for p in distinct[key]] for key in index]))
        columns.append(np.array([index[key] for key in keys], dtype=np.int32)[signatures[:, number]])
    kinds = np.ascontiguousarray(np.column_stack(columns))
    combined = np.zeros(len(kinds), dtype=np.int64)
    for number, table in enumerate(tables):
        combined = combined * len(table) + kinds[:, number]
    unique_keys, first, kind = np.unique(combined, return_index=True, return_inverse=True)
    place = _coordinates([table[kinds[first, number]] for number, table in enumerate(tables)])
    asked = g.require(RRobustness)
    odds = Odds(
        kinds=kinds,
        first=np.cumsum([0, *(len(table) for table in tables)], dtype=np.int64),
        table=np.vstack(tables),
        r=float(asked.r or 1),
        delta=asked.condition == "delta",
        size=least_size(g),
        place=np.ascontiguousarray(place[kind]),
    )
    rank = np.argsort(np.argsort(place[:, 0], kind="stable"), kind="stable")
    small = np.int16 if len(unique_keys) < 1 << 15 else np.int32  # small numbers sort faster
    return _Kinds(odds, rank.astype(small)[kind], len(unique_keys))


def _coordinates(tables: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Each kind as a point: the leading directions in which the odds (their square roots) differ."""
    spread = np.sqrt(np.hstack(tables))
    spread = spread - spread.mean(axis=0)
    if spread.shape[0] <= spread.shape[1]:  # the smaller of the two products has the same directions
        scale, left = np.linalg.eigh(spread @ spread.T)
        points = left * np.sqrt(np.maximum(scale, 0))
    else:
        points = spread @ np.linalg.eigh(spread.T @ spread)[1]
    return np.ascontiguousarray(points[:, ::-1][:, :COORDINATES])


class _Grouping:
    """One run over a table."""

    def __init__(self, encoded: Encoded, policy: Policy, seed: int) -> None:
        self.encoded, self.policy = encoded, policy
        self.priors = load(policy)
        self.kinds = _kinds(encoded, self.priors, policy.guarantee)
        self.odds, self.size = self.kinds.odds, self.kinds.odds.size
        self.trees = lay_end_to_end(encoded, policy)
        self.codes = np.ascontiguousarray(encoded.codes[:, 0])
        self.group = np.full(encoded.rows, -1, dtype=np.int64)
        self.rng = generator(seed, 5)
        self.fresh = 0
        self.order = np.argsort(self.kinds.rank, kind="stable")  # kinds that are alike are neighbours

    def by_kind(self, progress: Progress) -> None:
        """Cut the rows of each kind, as far as their values are spread evenly enough."""
        parts = [part for part in map(self._spread, self._parts()) if len(part)]
        if not parts:
            return
        rows, cuts = self._cut(parts, Fraction(1, self.size), 0, progress)
        progress("grouping", 0.0)
        bases = offsets_of(np.diff(cuts) // self.size)
        chunks = np.unique(np.linspace(0, len(cuts) - 1, 4 * (cpu_count() or 1) + 1).astype(np.int64))
        with ThreadPoolExecutor(cpu_count() or 1) as threads:
            list(threads.map(lambda a, b: self._deal(rows, cuts[a : b + 1], bases[a:b]), chunks[:-1], chunks[1:]))
        self.fresh = int(bases[-1])

    def bring_near(self, progress: Progress) -> None:
        """Order the rows of each kind so that rows near in the list are near in their quasi-identifiers."""
        self.order, _ = self._cut(self._parts(), Fraction(1), WINDOW, progress)

    def _parts(self) -> list[Rows]:
        """The rows of each kind."""
        starts = np.flatnonzero(np.diff(self.kinds.rank[self.order], prepend=-1))
        return np.split(self.order, starts[1:])

    def _spread(self, rows: Rows) -> Rows:
        """The most rows of one kind that can be grouped: none of a value beyond a share of 1/size."""
        counts = np.bincount(self.codes[rows])
        cap = len(rows) // self.size
        while cap and np.minimum(counts, cap).sum() < cap * self.size:
            cap = int(np.minimum(counts, cap).sum()) // self.size
        if counts.max() <= cap:
            return rows
        keep = np.ones(len(rows), dtype=bool)
        for code in np.flatnonzero(counts > cap):
            mine = np.flatnonzero(self.codes[rows] == code)
            keep[self.rng.permutation(mine)[cap:]] = False
        return rows[keep]

    def _cut(self, parts: list[Rows], alpha: Fraction, stop: int, progress: Progress) -> tuple[Rows, Rows]:
        """Rows in segments of one kind in which no value exceeds a share of alpha, cut for least loss; and
        where.

        Segments are not cut further once they have `stop` rows or fewer.
        """
        rows, bounds = np.concatenate(parts), np.cumsum([0, *map(len, parts)])
        needed = Guarantee.of("alpha-k", alpha=alpha, k=self.size)
        tests = admit.tests(self.encoded, self.policy.model_copy(update={"guarantee": needed}))
        matrix, order = rows_of(self.encoded)[0][rows], rows.copy()

        def one(number: int) -> NDArray[np.int32]:
            s, t = int(bounds[number]), int(bounds[number + 1])
            return cuts.split(self.trees, tests, matrix, order, s, t, stop, False, 0)[0]

        with ThreadPoolExecutor(cpu_count() or 1) as threads:
            groups = []
            for done, starts in enumerate(threads.map(one, range(len(bounds) - 1)), 1):
                groups.append(starts)
                progress("planning", done / (len(bounds) - 1))
        return order, np.append(np.concatenate(groups), len(order))

    def _deal(self, rows: Rows, bounds: Rows, bases: Rows) -> None:
        linkage.deal_segments(self._space(), rows, bounds, bases, self.size, WINDOW, self.group)

    def _space(self) -> linkage.RowSpace:
        return linkage.RowSpace(self.trees, self.encoded.positions, self.codes)

    def link(self, rows: Rows) -> None:
        if len(rows):
            self.fresh = linkage.link(self.odds, self._space(), rows, WINDOW, self.group, self.fresh)

    def _loose(self) -> Rows:
        return self.order[self.group[self.order] < 0]

    def finish(self, name: str, progress: Progress) -> Plan:
        """Link the rows that are left, let the others into groups, and refuse or withhold the rest."""
        progress("placing rows left over", 0.0)
        if name != "linkage":
            self.link(self._loose())
        homed = self._join()
        left = self._loose()
        if len(left) and (self.policy.method.infeasible == "refuse" or len(left) == len(self.group)):
            raise InfeasibleError(self._faults(left))
        mixed = self._mixed()
        return Plan(
            groups=self.group.astype(np.int32),
            method=f"{name}, each value at most once in a group",
            reasons={UNPLACED: len(left)} if len(left) else {},
            statistics={
                "kinds of people by their odds": self.kinds.count,
                "groups of one kind": self.fresh - mixed,
                "groups of several kinds": mixed,
                "rows let into finished groups": homed,
            },
        )

    def _join(self) -> int:
        loose = self._loose()
        if not len(loose) or not self.fresh:
            return 0
        placed = self.order[self.group[self.order] >= 0]
        groups = self.group[placed]
        first = np.full(self.fresh, len(placed), dtype=np.int64)
        np.minimum.at(first, groups, np.arange(len(placed)))
        by_group = np.lexsort((np.arange(len(placed)), first[groups]))
        listed = placed[by_group]
        starts = np.flatnonzero(np.diff(self.group[listed], prepend=-1))
        ends = np.append(starts, len(listed))
        return int(linkage.join(self.odds, self._space(), loose, ends, listed, REACH, self.group))

    def _mixed(self) -> int:
        placed = self.group >= 0
        pairs = np.unique(self.group[placed] * self.kinds.count + self.kinds.rank[placed])
        return int((np.bincount(pairs // self.kinds.count) > 1).sum()) if len(pairs) else 0

    def _faults(self, left: Rows) -> list[Fault]:
        """For each prior, which people cannot be placed and which of their values stands in the way."""
        faults = []
        signatures = self.encoded.signatures
        assert signatures is not None
        values = self.encoded.sensitive[0].values
        for number, prior in enumerate(self.priors):
            keys = signatures[left, number].astype(np.int64) * len(values) + self.codes[left]
            distinct, rows = np.unique(keys, return_counts=True)
            key, most = int(distinct[rows.argmax()]), int(rows.max())
            value, signature = values[key % len(values)], key // len(values)
            mine = self.codes[signatures[:, number] == signature]
            share = float((mine == key % len(values)).mean())
            message = (
                f"{some(len(left), 'row')} {agree(len(left), 'fits', 'fit')} no group; most often "
                f"{value!r} of {prior.label(signature)} ({some(most, 'row')}; "
                f"{share:.1%} of these people have it, and a group needs {self.size} different values)"
            )
            way = 'lower r, join frequent values, or set method.infeasible = "withhold"'
            faults.append(Fault("R440", f"prior {prior.name}", message, way, len(left)))
        return faults
