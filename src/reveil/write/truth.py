"""What was put in, for the verifier to compare with what came out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.history.bags import as_people
from reveil.history.memory import signatures_of
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy
from reveil.published.format import GROUP
from reveil.table.encode import Encoded
from reveil.verify.bundles import Bundles
from reveil.verify.comparing import Crowds, Truth
from reveil.verify.covering import Held
from reveil.write.recode import group_labels

Rows = slice | NDArray[np.int64]


def truth_of(
    frame: pl.DataFrame, encoded: Encoded, plan: Plan, policy: Policy, boxes: pl.DataFrame | None = None
) -> Truth:
    """What the publisher says of a planned release; `boxes`: what each box of people shows."""
    if encoded.bags is not None:
        each = as_people(frame, encoded, plan, policy)
        alone = truth_of(each.frame, each.encoded, each.plan, policy)
        return replace(alone, bundles=_bundles(frame, encoded, plan, policy, boxes))
    values = {
        name: pl.DataFrame({"value": frame[name]}).group_by("value").len("rows").cast({"rows": pl.Int64})
        for name in policy.named("sensitive")
    }
    members, quasi, left_out, stand_ins = None, None, None, None
    kept, there = np.flatnonzero(plan.groups >= 0), np.flatnonzero(plan.with_stand_in)
    if encoded.persons is not None:
        left_out = _of_rows(frame, encoded, plan, policy, np.flatnonzero(plan.groups < 0))
        everybody = len(kept) == encoded.rows  # then nothing need be copied
        members = _of_rows(frame, encoded, plan, policy, slice(None) if everybody else kept)
        beside = np.concatenate([kept, there])
        rows, shown = (slice(None), frame) if everybody else (beside, frame[beside])
        quasi = {
            tree.name: Held(shown[tree.name], tree.leaves, encoded.positions[rows, number])
            for number, tree in enumerate(encoded.quasi)
        }
        if len(there):
            stand_ins = pl.DataFrame({"person": encoded.persons[there], "group": plan.people_groups[there]})
    crowds = None
    if boxes is not None and plan.people is not None:
        crowds = Crowds(boxes, plan.people[np.concatenate([kept, there])], plan.cuts)
    signatures = signatures_of(encoded, plan, policy)
    bundles = None if plan.bundles is None else _bundles(frame, encoded, plan, policy)
    about = (members, quasi, left_out, signatures, crowds, bundles)
    return Truth(encoded.rows, encoded.rows - len(kept), values, *about, stand_ins=stand_ins)


def _bundles(
    frame: pl.DataFrame, encoded: Encoded, plan: Plan, policy: Policy, boxes: pl.DataFrame | None = None
) -> Bundles:
    """Whose the rows that are shown are, and what they say; of two tables without their values, which are apart."""
    assert encoded.owners is not None and plan.bundles is not None
    rows = np.flatnonzero(plan.groups >= 0)
    shown = frame[rows]
    quasi = {
        tree.name: Held(shown[tree.name], tree.leaves, encoded.positions[rows, number])
        for number, tree in enumerate(encoded.quasi)
    }
    if boxes is not None and plan.people is not None:
        own = policy.named("insensitive") if policy.method.insensitive == "own" else ()
        beside = pl.DataFrame([pl.Series(GROUP, plan.groups[rows].astype(np.int64)), *shown.select(own)])
        return Bundles(encoded.owners[rows], plan.bundles[rows], plan.people[rows], boxes, quasi, beside)
    labels = group_labels(encoded, plan, policy)
    cells = pl.DataFrame([column.alias(name) for name, column in labels.items()])
    values = shown.select(*policy.named("sensitive"), *policy.named("insensitive"))
    return Bundles(encoded.owners[rows], plan.bundles[rows], plan.groups[rows], cells, quasi, values)


def _of_rows(frame: pl.DataFrame, encoded: Encoded, plan: Plan, policy: Policy, rows: Rows) -> pl.DataFrame:
    """Person, group (-1: not shown) and values of these rows."""
    assert encoded.persons is not None
    held = {name: frame[name] if isinstance(rows, slice) else frame[name][rows] for name in policy.named("sensitive")}
    return pl.DataFrame({"person": encoded.persons[rows], "group": plan.groups[rows], **held})
