"""Compromise safety: even if any c people's values are known, no other can be guessed with more than tau.

People who were ever in one group belong to one *component*. A component is a *closed cohort* if each release
shows it as one group, always with the same values, and nobody comes back after missing a refill. For those the
adversary's belief is known exactly. Without refills any two of its people can exchange their values, whatever these
are: of s people, c of them known, another has a value that n of them show with n / (s - c) at most. With refills
(`lineage`) a place is somebody's with the chance that is computed there, so that a protected value must be shown by one
place; what is known of people with harmless values is a mixture over the places that show them. Everything else is
judged as not shown to hold, however harmless it looks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I64, offsets_by_key
from reveil.base.bags import item_of, values_of
from reveil.base.kernels import kernel
from reveil.base.words import some
from reveil.guarantees.compromise_safety import CompromiseSafety
from reveil.guarantees.selection import NOTHING, Selection
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.verify.judges.cohort_bounds import promised_guess
from reveil.verify.judges.contract import Background, Judge, Verdict, View
from reveil.verify.judges.counts import exceeds, listed, written
from reveil.verify.judges.lineage import lineage, worst_guess
from reveil.verify.judges.trail import Trail, trail
from reveil.verify.judges.verdicts import empty

Flags = NDArray[np.bool_]
Protects = Callable[[object], bool]
ADVERSARY = (
    "knows who is in which group of every release, all published values and counterfeit counts, and the true "
    "values of any {known}; holds all assignments of values that fit for equally likely; does not reason about "
    "why the publisher grouped people as it did"
)


@dataclass(frozen=True, eq=False)
class Components:
    """The components that appear in the release that is judged."""

    trail: Trail  # groups of these components only
    of_group: I64
    count: int


def components(all_groups: Trail) -> Components:
    """Who is linked with whom through groups they were in, as far as the release at hand is concerned."""
    people, index = np.unique(all_groups.person, return_inverse=True)
    width = len(people) + all_groups.groups
    label = linked(index, len(people) + all_groups.group, width)[len(people) :]
    current = np.zeros(width, dtype=bool)
    current[label[all_groups.now :]] = True
    kept = current[label]
    numbers, of_group = np.unique(label[kept], return_inverse=True)
    return Components(all_groups.only(kept), of_group.astype(np.int64), len(numbers))


@kernel
def linked(one: I64, other: I64, count: int) -> I64:
    """The smallest node that each of `count` nodes is linked with, itself included, by links from `one` to `other`."""
    root = np.arange(count)
    for i in range(len(one)):
        a, b = one[i], other[i]
        while root[a] != a:
            root[a] = root[root[a]]
            a = root[a]
        while root[b] != b:
            root[b] = root[root[b]]
            b = root[b]
        root[max(a, b)] = min(a, b)
    for node in range(count):
        root[node] = root[root[node]]  # those before it are settled
    return root


@dataclass(frozen=True, eq=False)
class Refills:
    """Every refill of every component: when newcomers joined a cohort that had been published before."""

    component: I64
    release: I64
    vacant: I64  # places that nobody held just before
    joined: I64
    fresh: I64  # people who have left since the refill before
    missed: I64  # people who were away and came back later
    first: I64  # per person: component, first and last release
    last: I64
    owner: I64


def refills(parts: Components) -> Refills:
    t = parts.trail
    people, index = np.unique(t.person, return_inverse=True)
    when, far = t.when, int(t.release.max(initial=0)) + 2
    first, last = np.full(len(people), far), np.zeros(len(people), dtype=np.int64)
    np.minimum.at(first, index, when)
    np.maximum.at(last, index, when)
    owner = np.zeros(len(people), dtype=np.int64)
    owner[index] = parts.of_group[t.group]
    begin = np.full(parts.count, far)
    np.minimum.at(begin, parts.of_group, t.release)
    arrivals = first > begin[owner]
    keys, joined = np.unique(owner[arrivals] * far + first[arrivals], return_counts=True)
    component, release = keys // far, keys % far
    before = np.where(np.diff(component, prepend=-1) == 0, np.roll(release, 1), 0)
    started, ended = np.sort(owner * far + first), np.sort(owner * far + last)
    gone = _between(ended, component * far, keys)
    entries = parts.of_group[t.group] * far + when
    entries = entries[np.isin(entries, keys)]
    held = np.bincount(np.searchsorted(keys, entries), minlength=len(keys))
    old = held - joined
    spanning = _between(started, component * far, keys) - gone
    rows = np.zeros(parts.count, dtype=np.int64)
    rows[parts.of_group] = t.rows
    return Refills(
        component=component,
        release=release,
        vacant=rows[component] - old,
        joined=joined,
        fresh=_between(ended, component * far + before, keys),
        missed=spanning - old,
        first=first,
        last=last,
        owner=owner,
    )


def _between(ordered: I64, low: I64, high: I64) -> I64:
    """How many of the sorted numbers lie in low <= x < high."""
    return np.searchsorted(ordered, high) - np.searchsorted(ordered, low)


def together(parts: Components, refilled: Refills) -> Flags:
    """Components that each release shows as one group of people and counterfeits, newcomers being in vacant places."""
    t = parts.trail
    good = np.ones(parts.count, dtype=bool)
    keys = parts.of_group * (int(t.release.max(initial=0)) + 1) + t.release
    repeated = np.unique(keys, return_counts=True)
    good[repeated[0][repeated[1] > 1] // (int(t.release.max(initial=0)) + 1)] = False
    good[parts.of_group[np.bincount(t.group, minlength=t.groups) + t.counterfeits != t.rows]] = False
    good[refilled.component[refilled.missed > 0]] = False
    good[refilled.component[refilled.joined > refilled.vacant]] = False
    return good


def closed(parts: Components, refilled: Refills, protects: Protects, *, repeats: bool = False) -> Flags:
    """Which components are closed cohorts; with `repeats`, those that were never refilled may repeat any value."""
    t, good = parts.trail, together(parts, refilled)
    repeated = parts.of_group[t.value_group[(t.value_rows > 1) & ~t.harmless(protects)]]
    lasting = np.full(parts.count, repeats)
    lasting[refilled.component] = False
    good[repeated[~lasting[repeated]]] = False
    signature = t.multisets
    any_of = np.zeros(parts.count, dtype=np.int64)
    any_of[parts.of_group] = signature
    good[parts.of_group[any_of[parts.of_group] != signature]] = False
    return good


def most_shown(parts: Components, protects: Protects) -> I64:
    """How many places of each component show the same protected value; one where all are harmless."""
    t, most = parts.trail, np.ones(parts.count, dtype=np.int64)
    protected = ~t.harmless(protects)
    np.maximum.at(most, parts.of_group[t.value_group[protected]], t.value_rows[protected])
    return most


def most_linked(parts: Components, protects: Protects) -> I64:
    """The same where a value is the bag of all that somebody has: places of which the bag has the value, however often.

    People of a cohort can exchange their bags, so that each is as likely to have any of them.
    """
    t, most = parts.trail, np.ones(parts.count, dtype=np.int64)
    number: dict[str, int] = {}
    held = [{item_of(one) for one in values_of(bag) if protects(one)} for bag in t.book]
    codes = [[number.setdefault(item, len(number)) for item in sorted(items)] for items in held]
    sizes = np.array([len(one) for one in codes], dtype=np.int64)
    inside = np.array([code for one in codes for code in one], dtype=np.int64)
    many, starts = sizes[t.value], np.concatenate([[0], np.cumsum(sizes)])[t.value]
    place = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
    keys = np.repeat(t.value_group, many) * max(1, len(number)) + inside[np.repeat(starts, many) + place]
    distinct, index = np.unique(keys, return_inverse=True)
    people = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(people, index, np.repeat(t.value_rows, many))
    np.maximum.at(most, parts.of_group[distinct // max(1, len(number))], people)
    return most


def guesses(parts: Components, refilled: Refills, known: int) -> dict[int, Fraction]:
    """The worst guess in each cohort that was refilled, where that may be worse than without refills."""
    worst: dict[int, Fraction] = {}
    if known == 0:
        return worst
    slow = set(np.unique(refilled.component).tolist()) if known > 1 else set()
    if known == 1:
        # A fresh leaver's place is vacant for certain: each newcomer has it with chance 1/vacant, and no place
        # is likelier to go to one newcomer than that.
        plain = refilled.fresh > 0
        pairs = np.column_stack([refilled.component, refilled.vacant])[plain]
        for component, vacant in pairs.tolist():
            worst[component] = max(worst.get(component, Fraction(0)), Fraction(1, vacant))
        slow = set(refilled.component[~plain].tolist())
    for component, lives, events, places in _lives(parts, refilled, slow):
        guess = worst_guess(lineage(places, events, lives), known) if known <= 2 else Fraction(1)
        worst[component] = max(worst.get(component, Fraction(0)), guess)
    return worst


Lives = list[tuple[int, int]]


def _lives(parts: Components, refilled: Refills, wanted: set[int]) -> list[tuple[int, Lives, int, int]]:
    """Component, lives of its people, events and places."""
    if not wanted:
        return []
    rows = np.zeros(parts.count, dtype=np.int64)
    rows[parts.of_group] = parts.trail.rows
    by_owner = np.argsort(refilled.owner, kind="stable")
    starts = offsets_by_key(refilled.owner[by_owner], parts.count)
    events = offsets_by_key(refilled.component, parts.count)
    listed = []
    for component in sorted(wanted):
        people = by_owner[starts[component] : starts[component + 1]]
        dates = refilled.release[events[component] : events[component + 1]]
        came = np.searchsorted(dates, refilled.first[people], side="right")
        left = np.searchsorted(dates, refilled.last[people], side="right") + 1
        lives = list(zip(came.tolist(), left.tolist(), strict=True))
        listed.append((component, lives, len(dates) + 1, int(rows[component])))
    return listed


@dataclass
class CompromiseSafetyJudge:
    """No guess above tau, whichever c people are known: exact for closed cohorts, refused for all else."""

    m: int
    known: int
    tau: Fraction
    column: str
    name: str = "compromise-safety"
    harmless: Selection = NOTHING
    several: str = ""  # who has several rows: people, or households

    def protects(self, value: object) -> bool:
        return not self.harmless.selects(value)

    def judge(self, view: View, history: History) -> list[Verdict]:
        known = some(self.known, "person", "people")
        details: dict[str, Any] = {"column": self.column, "adversary": ADVERSARY.format(known=known)}
        details |= without_bound(self.harmless)
        if not len(view.classes):
            return [empty(self.name, self.tau, details)]
        everything = trail(view, history, self.column)
        if everything is None:
            return [unknown_members(self.name, self.tau, view, details)]
        parts = components(everything)
        refilled = refills(parts)
        good = closed(parts, refilled, self.protects, repeats=True)
        most = most_linked(parts, self.protects) if self.several else most_shown(parts, self.protects)
        sizes = np.zeros(parts.count, dtype=np.int64)
        sizes[parts.of_group] = parts.trail.rows
        kinds = np.unique(np.column_stack([most, sizes])[good], axis=0).tolist()
        worst = [min(Fraction(1), Fraction(n, max(1, size - self.known))) for n, size in kinds]
        bad = ~good | (sizes < self.m) | exceeds(most, np.maximum(0, sizes - self.known), self.tau)
        for component, guess in guesses(parts, refilled, self.known).items():
            if good[component]:
                worst.append(guess)
                bad[component] |= guess > self.tau
        now = parts.of_group[parts.trail.now :]
        highest = Fraction(1) if not good.all() else max(worst)
        details |= {
            "cohorts": parts.count,
            "not closed": int((~good).sum()),
            "refills": len(refilled.component),
            "counterfeits": int(view.counterfeits.sum()),
        }
        above = some(int((bad & good).sum()), "cohort")
        words = Words(
            causes=f"{some(details['not closed'], 'cohort')} regrouped or changed, {above} too small, with a value "
            "too often, or refilled too few at a time",
            danger="People were regrouped, or too few stand together: whoever knows the values of some people could "
            "learn those of others.",
            what=repr(self.column) + excepted(self.harmless) + (" in any of their rows" if self.several else ""),
            over=f"{some(parts.count, 'closed cohort')} and their whole past",
            who=f"Someone who knows the true value of {known}",
            besides=" Later releases do not change that, but for refills of places, which keep to the promise.",
        )
        return [guess_verdict(self, highest, bad[now], parts.trail.rows[parts.trail.now :], details, words)]


def without_bound(harmless: tuple[str, ...]) -> dict[str, Any]:
    """The values for which nothing is promised, for the details of a verdict."""
    return {"harmless values, without a bound": list(harmless)} if harmless else {}


def excepted(harmless: tuple[str, ...]) -> str:
    """The same for a sentence.

    >>> excepted(("none",))
    " (but for harmless 'none')"
    """
    return f" (but for harmless {listed(harmless)})" if harmless else ""


class GuessJudge(Protocol):
    """A judge that bounds the chance of a guess when some people are known."""

    name: str
    column: str
    known: int
    tau: Fraction
    harmless: Selection


@dataclass(frozen=True)
class Words:
    """What differs between the verdicts on guesses."""

    causes: str  # why a value may be guessed
    danger: str  # the same in plain words
    what: str  # that cannot be guessed
    over: str  # which cohorts and releases
    who: str  # guesses, in plain words
    besides: str = ""


def guess_verdict(
    judge: GuessJudge, worst: Fraction, bad: Flags, rows: I64, details: dict[str, Any], words: Words
) -> Verdict:
    """The verdict on the highest chance of a guess; `bad` groups of the release, and the rows of all its groups."""
    whom = f"any {some(judge.known, 'person', 'people')} known" if judge.known else "nobody known"
    if bad.any():
        statement = (
            f"with {whom}, {some(int(bad.sum()), 'group')} of {len(bad):,} may let {judge.column!r} be guessed with "
            f"more than {written(judge.tau)}: {words.causes}"
        )
        plain = words.danger
    else:
        statement = (
            f"with {whom}, no other {words.what} can be guessed with more than {written(worst)}, over {words.over}; "
            f"{written(judge.tau)} was promised"
        )
        plain = (
            f"{words.who} guesses the value{excepted(judge.harmless)} of anybody else who is or was in a group of this "
            f"release with a chance of at most {written(worst)}.{words.besides}"
        )
    violating = int(rows[bad].sum())
    return Verdict(judge.name, statement, plain, not bad.any(), worst, judge.tau, int(bad.sum()), violating, details)


def unknown_members(name: str, bound: Fraction | int, view: View, details: dict[str, Any]) -> Verdict:
    """A promise about a series cannot be judged without knowing who is in which group."""
    return Verdict(
        name,
        "it is not known who is in which group, so nothing about the series can be shown",
        "This promise is about people over several releases; a table without its series cannot be judged.",
        False,
        None,
        bound,
        view.count,
        len(view.classes),
        details,
        decided=False,
    )


def build_cohorts(asked: CompromiseSafety, policy: Policy, background: Background) -> list[Judge]:
    terms = (asked.m, asked.compromised, promised_guess(asked))
    return [
        CompromiseSafetyJudge(*terms, name, harmless=policy.harmless(name), several=policy.bundled)
        for name in policy.named("sensitive")
    ]
