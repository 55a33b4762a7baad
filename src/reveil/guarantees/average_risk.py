"""Average risk: over all published rows, the mean of one over the size of their class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from reveil.base.sections import Share
from reveil.guarantees.descriptor import ONE_RELEASE, WHOLE, Descriptor, Parameters, one_table

if TYPE_CHECKING:
    from reveil.policy.policy import Policy


class AverageRisk(Parameters):
    average_risk: Annotated[Share, Field(gt=0)]

    def contradictions(self) -> list[str]:
        return ["average_risk = 1 promises nothing: everybody may be alone"] if self.average_risk == 1 else []

    def disagreements(self, policy: Policy) -> list[str]:
        return one_table("average_risk", policy)

    @property
    def growing(self) -> bool:
        return True


DESCRIPTOR = Descriptor(
    name="average-risk",
    rank=66,
    parameters=AverageRisk,
    family=ONE_RELEASE,
    words="Whoever looks for a person of the table, by all that is known, is right with {average_risk} on average.",
    judge="whole_table:build_average_risk",
    needs=("average_risk",),
    asked_by=("average_risk",),
    methods=tuple(reversed(WHOLE)),
    sensitive="none",
    monotone=True,
    condition="average_risk",
    kept_by=WHOLE,
    why_not="it looks at all classes of the table together",
)
