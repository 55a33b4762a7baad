"""Population uniqueness: at most a share of the population is estimated to be alone with what the table shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from reveil.base.sections import Share
from reveil.guarantees.descriptor import ONE_RELEASE, WHOLE, Descriptor, Parameters, one_table

if TYPE_CHECKING:
    from reveil.policy.policy import Policy


class PopulationUniqueness(Parameters):
    population_uniqueness: Annotated[Share, Field(gt=0, lt=1)]
    sampled: Annotated[Share, Field(gt=0)] | None = None  # the share of the population that the table is

    def contradictions(self) -> list[str]:
        lacking = "population_uniqueness needs sampled, the share of the population that the table is"
        return [lacking] if self.sampled is None else []

    def disagreements(self, policy: Policy) -> list[str]:
        return one_table("population_uniqueness", policy)

    @property
    def growing(self) -> bool:
        return True


DESCRIPTOR = Descriptor(
    name="population-uniqueness",
    rank=68,
    parameters=PopulationUniqueness,
    family=ONE_RELEASE,
    words="Of the people whom the table was drawn from, an estimated share of at most {population_uniqueness} is alone "
    "with what rows show.",
    judge="whole_table:build_population_uniqueness",
    needs=("population_uniqueness", "sampled"),
    asked_by=("population_uniqueness",),
    methods=WHOLE[:1],
    sensitive="none",
    condition="population_uniqueness",
    kept_by=WHOLE[:1],
    why_not="it is estimated from all classes of the table together",
)
