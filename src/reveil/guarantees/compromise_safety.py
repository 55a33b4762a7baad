"""Compromise safety: whichever c people are known, nobody else's value is guessed with more than tau."""

from __future__ import annotations

from reveil.guarantees.descriptor import NEVER, Descriptor
from reveil.guarantees.lasting import CohortTerms, Published


class CompromiseSafety(CohortTerms):
    L: Published = None

    @property
    def repeats(self) -> bool:
        """A refill hands on places that are told apart by their values; without any, c known people of s leave a value
        that n places show with n / (s - c)."""
        return self.refill == "never"

    @property
    def releases(self) -> int | None:
        return self.L


DESCRIPTOR = Descriptor(
    name="compromise-safety",
    rank=120,
    parameters=CompromiseSafety,
    family=NEVER,
    words="Whoever knows the values of a few people guesses nobody else's with a chance above tau.",
    judge="cohorts:build_cohorts",
    methods=("cohorts",),
    needs=("m",),
    sensitive="one",
    several=True,
    bundles="whoever has all releases and knows {compromised} of the {people} guesses no value in any row of another "
    "with more than {bound}",
    counterfeits=True,
    words_of_ours=("refill",),
)
