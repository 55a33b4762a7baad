"""How a promise is kept: the [method] section of a policy, and which of its keys go together."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from reveil.policy.guarantee import SINGLE_RELEASE, Guarantee, Section, Share

# Generalisation schemes beside "mondrian" (multidimensional); all publish nodes of the hierarchies.
SCHEMES = ("full-domain", "subtree", "sibling", "cell")
GLOBAL_SCHEMES = SCHEMES[:3]  # these recode every instance of a value alike


class Method(Section):
    """How to keep the promise with the least loss."""

    name: Literal[
        "auto",
        "mondrian",
        "full-domain",
        "subtree",
        "sibling",
        "cell",
        "budget",
        "cohorts",
        "m-invariance",
        "cor-split",
        "signatures",
        "linkage",
        "m-distinct",
        "cohorts-evolving",
    ] = "auto"
    cuts: Literal["strict", "relaxed"] = "relaxed"
    recode: Literal["nodes", "sets", "suppress"] = "nodes"
    loss: Literal["ncp", "geometric", "precision"] = "ncp"
    publish: Literal["generalized", "anatomy"] = "generalized"
    infeasible: Literal["refuse", "withhold"] = "refuse"
    suppress: Share = Fraction(0)


def scheme_faults(method: Method, guarantee: Guarantee) -> list[str]:
    """What generalisation schemes and suppression go together with."""
    faults, scheme = [], method.name
    if method.loss != "ncp" and scheme != "full-domain":
        faults.append('method.loss does nothing unless method.name = "full-domain"')
    if method.recode == "suppress" and scheme not in ("auto", "mondrian", *SCHEMES):
        faults.append(f'recode = "suppress" does not go with method "{scheme}"; use "cell", "sibling" or "full-domain"')
    if method.recode == "suppress" and guarantee.model not in SINGLE_RELEASE:
        faults.append(f'recode = "suppress" is for one release, and model "{guarantee.model}" is for a series')
    if scheme not in SCHEMES:
        return faults
    if guarantee.model not in SINGLE_RELEASE:
        faults.append(f'method "{scheme}" plans one release; model "{guarantee.model}" needs method "auto"')
    if guarantee.population is not None:
        faults.append(f'method "{scheme}" does not plan for presence; use "mondrian" with recode = "sets"')
    if method.recode == "sets":
        faults.append(f'method "{scheme}" publishes hierarchy nodes; recode = "sets" needs method "mondrian"')
    if method.publish == "anatomy":
        faults.append(f'method "{scheme}" generalises, and anatomy does not; use method "mondrian"')
    if guarantee.epsilon is not None and scheme == "cell":
        faults.append('method "cell" cannot keep epsilon-m: groups that look alike merge; use "mondrian"')
    if method.cuts != "relaxed":
        faults.append(f'method.cuts does nothing with method "{scheme}"')
    return faults
