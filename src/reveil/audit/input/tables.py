"""Released tables, whoever made them, matched with a population: who may be in which group.

Generalised cells are read in all common notations. A table with a `group` column is grouped by it, others by equal
cells. A pair of tables is (people, values): quasi-identifiers with a group number, and values by group number. Where
boxes overlap, or rows are suppressed, counting places people in their groups (`locate.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from reveil.audit.input.columns import Columns, columns_of, numbered
from reveil.audit.input.knowledge import person_priors
from reveil.audit.input.locate import Places, locate
from reveil.audit.input.matching import Notations, match
from reveil.audit.input.observed import Observed, TableReading, assemble
from reveil.audit.settings import Presence
from reveil.background.loading import load_hierarchies
from reveil.background.prior import load as load_priors
from reveil.base.arrays import I64
from reveil.base.errors import Fault, InputError, stop_if
from reveil.base.text import plain_text
from reveil.base.words import agree, some
from reveil.hierarchies.tree import Hierarchy
from reveil.policy.policy import Policy
from reveil.published.anatomy import counterfeits_of
from reveil.published.format import COUNT, GROUP
from reveil.published.reader import Published, read_cells, read_published
from reveil.table.options import ReadOptions
from reveil.table.read import read_table

MEMBERSHIP = {"person": pl.Int64, "release": pl.Int64, "group": pl.Int64, "sure": pl.Boolean}
OTHERS = ReadOptions(accept=("row-index",))  # an index that pandas wrote is told by its look, and left out


@dataclass(frozen=True, eq=False)
class Released:
    """One released table: rows with their group, quasi-identifiers as text, and how many rows each group has."""

    published: Published
    rows: pl.DataFrame  # group, rows, and every other column of a single table
    quasi: pl.DataFrame  # group, and a text column per quasi-identifier (distinct rows)
    fakes: pl.DataFrame  # group, count

    @cached_property
    def labels(self) -> pl.Series:
        return self.rows[GROUP].unique(maintain_order=True).sort()

    def values(self, column: str) -> pl.DataFrame:
        """Rows by group and value."""
        value = pl.col(column).map_elements(plain_text, return_dtype=pl.String, skip_nulls=False).alias("value")
        if self.published.values is None:
            listed = self.rows.with_columns(value)
        else:
            counted = self.published.values[column].rename({COUNT: "rows"})
            listed = counted.with_columns(pl.col(GROUP).cast(pl.String), value)
        return listed.group_by(GROUP, "value").agg(pl.col("rows").sum())

    def shows(self, column: str) -> bool:
        return column in (self.rows.columns if self.published.values is None else self.published.values)


@dataclass(frozen=True, eq=False)
class Fitted:
    """One release with the people who may be in it."""

    released: Released
    lines: pl.DataFrame  # of the population
    person: I64  # by pair
    group: I64
    real: I64  # rows of each group that are no counterfeits
    places: Places
    present: I64  # people of `places`, by their number in the population
    listed: I64  # people who have a line
    crowd: I64 | None  # of two tables: rows of people that fit each person of the population


@dataclass(frozen=True, eq=False)
class Matched:
    """All releases with the people who may be in them: what is seen of any sensitive column."""

    columns: Columns
    releases: tuple[str, ...]
    names: pl.Series
    fitted: tuple[Fitted, ...]
    told: bool = True  # whether everybody is in a release was said, or is concluded from their number
    labelled: bool = True  # whether the population says what releases are called

    def observed(self, column: str) -> Observed:
        """The attacker's view of one sensitive column. A release that does not show it is left out, and said."""
        shown = [n for n, fit in enumerate(self.fitted) if fit.released.shows(column)]
        tables = [self.fitted[n].released.values(column) for n in shown]
        values = sorted({v for table in tables for v in table["value"]})
        memberships, groups, cells, base = [], [], [], 0
        for number, (at, table) in enumerate(zip(shown, tables, strict=True)):
            fit, labels = self.fitted[at], self.fitted[at].released.labels
            kept, sure = fit.places.possible, np.zeros(len(self.names), dtype=bool)
            sure[fit.present] = fit.places.sure
            person = fit.person[kept]
            when = np.full(len(person), number)
            where = {"person": person, "release": when, "group": fit.group[kept] + base, "sure": sure[person]}
            memberships.append(pl.DataFrame(where, schema=MEMBERSHIP))
            fakes = np.where(fit.places.full, _counterfeits(fit.released), -1)
            groups.append(pl.DataFrame({"release": number, "label": labels, "fakes": fakes}))
            code = table.with_columns(
                pl.col(GROUP).cast(pl.Enum(labels)).to_physical().cast(pl.Int64) + base,
                pl.col("value").cast(pl.Enum(values)).to_physical().cast(pl.Int64),
                pl.col("rows").cast(pl.Int64),
            )
            cells.append(code.select(GROUP, "value", "rows"))
            base += len(labels)
        names = [self.releases[n] for n in shown]
        seen = assemble(names, self.names, values, pl.concat(memberships), pl.concat(groups), pl.concat(cells))
        quasi, unmatched = self._quasi(seen, shown)
        reading = self._reading(column, shown, seen)
        crowd = self._crowd(seen, shown)
        return replace(seen, quasi=quasi, unmatched=unmatched, column=column, reading=reading, crowd=crowd)

    def only(self, tables: Sequence[int]) -> Matched:
        """What some of the releases alone tell; people keep their numbers."""
        columns = replace(self.columns, quasi=tuple(self.columns.quasi[at] for at in tables))
        names, fitted = tuple(self.releases[at] for at in tables), tuple(self.fitted[at] for at in tables)
        return replace(self, columns=columns, releases=names, fitted=fitted)

    def shows(self, column: str) -> bool:
        """Whether any release shows this column, and anybody fits one that does."""
        return any(fit.released.shows(column) and len(fit.person) for fit in self.fitted)

    def _crowd(self, seen: Observed, shown: Sequence[int]) -> I64 | None:
        """Of each appearance the rows of people that fit it, where some release is in two tables; others: its group."""
        if all(self.fitted[at].crowd is None for at in shown):
            return None
        sizes = seen.group_rows[seen.cand_group[seen.cand_start[:-1]]]
        for number, at in enumerate(shown):
            if (crowd := self.fitted[at].crowd) is not None:
                here = seen.app_release == number
                sizes[here] = crowd[seen.app_person[here]]
        return sizes

    def _quasi(self, seen: Observed, shown: Sequence[int]) -> tuple[pl.DataFrame, int]:
        """The quasi-identifiers of each appearance, and how many people who have a line about a release fit nothing."""
        told = [
            self.fitted[at].lines.select(
                pl.Series("\0person", self.fitted[at].listed),
                pl.lit(n, pl.Int64).alias("\0release"),
                *self.columns.known,
            )
            for n, at in enumerate(shown)
        ]
        apps = pl.DataFrame({"\0person": seen.app_person, "\0release": seen.app_release})
        first = pl.concat(told).unique(["\0person", "\0release"], keep="first")
        quasi = apps.join(first, on=["\0person", "\0release"], how="left", maintain_order="left")
        fits = np.concatenate([self.fitted[at].person for at in shown])
        return quasi.select(self.columns.known), len(np.setdiff1d(first["\0person"], fits))

    def _reading(self, column: str, shown: Sequence[int], seen: Observed) -> TableReading:
        fits = [self.fitted[at] for at in shown]
        return TableReading(
            column=column,
            others=tuple(name for name in self.columns.sensitive if name != column),
            identifier=self.columns.identifier,
            quasi=tuple(self.columns.quasi[at] for at in shown),
            releases=tuple(self.releases[at] for at in shown),
            without=tuple(name for n, name in enumerate(self.releases) if n not in shown),
            empty=self.columns.empty,
            overlaps=sum(len(fit.person) - len(np.unique(fit.person)) > 0 for fit in fits),
            placed=int(((np.diff(seen.cand_start) == 1) & seen.app_sure).sum()),
            appearances=len(seen.app_person),
            strangers=sum(fit.places.strangers for fit in fits),
            told=self.told,
            away=sum(len(fit.present) - int(fit.places.sure.sum()) for fit in fits),
            labelled=self.labelled,
        )


def match_tables(
    releases: Sequence[Any],
    population: Any,
    *,
    policy: Policy | None = None,
    sensitive: str | None = None,
    identifier: str | None = None,
    counterfeits: Sequence[Any] | None = None,
    presence: Presence = "auto",
    accept_missing: bool = False,
    counts_known: bool = True,
) -> Matched:
    """Released tables with the people who may be in them.

    People who are said to be in a release and fit none of its groups are refused, unless they are `accept_missing`.
    Where counts of counterfeits are not known, any row may be one.
    """
    people, labels = numbered(read_table(population, OTHERS), len(releases))
    tables = [read_published(source, policy, OTHERS) for source in releases]
    refuse_bundles(tables)
    columns = columns_of(tables, people, policy, sensitive, identifier)
    given = [None] * len(tables) if counterfeits is None else list(counterfeits)
    if len(given) != len(tables):
        message = f"{some(len(given), 'table')} of counts for {some(len(tables), 'release')}"
        raise InputError(Fault("R704", "counterfeits", message, "give one for each release, or None where it has none"))
    read = [_released(*one, columns) for one in zip(tables, columns.quasi, given, strict=True)]
    names = people[columns.identifier].cast(pl.String).unique(maintain_order=True)
    told = presence == "known" or (presence == "auto" and columns.release is not None)
    fitted = []
    for number, one in enumerate(read):
        how = _notations(policy, columns.quasi[number], one.published.ours)
        lines = people if columns.release is None else people.filter(pl.col(columns.release) == number + 1)
        fit = _fitted(one, lines, columns, number, names, how, told, counts_known)
        if told and not accept_missing:
            _refuse_unmatched(fit, names, labels[number])
        fitted.append(fit)
    if not any(len(fit.person) for fit in fitted):  # a notation that is not understood must not look like safety
        message = "nobody in it fits any group of the released tables"
        remedy = "check that both have the same columns, units and notation; give hierarchies for labels"
        raise InputError(Fault("R724", "population", message, remedy, people.height))
    return Matched(columns, labels, names, tuple(fitted), told or presence == "auto")


def refuse_bundles(tables: Sequence[Published]) -> None:
    """Releases in which somebody may have several rows: their number says which, and is nothing that is known."""
    message = "says in its data package that people or households have several rows, and the audit is about one of each"
    remedy = "judge it with `reveil verify`, or give its table alone, without the package, row by row"
    where = [number for number, one in enumerate(tables, 1) if one.bundle is not None]
    stop_if([Fault("R910", f"release {number}", message, remedy) for number in where])


def observe(releases: Sequence[Any], population: Any, **how: Any) -> Observed:
    """The attacker's view of the first sensitive column of released tables, given who could be in them."""
    matched = match_tables(releases, population, **how)
    return matched.observed(matched.columns.sensitive[0])


def population_priors(
    policy: Policy, population: Any, sensitive: str | None, identifier: str | None
) -> dict[str, dict[str, Fraction]]:
    """What the policy's first prior on the column says of everybody, by their first line in the population."""
    people = read_table(population)
    name = identifier or policy.identifier or people.columns[0]
    first = people.unique(name, keep="first", maintain_order=True)
    column = sensitive or policy.named("sensitive")[0]
    signatures = {prior.name: prior.match(first).tolist() for prior in load_priors(policy) if prior.column == column}
    return person_priors(policy, column, first[name].cast(pl.String).to_list(), signatures)


def _notations(policy: Policy | None, names: Sequence[str], ours: bool) -> Notations:
    if policy is None:
        return Notations(ours=ours)
    listed = [name for name in names if name in policy.columns]
    trees = load_hierarchies(policy, listed)
    padded = [name for name in listed if policy.columns[name].prefixes is not None]
    named = [name for name in listed if policy.columns[name].named and (ours or name in trees)]
    return Notations(trees, padded, named, ours)


def _counts(published: Published, given: Any) -> pl.DataFrame:
    counterfeits = read_cells(given) if given is not None else published.counterfeits
    if counterfeits is None and published.values is not None:
        with suppress(ValueError, pl.exceptions.PolarsError):  # what does not fit is refused below, with the reason
            counterfeits = counterfeits_of(published.table, published.values)
    if counterfeits is None:
        return pl.DataFrame(schema={GROUP: pl.String, COUNT: pl.Int64})
    return counterfeits.select(
        pl.col(counterfeits.columns[0]).cast(pl.String).alias(GROUP), pl.col(COUNT).cast(pl.Int64)
    )


def _released(published: Published, quasi: Sequence[str], given: Any, columns: Columns) -> Released:
    fakes = _counts(published, given)
    texts = [pl.col(name).cast(pl.String) for name in quasi]
    if published.values is None:
        table = _one_row_each(published.table, columns)
        number = pl.col(GROUP) if GROUP in table.columns else pl.struct(texts).rank("dense").alias(GROUP)
        rows = table.with_columns(number.cast(pl.String))
        boxes = rows
    else:
        boxes = published.table.with_columns(pl.col(GROUP).cast(pl.String))
        held = next(iter(published.values.values()))
        rows = held.select(pl.col(GROUP).cast(pl.String), rows=pl.col(COUNT))
        _refuse_valueless(boxes, rows)
    _refuse_misfits(fakes, rows)
    return Released(published, rows, boxes.select(GROUP, *texts).unique(maintain_order=True), fakes)


def _one_row_each(table: pl.DataFrame, columns: Columns) -> pl.DataFrame:
    """The table with a column `rows`: what a column `count` says, where rows that are alike were put together."""
    if COUNT not in table.columns or COUNT in columns.sensitive:
        return table.with_columns(rows=pl.lit(1, pl.Int64))
    counts = table[COUNT].cast(pl.Int64, strict=False)
    if counts.null_count() or (counts < 0).any():
        lost = int((counts.is_null() | (counts < 0)).sum())
        message = "its column count does not hold whole numbers, so it is not known how many rows each stands for"
        raise InputError(Fault("R723", "released table", message, "call the column something else", lost))
    return table.with_columns(rows=counts).filter(pl.col("rows") > 0)


def _refuse_valueless(quasi: pl.DataFrame, shown: pl.DataFrame) -> None:
    """People whose group has no values."""
    lost = quasi.join(shown, on=GROUP, how="anti")
    if lost.height:
        labels = ", ".join(lost[GROUP].fill_null("without a number").unique().sort()[:3])
        message = f"its table of values has none for {agree(lost[GROUP].n_unique(), 'group', 'groups')} {labels}"
        raise InputError(Fault("R723", "two tables", message, "give both tables of one release", lost.height))


def _refuse_misfits(fakes: pl.DataFrame, shown: pl.DataFrame) -> None:
    """Counterfeits of groups that are not there, or more than they have rows."""
    rows = shown.group_by(GROUP).agg(pl.col("rows").sum())
    real = pl.col("rows").fill_null(0) - pl.col("count")
    bad = fakes.join(rows, on=GROUP, how="left").filter((real < 0) | (pl.col("count") < 0))
    if bad.height:
        labels = ", ".join(bad[GROUP].fill_null("without a number").sort()[:3])
        message = f"the released table has not so many rows in {agree(bad.height, 'group', 'groups')} {labels}"
        remedy = "give the counts of this release; its table must have a column `group`"
        raise InputError(Fault("R704", "counterfeits", message, remedy))


def _counterfeits(released: Released) -> I64:
    """Counterfeits of each group, in the order of the labels."""
    labels = released.labels.to_frame(GROUP)
    counted = labels.join(released.fakes, on=GROUP, how="left", maintain_order="left")
    return counted[COUNT].fill_null(0).to_numpy()


def _fitted(
    released: Released,
    lines: pl.DataFrame,
    columns: Columns,
    number: int,
    names: pl.Series,
    how: Notations,
    told: bool,
    counts_known: bool,
) -> Fitted:
    """Who fits which group of a release, and what counting tells of it. `told`: who has a line is said to be there.

    Whoever fits nothing is not in the release: if more people are left than it has rows, nobody is sure to be in it.
    """
    listed = lines[columns.identifier].cast(pl.String).cast(pl.Enum(names)).to_physical().cast(pl.Int64).to_numpy()
    line, group = match(lines, released.quasi, released.labels, columns.quasi[number], how)
    pairs = np.unique(np.stack([listed[line], group]), axis=1)
    sizes = released.rows.group_by(GROUP).agg(pl.col("rows").sum())
    counted = released.labels.to_frame(GROUP).join(sizes, on=GROUP, how="left", maintain_order="left")
    real = counted["rows"].cast(pl.Int64).to_numpy()
    real = real - _counterfeits(released) if counts_known else real
    present, place = np.unique(pairs[0], return_inverse=True)
    places = locate(place, pairs[1], real, present=told)
    if places.crowded:
        places = replace(locate(place, pairs[1], real, present=False), crowded=places.crowded)
    crowd = None if released.published.values is None else _crowd(released, lines, listed, columns.quasi[number], how)
    return Fitted(released, lines, pairs[0], pairs[1], real, places, present, listed, crowd)


def _crowd(released: Released, lines: pl.DataFrame, listed: I64, names: Sequence[str], how: Notations) -> I64:
    """How many rows of the table of people fit each person of the population, whatever their group."""
    texts = [pl.col(name).cast(pl.String) for name in names]
    boxes = released.published.table.group_by(texts, maintain_order=True).len(COUNT)
    numbers = pl.Series(GROUP, [str(n) for n in range(boxes.height)], dtype=pl.String)
    line, box = match(lines, boxes.insert_column(0, numbers), numbers, names, how)
    pairs = np.unique(np.stack([listed[line], box]), axis=1)
    return np.bincount(pairs[0], boxes[COUNT].to_numpy()[pairs[1]], int(listed.max(initial=-1)) + 1).astype(np.int64)


def _refuse_unmatched(fit: Fitted, names: pl.Series, release: str) -> None:
    """People who are said to be in a release and fit nothing, or find no row that is not somebody else's."""
    lost = np.setdiff1d(fit.listed, fit.person)
    message, count = "fit no group", len(lost)
    if not count and fit.places.crowded:
        message, count, lost = "find no row that is free", fit.places.crowded, lost[:0]
    if count:
        shown = f": {', '.join(names.gather(lost[:3]))}" if len(lost) else ""
        message = f"{message} of release {release}, though the population says that they are in it{shown}"
        remedy = "correct the population, leave withheld people out, or pass presence = unknown or accept_missing"
        raise InputError(Fault("R724", "population", message, remedy, count))


def taxonomies(policy: Policy | None, names: Sequence[str]) -> dict[str, Hierarchy]:
    """The taxonomies of the policy: labels over values, and nothing for the missing one."""
    trees: Mapping[str, Hierarchy] = {} if policy is None else load_hierarchies(policy, names)
    return {name: tree.regrown(missing=False) for name, tree in trees.items() if not tree.free}


def value_kinds(policy: Policy | None, values: Sequence[Any]) -> I64 | None:
    """For each value, the number of the label right below the top of its taxonomy; None where the policy has none."""
    names = () if policy is None else policy.named("sensitive")
    texts = [str(value) for value in values]
    for tree in taxonomies(policy, names).values():
        place = {str(leaf): n for n, leaf in enumerate(tree.leaves)}
        if all(text in place for text in texts):
            first = np.sort(tree.lo[list(tree.children[0])])
            return np.searchsorted(first, [place[text] for text in texts], side="right").astype(np.int64)
    return None
