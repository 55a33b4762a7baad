"""What a guarantee is to the verifier: a judge of one published release, given the past.

Judges are written separately from the planner's fast tests (`reveil.plan.cutting.admit`) and share no code with them.
They see only what anyone can see in the published bytes, what the policy states, and the history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.background.loading import Background
from reveil.history.history import History

__all__ = ["Background", "Judge", "PartJudge", "Verdict", "View"]


@dataclass(frozen=True, eq=False)
class View:
    """One release as anyone can see it. Classes are numbered from 0; a class is a group of indistinguishable rows."""

    classes: NDArray[np.int64]  # of each published row
    quasi: pl.DataFrame  # the cells of the quasi-identifiers, as published (text; null is a missing value)
    sensitive: Mapping[str, pl.Series]  # as published: text, or numbers where the column is numeric; null is a value
    counterfeits: NDArray[np.int64]  # per class
    members: pl.DataFrame | None = None  # series only, worst case: who is known to be where (person, class)
    signatures: pl.DataFrame | None = None  # where priors are given: class and, by prior, the signature of each person
    people: NDArray[np.int64] | None = None  # two tables: the class of each row of `quasi`; rows above are values then
    bundles: NDArray[np.int64] | None = None
    """Where somebody has several rows: whose each row is, from 0. A class is then one of whole bundles of rows, which
    show the same cells row by row."""
    totals: Mapping[str, pl.DataFrame] | None = None
    """Where this is a part of a release: by sensitive column, value and rows of all of it."""
    original: Mapping[str, pl.DataFrame] = field(default_factory=dict)  # by column, if told: value, rows put in
    stand_ins: pl.DataFrame | None = None  # person, class: who is shown there while a counterfeit has their place
    counted: dict[str, Any] = field(default_factory=dict, repr=False)  # `counts.count_values` by column, counted once

    @property
    def count(self) -> int:
        return int(self.classes.max()) + 1 if len(self.classes) else 0

    def sizes(self) -> NDArray[np.int64]:
        return np.bincount(self.classes, minlength=self.count)

    def owners(self) -> NDArray[np.int64]:
        """How many people (or households) each class has; rows, where everybody has one."""
        if self.bundles is None:
            return self.sizes()
        _, first = np.unique(self.bundles, return_index=True)
        return np.bincount(self.classes[first], minlength=self.count)


@dataclass(frozen=True)
class Verdict:
    """What was found. `worst` is the exact value that was compared with `bound`."""

    guarantee: str  # e.g. "l-diversity"
    statement: str  # one exact sentence: what was checked, with its parameters
    plain: str  # the same for people who are not specialists
    holds: bool
    worst: Fraction | float | None
    bound: Fraction | int | None
    violating_classes: int = 0
    violating_rows: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)  # small JSON values: column, example class, distance used
    decided: bool = True  # False: it does not hold only because the judge lacks what it needs to know

    def to_dict(self) -> dict[str, Any]:
        return {
            "guarantee": self.guarantee,
            "statement": self.statement,
            "plain": self.plain,
            "holds": self.holds,
            "worst": None if self.worst is None else str(self.worst),
            "bound": None if self.bound is None else str(self.bound),
            "violating_classes": self.violating_classes,
            "violating_rows": self.violating_rows,
            "details": dict(self.details),
            **({} if self.decided else {"decided": False}),
        }


class Judge(Protocol):
    """A guarantee with its parameters fixed."""

    name: str

    def judge(self, view: View, history: History) -> list[Verdict]:
        """One verdict per thing that must hold (for instance per sensitive column)."""
        ...


class PartJudge(Judge, Protocol):
    """A judge of whole classes one by one: parts of a release are judged by themselves, and their verdicts merged."""

    @property
    def worst_is(self) -> Literal["least", "most"]:
        """Which of the worst values of two parts is the worse."""
        ...
