"""Guarantees of one release that look at class sizes and at how values are spread inside classes.

A missing value is a value like any other. Counterfeit rows count as rows where values are looked at: nobody can tell
them apart. k counts people: how many rows of a class are counterfeits is published.
Thresholds are compared in whole numbers; no float decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from reveil.base.words import agree, some
from reveil.guarantees.alpha_k import AlphaK
from reveil.guarantees.k_anonymity import KAnonymity
from reveil.guarantees.l_diversity import LDiversity
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.verify.judges.bundles import BundlesJudge, CoveringJudge, LinkedJudge
from reveil.verify.judges.contract import Background, Judge, Verdict, View
from reveil.verify.judges.counts import Counts, count_values, exceeds, largest_ratio, written
from reveil.verify.judges.verdicts import empty, example, share_of_classes, verdict

Diversity = Literal["distinct", "entropy", "recursive"]


@dataclass
class KAnonymityJudge:
    """Every class has at least k rows of people.

    >>> import polars as pl
    >>> cells = pl.DataFrame({"age": ["2*", "2*", "3*"]})
    >>> view = View(np.array([0, 0, 1]), cells, {}, counterfeits=np.zeros(2, dtype=np.int64))
    >>> verdict, = KAnonymityJudge(2).judge(view, History())
    >>> verdict.holds, verdict.statement
    (False, '1 of 2 classes has fewer than 2 rows; the smallest has 1')
    """

    k: int
    parted: bool = False  # two tables: people are shown as they are, only values are hidden among those of a group
    name: str = "k-anonymity"
    worst_is: ClassVar[Literal["least", "most"]] = "least"

    def judge(self, view: View, history: History) -> list[Verdict]:
        every = view.sizes()
        classes = np.flatnonzero(every)
        rows, sizes = every[classes], (every - view.counterfeits)[classes]
        if not len(sizes):
            return [empty(self.name, self.k, {})]
        bad = sizes < self.k
        smallest = int(sizes.min())
        what, many = ("person", "people") if view.counterfeits.any() else ("row", "rows")
        if bad.any():
            statement = f"{share_of_classes(bad)} fewer than {some(self.k, what, many)}; the smallest has {smallest}"
            plain = (
                f"Some rows look the same as only {some(smallest - 1, 'other row')}; the promise was at "
                f"least {self.k - 1}. These people are easier to single out than was promised."
            )
        else:
            statement = f"every class has at least {some(self.k, what, many)}; the smallest has {smallest}"
            plain = (
                f"Each row looks the same as at least {some(smallest - 1, 'other row')} in the columns by "
                f"which people could be known, so a person is matched to their row with a chance of "
                f"at most 1 in {smallest}."
            )
        if self.parted:
            plain = (
                f"Every group has at least {some(smallest, 'row')}. Exact quasi-identifiers are published, so rows can "
                "be found; which value of its group a row has is what is hidden."
            )
        details = {"class": int(classes[np.argmin(sizes)]), "class_rows": smallest}
        return [
            verdict(
                self.name,
                statement,
                plain,
                bad,
                rows,
                worst=Fraction(smallest),
                bound=self.k,
                details=details,
            )
        ]


@dataclass
class BoxJudge:
    """Two tables: at least k people show the same cells, whatever their groups.

    >>> import polars as pl
    >>> cells = pl.DataFrame({"age": ["2*", "2*", "3*"]})
    >>> view = View(np.array([0, 0, 1, 1]), cells, {}, np.array([0, 1]), people=np.array([0, 1, 0]))
    >>> verdict, = BoxJudge(2).judge(view, History())
    >>> verdict.holds, verdict.statement
    (False, '1 of 2 boxes has fewer than 2 people; the smallest has 1')
    """

    k: int
    name: str = "k-anonymity"

    def judge(self, view: View, history: History) -> list[Verdict]:
        cells = view.quasi
        sizes = cells.group_by(cells.columns).len("\0people")["\0people"].to_numpy().astype(np.int64)
        if not len(sizes):
            return [empty(self.name, self.k, {})]
        bad, smallest = sizes < self.k, int(sizes.min())
        if bad.any():
            few = int(bad.sum())
            boxes = agree(len(sizes), "box", "boxes")
            statement = (
                f"{few:,} of {len(sizes):,} {boxes} {agree(few, 'has', 'have')} fewer than "
                f"{some(self.k, 'person', 'people')}; the smallest has {smallest}"
            )
        else:
            statement = f"every box has at least {some(self.k, 'person', 'people')}; the smallest has {smallest}"
        plain = (
            f"In the table of people, everybody looks the same as at least {smallest - 1:,} others in the columns by "
            "which people could be known. This is about each release by itself."
        )
        return [
            verdict(
                self.name,
                statement,
                plain,
                bad,
                sizes,
                worst=Fraction(smallest),
                bound=self.k,
                details={"box_people": smallest, "boxes": len(sizes)},
            )
        ]


@dataclass
class LDiversityJudge:
    """The values of a column are diverse in every class.

    distinct: at least l different values. entropy: the entropy is at least log l. recursive: the most
    frequent value occurs fewer than c times as often as all values from the l-th most frequent on together.
    """

    l: Fraction  # noqa: E741 - the name the field uses
    column: str
    kind: Diversity = "distinct"
    c: Fraction | None = None
    name: str = "l-diversity"

    @property
    def worst_is(self) -> Literal["least", "most"]:
        return "most" if self.kind == "recursive" else "least"

    def judge(self, view: View, history: History) -> list[Verdict]:
        counts = count_values(view, self.column)
        details: dict[str, Any] = {"column": self.column, "diversity": self.kind}
        if not counts.rows:
            return [empty(self.name, self.c if self.kind == "recursive" else self.l, details)]
        if self.kind == "entropy":
            return [self._entropy(counts, details)]
        if self.kind == "recursive":
            return [self._recursive(counts, details)]
        return [self._distinct(counts, details)]

    def _distinct(self, counts: Counts, details: dict[str, Any]) -> Verdict:
        distinct = counts.distinct
        bad = distinct < self.l.numerator  # the policy only admits whole numbers here
        fewest = int(distinct.min())
        wanted = some(self.l.numerator, f"different value of {self.column!r}", f"different values of {self.column!r}")
        if bad.any():
            statement = f"{share_of_classes(bad)} fewer than {wanted}; the poorest has {fewest}"
            plain = (
                f"In some groups of look-alikes {self.column!r} takes only {some(fewest, 'value')}; the "
                f"promise was {self.l}. Whoever knows a person's group learns more than promised."
            )
        else:
            statement = f"every class has at least {wanted}; the poorest has {fewest}"
            shown = some(fewest, "different value")
            plain = f"Every group of look-alikes shows at least {shown} of {self.column!r}."
        details |= example(counts, int(np.argmin(distinct)))
        sizes = counts.sizes
        return verdict(self.name, statement, plain, bad, sizes, worst=Fraction(fewest), bound=self.l, details=details)

    def _entropy(self, counts: Counts, details: dict[str, Any]) -> Verdict:
        good, effective = diverse_enough(counts, self.l)
        bad = ~good
        place = int(np.argmin(effective))
        lowest = float(effective[place])
        # The float only reports; where it lands on the wrong side of the exact decision it is put right.
        limit = float(self.l)
        lowest = max(lowest, limit) if not bad.any() else min(lowest, math.nextafter(limit, 0.0))
        what = f"an entropy of {self.column!r} of at least log {written(self.l)}"
        spread = f"{lowest:.6g} equally frequent values"
        if bad.any():
            statement = f"{share_of_classes(bad, 'lacks', 'lack')} {what}; the lowest is log {lowest:.6g}"
            plain = (
                f"In some groups of look-alikes {self.column!r} is spread like only {spread}; "
                f"the promise was {written(self.l)}."
            )
        else:
            statement = f"every class has {what}; the lowest is log {lowest:.6g}"
            plain = f"In every group of look-alikes {self.column!r} is spread at least as widely as {spread}."
        details |= example(counts, place)
        return verdict(self.name, statement, plain, bad, counts.sizes, worst=lowest, bound=self.l, details=details)

    def _recursive(self, counts: Counts, details: dict[str, Any]) -> Verdict:
        c = self.c if self.c is not None else Fraction(1)
        most, tail = counts.most(), tails(counts, self.l.numerator)
        bad = exceeds(most, tail, c, or_equals=True)  # r1 < c * tail; a tail of 0 always fails
        without = np.flatnonzero(tail == 0)
        worst: Fraction | float
        worst, place = (math.inf, int(without[0])) if len(without) else largest_ratio(most, tail)
        apart = self.l.numerator - 1
        rest = f"all values of {self.column!r} together" + f" but the {apart} most frequent" * bool(apart)
        shown = "somewhere there are none of these" if len(without) else f"the largest ratio is {written(worst)}"
        if bad.any():
            statement = (
                f"in {int(bad.sum()):,} of {some(len(bad), 'class', 'classes')} the most frequent value "
                f"occurs {written(c)} times as often as {rest}, or more; {shown}"
            )
            plain = f"In some groups of look-alikes one value of {self.column!r} dominates more than promised."
        else:
            statement = (
                f"in every class the most frequent value occurs fewer than {written(c)} times as often as "
                f"{rest}; {shown}"
            )
            plain = (
                f"In every group of look-alikes no value of {self.column!r} dominates: even after ruling out "
                f"{some(self.l.numerator - 2, 'value')} the rest still leaves doubt."
                if self.l > 2
                else f"In every group of look-alikes no value of {self.column!r} dominates."
            )
        details |= {"c": str(c)} | example(counts, place)
        return verdict(self.name, statement, plain, bad, counts.sizes, worst=worst, bound=c, details=details)


@dataclass
class AlphaKJudge:
    """No value of a column makes up more than the share alpha of a class. (k itself is `KAnonymityJudge`.)"""

    alpha: Fraction
    column: str
    name: str = "alpha-k"
    worst_is: ClassVar[Literal["least", "most"]] = "most"

    def judge(self, view: View, history: History) -> list[Verdict]:
        counts = count_values(view, self.column)
        details: dict[str, Any] = {"column": self.column}
        if not counts.rows:
            return [empty(self.name, self.alpha, details)]
        most, sizes = counts.most(), counts.sizes
        bad = exceeds(most, sizes, self.alpha)
        worst, place = largest_ratio(most, sizes)
        share, largest = f"{written(self.alpha)} of the rows", f"the largest share is {written(worst)}"
        if bad.any():
            statement = f"{share_of_classes(bad)} a value of {self.column!r} in more than {share}; {largest}"
            plain = (
                f"In some groups of look-alikes {float(worst):.1%} of the rows have the same "
                f"{self.column!r}; the promise was at most {float(self.alpha):.1%}."
            )
        else:
            statement = f"in every class each value of {self.column!r} has at most {share}; {largest}"
            plain = (
                f"Whoever knows which group of look-alikes a person is in can guess their {self.column!r} "
                f"with a chance of at most {float(worst):.1%}."
            )
        details |= example(counts, place)
        return [verdict(self.name, statement, plain, bad, sizes, worst=worst, bound=self.alpha, details=details)]


def tails(counts: Counts, l: int) -> NDArray[np.int64]:  # noqa: E741 - the name the field uses
    """Rows of each class whose value is at most the l-th most frequent there: r_l + ... + r_m."""
    order = np.lexsort((-counts.count, counts.owner))
    rank = np.arange(len(order)) - counts.starts[counts.owner]
    return counts.per_class(np.where(rank >= l - 1, counts.count[order], 0))


def diverse_enough(counts: Counts, l: Fraction) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:  # noqa: E741
    """For each class, whether its entropy is at least log l, exactly; and exp(entropy) as a float to report.

    With n rows and counts c_i, n * (H - log l) = n log n - n log l - sum c_i log c_i. Let S be the sum of the
    magnitudes of the m + 2 terms, plus n, and u = 1.2e-16. Each logarithm is within 2u of the truth
    relatively (the rounding of l itself moves n log l by at most n*u), each product adds u, each of the m + 1
    additions at most u * S: in all less than (m + 6) * u * S. A result beyond (m + 10) * 1e-15 * S therefore
    has the right sign. The few others are decided by `_entropy_at_least`.
    """
    n, m = counts.sizes.astype(np.float64), counts.distinct
    c = counts.count.astype(np.float64)
    held = counts.per_class(c * np.log(c))
    log_l = math.log(l)
    surplus = n * np.log(n) - n * log_l - held
    margin = (m + 10) * 1e-15 * (n * np.log(n) + n * abs(log_l) + held + n)
    good = np.asarray(surplus > 0, dtype=np.bool_)
    for place in np.flatnonzero(np.abs(surplus) <= margin).tolist():
        entries = counts.count[counts.starts[place] : counts.starts[place] + m[place]]
        good[place] = _entropy_at_least(tuple(sorted(int(count) for count in entries)), l)
    return good, np.exp(np.log(n) - held / n)


@lru_cache(maxsize=65_536)
def _entropy_at_least(c: tuple[int, ...], l: Fraction) -> bool:  # noqa: E741 - the name the field uses
    """n^n >= l^n * prod c_i^c_i. Dividing all counts by their common divisor changes neither side's order."""
    divisor = math.gcd(*c)
    c = tuple(count // divisor for count in c)
    n = sum(c)
    if n > 2_000:
        # Powers of large numbers take long; 60 digits settle everything but an exact tie. `ln` and the
        # arithmetic of decimal are correctly rounded: 1e-50 per unit of magnitude is far beyond their error.
        with localcontext() as context:
            context.prec = 60
            log_l = Decimal(l.numerator).ln() - Decimal(l.denominator).ln()
            terms = [Decimal(n) * Decimal(n).ln(), -n * log_l, *(-count * Decimal(count).ln() for count in c)]
            surplus = sum(terms, Decimal(0))
            if abs(surplus) > Decimal("1e-50") * (sum(map(abs, terms), Decimal(0)) + n):
                return surplus > 0
    return bool((n * l.denominator) ** n >= l.numerator**n * math.prod(count**count for count in c))


def build_k(asked: KAnonymity, policy: Policy, background: Background) -> list[Judge]:
    if policy.bundled and not policy.method.two_tables:
        return [BundlesJudge(asked.k, policy.bundled)]
    if policy.method.boxed:
        return [BoxJudge(asked.k)]
    return [KAnonymityJudge(asked.k, parted=policy.method.two_tables)]


def build_l(asked: LDiversity, policy: Policy, background: Background) -> list[Judge]:
    if policy.bundled:
        return [CoveringJudge(int(asked.l), name, policy.bundled) for name in policy.named("sensitive")]
    return [LDiversityJudge(asked.l, name, asked.diversity, asked.c) for name in policy.named("sensitive")]


def build_alpha(asked: AlphaK, policy: Policy, background: Background) -> list[Judge]:
    if policy.bundled:
        return [LinkedJudge(asked.alpha, name, policy.bundled) for name in policy.named("sensitive")]
    return [AlphaKJudge(asked.alpha, name) for name in policy.named("sensitive")]
