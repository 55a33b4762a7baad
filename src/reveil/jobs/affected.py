"""Who of a table a release does not show, and why: for the eyes of whoever keeps the table, and for nobody else.

The ledger knows people by keyed hashes alone, so that the table is needed to name them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from reveil.base.arrays import I64
from reveil.base.bags import rows_in
from reveil.base.errors import Fault, InputError
from reveil.base.text import plain_text
from reveil.base.words import some_people
from reveil.guarantees.lasting import ManyValues
from reveil.history.bags import one_row_each
from reveil.history.history import History
from reveil.history.recorded import history_of
from reveil.history.returning import hashes_of
from reveil.jobs.past import Past
from reveil.jobs.results import release_of
from reveil.plan.people import without_k
from reveil.plan.persistent.bags import of_those_with
from reveil.plan.persistent.closed_cohorts import LOST_PLACE
from reveil.plan.persistent.eligible import OFTEN_ENOUGH
from reveil.plan.persistent.waiting import waiting_of
from reveil.policy.guarantee import Guarantee
from reveil.policy.policy import Policy
from reveil.policy.reasons import FOR_GOOD, REASONS
from reveil.table.roles import read_prepared
from reveil.table.where import Where

WAITS, OUT, LEFT = "waits", "out for good", "not in this release"


@dataclass(frozen=True)
class Affected:
    """People whom a release does not show, by identifier: how they stand, and why."""

    number: int
    people: tuple[tuple[str, str, str], ...]  # identifier, state, reason; in the order of the table
    strangers: int  # people of the release, not shown, who are not in this table

    def to_dict(self) -> dict[str, Any]:
        listed = [{"person": person, "state": state, "reason": reason} for person, state, reason in self.people]
        return {"release": self.number, "people": listed, "not in this table": self.strangers}

    def lines(self) -> list[str]:
        """For the screen, with a warning: this names people."""
        head = f"{some_people(len(self.people))} of this table are not shown by release {self.number}"
        more = [f"{some_people(self.strangers)} more are not in this table."] if self.strangers else []
        named = [f"  {person}: {state} ({reason})" for person, state, reason in self.people]
        alone = " This names people: it is for you alone." if self.people else ""
        return [f"{head}.{alone}", *named, *more]


def affected_by(
    past: Past, number: int | None, table: Any, accept: Sequence[str] = (), where: Where | None = None
) -> Affected:
    """The people of a table whom a release (the latest) does not show."""
    release = release_of(past, number)
    assert release.number is not None
    history, policy = history_of(past.ledger), past.policy
    _, frame = read_prepared(table, policy, series=True, types=history.types, accept=accept, where=where)
    frame = one_row_each(frame, policy) if policy.bundled else frame
    persons = history.number(hashes_of(frame, past.ledger.key, policy))
    members = history.members.filter(pl.col("release") == release.number)
    strange = int((~np.isin(persons, members["person"].cast(pl.Int64).to_numpy())).sum())
    if strange:
        message = f"is not the table of release {release.number}: {some_people(strange)} of it were not in that table"
        remedy = f"name the table that release {release.number} was made from, or the release of this table"
        raise InputError(Fault("R541", "table", message, remedy, strange))
    away = members["person"].cast(pl.Int64).to_numpy()[release.groups < 0]
    rows = np.flatnonzero(np.isin(persons, away))
    told = _told(history.until(release.number + 1), persons[rows], policy, dict(release.certificate.withheld))
    assert policy.followed is not None  # or there would be no series
    names = [plain_text(name) for name in frame[policy.followed].gather(rows)]
    listed = tuple((name, *why) for name, why in zip(names, told, strict=True))
    return Affected(release.number, listed, len(away) - len(rows))


def _why(history: History, persons: I64, policy: Policy, promise: Guarantee) -> list[str]:
    """What each of these people waits for, among all, or among those who show as many rows."""
    if not policy.bundled:
        return waiting_of(history, persons, promise).why(persons)
    (column,), why = policy.named("sensitive"), dict[int, str]()
    for each in {rows_in(bag) for bag in history.codebook[column]}:
        theirs = of_those_with(each, history, column)
        mine = persons[np.isin(persons, theirs.members["person"].cast(pl.Int64).to_numpy())]
        why |= dict(zip(mine.tolist(), waiting_of(theirs, mine, promise).why(mine), strict=True))
    return [why[person] for person in persons.tolist()]


def _told(history: History, persons: I64, policy: Policy, reasons: dict[str, int]) -> list[tuple[str, str]]:
    """State and reason of each of these people; `reasons` are those that the certificate counts."""
    others = [reason for reason in reasons if reason not in REASONS]
    rest = OUT if {*others} <= {LOST_PLACE, OFTEN_ENOUGH} else LEFT
    why = (rest, " or ".join(others)) if others else (LEFT, " or ".join(reasons))
    if policy.guarantee.find(ManyValues) is None:
        return [why] * len(persons)
    promise = without_k(policy).guarantee if policy.method.boxed else policy.guarantee
    waited = _why(history, persons, policy, promise)
    return [
        (OUT if one in REASONS[FOR_GOOD:] else WAITS, one) if one and (one in reasons or not others) else why
        for one in waited
    ]
