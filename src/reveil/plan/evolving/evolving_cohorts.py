"""Closed cohorts of people whose values change: grouped once, together ever after, and no place ever stands still.

A place that somebody leaves goes on as a counterfeit, and its value changes as values change: drawn at random, with the
public chances. So all places of a cohort follow one law, and nobody can tell them apart, whatever becomes of them.
Newcomers take over counterfeits of their own value, `refill` or more at a time. Who is away while the cohort is
shown loses their place: their own value would not follow what was shown in its place. In two tables they are shown
among the people of their group again, and the counterfeit stands in for their value (`stand_ins.py`).

A cohort in which too many come to share a value is withheld for good. That this happened says something. How much is
bounded by what the cohort showed last; where it would be too much, it is withheld without looking at its values.
First cohorts are made of values that can never become the same, where there are enough of them: these last for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.background.transitions import Relation, relation_of
from reveil.base.arrays import I32, I64, offsets_of
from reveil.base.errors import Fault, InfeasibleError, brief
from reveil.base.lots import generator
from reveil.base.progress import Progress
from reveil.base.words import some, some_people
from reveil.guarantees.lasting import CohortTerms, Evolving
from reveil.history.history import History
from reveil.plan.cutting.trees import Trees, lay_end_to_end
from reveil.plan.evolving import succession
from reveil.plan.evolving.disjoint import kinds_of
from reveil.plan.evolving.large_cohorts import found_large
from reveil.plan.evolving.stand_ins import stood_in
from reveil.plan.persistent import vacancies
from reveil.plan.persistent.closed_cohorts import Standing, outlook, refill_places, statistics_of
from reveil.plan.persistent.eligible import (
    apart,
    group_size,
    harmless_codes,
    keep_eligible,
    largest_share,
)
from reveil.plan.persistent.founding import found_cohorts
from reveil.plan.persistent.guesses import allowed_guess, lowest_guess, repeats
from reveil.plan.persistent.past import CohortPast, group_offsets, read_past, sort_by
from reveil.plan.persistent.waiting import reasons_to_wait, waiting_of
from reveil.plan.plan import Plan
from reveil.policy.guarantee import Guarantee
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded, Sensitive

Flags = NDArray[np.bool_]
AWAY = "was away while the cohort was shown"
ENDED = "cohort ended: too many of its people came to share a value"
BY_RULE = "cohort ended: what it showed last leaves too few values it can take"
BEFORE = "cohort ended earlier"
SAMPLE = 2_000  # cohorts whose prospects are reported
MARGIN = 1 + 1e-6  # stricter than the verifier, which rounds differently


@dataclass(frozen=True, eq=False)
class Cohorts:
    """What every cohort of the past showed last."""

    release: I64
    first: I64  # where its rows start; one more entry than cohorts
    rows: I64  # codes, counterfeits included
    ended: Flags  # withheld in a later release although somebody was there


def plan(encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress) -> Plan:
    """Let cohorts go on where the promise allows, refill vacant places, and group newcomers."""
    assert encoded.persons is not None
    progress("planning", 0.0)
    rng = generator(seed, 3)
    column, g = encoded.sensitive[0], policy.guarantee
    relation = relation_of(policy, column.values)
    past = read_past(history, int(encoded.persons.max(initial=-1)) + 1, column.name)
    cohorts = _last_shown(past, history, column.name)
    cohort = past.cohort[encoded.persons]
    known = cohort >= 0
    away, before = known.copy(), known.copy()
    away[known] = past.seen[encoded.persons[known]] < cohorts.release[cohort[known]]
    before[known] = cohorts.ended[cohort[known]]
    before &= ~away
    staying = known & ~away & ~before
    rows = np.flatnonzero(staying)
    standing, reasons = _go_on(past, cohorts, encoded, history, rows, relation, policy, rng)
    back = stood_in(past, standing, encoded.persons, np.flatnonzero(away), history.head + 1, relation, policy)
    lost = int(away.sum()) - (0 if back is None else int((back >= 0).sum()))
    reasons = {AWAY: lost, BEFORE: int(before.sum()), **reasons}
    groups = np.full(encoded.rows, -1, dtype=np.int32)
    groups[standing.order] = np.repeat(np.arange(len(standing.here), dtype=np.int32), np.diff(standing.first))
    trees = lay_end_to_end(encoded, policy)
    waiting = waiting_of(history, encoded.persons, g)
    told = waiting.told(encoded.persons) | waiting.crowded(encoded.persons)
    newcomers = rng.permutation(np.flatnonzero(~known & ~told))
    home = refill_places(past, standing, encoded, newcomers, trees, policy, group_size(g), rng)
    groups[newcomers[home >= 0]] = home[home >= 0]
    progress("planning", 0.5)
    rest = newcomers[home < 0]
    founded = _found(encoded, rest, relation, trees, policy, seed)
    groups[rest[founded >= 0]] = len(standing.here) + founded[founded >= 0]
    reasons |= reasons_to_wait(waiting, encoded.persons, known, groups, policy)
    fakes = vacancies.unfilled(standing.first_vacant, standing.vacant, home, encoded.codes[newcomers, 0])
    _refuse_short_lives(encoded, rest, founded, relation, policy)
    statistics = statistics_of(standing, home, groups, len(fakes[0])) | outlook(history, staying, policy)
    return Plan(
        groups=groups,
        method="closed cohorts of changing values",
        counterfeit_groups=fakes[0],
        counterfeit_codes=fakes[1][:, None],
        stand_ins=back,
        reasons={reason: count for reason, count in reasons.items() if count},
        statistics=statistics | _prospects(encoded, groups, fakes, relation, g),
    )


def _last_shown(past: CohortPast, history: History, column: str) -> Cohorts:
    if not past.cohorts:
        none = np.empty(0, dtype=np.int64)
        return Cohorts(none, np.zeros(1, dtype=np.int64), none, np.empty(0, dtype=bool))
    offsets, _ = group_offsets(history)
    release = np.searchsorted(offsets, past.shown, side="right") - 1
    keys = pl.DataFrame({"release": release, "group": past.shown - offsets[release], "cohort": np.arange(past.cohorts)})
    values = history.values.filter(pl.col("column") == column).cast({"release": pl.Int64, "group": pl.Int64})
    shown = values.join(keys, on=["release", "group"]).sort("cohort", "code")
    often = shown["rows"].cast(pl.Int64).to_numpy()
    rows = np.repeat(shown["code"].cast(pl.Int64).to_numpy(), often)
    sizes = np.bincount(shown["cohort"].to_numpy(), weights=often, minlength=past.cohorts).astype(np.int64)
    withheld = history.members.filter(pl.col("group") < 0)
    person, when = withheld["person"].to_numpy(), withheld["release"].to_numpy()
    member = past.cohort[person]
    person, when, member = person[member >= 0], when[member >= 0], member[member >= 0]
    ended = np.zeros(past.cohorts, dtype=bool)
    ended[member[(past.seen[person] == release[member]) & (when > release[member])]] = True
    return Cohorts(release, offsets_of(sizes), rows, ended)


def _go_on(
    past: CohortPast,
    cohorts: Cohorts,
    encoded: Encoded,
    history: History,
    rows: I64,
    relation: Relation,
    policy: Policy,
    rng: np.random.Generator,
) -> tuple[Standing, dict[str, int]]:
    """The cohorts that are shown, with counterfeits drawn for vacant places, and how many people of others are not."""
    assert encoded.persons is not None
    by_cohort, starts = sort_by(past.cohort[encoded.persons[rows]], past.cohorts)
    order, counts = rows[by_cohort], np.diff(starts)
    here = np.flatnonzero(counts)
    first_here = offsets_of(counts[here])
    first, shown = _some(cohorts.first, cohorts.rows, here)
    held = history.last_codes(encoded.persons[order], encoded.sensitive[0].name).astype(np.int64)
    first_vacant, empty = succession.left_behind(first, shown, first_here, held)
    lots = rng.integers(0, relation.totals[empty]) if len(empty) else empty
    vacant = succession.go_on(empty, lots, np.cumsum(relation.weights, axis=1))
    limit, _ = limits(policy.guarantee, first, shown, relation)
    by_rule = limit == 0
    codes = np.ascontiguousarray(encoded.codes[order, 0])
    mild = _harmless(relation, policy.guarantee)
    shares = succession.most_shared(first_here, codes, first_vacant, vacant, mild) > limit
    if (by_rule | shares).any() and policy.method.infeasible == "refuse":
        raise InfeasibleError(_ends(by_rule, shares & ~by_rule, counts[here], encoded.sensitive[0]))
    stay = np.flatnonzero(~(by_rule | shares))
    reasons = {BY_RULE: int(counts[here[by_rule]].sum()), ENDED: int(counts[here[shares & ~by_rule]].sum())}
    first_order, order = _some(first_here, order, stay)
    first_vacant, vacant = _some(first_vacant, vacant, stay)
    return Standing(here[stay].astype(np.int32), order, first_order, first_vacant, vacant), reasons


def _harmless(relation: Relation, g: Guarantee) -> Flags:
    """Whether each value of the relation is one for which nothing is promised."""
    return np.array([not g.headline.protects(value) for value in relation.values], dtype=bool)


def _some(first: I64, rows: NDArray[Any], which: I64) -> tuple[I64, NDArray[Any]]:
    """The runs of some cohorts, laid end to end."""
    sizes = first[which + 1] - first[which]
    starts = offsets_of(sizes)
    return starts, rows[np.arange(starts[-1]) - np.repeat(starts[:-1] - first[which], sizes)]


def limits(g: Guarantee, first: I64, rows: I64, relation: Relation) -> tuple[I64, NDArray[np.float64]]:
    """How many places of each cohort may show one protected value in the next release, and the chance of more.

    The largest number up to `repeats` for which it tells little enough that more did: it follows from what the cohort
    shows now. 0 where there is none: such a cohort must not be shown again.
    """
    sizes, distinct = np.diff(first), np.unique(np.diff(first))
    terms = g.require(CohortTerms)
    tau = float(allowed_guess(terms))
    chance = np.where(_harmless(relation, g), 0.0, relation.weights / relation.totals[:, None])
    by_size = [(repeats(g, size), float(lowest_guess(terms, size))) for size in distinct.tolist()]
    index = np.searchsorted(distinct, sizes)
    most = np.array([number for number, _ in by_size], dtype=np.int64)[index]
    place = np.array([guess for _, guess in by_size])[index]
    limits, ends = np.zeros(len(sizes), dtype=np.int64), np.ones(len(sizes))
    undecided = np.flatnonzero(most > 0)
    while len(undecided):
        likely, expected = succession.prospects(*_some(first, rows, undecided), most[undecided], chance)
        safe = expected * place[undecided] * MARGIN <= tau
        limits[undecided[safe]], ends[undecided[safe]] = most[undecided[safe]], likely[safe]
        undecided = undecided[~safe]
        most[undecided] -= 1
        undecided = undecided[most[undecided] > 0]
    return limits, ends


def _found(encoded: Encoded, rows: I64, relation: Relation, trees: Trees, policy: Policy, seed: int) -> I32:
    """The new cohort of each row, -1 for rows that have to wait.

    A cohort may show a value `repeats` times. So where all different values are too much to ask, several cohorts of
    fewer different values are put together.
    """
    g, column = policy.guarantee, encoded.sensitive[0]
    if g.require(Evolving).places is not None:
        return found_large(encoded, rows, trees, policy)
    groups = np.full(len(rows), -1, dtype=np.int32)
    if not len(rows):
        return groups
    size = group_size(g)
    labels, names, often = _labels(encoded, rows, relation, size, policy)
    base = -(-size // often)
    mild = harmless_codes(column, policy)[encoded.codes[rows, 0]]
    label = labels[encoded.codes[rows, 0]].astype(np.int32)
    codes, named = apart(label, mild, base, Sensitive(column.name, names, False, None))
    kept = keep_eligible(codes, base, named, policy)
    part = replace(encoded, positions=encoded.positions[rows[kept]], codes=codes[kept, None], sensitive=(named,))
    parts = found_cohorts(part, trees, policy, base, seed)
    groups[kept] = _put_together(int(parts.max(initial=-1)) + 1, often, base, g)[parts]
    waiting = int((groups[kept] < 0).sum())
    if waiting and policy.method.infeasible == "refuse":
        raise InfeasibleError(_too_few(waiting, size, column))
    return groups


def _put_together(count: int, often: int, base: int, g: Guarantee) -> I32:
    """The cohort of each of `count` neighbouring parts: `often` or more of them make one, as evenly as possible."""
    cohorts = count // often
    if not cohorts:
        return np.full(count, -1, dtype=np.int32)
    even, most = np.arange(count) * cohorts // count, -(-count // cohorts)
    if most > max(1, repeats(g, base * most)):  # one more part would repeat values too often: the last ones wait
        even = np.where(np.arange(count) < cohorts * often, np.arange(count) // often, -1)
    return even.astype(np.int32)


def _labels(
    encoded: Encoded, rows: I64, relation: Relation, size: int, policy: Policy
) -> tuple[I64, tuple[Any, ...], int]:
    """What must differ within a new cohort, by value; its names; and how many such cohorts are put together."""
    column, g = encoded.sensitive[0], policy.guarantee
    family = kinds_of(relation)
    codes = encoded.codes[rows, 0]
    counts = np.bincount(family[codes], minlength=int(family.max()) + 1)
    there, star = int((counts > 0).sum()), g.require(Evolving).disjoint
    most = 1 if star else max(1, repeats(g, size))
    if star and len(counts) < size:
        raise InfeasibleError(_no_families(relation, family, size, column, len(rows)))
    if star or there >= -(-size // most):
        names = tuple(_family_name(column, np.flatnonzero(family == f)) for f in range(len(counts)))
        return family, names, _bundle(counts, size, most)
    plain = np.arange(len(column.values), dtype=np.int64)
    return plain, column.values, _bundle(np.bincount(codes, minlength=len(plain)), size, most)


def _bundle(counts: I64, size: int, most: int) -> int:
    """The fewest cohorts to put together so that all rows can be grouped."""
    for often in range(1, most):
        if largest_share(counts, -(-size // often)) >= counts.max():
            return often
    return most


def _family_name(column: Sensitive, members: I64) -> Any:
    name = column.values[int(members[0])]
    return name if len(members) == 1 else f"{name} and what it may become"


def _refuse_short_lives(encoded: Encoded, rows: I64, founded: I32, relation: Relation, policy: Policy) -> None:
    """New cohorts that could not be shown again would end the series under infeasible = "refuse"."""
    if policy.method.infeasible == "withhold" or not (founded >= 0).any():
        return
    mine = rows[founded >= 0]
    order, first = sort_by(founded[founded >= 0], int(founded.max()) + 1)
    codes, sizes = encoded.codes[mine[order], 0].astype(np.int64), np.diff(first)
    short = limits(policy.guarantee, first, codes, relation)[0] == 0
    if short.any():
        example = _example(codes[first[short.argmax()] : first[short.argmax() + 1]], relation)
        message = (
            f"{int(short.sum()):,} of {len(short):,} new cohorts could not be shown a second time: {example}; that a "
            "cohort is then withheld would let it be guessed with more than the promise allows"
        )
        rows_hit = int(sizes[short].sum())
        raise InfeasibleError(
            Fault("R446", f"column {encoded.sensitive[0].name!r}", message, _way_out(policy.guarantee), rows_hit)
        )


def _example(codes: I64, relation: Relation) -> str:
    reach = relation.allowed[codes].sum(axis=0)
    value = int(reach.argmax())
    shared = brief(relation.values[value])
    return f"{int(reach[value])} of {some_people(len(codes))} of one cohort may come to share {shared}"


def _way_out(g: Guarantee) -> str:
    larger = 2 * group_size(g)
    return (
        f"raise k (cohorts of k = {larger} may share more), raise tau, use transitions that keep more values apart, or "
        'set method.infeasible = "withhold": such cohorts are then withheld'
    )


def _ends(by_rule: Flags, shares: Flags, people: I64, column: Sensitive) -> Fault:
    message = (
        f"{int(by_rule.sum() + shares.sum()):,} of {some(len(by_rule), 'cohort')} cannot be shown again: in "
        f"{int(shares.sum()):,} too many people have come to share a value, and {int(by_rule.sum()):,} could not be "
        "withheld later without telling too much"
    )
    remedy = (
        'set method.infeasible = "withhold": these cohorts are withheld for good; or begin a series with larger '
        "cohorts (k), a higher tau, or m-distinct-star"
    )
    return Fault("R445", f"column {column.name!r}", message, remedy, int(people[by_rule | shares].sum()))


def _too_few(rows: int, size: int, column: Sensitive) -> Fault:
    message = f"{rows:,} new rows are too few for one cohort of {size}"
    return Fault("R445", f"column {column.name!r}", message, 'set method.infeasible = "withhold": they wait', rows)


def _no_families(relation: Relation, family: I64, size: int, column: Sensitive, rows: int) -> Fault:
    sizes = np.bincount(family)
    members = np.flatnonzero(family == int(sizes.argmax()))
    shown = ", ".join(brief(relation.values[v]) for v in members[:4]) + (", ..." if len(members) > 4 else "")
    message = (
        f"the transitions leave {len(sizes):,} families of values that never become the same, and cohorts need {size}; "
        f"the largest family has {len(members):,} of {len(family):,} values ({shown})"
    )
    smaller = f"begin the series with m = {len(sizes)}, " if len(sizes) >= 2 else ""
    remedy = f'{smaller}use model = "m-distinct", or state transitions that keep more values apart'
    return Fault("R447", f"column {column.name!r}", message, remedy, rows)


def _prospects(
    encoded: Encoded, groups: I32, fakes: tuple[I32, I32], relation: Relation, g: Guarantee
) -> dict[str, float]:
    """What will become of the cohorts of this release, as chances have it; of the first ones, where there are many."""
    kept = groups >= 0
    owner = np.concatenate([groups[kept], fakes[0]])
    codes = np.concatenate([encoded.codes[kept, 0], fakes[1]]).astype(np.int64)
    codes, owner = codes[owner < SAMPLE], owner[owner < SAMPLE]
    if not len(owner):
        return {}
    order, first = sort_by(owner, int(owner.max()) + 1)
    limit, ends = limits(g, first, codes[order], relation)
    return {
        "share of cohorts that will not be shown again": round(float((limit == 0).mean()), 4),
        "share of cohorts expected to end with the next release": round(float(ends.mean()), 4),
    }
