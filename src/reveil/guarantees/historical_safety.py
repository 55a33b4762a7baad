"""(m, n)-historical safety: comparing releases ties nobody to fewer than n others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from reveil.base.sections import Share
from reveil.guarantees.descriptor import NEVER, Descriptor
from reveil.guarantees.lasting import ManyValues, Published

if TYPE_CHECKING:
    from reveil.policy.policy import Policy


class HistoricalSafety(ManyValues):
    n: Annotated[int, Field(ge=1)] | None = None
    p: Share | None = None
    L: Published = None
    h: Annotated[Share, Field(gt=0)] | None = None
    closure: Literal["transitive", "pairwise"] = "transitive"

    def contradictions(self) -> list[str]:
        faults = super().contradictions()
        if self.n is None and None in (self.p, self.L, self.h):
            faults.append('model "historical-safety" needs n, or p, L and h to choose it from')
        if self.n == 1:
            faults.append("n = 1 promises nothing: everybody may be tied to themselves alone")
        if self.n is not None and (self.p is not None or self.h is not None):
            faults.append("n is given, so p and h do nothing")
        elif self.n is not None and self.n > self.m:
            faults.append(f"n = {self.n} is larger than m = {self.m}; no correlation of a group is that large")
        if self.harmless is not None and self.closure == "pairwise":
            faults.append(
                'harmless needs closure = "transitive": regrouped people give each other away by what repeats'
            )
        return faults

    @property
    def releases(self) -> int | None:
        return self.L

    def cuts_nothing(self, policy: Policy) -> bool:
        return self.closure == "pairwise"

    def disagreements(self, policy: Policy) -> list[str]:
        name, faults = policy.method.name, super().disagreements(policy)
        if self.closure == "transitive" and name == "cor-split":
            faults.append(
                'method "cor-split" regroups people and is tested in pairs only; it needs closure = "pairwise"'
            )
        if self.closure == "pairwise" and name == "cohorts":
            faults.append(
                'method "cohorts" needs closure = "transitive": the paper\'s test in pairs takes a cohort that fewer '
                "than n people have left for a correlation, though it tells nothing"
            )
        return faults


DESCRIPTOR = Descriptor(
    name="historical-safety",
    rank=140,
    parameters=HistoricalSafety,
    family=NEVER,
    words="Comparing releases ties nobody to fewer than {n} others.",
    judge="correlation:build_history",
    methods=("cor-split", "cohorts"),
    needs=("m",),
    sensitive="one",
    counterfeits=True,
    words_of_ours=("closure",),
)
