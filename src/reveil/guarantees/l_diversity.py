"""l-diversity: every group shows many sensitive values, in one of three senses."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from reveil.base.sections import Exact
from reveil.guarantees.descriptor import ONE_RELEASE, Descriptor, Parameters


class LDiversity(Parameters):
    l: Annotated[Exact, Field(ge=1)]  # noqa: E741 - the name the field uses
    diversity: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: Annotated[Exact, Field(gt=0)] | None = None

    def contradictions(self) -> list[str]:
        faults = [f"l = {self.l} promises nothing: one value in a group is everybody's"] if self.l <= 1 else []
        if self.diversity == "recursive" and self.c is None:
            faults.append('diversity = "recursive" needs c')
        if self.diversity != "entropy" and self.l.denominator != 1:
            faults.append(f'l = {self.l} must be a whole number unless diversity = "entropy"')
        if self.diversity != "recursive" and self.c is not None:
            faults.append('c does nothing unless diversity = "recursive"')
        return faults

    @property
    def words(self) -> str:
        return {
            "distinct": "Every group shows at least {l} different sensitive values.",
            "entropy": "The sensitive values of every group are as mixed (by entropy) as {l} equally frequent ones.",
            "recursive": "The most frequent value of a group has fewer rows than {c} times its {l}th and rarer ones.",
        }[self.diversity]

    @property
    def unbundled(self) -> str:
        return "" if self.diversity == "distinct" else f'diversity = "{self.diversity}" has no meaning for several rows'

    @property
    def growing(self) -> bool:
        return self.diversity == "distinct"


DESCRIPTOR = Descriptor(
    name="l-diversity",
    rank=20,
    parameters=LDiversity,
    family=ONE_RELEASE,
    words="Every group shows at least {l} sensitive values, or values as mixed as that.",
    judge="single:build_l",
    needs=("l",),
    asked_by=("l",),
    monotone=True,
    bundles="in every group at least {l} sensitive values are needed to name one that each of the {people} has",
    apart=True,
    condition="l_diversity",
    kept_by=None,
    words_of_ours=("diversity",),
)
