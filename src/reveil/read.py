"""Any source of a table becomes one Polars frame, or a refusal that says what to change.

Text files are read as text first. A column becomes integers, floats or dates only when every single value says so and
nothing is lost by it; a postcode such as 02139 stays text. Typed sources keep their types, except that categories
become text and columns without any value become text too. A pandas index is always dropped.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import polars as pl

from reveil.errors import Fault, InputError, stop_if

if TYPE_CHECKING:
    from sqlalchemy import URL

TEXT = (".csv", ".tsv", ".tab", ".txt")
ARROW = (".arrow", ".feather", ".ipc")
STATS = {".dta": "read_dta", ".sav": "read_sav", ".sas7bdat": "read_sas7bdat"}
SUFFIXES = (*TEXT, *(s + ".gz" for s in TEXT), ".parquet", *ARROW, ".xlsx", *STATS)
DELIMITERS = ("\t", ";", "|", ",")  # on a tie the comma loses: it is the one that also occurs inside text
SAMPLE_BYTES = 1 << 16
SAMPLE_ROWS = 1000
BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
MAGIC = {b"PK\x03\x04": "a ZIP or Excel file", b"PAR1": "Parquet", b"\x1f\x8b": "gzip", b"%PDF": "PDF"}
MAGIC |= {
    b"ARROW1": "Arrow",
    b"SQLite format 3": "an SQLite database",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
}
INTEGER = r"^-?(?:0|[1-9][0-9]*)$"
# An exponent needs a point or a sign: 1.5e3 and 1e-05 are numbers, 12E5 may well be a code.
FLOAT = (
    r"^-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-][0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)$"
)
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"


@dataclass(frozen=True)
class ReadOptions:
    """How to read; None means look at the file and decide. `nulls` are the texts that mean missing, quoted or not."""

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    nulls: tuple[str, ...] = ("",)
    query: str | None = None
    sheet: str | None = None


def read_table(source: Any, options: ReadOptions = ReadOptions()) -> pl.DataFrame:
    """Read a path, a frame (Polars, pandas, Arrow) or `sqlite:///file.db` / `postgresql://...` with a query.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text("zip;age;weight\\n02139;41;70,5\\n10115;29;\\n")
    >>> read_table(path).rows()
    [('02139', 41, 70.5), ('10115', 29, None)]
    """
    if isinstance(source, str) and "://" in source:
        frame = _from_database(source, options)
    elif isinstance(source, (str, Path)):
        frame = _from_file(Path(source), str(source), options)
    else:
        _refuse_unused(options, (), f"a {type(source).__name__}")
        frame = _from_frame(source)
    return _tidy(frame)


def _fail(code: str, where: str, message: str, remedy: str, rows: int | None = None) -> NoReturn:
    raise InputError(Fault(code, where, message, remedy, rows))


def _refuse_unused(options: ReadOptions, used: tuple[str, ...], where: str) -> None:
    """An option that the source cannot honour is refused, not ignored."""
    given = [f.name for f in fields(options) if getattr(options, f.name) != f.default]
    stop_if(
        [
            Fault("R106", where, f"the option '{name}' has no meaning for this source", f"leave '{name}' out")
            for name in given
            if name not in used
        ]
    )


def _tidy(frame: pl.DataFrame) -> pl.DataFrame:
    """Strip and check the names; bring columns to the types the rest of Reveil knows."""
    frame.columns = _checked_names(frame.columns, "table")
    types = frame.schema.items()
    text = [name for name, kind in types if kind in (pl.Null, pl.Categorical) or isinstance(kind, pl.Enum)]
    return frame.with_columns(pl.col(text).cast(pl.String)) if text else frame


def _checked_names(names: Iterable[str], where: str) -> list[str]:
    stripped = [name.strip() for name in names]
    faults = []
    if empty := [str(place) for place, name in enumerate(stripped, 1) if not name]:
        what = f"column {', '.join(empty)} of {len(stripped)} has no name"
        faults.append(Fault("R107", where, what, "name it, or write the file without a row index"))
    for name, count in Counter(stripped).items():
        if name and count > 1:
            what = f"the column name '{name}' occurs {count} times"
            faults.append(Fault("R107", where, what, "give every column its own name"))
    stop_if(faults)
    return stripped


# Frames in memory


def _from_frame(source: Any) -> pl.DataFrame:
    where = f"a {type(source).__module__.split('.')[0]} {type(source).__name__}"
    if isinstance(source, pl.LazyFrame):
        source = source.collect()
    if isinstance(source, pl.DataFrame):
        return source.clone()
    try:
        if where.startswith("a pandas") and hasattr(source, "columns"):
            _checked_names((str(name) for name in source.columns), where)
            return pl.from_pandas(source, include_index=False)
        if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
            _checked_names(getattr(getattr(source, "schema", None), "names", ()), where)
            return pl.DataFrame(source)
        if hasattr(source, "__dataframe__"):
            from pyarrow.interchange import from_dataframe

            return pl.DataFrame(from_dataframe(source))
    except InputError:
        raise
    except Exception as error:  # each library has its own errors for columns it cannot express
        _fail(
            "R113", where, f"it cannot be read as a table: {_first_line(error)}", "give each column one type"
        )
    _fail(
        "R102",
        where,
        "this is not a table",
        "pass a path, a database URL, or a Polars, pandas or Arrow table",
    )


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


# Files


def _from_file(path: Path, where: str, options: ReadOptions) -> pl.DataFrame:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])
    if not path.exists():
        _fail("R101", where, "there is no such file", "check the spelling and the folder")
    if path.is_dir():
        _fail("R101", where, "this is a folder", "name one file")
    if kind not in SUFFIXES:
        what = f"the suffix '{kind}' is not known" if kind else "the file name has no suffix"
        _fail("R102", where, what, f"use one of {' '.join(SUFFIXES)}")
    text = kind.removesuffix(".gz") in TEXT
    used = ("delimiter", "encoding", "decimal", "nulls") if text else ("sheet",) if kind == ".xlsx" else ()
    _refuse_unused(options, used, where)
    try:
        return _from_text(path, where, options) if text else _from_binary(path, kind, where, options.sheet)
    except (InputError, MemoryError):
        raise
    except PermissionError:
        _fail("R101", where, "you may not read this file", "ask for the right to read it")
    except ModuleNotFoundError as error:
        extra = "excel" if kind == ".xlsx" else "stats"
        _fail("R110", where, f"the package '{error.name}' is missing", f"pip install reveil[{extra}]")
    except Exception as error:  # whatever a reader makes of a damaged file
        what = f"the file is damaged or not {kind}: {_first_line(error)}"
        _fail("R113", where, what, "write it again, or give it the suffix of what it is")


def _from_binary(path: Path, kind: str, where: str, sheet: str | None) -> pl.DataFrame:
    if kind == ".xlsx":
        return _from_excel(path, where, sheet)
    if kind in STATS:
        import pyreadstat

        read = getattr(pyreadstat, STATS[kind])
        table, _ = read(path, output_format="polars", apply_value_formats=True, formats_as_category=False)
        return pl.DataFrame(table)
    with path.open("rb") as file:  # a file, not a name: names may hold glob characters
        if kind == ".parquet":
            frame = pl.read_parquet(file)
        else:
            stream = file.read(6) != b"ARROW1"
            file.seek(0)
            frame = pl.read_ipc_stream(file) if stream else pl.read_ipc(file)
    return frame.drop(name for name in frame.columns if re.fullmatch(r"__index_level_\d+__", name))


def _from_excel(path: Path, where: str, sheet: str | None) -> pl.DataFrame:
    import fastexcel

    book = fastexcel.read_excel(path)
    if sheet is not None and sheet not in book.sheet_names:
        known = ", ".join(f"'{name}'" for name in book.sheet_names)
        _fail("R106", where, f"there is no sheet '{sheet}'", f"choose one of {known}")
    place = 0 if sheet is None else sheet
    head = pl.DataFrame(book.load_sheet(place, header_row=None, n_rows=1, dtypes="string"))
    if not head.height:
        _fail("R103", where, "the sheet is empty", "give it a line of column names")
    names = _checked_names((name or "" for name in head.row(0)), where)
    frame = pl.DataFrame(book.load_sheet(place, schema_sample_rows=None))
    frame.columns = names
    return frame


# Text files


def _from_text(path: Path, where: str, options: ReadOptions) -> pl.DataFrame:
    data = path.read_bytes()
    if path.suffix.lower() == ".gz":
        import gzip

        data = gzip.decompress(data)
    for magic, what in MAGIC.items():
        if data.startswith(magic) and b"\0" in data:  # PAR1 alone may be a column name
            _fail("R104", where, f"this is {what}, not text", "give the file the suffix of what it is")
    data = _utf8(data, where, options.encoding)
    if (place := data.find(b"\0")) >= 0:
        what = f"line {_line(data, place)} holds a NUL byte, so this is not text"
        _fail(
            "R104", where, what, "give the file the suffix of what it is, or pass its encoding (utf-16-le?)"
        )
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")  # line ends of old Macintosh files
    if not data.strip():
        _fail("R103", where, "the file is empty", "give it a line of column names")
    delimiter, decimal, names = _dialect(data, where, options)
    if len(names) > 1 and data.endswith((b"\n\n", b"\n\r\n")):
        data = data.rstrip(b"\r\n") + b"\n"
    frame = _as_strings(data, where, delimiter, names, options.nulls)
    return _typed(frame, decimal)


def _line(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1


def _utf8(data: bytes, where: str, encoding: str | None) -> bytes:
    """The same text as UTF-8 without a byte order mark."""
    marked = next((name for bom, name in BOMS if data.startswith(bom)), None)
    if encoding is None and marked is None and data.isascii():
        return data
    if encoding is None:
        encoding = marked or _guess_encoding(data, where)
    else:
        _check_encoding(data, where, encoding, marked)
        encoding = marked or encoding
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        what = f"byte 0x{data[error.start]:02x} at offset {error.start} (line {_line(data, error.start)})"
        _fail(
            "R105",
            where,
            f"{what} is not {encoding}",
            "pass the encoding it was written in, such as 'cp1252'",
        )
    return text.encode("utf-8")


def _check_encoding(data: bytes, where: str, encoding: str, marked: str | None) -> None:
    import codecs

    try:
        name = codecs.lookup(encoding).name
        "".encode(encoding)  # refuses codecs that are not for text, such as base64
    except LookupError:
        _fail(
            "R105",
            where,
            f"there is no text encoding '{encoding}'",
            "pass a name such as 'utf-8' or 'cp1252'",
        )
    wide = name.startswith(("utf-16", "utf-32"))
    if marked is not None and not name.startswith(marked.removesuffix("-sig")):
        _fail(
            "R105",
            where,
            f"the file is marked as {marked}, not {encoding}",
            f"leave it out or pass '{marked}'",
        )
    if wide and marked is None and b"\0" not in data[:SAMPLE_BYTES]:
        _fail("R105", where, f"this is not {encoding}: every byte is a letter", "leave the encoding out")


def _guess_encoding(data: bytes, where: str) -> str:
    try:
        data.decode("utf-8")
        return "utf-8"
    except UnicodeDecodeError as error:
        bad = error.start
    if not data[:bad].isascii():  # one bad byte in UTF-8 text is damage, not another encoding
        what = f"byte 0x{data[bad]:02x} at offset {bad} (line {_line(data, bad)}) is not UTF-8, the text before it is"
        _fail("R105", where, what, "repair that line, or pass encoding = 'cp1252' if all of it is")
    return "latin-1" if set(data) & {0x81, 0x8D, 0x8F, 0x90, 0x9D} else "cp1252"  # bytes that cp1252 lacks


def _records(data: bytes, mark: str, strict: bool = False) -> Iterator[tuple[int, list[str], str]]:
    """First line, fields and fault (or "") of each record. Slow: only for samples and to explain failures."""
    quotes = 0

    def counted(lines: Iterable[str]) -> Iterator[str]:
        nonlocal quotes
        for line in lines:
            quotes += line.count('"')
            yield line

    lines = io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="\n")
    limit = csv.field_size_limit(max(len(data), 1 << 17))
    start = 1
    try:
        reader = csv.reader(counted(lines), delimiter=mark, strict=strict)
        for record in reader:
            yield start, record, "an unpaired quotation mark" if quotes % 2 else ""
            start, quotes = reader.line_num + 1, 0
    except csv.Error as error:
        yield start, [], str(error)
    finally:
        csv.field_size_limit(limit)


def _sample(data: bytes, delimiter: str) -> list[list[str]]:
    cut = data if len(data) <= SAMPLE_BYTES else data[: data.rfind(b"\n", 0, SAMPLE_BYTES) + 1] or data
    records = [record for _, record, _ in _records(cut, delimiter) if record]
    # The last record of a cut sample may end inside quotation marks.
    return records[:-1] if len(cut) < len(data) and len(records) > 2 else records


def _dialect(data: bytes, where: str, options: ReadOptions) -> tuple[str, str, list[str]]:
    """Delimiter, decimal mark and column names."""
    given, faults = options.delimiter, []
    if given is not None and (len(given) != 1 or not given.isascii() or given in '"\r\n\0'):
        what = f"the delimiter {given!r} is not one plain character"
        _fail("R106", where, what, "pass one of , ; | or a tab")
    best = max(DELIMITERS, key=lambda mark: _fit(_sample(data, mark)))
    score = _fit(_sample(data, best))
    if given is not None and given != best and score[0] == 1 and len(_sample(data, given)[0]) == 1:
        what = (
            f"the delimiter {given!r} does not occur in the first line, but {best!r} splits every line alike"
        )
        faults.append(Fault("R106", where, what, f"leave the delimiter out or pass {best!r}"))
    delimiter = given or (best if score[1] > 1 else ",")
    records = _sample(data, delimiter)
    guess = _guess_decimal(records[1:])
    if options.decimal not in (None, ".", ","):
        what = f"the decimal mark {options.decimal!r} is neither . nor ,"
        faults.append(Fault("R106", where, what, "pass one of them or leave it out"))
    elif options.decimal and guess and guess != options.decimal:
        what = f"the decimal mark {options.decimal!r} is given, but the numbers have {guess!r}"
        faults.append(Fault("R106", where, what, f"leave it out or pass {guess!r}"))
    stop_if(faults)
    return delimiter, options.decimal or guess or ".", _checked_names(records[0], where)


def _fit(records: list[list[str]]) -> tuple[float, int]:
    """How well a delimiter explains a sample: share of records as wide as the first, and that width."""
    width = len(records[0])
    return (sum(len(r) == width for r in records) / len(records) if width > 1 else 0.0, width)


def _guess_decimal(records: list[list[str]]) -> str | None:
    """The mark that numbers in the sample have; None when both or neither occur. 1,234 may be a thousand: no witness."""
    values = {value for record in records for value in record}
    seen = {
        mark
        for mark in ".,"
        if any(
            re.fullmatch(rf"-?[0-9]+\{mark}[0-9]+", value)
            and not re.fullmatch(rf"-?[1-9][0-9]{{0,2}}\{mark}[0-9]{{3}}", value)
            for value in values
        )
    }
    return seen.pop() if len(seen) == 1 else None


def _as_strings(data: bytes, where: str, mark: str, names: list[str], nulls: tuple[str, ...]) -> pl.DataFrame:
    try:
        frame = pl.read_csv(
            data,
            separator=mark,
            infer_schema=False,
            null_values=list(nulls) or None,
            empty_string_is_null="" in nulls,
        )
    except pl.exceptions.PolarsError as error:
        _explain(data, where, mark, len(names))
        _fail("R109", where, f"the lines cannot be parsed: {_first_line(error)}", "write the file again")
    # Polars fills short lines up in silence. Such a line has no last value, so most files need no further look.
    last = frame.to_series(-1)
    if len(names) > 1 and (last.is_null() | (last == "")).any():
        inside = pl.all().str.count_matches(mark, literal=True).sum()
        quoted = sum(frame.select(inside).row(0)) + sum(n.count(mark) for n in names) if b'"' in data else 0
        if data.count(mark.encode()) != (frame.height + 1) * (len(names) - 1) + quoted:
            blank = _explain(data, where, mark, len(names))
            frame = frame.with_row_index("").filter(~pl.col("").is_in(blank)).drop("")
    frame.columns = names
    return frame


def _explain(data: bytes, where: str, mark: str, width: int) -> list[int]:
    """Raise what is wrong with the lines; else the numbers of the rows that are only blank lines."""
    ragged: list[tuple[int, int]] = []
    blank: list[int] = []
    row = -1  # the header
    for line, record, wrong in _records(data, mark, strict=True):
        if wrong:
            remedy = "close quotation marks, and double those inside a quoted value"
            _fail("R109", where, f"the record that starts in line {line} is broken: {wrong}", remedy)
        if not record and row == -1:
            continue  # blank lines above the header
        if not record and width > 1:
            blank.append(row)
        elif record and len(record) != width:
            ragged.append((line, len(record)))
        row += 1
    if ragged:
        some = ", ".join(f"line {line} has {count}" for line, count in ragged[:5])
        what = f"the header has {width} fields but {some}{' and so on' if len(ragged) > 5 else ''}"
        _fail("R108", where, what, f"repair the lines; a value with {mark!r} in it needs quotes", len(ragged))
    return blank


def _typed(frame: pl.DataFrame, decimal: str) -> pl.DataFrame:
    """Give a type to each column whose every value has it. A sample proposes, the whole column decides."""
    kinds = {column.name: kind for column in frame if (kind := _proposal(column, decimal))}
    while kinds:
        parsed = frame.select(_parse(name, kind, decimal).alias("\0" + name) for name, kind in kinds.items())
        checks = [_holds(name, kind, decimal).alias(name) for name, kind in kinds.items()]
        held = frame.hstack(parsed).select(checks).row(0, named=True)
        frame = frame.with_columns(parsed["\0" + name].alias(name) for name in kinds if held[name])
        # Integers that turn out to be something else may still be floats.
        kinds = {name: "float" for name, kind in kinds.items() if kind == "integer" and not held[name]}
    return frame


def _proposal(column: pl.Series, decimal: str) -> str | None:
    head = column.head(SAMPLE_ROWS).drop_nulls()
    values = head if len(head) else column.drop_nulls().head(SAMPLE_ROWS)
    patterns = {"integer": INTEGER, "float": _float_pattern(decimal), "date": DATE}
    fits = (kind for kind, pattern in patterns.items() if values.str.contains(pattern).all())
    return next(fits, None) if len(values) else None


def _float_pattern(decimal: str) -> str:
    return FLOAT.replace(r"\.", rf"\{decimal}")


def _parse(name: str, kind: str, decimal: str) -> pl.Expr:
    text = pl.col(name)
    if kind == "date":
        return text.str.to_date("%Y-%m-%d", strict=False)
    if kind == "integer":
        return text.cast(pl.Int64, strict=False)
    return (text.str.replace(",", ".", literal=True) if decimal == "," else text).cast(
        pl.Float64, strict=False
    )


def _holds(name: str, kind: str, decimal: str) -> pl.Expr:
    """Whether the parsed column says exactly what the text says."""
    text, value = pl.col(name), pl.col("\0" + name)
    complete = text.null_count() == value.null_count()
    if kind == "date":
        return complete & text.str.contains(DATE).all() & (value >= date.min).all()
    if kind == "integer":
        zeros = text.str.starts_with("0").sum() == (text == "0").sum()
        return complete & zeros & ~text.str.starts_with("+").any() & ~text.str.starts_with("-0").any()
    # A float holds no more than 53 bits of an integer; longer fractions are rounded, as in every reader.
    long = text.filter(value.abs() > 2**53).str.contains(r"^-?[0-9]+$").any()
    return complete & text.str.contains(_float_pattern(decimal)).all() & value.is_finite().all() & ~long


# Databases


def _from_database(source: str, options: ReadOptions) -> pl.DataFrame:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(source)
    except ArgumentError:
        _fail(
            "R102", "database URL", "this is not a database URL", "pass sqlite:///file.db or postgresql://..."
        )
    where = url.render_as_string(hide_password=True)
    kind = url.drivername.split("+")[0]
    if kind not in ("sqlite", "postgresql", "postgres"):
        _fail("R102", where, f"'{kind}' is not supported", "pass sqlite:///file.db or postgresql://...")
    _refuse_unused(options, ("query",), where)
    if options.query is None or not options.query.strip():
        _fail("R111", where, "a database needs a query", "pass query = 'SELECT ... FROM ...'")
    names, rows = (_sqlite if kind == "sqlite" else _postgres)(url, options.query, where)
    _checked_names(names, where)
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return pl.DataFrame([_series(name, values) for name, values in zip(names, columns, strict=True)])


def _series(name: str, values: tuple[Any, ...]) -> pl.Series:
    """A column of database values; text when SQLite or JSON mixed types that no one type holds exactly."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float} and all(abs(value) <= 2**53 for value in values if type(value) is int):
        values = tuple(None if value is None else float(value) for value in values)
    elif len(kinds) > 1:
        values = tuple(None if value is None else str(value) for value in values)
    try:
        return pl.Series(name, values)
    except (pl.exceptions.PolarsError, TypeError, OverflowError):
        return pl.Series(name, [None if value is None else str(value) for value in values])


def _sqlite(url: URL, query: str, where: str) -> tuple[list[str], list[Any]]:
    import sqlite3

    path = Path(url.database or "")
    if not path.is_file():
        _fail(
            "R101",
            where,
            "there is no such file",
            "check the spelling; sqlite:////x is absolute, sqlite:///x not",
        )
    try:
        base = sqlite3.connect(path.resolve().as_uri() + "?mode=ro", uri=True)
        try:
            cursor = base.execute(query)
            rows = cursor.fetchall()
        finally:
            base.close()
    except (sqlite3.Error, sqlite3.Warning) as error:
        _fail("R112", where, f"the query failed: {_first_line(error)}", "try it in a database client first")
    if cursor.description is None:
        _fail("R112", where, "the query returns no table", "pass a SELECT")
    return [column[0] for column in cursor.description], rows


def _postgres(url: URL, query: str, where: str) -> tuple[list[str], list[Any]]:
    from sqlalchemy import NullPool, create_engine
    from sqlalchemy.exc import ArgumentError, DBAPIError

    try:
        engine = create_engine(url.set(drivername="postgresql+psycopg"), poolclass=NullPool)
        base = engine.connect().execution_options(postgresql_readonly=True)
    except ModuleNotFoundError as error:
        _fail("R110", where, f"the package '{error.name}' is missing", "pip install reveil[postgres]")
    except (DBAPIError, ArgumentError) as error:
        what = f"no connection: {_first_line(getattr(error, 'orig', None) or error)}"
        _fail("R111", where, what, "check host, port, database, user and password")
    with base:
        try:
            result = base.exec_driver_sql(query)
            names, rows = list(result.keys()), [tuple(row) for row in result] if result.returns_rows else []
        except DBAPIError as error:
            what = f"the query failed: {_first_line(error.orig or error)}"
            _fail("R112", where, what, "try it in a database client first")
        if not result.returns_rows:
            _fail("R112", where, "the query returns no table", "pass a SELECT")
    return names, rows
