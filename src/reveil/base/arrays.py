"""Arrays by name, and lists of different lengths laid end to end: offsets say where each begins.

Shared by all that works on columns. What planner and verifier both take from here is arithmetic, tried in its examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
F64 = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.integer[Any]]  # of any width


def offsets_of(sizes: Ints | Sequence[int]) -> I64:
    """Where each of several lists begins, laid end to end, and where the last one ends.

    >>> offsets_of(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def starts_of(sizes: Ints) -> I64:
    """Where each of several lists begins, laid end to end.

    >>> starts_of(np.array([2, 0, 3])).tolist()
    [0, 2, 2]
    """
    return offsets_of(sizes)[:-1]


def offsets_by_key(sorted_keys: NDArray[Any], count: int) -> I64:
    """Where the items of each of `count` keys begin among items sorted by key, and where the last one ends.

    >>> offsets_by_key(np.array([0, 0, 2]), 3).tolist()
    [0, 2, 2, 3]
    """
    return np.searchsorted(sorted_keys, np.arange(count + 1)).astype(np.int64)


def ranks_within(sizes: Ints) -> I64:
    """The place of each item inside its own list, lists laid end to end.

    >>> ranks_within(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    return spread(np.zeros(len(sizes), dtype=np.int64), sizes)


def spread(first: Ints, sizes: Ints) -> I64:
    """The positions of all items of several lists that begin at `first`, one list after the other.

    >>> spread(np.array([10, 20]), np.array([2, 3])).tolist()
    [10, 11, 20, 21, 22]
    """
    offsets = offsets_of(sizes)
    return np.repeat(first - offsets[:-1], sizes) + np.arange(offsets[-1])


def set_weights(count: int) -> U64:
    """A number for each value, so that sums tell sets of values apart. The verifier would find two sets that meet.

    Always the same numbers: what is ordered by them must not differ from run to run, or from worker to worker.
    """
    return np.random.default_rng(0).integers(1, 2**63, size=count, dtype=np.uint64)
