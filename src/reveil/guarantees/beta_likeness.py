"""beta-likeness: in no group is a sensitive value much more frequent than in the whole table (Cao and Karras 2012)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from reveil.base.sections import Exact
from reveil.guarantees.descriptor import ONE_RELEASE, Descriptor, Parameters


class BetaLikeness(Parameters):
    """A value of share p in the table has at most (1 + beta) p in a group; enhanced, (1 + min(beta, -ln p)) p."""

    beta: Annotated[Exact, Field(gt=0)]
    likeness: Literal["basic", "enhanced"] = "enhanced"


DESCRIPTOR = Descriptor(
    name="beta-likeness",
    rank=35,
    parameters=BetaLikeness,
    family=ONE_RELEASE,
    words="In no group is a sensitive value more frequent than in the whole table by more than a factor 1 + {beta}.",
    judge="likeness:build_beta",
    needs=("beta",),
    asked_by=("beta",),
    monotone=True,
    relative=True,
    apart=True,
    condition="beta_likeness",
    words_of_ours=("likeness",),
)
