"""m-distinct: values change by public rules, and at least m of them stay possible for everybody."""

from __future__ import annotations

from reveil.guarantees.descriptor import TRANSITIONS, Descriptor
from reveil.guarantees.lasting import Evolving


class MDistinct(Evolving):
    """Groups may show values that can become the same: how likely that is, is weighed."""


DESCRIPTOR = Descriptor(
    name="m-distinct",
    rank=150,
    parameters=MDistinct,
    family=TRANSITIONS,
    words="Whatever a value may have become, at least m values stay possible for everybody.",
    judge="distinct:build_distinct",
    methods=("cohorts-evolving", "m-distinct"),
    needs=("m",),
    sensitive="one",
    counterfeits=True,
    one_step=True,
    words_of_ours=("refill", "view"),
)
