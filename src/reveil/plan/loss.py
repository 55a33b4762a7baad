"""What a plan costs: the certainty that recipients lose, column by column, and the sizes of the groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.hierarchies.tree import Hierarchy
from reveil.plan.cutting.boxes import boxes, distinct_runs
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded


@dataclass(frozen=True)
class Loss:
    """Normalised certainty penalty (0: exact, 1: nothing is said) and class structure of a planned release."""

    columns: Mapping[str, float]  # mean over all input rows; a withheld row counts 1
    mean: float  # over all quasi-identifier cells
    discernibility: int
    average_group: float
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
    kept = plan.groups >= 0
    groups = plan.groups[kept]
    rows = np.bincount(groups, minlength=plan.count)
    sizes = rows + np.bincount(plan.counterfeit_groups, minlength=plan.count)
    columns = _columns(encoded, plan, policy)
    distinct, counts = np.unique(sizes, return_counts=True)
    return Loss(
        columns=columns,
        mean=float(np.mean(list(columns.values()))),
        discernibility=int((sizes.astype(object) ** 2).sum()) + plan.withheld * encoded.rows,
        average_group=float(sizes.mean()) if plan.count else 0.0,
        sizes=dict(zip(distinct.tolist(), counts.tolist(), strict=True)),
    )


def _columns(encoded: Encoded, plan: Plan, policy: Policy) -> dict[str, float]:
    """Mean loss of each quasi-identifier: of the groups of one table, or of the boxes of a table of people."""
    parted = policy.method.two_tables
    if parted and plan.people is None:  # published as they are
        return {hierarchy.name: plan.withheld / max(1, encoded.rows) for hierarchy in encoded.quasi}
    alike = plan.people if parted and plan.people is not None else plan.groups
    count = int(alike.max(initial=-1)) + 1
    kept = alike >= 0
    rows = np.bincount(alike[kept], minlength=count)
    low, high = (None if parted else plan.boxes) or boxes(alike, encoded.positions, count)
    columns = {}
    for number, hierarchy in enumerate(encoded.quasi):
        if policy.method.recode == "sets" and not hierarchy.free:
            per_group = _set_losses(hierarchy, alike[kept], encoded.positions[kept, number], count)
        else:
            per_group = _run_losses(hierarchy, low[:, number], high[:, number])
        columns[hierarchy.name] = float((per_group @ rows + plan.withheld) / max(1, encoded.rows))
    return columns


def _set_losses(hierarchy: Hierarchy, groups: NDArray[Any], positions: NDArray[Any], count: int) -> NDArray[np.float64]:
    pairs = np.unique(groups.astype(np.int64) * len(hierarchy) + positions)
    distinct = np.bincount(pairs // len(hierarchy), minlength=count)
    return (distinct - 1) / max(1, len(hierarchy) - 1)


def _run_losses(hierarchy: Hierarchy, low: NDArray[Any], high: NDArray[Any]) -> NDArray[np.float64]:
    runs, index = distinct_runs(low, high, len(hierarchy))
    return np.array([hierarchy.loss(*run) for run in runs])[index]
