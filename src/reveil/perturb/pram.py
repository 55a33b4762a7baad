"""Post-randomisation (PRAM): each value is drawn anew from a row of a Markov matrix (Gouweleeuw et al. 1998).

With `keep` p and invariance, a value stays with chance p and is otherwise drawn from the column's own frequencies t:
the matrix is p I + (1 - p) 1 t'. It maps t to t, so expected frequencies are those of the column. Without invariance
the other values are equally likely, and whoever knows p can correct counts.

A stated matrix P is made invariant in two stages: P, and then back along Bayes' rule,
Q[l, j] = P[j, l] t[j] / (t'P)[l].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I64

Floats = NDArray[np.float64]
MOST = 2_000  # categories of a column; a matrix of them squared is held in memory


def keeping(counts: I64, keep: float, invariant: bool) -> Floats:
    """The matrix of `keep`, for categories with these counts.

    >>> keeping(np.array([3, 1]), 0.8, invariant=True).round(3).tolist()
    [[0.95, 0.05], [0.15, 0.85]]
    """
    size = len(counts)
    if invariant:
        return np.asarray(keep * np.eye(size) + (1 - keep) * (counts / counts.sum()))
    if size == 1:
        return np.eye(1)
    matrix = np.full((size, size), (1 - keep) / (size - 1))
    np.fill_diagonal(matrix, keep)
    return matrix


def invariant_of(matrix: Floats, counts: I64) -> Floats:
    """The two-stage matrix P Q, which leaves the frequencies of `counts` as they are.

    >>> counts = np.array([3, 1])
    >>> (counts @ invariant_of(np.array([[0.9, 0.1], [0.5, 0.5]]), counts)).round(9).tolist()
    [3.0, 1.0]
    """
    share = counts / counts.sum()
    reached = share @ matrix
    back = np.divide((matrix * share[:, None]).T, reached[:, None], where=reached[:, None] > 0, out=np.eye(len(counts)))
    return np.asarray(matrix @ back)


def draw(codes: I64, matrix: Floats, rng: np.random.Generator) -> I64:
    """A new code for each row, drawn from the row of the matrix that belongs to its code."""
    size = len(matrix)
    last = size - 1 - np.argmax(matrix[:, ::-1] > 0, axis=1)
    steps = np.cumsum(matrix, axis=1)
    ladder = (
        np.minimum(steps, 1.0) + np.arange(size)[:, None]
    ).ravel()  # one rising ladder: row c runs from c to c + 1
    drawn = np.searchsorted(ladder, rng.random(len(codes)) + codes, side="right") - codes * size
    return np.asarray(np.clip(drawn, 0, last[codes]))
