"""One machine, out of core: rows lie in a scratch folder, and one block of them is in memory at a time.

The scratch folder holds the table as numbers, so it is as private as the table: nobody else may look into it, and it is
removed whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reveil.engine.verbs import Matrix, Small


class Blocks:
    """An engine whose rows lie in files of a folder that somebody else removes."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.folder, self.at_once = folder, max(1, rows)
        self._names = count()

    def rows(self, blocks: Iterable[Matrix]) -> RowsInFiles:
        path, width = self.file(), 0
        with path.open("wb") as file:
            for block in blocks:
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


class RowsInFiles:
    """Rows that an iteration reads, or makes, block by block."""

    def __init__(self, engine: Blocks, blocks: Callable[[], Iterator[Matrix]]) -> None:
        self.engine, self._blocks = engine, blocks

    def __iter__(self) -> Iterator[Matrix]:
        return self._blocks()

    def fold(self, step: Callable[[Matrix], Small], join: Callable[[Small, Small], Small]) -> Small:
        return reduce(join, map(step, self))

    def each(self, step: Callable[[Matrix], Matrix]) -> RowsInFiles:
        return RowsInFiles(self.engine, lambda: map(step, self))

    def kept(self) -> RowsInFiles:
        """Made once; blocks stay what they are, because a later step may count on rows that are together."""
        paths, widths = [], []
        for block in self:
            paths.append(self.engine.file())
            widths.append(block.shape[1])
            np.ascontiguousarray(block, dtype=np.int32).tofile(paths[-1])
        return self._in_files(paths, widths)

    def together(self, key: Callable[[Matrix], NDArray[np.int64]], parts: int) -> RowsInFiles:
        paths = [self.engine.file() for _ in range(parts)]
        width = 0
        for block in self:
            width = block.shape[1]
            keys = key(block)
            order = np.argsort(keys, kind="stable")
            bounds = np.searchsorted(keys[order], np.arange(parts + 1))
            ordered = np.ascontiguousarray(block[order], dtype=np.int32)
            for part in np.flatnonzero(np.diff(bounds)).tolist():
                with paths[part].open("ab") as file:
                    ordered[bounds[part] : bounds[part + 1]].tofile(file)
        there = [path for path in paths if path.exists()]
        return self._in_files(there, [width] * len(there))

    def _in_files(self, paths: Sequence[Path], widths: Sequence[int]) -> RowsInFiles:
        def blocks() -> Iterator[Matrix]:
            for path, width in zip(paths, widths, strict=True):
                yield from read(path, width)

        return RowsInFiles(self.engine, blocks)
