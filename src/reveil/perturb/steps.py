"""The policy of a perturbed release: `[[perturb]]` steps, each a method with its columns and parameters.

A column is in one step at most, so that what each method promises about it can be checked in the published bytes.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, model_validator

from reveil.base.sections import ContradictionError, Exact, Section, Share
from reveil.policy.policy import Publication

MethodName = Literal["noise", "swap", "rank-swap", "pram", "microaggregate", "condense"]
NUMERIC = ("noise", "microaggregate", "condense")
# method -> parameters it needs, parameters it may have
PARAMETERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "noise": (("amount",), ("correlated", "preserve", "digits")),
    "swap": ((), ("share", "within", "together")),
    "rank-swap": (("percent",), ()),
    "pram": ((), ("keep", "matrix", "invariant")),
    "microaggregate": (("k",), ("algorithm", "digits")),
    "condense": (("k",), ("algorithm", "digits")),
}
PUBLISHED = ("quasi", "sensitive", "insensitive")
IDLE = ("hierarchy", "widths", "cuts", "prefixes", "levels", "weight")  # ways to generalise, which nothing does here


class PerturbStep(Section):
    """One method on one or more columns."""

    method: MethodName
    columns: Annotated[tuple[str, ...], Field(min_length=1)]
    amount: Annotated[Exact, Field(gt=0)] | None = None  # noise: its standard deviation, in those of the column
    correlated: bool = False  # noise: like the columns among each other
    preserve: Literal["mean", "variance"] = "mean"
    share: Annotated[Share, Field(gt=0)] = Fraction(1)  # swap: of the rows
    within: tuple[str, ...] = ()  # swap: only among rows that are alike in these columns
    together: bool = False  # swap: the columns of a row travel as one
    percent: Annotated[Exact, Field(gt=0, le=100)] | None = None  # rank-swap: of the rows
    keep: Share | None = None  # pram: the chance that a value stays, unless it is drawn again
    matrix: dict[str, dict[str, Share]] | None = None  # pram: from -> to -> chance
    invariant: bool = True  # pram: frequencies are expected to stay
    k: Annotated[int, Field(ge=2)] | None = None
    algorithm: Literal["auto", "mdav", "univariate", "blocks"] = "auto"
    digits: Annotated[int, Field(ge=0, le=12)] | None = None  # decimals to publish

    @model_validator(mode="after")
    def _consistent(self) -> PerturbStep:
        needed, allowed = PARAMETERS[self.method]
        given = self.model_fields_set - {"method", "columns"}
        faults = [f'method "{self.method}" needs {name}' for name in needed if getattr(self, name) is None]
        faults += [f'{name} does nothing with method "{self.method}"' for name in sorted(given - {*needed, *allowed})]
        if len(set(self.columns)) < len(self.columns):
            faults.append("names a column twice")
        if self.method == "pram" and (self.keep is None) == (self.matrix is None):
            faults.append('method "pram" needs keep or matrix, and not both')
        if self.correlated and len(self.columns) == 1:
            faults.append("correlated does nothing for one column")
        if self.together and len(self.columns) == 1:
            faults.append("together does nothing for one column")
        if self.algorithm == "univariate" and len(self.columns) > 1:
            faults.append('algorithm = "univariate" is for one column')
        if self.method == "condense" and self.k == 2:
            faults.append(
                "k = 2 condenses nothing: two points with a given mean and variance are known up to their order"
            )
        if faults:
            raise ContradictionError(faults)
        return self


class Recipe(Publication):
    """A whole policy for `reveil perturb`."""

    perturb: Annotated[tuple[PerturbStep, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _consistent(self) -> Recipe:
        used = [name for step in self.perturb for name in step.columns]
        faults = [f"column {name!r} is in more than one step" for name in dict.fromkeys(used) if used.count(name) > 1]
        for number, step in enumerate(self.perturb, 1):
            for name in (*step.columns, *step.within):
                if name not in self.columns:
                    faults.append(f"step {number} names column {name!r}, which is not in [columns]")
                elif self.columns[name].role not in PUBLISHED:
                    faults.append(f"step {number} names column {name!r}, which is not published")
            faults += [
                f"step {number} swaps within {name!r}, which is changed itself" for name in step.within if name in used
            ]
        ranked = {name for step in self.perturb if step.method == "rank-swap" for name in step.columns}
        for name, spec in self.columns.items():
            idle = [way for way in IDLE if way in spec.model_fields_set]
            faults += [f"column {name!r} has {way}, but nothing is generalised here; leave {way} out" for way in idle]
            if spec.order is not None and name not in ranked:
                faults.append(f"column {name!r} has an order, which only rank-swap uses")
        if not self.published:
            faults.append("no column is published: every role is identifier or drop")
        if faults:
            raise ContradictionError(faults)
        return self

    @property
    def published(self) -> tuple[str, ...]:
        """The columns of the public table, in the order of the policy."""
        return tuple(name for name, spec in self.columns.items() if spec.role in PUBLISHED)

    @property
    def untouched(self) -> tuple[str, ...]:
        """The columns that are published exactly as they are."""
        used = {name for step in self.perturb for name in step.columns}
        return tuple(name for name in self.published if name not in used)
