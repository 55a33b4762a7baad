"""Attacks by name: how often each succeeds, against how often plain guessing does.

Success is over targets: people (or their appearances) whose values are not known beforehand. Where the truth is given,
a guess succeeds if it is right; otherwise if it is certain. Intervals are Wilson's at 95 %, for a target drawn at
random.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.audit.infer.certain import State
from reveil.audit.input.left_out import Telling
from reveil.audit.input.tracing import Followed
from reveil.audit.model.model import Model
from reveil.audit.model.options import OptionCells, best_links, count_of, having, lacking, sole
from reveil.audit.result.score import Score
from reveil.base.arrays import I64, Bools

Z = 1.959964


@dataclass(frozen=True)
class Attack:
    """One attack: `rate` of success over `targets`, the `baseline` of a guess without the attack, and what it does."""

    name: str
    rate: float
    baseline: float
    targets: int
    low: float
    high: float
    meaning: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "rate": self.rate,
            "baseline": self.baseline,
            "targets": self.targets,
            "interval": [self.low, self.high],
            "meaning": self.meaning,
        }


def wilson(rate: float, n: float, width: float = Z) -> tuple[float, float]:
    """The interval of a share of so many, `width` standard errors to either side.

    >>> tuple(round(x, 3) for x in wilson(0.5, 100))
    (0.404, 0.596)
    """
    if not n:
        return 0.0, 1.0
    z = width * width / n
    middle = (rate + z / 2) / (1 + z)
    half = sqrt(z * rate * (1 - rate) + z * z / 4) / (1 + z)
    return max(0.0, middle - half), min(1.0, middle + half)


def attacks(scored: Score, kinds: I64 | None = None) -> tuple[Attack, ...]:
    """Every attack that applies to this series and this adversary. `kinds` numbers the kind of each value."""
    sight = _Sight(scored, kinds)
    made = [*sight.single(), *sight.serial(), *sight.criteria()]
    return tuple(attack for attack in made if attack is not None)


def tracing_attack(followed: Followed, scored: Score) -> Attack:
    """Rows that are followed from release to release by what else stands in them."""
    people = np.unique(scored.inference.model.observed.app_person[scored.targets])
    found = np.isin(people, list(followed.people))
    columns = ", ".join(followed.columns)
    meaning = f"rows with the same {columns} are one person's, and only this person fits all of them"
    rate = float(found.mean()) if len(found) else 0.0
    return Attack("followed rows", rate, 0.0, len(found), *wilson(rate, len(found)), meaning)


def left_out_attack(told: Telling, scored: Score) -> Attack:
    """Newcomers who do not fit and are left out: the value that new groups show most often is named."""
    o = scored.inference.model.observed
    shown = np.bincount(o.cell_value, o.cell_rows, len(o.values))
    blind = shown[told.named[told.guessed]] / max(1, o.rows)
    rate = float(np.mean(told.right))
    meaning = "newcomers are not shown, and the value that is shown most often beside them is theirs"
    interval = wilson(rate, len(told.right))
    return Attack("being left out", rate, float(np.mean(blind)), len(told.right), *interval, meaning)


class _Sight:
    """Targets and group figures that the attacks share."""

    def __init__(self, scored: Score, kinds: I64 | None) -> None:
        self.inference, self.truth, self.kinds, self.m = scored.inference, scored.truth, kinds, scored.inference.model
        o = self.m.observed
        self.targets = scored.targets
        groups = len(o.group_release)
        self.rows = np.maximum(o.group_rows, 1)
        self.top = np.zeros(groups, dtype=np.int64)
        np.maximum.at(self.top, o.cell_group, o.cell_rows)
        self.distinct = np.bincount(o.cell_group, minlength=groups)
        self.home = o.cand_group[o.cand_start[:-1]][self.targets]  # the first candidate stands for an unsure group
        overall = np.bincount(o.cell_value, o.cell_rows, len(o.values))
        self.guess = float(overall.max(initial=0) / max(1, overall.sum()))

    def made(self, name: str, success: NDArray[Any], baseline: float, meaning: str) -> Attack:
        n = len(success)
        rate = float(np.mean(success)) if n else 0.0
        return Attack(name, rate, baseline, n, *wilson(rate, n), meaning)

    def single(self) -> list[Attack | None]:
        """Attacks on each release alone."""
        o, home, there = self.m.observed, self.home, self.there
        blind = self._any_row(self.targets)
        around = np.maximum(self.rows, np.bincount(o.cand_group, minlength=len(self.rows)))  # rows, or people for them
        share = self.top[home] / around[home]
        uniform = float(len(o.values) == 1)  # then a plain guess is certain, too
        few = there & (self.shown <= 2)
        skewed = "a value has half of the group or more, at least twice as often as in all releases"
        return [
            self.made("record linkage", 1 / around[home], blind, "a person's row is picked from their group"),
            self.made("attribute linkage", share, self.guess, "the most frequent value of the group is guessed"),
            self._presence(),
            self.made("homogeneity", there & (self.shown == 1), uniform, "the group shows one value only"),
            self.made("background knowledge", few, self._alone(), "ruling out one value leaves one"),
            self.made("skewness", there & self._in_all(self._skewed()), 0.0, skewed),
            self._similarity(),
        ]

    def _any_row(self, apps: I64) -> float:
        """How often a row of the release, picked blindly, is the person's."""
        o = self.m.observed
        size = np.bincount(o.group_release, o.group_rows)[o.app_release[apps]]
        return float(np.mean(1 / size)) if len(size) else 0.0

    @cached_property
    def there(self) -> Bools:
        """Targets who are surely in the release."""
        s, m = self.inference.state, self.m
        if m.observed.app_sure.all():
            return np.ones(len(self.targets), dtype=bool)
        nothing = np.full(len(m.app_factor), -1, dtype=np.int64)
        absent = s.alive & having(m.opt_start, m.opt_cell, m.cell_value, nothing)
        return np.asarray(count_of(m.opt_start, absent)[self.targets] == 0)

    @cached_property
    def shown(self) -> I64:
        """How many different values the groups that a target may be in show."""
        m, o = self.m, self.m.observed
        if o.located:
            return self.distinct[self.home]
        pairs = m.by_option(np.arange(len(m.app_factor))) * (len(o.values) + 1) + m.cell_value[m.opt_cell] + 1
        pairs = np.unique(pairs[m.cell_value[m.opt_cell] >= 0])
        return np.bincount(pairs // (len(o.values) + 1), minlength=len(m.app_factor))[self.targets]

    def _in_all(self, groups: Bools) -> Bools:
        """Targets all of whose groups are among these."""
        o = self.m.observed
        return np.logical_and.reduceat(groups[o.cand_group], o.cand_start[:-1])[self.targets]

    def _presence(self) -> Attack | None:
        reading = self.m.observed.reading
        if self.m.observed.app_sure.all() and (reading is None or reading.told):
            return None
        return self.made("table linkage", self.there, 0.0, "a person is surely in the release")

    def _skewed(self) -> Bools:
        o = self.m.observed
        total = np.bincount(o.cell_value, o.cell_rows, len(o.values))
        rows = self.rows[o.cell_group]
        often = (2 * o.cell_rows >= rows) & (o.cell_rows * total.sum() >= 2 * rows * total[o.cell_value])
        skewed = np.zeros(len(o.group_release), dtype=bool)
        skewed[o.cell_group[often]] = True
        return skewed

    def _similarity(self) -> Attack | None:
        """Values alike: numbers within a quarter of their range, or labels below one label of the policy's taxonomy."""
        o, groups = self.m.observed, len(self.m.observed.group_release)
        kinds = self.kinds
        near = _within_a_quarter(o.values) if kinds is None else (kinds, np.arange(kinds.max(initial=0) + 1))
        if not o.values or near is None:
            return None
        place, reach = near
        low, high = np.full(groups, len(reach) - 1), np.zeros(groups, dtype=np.int64)
        np.minimum.at(low, o.cell_group, place[o.cell_value])
        np.maximum.at(high, o.cell_group, place[o.cell_value])
        if not o.located:
            low = np.minimum.reduceat(low[o.cand_group], o.cand_start[:-1])[self.targets]
            high = np.maximum.reduceat(high[o.cand_group], o.cand_start[:-1])[self.targets]
        else:
            low, high = low[self.home], high[self.home]
        alike = "lie within a quarter of their range" if self.kinds is None else "are of one kind"
        everything = float(place.max() <= reach[place.min()])
        return self.made(
            "similarity", self.there & (high <= reach[low]), everything, f"all values of the group {alike}"
        )

    def serial(self) -> list[Attack | None]:
        """Attacks that put releases, known people and priors together."""
        m, o = self.m, self.m.observed
        attacks: list[Attack | None] = []
        linked = m.change != "freely" and len(o.releases) > 1
        if linked:
            chain = chain_only(m)
            name = "intersection" if m.change == "never" else "update-graph pruning"
            meaning = (
                "a person's own groups leave one value"
                if m.change == "never"
                else "one course of values fits a person's own groups"
            )
            attacks.append(self.made(name, self._solved(chain), self._alone(), meaning))
        if m.change == "never" and linked:
            attacks.append(
                self.made(
                    "critical absence",
                    self._vanished(),
                    0.0,
                    "a value of one group is missing in another of the person's groups",
                )
            )
        if m.known:
            attacks.append(
                self.made(
                    "compromised rows",
                    self._solved(exhausted(m)),
                    self._alone(),
                    "rows of known people are taken out of their groups",
                )
            )
        if linked:
            name = "historical correlation" if m.change == "never" else "joint updates"
            attacks.append(
                self.made(
                    name,
                    self._solved(self.inference.state.alive),
                    self._alone(),
                    "all groups and releases are put together",
                )
            )
        if m.priors:
            attacks.append(
                self.made("prior knowledge", self._likely(), self._most(), "the likeliest value is above one half")
            )
        return attacks

    def criteria(self) -> list[Attack | None]:
        """The three questions that data protection authorities ask of anonymised data."""
        there = self.there & (self.rows[self.home] == 1)
        return [
            self.made("singling out", there, self._any_row(self.targets), "a person's row can be told from all others"),
            self._linkability(),
            self.made(
                "inference",
                self._solved(self.inference.state.alive),
                self._alone(),
                "a person's value follows with certainty",
            ),
        ]

    def _linkability(self) -> Attack | None:
        """Saying which row of the next release is about the same person as a row of this one (lasting values only).

        Of the groups that the people of a group go to, the likeliest for the row's value is chosen, and in it a row
        with the same value. Where there is no belief, all that is possible counts alike."""
        m, o, alive = self.m, self.m.observed, self.inference.state.alive
        others = np.nonzero(~np.isin(o.app_person, np.array(sorted(m.known), dtype=np.int64)))[0]
        follows = others[others > 0]  # of everybody, whoever is asked about: a row does not say whose it is
        follows = follows[o.app_person[follows] == o.app_person[follows - 1]]
        if m.change != "never" or not o.located or not len(follows):
            return None
        chosen = np.zeros(len(m.app_factor), dtype=bool)
        chosen[follows] = True
        lists = OptionCells(m.opt_start, m.opt_cell, m.cell_value, m.cell_cap)
        right = best_links(m.factor_start, m.factor_apps, chosen, lists, alive, self.inference.share)
        n = len(follows)
        rate = min(1.0, right / n)
        meaning = "of a row, the row of the same person in the next release is named"
        return Attack("linkability", rate, self._any_row(follows), n, *wilson(rate, n), meaning)

    def _most(self) -> float:
        return float(np.mean(2 * self.top[self.home] > self.rows[self.home])) if len(self.home) else 0.0

    def _alone(self) -> float:
        return float(np.mean(self.shown == 1)) if len(self.shown) else 0.0

    def _solved(self, alive: Bools) -> Bools:
        """Targets to whom one value is left, which is right where the truth is given."""
        left = only_value(self.m, alive)[self.targets]
        solved: Bools = left >= 0 if self.truth is None else (left >= 0) & (left == self.truth[self.targets])
        return solved

    def _vanished(self) -> Bools:
        m, o = self.m, self.m.observed
        vanished: Bools = lacking(o.person_start, m.opt_start, m.opt_cell, m.cell_value, len(o.values))
        return vanished[o.app_person[self.targets]]

    def _likely(self) -> Bools:
        likely = count_of(self.m.opt_start, self.inference.share > 0.5)
        return likely[self.targets] > 0


def _within_a_quarter(values: Sequence[Any]) -> tuple[I64, I64] | None:
    """The place of each value in the order of numbers, and of each place the last one that is within a quarter of the
    range above it, exactly. None where they are not numbers."""
    try:
        numbers = [Fraction(Decimal(str(value))) for value in values]
    except (ArithmeticError, ValueError):
        return None
    order = sorted(set(numbers))
    width = (order[-1] - order[0]) / 4 if order else Fraction(0)
    place = {number: n for n, number in enumerate(order)}
    reach = [bisect_right(order, number + width) - 1 for number in order]
    return np.array([place[number] for number in numbers], dtype=np.int64), np.array(reach, dtype=np.int64)


def only_value(m: Model, alive: Bools) -> I64:
    """The only value that is left to each appearance; -1 where there are several, or perhaps none."""
    values: I64 = sole(m.opt_start, m.opt_cell, m.cell_value, alive)
    return values


def chain_only(m: Model) -> Bools:
    """What each person's own groups leave, without counting within groups and without known people."""
    state = State.start(m)
    state.alive[:] = True
    state.narrow(chains_only=True)
    return state.alive


def exhausted(m: Model) -> Bools:
    """What is left after taking known people's rows out of their groups, and intersecting (ct-pvr)."""
    state = State.start(m)
    fixed = state.alive & m.by_option(state.open_options == 1)
    taken = np.bincount(m.opt_cell[fixed], minlength=len(m.cell_cap))
    state.alive &= fixed | (taken < m.cell_cap)[m.opt_cell]
    state.narrow(chains_only=True)
    return state.alive


def classes(scored: Score) -> list[tuple[str, int]]:
    """Exposed people by what it takes to find them out, the least first; nobody is named."""
    m, o = scored.inference.model, scored.inference.model.observed
    ways: list[tuple[str, Callable[[], Bools]]] = [
        ("their group shows one value only", lambda: np.ones_like(m.possible))
    ]
    if m.change != "freely" and len(o.releases) > 1:
        ways.append(("their own groups in several releases leave one value", lambda: chain_only(m)))
    if m.known:
        ways.append(("one value is left when rows of known people are taken out", lambda: exhausted(m)))
    ways.append(("all groups and everything known are put together", lambda: scored.inference.state.alive))
    left, attacks = scored.exposed_people, []
    for text, alive in ways:
        solved = o.app_person[only_value(m, alive()) >= 0] if len(left) else left
        attacks.append((text, int(np.isin(left, solved).sum())))
        left = left[~np.isin(left, solved)]
    return [(text, count) for text, count in attacks if count]
