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
from reveil.plan.cutting.trees import lay_end_to_end
from reveil.plan.plan import Plan, Planner
from reveil.plan.steady.cells import FixedCells, cut_cells
from reveil.plan.steady.stable_boxes import boxes_of_cells
from reveil.policy.guarantee import Guarantee
from reveil.policy.method import MethodSection
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded

STREAM = 11  # of the lots of a release: these are drawn for nothing else


def in_boxes(planner: Planner) -> Planner:
    """The planner of groups, for which k is none of its business, and boxes around the people whom it shows."""

    def plan(encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress) -> Plan:
        if policy.method.steady:
            groups = planner(encoded, history, without_k(policy), seed=seed, progress=progress)
            return in_fixed_cells(groups, encoded, history, policy)
        with ThreadPoolExecutor(1) as beside:  # in most releases everybody is shown: their boxes need not wait
            boxing = beside.submit(box_people, encoded, np.arange(encoded.rows), policy, seed)
            groups = planner(encoded, history, without_k(policy), seed=seed, progress=progress)
        shown = np.flatnonzero(groups.people_groups >= 0)
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
    k = least_people_of(policy, len(shown))
    boxes = np.full(encoded.rows, -1, dtype=np.int32)
    if len(shown):
        part, wanted = people_alone(encoded, shown, policy, k)
        boxes[shown] = mondrian.plan(part, History(), wanted, seed=seed, progress=silent).groups
    return boxes


def in_fixed_cells(groups: Plan, encoded: Encoded, history: History, policy: Policy) -> Plan:
    """The plan with boxes of the cells of the first release, which this may be."""
    shown = np.flatnonzero(groups.people_groups >= 0)
    if not len(shown):
        return groups
    k = least_people_of(policy, len(shown))
    part, wanted = people_alone(encoded, shown, policy, k)
    cells = cut_cells(part, wanted) if history.cuts.is_empty() else FixedCells(history.cuts)
    boxes, regions = boxes_of_cells(cells, encoded, shown, k, lay_end_to_end(encoded, wanted))
    return replace(groups, people=boxes, regions=regions, cuts=cells.frame)


def least_people_of(policy: Policy, shown: int) -> int:
    """How many people share a box at least; refused where fewer are to be shown."""
    k = policy.guarantee.require(KAnonymity).k
    if 0 < shown < k:
        message = f"{some_people(shown)} would be shown, and a box is shared by at least k = {k}"
        remedy = "publish when more people are there, lower guarantee.k, or begin a series with people = exact"
        raise InfeasibleError(Fault("R681", "guarantee.k", message, remedy, shown))
    return k


def people_alone(encoded: Encoded, shown: I64, policy: Policy, k: int) -> tuple[Encoded, Policy]:
    """These rows without values, and what boxes of them must keep."""
    part = Encoded(encoded.quasi, encoded.positions[shown], (), np.empty((len(shown), 0), dtype=np.int32))
    method = MethodSection(cuts=policy.method.cuts, recode=policy.method.recode)
    return part, policy.model_copy(update={"guarantee": Guarantee.of("k-anonymity", k=k), "method": method})
