"""What a plan costs: the certainty that recipients lose, column by column, and the sizes of the groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.hierarchies.tree import ANY, Hierarchy
from reveil.plan.cutting.boxes import boxes, distinct_runs
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded


@dataclass(frozen=True)
class Loss:
    """Normalised certainty penalty (0: exact, 1: nothing is said) and class structure of a planned release."""

    columns: Mapping[str, float]  # mean over all input rows; a withheld row counts 1
    mean: float  # over all quasi-identifier cells
    discernibility: int  # over classes of rows that look alike; a row that was withheld or shows nothing costs them all
    average_group: float  # rows of such a class
    sizes: Mapping[int, int]  # rows in a group -> how many such groups (counterfeits are rows)

    def to_dict(self) -> dict[str, Any]:
        return {
            "ncp": {name: round(value, 6) for name, value in self.columns.items()},
            "mean_ncp": round(self.mean, 6),
            "discernibility": self.discernibility,
            "average_group": round(self.average_group, 3),
        }


def loss_of(encoded: Encoded, plan: Plan, policy: Policy) -> Loss:
    """The loss of publishing this plan in the form that the policy asks for."""
    alike = _alike(plan, policy)
    count = int(alike.max(initial=-1)) + 1
    people = np.bincount(alike[alike >= 0], minlength=count)
    counterfeits = np.bincount(plan.counterfeit_groups, minlength=plan.count)
    rows = people if policy.method.two_tables else people + counterfeits[:count]
    columns, blank = _columns(encoded, plan, policy, alike, people)
    suppressed = plan.withheld + int(people[blank].sum())
    classes = rows[~blank].astype(object)
    return Loss(
        columns=columns,
        mean=float(np.mean(list(columns.values()))),
        discernibility=int((classes**2).sum()) + suppressed * encoded.rows,
        average_group=float(classes.mean()) if len(classes) else 0.0,
        sizes=_sizes(np.bincount(plan.groups[plan.groups >= 0], minlength=plan.count) + counterfeits),
    )


def _sizes(groups: NDArray[Any]) -> dict[int, int]:
    distinct, counts = np.unique(groups, return_counts=True)
    return dict(zip(distinct.tolist(), counts.tolist(), strict=True))


def _alike(plan: Plan, policy: Policy) -> NDArray[Any]:
    """The class of each row: its group, or in a table of people its box."""
    return plan.people if policy.method.two_tables and plan.people is not None else plan.groups


def _columns(
    encoded: Encoded, plan: Plan, policy: Policy, alike: NDArray[Any], people: NDArray[Any]
) -> tuple[dict[str, float], NDArray[np.bool_]]:
    """Mean loss of each quasi-identifier over the rows of the table, and the classes that show nothing but `*`."""
    parted, count = policy.method.two_tables, len(people)
    if parted and plan.people is None:  # published as they are
        return {h.name: plan.withheld / max(1, encoded.rows) for h in encoded.quasi}, np.zeros(count, dtype=bool)
    kept, blank = alike >= 0, np.ones(count, dtype=bool)
    low, high = (plan.regions if parted else plan.boxes) or boxes(alike, encoded.positions, count)
    columns = {}
    for number, hierarchy in enumerate(encoded.quasi):
        if policy.method.recode == "sets" and not hierarchy.free:
            losses = _set_losses(hierarchy, alike[kept], encoded.positions[kept, number], count)
            blank[:] = False  # a set names its values
        else:
            ends = low[:, number], high[:, number]
            if policy.method.recode == "sets" and hierarchy.has_missing:  # shown beside the run, not in it
                ends = _known_ends(alike[kept], encoded.positions[kept, number], count)
            losses, starred = _run_losses(hierarchy, *ends)
            blank &= starred
        columns[hierarchy.name] = float((losses @ people + plan.withheld) / max(1, encoded.rows))
    return columns, blank


def _set_losses(hierarchy: Hierarchy, groups: NDArray[Any], positions: NDArray[Any], count: int) -> NDArray[np.float64]:
    """A set names leaves: intervals of numbers lose their widths, others the number of values that they stand for."""
    pairs = np.unique(groups.astype(np.int64) * len(hierarchy) + positions)
    leaf = pairs % len(hierarchy)
    if hierarchy.amount is None:
        widths = np.bincount(pairs // len(hierarchy), hierarchy.cost[hierarchy.leaf_node[leaf]], minlength=count)
        return widths.astype(np.float64)
    covered = np.bincount(pairs // len(hierarchy), hierarchy.amount[leaf].astype(np.float64), minlength=count)
    return np.maximum(covered - 1, 0) / max(1, int(hierarchy.amount.sum()) - 1)


def _known_ends(groups: NDArray[Any], positions: NDArray[Any], count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The first and the last value of each class that is not missing."""
    known = positions > 0
    low, high = np.full(count, np.iinfo(np.int32).max), np.zeros(count, dtype=np.int64)
    np.minimum.at(low, groups[known], positions[known])
    np.maximum.at(high, groups[known], positions[known])
    return np.minimum(low, high), high


def _run_losses(
    hierarchy: Hierarchy, low: NDArray[Any], high: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The loss of each class, and whether it is shown as `*`."""
    runs, index = distinct_runs(low, high, len(hierarchy))
    losses = np.array([hierarchy.loss(*run) for run in runs], dtype=np.float64)
    starred = np.array([hierarchy.label(*run) == ANY for run in runs], dtype=bool)
    return losses[index], starred[index]
