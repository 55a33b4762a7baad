"""m-invariance: whenever somebody is published, their group shows the same m or more different values."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from reveil.guarantees.descriptor import NEVER, Descriptor
from reveil.guarantees.lasting import ManyValues, Published

if TYPE_CHECKING:
    from reveil.policy.policy import Policy


class MInvariance(ManyValues):
    L: Published = None

    @property
    def releases(self) -> int | None:
        return self.L

    @property
    def promised(self) -> Fraction | None:
        return Fraction(1, self.m)

    def cuts_nothing(self, policy: Policy) -> bool:
        return policy.method.name != "cohorts"


DESCRIPTOR = Descriptor(
    name="m-invariance",
    rank=130,
    parameters=MInvariance,
    family=NEVER,
    words="Whenever somebody is published, their group shows the same m or more different values.",
    judge="invariance:build_invariance",
    methods=("m-invariance", "cohorts"),
    needs=("m",),
    sensitive="one",
    counterfeits=True,
)
