"""Large cohorts of people whose values change: as many places as are asked for, and the same values in each.

Where any value may become any other, a small cohort soon comes to share a value and ends. A large one hardly does: what
its places become is near what is expected. In two tables a box of people is as small as k allows, however large the
cohort is. So each value is dealt evenly over all new cohorts, and people of one value in the order of their
quasi-identifiers, so that people of a cohort are near each other as far as this leaves room.
"""

from __future__ import annotations

import numpy as np

from reveil.base.arrays import I32, I64, ranks_within
from reveil.base.errors import Fault, InfeasibleError
from reveil.base.words import some
from reveil.plan.cutting.trees import Trees
from reveil.plan.persistent.eligible import group_size, harmless_codes
from reveil.plan.persistent.guesses import repeats
from reveil.plan.persistent.vacancies import curve
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded


def found_large(encoded: Encoded, rows: I64, trees: Trees, policy: Policy) -> I32:
    """The new cohort of each of these rows, numbered from 0; -1 for rows that have to wait.

    Rows are in an order drawn by lot: of a value that is too frequent, the first ones are kept.
    """
    column, g = encoded.sensitive[0], policy.guarantee
    codes, size = encoded.codes[rows, 0].astype(np.int64), group_size(g)
    cohorts = np.full(len(rows), -1, dtype=np.int32)
    mild, counts = harmless_codes(column, policy), np.bincount(codes, minlength=len(column.values))
    kept = np.where(mild, counts, kept_of(np.where(mild, 0, counts), int(counts[mild].sum()), size, repeats(g, size)))
    number, excess = int(kept.sum()) // size, int((counts - kept).sum())
    if policy.method.infeasible == "refuse" and (excess or (len(rows) and not number)):
        raise InfeasibleError(_fault(counts, excess, size, column.name))
    if number:
        order = np.argsort(codes, kind="stable")
        order = order[ranks_within(counts) < np.repeat(kept, counts)]
        near = np.lexsort((curve(encoded.positions[rows[order]], trees), codes[order]))
        cohorts[order[near]] = np.repeat(np.tile(np.arange(number), len(kept)), dealt(kept, number).ravel())
    return cohorts


def kept_of(counts: I64, harmless: int, size: int, most: int) -> I64:
    """How many of each value can be dealt to cohorts of `size` or more, so that none has more than `most` of one.

    >>> kept_of(np.array([40, 30, 30]), 0, 50, 20).tolist(), kept_of(np.array([70, 20, 30]), 0, 50, 20).tolist()
    ([40, 30, 30], [20, 20, 20])
    """
    kept = counts
    while True:
        room = most * ((int(kept.sum()) + harmless) // size)
        if kept.max(initial=0) <= room:
            return kept
        kept = np.minimum(kept, room)


def dealt(counts: I64, cohorts: int) -> I64:
    """How many of each value go to each cohort: of a value, and of all together, no two differ by more than one.

    >>> dealt(np.array([3, 4, 1]), 2).tolist()
    [[2, 1], [2, 2], [0, 1]]
    """
    even, left = np.divmod(counts, cohorts)
    first = np.cumsum(left) - left
    places = (np.arange(cohorts) - first[:, None]) % cohorts  # who is left over goes on where the last value ended
    return np.asarray(even[:, None] + (places < left[:, None]))


def _fault(counts: I64, excess: int, size: int, name: str) -> Fault:
    rows, top = int(counts.sum()), int(counts.max())
    message = f"{some(rows, 'new row')} are too few for one cohort of {size}"
    if excess:
        message = f"one value has {top:,} of {some(rows, 'new row')}, {excess:,} more than cohorts of {size} may show"
    remedy = (
        "begin a series with fewer guarantee.places, a higher tau, or values merged into wider ones; or set "
        'method.infeasible = "withhold": they are not shown'
    )
    return Fault("R445", f"column {name!r}", message, remedy, excess or rows)
