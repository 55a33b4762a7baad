"""What a person may still be exposed to, and how releases spend it.

If values change freely, the chance that somebody was ever linked to value s is 1 - prod(1 - n_s/n) over the groups they
were in (`ever_linked`). A promise of at most 1/l leaves a *survival* of at least 1 - 1/l; what is left of it is the
budget. A strategy says how much of the budget may be gone after so many releases. All results are exact rationals; the
irrational targets of a strategy are rounded up, to the safe side.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import ceil, log, prod
from typing import Literal

Strategy = Literal["constant-ratio", "geometric", "telescoping", "greedy"]
DIGITS = 30  # decimals of a rounded target
LARGEST_ROOT = 64  # roots beyond this one are never whole for numbers that people write


def survival(exposures: Iterable[tuple[int, int]]) -> Fraction:
    """Chance of never having been linked to a value, given (n_s, n) of each group a person was in.

    >>> survival([(1, 4), (1, 4)])
    Fraction(9, 16)
    """
    pairs = list(exposures)
    return Fraction(prod(n - held for held, n in pairs), prod(n for _, n in pairs))


def ever_linked(exposures: Iterable[tuple[int, int]]) -> Fraction:
    """p(o, s, k), Lemma 2: the chance of having been linked to s at least once.

    >>> ever_linked([(1, 2), (1, 2)]), ever_linked([(1, 4), (1, 4)])
    (Fraction(3, 4), Fraction(7, 16))
    """
    return 1 - survival(exposures)


@dataclass(frozen=True)
class Pace:
    """A promise of at most 1/l, and the strategy that spreads it over releases.

    `constant-ratio` spends the same in each of `horizon` releases. `geometric` spends the share 1 - rate of what is
    left, for ever. `telescoping` has spent j/(j+1) after j releases. `greedy` spends everything now. `ahead` releases
    lend their part to this one; None: all later ones do, and nothing but the promise itself is kept.
    """

    l: Fraction  # noqa: E741 - the name the field uses
    strategy: Strategy
    horizon: int | None = None
    rate: Fraction | None = None
    ahead: int | None = 0

    @property
    def floor(self) -> Fraction:
        """The survival that must always remain."""
        return 1 - 1 / self.l

    def spent(self, step: int, steps: int | None = None) -> Fraction:
        """The share of the budget that may be gone after a person's step-th release.

        `steps` is how many a person can be in altogether: fewer than the horizon for those who came later.

        >>> Pace(Fraction(2), "telescoping").spent(3), Pace(Fraction(2), "constant-ratio", horizon=4).spent(1)
        (Fraction(3, 4), Fraction(1, 4))
        >>> Pace(Fraction(2), "constant-ratio", horizon=4, ahead=2).spent(1)
        Fraction(3, 4)
        """
        if self.ahead is None:
            return Fraction(1)
        step += self.ahead
        if self.strategy == "constant-ratio":
            of = steps or self.horizon or 1
            return Fraction(min(step, of), of)
        if self.strategy == "geometric":
            return 1 - (self.rate or Fraction(1, 2)) ** step
        if self.strategy == "telescoping":
            return Fraction(step, step + 1)
        return Fraction(1)

    def target(self, step: int, steps: int | None = None) -> Fraction:
        """The survival that must remain after a person's step-th release."""
        return power(self.floor, self.spent(step, steps))

    def describe(self) -> str:
        """The strategy in a few words."""
        if self.strategy == "constant-ratio":
            return f"the same share in each of {self.horizon} releases"
        if self.strategy == "geometric":
            return f"{self.rate} times as much in each release as in the one before"
        if self.strategy == "telescoping":
            return "1/(j(j+1)) of it in a person's j-th release"
        return "all of it at once"


@lru_cache(maxsize=4096)
def power(base: Fraction, exponent: Fraction) -> Fraction:
    """base ** exponent for 0 < base < 1: exact where it is rational, otherwise the next multiple of 1e-30 above it.

    >>> power(Fraction(1, 4), Fraction(1, 2)), power(Fraction(1, 2), Fraction(1))
    (Fraction(1, 2), Fraction(1, 2))
    """
    if exponent.denominator <= LARGEST_ROOT:
        top = _root(base.numerator, exponent.denominator)
        bottom = _root(base.denominator, exponent.denominator)
        if top is not None and bottom is not None:
            return Fraction(top, bottom) ** exponent.numerator
    with localcontext() as context:
        context.prec = DIGITS + 30
        ratio = Decimal(exponent.numerator) / Decimal(exponent.denominator)
        approximate = (Decimal(base.numerator) / Decimal(base.denominator)) ** ratio
        # The error of the power is far below 1e-50; adding that much makes the rounding a bound.
        approximate = (approximate + Decimal("1e-50")).quantize(Decimal(1).scaleb(-DIGITS), ROUND_CEILING)
    return min(Fraction(approximate), Fraction(1))


def _root(number: int, degree: int) -> int | None:
    """The whole degree-th root of a number, or None."""
    low, high = 0, 1 << (number.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= number else (low, middle - 1)
    return low if low**degree == number else None


def largest_share(left: Fraction, target: Fraction) -> Fraction:
    """The largest n_s/n of the next group, for a survival so far and the survival that must remain.

    >>> largest_share(Fraction(3, 4), Fraction(1, 2))
    Fraction(1, 3)
    """
    return max(Fraction(0), 1 - target / left) if left > 0 else Fraction(0)


def smallest_group(left: Fraction, target: Fraction, held: int = 1) -> int | None:
    """The smallest group in which a value may occur `held` times; None when it may not occur at all."""
    share = largest_share(left, target)
    return ceil(held / share) if share else None


def sizes(pace: Pace, releases: int, left: Fraction = Fraction(1), step: int = 1) -> list[int | None]:
    """Group sizes of somebody who meets a value once in every release, each as small as it may be.

    Rounding leaves slack, and it is carried forward.

    >>> sizes(Pace(Fraction(2), "constant-ratio", horizon=4), 4)
    [7, 6, 6, 7]
    """
    group_sizes: list[int | None] = []
    for now in range(step, step + releases):
        n = smallest_group(left, pace.target(now))
        group_sizes.append(n)
        if n is not None:
            left *= Fraction(n - 1, n)
    return group_sizes


def lasts(pace: Pace, share: Fraction, most: int = 1000) -> int | None:
    """How many releases a value can be in with this share of every group; None: as many as one likes (up to `most`).

    >>> lasts(Pace(Fraction(2), "greedy"), Fraction(1, 4)), lasts(Pace(Fraction(2), "telescoping"), Fraction(1, 10))
    (2, 5)
    """
    left = Fraction(1)
    for step in range(1, most + 1):
        if share > largest_share(left, pace.target(step)):
            return step - 1
        left *= 1 - share
    return None


def share_spent(left: Fraction, l: Fraction) -> float:  # noqa: E741 - the name the field uses
    """How much of the budget -ln(1 - 1/l) a survival has used up; for reports, not for decisions."""
    return 1.0 if left <= 0 else log(left) / log(1 - 1 / l)
