"""Which column of released tables and of a population is what: from the policy, or from what both have in common.

Every table may have columns of its own: one that only some releases show counts where it is shown. Columns that say
nothing (row numbers) are left out, and everything is said: an audit of the wrong column is worse than
none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from reveil.base.errors import Fault, brief, stop_if
from reveil.base.text import plain_text
from reveil.policy.policy import Policy
from reveil.published.format import COUNT, GROUP
from reveil.published.reader import Published
from reveil.table.doubts import INDEX_NAMES, counts_rows

RELEASE = "release"  # column of a population: which release a line is about


@dataclass(frozen=True)
class Columns:
    """What each column was taken for."""

    identifier: str
    quasi: tuple[tuple[str, ...], ...]  # of each release
    sensitive: tuple[str, ...]  # all that may be
    release: str | None  # of the population
    empty: tuple[str, ...]  # columns of released tables that say nothing

    @property
    def known(self) -> tuple[str, ...]:
        """Quasi-identifiers of any release, in order."""
        return tuple(dict.fromkeys(name for names in self.quasi for name in names))


def columns_of(
    tables: Sequence[Published],
    people: pl.DataFrame,
    policy: Policy | None,
    sensitive: str | None,
    identifier: str | None,
) -> Columns:
    """What the columns are, or everything that is wrong with them."""
    empty = tuple(dict.fromkeys(name for one in tables for name in _row_numbers(one.table)))
    release = RELEASE if RELEASE in people.columns else None
    named = _identifier(tables, people, policy, identifier)
    shown = [[name for name in one.table.columns if name not in (GROUP, named, *empty)] for one in tables]
    wanted = people.columns if policy is None else policy.named("quasi")
    values = _candidates(tables, shown, people, policy, sensitive)
    quasi = tuple(
        tuple(c for c in names if c in wanted and c in people.columns and c not in (*values, release, COUNT))
        for names in shown
    )
    if named is None:
        used = {*values, release, *(name for names in quasi for name in names)}
        named = next((name for name in people.columns if name not in used), None)
    stop_if(_faults(tables, people, quasi, values, sensitive, named))
    assert named is not None
    return Columns(named, quasi, values, release, empty)


def _identifier(
    tables: Sequence[Published], people: pl.DataFrame, policy: Policy | None, given: str | None
) -> str | None:
    """The column with names: as given, or one that no table has, or one that all have suppressed in every row."""
    if given is not None or (policy is not None and policy.identifier in people.columns):
        return given or (policy.identifier if policy is not None else None)
    shown = [one.table.columns for one in tables]
    if any(name != RELEASE and not any(name in names for names in shown) for name in people.columns):
        return None
    hidden = [[name for name in one.table.columns if _suppressed(one.table[name])] for one in tables]
    return next((name for name in people.columns if all(name in names for names in hidden)), None)


def _candidates(
    tables: Sequence[Published],
    shown: Sequence[Sequence[str]],
    people: pl.DataFrame,
    policy: Policy | None,
    sensitive: str | None,
) -> tuple[str, ...]:
    """Columns that may hold sensitive values: those of tables of values, or those that the population does not have."""
    if sensitive is not None:
        return (sensitive,)
    if policy is not None and policy.named("sensitive"):
        return policy.named("sensitive")
    listed = [
        name
        for one, names in zip(tables, shown, strict=True)
        for name in (names if one.values is None else one.values)
        if name not in (*people.columns, COUNT)
    ]
    return tuple(dict.fromkeys(listed))


def _faults(
    tables: Sequence[Published],
    people: pl.DataFrame,
    quasi: Sequence[Sequence[str]],
    values: Sequence[str],
    sensitive: str | None,
    identifier: str | None,
) -> list[Fault]:
    faults = [
        Fault(
            "R723",
            f"release {number}",
            "has no quasi-identifier in common with the population",
            "name the columns alike",
        )
        for number, names in enumerate(quasi, 1)
        if not names
    ]
    held = {name for one in tables for name in (one.table.columns if one.values is None else one.values)}
    if not values or not held.intersection(values):
        what = (
            "no column holds the sensitive values" if sensitive is None else f"no column is called {brief(sensitive)}"
        )
        faults.append(Fault("R723", "released table", what, "name it with --sensitive"))
    if identifier is None or identifier not in people.columns:
        faults.append(
            Fault(
                "R723",
                "population",
                "no column says who is who",
                "name it with --identifier, or add a column with names or numbers",
            )
        )
    return faults


def _row_numbers(table: pl.DataFrame) -> list[str]:
    """Row numbers, as pandas writes them."""
    return [name for name in table.columns if name in INDEX_NAMES and counts_rows(table[name])]


def _suppressed(column: pl.Series) -> bool:
    """Whether every cell of a column is `*`."""
    return column.dtype == pl.String and column.n_unique() == 1 and set(column[0] or "") == {"*"}


def numbered(people: pl.DataFrame, releases: int) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The population with releases as numbers from 1 on, and what each release is called.

    Numbers from 1 on are those of the tables in order, and may go on beyond them. Others (0, 1, ... or years) are given
    to the tables in their order, if there are as many.
    """
    if RELEASE not in people.columns:
        return people, tuple(str(n + 1) for n in range(releases))
    texts = people[RELEASE].map_elements(plain_text, return_dtype=pl.String, skip_nulls=False)
    numbers = texts.cast(pl.Int64, strict=False)
    if numbers.null_count() == 0 and (numbers >= 1).all() and numbers.is_between(1, releases).any():
        return people.with_columns(numbers.alias(RELEASE)), tuple(str(n + 1) for n in range(releases))
    whole = numbers.null_count() == 0
    distinct = sorted(set(texts), key=lambda text: (int(text), "") if whole else (0, text))
    if len(distinct) != releases or "" in distinct:
        listed = ", ".join(brief(text) for text in distinct[:4])
        message = f"its column release has {len(distinct):,} different entries ({listed}) for {releases:,} tables"
        remedy = "number the releases 1, 2, ... as they are given, or have one entry for each table"
        lost = int((numbers.is_null() | ~numbers.is_between(1, releases)).sum())
        stop_if([Fault("R724", "population", message, remedy, lost)])
    place = {text: n for n, text in enumerate(distinct, 1)}
    return people.with_columns(texts.replace_strict(place, return_dtype=pl.Int64).alias(RELEASE)), tuple(distinct)
