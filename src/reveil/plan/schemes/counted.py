"""Any recoding that treats all instances of a value alike, checked on counts: what it withholds and what it loses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import F64, I32
from reveil.plan.cutting import admit
from reveil.plan.cutting.conditions.contract import keeps_whole
from reveil.plan.cutting.mondrian import admissible
from reveil.plan.cutting.values import Rows, Tests
from reveil.plan.plan import Plan
from reveil.plan.schemes.classes import Recoding, Tally, failing, least_withheld, number, recoding, tally
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded

OF_CLASSES = ("discernibility", "average-class")


@dataclass(frozen=True)
class Checked:
    """What a recoding costs: rows that would be withheld, and the loss (infinite where they are too many)."""

    withheld: int
    loss: float
    least: float = 0.0  # rows that every finer recoding withholds, too
    coarser: float = 0.0  # the least that any coarser recoding loses


@dataclass(frozen=True, eq=False)
class RecodingProblem:
    """The rows to recode and what every class must satisfy."""

    encoded: Encoded
    policy: Policy
    rows: Rows  # positions, then sensitive codes where a condition looks at them
    order: I32  # the number of each row in the table
    tests: Tests
    allowance: int  # how many rows may be withheld
    withheld: int  # rows of too frequent values, withheld before

    @classmethod
    def of(cls, encoded: Encoded, policy: Policy, seed: int) -> RecodingProblem:
        """The problem of a policy, or a refusal where no recoding can solve it."""
        (rows, order), tests, withheld = admissible(encoded, policy, seed)
        width = len(encoded.quasi) + (encoded.codes.shape[1] if len(tests.kind) else 0)
        allowance = max(0, floor(policy.method.suppress * encoded.rows) - withheld)
        return cls(encoded, policy, rows[:, :width], order, tests, allowance, withheld)

    @cached_property
    def base(self) -> Tally:
        """The different rows, with their numbers."""
        return self.tally(self.rows, None, recoding([h.leaf_node for h in self.encoded.quasi]))

    @cached_property
    def leaves(self) -> list[F64]:
        """The share of rows at each leaf of each column."""
        return [
            np.bincount(self.base.rows[:, c], self.base.weight, minlength=len(h)) / max(1, len(self.rows))
            for c, h in enumerate(self.encoded.quasi)
        ]

    @cached_property
    def values(self) -> Recoding:
        return recoding([np.arange(len(column.values)) for column in self.encoded.sensitive])

    def tally(self, rows: Rows, weight: Any, how: Recoding) -> Tally:
        """The rows as they are recoded, counted; sensitive values as they are."""
        sensitive = rows.shape[1] - len(self.encoded.quasi)
        both = Recoding(how.label + self.values.label[:sensitive], how.stand_in + self.values.stand_in[:sensitive])
        return tally(rows, weight, both, sensitive)

    def failing(self, counted: Tally, how: Recoding) -> tuple[I32, NDArray[np.bool_], NDArray[np.int64]]:
        """The class of each row of a tally, which classes may not be published, and their sizes.

        Conditions that compare with what is published: withhold, look again at the others, until none fails, or until
        too many do. A class that failed is not tried again, so there are only ever more of them.
        """
        ids, count = number(counted.rows, how)
        bad, sizes = failing(counted, ids, count, self.tests)
        fresh = bad.any() and self.policy.guarantee.relative
        while fresh and self.allowance >= sizes[bad].sum() < len(self.rows):
            tests = admit.tests_of(self.encoded, self.policy, self._totals(counted, counted.weight * ~bad[ids]))
            worse = bad | failing(counted, ids, count, tests)[0]
            fresh, bad = (worse != bad).any(), worse
        return ids, bad, sizes

    def _totals(self, counted: Tally, weight: NDArray[np.int64]) -> list[NDArray[Any]]:
        """How many rows have each code of each sensitive column."""
        first = len(self.encoded.quasi)
        return [
            np.bincount(counted.rows[:, first + n], weight, minlength=len(column.values))
            for n, column in enumerate(self.encoded.sensitive)
        ]

    def check(self, counted: Tally, how: Recoding, cost: Sequence[F64], weight: F64) -> Checked:
        """What a recoding withholds and loses; `cost` of each leaf in each column, `weight` of each column."""
        ids, bad, sizes = self.failing(counted, how)
        withheld, least = int(sizes[bad].sum()), 0.0
        if withheld:
            least = float(withheld) if self.falls else self._least_withheld(counted, ids, sizes)
        coarser = self.loss_of_classes(sizes, 0) if self.of_classes else 0.0  # there, these classes are joined
        if withheld > self.allowance or withheld == len(self.rows):
            return Checked(withheld, np.inf, least, coarser)
        if not keeps_whole(self.policy.guarantee, sizes[~bad]):
            return Checked(withheld, np.inf, least, coarser)
        if self.of_classes:
            return Checked(withheld, self.loss_of_classes(sizes[~bad], withheld), least, coarser)
        gone, times = counted.rows[bad[ids]], counted.weight[bad[ids]] / max(1, len(self.rows))
        losses = [
            share @ column + times @ (1 - column[gone[:, c]])
            for c, (share, column) in enumerate(zip(self.leaves, cost, strict=True))
        ]
        return Checked(withheld, float(self.total(losses, weight)), least)

    @property
    def of_classes(self) -> bool:
        """Whether what is lost follows from the sizes of the classes, and not from their cells."""
        return self.policy.method.loss in OF_CLASSES

    def loss_of_classes(self, sizes: NDArray[np.int64], withheld: int) -> float:
        """Discernibility over its largest value, or rows of the table per class over the rows."""
        if self.policy.method.loss == "average-class":
            return 1 / len(sizes)
        rows = len(self.rows)
        return float((sizes.astype(np.float64) ** 2).sum() + withheld * rows) / rows**2

    @cached_property
    def falls(self) -> bool:
        """Whether the rows that must be withheld can only become fewer from a recoding to a coarser one."""
        if self.allowance == 0:
            return self.policy.guarantee.monotone
        return all(condition.growing for condition in self.policy.guarantee.conditions)

    def _least_withheld(self, counted: Tally, ids: I32, sizes: NDArray[np.int64]) -> float:
        slack = self.allowance / max(1, len(self.rows))
        return least_withheld(counted, ids, len(sizes), sizes, self.tests, slack)

    def total(self, columns: Sequence[Any], weight: F64) -> Any:
        """Losses per column (numbers or arrays) as one: their weighted mean, or what the geometric mean ranks by.

        Or the largest of them, each times its weight over the largest weight.
        """
        if self.policy.method.loss == "maximum":
            top = float(weight.max(initial=0.0)) or 1.0
            return reduce(np.maximum, (share / top * column for share, column in zip(weight, columns, strict=True)))
        if self.policy.method.loss == "geometric":
            columns = [np.log1p(column) for column in columns]
        return sum(share * column for share, column in zip(weight, columns, strict=True))

    def plan(self, nodes: Sequence[NDArray[Any]], statistics: dict[str, Any]) -> Plan:
        """The plan that shows these nodes, and withholds what may not be shown."""
        how, quasi = recoding(nodes), self.encoded.quasi
        ids, bad, _ = self.failing(Tally(self.rows, np.ones(len(self.rows), dtype=np.int64)), how)
        stay = ~bad[ids]
        _, first, mine = np.unique(ids[stay], return_index=True, return_inverse=True)
        groups = np.full(self.encoded.rows, -1, dtype=np.int32)
        groups[self.order[stay]] = mine
        model = self.encoded.positions[self.order[stay][first]]  # a row of each group
        own = [nodes[c][model[:, c]] for c in range(len(quasi))]
        reasons = {
            "too frequent value": self.withheld,
            "in a class that may not be published": int((~stay).sum()),
        }
        return Plan(
            groups=groups,
            method=self.policy.method.name,
            boxes=(
                np.column_stack([h.lo[node] for h, node in zip(quasi, own, strict=True)]),
                np.column_stack([h.hi[node] for h, node in zip(quasi, own, strict=True)]),
            ),
            reasons={reason: rows for reason, rows in reasons.items() if rows},
            statistics=statistics,
        )
