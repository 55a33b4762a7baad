"""delta-disclosure privacy: in every group every sensitive value is nearly as frequent as in the whole table."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reveil.base.sections import Exact
from reveil.guarantees.descriptor import ONE_RELEASE, Descriptor, Parameters


class DeltaDisclosure(Parameters):
    """A value of share p in the table has a share q in every group with |ln(q/p)| < delta (Brickell, Shmatikov 2008).

    Beyond 64 nothing is left to promise but that every value is in every group: e^64 is more than any number of rows.
    """

    delta: Annotated[Exact, Field(gt=0, le=64)]


DESCRIPTOR = Descriptor(
    name="delta-disclosure",
    rank=36,
    parameters=DeltaDisclosure,
    family=ONE_RELEASE,
    words="In every group every sensitive value is as frequent as in the whole table, within a factor of e^({delta}).",
    judge="disclosure:build_delta",
    needs=("delta",),
    asked_by=("delta",),
    monotone=True,
    relative=True,
    apart=True,
    condition="delta_disclosure",
)
