"""delta-presence: who knows everybody who could be in the table cannot tell well who is."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from reveil.base.sections import Share
from reveil.guarantees.descriptor import ONE_RELEASE, Descriptor, Parameters

if TYPE_CHECKING:
    from reveil.policy.policy import Policy


class Presence(Parameters):
    population: str | None = None
    delta_min: Share = Fraction(0)
    delta_max: Share | None = None

    def contradictions(self) -> list[str]:
        faults = []
        if self.population is None and self.delta_max is not None:
            faults.append("delta_max needs population, a table of everybody who could be in the table")
        if self.delta_max is not None and self.delta_min > self.delta_max:
            faults.append("delta_min is larger than delta_max")
        if self.delta_max == 1 and self.delta_min == 0:
            faults.append("delta_max = 1 promises nothing: everybody may be known to be present")
        return faults

    @property
    def population_file(self) -> str | None:
        return self.population

    def disagreements(self, policy: Policy) -> list[str]:
        faults = []
        if policy.method.recode != "sets":
            faults.append('presence needs method.recode = "sets": labels of hierarchy nodes overlap, sets do not')
        if policy.method.two_tables:
            faults.append(
                "two tables tell who is present by boxes of k people at best; presence needs publish = generalized"
            )
        return faults


DESCRIPTOR = Descriptor(
    name="presence",
    rank=60,
    parameters=Presence,
    family=ONE_RELEASE,
    words="Who knows everybody who could be in the table cannot tell well enough who is.",
    judge="presence:build_presence",
    needs=("population", "delta_max"),
    asked_by=("delta_max",),
    sensitive="none",
    condition="presence",
    kept_by=("mondrian",),
    why_not='it needs recode = "sets"',
)
