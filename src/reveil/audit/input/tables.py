"""Released tables, whoever made them, matched with a population: who may be in which group.

Generalised cells are read in all common notations. A table with a `group` column is grouped by it, others by equal
cells. A pair of tables is an anatomy: exact quasi-identifiers with a group number, and values by group number.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from reveil.audit.input.knowledge import person_priors
from reveil.audit.input.observed import I64, Bools, Observed, assemble
from reveil.background.prior import load as load_priors
from reveil.base.errors import Fault, InputError
from reveil.base.sections import plain_text
from reveil.base.words import agree, some
from reveil.hierarchies.files import nested_paths, read_paths
from reveil.hierarchies.tree import Hierarchy, grow
from reveil.policy.policy import Policy
from reveil.published.anatomy import QUASI
from reveil.published.notation import parse_column
from reveil.table.read import read_table

GROUP = "group"
BLOCK = 1 << 26  # person-group pairs that are compared at once
Presence = Literal["auto", "known", "unknown"]


@dataclass(frozen=True, eq=False)
class Released:
    """One released table: rows with their group, quasi-identifiers as text, and the values of each group."""

    quasi: pl.DataFrame  # group, and a text column per quasi-identifier (distinct rows)
    values: pl.DataFrame  # group, value, rows
    fakes: pl.DataFrame  # group, count


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
) -> Observed:
    """The attacker's view of released tables, given who could be in them."""
    people = read_table(population)
    tables = [_tables(source, sensitive) for source in releases]
    columns = _columns(tables[0], people, policy, sensitive, identifier)
    fakes = [None] * len(tables) if counterfeits is None else list(counterfeits)
    if len(fakes) != len(tables):
        message = f"{some(len(fakes), 'table')} of counts for {some(len(tables), 'release')}"
        raise InputError(Fault("R704", "counterfeits", message, "give one for each release, or None where it has none"))
    read = [_released(t, columns, _fakes(t, f)) for t, f in zip(tables, fakes, strict=True)]
    return _matched(read, people, columns, policy, presence)


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


def _tables(source: Any, sensitive: str | None) -> dict[str, pl.DataFrame]:
    """`table`, or `quasi` and `values` of an anatomy; `counterfeits` where a folder has them."""
    if isinstance(source, tuple):
        return _anatomy(read_table(source[0]), read_table(source[1]))
    if not (isinstance(source, str | Path) and Path(source).is_dir()):
        return {"table": read_table(source)}
    folder = Path(source) / "public" if (Path(source) / "public").is_dir() else Path(source)
    files = {path.stem: path for path in sorted(folder.iterdir()) if path.suffix in (".csv", ".parquet")}
    fakes = {"counterfeits": read_table(str(files["counterfeits"]))} if "counterfeits" in files else {}
    if "table" in files:
        return {"table": read_table(str(files["table"])), **fakes}
    shown = [read_table(str(path)) for name, path in files.items() if name == "st" or name.startswith("st-")]
    wanted = [frame for frame in shown if sensitive is None or sensitive in frame.columns]
    if QUASI not in files or not wanted:
        message = f"holds no table.csv or table.parquet, nor an anatomy ({QUASI} and st)"
        raise InputError(Fault("R723", f"folder {source}", message, "name a release folder or a table"))
    return {**_anatomy(read_table(str(files[QUASI])), wanted[0]), **fakes}


def _anatomy(quasi: pl.DataFrame, values: pl.DataFrame) -> dict[str, pl.DataFrame]:
    pair = {"quasi": quasi, "values": values}
    return {name: frame.rename({_group_column(frame): GROUP}) for name, frame in pair.items()}


def _columns(
    tables: Mapping[str, pl.DataFrame],
    people: pl.DataFrame,
    policy: Policy | None,
    sensitive: str | None,
    identifier: str | None,
) -> Columns:
    """Which column is what: from the policy, or from what table and population have in common."""
    shown = tables.get("table", tables.get("quasi", pl.DataFrame())).columns
    values = tables.get("table", tables.get("values", pl.DataFrame())).columns
    release = "release" if "release" in people.columns else None
    quasi = (
        policy.named("quasi")
        if policy
        else tuple(c for c in shown if c in people.columns and c not in (GROUP, identifier))
    )
    if sensitive is None:
        found = (
            policy.named("sensitive")
            if policy
            else tuple(c for c in values if c not in (*people.columns, GROUP, "count"))
        )
        sensitive = found[0] if found else None
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


def _fakes(tables: Mapping[str, pl.DataFrame], given: Any) -> pl.DataFrame:
    found = read_table(given) if given is not None else tables.get("counterfeits")
    if found is None:
        return pl.DataFrame(schema={GROUP: pl.String, "count": pl.Int64})
    return found.select(pl.col(found.columns[0]).cast(pl.String).alias(GROUP), pl.col("count").cast(pl.Int64))


def _released(tables: Mapping[str, pl.DataFrame], columns: Columns, fakes: pl.DataFrame) -> Released:
    texts = [pl.col(name).cast(pl.String) for name in columns.quasi]
    value = pl.col(columns.sensitive).map_elements(plain_text, return_dtype=pl.String, skip_nulls=False).alias("value")
    if "table" in tables:
        table = tables["table"]
        if GROUP in table.columns:
            keyed = table.with_columns(pl.col(GROUP).cast(pl.String))
        else:
            number = pl.struct(texts).rank("dense").cast(pl.String)
            keyed = table.with_columns(number.alias(GROUP))
        quasi, shown = keyed, keyed.with_columns(value).group_by(GROUP, "value").len("rows")
    else:
        quasi = tables["quasi"].with_columns(pl.col(GROUP).cast(pl.String))
        listed = tables["values"].with_columns(pl.col(GROUP).cast(pl.String), value)
        rows = pl.col("count").sum() if "count" in listed.columns else pl.len()
        shown = listed.group_by(GROUP, "value").agg(rows.alias("rows"))
    _refuse_misfits(fakes, shown)
    return Released(quasi.select(GROUP, *texts).unique(maintain_order=True), shown, fakes)


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


def _group_column(table: pl.DataFrame) -> str:
    found = next((c for c in table.columns if c.lower() in (GROUP, "gid", "group_id", "groupid")), None)
    if found is None:
        raise InputError(
            Fault("R723", "anatomy", "a table has no column group or gid", "name the group column 'group'")
        )
    return found


def _matched(
    read: Sequence[Released], people: pl.DataFrame, columns: Columns, policy: Policy | None, presence: Presence
) -> Observed:
    names = people[columns.identifier].cast(pl.String).unique(maintain_order=True)
    values = sorted({v for release in read for v in release.values["value"]})
    trees = hierarchies(policy, columns.quasi)
    memberships, groups, cells, told, base = [], [], [], list[pl.DataFrame](), 0
    for number, release in enumerate(read):
        lines = _lines(people, columns, number)
        labels = release.values[GROUP].unique(maintain_order=True).sort()
        rows, where = match(lines, release.quasi, labels, columns.quasi, trees)
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
        if presence == "known" or (presence == "auto" and columns.release is not None):
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
    return replace(seen, quasi=quasi.select(columns.quasi))


def _lines(people: pl.DataFrame, columns: Columns, number: int) -> pl.DataFrame:
    if columns.release is None:
        return people
    return people.filter(pl.col(columns.release).cast(pl.String) == str(number + 1))


def _refuse_unmatched(lines: pl.DataFrame, rows: I64, columns: Columns, number: int) -> None:
    lost = np.setdiff1d(np.arange(lines.height), rows)
    if len(lost):
        shown = ", ".join(lines[columns.identifier].cast(pl.String).gather(lost[:3]))
        message = f"fit no group of release {number + 1}, though the population says that they are in it: {shown}"
        remedy = "correct the population, leave withheld people out, or pass presence = unknown"
        raise InputError(Fault("R724", "population", message, remedy, len(lost)))


def match(
    lines: pl.DataFrame, quasi: pl.DataFrame, labels: pl.Series, names: Sequence[str], trees: Mapping[str, Hierarchy]
) -> tuple[I64, I64]:
    """Pairs (line of the population, place of the group in `labels`) where all cells of the group cover the person."""
    place = quasi[GROUP].cast(pl.Enum(labels)).to_physical().cast(pl.Int64).to_numpy()
    covers: list[Bools] = []
    codes: list[I64] = []
    for name in names:
        distinct = lines[name].unique(maintain_order=True)
        cells, index = parse_column(quasi[name], trees.get(name), _numeric(lines[name], trees.get(name)))
        table = np.array([[cell.covers(value) for cell in cells] for value in distinct], dtype=bool)
        covers.append(table.reshape(len(distinct), len(cells))[:, index])
        number = {value: n for n, value in enumerate(distinct)}
        codes.append(np.array([number[value] for value in lines[name]], dtype=np.int64))
    found: list[tuple[I64, I64]] = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))]
    for start, stop in _blocks(lines.height, quasi.height):
        inside = np.ones((stop - start, quasi.height), dtype=bool)
        for table, code in zip(covers, codes, strict=True):
            inside &= table[code[start:stop]]
        who, which = np.nonzero(inside)
        found.append((who + start, place[which]))
    pairs = np.unique(np.stack([np.concatenate(part) for part in zip(*found, strict=True)]), axis=1)
    return pairs[0], pairs[1]


def _blocks(rows: int, width: int) -> Iterator[tuple[int, int]]:
    step = max(1, BLOCK // max(1, width))
    return ((start, min(rows, start + step)) for start in range(0, rows, step))


def _numeric(values: pl.Series, tree: Hierarchy | None) -> bool | None:
    if tree is not None:
        return None
    return True if values.dtype.is_numeric() else None


def hierarchies(policy: Policy | None, names: Sequence[str]) -> dict[str, Hierarchy]:
    """The taxonomies of the policy, whose labels the tables may use."""
    found = {}
    for name in names if policy is not None else ():
        source = policy.columns[name].hierarchy if policy is not None else None
        if source is None or policy is None:
            continue
        if isinstance(source, str):
            paths = read_paths(name, policy.folder / source)
        else:
            paths = nested_paths(source, f"column {name!r}")
        leaves: dict[Hashable, tuple[str, ...]] = {leaf: path for leaf, path in paths.items()}  # noqa: C416 keys widen
        found[name] = grow(name, leaves, missing=False)
    return found


def value_kinds(policy: Policy | None, values: Sequence[Any]) -> I64 | None:
    """For each value, the number of the label right below the top of its taxonomy; None where the policy has none."""
    names = () if policy is None else policy.named("sensitive")
    texts = [str(value) for value in values]
    for tree in hierarchies(policy, names).values():
        place = {str(leaf): n for n, leaf in enumerate(tree.leaves)}
        if all(text in place for text in texts):
            first = np.sort(tree.lo[list(tree.children[0])])
            return np.searchsorted(first, [place[text] for text in texts], side="right").astype(np.int64)
    return None
