"""Conditions on all classes of a table together, kept by cutting: groups as small as the whole of them may have.

Groups of `enough` rows keep every such condition for certain. Smaller ones lose less and may keep it as well, because
groups are mostly larger than they must be: the least size with which they do is looked for by halving.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reveil.base.errors import InfeasibleError
from reveil.base.progress import Progress
from reveil.guarantees.k_anonymity import KAnonymity
from reveil.history.history import History
from reveil.plan.cutting.conditions.contract import conditions_of, keeps_whole
from reveil.plan.plan import Plan, Planner
from reveil.policy.guarantee import Guarantee
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded


def enough_rows(guarantee: Guarantee) -> int:
    """How many rows a class needs so that the table keeps every condition on all of its classes; 1 without any."""
    return max([1, *(condition.enough(asked) for condition, asked in conditions_of(guarantee))])


def by_halving(planner: Planner) -> Planner:
    """The planner with the least size of groups with which the table as a whole keeps what is asked of it."""

    def plan(encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress) -> Plan:
        low, high, best = 1, enough_rows(policy.guarantee), None
        _refuse_table(encoded, policy.guarantee)  # for what is asked, and not for a size that is tried
        while low < high or best is None:
            least = (low + high) // 2
            made = planner(encoded, history, _with_least(policy, least), seed=seed, progress=progress)
            sizes = np.bincount(made.groups[made.groups >= 0])
            if least == high or keeps_whole(policy.guarantee, sizes):
                high, best = least, made
            else:
                low = least + 1
        return replace(best, statistics={**best.statistics, "least rows of a group": high})

    return plan


def _refuse_table(encoded: Encoded, guarantee: Guarantee) -> None:
    """Say which conditions not even the whole table keeps."""
    asked = conditions_of(guarantee)
    if told := [fault for condition, parameters in asked for fault in condition.table_faults(parameters, encoded)]:
        raise InfeasibleError(told)


def _with_least(policy: Policy, least: int) -> Policy:
    """The policy with groups of so many rows at least."""
    asked = policy.guarantee.find(KAnonymity)
    if least <= (1 if asked is None else asked.k):
        return policy
    others = tuple(one for one in policy.guarantee.conditions if not isinstance(one, KAnonymity))
    promise = policy.guarantee.model_copy(update={"conditions": (KAnonymity(k=least), *others)})
    return policy.model_copy(update={"guarantee": promise})
