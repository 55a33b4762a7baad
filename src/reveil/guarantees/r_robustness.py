"""r-robustness: who knows the odds beforehand guesses nobody's value with more than 1/r."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from reveil.base.sections import Exact
from reveil.guarantees.descriptor import ONE_RELEASE, Descriptor, Parameters

if TYPE_CHECKING:
    from reveil.policy.policy import Policy

IDLE = ("cuts", "suppress")  # keys of [method] that grouping by odds does not look at


class RRobustness(Parameters):
    r: Annotated[Exact, Field(gt=1)] | None = None
    priors: tuple[str, ...] = ()
    condition: Literal["exact", "delta"] = "exact"

    def contradictions(self) -> list[str]:
        if (self.r is None) != (not self.priors):
            return ['r and priors belong together: priors = ["by-sex.csv"] says what is known beforehand']
        return []

    @property
    def promised(self) -> Fraction | None:
        return None if self.r is None else 1 / self.r

    @property
    def prior_files(self) -> tuple[str, ...]:
        return self.priors

    def disagreements(self, policy: Policy) -> list[str]:
        faults, method = [], policy.method.name
        if policy.guarantee.headline is not self:
            why = "only single-release conditions are planned together with priors"
            if policy.guarantee.descriptor.family.series:
                why = "its worlds over several releases are not weighed by priors"
            model = f'model "{policy.guarantee.model}"'
            faults.append(f'priors do not go with {model}: {why}; use model = "{DESCRIPTOR.name}"')
        if method not in ("auto", *DESCRIPTOR.methods):
            faults.append(
                f'method "{method}" cannot plan under priors; use {" or ".join(map(_quoted, DESCRIPTOR.methods))}'
            )
        usual = type(policy.method)()
        idle = [name for name in IDLE if getattr(policy.method, name) != getattr(usual, name)]
        faults += [f"method.{name} does nothing under priors" for name in idle]
        if len(policy.named("sensitive")) != 1:
            faults.append("priors are planned for one sensitive column; give the others another role")
        if "group" in policy.columns and policy.columns["group"].role in ("quasi", "sensitive", "insensitive"):
            faults.append("a release under priors numbers its groups in a column `group`; rename yours")
        names = [Path(file).name for file in self.priors]
        if len(set(names)) < len(names):
            faults.append("two prior files have the same name; rename one of them")
        return faults


def _quoted(name: str) -> str:
    return f'"{name}"'


DESCRIPTOR = Descriptor(
    name="r-robustness",
    rank=70,
    parameters=RRobustness,
    family=ONE_RELEASE,
    words="Who knows the stated odds beforehand guesses nobody's value with a chance above 1/r.",
    judge="robust:build_r",
    methods=("signatures", "linkage"),
    needs=("r",),
    asked_by=("r", "priors"),
    kept_by=None,  # `disagreements` says what it does not go with
    company="priors; k, l and alpha can",
    method_words="groups by priors: it needs guarantee.r and guarantee.priors",
    words_of_ours=("condition",),
)
