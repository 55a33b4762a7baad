"""How surely somebody of a cohort can be guessed, and how often a cohort may show a value, as the planner reckons.

The judges reckon for themselves (`reveil.verify.judges.cohort_bounds`), and neither asks the other.
"""

from __future__ import annotations

from fractions import Fraction

from reveil.guarantees.lasting import CohortTerms
from reveil.policy.guarantee import Guarantee


def open_places(terms: CohortTerms, size: int) -> int:
    """Places that remain for somebody's value in a cohort of `size`, when as many are known as may be.

    Those who are known leave size - c. When r places are refilled at once, a known leaver and c - 1 known newcomers
    leave r - c + 1 for the leaver's value.
    """
    left = size - terms.compromised
    if isinstance(terms.refill, int) and terms.compromised:
        left = min(left, terms.refill - terms.compromised + 1)
    return left


def lowest_guess(terms: CohortTerms, size: int) -> Fraction:
    """The lowest bound on a guess that a cohort of `size` can keep.

    >>> from reveil.guarantees.compromise_safety import CompromiseSafety
    >>> lowest_guess(CompromiseSafety(m=6, refill=3), 6)
    Fraction(1, 3)
    """
    return Fraction(1, max(1, open_places(terms, size)))


def allowed_guess(terms: CohortTerms) -> Fraction:
    """The chance that no guess may exceed: tau, or the lowest that can be kept."""
    return lowest_guess(terms, terms.m) if terms.tau is None else terms.tau


def repeats(guarantee: Guarantee, size: int) -> int:
    """How many of the `size` places of a cohort may show the same value, where values change.

    Conditions on the values of single releases (l, alpha) are kept by cohorts in which all values differ.

    >>> promise = Guarantee.of("m-distinct", m=6)  # tau is 1/5: one person may be known
    >>> repeats(promise, 6), repeats(promise, 11)
    (1, 2)
    """
    terms = guarantee.require(CohortTerms)
    most = int(allowed_guess(terms) * open_places(terms, size))
    return min(1, most) if any(one.sensitive == "some" for one, _ in guarantee.described) else most
