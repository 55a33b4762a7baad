"""A first verdict on released tables without any population: what they tell of whoever is in them.

Nobody is named and nothing is certain of anybody, so it is weaker than an audit and says so. Targets are drawn from the
tables themselves: somebody whose group in each release is known, groups of two releases being somebody's if every pair
of their cells has a value in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import polars as pl

from reveil.audit.input.tables import OTHERS, refuse_bundles
from reveil.base.errors import Fault, InputError
from reveil.base.text import plain_text
from reveil.base.words import some
from reveil.published.foreign import as_ours
from reveil.published.format import COUNT, GROUP
from reveil.published.notation import Cell, parse_cell
from reveil.published.reader import read_published

WEAK = (
    "This is a first look without a population: it cannot say who is exposed, and finding nothing shows nothing. "
    "With --population, everybody's own case is worked out."
)
MOST_PAIRS = 4_000_000  # groups of two releases that are compared


@dataclass(frozen=True, eq=False)
class Table:
    """A released table: its groups with their cells, how many rows they have, and which values these show."""

    columns: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]  # of each group
    values: tuple[frozenset[str], ...]
    rows: tuple[int, ...]


@dataclass(frozen=True)
class FirstVerdict:
    """What tables tell by themselves; rows and shares of rows."""

    sensitive: str
    quasi: tuple[tuple[str, ...], ...]
    rows: tuple[int, ...]
    groups: tuple[int, ...]
    smallest: tuple[int, ...]
    single_value: tuple[int, ...]  # rows in groups that show one value
    alone: tuple[int, ...]  # rows that are a group of their own
    vanished: tuple[tuple[str, ...], ...]  # values of the release before that a release does not show
    pairs: tuple[tuple[float, float] | None, ...]  # of successive releases: targets left with one value, with none

    @property
    def found(self) -> bool:
        """Whether somebody's value follows, whoever it is."""
        return any(self.single_value) or any(pair is not None and pair[0] > 0 for pair in self.pairs)

    def to_dict(self) -> dict[str, Any]:
        return {
            "sensitive": self.sensitive,
            "releases": [
                {
                    "quasi": list(self.quasi[n]),
                    "rows": self.rows[n],
                    "groups": self.groups[n],
                    "smallest_group": self.smallest[n],
                    "rows_in_groups_of_one_value": self.single_value[n],
                    "rows_that_are_alone": self.alone[n],
                    "values_vanished": list(self.vanished[n]),
                }
                for n in range(len(self.rows))
            ],
            "successive": [pair and {"one_value": pair[0], "no_value": pair[1]} for pair in self.pairs],
            "limits": WEAK,
        }


def first_verdict(releases: Sequence[Any], sensitive: str | None = None) -> FirstVerdict:
    """What released tables tell without a population.

    >>> one = pl.DataFrame({"age": ["2*", "2*", "3*", "3*"], "illness": ["flu", "cold", "gout", "gout"]})
    >>> two = pl.DataFrame({"age": ["[25-39]", "[25-39]"], "illness": ["flu", "asthma"]})
    >>> seen = first_verdict([one, two], "illness")
    >>> seen.single_value, seen.pairs
    ((2, 0), ((0.5, 0.5),))
    """
    frames = [_rows(source) for source in releases]
    column = sensitive or _guess(frames)
    lacking = [n for n, frame in enumerate(frames, 1) if column not in frame.columns]
    if lacking:
        message = f"has no column {column!r}"
        faults = [Fault("R723", f"release {n}", message, "name the sensitive column with --sensitive") for n in lacking]
        raise InputError(faults)
    tables = [_table(frame, column) for frame in frames]
    shown = [frozenset().union(*table.values) for table in tables]
    before = [shown[0], *shown[:-1]]
    return FirstVerdict(
        column,
        tuple(table.columns for table in tables),
        tuple(sum(table.rows) for table in tables),
        tuple(len(table.rows) for table in tables),
        tuple(min(table.rows) for table in tables),
        tuple(_count(table, lambda values, _: len(values) == 1) for table in tables),
        tuple(_count(table, lambda _, rows: rows == 1) for table in tables),
        tuple(tuple(sorted(old - new)) for old, new in zip(before, shown, strict=True)),
        tuple(_intersect(one, two) for one, two in pairwise(tables)),
    )


def _rows(source: Any) -> pl.DataFrame:
    published = read_published(source, None, OTHERS)
    refuse_bundles([published])
    if published.values is not None:
        message = "two tables can only be attacked with a population"
        raise InputError(Fault("R723", "released table", message, "give --population, or one table"))
    table = published.table
    counts = pl.col(COUNT).cast(pl.Int64) if COUNT in table.columns else pl.lit(1, pl.Int64)
    return table.select(pl.exclude(GROUP, COUNT), counts.alias("\0rows"))


def _guess(frames: Sequence[pl.DataFrame]) -> str:
    """The only column of all tables whose cells are all single values; otherwise it must be named."""
    plain = [
        name
        for name in frames[0].columns
        if name != "\0rows"
        and all(name in frame.columns for frame in frames)
        and all(parse_cell(plain_text(value)).kind == "value" for frame in frames for value in frame[name].unique())
    ]
    if len(plain) != 1:
        listed = ", ".join(plain) or "none"
        message = f"without a population it cannot be told which column is sensitive (single values only: {listed})"
        raise InputError(Fault("R723", "released table", message, "name it with --sensitive"))
    return plain[0]


def _table(frame: pl.DataFrame, sensitive: str) -> Table:
    names = [name for name in frame.columns if name not in (sensitive, "\0rows")]
    texts = [as_ours(frame[name].cast(pl.String), frozenset(), missing=False).alias(name) for name in names]
    value = frame[sensitive].map_elements(plain_text, return_dtype=pl.String, skip_nulls=False).alias("\0value")
    grouped = (
        frame.select("\0rows")
        .with_columns(*texts, value)
        .group_by(names, maintain_order=True)
        .agg(pl.col("\0value").unique(), pl.col("\0rows").sum())
    )
    read = {name: {text: parse_cell(text) for text in grouped[name].unique()} for name in names}
    cells = tuple(tuple(read[name][row[name]] for name in names) for row in grouped.iter_rows(named=True))
    return Table(tuple(names), cells, tuple(map(frozenset, grouped["\0value"])), tuple(grouped["\0rows"]))


def _count(table: Table, wanted: Any) -> int:
    return sum(rows for values, rows in zip(table.values, table.rows, strict=True) if wanted(values, rows))


def _intersect(one: Table, two: Table) -> tuple[float, float] | None:
    """Of targets of the first table, each with a group of the second that may be theirs (rows weigh alike): the share
    to whom one value is left, and to whom none is. None if there are too many groups."""
    if len(one.rows) * len(two.rows) > MOST_PAIRS:
        return None
    common = [name for name in one.columns if name in two.columns]
    mine, theirs = ([table.columns.index(name) for name in common] for table in (one, two))
    single = nothing = total = 0.0
    for cells, values, rows in zip(one.cells, one.values, one.rows, strict=True):
        fits = [
            n
            for n, others in enumerate(two.cells)
            if all(meets(cells[a], others[b]) for a, b in zip(mine, theirs, strict=True))
        ]
        weight = sum(two.rows[n] for n in fits)
        for n in fits:
            left, share = len(values & two.values[n]), rows * two.rows[n] / weight
            total, single, nothing = total + share, single + share * (left == 1), nothing + share * (left == 0)
    return (single / total, nothing / total) if total else (0.0, 0.0)


def meets(one: Cell, two: Cell) -> bool:
    """Whether some value may stand behind both cells; in doubt, yes.

    >>> meets(parse_cell("2*"), parse_cell("[25-39]")), meets(parse_cell("[20, 30["), parse_cell("30-39"))
    (True, False)
    """
    if "any" in (one.kind, two.kind) or one.parts or two.parts:
        return True
    for a, b in ((one, two), (two, one)):
        if a.values and a.prefix is None and a.kind in ("value", "set"):
            return any(b.covers(value) for value in a.values)
    if one.kind == two.kind == "interval" and None not in (one.low, one.high, two.low, two.high):
        low, high = (one, two) if one.low <= two.low else (two, one)  # type: ignore[operator]
        return bool(high.low < low.high or (high.low == low.high and high.low_closed and low.high_closed))  # type: ignore[operator]
    return True


def first_lines(seen: FirstVerdict) -> list[str]:
    """The verdict in sentences, what it cannot show first."""
    lines = [WEAK, f"Columns: {seen.sensitive!r} is taken as sensitive, all others as known of people."]
    for n, rows in enumerate(seen.rows):
        lines.append(
            f"Release {n + 1}: {some(rows, 'row')} in {some(seen.groups[n], 'group')}, the smallest of "
            f"{seen.smallest[n]:,}; {seen.single_value[n]:,} in groups that show one value only: whoever is known to "
            f"be in one has it. {some(seen.alone[n], 'row is', 'rows are')} alone with what can be known of them."
        )
        if seen.vanished[n]:
            lines.append(f"Release {n + 1} no longer shows {', '.join(seen.vanished[n][:5])}.")
    for n, pair in enumerate(seen.pairs, 1):
        if pair is None:
            lines.append(f"Releases {n} and {n + 1}: not computed, for there are too many groups to compare.")
            continue
        lines.append(
            f"Releases {n} and {n + 1}: of people whose groups in both are known, {pair[0]:.1%} are left with one "
            f"value ({pair[1]:.1%} of the pairs of groups have none in common: they are nobody's), if none changes."
        )
    return lines
