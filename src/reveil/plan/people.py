"""Boxes of people: the quasi-identifiers of a table of people, which has no values beside them.

People and values are apart, so a box need not follow a group: people are cut into boxes of at least k by their
quasi-identifiers alone, anew in each release, and neither values nor groups are looked at. Rows are shuffled before
they are cut, because the order in which a table comes may follow its values.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from reveil.base.arrays import I32, I64
from reveil.base.errors import Fault, InfeasibleError
from reveil.base.lots import generator
from reveil.base.progress import Progress, silent
from reveil.base.words import some_people
from reveil.guarantees.k_anonymity import KAnonymity
from reveil.history.history import History
from reveil.plan.cutting import mondrian
from reveil.plan.plan import Plan, Planner
from reveil.policy.guarantee import Guarantee
from reveil.policy.method import MethodSection
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded

STREAM = 11  # of the lots of a release: these are drawn for nothing else


def in_boxes(planner: Planner) -> Planner:
    """The planner of groups, for which k is none of its business, and boxes around the people whom it shows."""

    def plan(encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress) -> Plan:
        with ThreadPoolExecutor(1) as beside:  # in most releases everybody is shown: their boxes need not wait
            boxing = beside.submit(box_people, encoded, np.arange(encoded.rows), policy, seed)
            groups = planner(encoded, history, without_k(policy), seed=seed, progress=progress)
        shown = np.flatnonzero(groups.groups >= 0)
        people = boxing.result() if len(shown) == encoded.rows else box_people(encoded, shown, policy, seed)
        return replace(groups, people=people)

    return plan


def without_k(policy: Policy) -> Policy:
    """The policy as the planner of groups sees it: k is about boxes of people."""
    promise = policy.guarantee
    others = tuple(one for one in promise.conditions if not isinstance(one, KAnonymity))
    stated = {key: value for key, value in promise.stated.items() if key != "k"}
    return policy.model_copy(update={"guarantee": promise.model_copy(update={"conditions": others, "stated": stated})})


def box_people(encoded: Encoded, rows: I64, policy: Policy, seed: int) -> I32:
    """The box of each of these rows, -1 for all others; every box has at least k people."""
    shown = generator(seed, STREAM).permutation(rows)
    k = policy.guarantee.require(KAnonymity).k
    if 0 < len(shown) < k:
        message = f"{some_people(len(shown))} would be shown, and a box is shared by at least k = {k}"
        remedy = "publish when more people are there, lower guarantee.k, or begin a series with people = exact"
        raise InfeasibleError(Fault("R681", "guarantee.k", message, remedy, len(shown)))
    boxes = np.full(encoded.rows, -1, dtype=np.int32)
    if len(shown):
        part = Encoded(encoded.quasi, encoded.positions[shown], (), np.empty((len(shown), 0), dtype=np.int32))
        wanted = policy.model_copy(
            update={
                "guarantee": Guarantee.of("k-anonymity", k=k),
                "method": MethodSection(cuts=policy.method.cuts, recode=policy.method.recode),
            }
        )
        boxes[shown] = mondrian.plan(part, History(), wanted, seed=seed, progress=silent).groups
    return boxes
