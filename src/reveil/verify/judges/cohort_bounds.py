"""What the terms of a cohort bound, worked out from the definition for the judges alone.

The planner reckons for itself (`reveil.plan.persistent.guesses`), and neither asks the other.
"""

from __future__ import annotations

from fractions import Fraction

from reveil.guarantees.lasting import CohortTerms
from reveil.policy.guarantee import Guarantee


def possible_values(terms: CohortTerms, size: int) -> int:
    """How many values stay possible for somebody, whichever people of a cohort of `size` are known.

    If all who are known are of the cohort, their values are taken. If places were refilled, `gone` of them may have
    left: a value that one of these had is now with one of the newcomers, of whom the other known people are some.
    """
    counts = [size - terms.compromised]
    if isinstance(terms.refill, int):
        counts += [terms.refill - (terms.compromised - gone) for gone in range(1, terms.compromised + 1)]
    return min(counts)


def promised_guess(terms: CohortTerms) -> Fraction:
    """The chance that no guess may exceed.

    >>> from reveil.guarantees.compromise_safety import CompromiseSafety
    >>> promised_guess(CompromiseSafety(m=6)), promised_guess(CompromiseSafety(m=6, refill=3))
    (Fraction(1, 5), Fraction(1, 3))
    """
    if terms.tau is not None:
        return terms.tau
    return Fraction(1, max(1, possible_values(terms, terms.m)))


def most_alike(guarantee: Guarantee, size: int) -> int:
    """How many of the `size` rows of a cohort may show one value: the value of a row is then guessed with the promise.

    Promises about the values of each release besides are kept where no two rows of a cohort show the same.
    """
    terms = guarantee.require(CohortTerms)
    values, bound = possible_values(terms, size), promised_guess(terms)
    alone = any(one.sensitive == "some" for one, _ in guarantee.described)
    return max((rows for rows in range(1, 1 + (1 if alone else size)) if rows <= bound * values), default=0)
