"""delta-disclosure privacy (Brickell and Shmatikov 2008): a class tells little for or against any value.

A value of share p in the published table has a share q in every class with |ln(q/p)| < delta, natural logarithm. A
value of the table that a class does not have breaks it whatever delta is: the class tells that nobody there has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, log
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from reveil.guarantees.delta_disclosure import DeltaDisclosure
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.verify.judges.contract import Background, Judge, Verdict, View
from reveil.verify.judges.counts import Counts, Whole, count_values, largest_ratio, top, wide, written
from reveil.verify.judges.likeness import FAR, within_logarithm
from reveil.verify.judges.verdicts import empty, example, share_of_classes, verdict


@dataclass
class DeltaDisclosureJudge:
    """Every value of a column is in every class, and nearly as frequent there as in the whole table."""

    delta: Fraction
    column: str
    name: str = "delta-disclosure"
    worst_is: ClassVar[Literal["least", "most"]] = "most"

    def judge(self, view: View, history: History) -> list[Verdict]:
        counts = count_values(view, self.column)
        details: dict[str, Any] = {"column": self.column}
        if not counts.rows:
            return [empty(self.name, self.delta, details)]
        numerators, denominators = factors(counts)
        absent = counts.distinct < len(counts.values)
        bad = absent | np.logical_or.reduceat(self._reached(numerators, denominators), counts.starts)
        factor, entry = largest_ratio(numerators, denominators)
        place = int(absent.argmax()) if absent.any() else int(counts.owner[entry])
        worst = inf if absent.any() else log(factor)
        details |= {"classes_without_a_value": int(absent.sum()), **example(counts, place)}
        statement, plain = self._words(bad, worst)
        return [verdict(self.name, statement, plain, bad, counts.sizes, worst=worst, bound=self.delta, details=details)]

    def _reached(self, numerators: Whole, denominators: Whole) -> NDArray[np.bool_]:
        """Whether the logarithm of each factor is delta or more, exactly."""
        logs = np.log(numerators.astype(np.float64) / denominators.astype(np.float64))
        reached = np.asarray(logs >= float(self.delta), dtype=np.bool_)
        near = np.abs(logs - float(self.delta)) <= FAR * (1 + float(self.delta))
        for place in np.flatnonzero(near).tolist():
            factor = Fraction(int(numerators[place]), int(denominators[place]))
            reached[place] = within_logarithm(self.delta, factor)
        return reached

    def _words(self, bad: NDArray[np.bool_], worst: float) -> tuple[str, str]:
        most = f"|ln(q/p)| < {written(self.delta)} over its share p in the whole table"
        largest = "some class has none of a value" if worst == inf else f"the largest is {written(worst)}"
        if bad.any():
            return (
                f"{share_of_classes(bad)} a value of {self.column!r} whose share q is not within {most}; {largest}",
                f"In some groups of look-alikes a value of {self.column!r} is missing, or much more or less frequent "
                "than in the whole table: a person's group tells more about them than was promised.",
            )
        return (
            f"in every class the share q of each value of {self.column!r} is within {most}; {largest}",
            f"In every group of look-alikes each value of {self.column!r} is as frequent as in the whole table within "
            f"a factor of {np.exp(worst):.2f}, up or down.",
        )


def factors(counts: Counts) -> tuple[Whole, Whole]:
    """For each value of each class, q/p or p/q, whichever is 1 or more: c N and n T, T of all N rows having it."""
    totals, sizes = counts.totals[counts.value], counts.sizes[counts.owner]
    largest = counts.rows * max(top(totals), top(sizes))
    totals, sizes, count = (wide(part, largest) for part in (totals, sizes, counts.count))
    here, expected = count * counts.rows, sizes * totals
    return np.maximum(here, expected), np.minimum(here, expected)


def build_delta(asked: DeltaDisclosure, policy: Policy, background: Background) -> list[Judge]:
    return [DeltaDisclosureJudge(asked.delta, name) for name in policy.named("sensitive")]
