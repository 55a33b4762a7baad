"""What the parts of a policy must agree on: roles, how values change, the promise and the method."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reveil.policy.guarantee import EVOLVING, PERSISTENT, SINGLE_RELEASE
from reveil.policy.method import Method, scheme_faults

if TYPE_CHECKING:
    from reveil.policy.policy import Policy

_IDLE_STEP = (
    'values.closure = "one-step" does nothing with model "{}": only m-distinct can do without transitive changes; use '
    '"transitive", or leave it out'
)
_METHODS_OF = {
    "compromise-safety": ("cohorts",),
    "m-invariance": ("m-invariance", "cohorts"),
    "historical-safety": ("cohorts", "cor-split"),
    "joint": ("cohorts-evolving",),
    "individual": ("m-distinct",),
}


def disagreements(policy: Policy) -> list[str]:
    """Everything that does not go together."""
    faults = []
    if not policy.named("quasi"):
        faults.append("no column has the role quasi: there is nothing to protect against linkage")
    if len(policy.named("identifier")) > 1:
        names = ", ".join(policy.named("identifier"))
        faults.append(f"several identifiers ({names}); join them into one column first")
    if policy.guarantee.population is not None and policy.method.recode != "sets":
        faults.append('presence needs method.recode = "sets": labels of hierarchy nodes overlap, sets do not')
    needs_sensitive = [
        name for name in ("l", "t", "alpha", "epsilon", "r") if getattr(policy.guarantee, name) is not None
    ]
    if needs_sensitive and not policy.named("sensitive"):
        faults.append(f"guarantee.{needs_sensitive[0]} needs a column with the role sensitive")
    faults += _global_policy(policy) if policy.guarantee.model == "global" else []
    faults += _lasting_policy(policy) if policy.guarantee.model in (*PERSISTENT, *EVOLVING) else []
    faults += _rule_policy(policy) if policy.values.rule is not None else []
    if policy.values.closure == "one-step" and policy.guarantee.model != "m-distinct":
        faults.append(_IDLE_STEP.format(policy.guarantee.model))
    faults += _prior_policy(policy)
    faults += scheme_faults(policy.method, policy.guarantee)
    faults += _anatomy_policy(policy) if policy.method.publish == "anatomy" else []
    if policy.method.name == "budget" and policy.guarantee.model != "global":
        faults.append('method "budget" plans for guarantee.model = "global" only')
    return faults


def _prior_policy(policy: Policy) -> list[str]:
    """What priors go together with, and what they do not."""
    g, method, faults = policy.guarantee, policy.method.name, []
    if g.r is None:
        if method in ("signatures", "linkage"):
            faults.append(f'method "{method}" groups by priors: it needs guarantee.r and guarantee.priors')
        return faults
    if g.model != "r-robustness":
        why = "only single-release conditions are planned together with priors"
        if g.model not in SINGLE_RELEASE:
            why = "its worlds over several releases are not weighed by priors"
        faults.append(f'priors do not go with model "{g.model}": {why}; use model = "r-robustness"')
    others = [name for name in ("t", "epsilon", "population") if getattr(g, name) is not None]
    faults += [f"{name} cannot be planned together with priors; k, l and alpha can" for name in others]
    if method not in ("auto", "signatures", "linkage"):
        faults.append(f'method "{method}" cannot plan under priors; use "signatures" or "linkage"')
    usual = Method()
    idle = [name for name in ("cuts", "suppress") if getattr(policy.method, name) != getattr(usual, name)]
    faults += [f"method.{name} does nothing under priors" for name in idle]
    if len(policy.named("sensitive")) != 1:
        faults.append("priors are planned for one sensitive column; give the others another role")
    if "group" in policy.columns and policy.columns["group"].role in ("quasi", "sensitive", "insensitive"):
        faults.append("a release under priors numbers its groups in a column `group`; rename yours")
    names = [Path(file).name for file in g.priors]
    if len(set(names)) < len(names):
        faults.append("two prior files have the same name; rename one of them")
    return faults


def _anatomy_policy(policy: Policy) -> list[str]:
    """What can be promised when exact quasi-identifiers are published apart from the values."""
    g, faults = policy.guarantee, []
    if g.model == "k-anonymity":
        faults.append(
            "anatomy publishes exact quasi-identifiers, so k-anonymity hides nobody: it only hides which value is "
            "whose; promise that, with l-diversity, t-closeness, alpha-k, epsilon-m or r-robustness"
        )
    if g.population is not None:
        faults.append(
            "anatomy publishes exact quasi-identifiers, so it shows who is present; presence needs generalized"
        )
    if g.model not in SINGLE_RELEASE and g.model != "global":  # which needs no counterfeits
        faults.append(f'anatomy cannot keep "{g.model}": a counterfeit row has no exact quasi-identifiers to show')
    if not policy.named("sensitive"):
        faults.append("anatomy parts quasi-identifiers from sensitive values, and no column is sensitive")
    if "recode" in policy.method.model_fields_set:
        faults.append("method.recode does nothing with anatomy: nothing is generalised")
    taken = [name for name in ("group", "count") if name in policy.columns]
    faults += [f"anatomy needs the column name `{name}` for itself; rename yours" for name in taken]
    return faults


def _lasting_policy(policy: Policy) -> list[str]:
    """What guarantees need whose groups follow people from release to release."""
    model, faults = policy.guarantee.model, []
    if model in EVOLVING and policy.values.change != "transitions":
        faults.append(f'model "{model}" needs values.change = "transitions": what a value may become is public')
    if model in PERSISTENT and policy.values.change != "never":
        faults.append(f'model "{model}" needs values.change = "never": it relies on values that stay')
    if policy.identifier is None:
        faults.append(f'model "{model}" needs a column with the role identifier: people must be known again')
    if len(policy.named("sensitive")) != 1:
        faults.append(f'model "{model}" needs exactly one sensitive column; join several into one first')
    kind = model if model in PERSISTENT else policy.guarantee.view
    if policy.method.name not in ("auto", *_METHODS_OF[kind]):
        faults.append(f'method "{policy.method.name}" does not plan for model "{model}"; use "auto"')
    if policy.method.suppress:
        faults.append(f'method.suppress must be 0 with model "{model}"')
    if policy.method.cuts != "relaxed" and _deals(policy):
        faults.append(f'method.cuts does nothing here: model "{model}" deals people by their values and cuts nothing')
    if policy.guarantee.closure == "transitive" and policy.method.name == "cor-split":
        faults.append('method "cor-split" regroups people and is tested in pairs only; it needs closure = "pairwise"')
    if policy.guarantee.closure == "pairwise" and policy.method.name == "cohorts":
        faults.append(
            'method "cohorts" needs closure = "transitive": the paper\'s test in pairs takes a cohort that fewer than '
            "n people have left for a correlation, though it tells nothing"
        )
    return faults


def _deals(policy: Policy) -> bool:
    """Whether groups are dealt from buckets of values; closed cohorts begin in regions that are cut."""
    g, name = policy.guarantee, policy.method.name
    if g.model == "historical-safety":
        return g.closure == "pairwise"
    return g.model == "m-invariance" and name != "cohorts"


def _rule_policy(policy: Policy) -> list[str]:
    """A rule yields transitions from what the policy says of the one sensitive column."""
    rule, names = policy.values.rule, policy.named("sensitive")
    if len(names) != 1:
        return [f"values.transitions by {rule} needs exactly one sensitive column"]
    spec = policy.columns[names[0]]
    if spec.hierarchy is None and (rule == "level" or spec.order is None):
        needed = "a hierarchy" if rule == "level" else "an order or a hierarchy, so that its values are public"
        return [f"values.transitions by {rule} needs {needed} of column {names[0]!r}"]
    return []


def _global_policy(policy: Policy) -> list[str]:
    faults = []
    if policy.values.change != "freely":
        faults.append(
            'model "global" needs values.change = "freely": its chances multiply only if a value says nothing about '
            "the next one. Where values persist it is no bound: {A,B} with x,y and then {A,C} with x,z gives A away, "
            "and the formula says 3/4"
        )
    if policy.identifier is None:
        faults.append('model "global" needs a column with the role identifier: budgets belong to people')
    if policy.method.name not in ("auto", "budget"):
        faults.append(f'method "{policy.method.name}" knows no budgets; model "global" needs method "budget" or "auto"')
    if policy.method.suppress:
        faults.append('method.suppress must be 0 with model "global": who is withheld is decided by the past alone')
    return faults
