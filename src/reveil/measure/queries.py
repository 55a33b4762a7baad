"""COUNT queries on a published table, as the literature asks them, and how far the answers are off.

A query has one range per quasi-identifier and one on a sensitive column (drawn where there are several). For
expected selectivity s and p predicates, a range has length |domain| * s^(1/p). Quasi-identifiers that are
numbers or dates have ranges of values; categories and sensitive columns have runs of neighbours in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.background.loading import load_hierarchies
from reveil.base.arrays import I64
from reveil.measure.axes import Axis, Classes, Floats, Read, axis_of, read_column
from reveil.policy.policy import Policy
from reveil.published.format import COUNT, GROUP

PLACES = 128  # a range starts at one of at most so many places, evenly over its column
USEFUL = 0.2  # relative error up to which an answer is one
BLOCK = 4096  # classes whose estimates are added up at once, so that they stay in the processor's cache
ROWS = 1 << 20  # original rows that are held as bits at once

Ranges = list[tuple[Floats, Floats]]  # per column: first and last of each range, both included


@dataclass(frozen=True)
class QueryError:
    """Error of COUNT queries at one expected selectivity."""

    selectivity: float
    queries: int
    skipped: float  # share of queries whose true count is zero
    median_relative: float | None  # |estimate - truth| / truth; None where every query was skipped
    mean_absolute: float  # over all queries

    @property
    def useful(self) -> bool:
        """Whether half of the answers are at most a fifth off."""
        return self.median_relative is not None and self.median_relative <= USEFUL

    @property
    def words(self) -> str:
        """How far answers are off, and what that means where it is much.

        >>> QueryError(0.01, 100, 0.0, 19.6, 3.0).words
        '1960.0% off (median): where 10 people match, half of the answers are off by 196 or more, which answers nothing'
        """
        if self.median_relative is None:
            return "none could be asked"
        off = f"{self.median_relative:.1%} off (median)"
        if self.median_relative < 1:
            return off
        wrong = f"where 10 people match, half of the answers are off by {round(10 * self.median_relative):,} or more"
        return f"{off}: {wrong}, which answers nothing"


@dataclass(frozen=True, eq=False)
class Asked:
    """Many queries: the range that each picks in every quasi-identifier, and in one sensitive column."""

    quasi: Ranges
    picks: list[I64]
    sensitive: Ranges
    column: I64
    value: I64

    def __len__(self) -> int:
        return len(self.column)


class Questions:
    """Asks queries of a published table and of its original."""

    def __init__(
        self,
        classes: Classes,
        published: pl.DataFrame,
        original: pl.DataFrame,
        policy: Policy,
        values: Mapping[str, pl.DataFrame] | None = None,
    ) -> None:
        """`values`, where `published` are people alone: how often each of their groups has each value."""
        self.classes = classes
        self.quasi = [read.axis for read in classes.reads]
        names = policy.named("sensitive")
        trees = load_hierarchies(policy, names)
        self.sensitive = [axis_of(name, policy.columns[name], original[name], trees.get(name)) for name in names]
        if values is None:
            self.counts = [_value_counts(classes, axis, published[axis.name]) for axis in self.sensitive]
        else:
            self.counts = [_shared(classes, axis, published[GROUP], values[axis.name]) for axis in self.sensitive]
        self.places = [axis.rows(original[axis.name], ranked=False) for axis in self.quasi]
        self.ranks = [axis.rows(original[axis.name], ranked=True) for axis in self.sensitive]

    def error(self, queries: int, selectivity: float, seed: int) -> QueryError:
        """Ask this many queries. The same seed asks the same queries."""
        asked = self.draw(queries, selectivity, seed)
        truth = self.truth(asked)
        off, hit = np.abs(self.estimates(asked) - truth), truth > 0
        median = float(np.median(off[hit] / truth[hit])) if hit.any() else None
        return QueryError(selectivity, queries, float(np.mean(~hit)), median, float(np.mean(off)))

    def draw(self, queries: int, selectivity: float, seed: int) -> Asked:
        random = np.random.default_rng([seed, round(selectivity * 1e9)])
        share = selectivity ** (1 / (len(self.quasi) + bool(self.sensitive)))
        quasi = [_ranges(*_scale(axis, ranked=False), share) for axis in self.quasi]
        sensitive = [_ranges(*_scale(axis, ranked=True), share) for axis in self.sensitive]
        column = random.integers(max(1, len(sensitive)), size=queries)
        choices = np.array([len(low) for low, _ in sensitive] or [1])
        return Asked(
            quasi=quasi,
            picks=[random.integers(len(low), size=queries) for low, _ in quasi],
            sensitive=sensitive,
            column=column,
            value=(random.random(queries) * choices[column]).astype(np.int64),
        )

    def truth(self, asked: Asked) -> Floats:
        """True counts. A range is held as the bits of its rows; a query counts the bits that they share."""
        counts = np.zeros(len(asked))
        for start in range(0, len(self.places[0]), ROWS):
            rows = slice(start, start + ROWS)
            quasi = [_bits(place[rows], *pair) for place, pair in zip(self.places, asked.quasi, strict=True)]
            values = [_bits(rank[rows], *pair) for rank, pair in zip(self.ranks, asked.sensitive, strict=True)]
            for query in range(len(asked)):
                inside = quasi[0][asked.picks[0][query]].copy()
                for table, pick in zip(quasi[1:], asked.picks[1:], strict=True):
                    inside &= table[pick[query]]
                if values:
                    inside &= values[asked.column[query]][asked.value[query]]
                counts[query] += np.bitwise_count(inside).sum()
        return counts

    def estimates(self, asked: Asked) -> Floats:
        """Sum over classes: (size - counterfeits) * product of overlap/extent * share of matching values."""
        tables = [_overlaps(read, *pair) for read, pair in zip(self.classes.reads, asked.quasi, strict=True)]
        inside = [_inside(axis, *pair) for axis, pair in zip(self.sensitive, asked.sensitive, strict=True)]
        estimates = np.zeros(len(asked))
        for start in range(0, len(self.classes.sizes), BLOCK):
            block = slice(start, start + BLOCK)
            cells = self.classes.cells[block]
            shares = [np.ascontiguousarray(table[:, cells[:, i]]) for i, table in enumerate(tables)]
            hits = [(counts[block] @ table).T.copy() for counts, table in zip(self.counts, inside, strict=True)]
            hits = hits or [self.classes.real[block].astype(np.float64)[None, :]]
            for query in range(len(asked)):
                product = hits[asked.column[query]][asked.value[query]].copy()
                for share, pick in zip(shares, asked.picks, strict=True):
                    product *= share[pick[query]]
                estimates[query] += product.sum()
        return estimates


def _value_counts(classes: Classes, axis: Axis, values: pl.Series) -> Any:
    """Classes x ranks of the sensitive value: how many real rows. A published set counts in equal parts."""
    from scipy.sparse import coo_array

    read, _ = read_column(axis, values)  # a counterfeit may show a value that the original lacks
    pairs = pl.DataFrame({"class": classes.index, "cell": read.index})
    table = pairs.group_by("class", "cell", maintain_order=True).len("rows")
    owner, cell = table["class"].to_numpy(), table["cell"].to_numpy()
    weight = table["rows"].to_numpy() * (classes.real / classes.sizes)[owner]
    shape = (len(classes.sizes), len(read.cells))
    return coo_array((weight, (owner, cell)), shape=shape).tocsr() @ _spread(axis, read)


def _shared(classes: Classes, axis: Axis, group: pl.Series, values: pl.DataFrame) -> Any:
    """Classes x ranks, for people and values apart: a class has its share of the values of its group.

    Of the values of a group, counterfeits among them, each is a person's with the same chance.
    """
    from scipy.sparse import coo_array, diags_array

    read, _ = read_column(axis, values[axis.name])
    number = pl.concat([group, values[GROUP].cast(group.dtype)]).rank("dense").cast(pl.Int64).to_numpy() - 1
    of_class, of_value = np.zeros(len(classes.sizes), dtype=np.int64), number[len(group) :]
    of_class[classes.index] = number[: len(group)]
    times = values[COUNT].to_numpy().astype(np.float64)
    groups = int(number.max(initial=-1)) + 1
    total = np.bincount(of_value, times, groups)
    shape = (groups, len(read.cells))
    by_group = coo_array((times / total[of_value], (of_value, read.index)), shape=shape).tocsr() @ _spread(axis, read)
    return (diags_array(classes.real.astype(np.float64)) @ by_group[of_class]).tocsr()


def _spread(axis: Axis, read: Read) -> Any:
    """Cells x ranks of a sensitive column: a published set counts in equal parts."""
    from scipy.sparse import coo_array

    spread = [(i, rank) for i, runs in enumerate(read.runs) for a, b in runs for rank in range(a, b + 1)]
    cell, rank = np.array(spread, dtype=np.int64).reshape(-1, 2).T
    part = 1.0 / np.maximum(np.bincount(cell, minlength=len(read.cells)), 1)
    return coo_array((part[cell], (cell, rank)), shape=(len(read.cells), len(axis.values))).tocsr()


def _scale(axis: Axis, ranked: bool) -> tuple[float, float, float]:
    """Least and greatest place of a column, and the distance of neighbours."""
    if ranked or axis.numbers is None:
        return 0.0, max(0.0, len(axis.values) - 1.0), 1.0
    least, most = (axis.numbers[0].item(), axis.numbers[-1].item()) if len(axis.numbers) else (0, 0)
    return float(least - axis.origin), float(most - axis.origin), axis.step


def _ranges(least: float, most: float, step: float, share: float) -> tuple[Floats, Floats]:
    """The ranges of one length that a query may pick."""
    length = (most - least + step) * share
    if not step:
        starts = np.linspace(least, most - length, PLACES)
        return starts, starts + length
    length = max(1.0, round(length))
    last = most - length + 1
    starts = np.unique(np.round(np.linspace(least, last, int(min(PLACES, last - least + 1)))))
    return starts, starts + length - 1


def _bits(rows: Floats, low: Floats, high: Floats) -> NDArray[np.uint64]:
    """One line of bits per range: which rows of the table lie in it."""
    words = np.zeros((len(low), -(-len(rows) // 64) * 8), dtype=np.uint8)
    for i, (first, last) in enumerate(zip(low, high, strict=True)):
        packed = np.packbits((rows >= first) & (rows <= last))
        words[i, : len(packed)] = packed
    return words.view(np.uint64)


def _inside(axis: Axis, low: Floats, high: Floats) -> Floats:
    """Values x ranges: 1 where the rank lies in the range."""
    ranks = np.arange(len(axis.values))[:, None]
    return ((ranks >= low) & (ranks <= high)).astype(np.float64)


def _overlaps(read: Read, low: Floats, high: Floats) -> Floats:
    """Ranges x cells: the share of the cell's extent that lies in the range. A point is in or out."""
    axis, (_, _, step) = read.axis, _scale(read.axis, ranked=False)
    table = np.zeros((len(low), len(read.cells)))
    for i, cell in enumerate(read.cells):
        spans = [(float(a - axis.origin), float(b - axis.origin)) for a, b in axis.spans(cell)]
        extent = sum(b - a + step for a, b in spans)
        for a, b in spans:
            if extent > 0:
                table[:, i] += np.maximum(0.0, np.minimum(b, high) - np.maximum(a, low) + step) / extent
            else:
                table[:, i] += ((low <= a) & (a <= high)) / len(spans)
    return table
