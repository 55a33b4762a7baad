"""The global guarantee: over all releases together, nobody is linked to a value with a chance above 1/l.

For values that change freely the chance of having *escaped* value s is the product of (n - n_s)/n over the
groups a person was in (Lemma 2 of "Global Privacy Guarantee in Serial Data Publishing"). Every published row
of a group is equally likely to be the person's, counterfeits included. Sums of logarithms settle all that is
clear; what lies within their error of the bound is decided in whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.arrays import I64, offsets_by_key
from reveil.base.text import plain_text
from reveil.base.words import some
from reveil.guarantees.global_guarantee import Global
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.verify.judges.contract import Background, Judge, Verdict, View
from reveil.verify.judges.counts import count_values, written
from reveil.verify.judges.verdicts import empty

Floats = NDArray[np.float64]
_Held = dict[int, tuple[NDArray[Any], NDArray[Any]]]  # release -> groups that have a value, and in how many rows
# A logarithm of a whole number below 2**40 is at most 28 and wrong by at most 2**-52 of itself, so a difference
# of two, and its addition to a sum of at most 28 per release, err by less than 2e-14 for each release before it
# settles. Ten times as much per release is a safe margin.
MARGIN = 2e-13

BINS = 10


@dataclass(frozen=True, eq=False)
class _Tracks:
    """Where the people of the present release were, release by release; the present one comes last."""

    rows: list[I64]  # of each group of a release; the last is an empty place for those who were absent
    place: list[NDArray[np.intp]]  # group of each person, or the empty place

    @property
    def people(self) -> int:
        return len(self.place[-1])


@dataclass
class _Findings:
    """What was found so far, value by value."""

    trail: Floats  # releases x people: the lowest logarithm of escape over all values, after each release
    bad: NDArray[np.bool_]
    lowest: float = 0.0
    worst: Fraction = field(default_factory=lambda: Fraction(0))
    value: Any = None


@dataclass
class GlobalJudge:
    """Over all releases, nobody is linked to a protected value of a column with a chance above 1/l."""

    l: Fraction  # noqa: E741 - the name the field uses
    column: str
    protects: Callable[[object], bool] = lambda value: True
    name: str = "global"
    some_only: bool = False  # whether there are values that are not protected

    def judge(self, view: View, history: History) -> list[Verdict]:
        if not view.count:
            return [empty(self.name, 1 / self.l, {"column": self.column})]
        tracks = _tracks(view, history)
        findings = _Findings(np.zeros((len(tracks.rows), tracks.people)), np.zeros(tracks.people, dtype=np.bool_))
        for value, held in self._values(view, history, len(tracks.rows) - 1):
            self._follow(value, held, tracks, findings)
        return [self._verdict(findings, tracks)]

    def _values(self, view: View, history: History, last: int) -> Iterator[tuple[Any, _Held]]:
        """Each protected value that was ever published: groups and rows of every release it occurs in."""
        counts = count_values(view, self.column)
        held: dict[str, _Held] = {}
        named: dict[str, Any] = {}
        for release, value, groups, rows in _past(history, self.column):
            if self.protects(value):
                named[plain_text(value)] = value
                held.setdefault(plain_text(value), {})[release] = (groups, rows)
        order = np.argsort(counts.value, kind="stable")
        starts = offsets_by_key(counts.value[order], len(counts.values))
        for number, value in enumerate(counts.values.to_list()):
            if self.protects(value):
                mine = order[starts[number] : starts[number + 1]]
                named.setdefault(plain_text(value), value)
                groups, rows = counts.classes[counts.owner[mine]], counts.count[mine]
                held.setdefault(plain_text(value), {})[last] = (groups, rows)
        for text, releases in held.items():
            yield named[text], releases

    def _follow(self, value: Any, held: _Held, tracks: _Tracks, findings: _Findings) -> None:
        """One value through all releases."""
        here = {release: _spread(groups, rows, len(tracks.rows[release])) for release, (groups, rows) in held.items()}
        escape = np.zeros(tracks.people)
        for release in range(len(tracks.rows)):
            if release in here:
                rows = tracks.rows[release]
                with np.errstate(divide="ignore"):  # no escape from a group that has no other value
                    step = np.log(rows - here[release]) - np.log(rows)
                escape += step[tracks.place[release]]
            np.minimum(findings.trail[release], escape, out=findings.trail[release])
        margin = MARGIN * (len(tracks.rows) + 1)
        bound = math.log(1 - 1 / self.l)
        findings.bad |= escape < bound - margin
        near = np.flatnonzero(np.abs(escape - bound) <= margin)
        for people, chance in _exactly(near, here, tracks):
            findings.bad[people] |= chance > 1 / self.l
        lowest = float(escape.min(initial=0.0))
        if lowest < 0 and lowest <= findings.lowest + margin:
            for _, chance in _exactly(np.flatnonzero(escape <= lowest + margin), here, tracks):
                if chance > findings.worst:
                    findings.worst, findings.value = chance, value
            findings.lowest = min(findings.lowest, lowest)

    def _verdict(self, findings: _Findings, tracks: _Tracks) -> Verdict:
        releases, wrong = len(tracks.rows), int(findings.bad.sum())
        bound, over = written(1 / self.l), f"{some(len(tracks.rows), 'release')} together"
        highest = f"the highest chance is {_short(findings.worst)}"
        if findings.value is not None or findings.worst:
            highest += f" (value {findings.value!r})"
        if wrong:
            statement = (
                f"{some(wrong, 'person', 'people')} of {tracks.people:,} may have been linked to a protected "
                f"value of {self.column!r} with a chance above {bound} over {over}; {highest}"
            )
            plain = (
                f"Taken together, the releases say more about some people than was promised: that they had a "
                f"{self._which} {self.column!r} at some time can be guessed with "
                f"a chance of {float(findings.worst):.1%}."
            )
        else:
            statement = (
                f"over {over}, none of {some(tracks.people, 'person', 'people')} is linked to a protected "
                f"value of {self.column!r} with a chance above {bound}, if values change freely; {highest}"
            )
            plain = (
                f"Whoever reads all releases so far, and knows which group a person of this one was in each time, can "
                f"tell that the person ever had a {self._which} {self.column!r} with a chance of at most "
                f"{float(findings.worst):.1%}. This supposes that a value says nothing about the person's next one."
            )
        return Verdict(
            guarantee=self.name,
            statement=statement,
            plain=plain,
            holds=not wrong,
            worst=findings.worst,
            bound=1 / self.l,
            violating_classes=len(np.unique(tracks.place[-1][findings.bad])),
            violating_rows=wrong,
            details=self._details(findings, tracks, releases),
        )

    @property
    def _which(self) -> str:
        """Of values without protection nothing is said, so the plain sentence must not speak of all."""
        return "certain protected" if self.some_only else "certain"

    def _details(self, findings: _Findings, tracks: _Tracks, releases: int) -> dict[str, Any]:
        chances = -np.expm1(findings.trail)
        share = np.clip(chances[-1] * float(self.l) * BINS, 0, BINS)
        bins = np.bincount(np.ceil(share - 1e-9).clip(1, BINS).astype(np.int64) - 1, minlength=BINS)
        known = [
            place < len(rows) - 1 for place, rows in zip(tracks.place, tracks.rows, strict=True)
        ]  # who is in each release
        spent = findings.lowest / math.log(1 - 1 / self.l)
        return {
            "column": self.column,
            "assumes": "values change freely from release to release",
            "people": tracks.people,
            "releases": releases,
            "value": None if findings.value is None else plain_text(findings.value),
            "share of the budget spent": round(spent, 6) if math.isfinite(spent) else None,
            "people by tenth of the bound": bins.tolist(),
            "highest chance by release": [round(float(c.max(initial=0.0)), 6) for c in chances],
            "mean chance by release": [
                round(float(c[k].mean()), 6) if k.any() else 0.0 for c, k in zip(chances, known, strict=True)
            ],
        }


def _tracks(view: View, history: History) -> _Tracks:
    """The groups of this release's people, now and before. Without known members, every row is a person."""
    if view.members is None:
        persons, classes = np.empty(0, dtype=np.int64), view.classes
    else:
        persons = view.members["person"].cast(pl.Int64).to_numpy()
        classes = view.members["class"].cast(pl.Int64).to_numpy()
    rows, place = [], []
    index = np.full(int(persons.max(initial=-1)) + 2, -1, dtype=np.int64)
    index[persons] = np.arange(len(persons))
    for release in range(1, history.head + 1):
        groups = history.groups.filter(pl.col("release") == release)
        sizes = _spread(groups["group"].to_numpy(), groups["rows"].to_numpy(), 1 + _top(groups["group"]))
        rows.append(np.append(sizes, 1))
        members = history.members.filter((pl.col("release") == release) & (pl.col("group") >= 0))
        who = members["person"].cast(pl.Int64).to_numpy()
        where = members["group"].cast(pl.Int64).to_numpy()
        mine = index[np.minimum(who, len(index) - 1)]
        present = mine >= 0
        track = np.full(len(classes), len(sizes), dtype=np.intp)
        track[mine[present]] = where[present]
        place.append(track)
    return _Tracks([*rows, np.append(view.sizes(), 1)], [*place, classes.astype(np.intp)])


def _top(groups: pl.Series) -> int:
    return -1 if groups.is_empty() else int(groups.cast(pl.Int64).to_numpy().max())


def _spread(groups: NDArray[Any], rows: NDArray[Any], length: int) -> I64:
    spread = np.zeros(length, dtype=np.int64)
    spread[groups] = rows
    return spread


def _past(history: History, column: str) -> Iterator[tuple[int, Any, NDArray[Any], NDArray[Any]]]:
    """(release from 0, value, groups, rows) of everything published before in this column."""
    if history.values.is_empty():
        return
    book = history.codebook[column]
    mine = history.values.filter(pl.col("column") == column)
    for (release, code), part in mine.partition_by("release", "code", as_dict=True).items():
        yield int(release) - 1, book[int(code)], part["group"].to_numpy(), part["rows"].to_numpy()


def _exactly(
    people: NDArray[np.intp], held: dict[int, I64], tracks: _Tracks
) -> Iterator[tuple[NDArray[np.intp], Fraction]]:
    """The exact chance of having been linked to a value, for people in sets of equal exposure."""
    if not len(people):
        return
    pairs = np.empty((len(people), 2 * len(held)), dtype=np.int64)
    for number, (release, rows) in enumerate(held.items()):
        where = tracks.place[release][people]
        pairs[:, 2 * number], pairs[:, 2 * number + 1] = rows[where], tracks.rows[release][where]
    kinds, which = np.unique(pairs, axis=0, return_inverse=True)
    which = which.reshape(-1)
    for number, kind in enumerate(kinds.tolist()):
        n = math.prod(kind[1::2])
        free = math.prod(rows - mine for mine, rows in zip(kind[::2], kind[1::2], strict=True))
        yield people[which == number], Fraction(n - free, n)


def _short(chance: Fraction) -> str:
    return written(chance) if chance.denominator < 10**6 else f"about {float(chance):.6g}"


def build_global(asked: Global, policy: Policy, background: Background) -> list[Judge]:
    some_only = asked.protect is not None or asked.harmless is not None
    return [GlobalJudge(asked.l, name, asked.protects, some_only=some_only) for name in policy.named("sensitive")]
