"""Which planner keeps which promise: names to lazily loaded functions."""

from __future__ import annotations

from importlib import import_module

from reveil.plan.contract import Method
from reveil.policy import Policy
from reveil.promise import EVOLVING

METHODS: dict[str, str] = {  # method.name -> module:function
    "mondrian": "cutting.mondrian:plan",
    "full-domain": "schemes.fulldomain:plan",
    "subtree": "schemes.subtree:plan",
    "sibling": "schemes.subtree:plan",
    "cell": "schemes.cells:plan",
    "budget": "budgets.globally:plan",
    "cohorts": "lasting.cohorts:plan",
    "m-invariance": "lasting.invariance:plan",
    "cor-split": "lasting.corsplit:plan",
    "signatures": "priors.robust:plan",
    "linkage": "priors.robust:plan_linkage",
    "m-distinct": "rules.distinct:plan",
    "cohorts-evolving": "rules.evolving:plan",
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
