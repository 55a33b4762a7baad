"""What the publisher says about a release, compared with its bytes: how many rows, whose values, behind which cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.background.loading import text_hierarchies
from reveil.base.words import agree, some, some_people
from reveil.hierarchies.tree import Hierarchy
from reveil.policy.policy import Policy
from reveil.published.format import GROUP
from reveil.verify.bundles import Bundles
from reveil.verify.covering import Held, uncovered
from reveil.verify.judges.contract import View
from reveil.verify.judges.counts import beyond, count_values


@dataclass(frozen=True, eq=False)
class Crowds:
    """Two tables: what each box of people shows, and which box each member, then each stand-in, is said to be in."""

    cells: pl.DataFrame
    box: NDArray[np.int32]
    cuts: pl.DataFrame | None = None  # of the first release, where boxes keep to them


@dataclass(frozen=True)
class Truth:
    """What the publisher says about a release, to be compared with its bytes."""

    rows: int  # of the input
    withheld: int  # of these, whose own value is not shown
    values: Mapping[str, pl.DataFrame] = field(default_factory=dict)  # sensitive column -> value, rows in the input
    members: pl.DataFrame | None = None  # series: person, group (>= 0) and, by sensitive column, their value
    quasi: Mapping[str, Held] | None = None  # the quasi-identifiers of the members, then of those of `stand_ins`
    left_out: pl.DataFrame | None = None  # series: person, group (-1) and value of those who were there and not shown
    signatures: pl.DataFrame | None = None  # priors: group (>= 0) and, by prior, the signature of each person
    crowds: Crowds | None = None  # two tables, people in boxes
    bundles: Bundles | None = None  # where somebody has several rows
    stand_ins: pl.DataFrame | None = None  # person, group: people shown there while a counterfeit has their place
    by_lot: bool = True  # the rule by which newcomers wait draws lots; that of the first releases with a rule did not

    def put_in(self) -> Mapping[str, pl.DataFrame]:
        """How often each value of each sensitive column was in the input, where that is known."""
        if self.values or self.members is None or self.left_out is None:
            return self.values
        names = [name for name in self.members.columns if name not in ("person", GROUP)]
        both = pl.concat([self.members, self.left_out], how="diagonal_relaxed")
        return {name: both.group_by(pl.col(name).alias("value")).len("rows").cast({"rows": pl.Int64}) for name in names}


@dataclass(frozen=True)
class Check:
    """One thing that was looked at besides the guarantees."""

    name: str
    holds: bool
    finding: str

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "holds": self.holds, "finding": self.finding}


def compare(table: pl.DataFrame, view: View, truth: Truth) -> list[Check]:
    invented = int(view.counterfeits.sum())
    expected = truth.rows - truth.withheld + invented
    checks = [
        Check(
            "rows",
            table.height == expected,
            f"{some(table.height, 'row')} published, {expected:,} {agree(expected, 'was', 'were')} to be",
        ),
    ]
    for name in truth.values:
        seen = pl.DataFrame({"value": table[name]}).group_by("value").len("rows").cast({"rows": pl.Int64})
        checks.append(values_check(name, seen, truth.values[name], invented))
    if view.signatures is not None:
        people = np.bincount(view.signatures["class"].to_numpy() + 1, minlength=view.count + 1)
        same = people[0] == 0 and bool((people[1:] == view.sizes()).all())
        checks.append(Check("people", same, "every group has as many rows as people whose odds are weighed"))
    if view.members is not None:
        real = np.bincount(view.members["class"].to_numpy() + 1, minlength=view.count + 1)
        same = real[0] == 0 and bool((real[1:] == view.sizes() - view.counterfeits).all())
        checks.append(Check("members", same, "every group has as many real rows as people were put into it"))
        checks += [_held(table, view, truth, name) for name in view.sensitive if name in _columns_of(truth.members)]
    return checks


def values_check(name: str, seen: pl.DataFrame, held: pl.DataFrame, invented: int) -> Check:
    """Nothing is published that nobody has; both tables: value, rows."""
    known = held.cast({"value": seen.schema["value"]})  # whole numbers may be published among others
    both = seen.rename({"rows": "published"}).join(known, on="value", how="full", nulls_equal=True, coalesce=True)
    surplus = int((both["published"].fill_null(0) - both["rows"].fill_null(0)).clip(0).sum())
    finding = (
        f"{some(surplus, 'value')} published beyond those of the input; "
        f"{some(invented, 'row is a counterfeit', 'rows are counterfeits')}"
    )
    return Check(f"values of {name!r}", surplus <= invented, finding)


def _columns_of(members: pl.DataFrame | None) -> list[str]:
    return [] if members is None else members.columns


def _held(table: pl.DataFrame, view: View, truth: Truth, name: str) -> Check:
    """Later releases are judged by what each group showed, so every member's value must be shown by their own group."""
    assert truth.members is not None and view.members is not None
    values = truth.members[name].cast(table.schema[name], strict=False)
    lacking = beyond(count_values(view, name), view.members["class"].to_numpy(), values)
    finding = (
        f"{some(lacking, 'value')} of members {agree(lacking, 'is', 'are')} not among those that their group shows"
    )
    return Check(f"values of {name!r} by group", lacking == 0, finding)


def covered(
    view: View, shown: pl.DataFrame, truth: Truth, policy: Policy, stated: Mapping[str, Hierarchy]
) -> list[Check]:
    """Cells must be true: behind those of a group, or of a box of people, are the values of its members."""
    if not truth.quasi or view.members is None or view.members["class"].min() == -1:  # a wrong number of members
        return []
    classes, people = view.members["class"], pl.DataFrame([held.values for held in truth.quasi.values()])
    if view.stand_ins is not None:
        classes = pl.concat([classes, view.stand_ins["class"]])
    if people.height != len(classes):
        finding = f"{some_people(people.height)} said to be shown, and a group is stated for {len(classes):,}"
        return [Check("quasi-identifiers", False, finding)]
    checks, alike = list[Check](), classes.to_numpy()
    if view.people is not None:
        given = people.select(shown.columns) if truth.crowds is None else truth.crowds.cells[truth.crowds.box]
        checks.append(_beside(shown, view.people, given, classes))
        if truth.crowds is None:
            return checks
        shown, alike = truth.crowds.cells, truth.crowds.box.astype(np.int64)
    wrong = uncovered(shown, alike, truth.quasi, {**text_hierarchies(policy, people), **stated})
    untrue = ", ".join(f"{name!r} of {some(rows, 'member')}" for name, rows in wrong.items() if rows)
    finding = f"not true: {untrue}" if untrue else f"each covers the values of its {_kind(view)}'s members"
    return [*checks, Check("cells", not untrue, finding)]


def _kind(view: View) -> str:
    return "group" if view.people is None else "box"


def _beside(shown: pl.DataFrame, groups: NDArray[np.int64], given: pl.DataFrame, classes: pl.Series) -> Check:
    """The table of people has one row for each member, with the member's own cells beside the member's own group."""
    wanted = given.select(shown.columns).cast(shown.schema, strict=False).with_columns(classes.alias(GROUP))
    rows = shown.with_columns(pl.Series(GROUP, groups)).hash_rows().sort()
    same = rows.equals(wanted.hash_rows().sort())
    return Check("quasi-identifiers", same, "each group shows those of its members")
