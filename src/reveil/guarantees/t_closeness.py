"""t-closeness: the sensitive values of every group are spread like those of the whole table."""

from __future__ import annotations

from typing import Literal

from reveil.base.sections import Share
from reveil.guarantees.descriptor import CUTTING, ONE_RELEASE, Descriptor, Parameters


class TCloseness(Parameters):
    t: Share
    distance: Literal["auto", "equal", "ordered", "hierarchical"] = "auto"
    reference: Literal["published", "original"] = "published"  # with whose spread groups are compared

    def contradictions(self) -> list[str]:
        return ["t = 1 promises nothing: no group is farther than 1 from the whole table"] if self.t >= 1 else []

    @property
    def of_original(self) -> bool:
        return self.reference == "original"

    @property
    def needs_order(self) -> bool:
        return self.distance == "ordered"


DESCRIPTOR = Descriptor(
    name="t-closeness",
    rank=30,
    parameters=TCloseness,
    family=ONE_RELEASE,
    words="In every group sensitive values are spread nearly as in the whole table.",
    judge="closeness:build_t",
    needs=("t",),
    asked_by=("t",),
    monotone=True,
    relative=True,
    apart=True,
    condition="t_closeness",
    kept_by=(*CUTTING, "budget"),
    words_of_ours=("distance", "reference"),
)
