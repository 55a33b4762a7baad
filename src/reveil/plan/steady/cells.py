"""Fixed cells of people (`people = "stable-boxes"`): cuts of a series' first release that later ones use again.

A cut parts those up to a number (or a place in an order) from the others, or those under some labels of a hierarchy. It
is kept as these, and not as positions, so that it says of every later person on which side they are, whatever values
come. Cuts are kept as a tree: a cut, the cell or cut of those inside it, that of the others; and so on.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from reveil.base.arrays import I32, I64, Bools
from reveil.base.kernels import bare_kernel
from reveil.guarantees.k_anonymity import KAnonymity
from reveil.hierarchies.tree import Hierarchy
from reveil.history.history import CUTS
from reveil.plan.cutting import admit, cuts
from reveil.plan.cutting.candidates import EXACT_BELOW, best_cut, find_cuts, scratch_for, weigh_cuts
from reveil.plan.cutting.mondrian import rows_of
from reveil.plan.cutting.trees import lay_end_to_end
from reveil.plan.cutting.values import ZERO, Order, Rows, admits
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded


@dataclass(frozen=True, eq=False)
class FixedCells:
    """Cuts as a tree, in the order cut, what is inside it, what is not: no column where a cell is not cut further."""

    frame: pl.DataFrame  # column, and as JSON: `upto` a value, or `under` labels

    @cached_property
    def columns(self) -> list[str | None]:
        return self.frame["column"].to_list()

    @cached_property
    def others(self) -> I64:
        """Where the tree goes on for those who are not inside the cut of an entry."""
        size = np.ones(len(self.columns), dtype=np.int64)
        for entry in range(len(self.columns) - 1, -1, -1):
            if self.columns[entry] is not None:
                second = entry + 1 + size[entry + 1]
                size[entry] = 1 + size[entry + 1] + size[second]
        return np.arange(len(size)) + 1 + np.append(size, 0)[np.arange(len(size)) + 1]

    def sides(self, quasi: tuple[Hierarchy, ...]) -> list[tuple[int, Bools]]:
        """Of each cut, its column and which positions of this release are inside it."""
        place, known = {tree.name: number for number, tree in enumerate(quasi)}, dict[tuple[Any, ...], Bools]()
        nothing, found = (-1, np.empty(0, dtype=bool)), []
        for cut in self.frame.iter_rows():
            if cut[0] is None:
                found.append(nothing)
                continue
            if cut not in known:
                known[cut] = _inside(quasi[place[cut[0]]], *cut[1:])
            found.append((place[cut[0]], known[cut]))
        return found


def _inside(tree: Hierarchy, upto: str | None, under: str | None) -> Bools:
    """Which positions of a hierarchy are inside a cut."""
    if under is not None:
        labels = set(json.loads(under))
        return np.array([not labels.isdisjoint(path) for path in tree.paths], dtype=bool)
    assert upto is not None
    last = _unpack(json.loads(upto))
    if last is None:  # nobody but those without a value
        return np.array([leaf is None for leaf in tree.leaves], dtype=bool)
    if isinstance(last, str):  # an order is stated, with all its values
        return np.arange(len(tree)) <= tree.leaves.index(last)
    return np.array([leaf is None or leaf <= last for leaf in tree.leaves], dtype=bool)


def cut_cells(encoded: Encoded, policy: Policy) -> FixedCells:
    """Cut people into cells of at least k, as finely as it goes, and say by what."""
    trees, tests, (rows, order) = lay_end_to_end(encoded, policy), admit.tests(encoded, policy), rows_of(encoded)
    k = policy.guarantee.require(KAnonymity).k
    made = np.empty((2 * (len(rows) // k) + 1, 3), dtype=np.int32)
    how = cuts.Cutting(trees, tests, scratch_for(trees, tests, rows), relaxed=False)
    count = record_cuts(how, rows, order, made, np.empty(len(rows) + 1, dtype=np.int32))
    return FixedCells(_as_said(encoded, made[:count]))


@bare_kernel
def record_cuts(how: cuts.Cutting, rows: Rows, order: Order, made: I32, ends: I32) -> int:
    """Cut all rows, and list the cuts: column, first and last position inside; column -1 where a cell is done."""
    s, depth, count = ZERO, 1, ZERO
    ends[0] = len(rows)
    while depth > 0:
        t = ZERO + ends[depth - 1]
        cut = strict_cut(how, rows, order, s, t, made, count)
        count += 1
        if cut > s:
            ends[depth] = cut
            depth += 1
        else:
            depth -= 1
            s = t
    return count


@bare_kernel
def strict_cut(how: cuts.Cutting, rows: Rows, order: Order, s: int, t: int, made: I32, entry: int) -> int:
    """Cut rows s..t where that loses least, and say how. Returns where those inside the cut end; s for no cut."""
    trees, tests, scratch, _ = how
    made[entry, 0] = -1
    if t - s < 2 * tests.least:
        return s
    now = find_cuts(trees, rows, s, t, tests.least, False, scratch)
    if t - s <= EXACT_BELOW and now > 0:
        weigh_cuts(trees, rows, s, t, now, tests.least, scratch)
    while True:
        c, j = best_cut(scratch.best)
        if scratch.best[c, j] <= 0:
            return s
        scratch.best[c, j] = 0.0
        a, b = cuts.cut_range(trees, rows, s, t, c, j, scratch)
        cut = cuts.partition(rows, order, s, t, c, a, b)
        if admits(tests, rows, order, s, cut, scratch.tally, scratch.touched) and admits(
            tests, rows, order, cut, t, scratch.tally, scratch.touched
        ):
            made[entry, 0], made[entry, 1], made[entry, 2] = c, a, b
            return cut


def _as_said(encoded: Encoded, made: I32) -> pl.DataFrame:
    """Cuts at positions of the first release, as what they mean in every release."""
    different, which = np.unique(made, axis=0, return_inverse=True)
    said = [_cut(encoded.quasi[c], a, b) if c >= 0 else (None, None, None) for c, a, b in different.tolist()]
    return pl.DataFrame(said, schema=CUTS, orient="row")[which.ravel()]


def _cut(tree: Hierarchy, first: int, last: int) -> tuple[str, str | None, str | None]:
    if tree.free:
        return tree.name, json.dumps(_pack(tree.leaves[last])), None
    covering = tree.node(first, last)
    inside = [v for v in range(len(tree.labels)) if first <= tree.lo[v] and tree.hi[v] <= last]
    highest = [v for v in inside if v == covering or tree.parent[v] not in inside]
    return tree.name, None, json.dumps(sorted(tree.labels[v] for v in highest))


def _pack(value: Hashable) -> Any:
    return {"date": value.isoformat()} if isinstance(value, datetime.date) else value


def _unpack(value: Any) -> Any:
    return datetime.date.fromisoformat(value["date"]) if isinstance(value, dict) else value
