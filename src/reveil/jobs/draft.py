"""A release between planning and writing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from reveil.history.returning import People
from reveil.history.tables import Trace
from reveil.plan.loss import Loss
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy
from reveil.published.imprint import Imprint
from reveil.report.judgement import Origin
from reveil.table.encode import Encoded
from reveil.verify.verify import Bench

FIXED = (
    "The series has begun and keeps its promise: another [columns], [values] or [guarantee] is for a new series in a "
    "new home. method.infeasible may be changed now."
)


@dataclass(frozen=True, eq=False)
class Draft:
    """A planned release: everything but the files."""

    policy: Policy
    frame: pl.DataFrame  # prepared: policy order and types
    encoded: Encoded
    plan: Plan
    loss: Loss
    rng: np.random.Generator
    bench: Bench
    people: People
    imprint: Imprint | None  # in a series
    trace: Trace | None  # in a series
    origin: Origin  # for the publisher's report
    corrected: int = 0  # people whose first recorded value goes on being shown

    @property
    def owners(self) -> dict[str, int]:
        """Who was put in, where somebody may have several rows."""
        numbers = self.encoded.owners
        return {} if numbers is None else {f"{self.policy.bundled} put in": int(numbers.max()) + 1}
