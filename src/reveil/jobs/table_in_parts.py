"""The steps of a release that comes apart: each sees some rows as numbers, and is done wherever an engine has them.

A row's lot, by which it is published, is drawn by its place among the rows of its part, sorted by what they hold. Rows
that hold the same are in one part, and are one like the other: so the lots, and with them the bytes of a release, do
not depend on the order of the table, nor on who read which of its rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base import lots
from reveil.base.arrays import I64, U64
from reveil.base.errors import Fault, InfeasibleError, InputError
from reveil.base.progress import silent
from reveil.base.words import some
from reveil.engine.verbs import Matrix
from reveil.hierarchies.tree import ANY
from reveil.history.history import History
from reveil.plan.cutting import admit, infeasible, parting
from reveil.plan.cutting.boxes import boxes, distinct_runs
from reveil.plan.loss import Loss
from reveil.plan.methods import method
from reveil.policy.policy import Policy
from reveil.published.format import part_name
from reveil.table.books import Books
from reveil.table.encode import Encoded
from reveil.write.emit import emit_table
from reveil.write.recode import ColumnBlock, Recoded, decode, run_labels

LOT, SAMPLED = 11, 12  # purposes of lots: where a row is published, and which combinations are in the sample
PLANNED = 200  # bytes that planning takes for each row
FINE = 1 << 52  # losses are added as whole multiples of 1 / FINE, so that their order does not matter
KEY = 1 << 62


@dataclass(frozen=True)
class Sizes:
    """How much is looked at together. Only `at_once` may depend on the machine: the others settle what is published."""

    at_once: int  # rows
    part: int = 200_000  # rows that are planned together, or more where fewer do not keep the promise
    file: int = 1_000_000  # rows of a published file
    sample: int = 200_000  # combinations of quasi-identifiers that the bounds of parts are told from
    memory: int | None = None  # bytes


@dataclass(frozen=True, eq=False)
class TableInParts:
    """A table whose rows are numbers: quasi-identifiers, sensitive and insensitive columns."""

    policy: Policy
    books: Books
    secret: int
    sizes: Sizes

    @cached_property
    def widths(self) -> tuple[int, int, int]:
        return len(self.books.quasi), len(self.books.sensitive), len(self.books.insensitive)

    @cached_property
    def totals(self) -> tuple[I64, ...]:
        """Rows of each code in the whole table."""
        return tuple(
            np.array([dict(self.books.values[c.name].iter_rows()).get(value, 0) for value in c.values], dtype=np.int64)
            for c in self.books.sensitive
        )

    @property
    def files(self) -> int:
        return ceil(self.books.rows / self.sizes.file)

    @property
    def empty(self) -> Encoded:
        """The table without its rows."""
        return self.encoded(np.empty((0, sum(self.widths)), dtype=np.int32))

    def encoded(self, rows: Matrix) -> Encoded:
        """Some rows as a table of its own, which knows the totals of all."""
        quasi, sensitive, _ = self.widths
        positions = np.ascontiguousarray(rows[:, :quasi])
        codes = np.ascontiguousarray(rows[:, quasi : quasi + sensitive])
        return Encoded(self.books.quasi, positions, self.books.sensitive, codes, totals=self.totals)

    def sampled(self, rows: Matrix) -> parting.Sample:
        quasi = self.widths[0]
        mixers = lots.lots_of_rows(self.secret, SAMPLED, 0, quasi + 1)
        return parting.sampled(rows[:, :quasi], mixers, self.sizes.sample)

    def counted(self, tree: parting.TopTree, rows: Matrix) -> parting.LeafCounts:
        quasi, sensitive, _ = self.widths
        widths = [len(column.values) for column in self.books.sensitive]
        return parting.count(parting.leaf_of(tree, rows), rows[:, quasi : quasi + sensitive], tree.leaves, widths)


@dataclass(frozen=True, eq=False)
class PartedTable:
    """Which rows are planned together: leaves of a tree, taken together until they keep the promise by themselves."""

    work: TableInParts
    tree: parting.TopTree
    part: I64  # of each leaf
    rows: I64  # of each part

    @classmethod
    def settled(cls, work: TableInParts, tree: parting.TopTree, counts: parting.LeafCounts) -> PartedTable:
        _refuse_changed(work, counts)
        together = _settled(work, tree, counts)
        part = np.zeros(tree.leaves, dtype=np.int64)
        for number, leaves in enumerate(together):
            part[leaves] = number
        return cls(work, tree, part, np.array([counts.of(leaves)[0] for leaves in together], dtype=np.int64))

    @property
    def parts(self) -> int:
        return len(self.rows)

    def part_of(self, rows: Matrix) -> I64:
        found: I64 = self.part[parting.leaf_of(self.tree, rows)]
        return found

    def planned(self, rows: Matrix) -> Matrix:
        """One part, planned as a table of its own, in the order of lots.

        Group within the part (-1: withheld), rows that hold the same quasi-identifiers, low and high of each
        quasi-identifier, codes, two halves of the lot.
        """
        work, number = self.work, int(self.part_of(rows[:1])[0])
        if len(rows) != self.rows[number]:
            raise RuntimeError(
                f"part {number} has {some(self.rows[number], 'row')}, of which {len(rows):,} came together"
            )
        rows = in_order(rows)
        drawn = lots.lots_of_rows(work.secret, LOT, int(self.rows[:number].sum()), len(rows))
        alike = _alike(rows[:, : work.widths[0]])
        order = np.argsort(drawn)
        rows, alike, halves = rows[order], alike[order], drawn[order].view(np.int32).reshape(-1, 2)
        encoded = work.encoded(rows)
        plan = method(work.policy)(encoded, History(), work.policy, seed=work.secret, progress=silent)
        low, high = plan.boxes or boxes(plan.groups, encoded.positions, plan.count)
        shown = np.maximum(plan.groups, 0)
        return np.column_stack([plan.groups, alike, low[shown], high[shown], rows[:, work.widths[0] :], halves])


def in_order(rows: Matrix) -> Matrix:
    """Rows sorted by all that they hold.

    >>> in_order(np.array([[2, 0], [1, 5], [1, 3]], dtype=np.int32)).tolist()
    [[1, 3], [1, 5], [2, 0]]
    """
    keys, many = [np.zeros(len(rows), dtype=np.int64)], 1
    for column in rows.T:
        width = int(column.max(initial=0)) + 1
        if many * width >= KEY:
            keys.append(np.zeros(len(rows), dtype=np.int64))
            many = 1
        keys[-1], many = keys[-1] * width + column, many * width
    return rows[np.lexsort(keys[::-1])]


def _alike(rows: Matrix) -> NDArray[np.int32]:
    """Of sorted rows: how many hold the same as each."""
    begins = np.flatnonzero(np.concatenate([[True], (rows[1:] != rows[:-1]).any(axis=1)]))
    sizes = np.diff(begins, append=len(rows))
    return np.repeat(sizes, sizes).astype(np.int32)


def changed() -> InputError:
    message = "is another one each time it is read: rows or values have changed meanwhile"
    return InputError(Fault("R880", "table", message, "write it to files that nobody changes, and give these"))


def _refuse_changed(work: TableInParts, counts: parting.LeafCounts) -> None:
    """Rows are read twice; they are other ones where a file was written meanwhile, or a frame is drawn each time."""
    rows, codes = counts.of(range(len(counts.rows)))
    same = all(np.array_equal(found, total) for found, total in zip(codes, work.totals, strict=True))
    if rows != work.books.rows or not same:
        raise changed()


def _settled(work: TableInParts, tree: parting.TopTree, counts: parting.LeafCounts) -> list[list[int]]:
    """Parts of leaves that each keep the promise, by exact counts."""
    quasi = work.widths[0]
    tests = admit.tests_of(work.empty, work.policy, work.totals)
    settled = parting.settle(tree, lambda leaves: parting.admits_counts(tests, *counts.of(leaves), quasi))
    if settled is None:
        columns = [np.repeat(np.arange(len(total), dtype=np.int32), total) for total in work.totals]
        codes = np.column_stack(columns) if columns else np.empty((work.books.rows, 0), dtype=np.int32)
        nothing = np.empty((work.books.rows, 0), dtype=np.int32)
        raise InfeasibleError(infeasible.faults(Encoded((), nothing, work.books.sensitive, codes), work.policy))
    largest = max(counts.of(leaves)[0] for leaves in settled)
    if work.sizes.memory is not None and largest * PLANNED > work.sizes.memory and largest > work.sizes.part:
        message = f"{some(largest, 'row')} cannot be parted so that each part keeps the promise by itself"
        raise InfeasibleError(
            Fault("R877", "table", message, "allow more memory, or ask for a weaker promise", largest)
        )
    return settled


@dataclass(frozen=True, eq=False)
class Cost:
    """Sums over parts, from which the loss of a release follows, and what the report says of the input."""

    columns: tuple[int, ...]  # in units of 1 / FINE
    sizes: Counter[int]  # rows of a group -> how many groups
    blank: int  # rows of groups that show nothing but `*`
    exact: Counter[int]  # rows that share all exact quasi-identifiers -> how many such classes
    withheld: int

    def __add__(self, other: Cost) -> Cost:
        columns = tuple(a + b for a, b in zip(self.columns, other.columns, strict=True))
        sizes, exact = self.sizes + other.sizes, self.exact + other.exact
        return Cost(columns, sizes, self.blank + other.blank, exact, self.withheld + other.withheld)

    def loss(self, work: TableInParts, classes: Sequence[int]) -> Loss:
        """What the release loses; `classes`: the sizes of those that look alike, which may be of several parts."""
        rows, names = work.books.rows, [tree.name for tree in work.books.quasi]
        ncp = [(total / FINE + self.withheld) / rows for total in self.columns]
        squares = int((np.asarray(classes, dtype=np.int64) ** 2).sum()) - self.blank**2  # of those that show anything
        number = len(classes) - (self.blank > 0)
        return Loss(
            columns=dict(zip(names, ncp, strict=True)),
            mean=float(np.mean(ncp)),
            discernibility=squares + (self.withheld + self.blank) * rows,
            average_group=(rows - self.withheld - self.blank) / max(1, number),
            sizes=dict(sorted(self.sizes.items())),
        )


def cost_of(work: TableInParts, block: Matrix) -> Cost:
    """Of one planned part."""
    kept, quasi = block[block[:, 0] >= 0], work.widths[0]
    columns, blank = [], np.ones(len(kept), dtype=np.bool_)
    for number, tree in enumerate(work.books.quasi):
        runs, index = distinct_runs(kept[:, 2 + number], kept[:, 2 + quasi + number], len(tree))
        times = np.bincount(index, minlength=len(runs)).tolist()
        columns.append(sum(round(tree.loss(*run) * FINE) * n for run, n in zip(runs, times, strict=True)))
        blank &= np.array([tree.label(*run) == ANY for run in runs], dtype=np.bool_)[index]
    alike, rows = np.unique(block[:, 1], return_counts=True)
    exact = Counter(dict(zip(alike.tolist(), (rows // alike).tolist(), strict=True)))
    return Cost(tuple(columns), _counted(kept[:, 0]), int(blank.sum()), exact, len(block) - len(kept))


def _counted(groups: NDArray[np.int32]) -> Counter[int]:
    """How many groups have so many rows."""
    times = np.bincount(np.bincount(groups))
    return Counter({size: int(times[size]) for size in np.flatnonzero(times).tolist() if size})


def file_of(work: TableInParts, block: Matrix) -> I64:
    """The file into which each row is drawn."""
    return (_lots(block) % np.uint64(work.files)).astype(np.int64)


def write_file(work: TableInParts, block: Matrix, folder: Path) -> dict[str, Any]:
    """One file, each row in the place that its lot says: where a row is says nothing of its group."""
    number, drawn = int(file_of(work, block[:1])[0]), _lots(block)
    order = np.argsort(drawn)
    if (drawn[order][1:] == drawn[order][:-1]).any():  # a lot drawn twice: what the rows hold decides
        order = np.lexsort((*block.T, drawn))
    return emit_table(part_name(number + 1), _recoded(work, block[order]), work.policy, folder)


def _lots(block: Matrix) -> U64:
    halves: U64 = np.ascontiguousarray(block[:, -2:]).view(np.uint64).ravel()
    return halves


def _recoded(work: TableInParts, rows: Matrix) -> Recoded:
    """The published columns of one file, in the order of the policy."""
    quasi = work.widths[0]
    books, columns = work.books, list(work.books.columns)
    parts = []
    for name, spec in work.policy.columns.items():
        if name not in books.columns:
            continue
        at = columns.index(name)
        if spec.role == "quasi":
            tree = books.quasi[at]
            labels, index = run_labels(tree, rows[:, 2 + at], rows[:, 2 + quasi + at])
            parts.append(ColumnBlock(pl.DataFrame([labels.alias(name)]), index))
        elif spec.role == "sensitive":
            column = books.sensitive[at - quasi]
            parts.append(decode(column, rows[:, 2 + quasi + at], books.dtypes[name]))
        else:
            parts.append(ColumnBlock(books.insensitive[name].to_frame(), rows[:, 2 + quasi + at]))
    return Recoded(tuple(parts))


def again(people: Matrix) -> int:
    """How many rows are of people with more than one, by four columns that are the hash of an identifier."""
    _, times = np.unique(np.ascontiguousarray(people).view("V16"), return_counts=True)
    return int(times[times > 1].sum())
