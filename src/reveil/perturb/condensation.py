"""Condensation: each group's points are replaced by new ones with the same mean and the same covariance.

The groups are those of microaggregation (k or more near rows). For each, a point set is drawn uniformly from *all* sets
of as many points that have exactly the group's mean and covariance matrix: Y = mean + Q (X - mean), where Q is a random
rotation of the rows (Haar measure) that leaves the mean alone. Aggarwal and Yu (2004) draw along eigenvectors and keep
the moments in expectation only; here they are kept in every group.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I64, starts_of

Floats = NDArray[np.float64]


def condense(values: Floats, groups: I64, rng: np.random.Generator) -> Floats:
    """New points for every group.

    >>> values = np.random.default_rng(0).normal(size=(5, 2))
    >>> drawn = condense(values, np.zeros(5, dtype=np.int64), np.random.default_rng(1))
    >>> bool(np.allclose(np.cov(drawn.T), np.cov(values.T))), bool(np.allclose(drawn, values))
    (True, False)
    """
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    starts = starts_of(sizes)
    result = np.empty_like(values)
    for size in np.unique(sizes).tolist():  # groups of equal size are drawn at once
        rows = order[starts[sizes == size][:, None] + np.arange(size)]
        points = values[rows]
        mean = points.mean(axis=1, keepdims=True)
        result[rows] = mean + _rotations(len(rows), size, rng) @ (points - mean)
    return result


def _rotations(count: int, size: int, rng: np.random.Generator) -> Floats:
    """Random orthogonal matrices that leave the vector of ones alone: rotations of the space orthogonal to it."""
    q, r = np.linalg.qr(rng.standard_normal((count, size - 1, size - 1)))
    q *= np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]  # so that the measure is Haar's
    basis = _orthogonal_to_ones(size)
    return np.asarray(basis @ q @ basis.T)


def _orthogonal_to_ones(size: int) -> Floats:
    """Helmert's columns: an orthonormal basis of the vectors that sum to zero."""
    step = np.arange(1, size)
    columns = np.triu(np.ones((size, size - 1)))
    columns[step, step - 1] = -step
    return np.asarray(columns / np.sqrt(step * (step + 1)))
