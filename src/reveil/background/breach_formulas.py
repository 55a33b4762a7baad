"""The probabilities of the Cor-Split paper (Riboni and Bettini 2009): how likely a breach is by its formulas.

They are offered as the paper's, to choose n and to redraw its figures. They are not bounds: Lemma 1 takes every
release to show a new holder of the value, and Theorem 2 multiplies exclusions as if they were independent. One
correlation between two single people makes a breach as likely as p, whatever the formula says. The audit computes what
really follows from a series. Theorem 2 is printed with a misplaced bracket; the form of n-Choose (Figure 3), which fits
the numbers in the text, is used.

All functions are exact if p is a `Fraction`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

LONGEST = 24  # releases shown in the figures


def p_ct(p: Fraction, releases: int) -> Fraction:
    """Lemma 1: a value is ruled out for a person because its holder in some release is compromised.

    >>> round(float(p_ct(Fraction(1, 25), 21)), 4)
    0.5757
    """
    return 1 - (1 - p) ** releases


def p_hc(p: Fraction, m: int, n: int, releases: int) -> Fraction:
    """Lemma 2: a value is ruled out through a correlation between sets of n people."""
    return 1 - (1 - (p - p / m) ** n) ** (releases * (m // n))


def p_pb(p: Fraction, m: int, n: int, releases: int) -> Fraction:
    """Theorem 2: all values but one are ruled out.

    >>> [round(float(p_pb(Fraction(4, 100), 6, n, 24)), 4) for n in (1, 2, 3)]
    [0.9858, 0.1192, 0.0956]
    """
    return (1 - (1 - p_ct(p, releases)) * (1 - p_hc(p, m, n, releases))) ** (m - 1)


@dataclass(frozen=True)
class Choice:
    """n-Choose: the smallest degree whose probability is below h, or None; and the whole curve."""

    n: int | None
    h: Fraction
    curve: tuple[Fraction, ...]  # for n = 1 .. m

    def to_dict(self) -> dict[str, Any]:
        return {"n": self.n, "h": str(self.h), "curve": {n: float(value) for n, value in enumerate(self.curve, 1)}}


def n_choose(p: Fraction, releases: int, m: int, h: Fraction) -> Choice:
    """Figure 3: the smallest n with p_pb < h.

    >>> n_choose(Fraction(1, 25), 24, 6, Fraction(1, 10)).n, n_choose(Fraction(1, 25), 25, 6, Fraction(1, 10)).n
    (3, None)
    """
    curve = tuple(p_pb(p, m, n, releases) for n in range(1, m + 1))
    return Choice(next((n for n, value in enumerate(curve, 1) if value < h), None), h, curve)


def figure_2(p: Fraction = Fraction(1, 25), m: int = 6, releases: int = LONGEST) -> dict[str, dict[str, list[float]]]:
    """The data of the paper's Figure 2: (a) p_ct by p, (b) p_hc by n, (c) p_pb by n, for 1, 2, ... releases."""
    span, degrees = range(1, releases + 1), range(1, min(m, 4) + 1)
    return {
        "a": {f"p={q}": [float(p_ct(Fraction(q), L)) for L in span] for q in ("0.02", "0.04", "0.06", "0.08")},
        "b": {f"n={n}": [float(p_hc(p, m, n, L)) for L in span] for n in degrees},
        "c": {f"n={n}": [float(p_pb(p, m, n, L)) for L in span] for n in degrees},
    }
