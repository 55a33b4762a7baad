"""What planning hands on: a frozen plan, and what every planner looks like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.errors import Fault, InfeasibleError
from reveil.base.progress import Progress
from reveil.base.words import some
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded


@dataclass(frozen=True, eq=False)
class Plan:
    """Which rows are published together. Nothing has been written when a plan exists."""

    groups: NDArray[np.int32]  # of each input row, numbered from 0; -1 where the row is withheld
    method: str
    counterfeit_groups: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    counterfeit_codes: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, 0), dtype=np.int32))
    stand_ins: NDArray[np.int32] | None = None
    """Two tables: the group of each row whose person is shown with a stand-in for their value, -1 for all others."""
    population_groups: NDArray[np.int32] | None = None  # of each person of the population table
    boxes: tuple[NDArray[np.int32], NDArray[np.int32]] | None = None
    """First and last position that each group shows (groups x columns); None: the smallest around its rows."""
    bundles: NDArray[np.int32] | None = (
        None  # the published number of each row's person or household, -1 where withheld
    )
    people: NDArray[np.int32] | None = None  # two tables: the box of each row, -1 where withheld; None: as they are
    regions: tuple[NDArray[np.int32], NDArray[np.int32]] | None = None
    """First and last position that each box of people shows; None: the smallest around its rows."""
    cuts: pl.DataFrame | None = None  # those of the first release, where boxes of people keep to them
    reasons: Mapping[str, int] = field(default_factory=dict)  # why rows are withheld -> how many
    statistics: Mapping[str, Any] = field(default_factory=dict)

    def renumbered(self, rng: np.random.Generator) -> Plan:
        """The same plan with group numbers in random order, so that they say nothing about how it was made."""
        new = rng.permutation(self.count).astype(np.int32)
        people = self.population_groups
        shown = None if self.boxes is None else (self.boxes[0][np.argsort(new)], self.boxes[1][np.argsort(new)])

        def number(groups: NDArray[np.int32]) -> NDArray[np.int32]:
            return np.where(groups >= 0, new[groups], np.int32(-1)) if len(groups) and len(new) else groups

        return replace(
            self,
            groups=number(self.groups),
            stand_ins=None if self.stand_ins is None else number(self.stand_ins),
            counterfeit_groups=number(self.counterfeit_groups),
            population_groups=None if people is None else number(people),
            boxes=shown,
        )

    def to_dict(self) -> dict[str, Any]:
        """The plan without its rows, as plain JSON values."""
        return {
            "method": self.method,
            "groups": self.count,
            "withheld": self.withheld,
            "withheld_why": dict(self.reasons),
            **({"stand_ins": self.stood_in} if self.stood_in else {}),
            "counterfeits": self.counterfeits,
            "statistics": dict(self.statistics),
        }

    @property
    def count(self) -> int:
        return int(self.groups.max(initial=-1)) + 1

    @property
    def people_groups(self) -> NDArray[np.int32]:
        """The group beside which the person of each row is shown, -1 where they are not shown at all."""
        return self.groups if self.stand_ins is None else np.maximum(self.groups, self.stand_ins)

    @property
    def withheld(self) -> int:
        return int((self.people_groups < 0).sum())

    @property
    def with_stand_in(self) -> NDArray[np.bool_]:
        """Whether the person of each row is shown without their own value."""
        return np.zeros(len(self.groups), dtype=bool) if self.stand_ins is None else self.stand_ins >= 0

    @property
    def stood_in(self) -> int:
        """How many of these there are."""
        return int(self.with_stand_in.sum())

    @property
    def counterfeits(self) -> int:
        return len(self.counterfeit_groups)


class Planner(Protocol):
    """A planner: rows and past in, plan out. It may refuse (InfeasibleError), it never half-plans."""

    def __call__(
        self, encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress
    ) -> Plan: ...


def refuse_nothing(plan: Plan) -> None:
    """A release without anybody in it would be certified, and be worth nothing."""
    if (plan.groups < 0).all():
        reasons = "; ".join(f"{rows:,} withheld: {reason}" for reason, rows in plan.reasons.items())
        message = f"nobody of {some(len(plan.groups), 'row')} could be published{f' ({reasons})' if reasons else ''}"
        remedy = (
            "ask for a weaker promise, smaller cohorts where the policy states guarantee.places, coarser hierarchies "
            'or merged values; method.infeasible = "refuse" says whom it fails for'
        )
        raise InfeasibleError(Fault("R137", "release", message, remedy, len(plan.groups)))
