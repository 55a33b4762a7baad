"""People of closed cohorts of changing values who were away are shown while a counterfeit stands in for their value.

A stand-in goes on from what the place showed, with the public chances, whatever its person comes to have. So places
stay alike, and everybody has each with the same chance. The person's own value goes on from what their place showed
when they were last there: with n places, c of them known, they have value v after s releases with at most

    (sum over the places of T^s(value shown then, v)) / (n - c),

whatever is shown later, because nothing that is shown depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
import polars as pl

from reveil.base.arrays import F64, I64, Bools
from reveil.verify.judges.cohorts import Components

ROUNDING = 1 + 1e-9  # far above what sums of positive terms lose
FINE = 10**6  # what is stated is rounded up to so many parts


@dataclass(frozen=True, eq=False)
class StandIns:
    """By component: whether somebody is shown so who was not away or never of this cohort, or is guessed too well."""

    strangers: Bools
    high: Bools
    worst: Fraction  # of those who are not
    people: int


def judge_stand_ins(
    parts: Components, stand_ins: pl.DataFrame | None, others: I64, chance: F64, protected: Bools, tau: Fraction
) -> StandIns:
    """Judge everybody who is stood in for now; `others`: the places of each component, but for as many as are known."""
    strangers, high = np.zeros(parts.count, dtype=bool), np.zeros(parts.count, dtype=bool)
    if stand_ins is None or not stand_ins.height:
        return StandIns(strangers, high, Fraction(0), 0)
    t, worst = parts.trail, 0.0
    beside = parts.of_group[t.now + stand_ins["class"].cast(pl.Int64).to_numpy()]
    last = _last_groups(parts, stand_ins["person"].cast(pl.Int64).to_numpy())
    # Who was never away needs none: it would follow from their value, and show in whether their cohort goes on.
    wrong = (last < 0) | (parts.of_group[last] != beside) | (last == _latest_groups(parts)[beside])
    strangers[beside[wrong]] = True
    steps = int(t.release[t.now]) - t.release[last[~wrong]]
    for group, many in np.unique(np.column_stack([last[~wrong], steps]), axis=0).tolist():
        shown, component = t.value_group == group, parts.of_group[group]
        expected = np.zeros(len(chance))
        expected[t.value[shown]] = t.value_rows[shown]
        for _ in range(many):
            expected = expected @ chance
        likeliest = float(expected[protected].max(initial=0.0)) / int(others[component])
        if likeliest * ROUNDING > float(tau):
            high[component] = True
        else:
            worst = max(worst, likeliest)
    return StandIns(strangers, high, min(tau, Fraction(ceil(worst * FINE), FINE)), stand_ins.height)


def _latest_groups(parts: Components) -> I64:
    """The last group of each component in earlier releases."""
    t = parts.trail
    order = np.argsort(t.release[: t.now], kind="stable")
    latest = np.full(parts.count, -1, dtype=np.int64)
    latest[parts.of_group[order]] = order  # the latest is written last
    return latest


def _last_groups(parts: Components, people: I64) -> I64:
    """The last group of earlier releases in which each of these people had a value of their own, -1 for none."""
    t = parts.trail
    earlier = np.flatnonzero(t.group < t.now)
    order = earlier[np.argsort(t.when[earlier], kind="stable")]
    latest = np.full(max(int(t.person.max(initial=0)), int(people.max())) + 1, -1, dtype=np.int64)
    latest[t.person[order]] = t.group[order]  # the latest is written last
    return latest[people]
