"""Which planner keeps which promise: names to lazily loaded functions."""

from __future__ import annotations

from importlib import import_module

from reveil.plan.plan import Method
from reveil.policy.guarantee import EVOLVING
from reveil.policy.policy import Policy

METHODS: dict[str, str] = {  # method.name -> module:function
    "mondrian": "cutting.mondrian:plan",
    "full-domain": "schemes.fulldomain:plan",
    "subtree": "schemes.subtree:plan",
    "sibling": "schemes.subtree:plan",
    "cell": "schemes.cells:plan",
    "budget": "budgets.global_guarantee:plan",
    "cohorts": "persistent.closed_cohorts:plan",
    "m-invariance": "persistent.m_invariance:plan",
    "cor-split": "persistent.cor_split:plan",
    "signatures": "priors.robust_groups:plan",
    "linkage": "priors.robust_groups:plan_linkage",
    "m-distinct": "evolving.m_distinct:plan",
    "cohorts-evolving": "evolving.evolving_cohorts:plan",
}

AUTO: dict[str, str] = {  # guarantee.model -> the method that `auto` takes; mondrian for all others
    "global": "budget",
    "compromise-safety": "cohorts",
    "m-invariance": "m-invariance",
    "historical-safety": "cor-split",
    "r-robustness": "signatures",
}


def method(policy: Policy) -> Method:
    """The planner that the policy names, or the one that fits its guarantee."""
    name: str = policy.method.name
    if name == "auto":
        name = AUTO.get(policy.guarantee.model, "mondrian")
        if policy.guarantee.model in EVOLVING:
            name = "cohorts-evolving" if policy.guarantee.view == "joint" else "m-distinct"
    module, function = METHODS[name].split(":")
    found: Method = getattr(import_module(f"reveil.plan.{module}"), function)
    return found
