"""The region that each group covers: the smallest and the largest position in every column."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

I32 = NDArray[np.int32]


@njit(cache=True, nogil=True)
def boxes(groups: I32, positions: I32, count: int) -> tuple[I32, I32]:
    """Lowest and highest position per group and column; rows of group -1 are passed over."""
    columns = positions.shape[1]
    low = np.full((count, columns), np.int32(2**31 - 1), dtype=np.int32)
    high = np.full((count, columns), np.int32(-1), dtype=np.int32)
    for i in range(len(groups)):
        g = groups[i]
        if g >= 0:
            for c in range(columns):
                low[g, c] = min(low[g, c], positions[i, c])
                high[g, c] = max(high[g, c], positions[i, c])
    return low, high
