"""Closed cohorts of people with several rows: those who show equally many are one series, beside those of the others.

How many rows somebody has may be known, so that a bag of two values never stands for one of three. Of each number of
rows the people who show so many are planned by themselves: their cohorts keep whole bags, and a leaver's bag is shown
as a counterfeit. Boxes of people are of such people, too, their rows side by side. Nothing else looks at the others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from reveil.base.arrays import I32, I64
from reveil.base.bags import item_of, rows_in, values_of
from reveil.base.errors import InfeasibleError
from reveil.base.lots import generator
from reveil.base.progress import Progress
from reveil.base.words import some
from reveil.guarantees.k_anonymity import KAnonymity
from reveil.history.history import History
from reveil.plan.bundles import BEYOND, beside, numbered, once, side_by_side
from reveil.plan.people import box_people, without_k
from reveil.plan.persistent.eligible import group_size
from reveil.plan.persistent.waiting import reasons_to_wait, waiting_of
from reveil.plan.plan import Plan, Planner
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded

STREAM = 14  # of the lots of a release: these are drawn for nothing else
TOO_FEW = "fewer than k people with as many rows are there"


@dataclass(eq=False)
class Planned:
    """The plans of all numbers of rows, put together as they come."""

    groups: I32  # of each row
    boxes: I32
    counted: int = 0  # groups so far
    boxed: int = 0
    fake_groups: list[I32] = field(default_factory=list)
    fake_codes: list[I32] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    statistics: dict[str, Any] = field(default_factory=dict)

    def add(self, rows: I64, part: Plan, boxes: I32) -> None:
        """One plan more, of people whose rows are these, side by side."""
        each = rows.shape[1]
        shown = part.groups >= 0
        self.groups[rows[shown]] = (self.counted + part.groups[shown])[:, None]
        self.boxes[rows[shown]] = self.boxed + boxes[shown, None] * each + np.arange(each, dtype=np.int32)
        self.fake_groups.append(self.counted + part.counterfeit_groups)
        self.fake_codes.append(part.counterfeit_codes.reshape(part.counterfeits, 1))
        self.counted += part.count
        self.boxed += (int(boxes.max(initial=-1)) + 1) * each
        self.reasons.update({reason: people * each for reason, people in part.reasons.items()})
        if part.statistics:
            self.statistics[f"people with {some(each, 'row')}"] = len(rows)


def in_series(planner: Planner) -> Planner:
    """The planner of cohorts, given people by the number of rows that they show."""

    def plan(encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress) -> Plan:
        assert encoded.bags is not None and encoded.owners is not None
        rng, none = generator(seed, STREAM), np.full(encoded.rows, -1, dtype=np.int32)
        parts, refusal, kinds = Planned(none.copy(), none.copy()), None, list[Plan]()
        for rows in side_by_side(encoded, encoded.bags.shown, rng):
            wide = _wide(encoded, rows)
            past = of_those_with(rows.shape[1], history, encoded.bags.column.name)
            part, failed = _planned(planner, wide, past, policy, seed, progress)
            refusal = refusal or failed
            part, boxes = _boxed(part, wide, policy, seed)
            parts.add(rows, part, boxes)
            kinds.append(part)
        if refusal is not None and (parts.groups < 0).all():
            raise refusal
        hidden = int((~encoded.bags.shown).sum())
        parts.reasons.update({BEYOND: hidden})
        return Plan(
            groups=parts.groups,
            method=f"closed cohorts, {policy.bundled} as one",
            counterfeit_groups=np.concatenate([np.empty(0, dtype=np.int32), *parts.fake_groups]).astype(np.int32),
            counterfeit_codes=np.concatenate([np.empty((0, 1), dtype=np.int32), *parts.fake_codes]).astype(np.int32),
            bundles=numbered(encoded.owners, parts.groups, rng),
            people=parts.boxes,
            reasons={reason: number for reason, number in parts.reasons.items() if number},
            statistics=_sums(kinds) | parts.statistics,
        )

    return plan


def _wide(encoded: Encoded, rows: I64) -> Encoded:
    """People as records of their rows side by side, known again by their numbers."""
    assert encoded.bags is not None and encoded.persons is not None
    bags = replace(encoded.bags, codes=encoded.bags.codes[rows[:, 0]], shown=np.ones(len(rows), dtype=np.bool_))
    # Of somebody of whom not all rows are shown, the values are those of the bag, and not of the rows drawn now.
    code = {item_of(value): number for number, value in enumerate(encoded.sensitive[0].values)}
    distinct, index = np.unique(bags.codes, return_inverse=True)
    held = [[code[item_of(value)] for value in values_of(bags.column.values[bag])] for bag in distinct.tolist()]
    codes = once(np.array(held, dtype=np.int32).reshape(len(distinct), rows.shape[1]))[index]
    return replace(beside(encoded, rows), codes=codes, persons=encoded.persons[rows[:, 0]], bags=bags)


def of_those_with(each: int, history: History, column: str) -> History:
    """The past of the people who show so many rows: nobody else's, and no groups of others."""
    if history.members.is_empty():
        return history
    theirs = [code for code, bag in enumerate(history.codebook[column]) if rows_in(bag) == each]
    members = history.members.filter(pl.col(column).is_in(theirs))
    values = history.values.filter(pl.col("code").is_in(theirs))
    # Groups keep their numbers: those of others stay as groups of nobody, which show nothing.
    own = values.select("release", "group").unique().with_columns(theirs=True)
    groups = history.groups.join(own, on=["release", "group"], how="left", maintain_order="left")
    sizes = pl.col("rows", "counterfeits") * pl.col("theirs").fill_null(False).cast(pl.UInt32)
    return History(
        head=history.head,
        head_id=history.head_id,
        persons=history.persons,
        members=members,
        groups=groups.drop("theirs").clear() if members.is_empty() else groups.with_columns(sizes).drop("theirs"),
        values=values,
        codebook=history.codebook,
        waits=history.waits,
        by_lot=history.by_lot,
    )


def _planned(
    planner: Planner, wide: Encoded, past: History, policy: Policy, seed: int, progress: Progress
) -> tuple[Plan, InfeasibleError | None]:
    """The plan of one number of rows; where all its people wait, the refusal that this would have been alone.

    In a first release only those wait who are too few: a series that has not begun can have another promise.
    """
    alone = without_k(policy)
    try:
        return planner(wide, past, alone, seed=seed, progress=progress), None
    except InfeasibleError as error:
        each = f"This is about the {wide.rows:,} {policy.bundled} of whom {some(wide.each, 'row')} would be shown."
        error.add_note(f"{each} A smaller people.most puts more {policy.bundled} side by side.")
        begins = not past.head and wide.rows >= group_size(alone.guarantee)
        if policy.method.infeasible != "wait" or begins:
            raise
        assert wide.persons is not None
        nobody = np.full(wide.rows, -1, dtype=np.int32)
        waiting = waiting_of(past, wide.persons, alone.guarantee)
        known = waiting.published[wide.persons].copy()
        return Plan(nobody, "", reasons=reasons_to_wait(waiting, wide.persons, known, nobody, policy)), error


def _boxed(part: Plan, wide: Encoded, policy: Policy, seed: int) -> tuple[Plan, I32]:
    """The plan with boxes of at least k people; where fewer are there, none of them is shown in this release."""
    shown = np.flatnonzero(part.groups >= 0)
    k = policy.guarantee.require(KAnonymity).k
    nowhere = np.full(wide.rows, -1, dtype=np.int32)
    if len(shown) >= k:
        return part, box_people(wide, shown, policy, seed)
    reasons = {**part.reasons, **({TOO_FEW: len(shown)} if len(shown) else {})}
    return Plan(nowhere, part.method, reasons=reasons), nowhere


def _sums(parts: list[Plan]) -> dict[str, Any]:
    """Counts of cohorts and places, added up; shares and forecasts of one number of rows are not those of all."""
    sums = Counter[str]()
    for part in parts:
        sums.update({name: n for name, n in part.statistics.items() if isinstance(n, int)})
    fakes = sum(part.counterfeits for part in parts)
    people = sum(int((part.groups >= 0).sum()) for part in parts)
    return dict(sums) | {"counterfeit share": round(fakes / max(1, fakes + people), 4)}
