"""Published rows that the original does not explain: another year's table, or one that was changed meanwhile."""

from __future__ import annotations

import numpy as np

from reveil.base.arrays import I64
from reveil.measure.axes import Classes, Read

STARTS = 2_000  # of stretches of a column that are looked at


def unexplained(classes: Classes) -> int:
    """How many real rows, at least, stand for nobody of the original: most of any column alone."""
    return max((_of_column(read, _rows(classes, i)) for i, read in enumerate(classes.reads)), default=0)


def _rows(classes: Classes, i: int) -> I64:
    """Real rows of each cell of a column."""
    rows = np.bincount(classes.cells[:, i], weights=classes.real, minlength=len(classes.reads[i].cells))
    return rows.astype(np.int64)


def _of_column(read: Read, rows: I64) -> int:
    """Rows that stay over when each takes an original row within its cell. Empty cells and `*` can be anybody.

    By Hall's theorem for intervals: stretches of the column that are apart, each with more rows within than originals.
    """
    telling = np.array([cell.kind not in ("any", "missing") for cell in read.cells], dtype=bool)
    nowhere = np.array([not runs for runs in read.runs], dtype=bool)
    kept = telling & ~nowhere
    first = np.array([runs[0][0] for runs, told in zip(read.runs, kept, strict=True) if told], dtype=np.int64)
    last = np.array([runs[-1][1] for runs, told in zip(read.runs, kept, strict=True) if told], dtype=np.int64)
    held, width = np.cumsum(read.axis.counts), len(read.axis.values)
    starts = np.unique(first)
    over = np.zeros(width + 1, dtype=np.int64)  # from each place on
    done = width
    for start in starts[:: -(len(starts) // STARTS + 1)]:
        over[start:done] = over[done]
        within = np.cumsum(np.bincount(last[first >= start], rows[kept][first >= start], minlength=width)).astype(int)
        excess = within[start:] - (held[start:] - (held[start - 1] if start else 0)) + over[start + 1 :]
        over[start], done = max(int(excess.max()), int(over[done])), start
    return int(over[done] + rows[telling & nowhere].sum())
