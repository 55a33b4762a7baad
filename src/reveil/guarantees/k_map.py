"""k-map: whoever is in a group, k people of a known population at least could be the one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from reveil.guarantees.descriptor import ONE_RELEASE, Descriptor, Parameters, one_table

if TYPE_CHECKING:
    from reveil.policy.policy import Policy


class KMap(Parameters):
    k_map: Annotated[int, Field(ge=1)] | None = None
    population: str | None = None

    def contradictions(self) -> list[str]:
        faults = []
        if self.k_map is not None and self.population is None:
            faults.append("k_map needs population, a table of everybody whom a row may be about")
        if self.k_map == 1:
            faults.append("k_map = 1 promises nothing: one person of the population may be the only one who fits")
        return faults

    @property
    def population_file(self) -> str | None:
        return self.population

    def disagreements(self, policy: Policy) -> list[str]:
        return one_table("k_map", policy)


DESCRIPTOR = Descriptor(
    name="k-map",
    rank=65,
    parameters=KMap,
    family=ONE_RELEASE,
    words="Whoever looks for the person of a row finds {k_map} people of the population or more who fit it.",
    judge="k_map:build_k_map",
    needs=("population", "k_map"),
    asked_by=("k_map",),
    sensitive="none",
    monotone=True,
    condition="k_map",
    kept_by=("mondrian",),
    why_not="it cuts the rows and the people of the population together",
)
