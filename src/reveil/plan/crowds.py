"""k counts people: a group in which fewer than k people stand, beside however many counterfeits, is not shown.

Who is in a group, and how many of its rows are counterfeits, is public. So whether a group is shown follows from who is
there, and leaving it out tells nobody's value. In closed cohorts a place is kept: the group is shown again as soon as
enough of its people are back.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reveil.base.errors import Fault, InfeasibleError
from reveil.base.progress import Progress
from reveil.base.words import some, some_people
from reveil.guarantees.k_anonymity import KAnonymity
from reveil.history.history import History
from reveil.plan.plan import Plan, Planner
from reveil.policy.guarantee import Guarantee
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded

TOO_FEW = "fewer than k people of their group are there"


def least_people(guarantee: Guarantee) -> int:
    """How many people a group must have.

    >>> least_people(Guarantee.of("m-invariance", m=4, k=6)), least_people(Guarantee.of("m-invariance", m=4))
    (6, 1)
    """
    asked = guarantee.find(KAnonymity)
    return 1 if asked is None else asked.k


def in_crowds(planner: Planner) -> Planner:
    """The planner, with groups of too few people left out."""

    def plan(encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress) -> Plan:
        planned = planner(encoded, history, policy, seed=seed, progress=progress)
        return leave_out(planned, least_people(policy.guarantee), policy.method.infeasible == "refuse")

    return plan


def leave_out(plan: Plan, k: int, refuse: bool) -> Plan:
    """The plan without groups of fewer than k people, or a refusal that says how many there are."""
    shown = plan.groups[plan.groups >= 0]
    people = np.bincount(shown, minlength=plan.count)
    few = people < k
    if not few.any():
        return plan
    hidden = int(people[few].sum())
    if refuse:
        raise InfeasibleError(_fault(int(few.sum()), plan.count, hidden, k))
    number = np.where(few, -1, np.cumsum(~few) - 1).astype(np.int32)
    groups = np.where(plan.groups >= 0, number[plan.groups], np.int32(-1))
    kept = ~few[plan.counterfeit_groups]
    beside = None
    if plan.stand_ins is not None:
        beside = np.where(plan.with_stand_in, number[plan.stand_ins], np.int32(-1))
        hidden += plan.stood_in - int((beside >= 0).sum())
    return replace(
        plan,
        groups=groups,
        stand_ins=beside,
        counterfeit_groups=number[plan.counterfeit_groups[kept]],
        counterfeit_codes=plan.counterfeit_codes[kept],
        boxes=None if plan.boxes is None else (plan.boxes[0][~few], plan.boxes[1][~few]),
        reasons={**plan.reasons, TOO_FEW: hidden},
    )


def _fault(groups: int, every: int, people: int, k: int) -> Fault:
    message = (
        f"in {groups:,} of {some(every, 'group')} fewer than k = {k} people are there, {some_people(people)} in all; "
        "counterfeits do not count"
    )
    remedy = (
        "leave k out or lower it (the promise about values stays as it is), begin a series with a larger m, or set "
        'method.infeasible = "withhold": such a group is left out of this release, whatever the values of its people'
    )
    return Fault("R448", "guarantee.k", message, remedy, people)
