"""t-closeness: how far the values of each class are from those of the whole table, by earth mover's distance.

The whole table is all published rows, or, with `reference = "original"`, all rows that were put in: then the publisher
has to say how often each value was there, and of a release alone nothing is decided. The distance between two values is
between 0 and 1:

- equal: 1 for any two different values, so the distance of distributions is half the sum of the differences;
- ordered: the number of steps between them among the distinct values of the table, divided by the number of
  steps from the first to the last. Numbers and dates stand in rising order, categories in the order the
  policy states; a missing value stands before all others;
- hierarchical (Li, Li and Venkatasubramanian 2007): the height of their lowest common ancestor, divided by
  the height of the tree. The height of a node is the number of steps on the longest way down from it to a
  leaf, also where leaves have different depths. The tree begins at the lowest node that covers every value
  but the missing one; a missing value is at distance 1 from all others, so that it does not change the
  distances between them.

Each is computed without rounding from the values that occur in a class; those that do not are summed up for
the table once. So the work grows with the number of rows, not with classes times values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import takewhile
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.arrays import ranks_within
from reveil.base.errors import Fault, InputError, stop_if
from reveil.guarantees.t_closeness import TCloseness
from reveil.hierarchies.tree import Hierarchy
from reveil.history.history import History
from reveil.policy.column import Column
from reveil.policy.policy import Policy
from reveil.table.roles import no_order
from reveil.verify.judges.contract import Background, Judge, Verdict, View
from reveil.verify.judges.counts import (
    Counts,
    Whole,
    count_values,
    exceeds,
    largest_ratio,
    listed,
    ranked,
    wide,
    written,
)
from reveil.verify.judges.verdicts import empty, example, share_of_classes, verdict

Distance = Literal["equal", "ordered", "hierarchical"]
Ratios = tuple[Whole, Whole]  # numerator and denominator for each class


@dataclass
class TClosenessJudge:
    """No class is further than t from the whole table.

    `distance` "auto" means hierarchical where there is a hierarchy, ordered where there is an order (numbers
    have one), otherwise equal.
    """

    t: Fraction
    column: str
    distance: Literal["auto", "equal", "ordered", "hierarchical"] = "auto"
    hierarchy: Hierarchy | None = None
    order: tuple[Any, ...] | None = None
    of_original: bool = False
    name: str = "t-closeness"
    worst_is: ClassVar[Literal["least", "most"]] = "most"

    def judge(self, view: View, history: History) -> list[Verdict]:
        counts = count_values(view, self.column)
        distance = self._distance(counts)
        details: dict[str, Any] = {"column": self.column, "distance": distance}
        if not counts.rows:
            return [empty(self.name, self.t, details)]
        whole = counts.totals
        if self.of_original:
            details["reference"] = "original"
            if self.column not in view.original:
                return [self._unknown(details)]
            counts, whole = _beside(counts, view.original[self.column])
        numerators, denominators = self._measure(counts, distance, whole)
        bad = exceeds(numerators, denominators, self.t)
        worst, place = largest_ratio(numerators, denominators)
        table = "original table" if self.of_original else "whole table"
        what = f"{distance} distance {written(self.t)} of the {table} in {self.column!r}"
        furthest = f"the furthest class is at {written(worst)}"
        if bad.any():
            statement = f"{share_of_classes(bad)} values beyond {what}; {furthest}"
            plain = (
                f"In some groups of look-alikes the values of {self.column!r} differ more from those of the "
                f"{table} than was promised, so a person's group tells more about them than was promised."
            )
        else:
            statement = f"every class is within {what}; {furthest}"
            plain = (
                f"In every group of look-alikes the values of {self.column!r} are at most {float(worst):.1%} "
                f"of the largest possible distance away from those of the {table}. So a person's group "
                f"tells only that much more about their {self.column!r} than the table as a whole does."
            )
        details |= example(counts, place)
        sizes = counts.sizes
        return [verdict(self.name, statement, plain, bad, sizes, worst=worst, bound=self.t, details=details)]

    def _unknown(self, details: dict[str, Any]) -> Verdict:
        statement = f"how far values of {self.column!r} are from the original table cannot be told without that table"
        plain = "Rows were left out, or may have been, and what they held is not known here."
        worst = details | {"way out": "look at the certificate that was written when the table was published"}
        return Verdict(self.name, statement, plain, False, None, self.t, details=worst, decided=False)

    def _distance(self, counts: Counts) -> Distance:
        sorts_itself = counts.values.dtype.is_numeric() or counts.values.dtype.is_temporal()
        if self.distance == "ordered" and not (sorts_itself or self.order is not None):
            raise InputError(no_order(self.column))
        if self.distance != "auto":
            return self.distance
        if self.hierarchy is not None:
            return "hierarchical"
        return "ordered" if self.order is not None or counts.values.dtype.is_numeric() else "equal"

    def _measure(self, counts: Counts, distance: Distance, whole: Whole) -> Ratios:
        if distance == "equal":
            return equal_distance(counts, whole)
        if distance == "hierarchical":
            if self.hierarchy is None:
                raise InputError(_no_hierarchy(self.column))
            return hierarchical_distance(counts, taxonomy_of(counts, self.hierarchy, self.column), whole)
        if self.order is not None:
            numbers = _stated_order(counts, self.order, self.column)
            counts, whole = counts.relabelled(numbers), whole[np.argsort(numbers)]
        return ordered_distance(counts, whole)


def _beside(counts: Counts, original: pl.DataFrame) -> tuple[Counts, Whole]:
    """The same counts with the values numbered among those of the original as well, and how often each was there."""
    held = original["value"].fill_nan(None) if original["value"].dtype.is_float() else original["value"]
    parts = [pl.DataFrame({"value": values}) for values in (counts.values, held)]
    together = pl.concat(parts, how="vertical_relaxed")["value"]
    distinct, ranks = ranked(together)
    shown = len(counts.values)
    whole = np.bincount(ranks[shown:], original["rows"].to_numpy(), minlength=len(distinct)).astype(np.int64)
    numbered = replace(counts, value=ranks[:shown][counts.value], values=distinct)
    return numbered, whole


def equal_distance(counts: Counts, whole: Whole) -> Ratios:
    """Half the sum of |c/n - q/N|: the sum of its positive parts, which only values of the class have."""
    rows = int(whole.sum())
    largest = rows * max(rows, counts.rows)
    sizes = wide(counts.sizes, largest)
    surplus = wide(counts.count, largest) * rows - sizes[counts.owner] * wide(whole, largest)[counts.value]
    return counts.per_class(np.maximum(surplus, 0)), sizes * rows


def ordered_distance(counts: Counts, whole: Whole) -> Ratios:
    """The sum over the values of |rows of the class so far / n - rows of the table so far / N|, by the steps.

    From one value of the class to its next, the first of the two stands still at k while the second, F,
    rises: up to the place where F passes k * N / n the difference is positive, from there on negative. With
    running sums of F each such stretch is one subtraction.
    """
    rows, values = int(whole.sum()), len(counts.values)
    largest = 2 * values * rows * max(rows, counts.rows)
    sizes = wide(counts.sizes, largest)
    below = np.cumsum(wide(whole, largest))  # F
    area = np.concatenate((below[:1] * 0, np.cumsum(below)))  # sum of F before each value
    n = sizes[counts.owner]
    held = np.cumsum(wide(counts.count, largest))
    held = held - (held[counts.starts] - counts.count[counts.starts])[counts.owner]  # k
    first, last = counts.value, np.append(counts.value[1:], values)
    last[counts.starts[1:] - 1] = values
    turn = np.clip(np.searchsorted(below, held * rows // n, side="right"), first, last)
    rising = (turn - first) * (held * rows) - n * (area[turn] - area[first])
    falling = n * (area[last] - area[turn]) - (last - turn) * (held * rows)
    before = sizes * area[counts.value[counts.starts]]  # the table's values before the first of the class
    return counts.per_class(rising + falling) + before, sizes * (rows * max(1, values - 1))


@dataclass(frozen=True, eq=False)
class Taxonomy:
    """What the hierarchical distance needs: the way up from each value, and how the height rises on it."""

    way: NDArray[np.int64]  # nodes from each value's leaf up to just below the top, all values in one array
    starts: NDArray[np.int64]  # where each value's way begins; one more entry at the end
    rise: NDArray[np.int64]  # of each node: height of its parent less its own
    height: int


def hierarchical_distance(counts: Counts, tree: Taxonomy, whole: Whole) -> Ratios:
    """Moving a unit between two leaves costs the height of their common ancestor, half going up, half down.

    So the cheapest way to turn P into Q costs the sum over all nodes of |P(node) - Q(node)| * rise(node) / 2,
    which for a tree is the same as the sum over inner nodes that Li et al. give. Nodes without rows of the
    class add Q(node) * rise(node); their sum is taken over all nodes at once and corrected where the class
    has rows.
    """
    rows = int(whole.sum())
    largest = 4 * rows * max(rows, counts.rows) * max(1, tree.height)
    totals = wide(whole, largest)
    share = np.zeros(len(tree.rise), dtype=totals.dtype)  # rows of the table below each node
    np.add.at(share, tree.way, np.repeat(totals, np.diff(tree.starts)))
    owner, node, held = _spread(counts, tree)
    held = wide(held, largest)
    sizes = wide(counts.sizes, largest)
    n = sizes[owner]
    corrected = tree.rise[node] * (np.abs(held * rows - n * share[node]) - n * share[node])
    everything = (tree.rise * share).sum()
    distances = np.zeros(len(sizes), dtype=sizes.dtype)
    np.add.at(distances, owner, corrected)
    return distances + sizes * everything, sizes * (2 * rows * max(1, tree.height))


def _spread(counts: Counts, tree: Taxonomy) -> tuple[Whole, Whole, Whole]:
    """Rows of each class below each node that has some: class, node, rows."""
    lengths = np.diff(tree.starts)[counts.value]
    entry = np.repeat(np.arange(len(counts.value)), lengths)
    step = ranks_within(lengths)
    node = tree.way[tree.starts[counts.value][entry] + step]
    key = counts.owner[entry] * len(tree.rise) + node
    if not len(key):
        return key, key, counts.count[entry]
    order = np.argsort(key, kind="stable")
    key = key[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    held = np.add.reduceat(counts.count[entry][order], starts)
    return key[starts] // len(tree.rise), key[starts] % len(tree.rise), held


def taxonomy_of(counts: Counts, hierarchy: Hierarchy, column: str) -> Taxonomy:
    """The tree of the values of a table, with a missing value just below its top."""
    place = {leaf: position for position, leaf in enumerate(hierarchy.leaves) if leaf is not None}
    values = counts.values.to_list()
    unknown = [value for value in values if value is not None and _leaf(place, value) is None]
    if unknown:
        raise InputError(
            Fault(
                "R413",
                f"column {column!r}",
                f"the hierarchy does not cover {len(unknown)} published values: {listed(unknown)}",
                "add these values to the hierarchy",
            )
        )
    parent, lo, hi = hierarchy.parent.tolist(), hierarchy.lo.tolist(), hierarchy.hi.tolist()
    first = int(hierarchy.has_missing)
    height = [_height(hierarchy.paths[a : b + 1]) for a, b in zip(lo, hi, strict=True)]
    peak = max(node for node in range(len(parent)) if lo[node] <= first and hi[node] == len(hierarchy) - 1)
    tall = max(1, height[peak])
    rise = [height[above] - own for above, own in zip(parent, height, strict=True)] + [tall]
    ways = []
    for value in values:
        node = -1 if value is None else int(hierarchy.leaf_node[_leaf(place, value) or 0])
        ways.append([len(parent)] if value is None else _way_up(node, parent, peak))
    starts = np.cumsum([0, *map(len, ways)])
    flat = [node for way in ways for node in way]
    return Taxonomy(np.array(flat, dtype=np.int64), starts, np.array(rise, dtype=np.int64), tall)


def _height(paths: Sequence[tuple[str, ...]]) -> int:
    """Steps from the lowest node over these leaves down to the deepest of them, by the paths as they are stated.

    >>> _height([("X", "P", "P1", "a"), ("X", "Q", "c")]), _height([("X", "P", "P1", "a")])
    (3, 0)
    """
    if len(paths) == 1:
        return 0
    ways = zip(paths[0][:-1], paths[-1][:-1], strict=False)  # leaves between the two share what these share
    shared = sum(1 for _ in takewhile(lambda labels: labels[0] == labels[1], ways))
    return max(map(len, paths)) - shared


def _way_up(node: int, parent: Sequence[int], peak: int) -> list[int]:
    way = []
    while node != peak:
        way.append(node)
        node = parent[node]
    return way


def _leaf(place: dict[Any, int], value: Any) -> int | None:
    """Hierarchies from files know their leaves as text, whatever the type of the column."""
    return place.get(value, place.get(str(value)))


def _stated_order(counts: Counts, order: Sequence[Any], column: str) -> NDArray[np.int64]:
    """The new number of each value: the missing one first, then as the policy states."""
    place = {value: number for number, value in enumerate(order, 1)}
    values = counts.values.to_list()
    unknown = [value for value in values if value is not None and _leaf(place, value) is None]
    if unknown:
        message = f"order does not name {len(unknown)} published values: {listed(unknown)}"
        raise InputError(Fault("R413", f"column {column!r}", message, "add these values to order, in their place"))
    keys = [0 if value is None else _leaf(place, value) or 0 for value in values]
    return np.argsort(np.argsort(keys))


def _no_hierarchy(column: str) -> Fault:
    return Fault(
        "R411",
        f"column {column!r}",
        'distance = "hierarchical" needs a hierarchy, and this column has none',
        'give the column a hierarchy, or use distance = "equal"',
    )


def build_t(asked: TCloseness, policy: Policy, background: Background) -> list[Judge]:
    judges: list[Judge] = []
    faults = []
    for name in policy.named("sensitive"):
        order = policy.columns[name].order
        known = background.hierarchies.get(name)
        tree = None if known is None or known.free else known
        if asked.distance == "hierarchical" and tree is None:
            faults.append(_no_hierarchy(name))
        if asked.distance == "ordered" and order is None and _is_text(policy.columns[name]):
            faults.append(no_order(name))
        judges.append(TClosenessJudge(asked.t, name, asked.distance, tree, order, asked.of_original))
    stop_if(faults)
    return judges


def _is_text(column: Column) -> bool:
    """Whether the policy says so; where it says nothing the published table will."""
    return column.type == "category" or column.prefixes is not None
