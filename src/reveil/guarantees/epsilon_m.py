"""(epsilon, m)-anonymity: at most one in m rows of a group is near to any number in it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from reveil.base.sections import Exact
from reveil.guarantees.descriptor import ONE_RELEASE, Descriptor, Parameters


class EpsilonM(Parameters):
    epsilon: Annotated[Exact, Field(ge=0)]
    m: Annotated[int, Field(ge=1)] | None = None
    proximity: Literal["absolute", "relative"] = "absolute"

    def contradictions(self) -> list[str]:
        if self.m is None:
            return ["epsilon needs m: at most one in m rows of a group may be that near to any value"]
        if self.m < 2:
            return ["m = 1 promises nothing: all rows of a group may be that near"]
        return []

    @property
    def words(self) -> str:
        if self.proximity == "absolute":
            return ""
        return "At most one in {m} rows of a group has a number within a share of {epsilon} of any other."


DESCRIPTOR = Descriptor(
    name="epsilon-m",
    rank=50,
    parameters=EpsilonM,
    family=ONE_RELEASE,
    words="At most one in {m} rows of a group has a number within {epsilon} of any other.",
    judge="proximity:build_epsilon",
    needs=("epsilon", "m"),
    asked_by=("epsilon",),
    condition="epsilon_m",
    kept_by=("mondrian", "full-domain", "subtree", "sibling", "budget"),
    why_not="groups that look alike merge",
    words_of_ours=("proximity",),
)
