"""One machine, out of core: rows lie in a scratch folder, and one block of them is in memory at a time.

The scratch folder holds the table as numbers, so it is as private as the table: nobody else may look into it, and it is
removed whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import count
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from reveil.engine.verbs import Matrix, Small

Piece = TypeVar("Piece")


class Blocks:
    """An engine whose rows lie in files of a folder that somebody else removes."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.folder, self.at_once = folder, max(1, rows)
        self.watch: Callable[[float], None] = lambda done: None
        self._names = count()

    def rows(self, blocks: Iterable[Matrix]) -> RowsInFiles:
        path, width = self.file(), 0
        with path.open("wb") as file:
            for block in filter(len, blocks):  # one without rows may not say how wide the others are
                width = block.shape[1]
                np.ascontiguousarray(block, dtype=np.int32).tofile(file)
        return RowsInFiles(self, lambda: read(path, width, self.at_once))

    def file(self) -> Path:
        return self.folder / f"{next(self._names)}.rows"


def read(path: Path, width: int, rows: int | None = None) -> Iterator[Matrix]:
    """The rows of a file, so many at a time, or all of them; none of an empty one."""
    with path.open("rb") as file:
        while len(cells := np.fromfile(file, dtype=np.int32, count=-1 if rows is None else rows * width)):
            yield cells.reshape(-1, width)


class PiecesHere(Generic[Piece]):
    """Pieces that can be gone through again."""

    def __init__(self, engine: Blocks, pieces: Iterable[Piece]) -> None:
        self.engine, self.pieces = engine, pieces

    def fold(self, step: Callable[[Piece], Small], join: Callable[[Small, Small], Small]) -> Small | None:
        found: Small | None = None
        for piece in self.pieces:
            found = step(piece) if found is None else join(found, step(piece))
        return found

    def rows(self, step: Callable[[Piece], Matrix]) -> RowsInFiles:
        return self.engine.rows(map(step, self.pieces))


class RowsInFiles:
    """Rows that an iteration reads, or makes, block by block."""

    def __init__(self, engine: Blocks, blocks: Callable[[], Iterator[Matrix]], number: int = 0) -> None:
        self.engine, self._blocks = engine, blocks
        self.number = number  # of blocks, where that is known

    def __iter__(self) -> Iterator[Matrix]:
        return self._blocks()

    def fold(self, step: Callable[[Matrix], Small], join: Callable[[Small, Small], Small]) -> Small:
        return reduce(join, map(step, self))

    def each(self, step: Callable[[Matrix], Matrix]) -> RowsInFiles:
        return RowsInFiles(self.engine, lambda: map(step, self), self.number)

    def kept(self) -> RowsInFiles:
        """Made once; blocks stay what they are, because a later step may count on rows that are together."""
        paths, widths = [], []
        for block in self._watched():
            paths.append(self.engine.file())
            widths.append(block.shape[1])
            np.ascontiguousarray(block, dtype=np.int32).tofile(paths[-1])
        return self._in_files(paths, widths)

    def together(self, key: Callable[[Matrix], NDArray[np.int64]], parts: int) -> RowsInFiles:
        paths = [self.engine.file() for _ in range(parts)]
        width = 0
        for block in self:
            width = block.shape[1]
            for part, rows in by_key(block, key(block), parts):
                with paths[part].open("ab") as file:
                    rows.tofile(file)
        there = [path for path in paths if path.exists()]
        return self._in_files(there, [width] * len(there))

    def written(
        self, step: Callable[[Matrix, Path], dict[str, Any]], folder: Path
    ) -> tuple[list[dict[str, Any]], PiecesHere[Path]]:
        described = [step(block, folder) for block in self._watched()]
        return described, PiecesHere(self.engine, [folder / one["path"] for one in described])

    def _watched(self) -> Iterator[Matrix]:
        for done, block in enumerate(self, 1):
            yield block
            if self.number:
                self.engine.watch(done / self.number)

    def _in_files(self, paths: Sequence[Path], widths: Sequence[int]) -> RowsInFiles:
        def blocks() -> Iterator[Matrix]:
            for path, width in zip(paths, widths, strict=True):
                yield from read(path, width)

        return RowsInFiles(self.engine, blocks, len(paths))


def by_key(block: Matrix, keys: NDArray[np.int64], parts: int) -> Iterator[tuple[int, Matrix]]:
    """The rows of each key that occurs, in rising order."""
    order = np.argsort(keys, kind="stable")
    bounds = np.searchsorted(keys[order], np.arange(parts + 1))
    ordered = np.ascontiguousarray(block[order], dtype=np.int32)
    for part in np.flatnonzero(np.diff(bounds)).tolist():
        yield part, ordered[bounds[part] : bounds[part + 1]]
