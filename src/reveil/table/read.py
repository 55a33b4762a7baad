"""Any source of a table becomes one Polars frame, or a refusal that says what to change.

Text files and workbooks are read as texts, always: what a cell means is settled by the policy (`reveil.table.types`),
and never by other cells. Columns that their source types keep their type; where it has values of several types, each
becomes its plain text. Categories and columns without any value become text. A pandas index is always dropped.
"""

from __future__ import annotations

import datetime
import io
import re
import sqlite3
import uuid
import zipfile
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl

from reveil.base.addresses import HIDDEN, masked, several_marks
from reveil.base.doubts import doubt
from reveil.base.errors import Fault, InputError, brief, stop_if
from reveil.base.text import plain_text
from reveil.table.cells import text_series, texts
from reveil.table.doubts import counts_rows, index_fault
from reveil.table.limits import check_size, limit_faults
from reveil.table.many import files_of, joined
from reveil.table.options import NAMELESS, ReadOptions, checked_names, refusal
from reveil.table.suffixes import COLUMNAR, STATS, SUFFIXES, TEXT
from reveil.table.text_files import TITLED, read_text
from reveil.table.titles import better_explained, titles_above

PLAIN = {int, float, bool, str, Decimal, datetime.date, datetime.datetime, uuid.UUID}  # of database values
SHOWN_SHEETS = 5
FETCHED = 50_000  # rows of a query at a time
ANYWHERE = (
    "decimal",
    "nulls",
    "max_megabytes",
    "max_columns",
    "max_cell",
    "accept",
    "strip",
    "row_index",
)  # options that every source honours
OF_TEXT = ("delimiter", "encoding", "multiline", "header", "skip_lines")
OF_SHEETS = ("sheet", "skip_lines")


def read_table(
    source: Any,
    options: ReadOptions = ReadOptions(),  # noqa: B008 it is frozen
    *,
    found_out: bool = True,
) -> pl.DataFrame:
    """Read a path, a frame (Polars, pandas, Arrow) or `sqlite:///file.db` / `postgresql://...` with a query.

    A path may be that of a folder, or a pattern: then the files are one table.

    Without `found_out`, nothing about a text file is told from its rows: then its encoding must be given.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text("zip;age;weight\\n02139;41;70,5\\n10115;29;\\n")
    >>> read_table(path).rows()
    [('02139', '41', '70,5'), ('10115', '29', None)]
    """
    where = "table"
    if isinstance(source, str) and "://" in source:
        frame = _from_database(source, options)
    elif (several := files_of(source)) is not None:
        return joined([read_table(file, options, found_out=found_out) for file in several], several)
    elif isinstance(source, (str, Path)):
        frame, where = _from_file(Path(source), str(source), options, found_out), str(source)
    else:
        frame = _from_frame(source, options)
    frame.columns = checked_names(frame.columns, "table")
    frame = _without_nameless(frame, options, where)
    frame = frame.with_columns(pl.col(pl.Null, pl.Categorical, pl.Enum).cast(pl.String))
    frame = frame.with_columns(texts(column) for column in frame if column.dtype == pl.Object)
    stop_if(limit_faults(frame, options, where))
    frame = _stripped(frame, options.nulls) if options.strip else frame
    return frame if options.nulls == ("",) else frame.with_columns(_known(column, options.nulls) for column in frame)


def _without_nameless(frame: pl.DataFrame, options: ReadOptions, where: str) -> pl.DataFrame:
    """A first column without a name that numbers the rows is asked about, and left out where that is accepted."""
    if NAMELESS not in frame.columns:
        return frame
    if not counts_rows(frame[NAMELESS]):
        checked_names(["", *frame.columns[1:]], where)
    stop_if([] if options.row_index or "row-index" in options.accept else [index_fault("")])
    return frame.drop(NAMELESS)


def _stripped(frame: pl.DataFrame, nulls: tuple[str, ...]) -> pl.DataFrame:
    """Texts without the blanks around them; where nothing else is left, the cell is empty, and missing if that is."""
    bare = frame.with_columns(pl.col(pl.String).str.strip_chars())
    return bare.with_columns(pl.when(pl.col(pl.String) != "").then(pl.col(pl.String))) if "" in nulls else bare


def declares_types(source: Any) -> bool:
    """Whether the source says of its texts that they are texts. Files of texts, workbooks, objects and SQL do not.

    >>> declares_types(pl.DataFrame()), declares_types("people.csv"), declares_types("people.parquet")
    (True, False, True)
    """
    if isinstance(source, (str, Path)):
        return "://" not in str(source) and Path(source).suffix.lower() in (*COLUMNAR, *STATS)
    return type(source).__module__.split(".")[0] != "pandas"


def _known(column: pl.Series, nulls: tuple[str, ...]) -> pl.Series:
    """The column without the values that mean missing, by their texts: 99 is one in a column of numbers, too."""
    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Time, pl.Duration):
        return column  # refused where it is used
    means_missing = texts(column).is_in(list(nulls))
    return column.set(means_missing.fill_null(False), None) if means_missing.any() else column


def _refuse_unused(options: ReadOptions, used: tuple[str, ...], where: str) -> None:
    """An option that the source cannot honour is refused, not ignored."""
    given = [f.name for f in fields(options) if getattr(options, f.name) != f.default and f.name not in used]
    stop_if([Fault("R106", where, f"option '{name}' means nothing here", "leave it out") for name in given])


def _from_frame(source: Any, options: ReadOptions) -> pl.DataFrame:
    where = f"{type(source).__module__.split('.')[0]} {type(source).__name__}"
    _refuse_unused(options, ANYWHERE, where)
    try:
        if isinstance(source, (pl.DataFrame, pl.LazyFrame)):
            return source.lazy().collect()
        if where == "pandas DataFrame":
            return _from_pandas(source.set_axis(checked_names(map(str, source.columns), where), axis=1))
        if not hasattr(source, "__arrow_c_stream__") and hasattr(source, "__dataframe__"):
            from pyarrow.interchange import from_dataframe

            source = from_dataframe(source)
        if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
            checked_names(getattr(getattr(source, "schema", None), "names", ()), where)
            return pl.DataFrame(source)
    except InputError:
        raise
    except Exception as error:  # each library has its own errors for what it cannot express
        raise refusal("R113", where, f"this cannot be read: {error}", "pass columns of one type each") from None
    raise refusal("R102", where, "this is not a table", "pass a path, a database URL, a pandas or Arrow table")


def _from_pandas(source: Any) -> pl.DataFrame:
    """pandas columns of one type as they are; of objects or of categories that are no texts, each cell as its text."""
    columns = []
    for name, column in source.items():
        categories = getattr(column.dtype, "categories", None)
        if column.dtype == object or (categories is not None and categories.dtype != object):
            known = column.astype(object)
            columns.append(text_series(name, known.where(known.notna(), None)))
        else:
            columns.append(pl.Series(name, pl.from_pandas(column)))
    return pl.DataFrame(columns)


def _from_file(path: Path, where: str, options: ReadOptions, found_out: bool) -> pl.DataFrame:
    kind = "".join(path.suffixes[-2 if path.suffix.lower() == ".gz" else -1 :]).lower()
    if not path.is_file():
        raise refusal("R101", where, "a folder" if path.is_dir() else "there is no such file", "check the name")
    if kind not in SUFFIXES:
        raise refusal("R102", where, f"the suffix '{kind}' is not known", f"use one of {' '.join(SUFFIXES)}")
    check_size(path.stat().st_size, options, where)
    text = kind.removesuffix(".gz") in TEXT
    used = OF_TEXT if text else OF_SHEETS if kind == ".xlsx" else ()
    _refuse_unused(options, (*ANYWHERE, *used), where)
    try:
        return (
            read_text(path, where, options, found_out=found_out) if text else _from_binary(path, kind, where, options)
        )
    except (InputError, MemoryError):
        raise
    except PermissionError:
        raise refusal("R101", where, "you may not read this file", "ask for the right to read it") from None
    except ModuleNotFoundError as error:
        extra = "excel" if kind == ".xlsx" else "stats"
        raise refusal("R110", where, f"the package '{error.name}' is missing", f"pip install reveil[{extra}]") from None
    except Exception as error:  # whatever a reader makes of a damaged file
        raise refusal(
            "R113", where, f"damaged, or not {kind}: {error}", "write it again, or correct its suffix"
        ) from None


def _from_binary(path: Path, kind: str, where: str, options: ReadOptions) -> pl.DataFrame:
    if kind == ".xlsx":
        return _from_excel(path, where, options)
    if kind in STATS:
        return _from_statistics(path, STATS[kind], where, options)
    data = io.BytesIO(path.read_bytes())  # not the name, which may hold glob characters
    if kind == ".parquet":
        # Repeated values take no space in the file: a small one may unpack to any size.
        known = pl.scan_parquet(data)
        check_size(8 * known.select(pl.len()).collect().item() * len(known.collect_schema()), options, where)
        frame = pl.read_parquet(data)
    elif data.getvalue().startswith(b"ARROW1"):
        packed = pl.scan_ipc(data)
        check_size(8 * packed.select(pl.len()).collect().item() * len(packed.collect_schema()), options, where)
        frame = pl.read_ipc(data)
    else:
        frame = pl.read_ipc_stream(data)
    return frame.drop(name for name in frame.columns if re.fullmatch(r"__index_level_\d+__", name))


def _from_statistics(path: Path, reader: str, where: str, options: ReadOptions) -> pl.DataFrame:
    """Values with their labels; codes that have none stay what they are. Which codes have labels, the file states.

    Labels of codes that mean missing say nothing about the others, so that a number stays a number.
    """
    import pyreadstat

    read = getattr(pyreadstat, reader)
    known = {"user_missing": True} if reader in ("read_dta", "read_sav") else {}  # SAS states no missing codes
    head = read(path, metadataonly=True, **known)[1]
    rows, columns = (
        head.number_rows or 0,
        head.number_columns or 0,
    )  # transport files do not count their rows
    check_size(max(8 * rows * columns, path.stat().st_size), options, where)
    table, facts = read(path, output_format="polars")
    stated = head.missing_ranges if known else {}
    labels = {name: _meant(known, stated.get(name, ())) for name, known in facts.variable_value_labels.items()}
    return pl.DataFrame(table).with_columns(
        texts(table[name]).replace({plain_text(code): label for code, label in known.items()})
        for name, known in labels.items()
        if known
    )


def _meant(labels: dict[Any, str], missing: Any) -> dict[Any, str]:
    """Labels of codes that are values: none of those that mean missing (in Stata, letters among numbers)."""
    numeric = any(not isinstance(code, str) for code in labels)
    ranges = [(part["lo"], part["hi"]) if isinstance(part, dict) else (part, part) for part in missing]
    known = {code: label for code, label in labels.items() if not (numeric and isinstance(code, str))}
    return {
        code: label
        for code, label in known.items()
        if not any(type(low) is type(code) and low <= code <= high for low, high in ranges)
    }


def _from_excel(path: Path, where: str, options: ReadOptions) -> pl.DataFrame:
    """Every cell of a sheet by itself as text: a workbook knows no columns of one type."""
    import fastexcel

    with zipfile.ZipFile(path) as packed:
        check_size(sum(item.file_size for item in packed.infolist()), options, where)
    book, sheet = fastexcel.read_excel(path), options.sheet
    if sheet is not None and sheet not in book.sheet_names:
        raise refusal("R106", where, f"there is no sheet '{sheet}'", f"choose one of {book.sheet_names}")
    if sheet is None and "several-sheets" not in options.accept:
        stop_if(_sheet_faults(book, where))
    above = options.skip_lines
    first = book.load_sheet(sheet or 0, header_row=None, skip_rows=above, n_rows=TITLED, dtypes="string")
    head = pl.DataFrame(first)
    if not head.height:
        raise refusal("R103", where, "the sheet is empty", "give it a line of column names")
    try:
        names = checked_names((name or "" for name in head.row(0)), where, index=True)
    except InputError as error:
        raise better_explained(error, titles_above(head.rows()), where, options) from None
    frame = pl.DataFrame(book.load_sheet(sheet or 0, header_row=above, dtypes="string"))
    frame.columns = names
    days = pl.all().str.replace(r"^(\d{4}-\d\d-\d\d) 00:00:00$", "${1}")  # a day has no time in a workbook
    return frame.with_columns(days)


def _sheet_faults(book: Any, where: str) -> list[Fault]:
    """A workbook in which several sheets hold something: the first may be a cover, or only one part of the people."""
    filled = [
        name
        for name in book.sheet_names
        if pl.DataFrame(book.load_sheet(name, header_row=None, n_rows=1, dtypes="string")).height
    ]
    if len(filled) < 2:
        return []
    message = f"has {len(filled)} sheets that are not empty: {', '.join(map(brief, filled[:SHOWN_SHEETS]))}"
    remedy = f'name the one that is meant under [input], such as sheet = "{filled[0]}"'
    return [doubt("several-sheets", where, message, remedy)]


def _from_database(source: str, options: ReadOptions) -> pl.DataFrame:
    from sqlalchemy import NullPool, create_engine, make_url
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError

    remedy = "pass sqlite:///file.db or postgresql://user@host/database"
    try:
        url = make_url(source)
    except (ArgumentError, ValueError):
        raise refusal("R102", "database URL", "this is not a database URL", remedy) from None
    where, kind = masked(source), url.drivername.split("+")[0]
    if kind not in ("sqlite", "postgresql", "postgres"):
        raise refusal("R102", where, f"'{kind}' is not supported", remedy)
    _refuse_unused(options, (*ANYWHERE, "query"), where)
    if several_marks(source):
        message = "user or password hold an @, so that nobody can tell where the host begins"
        remedy = "write %40 for it, or leave the password to the environment (PGPASSWORD) or ~/.pgpass"
        raise refusal("R111", where, message, remedy)
    if options.query is None or not options.query.strip():
        raise refusal("R111", where, "a database needs a query", "pass query = 'SELECT ... FROM ...'")
    # Read-only, so that nothing is created or changed; and without parameters, so that % is only a character.
    if kind == "sqlite":
        path = Path(url.database or "")
        if not path.is_file():
            raise refusal("R101", where, "there is no such file", "check the name; sqlite:////x is an absolute path")
        url = url.set(database=path.resolve().as_uri(), query={"mode": "ro", "uri": "true"})
    else:
        url = url.set(drivername="postgresql+psycopg")
    code, what, remedy = "R111", "no connection", "check host, port, database, user and password"
    try:
        with create_engine(url, poolclass=NullPool).connect() as base:
            code, what, remedy = (
                "R112",
                "the query failed (sources are read-only, and take one SELECT)",
                "try it in a database client first",
            )
            # A cursor of the server takes one query that returns rows, and no second statement that would end the
            # transaction; SQLite asks before everything that is not reading.
            base.execution_options(no_parameters=True, postgresql_readonly=True, stream_results=kind != "sqlite")
            if kind == "sqlite":
                base.connection.driver_connection.set_authorizer(_only_reading)  # type: ignore[union-attr]
            result = base.exec_driver_sql(options.query)
            if result.returns_rows:
                names, rows = checked_names(result.keys(), where), _fetched(result, options, where)
                columns = zip(*rows, strict=True) if rows else [()] * len(names)
                return pl.DataFrame([_series(*column) for column in zip(names, columns, strict=True)])
    except ModuleNotFoundError as error:
        raise refusal("R110", where, f"the package '{error.name}' is missing", "pip install reveil[postgres]") from None
    except SQLAlchemyError as error:
        reason = masked(str(getattr(error, "orig", None) or error))
        for secret in filter(None, (url.password, unquote(str(url.password or "")))):
            reason = reason.replace(secret, HIDDEN)
        raise refusal(code, where, f"{what}: {reason}", remedy) from None
    raise refusal("R112", where, "the query returns no table", "pass a SELECT")


def _fetched(result: Any, options: ReadOptions, where: str) -> list[Any]:
    """All rows of a query, unless they are too many."""
    rows: list[Any] = []
    while part := result.fetchmany(FETCHED):
        rows += part
        check_size(8 * len(rows) * len(part[0]), options, where)
    return rows


def _only_reading(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """SQLite asks this before each step of a query. ATTACH, temporary tables, pragmas and writing are not reading."""
    reading = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE)
    harmless = action == sqlite3.SQLITE_FUNCTION and second not in ("load_extension", "writefile", "readfile", "edit")
    return sqlite3.SQLITE_OK if action in reading or harmless else sqlite3.SQLITE_DENY


def _series(name: str, values: tuple[Any, ...]) -> pl.Series:
    """A column of database values: of the one type that they have, or each as its plain text.

    Decimals are texts: how many digits a column has would depend on all of them.
    """
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int} and all(value is None or abs(value) < 2**63 for value in values):
        return pl.Series(name, values, pl.Int64)
    if len(kinds) == 1 and kinds <= {float, bool, str, datetime.date, datetime.datetime, bytes, datetime.time}:
        return pl.Series(name, values)
    return text_series(name, values) if kinds <= PLAIN else pl.Series(name, values)
