"""Which planner keeps which promise: names to lazily loaded functions."""

from __future__ import annotations

from importlib import import_module

from reveil.guarantees.descriptor import CUTTING
from reveil.plan.bundles import in_bundles
from reveil.plan.crowds import in_crowds, least_people
from reveil.plan.cutting.whole import by_halving, enough_rows
from reveil.plan.people import in_boxes
from reveil.plan.persistent.bags import in_series
from reveil.plan.plan import Planner
from reveil.policy.method import SCHEMES
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


def method(policy: Policy) -> Planner:
    """The planner that the policy names, or the one that fits its guarantee."""
    name = policy.guarantee.methods[0] if policy.method.name == "auto" else policy.method.name
    module, function = METHODS[name].split(":")
    planner: Planner = getattr(import_module(f"reveil.plan.{module}"), function)
    if name in CUTTING and name not in SCHEMES and enough_rows(policy.guarantee) > 1:
        planner = by_halving(planner)
    if policy.bundled:
        return in_series(planner) if policy.promises_series else in_bundles(planner)
    if policy.method.boxed:
        return in_boxes(planner)
    crowds = policy.guarantee.descriptor.counterfeits and least_people(policy.guarantee) > 1
    return in_crowds(planner) if crowds else planner
