"""The second opinion on a release of many files, in bounded memory: files are read twice, classes are brought together.

First each file is hashed as it is read, and the different cells of its columns are counted. Then cells become numbers
by these lists, rows with the same cells come into the same part, each part is judged by the judges of the policy (with
the totals of all files), and what they find is merged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import add
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.errors import Fault, InputError
from reveil.base.words import agree, some
from reveil.engine.verbs import Engine, Matrix, Pieces
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.published.format import PACKAGE
from reveil.verify.comparing import Check, Truth, values_check
from reveil.verify.judges.contract import PartJudge, Verdict, View
from reveil.verify.merging import merged
from reveil.verify.reading import read_published, typed
from reveil.verify.verify import Bench, Verification, columns_check, files_check, hashes_in, unreadable

MIXER = np.uint64(0x9E3779B97F4A7C15)  # of the multiplicative hash that sends classes to parts
LIMIT = 1 << 62


@dataclass(frozen=True, eq=False)
class SeenCells:
    """What some files hold: their bytes' hashes, and by column the different cells and how often each occurs."""

    hashes: Mapping[str, str]
    cells: Mapping[str, pl.DataFrame]  # value, rows
    rows: int
    wrong: Check | None = None  # columns that are not those of the policy

    def __add__(self, other: SeenCells) -> SeenCells:
        hashes, rows, wrong = {**self.hashes, **other.hashes}, self.rows + other.rows, self.wrong or other.wrong
        return SeenCells(hashes, {} if wrong else _added(self.cells, other.cells), rows, wrong)


def _added(one: Mapping[str, pl.DataFrame], other: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    both = {name: pl.concat([mine, other[name]]) for name, mine in one.items()}
    return {name: cells.group_by("value").agg(pl.col("rows").sum()) for name, cells in both.items()}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, eq=False)
class Files:
    """How the files of a release are read."""

    public: Path
    policy: Policy
    package: Mapping[str, Any]

    @classmethod
    def of(cls, public: Path, policy: Policy) -> Files:
        try:
            return cls(public, policy, json.loads((public / PACKAGE).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise _refused(public, error) from None

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.policy.named("quasi"), *self.policy.named("sensitive"))

    def read(self, path: Path) -> pl.DataFrame:
        try:
            return typed(read_published(path), self.package, path.stem)
        except (OSError, ValueError, LookupError, TypeError, pl.exceptions.PolarsError) as error:
            raise _refused(self.public, error) from None

    def seen(self, path: Path) -> SeenCells:
        hashes, table = {path.name: _digest(path)}, self.read(path)
        check = columns_check(table.columns, self.policy)
        if not check.holds:
            return SeenCells(hashes, {}, table.height, check)
        columns = {name: table.select(value=name).group_by("value") for name in self.names}
        cells = {name: column.agg(pl.len().cast(pl.Int64).alias("rows")) for name, column in columns.items()}
        return SeenCells(hashes, cells, table.height)


def _refused(public: Path, error: Exception) -> InputError:
    remedy = "name a release of this policy, or restore it from a backup"
    return InputError(Fault("R603", f"release in {public}", unreadable(error), remedy))


@dataclass(frozen=True, eq=False)
class CellBooks:
    """The different cells of each column, numbered in rising order."""

    files: Files
    counts: Mapping[str, pl.DataFrame]  # value, rows, by number
    hashes: Mapping[str, str]

    @cached_property
    def numbers(self) -> Mapping[str, pl.DataFrame]:
        return {name: counts.select("value").with_row_index("number") for name, counts in self.counts.items()}

    def encode(self, path: Path) -> Matrix:
        if _digest(path) != self.hashes.get(path.name):
            raise _refused(self.files.public, ValueError(f"{path.name} has changed while it was judged"))
        table = self.files.read(path)
        columns = [
            table.select(value=name).join(book, on="value", how="left", nulls_equal=True, maintain_order="left")
            for name, book in self.numbers.items()
        ]
        return np.column_stack([column["number"].cast(pl.Int32).to_numpy() for column in columns])


def verify_in_parts(
    public: Path, pieces: Pieces[Path], policy: Policy, truth: Truth, bench: Bench, engine: Engine
) -> Verification:
    """Judge the public files of one release that no series has, wherever `pieces` of the same bytes can be read."""
    files, hashes = Files.of(public, policy), hashes_in(public)
    seen = pieces.fold(files.seen, add) or SeenCells({}, {}, 0)
    checks = [_other_bytes(seen.hashes, hashes) or files_check(hashes, files.package)]
    checks.append(seen.wrong or columns_check([*files.names, *policy.named("insensitive")], policy))
    if not all(check.holds for check in checks) or not seen.rows:
        return Verification(tuple(checks), (), seen.rows, 0, 0, (), hashes=hashes)
    sorted_cells = {name: cells.sort("value", nulls_last=True) for name, cells in seen.cells.items()}
    books = CellBooks(files, sorted_cells, seen.hashes)
    finding = "groups are the rows that share all generalised cells"
    checks += [Check("one generalisation per group", True, finding), *_compared(seen, truth)]
    parts = -(-seen.rows // engine.at_once)
    width = len(policy.named("quasi"))
    by_part = pieces.rows(books.encode).together(lambda block: part_of(block[:, :width], parts), parts)
    judges = [cast(PartJudge, judge) for judge in bench.judges]
    found, sizes = by_part.fold(lambda block: _judged(block, books, judges), _joined)
    sizes = np.sort(sizes)
    verdicts = [
        merged(judge, same, len(sizes))
        for judge, columns in zip(judges, zip(*found, strict=True), strict=True)
        for same in zip(*columns, strict=True)
    ]
    labels = {name: books.counts[name].height for name in policy.named("quasi")}
    counts = (seen.rows, len(sizes), 0, cast(Any, sizes))
    return Verification(tuple(checks), tuple(verdicts), *counts, hashes=hashes, labels=labels)


def _other_bytes(judged: Mapping[str, str], there: Mapping[str, str]) -> Check | None:
    """Files may have been read elsewhere: what was judged is what lies in the folder, or nothing was."""
    differ = sorted(name for name, digest in judged.items() if there.get(name) != digest)
    return Check("public files", False, f"others than those that were judged: {differ}") if differ else None


Found = tuple[list[list[list[Verdict]]], NDArray[np.int32]]  # part x judge x verdict, and sizes of classes


def _joined(one: Found, other: Found) -> Found:
    return one[0] + other[0], np.concatenate([one[1], other[1]])


def _judged(block: Matrix, books: CellBooks, judges: Sequence[PartJudge]) -> Found:
    policy = books.files.policy
    width = len(policy.named("quasi"))
    classes = classes_of(block[:, :width])
    totals = {name: books.counts[name] for name in policy.named("sensitive")}
    sensitive = {name: counts["value"].gather(block[:, width + n]) for n, (name, counts) in enumerate(totals.items())}
    nobody = np.zeros(int(classes.max()) + 1, dtype=np.int64)
    view = View(classes, pl.DataFrame(), sensitive, nobody, totals=totals)
    return [[judge.judge(view, History()) for judge in judges]], view.sizes().astype(np.int32)


def _compared(seen: SeenCells, truth: Truth) -> list[Check]:
    """What came out beside what was put in."""
    expected = truth.rows - truth.withheld
    finding = f"{some(seen.rows, 'row')} published, {expected:,} {agree(expected, 'was', 'were')} to be"
    values = [values_check(name, seen.cells[name], held, 0) for name, held in truth.values.items()]
    return [Check("rows", seen.rows == expected, finding), *values]


def part_of(cells: Matrix, parts: int) -> NDArray[np.int64]:
    """The part of each row: the same for the same cells.

    >>> first, _, third = part_of(np.array([[1, 2], [3, 4], [1, 2]], dtype=np.int32), 7)
    >>> bool(first == third and 0 <= first < 7)
    True
    """
    mixed = np.zeros(len(cells), dtype=np.uint64)
    for column in cells.T:
        mixed = (mixed ^ column.astype(np.uint64)) * MIXER
        mixed ^= mixed >> np.uint64(29)
    return (mixed % np.uint64(parts)).astype(np.int64)


def classes_of(cells: Matrix) -> NDArray[np.int64]:
    """Rows numbered by their cells, exactly: equal numbers for equal rows, and for no others.

    >>> classes_of(np.array([[1, 2], [3, 4], [1, 2]], dtype=np.int32)).tolist()
    [0, 1, 0]
    """
    keys, many = np.zeros(len(cells), dtype=np.int64), 1
    for column in cells.T:
        width = int(column.max(initial=0)) + 1
        if many * width >= LIMIT:
            distinct, keys = np.unique(keys, return_inverse=True)
            many = len(distinct)
        keys, many = keys * width + column, many * width
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)
