"""The policy of noisy counts: `[dp]` with the budget of the whole series, the bins of columns, and what is counted.

Bins are stated, not taken from the table: which values occur would itself tell about people.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from itertools import pairwise
from math import prod
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from reveil.base.sections import MARK, ContradictionError, Exact, Section
from reveil.hierarchies.scales import date_label, fraction_text
from reveil.policy.column import Column, DateLevel
from reveil.policy.policy import SeriesPublication

MISSING, OTHER = "(missing)", "(other)"
CELLS = 1_000_000  # of one table of counts
IDLE = ("hierarchy", "widths", "cuts", "order", "weight")  # dp.bins says into what values are put
SHAPES: dict[DateLevel, str] = {
    "day": r"\d{4}-\d\d-\d\d",
    "month": r"\d{4}-\d\d",
    "quarter": r"\d{4}-Q[1-4]",
    "year": r"\d{4}",
    "decade": r"\d{3}0s",
}


def _least(text: str) -> AfterValidator:
    def check(value: Fraction) -> Fraction:
        if value < Fraction(text):
            raise ValueError(f"must be {text} or more")
        return value

    return AfterValidator(check)


# Beyond these, noise is either none at all or larger than any count, and OpenDP's sums leave the range of floats.
Whole = Annotated[Exact, Field(gt=0, le=1_000)]
Part = Annotated[Exact, Field(gt=0, le=100), _least("0.000001")]
Chance = Annotated[Exact, Field(gt=0, lt=1), _least("1e-100")]
ROWS = 10_000  # of one person in one release


class Marginal(Section):
    """One table of counts: all combinations of the bins of some columns."""

    name: str
    by: Annotated[tuple[str, ...], Field(min_length=1)]
    spend: Part  # of the budget, in each release


def _bin_shape(value: object) -> str:
    """Texts, or numbers (which may be written as texts, if one at least is not)."""
    texts = isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)
    return MARK + ("texts" if texts else "numbers")


Bins = Annotated[
    Annotated[tuple[str, ...], Field(min_length=1), Tag(MARK + "texts")]
    | Annotated[tuple[Exact, ...], Field(min_length=1), Tag(MARK + "numbers")],
    Discriminator(_bin_shape),
]


class Terms(Section):
    """`epsilon` (pure differential privacy) or `rho` (zero-concentrated, with the `delta` to state it at)."""

    epsilon: Whole | None = None
    rho: Whole | None = None
    delta: Chance | None = None
    contributions: Annotated[int, Field(ge=1, le=ROWS)] = 1

    @property
    def measure(self) -> Literal["epsilon", "rho"]:
        return "epsilon" if self.epsilon is not None else "rho"

    @property
    def total(self) -> Fraction:
        """The budget of the series, in its own measure."""
        budget = self.epsilon if self.epsilon is not None else self.rho
        assert budget is not None
        return budget


class Budget(Terms):
    """What people are promised over the whole series, and what is counted in each release."""

    bins: dict[str, Bins]
    counts: Annotated[tuple[Marginal, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _consistent(self) -> Budget:
        faults = []
        if (self.epsilon is None) == (self.rho is None):
            faults.append("needs epsilon or rho, and not both: the budget of the whole series")
        if (self.rho is None) != (self.delta is None):
            faults.append("rho and delta belong together: what rho means is stated as epsilon at delta")
        for name, bins in self.bins.items():
            faults += _bin_faults(name, bins)
        names = [count.name for count in self.counts]
        faults += [f"two counts are called {name!r}" for name in dict.fromkeys(names) if names.count(name) > 1]
        for count in self.counts:
            faults += _count_faults(count, self)
        if faults:
            raise ContradictionError(faults)
        return self

    @property
    def idle(self) -> list[str]:
        """Columns whose bins are counted nowhere. A series that has begun keeps them: its bins are fixed."""
        return [name for name in self.bins if not any(name in count.by for count in self.counts)]

    @property
    def each(self) -> Fraction:
        """What one release spends."""
        return sum((count.spend for count in self.counts), Fraction(0))

    def labels(self, name: str) -> list[str]:
        """The bins of a column as they are published, with those for other values and for missing ones.

        >>> budget = Budget(epsilon=1, bins={"age": (18, 65)}, counts=[{"name": "a", "by": ["age"], "spend": 1}])
        >>> budget.labels("age")
        ['<18', '[18-65[', '>=65', '(other)', '(missing)']
        """
        bins = self.bins[name]
        if isinstance(bins[0], str):
            return [*map(str, bins), OTHER, MISSING]
        texts = [fraction_text(Fraction(cut)) for cut in bins]
        between = [f"[{low}-{high}[" for low, high in pairwise(texts)]
        return [f"<{texts[0]}", *between, f">={texts[-1]}", OTHER, MISSING]


def _bin_faults(name: str, bins: tuple[Any, ...]) -> list[str]:
    if isinstance(bins[0], str):
        bad = [value for value, times in Counter(bins).items() if times > 1 or value in (OTHER, MISSING, "")]
        return [f"bins of {name!r} name {value!r} twice, or it means something else" for value in bad]
    faults = [f"bins of {name!r} must rise: {a} before {b}" for a, b in pairwise(bins) if a >= b]
    endless = [cut for cut in bins if 10 ** cut.denominator.bit_length() % cut.denominator]
    return faults + [f"bins of {name!r}: {cut} has no finite decimal" for cut in endless]


def _count_faults(count: Marginal, budget: Budget) -> list[str]:
    faults = []
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", count.name) or count.name == "privacy":
        faults.append(f"a count cannot be called {count.name!r}: use small letters, digits, - and _, and not `privacy`")
    if len(set(count.by)) < len(count.by):
        faults.append(f"count {count.name!r} names a column twice")
    if "count" in count.by:
        faults.append("the published column `count` would be there twice; rename yours")
    lost = [name for name in count.by if name not in budget.bins]
    faults += [f"count {count.name!r} needs bins of {name!r}: which values may occur must be public" for name in lost]
    sizes = {name: len(bins) + 2 + (not isinstance(bins[0], str)) for name, bins in budget.bins.items()}
    cells = prod(sizes[name] for name in count.by) if not lost else 0
    if cells > CELLS:
        faults.append(f"count {count.name!r} has {cells:,} cells; up to {CELLS:,} are counted")
    return faults


def _column_faults(name: str, spec: Column, bins: tuple[Any, ...] | None) -> list[str]:
    """What a column says of its values must go with its bins, and is honoured: type, prefixes, levels, missing."""
    ways = [way for way in ("prefixes", "levels") if getattr(spec, way) is not None]
    if bins is None:
        return [f"column {name!r} has {way}, which does nothing here: it is not counted" for way in ways]
    texts = isinstance(bins[0], str)
    if ways and not texts:
        return [f"column {name!r} has {ways[0]}, so its bins must be texts"]
    if spec.levels is not None:
        return _level_faults(name, spec.levels, bins)
    if spec.prefixes is not None and len(spec.prefixes) > 1:
        return [f"column {name!r} has several prefixes, and is counted by one; name that one"]
    if spec.prefixes is not None:
        long = [text for text in bins if len(text) > spec.prefixes[0]]
        return [f"bins of {name!r} are the first {spec.prefixes[0]} characters; {text!r} is longer" for text in long]
    if spec.type not in ("auto", "category" if texts else "number"):
        kind = "texts" if texts else "numbers"
        return [f'column {name!r} has type "{spec.type}", but its bins are {kind}; dates are counted by levels']
    return []


def _level_faults(name: str, levels: tuple[DateLevel, ...], bins: tuple[Any, ...]) -> list[str]:
    if len(levels) > 1:
        return [f"column {name!r} has several levels, and is counted by one; name that one"]
    wrong = [text for text in bins if not re.fullmatch(SHAPES[levels[0]], text)]
    example = date_label(date(2024, 2, 27), levels[0])
    return [f"bins of {name!r} are {levels[0]}s such as {example!r}; {text!r} is none" for text in wrong]


class Counting(SeriesPublication):
    """A whole policy for `reveil count`."""

    dp: Budget

    @model_validator(mode="after")
    def _consistent(self) -> Counting:
        faults = []
        if len(self.named("identifier")) != 1:
            faults.append("one column must have the role identifier: what one person adds to the counts is bounded")
        for name in self.dp.bins:
            if name not in self.columns:
                faults.append(f"dp.bins names column {name!r}, which is not in [columns]")
            elif self.columns[name].role in ("identifier", "drop"):
                faults.append(f"column {name!r} is counted, but its role is {self.columns[name].role}")
        for name, spec in self.columns.items():
            idle = [way for way in IDLE if way in spec.model_fields_set]
            faults += [f"column {name!r} has {way}, which does nothing here: dp.bins says all" for way in idle]
            faults += _column_faults(name, spec, self.dp.bins.get(name))
        if faults:
            raise ContradictionError(faults)
        return self

    def fixed(self) -> dict[str, Any]:
        """What a series fixes with its first release: all but which counts are made, and at what price."""
        everything = self.to_dict()
        dp = {name: value for name, value in everything["dp"].items() if name != "counts"}
        return {"series": everything["series"], "columns": everything["columns"], "dp": dp}


def recorded_terms(fixed: Mapping[str, Any]) -> Terms:
    """The promise that a series was recorded with (`Counting.fixed`), whatever the policy file says by now."""
    return Terms.model_validate({name: fixed["dp"][name] for name in Terms.model_fields})
