"""A table as a sample: how likely its rows are found among the people it was drawn from.

For each combination of the keys, f rows of the table stand for F people. F is counted in a table of the population, or
estimated by the sum of the rows' weights (people that a row stands for), which is the number of rows divided by the
sampled share where that is all that is known.

- *individual risk* of a row (Benedetti and Franconi 1998): the mean of 1/F. With weights, F is negative binomial given
  f, with p = f / (sum of weights): the sum over j >= f of C(j-1, f-1) p^f (1-p)^(j-f) / j, which is
  p/f 2F1(1, 1; f+1; 1-p). Its sum is the number of re-identifications to expect, its mean the *global risk*.
- *journalist*: the largest 1/F; *marketer*: the mean of 1/F over the rows, with F as counted or estimated.
- *population uniqueness*: the share of the population that is alone with its combination. It is counted, or estimated
  with the sampling formula of Pitman (1995), its theta and alpha fitted by maximum likelihood to the sizes of the
  classes (Hoshino 2001): of N people, N (theta+alpha)...(theta+alpha+N-2) / (theta+1)...(theta+N-1) are expected to be
  unique.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.arrays import I64
from reveil.base.errors import Fault, InputError, stop_if
from reveil.base.words import agree, some

Floats = NDArray[np.float64]
EVEN = 1e5  # factors that begin so many times above their number are nearly alike
EDGE = 1e-9  # alpha and theta are looked for between this and 1 - this, and up to its inverse squared


@dataclass(frozen=True, eq=False)
class PopulationRisk:
    """The risk of the rows of a table among the people it was drawn from."""

    rows: int
    people: float  # in the population, as counted or estimated
    counted: bool  # in a table of the population; else estimated
    risks: tuple[float, ...]  # the individual risk of each row
    journalist: float
    marketer: float
    sample_unique: int  # rows that are alone in the table
    uniqueness: float  # the share of the population that is unique

    @property
    def expected(self) -> float:
        """Rows that are found, to be expected."""
        return float(sum(self.risks))

    @property
    def global_risk(self) -> float:
        return self.expected / max(1, self.rows)

    def __str__(self) -> str:
        how = "counted" if self.counted else "estimated"
        found = f"{self.expected:,.2f} of {some(self.rows, 'row')} {agree(self.rows, 'is', 'are')} expected to be found"
        return f"{found} among {self.people:,.0f} people; population uniqueness {self.uniqueness:.2%} ({how})"

    def to_dict(self) -> dict[str, Any]:
        return {
            "people": self.people,
            "counted": self.counted,
            "highest_individual_risk": max(self.risks, default=0.0),
            "global_risk": self.global_risk,
            "expected_reidentifications": self.expected,
            "journalist": self.journalist,
            "marketer": self.marketer,
            "sample_uniques": self.sample_unique,
            "population_uniqueness": self.uniqueness,
        }


def weighted_risk(keys: pl.DataFrame, weights: pl.Series) -> PopulationRisk:
    """The risk of a sample whose rows stand for as many people as their weights say.

    >>> found = weighted_risk(pl.DataFrame({"sex": ["f", "m", "m"]}), pl.Series([180, 100, 100]))
    >>> [round(risk, 4) for risk in found.risks], found.people
    ([0.029, 0.0096, 0.0096], 380.0)
    """
    number, f = _classes(keys)
    people = np.bincount(number, _weights(weights), minlength=len(f)).astype(np.float64)
    each = individual_risk(f, people)
    total = float(people.sum())
    unique = expected_uniques(f, total) / total if total else 0.0
    return _found(f, people, each[number], counted=False, uniqueness=unique)


def counted_risk(keys: pl.DataFrame, population: pl.DataFrame) -> PopulationRisk:
    """The risk of a sample within a table of everybody.

    >>> everybody = pl.DataFrame({"sex": ["f", "m", "m", "m"]})
    >>> counted_risk(everybody[:2], everybody).risks
    (1.0, 0.3333333333333333)
    """
    stop_if([
        Fault("R904", f"population column {name!r}", "is not in the population table", "add it, or drop it as a key")
        for name in keys.columns if name not in population.columns
    ])  # fmt: skip
    everybody = population.select(pl.col(name).cast(keys.schema[name], strict=False) for name in keys.columns)
    number, f = _classes(pl.concat([keys, everybody]))
    inside, around = number[: keys.height], number[keys.height :]
    rows, people = np.bincount(inside, minlength=len(f)), np.bincount(around, minlength=len(f))
    if np.any(rows > people):
        message = f"{some(int((rows > people).sum()), 'combination')} with more rows in the table than people"
        remedy = "pass the population that the table was drawn from, with the same columns and values"
        raise InputError(Fault("R904", "population", message, remedy, int(rows[rows > people].sum())))
    unique = float((people == 1).sum()) / max(1, population.height)
    return _found(rows, people.astype(float), 1 / np.maximum(1, people)[inside], counted=True, uniqueness=unique)


def _found(f: I64, people: Floats, risks: Floats, *, counted: bool, uniqueness: float) -> PopulationRisk:
    there = f > 0
    n = int(f.sum())
    return PopulationRisk(
        rows=n,
        people=float(people.sum()),
        counted=counted,
        risks=tuple(risks.tolist()),
        journalist=float((1 / people[there]).max()) if n else 0.0,
        marketer=float((f[there] / people[there]).sum() / n) if n else 0.0,
        sample_unique=int((f == 1).sum()),
        uniqueness=uniqueness,
    )


def _classes(keys: pl.DataFrame) -> tuple[I64, I64]:
    """The class of each row, and how many rows each has."""
    kinds = keys.unique(maintain_order=True).with_row_index("\0class")
    joined = keys.join(kinds, on=keys.columns, how="left", nulls_equal=True, maintain_order="left")
    number = joined["\0class"].to_numpy().astype(np.int64)
    return number, np.bincount(number, minlength=kinds.height).astype(np.int64)


def _weights(weights: pl.Series) -> Floats:
    numbers = weights.cast(pl.Float64, strict=False).fill_nan(None)
    bad = int((numbers.is_null() | (numbers < 1) | numbers.is_infinite()).sum())
    if bad:
        message = f"{some(bad, 'weight')} {agree(bad, 'is', 'are')} missing, no number or below 1"
        remedy = "a weight is how many people a row stands for, itself included"
        raise InputError(Fault("R903", f"column {weights.name!r}", message, remedy, bad))
    return numbers.to_numpy()


def individual_risk(rows: I64, people: Floats) -> Floats:
    """The mean of 1/F for f sampled rows that stand for so many people.

    >>> individual_risk(np.array([1, 2]), np.array([215.0, 152.0])).round(4).tolist()
    [0.0251, 0.0126]
    """
    from scipy.special import hyp2f1

    p = np.minimum(1.0, rows / people)
    risk: Floats = p / rows * hyp2f1(1, 1, rows + 1, 1 - p)
    return risk


def expected_uniques(sizes: I64, people: float) -> float:
    """How many of so many people are expected to be unique, by Pitman's formula fitted to the classes of a sample.

    >>> round(expected_uniques(np.array([1, 1, 2, 3]), 7.0), 2)
    2.35
    """
    from scipy.special import gammaln

    if not (sizes == 1).any():
        return 0.0
    if (sizes == 1).all():
        return people
    theta, alpha = fitted(sizes)
    log = gammaln(theta + alpha + people - 1) - gammaln(theta + alpha) + gammaln(theta + 1) - gammaln(theta + people)
    return float(people * np.exp(log))


def fitted(sizes: I64) -> tuple[float, float]:
    """The theta and alpha under which classes of these sizes are most likely."""
    from scipy.optimize import minimize

    kinds, times = np.unique(sizes, return_counts=True)

    def short(point: Floats) -> float:
        return -likelihood(np.exp(point[0]), 1 / (1 + np.exp(-point[1])), kinds, times)

    far = np.log(EDGE)
    starts = [(np.log(max(1.0, len(sizes) / 2)), 0.0), (0.0, -2.0), (0.0, 2.0)]
    limits = [(far, -2 * far), (far, -far)]
    best = min((minimize(short, start, bounds=limits, method="L-BFGS-B") for start in starts), key=lambda one: one.fun)
    # Slopes taken by differences end near the top, elsewhere on each kind of processor; this goes on without them.
    fine = {"xatol": 1e-9, "fatol": 1e-13, "maxfev": 4000, "maxiter": 4000}
    best = minimize(short, best.x, bounds=limits, method="Nelder-Mead", options=fine)
    return float(np.exp(best.x[0])), float(1 / (1 + np.exp(-best.x[1])))


def likelihood(theta: float, alpha: float, sizes: I64, times: I64) -> float:
    """The logarithm of Pitman's chance that n rows fall into `times` classes of each of these sizes, of a given order.

    The chance of one such partition of n named rows: (theta+alpha)...(theta+(u-1) alpha) / (theta+1)...(theta+n-1),
    times (1-alpha)...(s-1-alpha) for each of the u classes, of s rows.
    """
    from scipy.special import gammaln

    u, n = int(times.sum()), int((sizes * times).sum())
    new = (u - 1) * np.log(alpha) + _products(theta / alpha, u)
    joined = (times * (gammaln(sizes - alpha) - gammaln(1 - alpha))).sum()
    return float(new - _products(theta, n) + joined)


def _products(start: float, number: int) -> float:
    """The logarithm of (start+1)...(start+number-1). Gammas of large numbers differ by less than they are off."""
    from scipy.special import gammaln

    if start > EVEN * number:
        return float((number - 1) * (np.log(start) + number / (2 * start)))
    return float(gammaln(start + number) - gammaln(start + 1))
