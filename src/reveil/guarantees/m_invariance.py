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

    def suits(self, method: str) -> bool:
        """Regrouped people whose groups repeat a value would give each other away: these stay together."""
        return self.harmless is None or method == "cohorts"

    def cuts_nothing(self, policy: Policy) -> bool:
        return self.harmless is None and policy.method.name != "cohorts"


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
