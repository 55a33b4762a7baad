"""What the planners of lasting values need of the past, as arrays by person, by group and by cohort.

Read once from the `History` in one pass over its rows; what is kept is one entry per person ever published. A layout of
its own: planners ask by person and by cohort, and must not share the judges' (`verify/judges/trail.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.arrays import I32, I64, Bools, Ints
from reveil.base.kernels import kernel
from reveil.history.history import History


@dataclass(frozen=True, eq=False)
class Shown:
    """What groups showed, and who was last in which. Groups are numbered through all releases."""

    first: I64  # where the codes of each group start; one more entry than groups
    codes: I32  # published, ascending inside a group
    latest: I32  # per person: the last group they were in, -1 for those never published


@dataclass(frozen=True, eq=False)
class ClosedPast:
    """The same with cohorts that nobody ever joins later."""

    first: I64
    codes: I32
    cohort: I32  # per person, -1 for those never published
    shown: I32  # per cohort: its last group

    @property
    def cohorts(self) -> int:
        return len(self.shown)


@dataclass(frozen=True, eq=False)
class CohortPast(ClosedPast):
    """The same where places are refilled; cohorts are numbered in the order in which they were first published."""

    latest: I32  # per person: the last group they were in, -1 for those never published
    seen: I32  # per person: the last release they were in
    late: NDArray[np.bool_]  # per person: came by a refill
    refilled: I32  # per cohort: the last release that refilled it, 0 for never
    joined: I32  # per cohort: how many ever came by a refill


def read_shown(history: History, persons: I64, column: str) -> Shown:
    """What the groups of the past showed, and the last group of each of these persons (others are not looked for)."""
    people = int(persons.max(initial=-1)) + 1
    if history.groups.is_empty():
        return Shown(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32), np.full(people, -1, dtype=np.int32))
    offsets, count = group_offsets(history)
    first, codes = _codes(_values(history, column), offsets, count)
    bounds, person, group = _by_release(history)
    wanted = np.zeros(max(people, history.persons.height), dtype=bool)
    wanted[persons[persons < history.persons.height]] = True
    return Shown(first, codes, last_groups(bounds, person, group, offsets, wanted))


def times_published(history: History, people: int) -> I64:
    """How often each person was published."""
    if history.members.is_empty():
        return np.zeros(people, dtype=np.int64)
    person, group = history.members["person"].to_numpy(), history.members["group"].to_numpy()
    return np.bincount(person[group >= 0], minlength=people)


def read_past(history: History, people: int, column: str) -> CohortPast:
    """The past of everybody whose number is below `people`."""
    if history.groups.is_empty():
        none, never = np.empty(0, dtype=np.int32), np.full(people, -1, dtype=np.int32)
        late = np.zeros(people, dtype=bool)
        return CohortPast(np.zeros(1, dtype=np.int64), frozen(none), never, none, never, never, late, none, none)
    offsets, count = group_offsets(history)
    first, codes = _codes(_each_row(_values(history, column)), offsets, count)
    bounds, person, group = _by_release(history)
    followed = follow(bounds, person, group, offsets, count, max(people, history.persons.height))
    latest, cohort, seen, late, shown, refilled, joined, cohorts = followed
    groups = (shown[:cohorts], latest, seen, late, refilled[:cohorts], joined[:cohorts])
    return CohortPast(first, codes, cohort, *groups)


def read_closed(history: History, persons: I64, column: str) -> ClosedPast:
    """The same where nobody ever joined a cohort later; what groups showed is only read where these people need it."""
    people = max(int(persons.max(initial=-1)) + 1, history.persons.height)
    cohort = np.full(people, -1, dtype=np.int32)
    if history.groups.is_empty():
        none = np.empty(0, dtype=np.int32)
        return ClosedPast(np.zeros(1, dtype=np.int64), frozen(none), cohort, none)
    offsets, count = group_offsets(history)
    owner, shown, cohorts = np.full(count, -1, dtype=np.int32), np.zeros(count, dtype=np.int32), 0
    for number, pieces in sorted(_by_piece(_sorted(history.members)).items()):
        before = cohorts
        for person, group in pieces:
            cohorts = settle(person, group, offsets[number], cohort, owner, shown, before, cohorts)
    there = cohort[persons][cohort[persons] >= 0]
    oldest = int(np.searchsorted(offsets, shown[there].min(initial=count), side="right")) - 1
    values = _values(history, column).filter(pl.col("release") >= oldest)
    return ClosedPast(*_codes(_each_row(values), offsets, count), cohort, shown[:cohorts])


def _by_piece(members: pl.DataFrame) -> dict[int, list[tuple[NDArray[Any], NDArray[Any]]]]:
    """Person and group of the members of each release, as they lie in memory: a copy of all releases takes a while."""
    names = ("release", "person", "group")
    columns = [[frozen(piece.to_numpy()) for piece in members[name].get_chunks()] for name in names]
    if len({tuple(map(len, column)) for column in columns}) > 1:  # parted differently
        columns = [[frozen(members[name].to_numpy())] for name in names]
    found: dict[int, list[tuple[NDArray[Any], NDArray[Any]]]] = {}
    for release, person, group in zip(*columns, strict=True):
        numbers = np.arange(release[0], release[-1] + 1) if len(release) else np.empty(0, dtype=np.int64)
        ends = np.searchsorted(release, numbers.astype(release.dtype), side="right")
        for number, start, end in zip(numbers.tolist(), [0, *ends[:-1]], ends, strict=True):
            found.setdefault(number, []).append((person[start:end], group[start:end]))
    return found


def _values(history: History, column: str) -> pl.DataFrame:
    """What was published in one column."""
    return history.values if len(history.codebook) == 1 else history.values.filter(pl.col("column") == column)


def _each_row(values: pl.DataFrame) -> pl.DataFrame:
    """One entry for each place that shows a value: harmless values may be shown by several."""
    if values["rows"].max() == 1:
        return values
    return values[np.repeat(np.arange(values.height), values["rows"].to_numpy())]


def _by_release(history: History) -> tuple[I64, NDArray[np.integer], NDArray[np.integer]]:
    """Where the members of each release start and end, and the person and group of each."""
    members = _sorted(history.members)
    release, person, group = (frozen(members[name].to_numpy()) for name in ("release", "person", "group"))
    # Numbers of another type would be compared with a copy of all releases.
    return np.searchsorted(release, np.arange(history.head + 2, dtype=release.dtype)), person, group


def _sorted(members: pl.DataFrame) -> pl.DataFrame:
    return members if members["release"].is_sorted() else members.sort("release", maintain_order=True)


def frozen(numbers: NDArray[Any]) -> NDArray[Any]:
    """Read-only, as Polars gives numbers that it need not copy: kernels are then compiled for one type."""
    view = numbers.view()
    view.flags.writeable = False
    return view


def group_offsets(history: History) -> tuple[I64, int]:
    """The number of each release's first group, by release, and the number of all groups."""
    counts = np.bincount(history.groups["release"].to_numpy(), minlength=history.head + 2)
    ends = np.cumsum(counts)
    return ends - counts, int(ends[-1])


def _codes(values: pl.DataFrame, offsets: I64, count: int) -> tuple[I64, I32]:
    release, group, codes = (frozen(values[name].to_numpy()) for name in ("release", "group", "code"))
    first, ascending = count_values(release, group, offsets, count)
    if not ascending:
        codes = frozen(codes[np.lexsort((codes, offsets[release] + group))])
    return first, codes


@kernel
def count_values(release: Ints, group: Ints, offsets: I64, count: int) -> tuple[I64, bool]:
    """Where the values of each group start, and whether the groups are in order."""
    first = np.zeros(count + 1, np.int64)
    last, ascending = 0, True
    for i in range(len(release)):
        number = offsets[release[i]] + group[i]
        ascending = ascending and number >= last
        last = number
        first[number + 1] += 1
    for number in range(count):
        first[number + 1] += first[number]
    return first, ascending


@kernel
def last_groups(bounds: I64, person: Ints, group: Ints, offsets: I64, wanted: Bools) -> I32:
    """The last group of each wanted person, from the newest release back until all are found; -1 for none."""
    latest = np.full(len(wanted), -1, np.int32)
    missing = wanted.sum()
    for r in range(len(bounds) - 2, 0, -1):
        for i in range(bounds[r], bounds[r + 1]):
            p = person[i]
            if group[i] >= 0 and wanted[p] and latest[p] < 0:
                latest[p] = offsets[r] + group[i]
                missing -= 1
        if missing == 0:
            break
    return latest


@kernel
def settle(person: Ints, group: Ints, base: int, cohort: I32, owner: I32, shown: I32, before: int, cohorts: int) -> int:
    """Give a new cohort to the people of each group of a release that begins one. Returns how many cohorts there are.

    All people of a group are of one cohort, so only the first of them is looked up. `owner` is the cohort of each
    group, `before` how many cohorts there were before this release.
    """
    for i in range(len(person)):
        if group[i] < 0:
            continue
        g = base + group[i]
        c = owner[g]
        if c < 0:
            c = cohort[person[i]]
            if c < 0:
                c = cohorts
                cohorts += 1
            owner[g] = c
            shown[c] = g
        if c >= before:
            cohort[person[i]] = c
    return cohorts


@kernel
def follow(
    bounds: I64, person: Ints, group: Ints, offsets: I64, groups: int, people: int
) -> tuple[I32, I32, I32, Bools, I32, I32, I32, int]:
    """Follow everybody through the releases. A group belongs to the cohort of those of its people seen before."""
    latest = np.full(people, -1, np.int32)
    cohort = np.full(people, -1, np.int32)
    seen = np.zeros(people, np.int32)
    late = np.zeros(people, np.bool_)
    owner = np.full(groups, -1, np.int32)
    shown = np.zeros(groups, np.int32)
    refilled = np.zeros(groups, np.int32)
    joined = np.zeros(groups, np.int32)
    cohorts = 0
    for r in range(1, len(bounds) - 1):
        base = offsets[r]
        for i in range(bounds[r], bounds[r + 1]):
            if group[i] >= 0 and cohort[person[i]] >= 0:
                owner[base + group[i]] = cohort[person[i]]
        born = cohorts
        for i in range(bounds[r], bounds[r + 1]):
            if group[i] < 0:
                continue
            p, g = person[i], base + group[i]
            c = cohort[p]
            if c < 0:
                if owner[g] < 0:
                    owner[g] = cohorts
                    cohorts += 1
                c = cohort[p] = owner[g]
                if c < born:
                    refilled[c] = r
                    joined[c] += 1
                    late[p] = True
            shown[c] = g
            latest[p] = g
            seen[p] = r
    return latest, cohort, seen, late, shown, refilled, joined, cohorts


@kernel
def sort_by(numbers: Ints, count: int) -> tuple[I64, I64]:
    """Stable order of small numbers 0..count - 1, and where each number starts in it."""
    starts = np.zeros(count + 1, np.int64)
    for i in range(len(numbers)):
        starts[numbers[i] + 1] += 1
    for number in range(count):
        starts[number + 1] += starts[number]
    place = starts[:-1].copy()
    order = np.empty(len(numbers), np.int64)
    for i in range(len(numbers)):
        order[place[numbers[i]]] = i
        place[numbers[i]] += 1
    return order, starts
