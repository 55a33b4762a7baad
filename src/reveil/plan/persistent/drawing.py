"""Newcomers of whom some value is too frequent: a few are drawn to wait, so that all others can be shown.

Rows come in an order drawn by lot, and only what stands at which place of it is looked at. So within those who are
shown, and within those who wait, everybody is as likely as anybody else to have each of the values that are there:
bounds of cohorts stay as they are, and somebody who waits is guessed with the share that a value has among those who
do. That share is above tau, whatever is done, if the value's share of all newcomers is; it is kept at or below
`crowd_share`, whoever of them is known. Who was drawn is never shown later. The proof is in docs/persistent-values.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil

import numpy as np

from reveil.base.arrays import I32, I64, Bools
from reveil.guarantees.lasting import CohortTerms
from reveil.plan.persistent.guesses import allowed_guess

GROUPS = 6  # fewer newcomers than so many groups of the least size wait all together: they may be shown later


def are_many(newcomers: int, least: int) -> bool:
    """Whether so many newcomers are parted when they do not fit; their number alone decides."""
    return newcomers >= GROUPS * least


def crowd_share(tau: Fraction) -> Fraction:
    """The highest share that a value may have among those who are drawn to wait: twice the odds that are promised.

    >>> crowd_share(Fraction(1, 2)), crowd_share(Fraction(1, 5))
    (Fraction(2, 3), Fraction(1, 3))
    """
    return 2 * tau / (1 + tau)


def draw_crowd(codes: I32, size: int, terms: CohortTerms) -> Bools | None:
    """Who of these rows waits, as few as are found, or nothing where no crowd will do; rows are in a lot's order.

    Codes of protected values, which no two columns share but for values of the same kind; -1 is none.
    """
    tau, known, rows = allowed_guess(terms), terms.compromised, len(codes)
    counts = np.bincount(codes[codes >= 0], minlength=1)
    share = crowd_share(tau)
    for crowd in _sizes(int(counts.max()), rows, size, known, tau):
        most = int(share * (crowd - known))  # those who are known may have other values
        shown = max(0, int(tau * (rows - crowd - known)))
        drawn = _drawn(codes, np.maximum(0, counts - shown), crowd, most)
        if drawn is not None:
            return drawn
    return None


def _sizes(top: int, rows: int, size: int, known: int, tau: Fraction) -> Iterator[int]:
    """How many could wait, the fewest first: n - tau (rows - w - c) of the top value are at most share (w - c)."""
    share = crowd_share(tau)
    crowd = max(1, ceil((top - tau * (rows - known) + share * known) / (share - tau)))
    while crowd <= rows - size:
        yield crowd
        crowd += max(1, crowd // 64)


def _drawn(codes: I32, needed: I64, crowd: int, most: int) -> Bools | None:
    """A crowd of this size with so many of each value as are needed, and no more than `most`: first come, first."""
    if int(needed.max()) > most:
        return None
    taken, drawn, left = np.zeros_like(needed), np.zeros(len(codes), dtype=bool), crowd
    for urgent in (True, False):  # those of whom some must wait, then anybody
        for row in _in_question(codes, needed) if urgent else np.flatnonzero(~drawn):
            if not left:
                break
            mine = codes[row][codes[row] >= 0]
            lacks = (taken[mine] < needed[mine]).any()
            if (lacks or not urgent) and (taken[mine] < most).all():
                drawn[row], left = True, left - 1
                taken[mine] += 1
    return drawn if (taken >= needed).all() and not left else None


def _in_question(codes: I32, needed: I64) -> I64:
    """Rows with a value of which some must wait."""
    return np.flatnonzero(((codes >= 0) & (needed[np.maximum(codes, 0)] > 0)).any(axis=1))
