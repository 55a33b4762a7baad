"""The second opinion on a release of many files, in bounded memory: files are read once, classes are brought together.

Cells become numbers by dictionaries of the verifier's own, rows with the same cells come into the same part, each part
is judged by the judges of the policy (with the totals of all files), and what they find is merged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.errors import Fault, InputError
from reveil.base.words import agree, some
from reveil.engine.verbs import Engine, Matrix
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.published.format import PACKAGE, is_part
from reveil.verify.comparing import Check, Truth, values_check
from reveil.verify.judges.contract import PartJudge, Verdict, View
from reveil.verify.judges.counts import ranked
from reveil.verify.merging import merged
from reveil.verify.reading import read_published, typed
from reveil.verify.verify import Bench, Verification, columns_check, files_check, hashes_in, unreadable

MIXER = np.uint64(0x9E3779B97F4A7C15)  # of the multiplicative hash that sends classes to parts
LIMIT = 1 << 62


@dataclass(eq=False)
class CellBook:
    """The different cells of one column, numbered as they come, and how often each occurs."""

    number: dict[Any, int] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    dtype: pl.DataType = field(default_factory=pl.String)

    def take(self, column: pl.Series) -> NDArray[np.int64]:
        distinct, places = ranked(column)
        self.dtype = column.dtype
        numbers = np.array([self.number.setdefault(cell, len(self.number)) for cell in distinct], dtype=np.int64)
        self.rows += [0] * (len(self.number) - len(self.rows))
        for number, rows in zip(numbers.tolist(), np.bincount(places, minlength=len(numbers)).tolist(), strict=True):
            self.rows[number] += rows
        return numbers[places]

    @property
    def cells(self) -> pl.Series:
        return pl.Series(list(self.number), dtype=self.dtype)

    @property
    def counts(self) -> pl.DataFrame:
        return pl.DataFrame({"value": self.cells, "rows": pl.Series(self.rows, dtype=pl.Int64)})


class Files:
    """The files of a release, read one after the other."""

    def __init__(self, public: Path, policy: Policy) -> None:
        self.public, self.policy = public, policy
        try:
            self.package: Mapping[str, Any] = json.loads((public / PACKAGE).read_text(encoding="utf-8"))
            self.names = {r["name"]: public / r["path"] for r in self.package["resources"] if is_part(r["name"])}
            self.hashes = hashes_in(public)
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise self._refused(error) from None
        self.quasi = {name: CellBook() for name in policy.named("quasi")}
        self.sensitive = {name: CellBook() for name in policy.named("sensitive")}
        self.wrong: Check | None = None
        self.rows = 0

    def _refused(self, error: Exception) -> InputError:
        remedy = "name a release of this policy, or restore it from a backup"
        return InputError(Fault("R603", f"release in {self.public}", unreadable(error), remedy))

    def blocks(self) -> Iterator[Matrix]:
        """Quasi-identifiers and sensitive values of each file as numbers; nothing of a file with other columns."""
        for name, path in self.names.items():
            try:
                table = typed(read_published(path), self.package, name)
            except (OSError, ValueError, LookupError, TypeError, pl.exceptions.PolarsError) as error:
                raise self._refused(error) from None
            check = columns_check(table.columns, self.policy)
            self.rows += table.height
            if not check.holds:
                self.wrong = self.wrong or check
            elif table.height:
                columns = [words.take(table[name]) for name, words in (self.quasi | self.sensitive).items()]
                yield np.column_stack(columns).astype(np.int32)


def verify_in_parts(
    public: Path, policy: Policy, truth: Truth, bench: Bench, engine: Engine, at_once: int
) -> Verification:
    """Judge the public files of one release that no series has; about so many rows are looked at together."""
    files = Files(public, policy)
    rows = engine.rows(files.blocks())
    checks = [files_check(files.hashes, files.package)]
    checks.append(files.wrong or columns_check([*files.quasi, *files.sensitive, *policy.named("insensitive")], policy))
    if not all(check.holds for check in checks) or not files.rows:
        return Verification(tuple(checks), (), files.rows, 0, 0, (), hashes=files.hashes)
    finding = "groups are the rows that share all generalised cells"
    checks += [Check("one generalisation per group", True, finding), *_compared(files, truth)]
    parts = -(-files.rows // at_once)
    width = len(files.quasi)
    by_part = rows.together(lambda block: part_of(block[:, :width], parts), parts)
    judges = [cast(PartJudge, judge) for judge in bench.judges]
    found, sizes = by_part.fold(lambda block: _judged(block, files, judges), _joined)
    sizes = np.sort(sizes)
    verdicts = [
        merged(judge, same, len(sizes))
        for judge, columns in zip(judges, zip(*found, strict=True), strict=True)
        for same in zip(*columns, strict=True)
    ]
    labels = {name: len(words.number) for name, words in files.quasi.items()}
    counts = (files.rows, len(sizes), 0, cast(Any, sizes))
    return Verification(tuple(checks), tuple(verdicts), *counts, hashes=files.hashes, labels=labels)


Found = tuple[list[list[list[Verdict]]], NDArray[np.int32]]  # part x judge x verdict, and sizes of classes


def _joined(one: Found, other: Found) -> Found:
    return one[0] + other[0], np.concatenate([one[1], other[1]])


def _judged(block: Matrix, files: Files, judges: list[PartJudge]) -> Found:
    width = len(files.quasi)
    classes = classes_of(block[:, :width])
    totals = {name: words.counts for name, words in files.sensitive.items()}
    sensitive = {
        name: words.cells.gather(block[:, width + number])
        for number, (name, words) in enumerate(files.sensitive.items())
    }
    nobody = np.zeros(int(classes.max()) + 1, dtype=np.int64)
    view = View(classes, pl.DataFrame(), sensitive, nobody, totals=totals)
    return [[judge.judge(view, History()) for judge in judges]], view.sizes().astype(np.int32)


def _compared(files: Files, truth: Truth) -> list[Check]:
    """What came out beside what was put in."""
    expected = truth.rows - truth.withheld
    finding = f"{some(files.rows, 'row')} published, {expected:,} {agree(expected, 'was', 'were')} to be"
    values = [values_check(name, files.sensitive[name].counts, held, 0) for name, held in truth.values.items()]
    return [Check("rows", files.rows == expected, finding), *values]


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
