"""The hierarchies of all quasi-identifiers as one set of arrays, and what it costs to publish a region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import F64, I32, I64
from reveil.base.kernels import bare_kernel
from reveil.hierarchies.tree import Hierarchy
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded

FEW_LEAVES = 256
NODE, RUN, RUN_BUT_MISSING, SET = range(4)  # how a column is published; missing (position 0) joins no run


class Trees(NamedTuple):
    """The hierarchies of all quasi-identifiers, end to end. Node and leaf numbers are local to their column."""

    first: I64  # where the nodes of a column start; one more entry than columns
    node: I32  # first leaf, last leaf, parent
    cost: F64  # loss of a node
    first_leaf: I64
    leaf_node: I32
    scale: F64  # place of a leaf between 0 and 1
    free: NDArray[np.bool_]  # any run of neighbours may be published
    form: I64  # what is published: NODE, RUN, RUN_BUT_MISSING or SET
    span: F64  # loss of the smallest node over a..b, leaves x leaves of each column that has few of them
    first_span: I64  # where the spans of a column begin; -1 where it has too many leaves
    step: F64  # loss of each further value of a set, times the weight of the column
    weight: F64


def lay_end_to_end(encoded: Encoded, policy: Policy) -> Trees:
    """All hierarchies, in the form that the policy publishes."""
    quasi = encoded.quasi
    weight = np.array([policy.columns[h.name].weight for h in quasi], dtype=np.float64)
    leaves = np.array([len(h) for h in quasi], dtype=np.int64)
    spans, first_span = _spans(quasi)
    return Trees(
        first=np.cumsum([0, *(len(h.labels) for h in quasi)], dtype=np.int64),
        node=np.concatenate([np.column_stack([h.lo, h.hi, h.parent]) for h in quasi]),
        cost=np.concatenate([_cost_above_leaves(h) for h in quasi]),
        first_leaf=np.cumsum([0, *leaves], dtype=np.int64),
        leaf_node=np.concatenate([h.leaf_node for h in quasi]),
        scale=np.concatenate([h.scale for h in quasi]),
        free=np.array([h.free for h in quasi]),
        form=np.array([_form(h, policy) for h in quasi], dtype=np.int64),
        span=spans,
        first_span=first_span,
        step=weight / np.maximum(1, leaves - 1),
        weight=weight,
    )


def _cost_above_leaves(hierarchy: Hierarchy) -> NDArray[np.float64]:
    """What a node loses beyond its leaves: the loss of a leaf itself (a bucket) is not for planning to avoid."""
    return np.where(hierarchy.lo == hierarchy.hi, 0.0, hierarchy.cost)


def _spans(quasi: Sequence[Hierarchy]) -> tuple[F64, I64]:
    """The losses of the smallest nodes over all runs of leaves, for columns of few leaves: to look up, not to climb."""
    tables, first = [np.empty(0)], []
    for hierarchy in quasi:
        if hierarchy.free or len(hierarchy) > FEW_LEAVES:
            first.append(-1)
            continue
        first.append(sum(map(len, tables)))
        table, cost = np.empty((len(hierarchy), len(hierarchy))), _cost_above_leaves(hierarchy)
        for node in range(len(cost)):  # children come after their parents
            inside = slice(hierarchy.lo[node], hierarchy.hi[node] + 1)
            table[inside, inside] = cost[node]
        tables.append(table.ravel())
    return np.concatenate(tables), np.array(first, dtype=np.int64)


def _form(hierarchy: Hierarchy, policy: Policy) -> int:
    if hierarchy.free:
        return RUN_BUT_MISSING if hierarchy.has_missing else RUN
    return SET if policy.method.recode == "sets" else NODE


@bare_kernel
def smallest_node(trees: Trees, c: int, a: int, b: int) -> int:
    """The smallest node of column c that covers positions a..b."""
    base = trees.first[c]
    v = trees.leaf_node[trees.first_leaf[c] + a]
    while trees.node[base + v, 1] < b or trees.node[base + v, 0] > a:
        v = trees.node[base + v, 2]
    return v


@bare_kernel
def run_cost(trees: Trees, c: int, a: int, b: int) -> float:
    """Loss of publishing positions a..b of column c as a run or as a node."""
    form = trees.form[c]
    if form == RUN or (form == RUN_BUT_MISSING and (a > 0 or b == 0)):
        base = trees.first_leaf[c]
        return trees.scale[base + b] - trees.scale[base + a]
    if a == b:
        return 0.0
    if trees.first_span[c] >= 0:
        return trees.span[trees.first_span[c] + a * (trees.first_leaf[c + 1] - trees.first_leaf[c]) + b]
    return trees.cost[trees.first[c] + smallest_node(trees, c, a, b)]


@bare_kernel
def run_loss(trees: Trees, c: int, a: int, b: int) -> float:
    """The same, times the weight of the column."""
    return trees.weight[c] * run_cost(trees, c, a, b)
