"""How a promise is kept: the [method] section of a policy, and which of its keys go together."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

from pydantic import SerializerFunctionWrapHandler, model_serializer

from reveil.base.sections import Section, Share
from reveil.guarantees.catalog import descriptors
from reveil.guarantees.descriptor import CUTTING, ONE_RELEASE
from reveil.policy.guarantee import Guarantee

# Generalisation schemes beside "mondrian" (multidimensional); all publish nodes of the hierarchies.
SCHEMES = CUTTING[1:]
GLOBAL_SCHEMES = SCHEMES[:3]  # these recode every instance of a value alike
TWO_TABLES = ("people", "insensitive", "together")  # keys that are about two tables


class MethodSection(Section):
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
    loss: Literal["ncp", "geometric", "maximum", "precision", "entropy", "discernibility", "average-class"] = "ncp"
    publish: Literal["generalized", "anatomy"] = "generalized"
    people: Literal["boxes", "stable-boxes", "exact"] = "boxes"  # of two tables: in boxes of k people, or as they are
    insensitive: Literal["dealt", "own"] = "dealt"  # of two tables in a series: among the people of a group, or not
    together: tuple[str, ...] | None = None  # of two tables: sensitive columns whose values are shown side by side, too
    infeasible: Literal["refuse", "wait", "withhold"] = "refuse"
    suppress: Share = Fraction(0)

    @model_serializer(mode="wrap")
    def _written(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without the keys that do nothing for one table: earlier series keep the form of their policy."""
        content: dict[str, Any] = written(self)
        idle = TWO_TABLES if not self.two_tables else ("together",) if self.together is None else ()
        return {key: value for key, value in content.items() if key not in idle}

    @property
    def two_tables(self) -> bool:
        """Whether people and values are published apart (anatomy)."""
        return self.publish == "anatomy"

    @property
    def boxed(self) -> bool:
        """Whether the people of two tables are shown in boxes of their own."""
        return self.two_tables and self.people != "exact"

    @property
    def steady(self) -> bool:
        """Whether boxes of people keep to the cuts of the first release."""
        return self.two_tables and self.people == "stable-boxes"


WAITING = 'model = "compromise-safety" with refill = "never", and no further promise about values'


def may_wait(guarantee: Guarantee) -> bool:
    """Whether newcomers for whom there is no group now may wait: cohorts may then repeat values within the bound.

    What counts different values besides (l, alpha ...) would not have it.
    """
    return guarantee.headline.repeats and not any(one.sensitive == "some" for one, _ in guarantee.described)


def scheme_faults(method: MethodSection, guarantee: Guarantee) -> list[str]:
    """What generalisation schemes and suppression go together with."""
    faults, scheme = [], method.name
    if method.loss != "ncp" and scheme != "full-domain":
        faults.append('method.loss does nothing unless method.name = "full-domain"')
    if method.recode == "suppress" and scheme not in ("auto", "mondrian", *SCHEMES):
        faults.append(f'recode = "suppress" does not go with method "{scheme}"; use "cell", "sibling" or "full-domain"')
    if method.recode == "suppress" and guarantee.series:
        faults.append(f'recode = "suppress" is for one release, and model "{guarantee.model}" is for a series')
    faults += _keepers(method, guarantee)
    if scheme not in SCHEMES:
        return faults
    if method.recode == "sets":
        faults.append(f'method "{scheme}" publishes hierarchy nodes; recode = "sets" needs method "mondrian"')
    if method.publish == "anatomy":
        faults.append(f'method "{scheme}" generalises one table; two tables (anatomy) need method "mondrian"')
    if method.cuts != "relaxed":
        faults.append(f'method.cuts does nothing with method "{scheme}"')
    return faults


def _keepers(method: MethodSection, guarantee: Guarantee) -> list[str]:
    """Conditions that the method, where one is named, does not keep."""
    name = method.name
    if name == "auto":
        return []
    if name not in guarantee.methods and guarantee.series:
        return [f'method "{name}" does not plan for model "{guarantee.model}"; use "auto"']
    if not any(name in (*CUTTING, *one.methods) for one, _ in guarantee.described):
        return [f'method "{name}" {_purpose(name)}']
    return [
        f'method "{name}" cannot keep {one.name}{one.why_not and f": {one.why_not}"}; use "{one.methods[0]}"'
        for one, _ in guarantee.described
        if one.kept_by is not None and name not in one.kept_by and one.family is ONE_RELEASE
    ]


def _purpose(name: str) -> str:
    """What a method is for that no promise about one release takes."""
    takers = [one for one in descriptors().values() if name in one.methods]
    models = " or ".join(f'"{one.name}"' for one in takers)
    return next((one.method_words for one in takers if one.method_words), f"plans for guarantee.model = {models} only")
