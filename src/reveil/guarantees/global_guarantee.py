"""The global guarantee: over all releases together, nobody is linked to a value with a chance above 1/l."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field

from reveil.base.sections import Exact
from reveil.guarantees.descriptor import FREELY, Descriptor, Listed, Parameters
from reveil.guarantees.selection import Selection

STEPS = (("horizon", "constant-ratio"), ("rate", "geometric"))  # the parameter that each of these strategies takes


class Global(Parameters):
    l: Annotated[Exact, Field(ge=1)]  # noqa: E741 - the name the field uses
    strategy: Literal["constant-ratio", "geometric", "telescoping", "greedy"]
    horizon: Annotated[int, Field(ge=1)] | None = None
    rate: Annotated[Exact, Field(gt=0, lt=1)] | None = None
    pace: Literal["soft", "strict"] = "soft"  # soft: where the strategy's pace is too slow, later releases lend theirs
    protect: Listed = None
    harmless: Listed = None

    def contradictions(self) -> list[str]:
        faults = []
        if self.l <= 1:
            faults.append(f"l = {self.l} promises nothing; the chance is bounded by 1/l, so l must be larger than 1")
        if self.protect is not None and self.harmless is not None:
            faults.append("protect and harmless are complements: give the shorter of the two lists")
        for name, strategy in STEPS:
            given = getattr(self, name) is not None
            if self.strategy == strategy and not given:
                faults.append(f'strategy = "{strategy}" needs {name}')
            if self.strategy != strategy and given:
                faults.append(f'{name} does nothing unless strategy = "{strategy}"')
        return faults

    @property
    def harmless_values(self) -> Selection:
        return self.selection(self.harmless)

    def protects(self, value: object) -> bool:
        """Whether this sensitive value is covered."""
        return super().protects(value) and (self.protect is None or self.selection(self.protect).selects(value))

    @property
    def promised(self) -> Fraction | None:
        return 1 / self.l

    @property
    def ever_linked(self) -> Callable[[object], bool] | None:
        return self.protects


DESCRIPTOR = Descriptor(
    name="global",
    rank=110,
    parameters=Global,
    family=FREELY,
    words="Over all releases together, nobody is linked to a protected value with a chance above 1/l.",
    judge="ever_linked:build_global",
    methods=("budget",),
    needs=("l", "strategy"),
    words_of_ours=("strategy",),
)
