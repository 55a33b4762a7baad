"""Questions that a recipient of an anatomy can answer: how many people have these quasi-identifiers and this value?

Within a group nothing says who has which value. Of m matching people in a group of n, of whom c have the value,
m c / n are expected. At least max(0, m + c - n) and at most min(m, c) have it. Groups add up.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any

import polars as pl

from reveil.base.errors import Fault, brief, stop_if
from reveil.base.text import plain_text
from reveil.base.words import some
from reveil.published.format import COUNT, GROUP
from reveil.published.notation import parse_cell
from reveil.published.reader import Published, open_published


@dataclass(frozen=True)
class Answer:
    """A COUNT: what is expected, how far off it typically is, and what it cannot be below or above."""

    expected: Fraction
    deviation: float
    least: int
    most: int
    matching: int  # people whose quasi-identifiers match; their number is exact
    notes: tuple[str, ...] = ()  # conditions that nothing published meets

    def to_dict(self) -> dict[str, Any]:
        return {
            "expected": float(self.expected),
            "deviation": self.deviation,
            "least": self.least,
            "most": self.most,
            "matching": self.matching,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        answer = (
            f"{float(self.expected):g} expected (typically {self.deviation:.2g} off), between {self.least:,} and"
            f" {self.most:,}; {some(self.matching, 'person matches', 'people match')} the quasi-identifiers"
        )
        return "\n".join([answer, *(f"Note: {note}" for note in self.notes)])


def ask(published: Any, where: Mapping[str, object]) -> Answer:
    """COUNT of an anatomy. `where` names columns and what they must be: a value, or any published notation.

    >>> people = pl.DataFrame({"group": [1, 1, 2, 2], "age": [30, 35, 36, 40]})
    >>> illnesses = pl.DataFrame({"group": [1, 1, 2], "ill": ["flu", "HIV", "flu"], "count": [1, 1, 2]})
    >>> found = ask((people, {"ill": illnesses}), {"age": "[35-40]", "ill": "flu"})
    >>> found.expected, found.least, found.most
    (Fraction(5, 2), 2, 3)
    """
    opened = Published(published[0], None, published[1]) if isinstance(published, tuple) else open_published(published)
    values = opened.values or {}
    stop_if(_faults(opened, where))
    notes = tuple(filter(None, (_unmet(values.get(name, opened.table)[name], where[name]) for name in where)))
    inside = pl.DataFrame({GROUP: opened.table[GROUP], "match": _matches(opened.table, where)})
    groups = inside.group_by(GROUP).agg(pl.len().alias("n"), pl.col("match").sum().alias("m"))
    named = [name for name in where if name in values]
    if not named:
        matching = int(groups["m"].sum())
        return Answer(Fraction(matching), 0.0, matching, matching, matching, notes)
    table = values[named[0]]
    having = (
        table.filter(_matches(table, {named[0]: where[named[0]]})).group_by(GROUP).agg(pl.col(COUNT).sum().alias("c"))
    )
    both = groups.join(having, on=GROUP, how="left").with_columns(pl.col("c").fill_null(0)).cast(pl.Int64)
    return replace(_added(list(both.select("n", "m", "c").iter_rows())), notes=notes)


def _added(groups: list[tuple[int, int, int]]) -> Answer:
    """The sum over groups of n people, m of them matching, c with the value: hypergeometric in each."""
    expected, variance = Fraction(0), 0.0
    for n, m, c in groups:
        expected += Fraction(m * c, n)
        variance += m * c * (n - c) * (n - m) / (n * n * (n - 1)) if n > 1 else 0.0
    least = sum(max(0, m + c - n) for n, m, c in groups)
    return Answer(expected, sqrt(variance), least, sum(min(m, c) for _, m, c in groups), sum(m for _, m, _ in groups))


def _covered(column: pl.Series, wanted: object) -> list[Any]:
    """The published values that a condition is about: a text that was published is meant as it is written."""
    if isinstance(wanted, str) and column.dtype == pl.String and (column == wanted).any():
        return [wanted]
    cell = parse_cell("" if wanted is None else str(wanted))
    return [value for value in column.unique() if cell.covers(value)]


def _unmet(column: pl.Series, wanted: object) -> str | None:
    """What to say of a condition that no published value meets: it may be right, or a slip."""
    if _covered(column, wanted):
        return None
    texts = [plain_text(value) for value in column.unique() if value is not None]
    near = difflib.get_close_matches(str(wanted), texts, n=1)
    hint = f"; did you mean {brief(near[0])}" if near else ""
    return f"no published value of {column.name!r} is {brief(wanted)}, so the answer is 0{hint}"


def _matches(table: pl.DataFrame, where: Mapping[str, object]) -> pl.Series:
    """Which rows fit every condition on a column of this table."""
    matching = pl.repeat(True, table.height, dtype=pl.Boolean, eager=True)
    for name in (name for name in where if name in table.columns):
        kept = _covered(table[name], where[name])
        matching &= table[name].is_in(pl.Series(kept, dtype=table[name].dtype).implode(), nulls_equal=True)
    return matching


def _faults(opened: Published, where: Mapping[str, object]) -> list[Fault]:
    if opened.values is None:
        remedy = "name an anatomy release (qit and st); for other releases see `reveil measure`"
        return [Fault("R740", "published table", "is not an anatomy", remedy)]
    tables: list[tuple[str, pl.DataFrame, tuple[str, ...]]] = [("published table", opened.table, (GROUP,))]
    tables += [(f"table of {name!r}", table, (GROUP, name, COUNT)) for name, table in opened.values.items()]
    lost = [
        Fault("R740", title, f"has no column {name!r}", "name an anatomy release (qit and st)")
        for title, table, needed in tables
        for name in needed
        if name not in table.columns
    ]
    if lost:
        return lost
    quasi = [name for name in opened.table.columns if name != GROUP]
    known = [*quasi, *opened.values]
    faults = [
        Fault("R741", f"condition on {brief(name)}", "names no column", f"use one of {', '.join(known)}")
        for name in where
        if name not in known
    ]
    sensitive = [name for name in where if name in opened.values]
    if len(sensitive) > 1:
        message = "name several sensitive columns, and nothing says how their values go together"
        faults.append(Fault("R741", f"conditions on {', '.join(sensitive)}", message, "ask about one at a time"))
    return faults
