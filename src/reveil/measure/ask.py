"""Questions that a recipient of two tables can answer: how many people have these quasi-identifiers and this value?

Within a group nothing says who has which value, and which values are counterfeits: of its s values, c the one asked
for, every way to give them to its people counts alike. Of m people who match, m c / s are expected to have it; at least
max(0, m + c - s) and at most min(m, c) have it. Groups add up. People in boxes match by the part of their box that a
condition covers (`reveil.measure.overlaps`), so that m itself is expected, with a least and a most.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any

import polars as pl

from reveil.background.loading import load_hierarchies
from reveil.base.errors import Fault, brief, stop_if
from reveil.base.text import plain_text
from reveil.base.words import some
from reveil.hierarchies.tree import Hierarchy
from reveil.measure.overlaps import NEVER, SURELY, Fit, parts_of
from reveil.policy.policy import PolicyLike, load_policy
from reveil.published.format import COUNT, GROUP
from reveil.published.notation import parse_cell
from reveil.published.reader import Published, open_published

ANY, MANY = "*", 0.2  # a share of cells that say nothing, above which an answer says so
GUESSED = "what is expected of them is what the others show, and may be far off; go by the bounds"
CODE, TOTAL, HAVING = "\0code", "\0total", "\0having"


@dataclass(frozen=True)
class Answer:
    """A COUNT: what is expected, how far off it typically is, and what it cannot be below or above."""

    expected: Fraction
    deviation: float
    least: int
    most: int
    matching: Fraction  # people whose quasi-identifiers match, as expected; exact where `between` has one number
    between: tuple[int, int]  # least and most of them
    notes: tuple[str, ...] = ()  # conditions that nothing published meets

    def to_dict(self) -> dict[str, Any]:
        return {
            "expected": float(self.expected),
            "deviation": self.deviation,
            "least": self.least,
            "most": self.most,
            "matching": float(self.matching),
            "matching_least": self.between[0],
            "matching_most": self.between[1],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        least, most = self.between
        people = f"{some(least, 'person matches', 'people match')} the quasi-identifiers"
        if least < most:
            people = f"{float(self.matching):.4g} people ({least:,} to {most:,}) match the quasi-identifiers"
        answer = (
            f"{float(self.expected):.6g} expected (typically {self.deviation:.2g} off), between {self.least:,} and"
            f" {self.most:,}; {people}"
        )
        return "\n".join([answer, *(f"Note: {note}" for note in self.notes)])


def ask(published: Any, where: Mapping[str, object], policy: PolicyLike | None = None) -> Answer:
    """COUNT of two tables. `where` names columns and what they must be: a value, or any published notation.

    `policy` says what labels of hierarchies stand for, where people are shown in boxes of such labels.

    >>> people = pl.DataFrame({"group": [1, 1, 2, 2], "age": [30, 35, 36, 40]})
    >>> illnesses = pl.DataFrame({"group": [1, 1, 2], "ill": ["flu", "HIV", "flu"], "count": [1, 1, 2]})
    >>> answer = ask((people, {"ill": illnesses}), {"age": "[35-40]", "ill": "flu"})
    >>> answer.expected, answer.least, answer.most
    (Fraction(5, 2), 2, 3)
    """
    opened = Published(published[0], None, published[1]) if isinstance(published, tuple) else open_published(published)
    values = opened.values or {}
    stop_if(_faults(opened, where))
    rules = None if policy is None else load_policy(policy)
    trees = {} if rules is None else load_hierarchies(rules, [name for name in where if name in rules.columns])
    notes = tuple(
        filter(None, (_unmet(values.get(name, opened.table)[name], where[name], trees.get(name)) for name in where))
    )
    people, kinds = _matching(opened.table, where, trees)
    named = [name for name in where if name in values]
    groups = people.group_by(GROUP).agg(pl.len().alias(TOTAL)).with_columns(pl.col(TOTAL).alias(HAVING))
    if named:
        table = values[named[0]] if len(named) == 1 or opened.tuples is None else opened.tuples
        kept = pl.Series([True]).new_from_index(0, table.height)
        for name in named:
            kept &= table[name].is_in(_covered(table[name], where[name]).implode(), nulls_equal=True)
        counts = pl.DataFrame({GROUP: table[GROUP], TOTAL: table[COUNT], HAVING: table[COUNT] * kept.cast(pl.Int64)})
        groups = counts.group_by(GROUP).sum()
    counted = people.group_by(GROUP, CODE).len("\0people").join(groups, on=GROUP, how="left")
    lines = counted.select(GROUP, CODE, "\0people", TOTAL, HAVING).iter_rows()
    return _added(_by_group(lines, kinds), notes)


def _matching(
    table: pl.DataFrame, where: Mapping[str, object], trees: Mapping[str, Hierarchy]
) -> tuple[pl.DataFrame, list[Fit]]:
    """The group of each person, and the number of a kind of match; kinds are few, and multiply over columns."""
    kinds: dict[Fit, int] = {SURELY: 0}
    code = pl.Series(CODE, [0]).new_from_index(0, table.height)
    for name in (name for name in where if name in table.columns):
        parts = parts_of(table[name], where[name], trees.get(name))
        before, kinds = list(kinds), {}
        texts = table[name].unique()
        listed = [parts.get(value, NEVER) for value in texts]
        both = ((a, b) for a in range(len(before)) for b in set(listed))
        joined = {(a, b): kinds.setdefault(before[a].along(b), len(kinds)) for a, b in both}
        lookup = pl.DataFrame(
            {
                "\0before": [a for a in range(len(before)) for _ in listed],
                "\0value": pl.concat([texts] * len(before)),
                CODE: [joined[a, b] for a in range(len(before)) for b in listed],
            }
        )
        pairs = pl.DataFrame({"\0before": code, "\0value": table[name]})
        code = pairs.join(lookup, on=["\0before", "\0value"], how="left", nulls_equal=True, maintain_order="left")[CODE]
    return pl.DataFrame([table[GROUP], code.alias(CODE)]), list(kinds)


@dataclass(frozen=True)
class _Group:
    """People who surely match, who may, and the chances of these; values in all, and those that are asked for."""

    sure: int
    possible: int
    mean: Fraction
    spread: Fraction  # sum of p (1 - p)
    values: int
    having: int


def _by_group(lines: Any, kinds: list[Fit]) -> list[_Group]:
    groups: dict[Any, _Group] = {}
    for group, code, people, total, having in lines:
        kind, old = kinds[code], groups.get(group, _Group(0, 0, Fraction(0), Fraction(0), total, having))
        groups[group] = _Group(
            old.sure + people * kind.surely,
            old.possible + people * kind.possibly,
            old.mean + people * kind.share,
            old.spread + people * kind.share * (1 - kind.share),
            total,
            having,
        )
    return list(groups.values())


def _added(groups: list[_Group], notes: tuple[str, ...]) -> Answer:
    """The sum over groups: hypergeometric in each, over a number of matching people that is itself expected."""
    expected, variance = Fraction(0), 0.0
    for one in groups:
        s, share = one.values, Fraction(one.having, one.values)
        expected += one.mean * share
        spread = one.mean * s - one.spread - one.mean**2  # of m (s - m)
        apart = spread * share * (1 - share) / (s - 1) if s > 1 else Fraction(0)
        variance += float(apart + one.spread * share**2)
    return Answer(
        expected,
        sqrt(max(0.0, variance)),
        sum(max(0, one.sure + one.having - one.values) for one in groups),
        sum(min(one.possible, one.having) for one in groups),
        sum((one.mean for one in groups), Fraction(0)),
        (sum(one.sure for one in groups), sum(one.possible for one in groups)),
        notes,
    )


def _covered(column: pl.Series, wanted: object) -> pl.Series:
    """The published values that a condition is about: a text that was published is meant as it is written."""
    if isinstance(wanted, str) and column.dtype == pl.String and (column == wanted).any():
        return pl.Series([wanted])
    cell = parse_cell("" if wanted is None else str(wanted))
    return pl.Series([value for value in column.unique() if cell.covers(value)], dtype=column.dtype)


def _unmet(column: pl.Series, wanted: object, tree: Hierarchy | None) -> str | None:
    """What to say of a condition that no published value meets: it may be right, or a slip."""
    parts = parts_of(column, wanted, tree)
    silent = int((column.cast(pl.String) == ANY).sum())
    if any(part.possibly for value, part in parts.items() if plain_text(value) != ANY):
        few = silent > MANY * len(column)
        return f"{silent:,} of {len(column):,} cells of {column.name!r} say nothing (*): {GUESSED}" if few else None
    if silent:
        return (
            f"nothing but * of {column.name!r} may be {brief(wanted)} ({silent:,} of {len(column):,} cells): {GUESSED}"
        )
    texts = [plain_text(value) for value in column.unique() if value is not None]
    near = difflib.get_close_matches(str(wanted), texts, n=1)
    hint = f"; did you mean {brief(near[0])}" if near else ""
    return f"no published value of {column.name!r} is {brief(wanted)}, so the answer is 0{hint}"


def _faults(opened: Published, where: Mapping[str, object]) -> list[Fault]:
    if opened.values is None:
        remedy = "name a release in two tables (people and values); for other releases see `reveil measure`"
        return [Fault("R740", "published table", "is not in two tables", remedy)]
    tables: list[tuple[str, pl.DataFrame, tuple[str, ...]]] = [("published table", opened.table, (GROUP,))]
    tables += [(f"table of {name!r}", table, (GROUP, name, COUNT)) for name, table in opened.values.items()]
    lost = [
        Fault("R740", title, f"has no column {name!r}", "name a release in two tables (people and values)")
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
    together = [] if opened.tuples is None else opened.tuples.columns
    if len(sensitive) > 1 and not {*sensitive} <= {*together}:
        message = "name several sensitive columns, and nothing says how their values go together"
        remedy = "ask about one at a time; method.together publishes columns side by side"
        faults.append(Fault("R741", f"conditions on {', '.join(sensitive)}", message, remedy))
    return faults
