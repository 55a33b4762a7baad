"""Additive noise whose moments are exact, not only expected.

The noise is drawn normal, then made uncorrelated with the columns and given exactly the covariance that was asked for.
So means are kept exactly, and variances and covariances are known exactly:

    independent: the columns' covariances stay, each variance becomes (1 + a^2) times itself
    correlated:  the whole covariance matrix becomes (1 + a^2) times itself

With preserve = "variance" the result is drawn towards the mean by sqrt(1 + a^2), which undoes that factor (Kim 1986;
Tendick and Matloff 1994).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def least_rows(columns: int) -> int:
    """Fewer rows than this leave no room for noise that is uncorrelated with every column."""
    return 2 * columns + 2


def add_noise(
    values: Floats, amount: float, *, correlated: bool, keep_variance: bool, rng: np.random.Generator
) -> Floats:
    """Rows x columns with noise of `amount` standard deviations.

    >>> values = np.random.default_rng(1).normal(size=(50, 2))
    >>> noisy = add_noise(values, 0.5, correlated=True, keep_variance=True, rng=np.random.default_rng(2))
    >>> bool(np.allclose(np.cov(noisy.T), np.cov(values.T)))
    True
    """
    mean = values.mean(axis=0)
    spread = values.std(axis=0)
    # In units of their own: beside a column of 1e10, one of 1 would be taken for a rounding error.
    centred = (values - mean) / np.where(spread > 0, spread, 1.0)
    covariance = centred.T @ centred / len(values)
    noise = rng.standard_normal(values.shape)
    noise -= noise.mean(axis=0)
    noise -= centred @ (np.linalg.pinv(covariance, hermitian=True) @ (centred.T @ noise / len(values)))
    wanted = covariance if correlated else np.diag(np.diag(covariance))
    drawn = np.linalg.cholesky(noise.T @ noise / len(values))
    noise = noise @ np.linalg.solve(drawn.T, amount * _root(wanted))
    scale = np.sqrt(1 + amount**2) if keep_variance else 1.0
    return np.asarray(mean + spread * (centred + noise) / scale)


def _root(covariance: Floats) -> Floats:
    """The symmetric square root; columns may depend on each other."""
    weights, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.sqrt(np.maximum(weights, 0.0))) @ vectors.T)
