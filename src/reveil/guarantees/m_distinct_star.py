"""m-distinct-star: m-distinct in groups of values that can never become the same."""

from __future__ import annotations

from typing import ClassVar

from reveil.guarantees.descriptor import TRANSITIONS, Descriptor
from reveil.guarantees.lasting import Evolving


class MDistinctStar(Evolving):
    disjoint: ClassVar[bool] = True


DESCRIPTOR = Descriptor(
    name="m-distinct-star",
    rank=160,
    parameters=MDistinctStar,
    family=TRANSITIONS,
    words="Values of a group can never become the same, so everybody's stays one of m or more.",
    judge="distinct:build_distinct",
    methods=("cohorts-evolving", "m-distinct"),
    needs=("m",),
    sensitive="one",
    counterfeits=True,
    words_of_ours=("refill", "view"),
)
