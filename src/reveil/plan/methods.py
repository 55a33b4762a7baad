"""Which planner keeps which promise: names to lazily loaded functions."""

from __future__ import annotations

from importlib import import_module

from reveil.plan.contract import Method
from reveil.policy import Policy
from reveil.promise import EVOLVING

METHODS: dict[str, str] = {  # method.name -> module:function
    "mondrian": "mondrian:plan",
    "full-domain": "fulldomain:plan",
    "subtree": "subtree:plan",
    "sibling": "subtree:plan",
    "cell": "cells:plan",
    "budget": "globally:plan",
    "cohorts": "cohorts:plan",
    "m-invariance": "invariance:plan",
    "cor-split": "corsplit:plan",
    "signatures": "robust:plan",
    "linkage": "robust:plan_linkage",
    "m-distinct": "distinct:plan",
    "cohorts-evolving": "evolving:plan",
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
