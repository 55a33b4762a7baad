"""Released tables, whoever made them, matched with a population: who may be in which group.

Generalised cells are read in all common notations. A table with a `group` column is grouped by it, others by equal
cells. A pair of tables is (people, values): quasi-identifiers with a group number, and values by group number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from reveil.audit.input.knowledge import person_priors
from reveil.audit.input.observed import Observed, assemble
from reveil.audit.settings import Presence
from reveil.background.loading import load_hierarchies
from reveil.background.prior import load as load_priors
from reveil.base.arrays import I64, Bools
from reveil.base.errors import Fault, InputError, brief
from reveil.base.text import plain_text
from reveil.base.words import agree, some
from reveil.hierarchies.tree import Hierarchy
from reveil.policy.policy import Policy
from reveil.published.anatomy import counterfeits_of
from reveil.published.format import COUNT, GROUP
from reveil.published.notation import as_written, parse_column
from reveil.published.reader import Published, read_cells, read_published
from reveil.table.numbers import plain
from reveil.table.read import read_table

BLOCK = 1 << 26  # person-group pairs that are compared at once
RELEASE = "release"  # column of a population: the number of the release that a line is about


@dataclass(frozen=True, eq=False)
class Released:
    """One released table: rows with their group, quasi-identifiers as text, and the values of each group."""

    quasi: pl.DataFrame  # group, and a text column per quasi-identifier (distinct rows)
    values: pl.DataFrame  # group, value, rows
    fakes: pl.DataFrame  # group, count
    ours: bool = False  # Reveil wrote it


@dataclass(frozen=True)
class Columns:
    identifier: str
    quasi: tuple[str, ...]
    sensitive: str
    release: str | None  # of the population: which release a line is about


def observe(
    releases: Sequence[Any],
    population: Any,
    *,
    policy: Policy | None = None,
    sensitive: str | None = None,
    identifier: str | None = None,
    counterfeits: Sequence[Any] | None = None,
    presence: Presence = "auto",
    accept_missing: bool = False,
) -> Observed:
    """The attacker's view of released tables, given who could be in them.

    People who are said to be in a release and fit none of its groups are refused, unless they are `accept_missing`.
    """
    people = _numbered(read_table(population))
    tables = [read_published(source, policy) for source in releases]
    columns = _columns(tables[0], people, policy, sensitive, identifier)
    fakes = [None] * len(tables) if counterfeits is None else list(counterfeits)
    if len(fakes) != len(tables):
        message = f"{some(len(fakes), 'table')} of counts for {some(len(tables), 'release')}"
        raise InputError(Fault("R704", "counterfeits", message, "give one for each release, or None where it has none"))
    read = [_released(t, columns, _fakes(t, f)) for t, f in zip(tables, fakes, strict=True)]
    return _matched(read, people, columns, policy, presence, accept_missing)


def _numbered(people: pl.DataFrame) -> pl.DataFrame:
    """The population with releases as whole numbers; a line about none would be left out in silence."""
    if RELEASE not in people.columns:
        return people
    texts = people[RELEASE].map_elements(plain_text, return_dtype=pl.String, skip_nulls=False)
    numbers = texts.cast(pl.Int64, strict=False)
    lost = numbers.is_null() | (numbers < 1)
    if lost.any():
        shown = ", ".join(brief(text) for text in texts.filter(lost).unique(maintain_order=True)[:3])
        message = f"its column release names no release by its number, from 1 on: {shown}"
        raise InputError(Fault("R724", "population", message, "number the releases as they are given", int(lost.sum())))
    return people.with_columns(numbers.alias(RELEASE))


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


def _columns(
    tables: Published,
    people: pl.DataFrame,
    policy: Policy | None,
    sensitive: str | None,
    identifier: str | None,
) -> Columns:
    """Which column is what: from the policy, or from what table and population have in common."""
    shown = tables.table.columns
    values = shown if tables.values is None else list(tables.values)
    release = RELEASE if RELEASE in people.columns else None
    quasi = (
        policy.named("quasi")
        if policy
        else tuple(c for c in shown if c in people.columns and c not in (GROUP, identifier))
    )
    if sensitive is None:
        columns = (
            policy.named("sensitive")
            if policy
            else tuple(c for c in values if c not in (*people.columns, GROUP, COUNT))
        )
        sensitive = columns[0] if columns else None
    if identifier is None:
        spare = [c for c in people.columns if c not in (*quasi, release, sensitive)]
        identifier = policy.identifier if policy and policy.identifier in people.columns else next(iter(spare), None)
    faults = []
    if not quasi or any(c not in people.columns or c not in shown for c in quasi):
        lacking = [c for c in quasi if c not in people.columns or c not in shown]
        message = (
            f"quasi-identifiers must be in both; {', '.join(lacking) or 'none'} found in common"
            if not quasi
            else f"{', '.join(lacking)} is not in both"
        )
        faults.append(Fault("R723", "population and table", message, "name the columns alike"))
    if sensitive is None or sensitive not in values:
        faults.append(
            Fault("R723", "released table", "no column holds the sensitive values", "name it with --sensitive")
        )
    if identifier is None or identifier not in people.columns:
        faults.append(Fault("R723", "population", "no column says who is who", "add a column with names or numbers"))
    if faults:
        raise InputError(faults)
    assert sensitive is not None and identifier is not None
    return Columns(identifier, quasi, sensitive, release)


def _fakes(published: Published, given: Any) -> pl.DataFrame:
    counterfeits = read_cells(given) if given is not None else published.counterfeits
    if counterfeits is None and published.values is not None:
        with suppress(ValueError, pl.exceptions.PolarsError):  # what does not fit is refused below, with the reason
            counterfeits = counterfeits_of(published.table, published.values)
    if counterfeits is None:
        return pl.DataFrame(schema={GROUP: pl.String, COUNT: pl.Int64})
    return counterfeits.select(
        pl.col(counterfeits.columns[0]).cast(pl.String).alias(GROUP), pl.col(COUNT).cast(pl.Int64)
    )


def _released(published: Published, columns: Columns, fakes: pl.DataFrame) -> Released:
    texts = [pl.col(name).cast(pl.String) for name in columns.quasi]
    value = pl.col(columns.sensitive).map_elements(plain_text, return_dtype=pl.String, skip_nulls=False).alias("value")
    if published.values is None:
        table = published.table
        grouped = GROUP in table.columns
        number = pl.col(GROUP) if grouped else pl.struct(texts).rank("dense").alias(GROUP)
        quasi = table.with_columns(number.cast(pl.String))
        shown = quasi.with_columns(value).group_by(GROUP, "value").len("rows")
    else:
        quasi = published.table.with_columns(pl.col(GROUP).cast(pl.String))
        listed = published.values[columns.sensitive].with_columns(pl.col(GROUP).cast(pl.String), value)
        shown = listed.group_by(GROUP, "value").agg(pl.col(COUNT).sum().alias("rows"))
        _refuse_valueless(quasi, shown)
    _refuse_misfits(fakes, shown)
    return Released(quasi.select(GROUP, *texts).unique(maintain_order=True), shown, fakes, published.ours)


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


def _matched(
    read: Sequence[Released],
    people: pl.DataFrame,
    columns: Columns,
    policy: Policy | None,
    presence: Presence,
    accept_missing: bool,
) -> Observed:
    names = people[columns.identifier].cast(pl.String).unique(maintain_order=True)
    values = sorted({v for release in read for v in release.values["value"]})
    trees = {} if policy is None else load_hierarchies(policy, columns.quasi)
    padded = () if policy is None else [name for name in columns.quasi if policy.columns[name].prefixes is not None]
    named = () if policy is None else [name for name in columns.quasi if policy.columns[name].named]
    memberships, groups, cells, told, base = [], [], [], list[pl.DataFrame](), 0
    for number, release in enumerate(read):
        lines = _lines(people, columns, number)
        labels = release.values[GROUP].unique(maintain_order=True).sort()
        strict = named if release.ours else [name for name in named if name in trees]
        rows, where = match(lines, release.quasi, labels, columns.quasi, trees, padded, strict)
        person = lines[columns.identifier].cast(pl.String).cast(pl.Enum(names)).to_physical().cast(pl.Int64).to_numpy()
        sizes = release.values.group_by(GROUP).agg(pl.col("rows").sum())
        counted = labels.to_frame(GROUP).join(sizes, on=GROUP, how="left", maintain_order="left")
        counted = counted.join(release.fakes, on=GROUP, how="left", maintain_order="left").fill_null(0)
        real = (counted["rows"] - counted["count"]).to_numpy()
        lacking = np.bincount(where, minlength=len(labels)) < real
        alone = len(np.unique(rows)) == real.sum() and not lacking.any()
        sure = presence == "known" or (presence == "auto" and (columns.release is not None or alone))
        if lacking.any() and not (sure and len(np.unique(rows)) == len(rows)):
            lacking[:] = True  # not everybody is listed: any row may be a stranger's
        fakes = counted["count"].set(pl.Series(lacking), -1)
        memberships.append(
            pl.DataFrame({"person": person[rows], "release": number, "group": where + base, "sure": sure})
        )
        told.append(lines.select(pl.Series("\0person", person), pl.lit(number).alias("\0release"), *columns.quasi))
        groups.append(pl.DataFrame({"release": number, "label": labels, "fakes": fakes}))
        code = release.values.with_columns(
            pl.col(GROUP).cast(pl.Enum(labels)).to_physical().cast(pl.Int64) + base,
            pl.col("value").cast(pl.Enum(values)).to_physical().cast(pl.Int64),
            pl.col("rows").cast(pl.Int64),
        )
        cells.append(code.select(GROUP, "value", "rows"))
        base += len(labels)
        if not accept_missing and (presence == "known" or (presence == "auto" and columns.release is not None)):
            _refuse_unmatched(lines, rows, columns, number)
    if not any(part.height for part in memberships):  # a notation that is not understood must not look like safety
        message = "nobody in it fits any group of the released tables"
        remedy = "check that both have the same columns, units and notation; give hierarchies for labels"
        raise InputError(Fault("R724", "population", message, remedy, people.height))
    labels_of = [str(n + 1) for n in range(len(read))]
    seen = assemble(labels_of, names, values, pl.concat(memberships), pl.concat(groups), pl.concat(cells))
    apps = pl.DataFrame({"\0person": seen.app_person, "\0release": seen.app_release}).cast({"\0release": pl.Int32})
    first = pl.concat(told).unique(["\0person", "\0release"], keep="first")
    quasi = apps.join(first, on=["\0person", "\0release"], how="left", maintain_order="left")
    unmatched = len(np.setdiff1d(first["\0person"], seen.app_person))  # of those who have a line about some release
    return replace(seen, quasi=quasi.select(columns.quasi), unmatched=unmatched, column=columns.sensitive)


def _lines(people: pl.DataFrame, columns: Columns, number: int) -> pl.DataFrame:
    if columns.release is None:
        return people
    return people.filter(pl.col(columns.release) == number + 1)


def _refuse_unmatched(lines: pl.DataFrame, rows: I64, columns: Columns, number: int) -> None:
    lost = np.setdiff1d(np.arange(lines.height), rows)
    if len(lost):
        shown = ", ".join(lines[columns.identifier].cast(pl.String).gather(lost[:3]))
        message = f"fit no group of release {number + 1}, though the population says that they are in it: {shown}"
        remedy = "correct the population, leave withheld people out, or pass presence = unknown or accept_missing"
        raise InputError(Fault("R724", "population", message, remedy, len(lost)))


def match(
    lines: pl.DataFrame,
    quasi: pl.DataFrame,
    labels: pl.Series,
    names: Sequence[str],
    trees: Mapping[str, Hierarchy],
    padded: Sequence[str] = (),
    named: Sequence[str] = (),
) -> tuple[I64, I64]:
    """Pairs (line of the population, place of the group in `labels`) where all cells of the group cover the person.

    Columns that are `padded` hold codes of unequal length, those that are `named` categories as Reveil writes them.
    """
    place = quasi[GROUP].cast(pl.Enum(labels)).to_physical().cast(pl.Int64).to_numpy()
    covers: list[Bools] = []
    codes: list[I64] = []
    for name in names:
        distinct = lines[name].unique(maintain_order=True)
        tree = trees.get(name)
        numeric = None if name in named else _numeric(lines[name], tree)
        cells, index = parse_column(quasi[name], tree, numeric, padded=name in padded, names=name in named)
        if not numeric and not lines[name].dtype.is_temporal():
            cells = as_written(cells, {plain_text(value) for value in distinct if value is not None})
        table = np.array([[cell.covers(value) for cell in cells] for value in distinct], dtype=bool)
        covers.append(table.reshape(len(distinct), len(cells))[:, index])
        number = {value: n for n, value in enumerate(distinct)}
        codes.append(np.array([number[value] for value in lines[name]], dtype=np.int64))
    matches: list[tuple[I64, I64]] = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))]
    for start, stop in _blocks(lines.height, quasi.height):
        inside = np.ones((stop - start, quasi.height), dtype=bool)
        for table, code in zip(covers, codes, strict=True):
            inside &= table[code[start:stop]]
        who, which = np.nonzero(inside)
        matches.append((who + start, place[which]))
    pairs = np.unique(np.stack([np.concatenate(part) for part in zip(*matches, strict=True)]), axis=1)
    return pairs[0], pairs[1]


def _blocks(rows: int, width: int) -> Iterator[tuple[int, int]]:
    step = max(1, BLOCK // max(1, width))
    return ((start, min(rows, start + step)) for start in range(0, rows, step))


def _numeric(values: pl.Series, tree: Hierarchy | None) -> bool | None:
    if tree is not None:
        return None
    return True if values.dtype.is_numeric() or (values.dtype == pl.String and _all_numbers(values)) else None


def _all_numbers(values: pl.Series) -> bool:
    """Whether a file's texts are all numbers; they are compared as they are written."""
    known = values.drop_nulls().unique()
    return len(known) > 0 and bool(plain(known).all())


def taxonomies(policy: Policy | None, names: Sequence[str]) -> dict[str, Hierarchy]:
    """The taxonomies of the policy: labels over values, and nothing for the missing one."""
    trees = {} if policy is None else load_hierarchies(policy, names)
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
