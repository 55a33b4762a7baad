"""The region that each group covers: the smallest and the largest position in every column."""

from __future__ import annotations

import numpy as np

from reveil.base.arrays import I32, I64
from reveil.base.kernels import kernel


@kernel
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


def distinct_runs(low: I32, high: I32, width: int) -> tuple[list[tuple[int, int]], I64]:
    """The different pairs among (low, high), and which of them each entry is; `high` is below `width`.

    >>> distinct_runs(np.array([0, 4, 0], dtype=np.int32), np.array([2, 5, 2], dtype=np.int32), 6)[0]
    [(0, 2), (4, 5)]
    """
    keys = low.astype(np.int64) * width + high
    largest = int(keys.max(initial=0)) + 1
    if largest <= 4 * len(keys):  # few possible runs: a table of them is quicker than sorting
        seen = np.zeros(largest, dtype=bool)
        seen[keys] = True
        runs, index = np.flatnonzero(seen), (np.cumsum(seen) - 1)[keys]
    else:
        runs, index = np.unique(keys, return_inverse=True)
    return [divmod(key, width) for key in runs.tolist()], index
