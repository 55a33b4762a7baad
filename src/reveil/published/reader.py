"""A release as whoever holds it reads it: the folder, its public half, a single file, or a table in memory.

Types come from the data package of the release, or from the policy; nobody guesses them from the look of cells, so
that `250.10` stays what was published. Everybody reads releases here but the verifier, whose reading is a second
opinion (`reveil.verify.reading`).
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from reveil.base.errors import Fault, InputError, stop_if
from reveil.policy.policy import Policy
from reveil.published.anatomy import counterfeits_of
from reveil.published.format import (
    BUNDLE,
    COUNT,
    COUNTERFEITS,
    DATE,
    ESCAPED,
    FORMER,
    FORMULAS,
    GROUP,
    HOUSEHOLD,
    INTEGER,
    NUMBER,
    PACKAGE,
    PEOPLE,
    PERSON,
    SUFFIXES,
    TABLE,
    TEXT,
    TUPLES,
    VALUES,
    is_part,
    is_table,
    is_value_table,
    public_half,
)
from reveil.table.options import ReadOptions
from reveil.table.read import read_table

TYPES = {INTEGER: pl.Int64, NUMBER: pl.Float64, DATE: pl.Date}
Fields = Mapping[str, str]  # column -> its type in the data package
PLAIN = ReadOptions()
UNREADABLE = (OSError, ValueError, LookupError, TypeError, pl.exceptions.PolarsError)


@dataclass(frozen=True, eq=False)
class Published:
    """A published table; of two tables that of the people, and `values`: by sensitive column, group, value and count.

    The counterfeits of two tables follow from them: a group has so many values beyond its people.
    """

    table: pl.DataFrame
    counterfeits: pl.DataFrame | None = None  # group, count
    values: Mapping[str, pl.DataFrame] | None = None
    tuples: pl.DataFrame | None = None  # of two tables: group, values of several columns side by side, count
    bundle: str | None = None  # column that says which rows are of one person or household, where these have several
    bundles: Mapping[str, pl.DataFrame] | None = None
    """Of two tables with such a column: by sensitive column, group, bundle, value and count; `values` are their sums,
    for whoever counts rows."""
    ours: bool = False  # Reveil wrote it: a category is written as it is, or in braces where it would look like a set


def open_published(source: Any, policy: Policy | None = None) -> Published:
    """A file, a frame, a release folder (or its public half, or the table in it), or a `Release`.

    Two tables must fit together: the same groups, and no group with fewer values than people.

    >>> open_published(pl.DataFrame({"age": ["[20-29]"]})).table.height
    1
    """
    where = f"folder {source}" if isinstance(source, str | Path) else "two tables"
    return _fitted(read_published(source, policy), where)


def _fitted(published: Published, where: str) -> Published:
    """Two tables with the counterfeits that follow from them, or a refusal."""
    if published.values is None or published.counterfeits is not None:
        return published
    try:
        return replace(published, counterfeits=counterfeits_of(published.table, published.values))
    except (ValueError, pl.exceptions.PolarsError) as error:
        message = f"its tables do not fit together: {str(error).partition(chr(10))[0]}"
        raise InputError(Fault("R603", where, message, "restore them from a backup")) from None


def read_published(source: Any, policy: Policy | None = None, options: ReadOptions = PLAIN) -> Published:
    """The same where two tables need not fit together; a pair of tables is (people, values)."""
    if hasattr(source, "certificate") and hasattr(source, "table"):  # a Release
        tables, fakes = source.values or {}, source.counterfeits
        if bundle := next((_of_several(source.table, table) for table in tables.values()), None):
            sums = {name: _rows_by_value(table, name) for name, table in tables.items()}
            return Published(source.table, None, sums, bundle=bundle, bundles=tables, ours=True)
        return Published(source.table, fakes, source.values, getattr(source, "tuples", None), ours=True)
    if isinstance(source, tuple):
        people, values = (read_cells(table, policy, options) for table in source)
        return _two_tables("two tables", {PEOPLE: people, VALUES: values})
    if not isinstance(source, str | Path):
        return Published(read_table(source, options))
    path = Path(source).parent if _in_release(Path(source)) else Path(source)
    if not path.is_dir():
        return Published(read_cells(source, policy, options))
    published = _read_folder(public_half(path), policy)
    stop_if(_changed_files(public_half(path)))  # of a series, the ledger knows better than the package
    return published


def read_cells(source: Any, policy: Policy | None = None, options: ReadOptions = PLAIN) -> pl.DataFrame:
    """One table that somebody published. The cells of a text file are texts, but where the policy states a type."""
    return _as_stated(read_table(source, options), policy)


def read_release(public: Path, policy: Policy | None = None) -> Published:
    """The tables of a public folder: of the types that its data package states, or of those of the policy."""
    return _fitted(_read_folder(public, policy), f"folder {public}")


def _read_folder(public: Path, policy: Policy | None) -> Published:
    tables = read_tables(public)
    if not _has_package(public):
        tables = {name: _as_stated(table, policy) for name, table in tables.items()}
    if former := [name for name in FORMER if name in tables]:
        message = f"has the form of an earlier version: tables {' and '.join(former)}, now {PEOPLE} and {VALUES}"
        remedy = "publish it anew; or rename its files, and the names, paths and `group` in its data package"
        raise InputError(Fault("R680", f"folder {public}", message, remedy))
    ours = _has_package(public)
    if parts := [tables[name] for name in sorted(tables, key=lambda name: (len(name), name)) if is_part(name)]:
        tables[TABLE] = _one_table(public, parts)
    if PEOPLE in tables:
        return replace(_two_tables(f"folder {public}", tables), ours=ours)
    if TABLE not in tables:
        fault = Fault("R603", f"folder {public}", "holds no published table", "name a release folder or a file")
        raise InputError(fault)
    return Published(tables[TABLE], tables.get(COUNTERFEITS), bundle=_bundle(public), ours=ours)


def _bundle(public: Path) -> str | None:
    """The column that keeps rows together: called so, and the only one that had no part in the policy."""
    if not _has_package(public):
        return None
    resources = json.loads((public / PACKAGE).read_bytes())["resources"]
    listed = [field for resource in resources for field in resource["schema"]["fields"] if "role" not in field]
    return next((field["name"] for field in listed if field["name"] in (PERSON, HOUSEHOLD)), None)


def _one_table(public: Path, parts: list[pl.DataFrame]) -> pl.DataFrame:
    """A table that lies in many files."""
    if any(part.schema != parts[0].schema for part in parts):
        message = "holds files of one table whose columns differ"
        raise InputError(Fault("R603", f"folder {public}", message, "restore them from a backup"))
    return pl.concat(parts)


def read_tables(public: Path) -> dict[str, pl.DataFrame]:
    """Every table of a public folder, by name. A folder of somebody else, without a data package, holds texts.

    There, files of other names are none of ours.
    """
    try:
        if not _has_package(public):
            files = [file for file in sorted(public.iterdir()) if file.suffix in SUFFIXES]
            return {file.stem: read_cells(file) for file in files if is_table(file.stem)}
        resources = json.loads((public / PACKAGE).read_bytes())["resources"]
        return {r["name"]: read_file(public / r["path"], _fields(r), escaped=ESCAPED in r) for r in resources}
    except UNREADABLE as error:
        reason = str(error).partition("\n")[0]
        remedy = "name a release folder, or restore it from a backup"
        raise InputError(Fault("R603", f"release in {public}", f"cannot be read: {reason}", remedy)) from None


def _changed_files(public: Path) -> list[Fault]:
    """Files that are not those of which the data package has the hashes."""
    if not _has_package(public):
        return []
    changed = []
    for resource in json.loads((public / PACKAGE).read_bytes())["resources"]:
        with (public / resource["path"]).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if resource.get("hash", f"sha256:{digest}") != f"sha256:{digest}":
            changed.append(resource["path"])
    message = "is not the file that was released: its hash is another than the one in the data package"
    remedy = f"get the release again; to read the changed files all the same, copy them without {PACKAGE}"
    return [Fault("R607", f"file {public / name}", message, remedy) for name in changed]


def read_file(file: Path, fields: Fields | None = None, *, escaped: bool = False) -> pl.DataFrame:
    """A published file; a missing value is null, and a cell of CSV is text where no type is stated.

    `escaped`: the data package says that texts which look like formulas have an apostrophe in front.
    """
    if file.suffix == ".parquet":
        return _as_declared(pl.read_parquet(file), fields or {})
    table = pl.read_csv(file, infer_schema=False, null_values=[""])
    with file.open(encoding="utf-8", newline="") as lines:
        table.columns = next(csv.reader(lines))  # Polars leaves quotation marks doubled in names
    return _as_declared(_unescaped(table) if escaped else table, fields or {})


def _unescaped(table: pl.DataFrame) -> pl.DataFrame:
    """Cells and names without the apostrophe that keeps spreadsheets from seeing formulas."""
    front = f"^'('*[{FORMULAS}])"
    table.columns = [re.sub(front, r"\1", name) for name in table.columns]
    return table.with_columns(pl.col(pl.String).str.replace(front, "${1}"))


def _has_package(public: Path) -> bool:
    return (public / PACKAGE).is_file()


def _fields(resource: Mapping[str, Any]) -> Fields:
    return {field["name"]: field.get("type", TEXT) for field in resource["schema"]["fields"]}


def _as_declared(table: pl.DataFrame, fields: Fields) -> pl.DataFrame:
    wanted = {name: kind for name, kind in fields.items() if kind in TYPES and name in table.columns}
    days = [name for name, kind in wanted.items() if kind == DATE and table.schema[name] == pl.String]
    read = table.with_columns(pl.col(days).str.to_date("%Y-%m-%d"))
    return read.with_columns(pl.col(name).cast(TYPES[kind]) for name, kind in wanted.items())


def _counted(table: pl.DataFrame) -> pl.DataFrame:
    """Counts are whole numbers whoever wrote them; rows that are listed one by one are counted."""
    if COUNT not in table.columns:
        return table.group_by(pl.all(), maintain_order=True).len(COUNT).cast({COUNT: pl.Int64})
    return table.cast({COUNT: pl.Int64})


def _as_stated(table: pl.DataFrame, policy: Policy | None) -> pl.DataFrame:
    """Sensitive and insensitive columns as numbers or days, where the policy says that they are and all cells agree."""
    if policy is None:
        return table
    wanted = [n for n in (*policy.named("sensitive"), *policy.named("insensitive")) if n in table.columns]
    return table.with_columns(_converted(table[name], policy.columns[name].type) for name in wanted)


def _converted(column: pl.Series, kind: str) -> pl.Series:
    if column.dtype != pl.String or kind not in ("number", "date"):
        return column
    if kind == "date":
        tries = [column.str.to_date("%Y-%m-%d", strict=False)]
    else:
        tries = [column.cast(dtype, strict=False) for dtype in (pl.Int64, pl.Float64)]
    return next((read for read in tries if read.null_count() == column.null_count()), column)


def _in_release(file: Path) -> bool:
    """Whether a file is the table of people in a public folder, where its counterfeits or values lie beside it."""
    package = file.parent / PACKAGE
    if file.stem not in (TABLE, PEOPLE) or not (file.is_file() and package.is_file()):
        return False
    try:
        return file.name in {resource["path"] for resource in json.loads(package.read_bytes())["resources"]}
    except (ValueError, KeyError, TypeError):  # somebody else's file of that name
        return False


def _two_tables(where: str, tables: Mapping[str, pl.DataFrame]) -> Published:
    """People and values by group (a table for each sensitive column), with one way of writing groups."""
    named = {name: table.rename(_group_name(table)) for name, table in tables.items()}
    stated = [name for name in named if is_value_table(name)]
    if not stated:
        raise InputError(Fault("R603", where, f"has no {VALUES}", "name a release in two tables"))
    stop_if(
        [
            Fault("R603", f"table {name}", f"has no column {GROUP!r}", "name a release in two tables")
            for name in (PEOPLE, *stated)
            if GROUP not in named[name].columns
        ]
    )
    try:
        shown = [_counted(named[name]) for name in stated]
        beside = [_counted(named[TUPLES])] if TUPLES in named else []
        people, *shown = _alike_groups([named[PEOPLE], *beside, *shown])
        tuples = shown.pop(0) if beside else None
        named_values = {_value_column(table): table for table in shown}
        if bundle := _of_several(people, shown[0]):
            sums = {name: _rows_by_value(table, name) for name, table in named_values.items()}
            return Published(people, None, sums, tuples, bundle, named_values)
        return Published(people, None, named_values, tuples)
    except (ValueError, pl.exceptions.PolarsError) as error:
        message = f"its tables do not fit together: {str(error).partition(chr(10))[0]}"
        raise InputError(Fault("R603", where, message, "restore them from a backup")) from None


def _of_several(people: pl.DataFrame, values: pl.DataFrame) -> str | None:
    """The column that says which rows of people are of one, where values are in bundles: group, bundle, value and
    count."""
    names = [name for name in (PERSON, HOUSEHOLD) if name in people.columns]
    return names[0] if names and BUNDLE in values.columns and values.width == 4 else None


def _rows_by_value(bundles: pl.DataFrame, column: str) -> pl.DataFrame:
    """How many rows of each group have each value, whoever's they are."""
    counted = bundles.group_by(GROUP, column).agg(pl.col(COUNT).sum())
    return counted.sort(GROUP, column, nulls_last=False)


def _group_name(table: pl.DataFrame) -> dict[str, str]:
    """How others call the column of groups."""
    names = [name for name in table.columns if name.lower() in (GROUP, "gid", "group_id", "groupid")]
    return {names[0]: GROUP} if names and GROUP not in names else {}


def _value_column(table: pl.DataFrame) -> str:
    rest = [name for name in table.columns if name not in (GROUP, COUNT)]
    if not rest:
        raise ValueError("a table of values has no column of values")
    return next((name for name in rest if name != BUNDLE), BUNDLE)


def _alike_groups(tables: list[pl.DataFrame]) -> list[pl.DataFrame]:
    """Numbers of groups as whole numbers in all tables; others may call their groups A and B."""
    try:
        return [table.cast({GROUP: pl.Int64}) for table in tables]
    except pl.exceptions.PolarsError:
        return [table.cast({GROUP: pl.String}) for table in tables]
