"""Sample uniqueness: at most a share of the published rows is alone in its class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from reveil.base.sections import Share
from reveil.guarantees.descriptor import ONE_RELEASE, WHOLE, Descriptor, Parameters, one_table

if TYPE_CHECKING:
    from reveil.policy.policy import Policy


class SampleUniqueness(Parameters):
    sample_uniqueness: Annotated[Share, Field(lt=1)]

    def disagreements(self, policy: Policy) -> list[str]:
        return one_table("sample_uniqueness", policy)

    @property
    def growing(self) -> bool:
        return True


DESCRIPTOR = Descriptor(
    name="sample-uniqueness",
    rank=67,
    parameters=SampleUniqueness,
    family=ONE_RELEASE,
    words="At most a share {sample_uniqueness} of the published rows looks like no other row.",
    judge="whole_table:build_sample_uniqueness",
    needs=("sample_uniqueness",),
    asked_by=("sample_uniqueness",),
    methods=WHOLE,
    sensitive="none",
    monotone=True,
    condition="sample_uniqueness",
    kept_by=WHOLE,
    why_not="it looks at all classes of the table together",
)
