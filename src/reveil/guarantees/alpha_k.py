"""(alpha, k)-anonymity: no sensitive value has more than a share alpha of a group; k is k-anonymity beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from reveil.base.sections import Share
from reveil.guarantees.descriptor import ONE_RELEASE, Descriptor, Parameters

if TYPE_CHECKING:
    from reveil.policy.policy import Policy


class AlphaK(Parameters):
    alpha: Annotated[Share, Field(gt=0)]

    def disagreements(self, policy: Policy) -> list[str]:
        return ["alpha = 1 promises nothing: all rows of a group may have one value"] if self.alpha >= 1 else []


DESCRIPTOR = Descriptor(
    name="alpha-k",
    rank=40,
    parameters=AlphaK,
    family=ONE_RELEASE,
    words="No sensitive value stands in more than a share {alpha} of the rows of a group.",
    judge="single:build_alpha",
    needs=("alpha", "k"),
    asked_by=("alpha",),
    monotone=True,
    bundles="in no group more than a share {alpha} of the {people} have one and the same sensitive value in their rows",
    apart=True,
    condition="alpha_k",
    kept_by=None,
)
