"""A release between planning and writing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from reveil.history.history import History
from reveil.history.returning import People
from reveil.history.tables import Trace, moving_columns
from reveil.jobs.release import Preview
from reveil.plan.loss import Loss
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy
from reveil.published.imprint import Imprint
from reveil.report.judgement import Origin
from reveil.table.encode import Encoded
from reveil.table.types import decided_types
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
        return {} if numbers is None else {f"input {self.policy.bundled}": int(numbers.max()) + 1}


def preview_of(d: Draft, past: History | None) -> Preview:
    """What would be published next in a series with this past; None: one release that belongs to none."""
    model = d.policy.guarantee.model
    if past is None:
        return Preview(
            1, d.encoded.rows, d.plan, d.loss, model, {}, decided_types(d.frame, d.policy.columns, {}), alone=True
        )
    counts, decided = d.people.returning.counts(), decided_types(d.frame, d.policy.columns, past.types)
    moving = [] if d.trace is None else moving_columns(d.trace, past.traces, d.policy.named("quasi"))
    about = (model, counts, decided, d.policy.method.two_tables)
    return Preview(past.head + 1, d.encoded.rows, d.plan, d.loss, *about, moving=tuple(moving))
