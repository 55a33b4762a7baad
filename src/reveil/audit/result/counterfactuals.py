"""What would have to be otherwise: the groups an inference needs, and the smallest change that would prevent it."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction

import numpy as np

from reveil.audit.infer.infer import Inference
from reveil.audit.input.knowledge import Adversary
from reveil.audit.model.counterfeit_places import attack
from reveil.audit.model.model import Model, build
from reveil.base.arrays import I64, Bools

MOST_GROUPS = 100  # from which it is tried to show an inference by themselves
TRIED = 6  # groups that are left out, one at a time, to see whether it still follows
TRIAL = 2.0  # seconds for one trial, at most
LATE = "There was no time left to look for a change that would have prevented this."


def appearances_of(start: I64, person: int) -> range:
    return range(int(start[person]), int(start[person + 1]))


def sufficient_groups(
    m: Model, who: Adversary, groups: list[int], app: int, value: int, end: float
) -> tuple[list[int], bool]:
    """Groups around these from which it follows: first more and more of them, then (of a few) without those not needed.
    Also whether that was not shown: where groups overlap, in time, or because there are too many."""
    o = m.observed
    if not o.located:
        return groups, True
    chosen = np.zeros(len(o.group_release), dtype=bool)
    chosen[[*groups, int(m.app_factor[app])]] = True
    while not follows_from(m, who, chosen, app, value, end):
        people = np.zeros(o.people, dtype=bool)
        people[o.app_person[chosen[m.app_factor]]] = True
        wider = chosen.copy()
        wider[m.app_factor[people[o.app_person]]] = True
        if (wider == chosen).all() or wider.sum() > MOST_GROUPS or time.process_time() > end:
            return np.nonzero(chosen)[0].tolist(), True
        chosen = wider
    for group in np.nonzero(chosen)[0] if chosen.sum() <= 4 * TRIED else ():
        chosen[group] = False
        chosen[group] = not follows_from(m, who, chosen, app, value, end)
    return np.nonzero(chosen)[0].tolist(), False


def smallest_change(inference: Inference, app: int, value: int, factors: list[int], who: Adversary, end: float) -> str:
    """The smallest that would have prevented this, each tried out: one group withheld, or a release not published."""
    m, o = inference.model, inference.model.observed
    shown = {int(g) for f in factors for g in m.cell_group[m.cell_start[f] : m.cell_start[f + 1]] if g >= 0}
    groups = sorted(shown, key=lambda g: (-int(o.group_release[g]), g))
    every, needless = np.arange(len(o.group_release)), 0
    for group in groups[:TRIED]:
        follows = follows_from(m, who, every != group, app, value, end)
        if follows is False:
            where = o.group_name(group)
            alone = np.count_nonzero(o.cell_group == group) == 1
            way = "joining it with a group that shows other values" if alone else "keeping people in the same groups"
            return f"Withholding {where} would have prevented this; {way} usually costs less."
        needless += follows is True
    if time.process_time() > end:
        return LATE
    blame = "No single group is to blame" if needless == len(groups) else "No single group was found to blame"
    low, high = 0, len(o.releases)  # it does not follow from the first `low`; from the first `high` it does, or may
    while high - low > 1:
        middle = (low + high) // 2
        gone = follows_from(m, who, o.group_release < middle, app, value, end) is False
        low, high = (middle, high) if gone else (low, middle)
    if time.process_time() > end:
        return LATE
    if low:
        return f"{blame}: it did not follow up to release {o.releases[low - 1]}. People must stay together."
    return f"{blame}: groups must be larger, or people must stay together."


def follows_from(m: Model, who: Adversary, groups: Bools, app: int, value: int, end: float) -> bool | None:
    """Whether the person would still be certain in this release, or where their values last in any, had only these
    groups been published. None: not settled in time."""
    seconds = min(TRIAL, end - time.process_time())
    if seconds <= 0:
        return None
    o, person = m.observed, int(m.observed.app_person[app])
    left = o.appearances(groups)
    place, pins = np.cumsum(left) - 1, dict(m.pinned)
    if m.change == "never":  # who knows a lasting value knows it wherever the person is seen
        pins = {b: v for a, v in m.pinned.items() for b in appearances_of(o.person_start, int(o.app_person[a]))}
    pins = {int(place[a]): v for a, v in pins.items() if left[a]}
    late = {str(o.persons[p]) for p in m.priors if m.change == "transitions" and not left[o.person_start[p]]}
    priors = {name: row for name, row in who.priors.items() if name not in late}  # they are about first values
    less = build(o.only(groups), replace(who, compromised=(), share=Fraction(0), priors=priors), pinned=pins)
    inference, _ = attack(less, who, seconds=seconds, people=[person], beliefs=False)
    mine = list(appearances_of(less.observed.person_start, person))
    if m.change != "never":
        mine = [a for a in mine if less.observed.app_release[a] == o.app_release[app]]
    if any(inference.state.values_of(a) == {value} for a in mine):
        return True
    return False if inference.decided[mine].all() and not late else None
