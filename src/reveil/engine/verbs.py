"""The few verbs that a job on many rows is made of, whatever runs them.

A job begins with pieces (of a table as it is read, or the files of a release), and goes on with rows: integers
(`Matrix`), a block at a time. What a cell means is settled before, on distinct values. A step sees one piece or one
block and nothing else, so that an engine may run it wherever that is, and again where it was lost. What steps hand on
is either rows again or something small that is joined.

Blocks come in any order and rows in any order within them, except where rows have been brought together.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.int32]  # rows x columns
Small = TypeVar("Small")
Piece_co = TypeVar("Piece_co", covariant=True)


class Pieces(Protocol[Piece_co]):
    """What a job begins with, one piece after the other, in their order."""

    def fold(self, step: Callable[[Piece_co], Small], join: Callable[[Small, Small], Small]) -> Small | None:
        """Something small about all pieces, joined in their order; None where there are none."""
        ...

    def rows(self, step: Callable[[Piece_co], Matrix]) -> Rows:
        """The rows that a step makes of each piece, made once."""
        ...


class Rows(Protocol):
    """Many rows, in blocks whose bounds say nothing about them."""

    def fold(self, step: Callable[[Matrix], Small], join: Callable[[Small, Small], Small]) -> Small:
        """Something small about all rows. There must be a block; `join` must not mind how blocks are bounded."""
        ...

    def each(self, step: Callable[[Matrix], Matrix]) -> Rows:
        """The rows that a step makes of each block; made when they are asked for."""
        ...

    def together(self, key: Callable[[Matrix], NDArray[np.int64]], parts: int) -> Rows:
        """Rows of one key (0 to parts - 1) in one block, blocks in the order of keys; empty keys have none."""
        ...

    def kept(self) -> Rows:
        """The same rows, made once."""
        ...

    def written(
        self, step: Callable[[Matrix, Path], dict[str, Any]], folder: Path
    ) -> tuple[list[dict[str, Any]], Pieces[Path]]:
        """A file of each block, which the step writes into the folder that it is given and describes: `path`, its name.

        All files are then in `folder`, and what reads them gets the same bytes.
        """
        ...


class Engine(Protocol):
    """Where steps are run."""

    at_once: int  # rows that are looked at together
    watch: Callable[[float], None]  # told which share of what it does is done; may raise, to stop it
