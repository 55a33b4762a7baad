"""Any source of a table becomes one Polars frame, or a refusal that says what to change.

Text files are read as text. A column becomes integers, floats or dates only when every single value says so
and nothing is lost by it: a postcode such as 02139 stays text. Typed sources keep their types, except that
categories and columns without any value become text. A pandas index is always dropped.
"""

from __future__ import annotations

import io
import re
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl

from reveil.base.addresses import HIDDEN, masked, several_marks
from reveil.base.errors import Fault, InputError, stop_if
from reveil.base.text import plain_text
from reveil.table.text_files import ReadOptions, checked_names, read_text, refusal

TEXT = (".csv", ".tsv", ".tab", ".txt")
STATS = {".dta": "read_dta", ".sav": "read_sav", ".sas7bdat": "read_sas7bdat"}
SUFFIXES = (*TEXT, *(s + ".gz" for s in TEXT), ".parquet", ".arrow", ".feather", ".ipc", ".xlsx", *STATS)


def read_table(
    source: Any,
    options: ReadOptions = ReadOptions(),  # noqa: B008 it is frozen
    *,
    typed: Callable[[str], bool] = lambda name: True,
) -> pl.DataFrame:
    """Read a path, a frame (Polars, pandas, Arrow) or `sqlite:///file.db` / `postgresql://...` with a query.

    `typed` says which columns of a text file may become numbers and days; others stay text as written.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text("zip;age;weight\\n02139;41;70,5\\n10115;29;\\n")
    >>> read_table(path).rows()
    [('02139', 41, 70.5), ('10115', 29, None)]
    """
    if isinstance(source, str) and "://" in source:
        frame = _from_database(source, options)
    elif isinstance(source, (str, Path)):
        frame = _from_file(Path(source), str(source), options, typed)
    else:
        frame = _from_frame(source, options)
    frame.columns = checked_names(frame.columns, "table")
    frame = frame.with_columns(pl.col(pl.Null, pl.Categorical, pl.Enum).cast(pl.String))
    return frame.with_columns(_as_text(c.name, c) for c in frame if c.dtype == pl.Object)


def _as_text(name: str, values: Iterable[Any]) -> pl.Series:
    """Text for values of several types, such as labels amid codes that have none; 3.0 becomes 3."""
    return pl.Series(name, [None if v is None else plain_text(v) for v in values], pl.String)


def _refuse_unused(options: ReadOptions, used: tuple[str, ...], where: str) -> None:
    """An option that the source cannot honour is refused, not ignored."""
    given = [f.name for f in fields(options) if getattr(options, f.name) != f.default and f.name not in used]
    stop_if([Fault("R106", where, f"option '{name}' means nothing here", "leave it out") for name in given])


def _from_frame(source: Any, options: ReadOptions) -> pl.DataFrame:
    where = f"{type(source).__module__.split('.')[0]} {type(source).__name__}"
    _refuse_unused(options, (), where)
    try:
        if isinstance(source, (pl.DataFrame, pl.LazyFrame)):
            return source.lazy().collect()
        if where == "pandas DataFrame":
            source = source.set_axis(checked_names(map(str, source.columns), where), axis=1)
            return pl.from_pandas(source, include_index=False)
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


def _from_file(path: Path, where: str, options: ReadOptions, typed: Callable[[str], bool]) -> pl.DataFrame:
    kind = "".join(path.suffixes[-2 if path.suffix.lower() == ".gz" else -1 :]).lower()
    if not path.is_file():
        raise refusal("R101", where, "a folder" if path.is_dir() else "there is no such file", "check the name")
    if kind not in SUFFIXES:
        raise refusal("R102", where, f"the suffix '{kind}' is not known", f"use one of {' '.join(SUFFIXES)}")
    text = kind.removesuffix(".gz") in TEXT
    used = ("delimiter", "encoding", "decimal", "nulls") if text else ("sheet",) if kind == ".xlsx" else ()
    _refuse_unused(options, used, where)
    try:
        return read_text(path, where, options, typed) if text else _from_binary(path, kind, where, options.sheet)
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


def _from_binary(path: Path, kind: str, where: str, sheet: str | None) -> pl.DataFrame:
    if kind == ".xlsx":
        return _from_excel(path, where, sheet)
    if kind in STATS:
        import pyreadstat

        read = getattr(pyreadstat, STATS[kind])
        table, _ = read(path, output_format="polars", apply_value_formats=True, formats_as_category=False)
        return pl.DataFrame(table)
    data = io.BytesIO(path.read_bytes())  # not the name, which may hold glob characters
    read_ipc = pl.read_ipc if data.getvalue().startswith(b"ARROW1") else pl.read_ipc_stream
    frame = pl.read_parquet(data) if kind == ".parquet" else read_ipc(data)
    return frame.drop(name for name in frame.columns if re.fullmatch(r"__index_level_\d+__", name))


def _from_excel(path: Path, where: str, sheet: str | None) -> pl.DataFrame:
    import fastexcel

    book = fastexcel.read_excel(path)
    if sheet is not None and sheet not in book.sheet_names:
        raise refusal("R106", where, f"there is no sheet '{sheet}'", f"choose one of {book.sheet_names}")
    head = pl.DataFrame(book.load_sheet(sheet or 0, header_row=None, n_rows=1, dtypes="string"))
    if not head.height:
        raise refusal("R103", where, "the sheet is empty", "give it a line of column names")
    frame = pl.DataFrame(book.load_sheet(sheet or 0, schema_sample_rows=None))
    frame.columns = checked_names((name or "" for name in head.row(0)), where)
    return frame


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
    _refuse_unused(options, ("query",), where)
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
                names, rows = checked_names(result.keys(), where), result.fetchall()
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


def _only_reading(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """SQLite asks this before each step of a query. ATTACH, temporary tables, pragmas and writing are not reading."""
    reading = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE)
    harmless = action == sqlite3.SQLITE_FUNCTION and second not in ("load_extension", "writefile", "readfile", "edit")
    return sqlite3.SQLITE_OK if action in reading or harmless else sqlite3.SQLITE_DENY


def _series(name: str, values: tuple[Any, ...]) -> pl.Series:
    """A column of database values; text where no one type holds all of them exactly."""
    known = [value for value in values if value is not None]
    kinds, size = {type(value) for value in known}, max((abs(v) for v in known if type(v) is int), default=0)
    if kinds == {int, float} and size < 2**53:
        return pl.Series(name, values, pl.Float64, strict=False)
    nan = kinds == {Decimal} and not all(value.is_finite() for value in known)
    return _as_text(name, values) if len(kinds) > 1 or size >= 2**63 or nan else pl.Series(name, values)
