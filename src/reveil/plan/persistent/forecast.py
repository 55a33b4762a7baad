"""What closed cohorts will cost over the life of a series: the share of counterfeits by m and refill.

A cohort loses each member with the same chance per release, and is refilled as soon as enough places are vacant. Its
number of vacant places is then a Markov chain, followed release by release. It is an estimate: newcomers with the
missing values are taken to be there, and cohorts in which nobody is left are not shown any more.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.guarantees.lasting import CohortTerms
from reveil.plan.persistent.guesses import lowest_guess

AHEAD = 12  # releases


def counterfeit_shares(size: int, refill: int | str, churn: float, releases: int) -> list[float]:
    """Expected share of counterfeits in each release, the first one having none.

    >>> [round(share, 2) for share in counterfeit_shares(6, 3, 0.1, 4)]
    [0.0, 0.09, 0.15, 0.17]
    >>> round(counterfeit_shares(6, "never", 0.1, 4)[-1], 2)
    0.27
    """
    vacant = np.zeros(size + 1)
    vacant[0] = 1.0
    leave = _leaving(size, churn)
    limit = refill if isinstance(refill, int) else size + 1
    shares = []
    for release in range(releases):
        if release:
            vacant = vacant @ leave
            full = vacant[limit:size].sum()  # a cohort without anybody is not refilled
            vacant[limit:size] = 0.0
            vacant[0] += full
        shown = vacant[:size]
        shares.append(float(shown @ np.arange(size) / max(1e-300, shown.sum() * size)))
    return shares


def _leaving(size: int, churn: float) -> NDArray[np.float64]:
    """The chance of going from v to w vacant places in one release."""
    table = np.zeros((size + 1, size + 1))
    for v in range(size + 1):
        here = size - v
        for gone in range(here + 1):
            table[v, v + gone] = comb(here, gone) * churn**gone * (1 - churn) ** (here - gone)
    return table


def trade_offs(g: CohortTerms, churn: float) -> list[dict[str, Any]]:
    """What other settings would promise and cost: m as it is and two more, and every refill that is allowed."""
    options = []
    for m in (g.m, g.m + 1, g.m + 2):
        for refill in (*range(g.compromised + 1, m), "never"):  # a cohort of m that lost all m is not shown
            if isinstance(refill, int) and g.compromised > 2:
                continue
            other = g.model_copy(update={"refill": refill})
            share = counterfeit_shares(m, refill, churn, AHEAD)[-1]
            options.append(
                {"m": m, "refill": refill, "bound": str(lowest_guess(other, m)), "counterfeits": round(share, 3)}
            )
    return options
