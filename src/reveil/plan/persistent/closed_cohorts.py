"""Closed cohorts: people are grouped once and stay together, so that no later release says anything new.

Places left by people are shown as counterfeits. When `refill` or more places of a cohort are vacant, newcomers with
exactly the missing values may take them, all in one release; whoever is away then loses their place for good, which
depends on when people were there and not on their values. Other newcomers form cohorts of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.arrays import I32, I64, offsets_of
from reveil.base.lots import generator
from reveil.base.progress import Progress
from reveil.guarantees.descriptor import Parameters
from reveil.guarantees.historical_safety import HistoricalSafety
from reveil.guarantees.lasting import CohortTerms
from reveil.history.history import History
from reveil.plan.crowds import least_people
from reveil.plan.cutting.trees import Trees, lay_end_to_end
from reveil.plan.persistent import vacancies
from reveil.plan.persistent.degree import degree
from reveil.plan.persistent.eligible import OFTEN_ENOUGH, group_size, harmless_codes
from reveil.plan.persistent.forecast import AHEAD, trade_offs
from reveil.plan.persistent.founding import found_in_turn, refuse_all
from reveil.plan.persistent.past import ClosedPast, CohortPast, read_closed, read_past, sort_by, times_published
from reveil.plan.persistent.waiting import reasons_to_wait, waiting_of
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded

LOST_PLACE = "place was refilled while away"
NEVER = 2**31 - 1
USUAL_CHURN = 0.1  # assumed where a series has no past to tell from


@dataclass(frozen=True, eq=False)
class Standing:
    """The rows of people who keep their place, by cohort."""

    here: I32  # cohorts with anybody present
    order: I64  # rows, sorted by cohort
    first: I64  # where the rows of each cohort start in `order`
    first_vacant: I64
    vacant: I32  # codes of vacant places, by cohort


def plan(encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress) -> Plan:
    """Keep cohorts together, refill vacant places, and group newcomers."""
    assert encoded.persons is not None
    progress("planning", 0.0)
    rng = generator(seed, 3)
    people, refills = int(encoded.persons.max(initial=-1)) + 1, least_refill(policy.guarantee.headline) < NEVER
    name = encoded.sensitive[0].name
    past = read_past(history, people, name) if refills else read_closed(history, encoded.persons, name)
    known, lost, often = _who(past, history, encoded.persons, policy)
    standing = _standing(past, encoded, np.flatnonzero(known & ~lost & ~often))
    trees = lay_end_to_end(encoded, policy)
    groups = np.full(encoded.rows, -1, dtype=np.int32)
    groups[standing.order] = np.repeat(np.arange(len(standing.here), dtype=np.int32), np.diff(standing.first))
    waiting = waiting_of(history, encoded.persons, policy.guarantee)
    told = waiting.told(encoded.persons)
    if policy.method.infeasible != "wait":
        told |= waiting.crowded(encoded.persons)
    newcomers = rng.permutation(np.flatnonzero(~known & ~told))
    size = group_size(policy.guarantee)
    home = refill_places(past, standing, encoded, newcomers, trees, policy, size, rng)
    groups[newcomers[home >= 0]] = home[home >= 0]
    progress("planning", 0.5)
    rest = newcomers[home < 0]
    founded = found_in_turn(encoded, rest, waiting, trees, policy, size, seed)
    groups[rest[founded >= 0]] = len(standing.here) + founded[founded >= 0]
    begins = not history.head and bool((founded < 0).any())  # a series that has not begun can have another promise
    if policy.method.infeasible == "wait" and len(rest) and (begins or (groups < 0).all()):
        refuse_all(encoded, rest, policy)
    fakes = vacancies.unfilled(standing.first_vacant, standing.vacant, home, encoded.kept[newcomers, 0])
    if len(encoded.sensitive) > 1:  # then no place is ever refilled
        fakes = _leavers(history, past, standing, encoded)
    reasons = {LOST_PLACE: int(lost.sum()), OFTEN_ENOUGH: int((often & ~lost).sum())}
    reasons |= reasons_to_wait(waiting, encoded.persons, known, groups, policy)
    return Plan(
        groups=groups,
        method="closed cohorts",
        counterfeit_groups=fakes[0],
        counterfeit_codes=fakes[1].reshape(len(fakes[0]), len(encoded.sensitive)),
        reasons={reason: rows for reason, rows in reasons.items() if rows},
        statistics=statistics_of(standing, home, groups, len(fakes[0])) | outlook(history, known, policy),
    )


def _who(
    past: ClosedPast, history: History, persons: I64, policy: Policy
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Of each row: published before, lost their place, published as often as allowed."""
    cohort = past.cohort[persons]
    known = cohort >= 0
    lost, often = np.zeros_like(known), np.zeros_like(known)
    if isinstance(past, CohortPast):
        lost[known] = past.seen[persons[known]] < past.refilled[cohort[known]]
    limit = policy.guarantee.headline.releases
    if limit is not None:
        often = known & (times_published(history, len(past.cohort))[persons] >= limit)
    return known, lost, often


def _standing(past: ClosedPast, encoded: Encoded, rows: I64) -> Standing:
    assert encoded.persons is not None
    cohort = past.cohort[encoded.persons[rows]]
    by_cohort, starts = sort_by(cohort, past.cohorts)
    order, counts = rows[by_cohort], np.diff(starts)
    here = np.flatnonzero(counts).astype(np.int32)
    first = offsets_of(counts[here])
    codes = np.ascontiguousarray(encoded.kept[order, 0])
    first_vacant, vacant = vacancies.vacancies(past.first, past.codes, past.shown, here, first, codes)
    return Standing(here, order, first, first_vacant, vacant)


def _leavers(history: History, past: ClosedPast, standing: Standing, encoded: Encoded) -> tuple[I32, I32]:
    """Cohort and codes of everybody whose place is vacant: whole tuples, where several columns are kept together."""
    assert encoded.persons is not None
    place = np.full(max(1, past.cohorts), -1, dtype=np.int32)
    place[standing.here] = np.arange(len(standing.here), dtype=np.int32)
    absent = past.cohort >= 0
    absent[encoded.persons[standing.order]] = False
    gone = np.flatnonzero(absent)
    owner = place[past.cohort[gone]]
    gone, owner = gone[owner >= 0], owner[owner >= 0]
    return owner, np.column_stack([history.last_codes(gone, column.name) for column in encoded.sensitive])


def least_refill(headline: Parameters) -> int:
    """How many places of a cohort must be vacant before newcomers may take them."""
    if isinstance(headline, HistoricalSafety):
        return degree(headline)
    if not isinstance(headline, CohortTerms):
        return 1
    if headline.refill == "never":
        return NEVER
    if headline.compromised == 0:
        return headline.refill
    needed = 0 if headline.tau is None else ceil(1 / headline.tau) + headline.compromised - 1
    return max(headline.refill, needed)


def refill_places(
    past: ClosedPast,
    standing: Standing,
    encoded: Encoded,
    newcomers: I64,
    trees: Trees,
    policy: Policy,
    size: int,
    rng: np.random.Generator,
) -> I32:
    """The standing cohort that each newcomer joins, -1 for none.

    Half of the newcomers may: the first ones of an order drawn by lot, before anybody's value is looked at. If all
    might, a value that stays vacant in a refilled cohort would be one that no newcomer has, and so no new cohort shows.
    Where they are too few to found a cohort, all may.
    """
    least = np.maximum(
        least_refill(policy.guarantee.headline), least_people(policy.guarantee) - np.diff(standing.first)
    )  # a cohort that would still have too few people is not shown
    vacant = np.diff(standing.first_vacant)
    open_ = np.flatnonzero(vacant >= least)
    terms = policy.guarantee.find(CohortTerms)
    if terms is not None and terms.compromised > 1 and isinstance(past, CohortPast):
        open_ = open_[_nobody_late_left(past, standing, encoded)[open_]]
    home = np.full(len(newcomers), -1, dtype=np.int32)
    may = newcomers if len(newcomers) < size else newcomers[: -(-len(newcomers) // 2)]
    if not len(open_) or len(may) < least[open_].min():
        return home
    open_ = rng.permutation(open_)
    # Each newcomer fills one place wherever they go. Serving the fullest cohorts first lets the emptiest die out, and
    # with them their counterfeits.
    open_ = open_[np.argsort(vacant[open_], kind="stable")]
    boxes = vacancies.bounds(encoded.positions, standing.order, standing.first, open_)
    centre = vacancies.curve((boxes[:, 0] + boxes[:, 1]) // 2, trees)
    first_vacant = offsets_of(vacant[open_])
    inside = np.arange(first_vacant[-1]) - np.repeat(first_vacant[:-1] - standing.first_vacant[open_], vacant[open_])
    codes, positions = encoded.codes[may, 0], encoded.positions[may]
    keys = vacancies.curve(positions, trees)
    order = np.lexsort((keys, codes))
    values = len(encoded.sensitive[0].values)
    able = np.bincount(codes, minlength=values)
    cohorts = vacancies.OpenCohorts(boxes, centre, first_vacant, standing.vacant[inside], least[open_])
    able_rows = vacancies.Newcomers(positions[order], keys[order], offsets_of(able), able)
    harmless = harmless_codes(encoded.sensitive[0], policy)
    counts = np.bincount(encoded.codes[newcomers, 0], minlength=values)
    refilled = vacancies.refill(trees, cohorts, able_rows, size, harmless, counts)
    joins = refilled >= 0
    home[order[joins]] = open_[refilled[joins]]
    return home


def _nobody_late_left(past: CohortPast, standing: Standing, encoded: Encoded) -> NDArray[np.bool_]:
    """Cohorts whose later members are all present.

    With two people known, a place handed on twice gives away who had it in between. So nobody who came by a refill may
    be among those whose places are refilled.
    """
    assert encoded.persons is not None
    late = past.late[encoded.persons[standing.order]].astype(np.int64)
    present = np.add.reduceat(late, standing.first[:-1]) if len(standing.here) else late
    return np.asarray(past.joined[standing.here] == present)


def outlook(history: History, known: NDArray[np.bool_], policy: Policy) -> dict[str, Any]:
    """What this and other settings will cost in the long run, if people go on leaving as they did."""
    terms = policy.guarantee.find(CohortTerms)
    if terms is None:
        return {}
    last = history.groups.filter(pl.col("release") == history.head) if history.head else history.groups
    before = 0 if last.is_empty() else int(last["rows"].sum()) - int(last["counterfeits"].sum())
    churn = 1 - min(1.0, float(known.sum()) / before) if before else USUAL_CHURN
    leaving = {"share of people assumed to leave": round(churn, 4)}
    if terms.founders > terms.m:  # never refilled, and of a size of its own: there is nothing to trade off
        return leaving
    return leaving | {f"trade-offs after {AHEAD} releases": trade_offs(terms, churn)}


def statistics_of(standing: Standing, home: I32, groups: I32, fakes: int) -> dict[str, int | float]:
    filled = int((home >= 0).sum())
    published = int((groups >= 0).sum())
    return {
        "cohorts kept": len(standing.here),
        "cohorts founded": int(groups.max(initial=-1)) + 1 - len(standing.here),
        "cohorts refilled": len(np.unique(home[home >= 0])),
        "places refilled": filled,
        "counterfeit share": round(fakes / max(1, fakes + published), 4),
    }
