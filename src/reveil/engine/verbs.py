"""The few verbs that a job on many rows is made of, whatever runs them.

Rows are integers (`Matrix`), a block at a time: what a cell means is settled before, on distinct values. A step sees
one block and nothing else, so that an engine may run it wherever the block is. What steps hand on is either rows again
or something small that is joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.int32]  # rows x columns
Small = TypeVar("Small")


class Rows(Protocol):
    """Many rows, in blocks whose bounds say nothing about them."""

    def __iter__(self) -> Iterator[Matrix]: ...

    def fold(self, step: Callable[[Matrix], Small], join: Callable[[Small, Small], Small]) -> Small:
        """Something small about all rows. There must be a block; `join` must not mind how blocks are bounded."""
        ...

    def each(self, step: Callable[[Matrix], Matrix]) -> Rows:
        """The rows that a step makes of each block; made when they are asked for."""
        ...

    def together(self, key: Callable[[Matrix], NDArray[np.int64]], parts: int) -> Rows:
        """Rows of one key (0 to parts - 1) in one block, in the order in which they came; empty keys have none."""
        ...

    def kept(self) -> Rows:
        """The same rows, made once."""
        ...


class Engine(Protocol):
    """Where rows are kept and steps are run."""

    def rows(self, blocks: Iterable[Matrix]) -> Rows:
        """Rows as they come from a source, kept."""
        ...
