"""Whether rows can be grouped at all so that every group has m different values, and what to do if not.

A multiset of values can be parted into groups of m or more different values exactly if no value has more than one
in m of the rows (it is *m-eligible*).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I32, I64, Bools, ranks_within
from reveil.base.errors import Fault, InfeasibleError
from reveil.base.text import plain_text
from reveil.base.words import some
from reveil.guarantees.lasting import ManyValues
from reveil.plan.cutting.conditions.contract import rows_of_different_values
from reveil.policy.guarantee import Guarantee
from reveil.policy.policy import Policy
from reveil.table.encode import Sensitive

OFTEN_ENOUGH = "published L times already"


def group_size(guarantee: Guarantee) -> int:
    """How many different values a group needs so that m and all single-release conditions hold.

    >>> group_size(Guarantee.of("m-invariance", m=4, k=6))
    6
    """
    return max(guarantee.require(ManyValues).founders, rows_of_different_values(guarantee))


def harmless_codes(column: Sensitive, policy: Policy) -> Bools:
    """Whether each value of the column is one that may repeat in a group, because nothing is promised for it."""
    protects = policy.protects(column.name)
    return np.array([not protects(value) for value in column.values], dtype=bool)


def apart(codes: I32, mild: Bools, m: int, column: Sensitive) -> tuple[I32, Sensitive]:
    """What must differ within a group: protected values, and harmless (mild) ones, dealt into 2 m names as they come.

    Rows of harmless values alone can always be grouped then: 2 m names have at most one in m of any m or more rows.

    >>> column = Sensitive("illness", ("flu", "none"), False, None)
    >>> codes = np.array([1, 0, 1, 1, 1, 1])
    >>> apart(codes, codes == 1, 2, column)[0].tolist()
    [2, 0, 3, 4, 5, 2]
    """
    if not mild.any():
        return codes, column
    kinds = codes.astype(np.int32)
    kinds[mild] = len(column.values) + np.arange(int(mild.sum())) % (2 * m)
    return kinds, Sensitive(column.name, (*column.values, *("a harmless value",) * (2 * m)), False, None)


def largest_share(counts: I64, m: int) -> int:
    """How many rows of one value may be kept at most so that the rest is m-eligible; 0 if nothing is.

    >>> largest_share(np.array([5, 2, 2, 1]), 3)
    2
    """
    low, high = 0, int(counts.max(initial=0))
    while low < high:
        cap = (low + high + 1) // 2
        if int(np.minimum(counts, cap).sum()) >= m * cap:
            low = cap
        else:
            high = cap - 1
    return low


def eligible_counts(counts: I64, m: int, column: Sensitive, policy: Policy) -> I64:
    """How many rows of each value can be grouped: all, or all but the fewest, or a refusal that says why not."""
    kept = np.minimum(counts, largest_share(counts, m))
    excess = int(counts.sum() - kept.sum())
    if excess and policy.method.infeasible == "refuse":
        raise InfeasibleError(_fault(counts, m, column, excess))
    return kept


def keep_eligible(codes: NDArray[np.int32], m: int, column: Sensitive, policy: Policy) -> NDArray[np.bool_]:
    """Which new rows can be grouped, the first ones of each value. Refuses as `eligible_counts` does."""
    counts = np.bincount(codes, minlength=len(column.values))
    kept = eligible_counts(counts, m, column, policy)
    order = np.argsort(codes, kind="stable")
    place = ranks_within(counts)
    keep = np.empty(len(codes), dtype=bool)
    keep[order] = place < np.repeat(kept, counts)
    return keep


def _fault(counts: I64, m: int, column: Sensitive, excess: int) -> Fault:
    """Why, and the ways out, first those by which nobody is chosen for their value."""
    total, top = int(counts.sum()), int(counts.max())
    value = column.values[int(counts.argmax())]
    allowed = total // top
    lower = f"begin the series with m = {allowed} or lower; " if allowed >= 2 else ""
    return Fault(
        "R420",
        f"column {column.name!r}",
        f"among {some(total, 'new row')} value {value!r} occurs {some(top, 'time')}, {top - total // m:,} "
        "more than one in "
        f"m = {m}: they cannot be grouped so that each group has {m} different values",
        f"if nobody needs protection from {value!r}, begin the series with harmless = [{plain_text(value)!r}]; {lower}"
        'merge rare values into wider ones; or leave people out: method.infeasible = "withhold" withholds '
        f"{some(excess, 'row')} for good, chosen by this value, which tells it (`reveil explain withheld`)",
        excess,
    )
