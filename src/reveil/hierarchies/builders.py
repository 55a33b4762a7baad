"""Hierarchies made from a list of values, in ARX's form, to be looked at and corrected before a policy names them.

By order, neighbours are put together, so many at a time. By priority, the first values of a list stay themselves on
more levels than the others: on each level, all that come after so many are one label.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from itertools import pairwise

from reveil.base.errors import Fault, InputError
from reveil.base.words import some
from reveil.hierarchies.tree import ANY

Rows = list[list[str]]  # each value and its labels, from the value up to `*`


def by_order(values: Sequence[str], sizes: Sequence[int]) -> Rows:
    """Runs of neighbours: of so many values, then of so many of these runs, and so on.

    >>> by_order(["low", "fair", "good"], [2])
    [['low', '[low-fair]', '*'], ['fair', '[low-fair]', '*'], ['good', 'good', '*']]
    """
    _refuse(values, [f"a run of {size} puts nothing together" for size in sizes if size < 2], sizes, "sizes")
    rows, width = [[value] for value in values], 1
    for size in sizes:
        width *= size
        for place, row in enumerate(rows):
            first = place // width * width
            run = values[first : first + width]
            row.append(run[0] if len(run) == 1 else f"[{run[0]}-{run[-1]}]")
    return [[*row, ANY] for row in rows]


def by_priority(values: Sequence[str], keep: Sequence[int]) -> Rows:
    """The first values stay as they are, on fewer levels the later they come; the others are one label.

    >>> by_priority(["flu", "cold", "gout", "rare one"], [2, 1])[2]
    ['gout', 'not among the first 2', 'not among the first 1', '*']
    >>> by_priority(["flu", "cold", "gout", "rare one"], [2, 1])[1]
    ['cold', 'cold', 'not among the first 1', '*']
    """
    bad = [f"{b} after {a}: each level keeps fewer" for a, b in pairwise(keep) if b >= a]
    bad += [f"{number} of {some(len(values), 'value')} is not fewer" for number in keep if not 0 < number < len(values)]
    _refuse(values, bad, keep, "keep")
    labels = [f"not among the first {number}" for number in keep]
    return [
        [value, *(value if place < n else label for n, label in zip(keep, labels, strict=True)), ANY]
        for place, value in enumerate(values)
    ]


def _refuse(values: Sequence[str], bad: list[str], numbers: Sequence[int], what: str) -> None:
    bad = bad or ([] if numbers else [f"{what} names no number"])
    if len(set(values)) < len(values) or not values:
        bad = [*bad, "the values are not all different" if values else "there are no values"]
    if bad:
        remedy = "name numbers such as 3,2: three values, then two of these runs" if what == "sizes" else ""
        remedy = remedy or "name falling numbers such as 20,5: twenty values stay on the first level, five on the next"
        raise InputError(Fault("R305", what, "; ".join(bad), remedy))


def as_csv(rows: Rows) -> str:
    """ARX's form, which `hierarchy = "FILE"` of a column reads."""
    out = io.StringIO()
    csv.writer(out, delimiter=";", lineterminator="\n").writerows(rows)
    return out.getvalue()
