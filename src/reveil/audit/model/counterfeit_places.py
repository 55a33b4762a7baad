"""Closed cohorts whose counterfeits go on: a place that somebody left changes with the public chances, as people do.

An adversary who knows this takes a counterfeit for what it is, the place of somebody who is gone. The cohort then is a
group of as many chains as it has rows, in all of its releases, and nothing of it is unknown. So the places are entered
as appearances of their own, belief is worked out with them, and they are taken out again.

Where nobody of a cohort is known or has a prior, exchanging two places maps worlds to worlds of equal weight: each row
is everybody's with the same chance, also where newcomers have taken over places. Where somebody is known in a cohort
with newcomers, it is open who has whose place; each way is equally likely, and all are counted
(`refilled_cohorts.py`). Where there are too many ways, or somebody has a prior, its people are undecided.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from reveil.audit.infer.certain import State
from reveil.audit.infer.infer import Inference, infer
from reveil.audit.infer.sample import Sampled, sample
from reveil.audit.input.knowledge import Adversary
from reveil.audit.input.observed import Observed
from reveil.audit.input.terms import linked
from reveil.audit.model.kept_places import weigh_places
from reveil.audit.model.model import Model, rebuilt
from reveil.audit.model.refilled_cohorts import enter_takeovers
from reveil.base.arrays import I64, Bools
from reveil.base.progress import Progress, silent

SAMPLING = 0.45  # share of the time for sampling, where as much as possible is sampled


@dataclass(frozen=True, eq=False)
class LinkedGroups:
    """Groups that share people. `closed`: one group of one size per release, and nobody but the founders, who stay
    until they leave for good. `refilled`: the same, but for newcomers."""

    of_group: I64
    closed: Bools
    refilled: Bools


def cohorts_of(o: Observed) -> LinkedGroups:
    """The cohorts of a series in which everybody's group is known."""
    group, groups = o.cand_group, len(o.group_release)
    count, label = linked(o)
    order = np.lexsort((o.group_release, label))
    turn = np.empty(groups, dtype=np.int64)  # which of its cohort's groups it is
    turn[order] = np.arange(groups) - np.searchsorted(label[order], label[order])
    good = np.ones(count, dtype=bool)
    again = np.diff(label[order]) == 0
    good[label[order[1:][again & (np.diff(o.group_release[order]) == 0)]]] = False
    size = np.zeros(count, dtype=np.int64)
    size[label] = o.group_rows
    good[label[size[label] != o.group_rows]] = False
    good[label[o.group_fakes < 0]] = False
    start, end = o.person_start[:-1], o.person_start[1:] - 1
    there = np.nonzero(end >= start)[0]
    since, until = turn[group[start[there]]], turn[group[end[there]]]
    mine = label[group[start[there]]]
    good[mine[until - since != end[there] - start[there]]] = False
    fresh = np.zeros(count, dtype=bool)
    fresh[mine[since > 0]] = True
    return LinkedGroups(label, good & ~fresh, good & fresh)


def with_places(o: Observed, cohorts: LinkedGroups) -> tuple[Observed, Bools]:
    """The series with the places of closed cohorts that nobody holds, and which appearances are of people."""
    shown = pl.DataFrame(
        {"cohort": cohorts.of_group, "group": np.arange(len(o.group_release)), "release": o.group_release}
    )
    shown = shown.filter(pl.Series(cohorts.closed[cohorts.of_group]))
    home = o.cand_group[o.person_start[o.app_person]]
    listed = pl.DataFrame({"person": o.app_person, "cohort": cohorts.of_group[home]}).unique(maintain_order=True)
    founders = listed.filter(pl.Series(cohorts.closed[listed["cohort"].to_numpy()]))
    size = np.zeros(len(cohorts.closed), dtype=np.int64)
    size[cohorts.of_group] = o.group_rows
    size -= np.bincount(founders["cohort"].to_numpy(), minlength=len(size))
    nameless = np.repeat(np.nonzero(cohorts.closed)[0], size[cohorts.closed])
    extra = pl.DataFrame({"person": o.people + np.arange(len(nameless)), "cohort": nameless})
    places = pl.concat([founders, extra]).join(shown, on="cohort").select("person", "release", "group")
    others = pl.DataFrame({"person": o.app_person, "release": o.app_release, "group": o.cand_group})
    others = others.filter(pl.Series(~cohorts.closed[cohorts.of_group[o.cand_group]]))
    everything = pl.concat([places, others]).sort("person", "release")
    key = everything["person"].to_numpy() * len(o.releases) + everything["release"].to_numpy()
    real = np.isin(key, o.app_person * len(o.releases) + o.app_release)
    names = pl.Series([f"counterfeit {n + 1}" for n in range(len(nameless))], dtype=pl.String)
    return replace(
        o,
        persons=pl.concat([o.persons.cast(pl.String), names]),
        app_person=everything["person"].to_numpy(),
        app_release=everything["release"].to_numpy(),
        app_sure=np.ones(everything.height, dtype=bool),
        cand_start=np.arange(everything.height + 1),
        cand_group=everything["group"].to_numpy(),
        group_fakes=np.where(cohorts.closed[cohorts.of_group], 0, o.group_fakes),
        crowd=None,
    ), real


def attack(
    model: Model,
    adversary: Adversary,
    *,
    samples: int | None = 0,
    seconds: float = 60.0,
    seed: int = 0,
    progress: Progress = silent,
    **how: Any,
) -> tuple[Inference, tuple[Sampled, ...]]:
    """Everything that follows, by counting and sampling; with places, if the adversary knows of them.

    `samples`: steps of sampling, None for as many as there is time for, of which that keeps a share."""
    start = time.process_time()
    how["seconds"] = seconds if samples is not None else seconds * (1 - SAMPLING)
    places = adversary.counterfeits_go_on and model.observed.located
    how["progress"] = progress
    changing = places and model.change == "transitions"
    inference, finish = _infer_places(model, **how) if changing else (infer(model, **how), None)
    if places and model.change == "never" and how.get("beliefs", True) and not model.priors:
        inference = weigh_places(inference, how.get("people"), seconds=how["seconds"])
    left = max(seconds * SAMPLING, start + seconds - time.process_time())  # what was not needed before is for this
    drawn = () if samples == 0 else sample(inference, samples, seed=seed, seconds=left, progress=progress)
    return inference if finish is None else finish(), drawn


def _infer_places(
    model: Model, *, people: Sequence[int] | None = None, seconds: float = 60.0, **how: Any
) -> tuple[Inference, Callable[[], Inference]]:
    """As `infer` with the places as people, and what makes it one without them."""
    o, cohorts = model.observed, cohorts_of(model.observed)
    end = time.process_time() + seconds
    wide, real = with_places(o, cohorts)
    at = np.nonzero(real)[0]
    larger = rebuilt(model, wide, {int(at[a]): v for a, v in model.pinned.items()})
    told = np.zeros(o.people, dtype=bool)
    told[list(model.known | set(model.priors))] = True
    home = cohorts.of_group[o.cand_group]  # by appearance
    touched = ~(cohorts.closed | cohorts.refilled)
    touched[home[told[o.app_person]]] = True
    asked = set(np.unique(o.app_person[touched[home]]).tolist())
    asked = asked if people is None else asked & set(people)
    inference = infer(larger, people=sorted(asked), seconds=seconds, **how)
    taken = np.zeros(len(touched), dtype=bool)
    taken[home[np.isin(o.app_person, sorted(asked))]] = True
    return inference, lambda: _without_places(inference, model, real, cohorts, ~touched, taken & cohorts.refilled, end)


def _without_places(
    inference: Inference, model: Model, real: Bools, cohorts: LinkedGroups, even: Bools, taken: Bools, end: float
) -> Inference:
    """What follows for people alone. `even`: cohorts in which each row is everybody's with the same chance; `taken`:
    those with newcomers in which it is not, of people who are looked at."""
    o, large, kept = model.observed, inference.state, inference.model.by_option(real)
    state = State(
        model, large.alive[kept], large.why[kept], large.where[kept], large.when[kept], large.match[real], large.clock,
        large.equal,
    )  # fmt: skip
    home = cohorts.of_group[o.cand_group]
    decided, share = inference.decided[real], inference.share[kept]
    decided[even[home]] = True
    rows = model.by_option(even[home])
    size = model.by_option(o.group_rows[o.cand_group])
    share[rows] = model.cell_cap[model.opt_cell[rows]] / size[rows]
    number = np.cumsum(real) - 1
    exact = {(int(number[a]), v): p for (a, v), p in inference.posterior.items() if real[a]}
    left = set(np.unique(inference.model.observed.app_person[~real]).tolist())
    ever = {(p, v): chance for (p, v), chance in inference.ever.items() if p not in left}
    methods = dict(inference.methods)
    groups = np.bincount(cohorts.of_group[even[cohorts.of_group]], minlength=1)
    methods.pop("not looked at", None)
    methods["exchangeable"] = int((groups > 0).sum())
    whole = Inference(state, decided, share, exact, ever, methods, inference.pending)
    enter_takeovers(whole, cohorts.of_group, np.nonzero(taken)[0], end)
    return whole
