"""Guarantees about all classes of a table together: average risk, and how many people are alone.

Estimates of a population are no bounds: what is found is compared with what was asked for, as an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np

from reveil.base.arrays import F64, I64
from reveil.base.words import some
from reveil.guarantees.average_risk import AverageRisk
from reveil.guarantees.population_uniqueness import PopulationUniqueness
from reveil.guarantees.sample_uniqueness import SampleUniqueness
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.verify.judges.contract import Background, Judge, Verdict, View
from reveil.verify.judges.counts import written
from reveil.verify.judges.verdicts import empty

GOLDEN = (5**0.5 - 1) / 2
STEPS = 50  # of a search that narrows by GOLDEN: 1e-10 of where it began


@dataclass
class AverageRiskJudge:
    """The mean over all rows of one over the size of their class: classes by rows."""

    bound: Fraction
    name: str = "average-risk"

    def judge(self, view: View, history: History) -> list[Verdict]:
        sizes = view.sizes()
        if not len(sizes):
            return [empty(self.name, self.bound, {})]
        risk = Fraction(len(sizes), int(sizes.sum()))
        found = f"{some(len(sizes), 'class', 'classes')} of {some(int(sizes.sum()), 'row')}"
        statement = f"the average risk is {written(risk)} ({found}); {written(self.bound)} was asked for"
        plain = (
            f"Whoever looks for a person of the table, and knows all by which they could be known, is right in "
            f"{written(risk)} of cases on average; single people may be found more surely."
        )
        holds = risk <= self.bound
        small = sizes * self.bound.numerator < self.bound.denominator
        bad = np.flatnonzero(small & (not holds))
        return [Verdict(self.name, statement, plain, holds, risk, self.bound, len(bad), int(sizes[bad].sum()))]


@dataclass
class SampleUniquenessJudge:
    """The share of rows that are alone in their class."""

    bound: Fraction
    name: str = "sample-uniqueness"

    def judge(self, view: View, history: History) -> list[Verdict]:
        sizes = view.sizes()
        if not len(sizes):
            return [empty(self.name, self.bound, {})]
        alone = int((sizes == 1).sum())
        share = Fraction(alone, int(sizes.sum()))
        statement = f"{some(alone, 'row')} of {int(sizes.sum()):,} look like no other row; at most a share of "
        statement += f"{written(self.bound)} was asked for"
        plain = (
            f"Of the published rows {written(share)} are alone with what they show: whoever is known by it is found."
        )
        holds = share <= self.bound
        wrong = 0 if holds else alone
        return [Verdict(self.name, statement, plain, holds, share, self.bound, wrong, wrong)]


@dataclass
class PopulationUniquenessJudge:
    """The share of the population that is alone, as Pitman's formula estimates it from the sizes of classes."""

    bound: Fraction
    sampled: Fraction
    name: str = "population-uniqueness"

    def judge(self, view: View, history: History) -> list[Verdict]:
        sizes = view.sizes()
        if not len(sizes):
            return [empty(self.name, self.bound, {})]
        people = float(int(sizes.sum()) / self.sampled)
        share = uniqueness(sizes, people)
        statement = (
            f"of about {people:,.0f} people, an estimated share of {share:.4f} is alone with what rows show; at most "
            f"{written(self.bound)} was asked for"
        )
        plain = (
            f"About {share:.2%} of the people whom this table was drawn from are estimated to be the only ones with "
            "what a row would show of them. It is an estimate, and no bound."
        )
        holds = share <= float(self.bound)
        wrong = 0 if holds else int((sizes == 1).sum())
        return [Verdict(self.name, statement, plain, holds, share, self.bound, wrong, wrong)]


def uniqueness(sizes: I64, people: float) -> float:
    """The share of so many people who are expected to be unique, given the classes of a sample of them.

    Pitman's formula with the parameters under which these classes are most likely: for each alpha the best theta, and
    the best alpha, each by narrowing down.
    """
    from scipy.special import gammaln  # a second to load, and few policies ask for it

    if not (sizes == 1).any():
        return 0.0
    if (sizes == 1).all():
        return 1.0
    kinds, times = np.unique(sizes, return_counts=True)
    alpha = _highest(lambda a: _likelihood(_best_theta(a, kinds, times), a, kinds, times), 1e-9, 1 - 1e-9)
    theta = _best_theta(alpha, kinds, times)
    log = gammaln(theta + alpha + people - 1) - gammaln(theta + alpha) + gammaln(theta + 1) - gammaln(theta + people)
    return float(np.exp(log))


def _best_theta(alpha: float, kinds: I64, times: I64) -> float:
    logarithm = _highest(lambda x: _likelihood(float(np.exp(x)), alpha, kinds, times), np.log(1e-9), np.log(1e12))
    return float(np.exp(logarithm))


def _likelihood(theta: float, alpha: float, kinds: I64, times: I64) -> float:
    """The logarithm of the chance that rows drawn one after the other fall into classes of these sizes."""
    from scipy.special import gammaln

    classes, rows = int(times.sum()), int((kinds * times).sum())
    new = _rising(theta, alpha, classes)
    inside: F64 = times * (gammaln(kinds - alpha) - gammaln(1 - alpha))
    return float(new - _rising(theta, 1.0, rows) + inside.sum())


def _rising(theta: float, alpha: float, classes: int) -> float:
    """The logarithm of (theta + alpha)(theta + 2 alpha) ... (theta + (classes - 1) alpha)."""
    from scipy.special import gammaln

    ratio = theta / alpha
    if ratio > 1e5 * classes:  # gammas of such numbers differ by less than they are off: the first terms of a series
        return float((classes - 1) * (np.log(theta) + classes / (2 * ratio)))
    return float((classes - 1) * np.log(alpha) + gammaln(ratio + classes) - gammaln(ratio + 1))


def _highest(value: object, low: float, high: float) -> float:
    """Where a function with one top between two ends is highest."""
    assert callable(value)
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_a, at_b = value(a), value(b)
    for _ in range(STEPS):
        if at_a >= at_b:
            high, b, at_b = b, a, at_a
            a = high - GOLDEN * (high - low)
            at_a = value(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + GOLDEN * (high - low)
            at_b = value(b)
        if max(abs(at_a), abs(at_b)) == inf:
            break
    return (low + high) / 2


def build_average_risk(asked: AverageRisk, policy: Policy, background: Background) -> list[Judge]:
    return [AverageRiskJudge(asked.average_risk)]


def build_sample_uniqueness(asked: SampleUniqueness, policy: Policy, background: Background) -> list[Judge]:
    return [SampleUniquenessJudge(asked.sample_uniqueness)]


def build_population_uniqueness(asked: PopulationUniqueness, policy: Policy, background: Background) -> list[Judge]:
    assert asked.sampled is not None  # or the policy was refused
    return [PopulationUniquenessJudge(asked.population_uniqueness, asked.sampled)]
