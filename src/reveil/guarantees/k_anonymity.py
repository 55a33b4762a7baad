"""k-anonymity: nobody is in a group of fewer than k rows."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reveil.guarantees.descriptor import ONE_RELEASE, Descriptor, Parameters


class KAnonymity(Parameters):
    k: Annotated[int, Field(ge=1)]

    def contradictions(self) -> list[str]:
        return ["k = 1 promises nothing: a group of one is one person"] if self.k < 2 else []

    @property
    def growing(self) -> bool:
        return True


DESCRIPTOR = Descriptor(
    name="k-anonymity",
    rank=10,
    parameters=KAnonymity,
    family=ONE_RELEASE,
    words="Nobody is in a group of fewer than {k} rows that look alike.",
    judge="single:build_k",
    needs=("k",),
    asked_by=("k",),
    sensitive="none",
    monotone=True,
    bundles="whoever knows all rows of one of the {people} finds {k} {people} or more who show the same rows",
    hides_people=True,
    apart=True,
    condition="k_anonymity",
    kept_by=None,
)
