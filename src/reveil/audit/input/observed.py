"""What an attacker has: for each release its groups, who is (or may be) in them, and the values that they show.

The audit's own layout: it is made from public bytes, and people may be in one of several groups, or in none.
Nothing here knows anybody's value. Groups are numbered over the whole series; an *appearance* is one person in one
release. Where matching cannot tell the group, an appearance has several candidates; where it cannot even tell whether
the person is in the release, the appearance is not *sure*.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from reveil.base.arrays import I64, Bools, offsets_by_key, offsets_of

Group = tuple[Sequence[Hashable], Sequence[Hashable]]  # people known to be in it, values shown


@dataclass(frozen=True)
class TableReading:
    """How released tables were read, and what matching them with the population came to."""

    column: str  # the sensitive column that is looked at
    others: tuple[str, ...]  # that may be sensitive as well
    identifier: str
    quasi: tuple[tuple[str, ...], ...]  # of each release
    releases: tuple[str, ...]
    without: tuple[str, ...]  # releases that do not show the column
    empty: tuple[str, ...]  # columns that say nothing
    overlaps: int  # releases with people who fit several groups
    placed: int  # appearances whose group is known
    appearances: int
    strangers: int  # rows that cannot be of people who are listed
    told: bool  # whether everybody is in a release was said, or is concluded from their number
    away: int  # people, counted by release, who fit a group and may not be in the release
    labelled: bool = True  # releases are called as the population calls them; otherwise by their publisher's folder


@dataclass(frozen=True, eq=False)
class Observed:
    """The attacker's view of a series. Arrays are sorted: appearances by person and release, cells by group and value.

    A *cell* is a value shown by a group, with the number of rows that show it.
    """

    releases: tuple[str, ...]
    persons: pl.Series  # their names; a person's number is the place here
    values: tuple[Any, ...]  # a value's code is its place here
    app_person: I64
    app_release: I64
    app_sure: Bools
    cand_start: I64  # candidates of appearance a: cand_group[cand_start[a]:cand_start[a + 1]]
    cand_group: I64
    group_release: I64
    group_label: tuple[str, ...]
    group_fakes: I64  # counterfeits of each group; -1 where their number is not known
    cell_group: I64
    cell_value: I64
    cell_rows: I64
    quasi: pl.DataFrame | None = None  # of each appearance, where they are known
    unmatched: int = 0  # people of the population who fit no group of any release
    reading: TableReading | None = None  # of released tables
    column: str | None = None  # the sensitive column that it is about, where that is known
    crowd: I64 | None = (
        None  # of each appearance: rows of people that fit what is known of the person; None: the group's
    )

    @cached_property
    def person_start(self) -> I64:
        """Appearances of person p: person_start[p] to person_start[p + 1]."""
        return offsets_by_key(self.app_person, len(self.persons))

    @cached_property
    def cell_start(self) -> I64:
        """Cells of group g: cell_start[g] to cell_start[g + 1]."""
        return offsets_by_key(self.cell_group, len(self.group_release))

    @cached_property
    def group_rows(self) -> I64:
        return np.bincount(self.cell_group, self.cell_rows, len(self.group_release)).astype(np.int64)

    @cached_property
    def located(self) -> bool:
        """Everybody's group is known in every release."""
        return bool(self.app_sure.all()) and len(self.cand_group) == len(self.app_person)

    @property
    def people(self) -> int:
        return len(self.persons)

    @property
    def rows(self) -> int:
        return int(self.cell_rows.sum())

    def appearances(self, groups: Bools) -> Bools:
        """Appearances that may be in one of these groups."""
        return np.logical_or.reduceat(groups[self.cand_group], self.cand_start[:-1])

    def only(self, groups: Bools) -> Observed:
        """What the attacker would have if only these groups had been published; people keep their numbers.

        Who may be in one that is withheld need not be in any of these.
        """
        keep, cands = self.appearances(groups), groups[self.cand_group]
        sure = self.app_sure & np.logical_and.reduceat(cands, self.cand_start[:-1])
        number = np.cumsum(groups) - 1
        cells = groups[self.cell_group]
        sizes = np.add.reduceat(cands.astype(np.int64), self.cand_start[:-1])[keep]
        return Observed(
            self.releases,
            self.persons,
            self.values,
            self.app_person[keep],
            self.app_release[keep],
            sure[keep],
            offsets_of(sizes),
            number[self.cand_group[cands]],
            self.group_release[groups],
            tuple(label for label, kept in zip(self.group_label, groups, strict=True) if kept),
            self.group_fakes[groups],
            number[self.cell_group[cells]],
            self.cell_value[cells],
            self.cell_rows[cells],
            None if self.quasi is None else self.quasi.filter(pl.Series(keep)),
            reading=self.reading,
            column=self.column,
            crowd=None if self.crowd is None else self.crowd[keep],
        )

    def until(self, release: int) -> Observed:
        """What the attacker had once this many releases were out; people keep their numbers."""
        return replace(self.only(self.group_release < release), releases=self.releases[:release])

    def group_name(self, group: int) -> str:
        """A group in words."""
        return f"release {self.releases[self.group_release[group]]} group {self.group_label[group]}"


def assemble(
    releases: Sequence[str],
    persons: pl.Series,
    values: Sequence[Any],
    memberships: pl.DataFrame,
    groups: pl.DataFrame,
    cells: pl.DataFrame,
) -> Observed:
    """Put the parts together.

    `memberships`: person, release, group (global number), sure; one row per candidate. `groups`: release, label,
    fakes, in order of their numbers. `cells`: group, value (code), rows.
    """
    where = memberships.sort("person", "release", "group")
    apps = where.group_by("person", "release", maintain_order=True).agg(pl.len(), pl.col("sure").all())
    shown = cells.sort("group", "value")

    def ints(column: pl.Series) -> I64:
        return column.cast(pl.Int64).to_numpy(writable=True)  # kernels are then compiled for one type

    return Observed(
        releases=tuple(releases),
        persons=persons,
        values=tuple(values),
        app_person=ints(apps["person"]),
        app_release=ints(apps["release"]),
        app_sure=apps["sure"].to_numpy(),
        cand_start=offsets_of(ints(apps["len"])),
        cand_group=ints(where["group"]),
        group_release=ints(groups["release"]),
        group_label=tuple(groups["label"].cast(pl.String)),
        group_fakes=ints(groups["fakes"]),
        cell_group=ints(shown["group"]),
        cell_value=ints(shown["value"]),
        cell_rows=ints(shown["rows"]),
    )


def from_groups(series: Iterable[Iterable[Group]]) -> Observed:
    """A series written down as lists: releases of groups of (people, values); more values than people: counterfeits.

    >>> seen = from_groups([[("AB", "xy")], [("AC", "xz")]])
    >>> seen.people, seen.values, seen.located
    (3, ('x', 'y', 'z'), True)
    """
    listed = [[(tuple(people), tuple(values)) for people, values in release] for release in series]
    names = sorted({p for release in listed for people, _ in release for p in people}, key=str)
    shown = sorted({v for release in listed for _, values in release for v in values}, key=str)
    person, code = {p: n for n, p in enumerate(names)}, {v: n for n, v in enumerate(shown)}
    where: list[tuple[int, int, int, bool]] = []
    groups: list[tuple[int, str, int]] = []
    cells: list[tuple[int, int, int]] = []
    for number, release in enumerate(listed):
        for label, (people, values) in enumerate(release, 1):
            where += [(person[p], number, len(groups), True) for p in people]
            cells += [(len(groups), code[v], values.count(v)) for v in set(values)]
            groups.append((number, str(label), len(values) - len(people)))
    return assemble(
        [str(n + 1) for n in range(len(listed))],
        pl.Series([str(name) for name in names], dtype=pl.String),
        shown,
        pl.DataFrame(where, schema=["person", "release", "group", "sure"], orient="row"),
        pl.DataFrame(groups, schema=["release", "label", "fakes"], orient="row"),
        pl.DataFrame(cells, schema=["group", "value", "rows"], orient="row"),
    )
