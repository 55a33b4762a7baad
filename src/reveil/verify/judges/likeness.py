"""beta-likeness (Cao and Karras 2012): no value gains too much in a class over its share in the whole table.

A value of share p in the published table and q in a class gains (q - p)/p there. Basic: at most beta. Enhanced: at most
min(beta, -ln p), so that a frequent value cannot gain as much as a rare one. Only a gain counts, never a loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from reveil.guarantees.beta_likeness import BetaLikeness
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.verify.judges.contract import Background, Judge, Verdict, View
from reveil.verify.judges.counts import Counts, Whole, count_values, exceeds, largest_ratio, top, wide, written
from reveil.verify.judges.verdicts import empty, example, share_of_classes, verdict

FAR = 1e-9  # relative distance from a tie beyond which floats decide; theirs is wrong by less than 1e-14


@dataclass
class BetaLikenessJudge:
    """No value of a column gains more than beta, or than -ln p if `enhanced`, in any class."""

    beta: Fraction
    column: str
    enhanced: bool = True
    name: str = "beta-likeness"
    worst_is: ClassVar[Literal["least", "most"]] = "most"

    def judge(self, view: View, history: History) -> list[Verdict]:
        counts = count_values(view, self.column)
        details: dict[str, Any] = {"column": self.column, "likeness": "enhanced" if self.enhanced else "basic"}
        if not counts.rows:
            return [empty(self.name, self.beta, details)]
        numerators, denominators = gains(counts)
        over = exceeds(numerators, denominators, self.beta)
        if self.enhanced:
            over |= beyond_logarithm(numerators, denominators, counts.totals[counts.value], counts.rows)
        bad = np.logical_or.reduceat(over, counts.starts)
        worst, entry = largest_ratio(numerators, denominators)
        details |= example(counts, int(counts.owner[entry]))
        statement, plain = self._words(bad, worst)
        sizes = counts.sizes
        return [verdict(self.name, statement, plain, bad, sizes, worst=worst, bound=self.beta, details=details)]

    def _words(self, bad: NDArray[np.bool_], worst: Fraction) -> tuple[str, str]:
        most = f"min({written(self.beta)}, -ln p)" if self.enhanced else written(self.beta)
        largest = f"the largest gain is {written(worst)}"
        over = f"over its share p in the whole table; {largest}"
        if bad.any():
            return (
                f"{share_of_classes(bad)} a value of {self.column!r} that gains more than {most} {over}",
                f"In some groups of look-alikes a value of {self.column!r} is more frequent, compared with the whole "
                "table, than was promised: a person's group tells more about them than was promised.",
            )
        return (
            f"in every class each value of {self.column!r} gains at most {most} {over}",
            f"In no group of look-alikes is a value of {self.column!r} more than {float(1 + worst):.2f} times as "
            "frequent as in the whole table.",
        )


def gains(counts: Counts) -> tuple[Whole, Whole]:
    """For each value of each class, (q - p)/p as a fraction: (c N - n T) / (n T), T of all N rows having the value.

    A loss counts as 0, so that no number is larger than the products that were looked at for 64 bits.
    """
    rows, totals = counts.rows, counts.totals[counts.value]
    sizes = counts.sizes[counts.owner]
    largest = rows * max(top(counts.count), top(sizes))
    totals, sizes, count = (wide(part, largest) for part in (totals, sizes, counts.count))
    return np.maximum(count * rows - sizes * totals, 0), sizes * totals


def beyond_logarithm(numerators: Whole, denominators: Whole, totals: Whole, rows: int) -> NDArray[np.bool_]:
    """Whether each gain is above -ln p, p = total/rows, exactly."""
    gain = numerators.astype(np.float64) / denominators.astype(np.float64)
    limit = np.log(rows) - np.log(totals.astype(np.float64))
    over = np.asarray(gain > limit, dtype=np.bool_)
    for place in np.flatnonzero(np.abs(gain - limit) <= FAR * (np.abs(gain) + np.log(rows) + 1)).tolist():
        exact = Fraction(int(numerators[place]), int(denominators[place]))
        over[place] = not within_logarithm(exact, Fraction(rows, int(totals[place])))
    return over


def within_logarithm(x: Fraction, y: Fraction) -> bool:
    """Whether x <= ln y, for y >= 1.

    ln y of a rational y other than 1 is irrational, so some number of digits tells the two apart. `ln` and the
    arithmetic of decimal are correctly rounded: the error is far below the margin that is asked for.

    >>> within_logarithm(Fraction(0), Fraction(1)), within_logarithm(Fraction(693147181, 10**9), Fraction(2))
    (True, False)
    """
    if y == 1:
        return x <= 0
    digits = 30
    while True:
        with localcontext() as context:
            context.prec = digits
            terms = (Decimal(y.numerator).ln(), -Decimal(y.denominator).ln(), -Decimal(x.numerator) / x.denominator)
            surplus = sum(terms, Decimal(0))
            if abs(surplus) > (sum(map(abs, terms), Decimal(0)) + 1).scaleb(3 - digits):
                return surplus > 0
        digits *= 2


def build_beta(asked: BetaLikeness, policy: Policy, background: Background) -> list[Judge]:
    enhanced = asked.likeness == "enhanced"
    return [BetaLikenessJudge(asked.beta, name, enhanced) for name in policy.named("sensitive")]
