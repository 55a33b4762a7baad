"""Text files: what the first lines tell of them, then the whole as a Polars frame.

Everything is text at first. A column becomes integers, floats or dates only when every single value says so and
nothing is lost by it: a postcode such as 02139 stays text.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from itertools import dropwhile, islice, tee
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from reveil.base.errors import Fault, InputError, stop_if

DELIMITERS = ("\t", ";", "|", ",")  # on a tie the comma loses: it is the one that also occurs inside text
SAMPLE_BYTES, SAMPLE_ROWS = 1 << 15, 1000
BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
INTEGER = r"^-?(?:0|[1-9][0-9]*)$"
# An exponent needs a point or a sign: 1.5e3 and 1e-05 are numbers, 12E5 may well be a code.
FLOAT = r"^-?(?:(?:0|[1-9][0-9]*)?\.[0-9]+(?:[eE][+-]?[0-9]+)?|(?:0|[1-9][0-9]*)(?:[eE][+-][0-9]+)?)$"
THOUSANDS = (  # beyond doubt: 1,234 alone may be a number with three decimals
    r"^-?[1-9][0-9]{0,2}(?:(?:\.[0-9]{3})+,[0-9]+|(?:,[0-9]{3})+\.[0-9]+|(?:\.[0-9]{3}){2,}|(?:,[0-9]{3}){2,}"
    r"|(?:[ '’\u00a0\u202f][0-9]{3})+[.,][0-9]+)$"
)
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"


@dataclass(frozen=True)
class ReadOptions:
    """How to read; None means look and decide. A value equal to one of `nulls` is missing, quoted or not."""

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    nulls: tuple[str, ...] = ("",)
    query: str | None = None
    sheet: str | None = None


def about_thousands(texts: pl.Series) -> str | None:
    """How to write numbers instead, where some have thousands separators. It shows no value: policies quote it.

    >>> about_thousands(pl.Series(["99,50", "1.250,00"]))
    'thousands separators are not read: write 8206,72 instead of 8.206,72'
    """
    found = texts.filter(texts.str.contains(THOUSANDS))
    if found.is_empty():
        return None
    mark = re.sub("[0-9-]", "", found[0])[0]
    decimal = "." if mark in ",'’" else ","
    return f"thousands separators are not read: write 8206{decimal}72 instead of 8{mark}206{decimal}72"


def refusal(code: str, where: str, message: str, remedy: str, rows: int | None = None) -> InputError:
    first, *_ = message.splitlines()  # libraries add pages of advice to their errors
    return InputError(Fault(code, where, first.rstrip("."), remedy, rows))


def checked_names(names: Iterable[str], where: str) -> list[str]:
    stripped = [name.strip() for name in names]
    places = ", ".join(str(place) for place, name in enumerate(stripped, 1) if not name)
    what = f"column {places} of {len(stripped)} has no name"
    faults = [Fault("R107", where, what, "name it; write files without a row index")] if places else []
    for name in (name for name, count in Counter(filter(None, stripped)).items() if count > 1):
        what = f"the column name '{name}' occurs {stripped.count(name)} times"
        faults.append(Fault("R107", where, what, "give every column its own name"))
    stop_if(faults)
    return stripped


def read_text(path: Path, where: str, options: ReadOptions, typed: Callable[[str], bool]) -> pl.DataFrame:
    data = gzip.decompress(path.read_bytes()) if path.suffix.lower() == ".gz" else path.read_bytes()
    data = _utf8(data, where, options.encoding)
    if (place := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, place) + 1
        remedy = "give the file the suffix of what it is, or pass encoding = 'utf-16-le'"
        raise refusal("R104", where, f"line {line} holds a NUL byte, so this is not text", remedy)
    if not data or data.isspace():
        raise refusal("R103", where, "the file is empty", "give it a line of column names")
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")  # line ends of old Macintosh files
    look = _dialect(data, where, options)
    look = replace(look, whole=list(filter(typed, look.whole)))
    if len(look.names) > 1 and data.endswith((b"\n\n", b"\n\r\n")):
        data = data.rstrip(b"\r\n") + b"\n"
    plain = _as_plain(data, look) if options.nulls == ("",) else None
    frame = _as_strings(data, where, look.delimiter, look.names, options.nulls) if plain is None else plain
    return _typed(frame, look.decimal, typed)


def _utf8(data: bytes, where: str, given: str | None) -> bytes:
    """The same text as UTF-8 without a byte order mark."""
    marked = next((name for bom, name in BOMS if data.startswith(bom)), None)
    if given is not None:
        _check_encoding(data, where, given, marked)
    elif marked is None and data.isascii():
        return data
    encoding = marked or given or "utf-8"
    try:
        return data.decode(encoding).encode()
    except UnicodeDecodeError as error:
        bad = error.start
    # One bad byte amid UTF-8 text is damage. A bad byte before any UTF-8 is another encoding: cp1252, or
    # latin-1 when there are bytes that cp1252 leaves open.
    if not marked and not given and data[:bad].isascii():
        return data.decode("latin-1" if {0x81, 0x8D, 0x8F, 0x90, 0x9D} & set(data) else "cp1252").encode()
    line = data.count(b"\n", 0, bad) + 1
    what = f"byte 0x{data[bad]:02x} at offset {bad} (line {line}) is not {encoding}"
    raise refusal("R105", where, what, "repair that line or pass the encoding it was written in, such as 'cp1252'")


def _check_encoding(data: bytes, where: str, given: str, marked: str | None) -> None:
    what = None
    try:
        "".encode(given)  # also refuses codecs that are not for text, such as base64
        name = codecs.lookup(given).name
        if marked and not name.startswith(marked.removesuffix("-sig")):
            what = f"the file is marked as {marked}, not {given}"
        elif not marked and name.startswith(("utf-16", "utf-32")) and b"\0" not in data[:SAMPLE_BYTES]:
            what = f"this is not {given}, which has NUL bytes"
    except LookupError:
        what = f"there is no text encoding '{given}'"
    if what:
        raise refusal("R105", where, what, f"leave the encoding out or pass a name such as '{marked or 'cp1252'}'")


def _records(data: bytes, mark: str, strict: bool = False) -> Iterator[tuple[int, list[str], str]]:
    """First line, fields and fault (or "") of each record. Slow: only for samples and to explain failures."""
    source, copy = tee(io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="\n"))
    limit, start = csv.field_size_limit(max(len(data), 1 << 17)), 1
    try:
        reader = csv.reader(source, delimiter=mark, strict=strict)
        for record in reader:
            quotes = sum(line.count('"') for line in islice(copy, reader.line_num + 1 - start))
            yield start, record, "an unpaired quotation mark" if quotes % 2 else ""
            start = reader.line_num + 1
    except csv.Error as error:
        yield start, [], str(error)
    finally:
        csv.field_size_limit(limit)


def _first_lines(data: bytes) -> bytes:
    return data if len(data) <= SAMPLE_BYTES else data[: data.rfind(b"\n", 0, SAMPLE_BYTES) + 1] or data


def _sample(lines: bytes, mark: str, more: bool) -> tuple[list[list[str]], float]:
    """The records of the first lines, and the share that is as wide as the header; 0 when that is one field."""
    records = [record for _, record, _ in _records(lines, mark) if record] or [[""]]
    if more and len(records) > 2:
        records.pop()  # it may end inside quotation marks
    width = len(records[0])
    return records, sum(len(record) == width for record in records) / len(records) if width > 1 else 0.0


@dataclass(frozen=True)
class Dialect:
    """What the first lines tell; `whole` are columns that look like whole numbers there."""

    delimiter: str
    decimal: str
    names: list[str]
    whole: list[str]


def _check_header(data: bytes, where: str, mark: str) -> None:
    """An open quotation mark in the header would swallow rows: Polars goes on to the next mark, wherever that is."""
    records = _records(data, mark, strict=True)
    line, _, wrong = next((found for found in records if found[1] or found[2]), (1, [], ""))
    if wrong:
        raise _broken(where, line, wrong)


def _dialect(data: bytes, where: str, options: ReadOptions) -> Dialect:
    given, faults = options.delimiter, []
    if given is not None and (len(given) != 1 or not given.isascii() or given in '"\r\n\0'):
        raise refusal("R106", where, f"the delimiter {given!r} is not one plain character", "pass , ; | or a tab")
    first = _first_lines(data)
    present = [mark for mark in DELIMITERS if mark.encode() in first] or [","]
    samples = {mark: _sample(first, mark, len(first) < len(data)) for mark in {*present, given or ","}}
    best = max(present, key=lambda mark: (samples[mark][1], len(samples[mark][0][0])))
    mark = given or (best if samples[best][1] else ",")
    _check_header(data, where, mark)
    header, *records = samples[mark][0]
    if samples[best][1] == 1 and len(header) == 1:
        what = f"the delimiter {given!r} is not in the first line, but {best!r} splits every line alike"
        faults.append(Fault("R106", where, what, f"leave the delimiter out or pass {best!r}"))
    # Thousands such as 1,234 do not tell which mark is the decimal one.
    witness = re.compile(r"-?(?![1-9][0-9]{0,2}[.,][0-9]{3}$)[0-9]+([.,])[0-9]+")
    seen = {match[1] for record in records for value in record if (match := witness.fullmatch(value))}
    likely = "".join(seen) if len(seen) == 1 else ".,"
    decimal = options.decimal or likely[0]
    if decimal not in tuple(likely):
        what = f"the decimal mark {decimal!r} is given, but numbers have {' or '.join(likely)}"
        faults.append(Fault("R106", where, what, "leave the decimal mark out"))
    stop_if(faults)
    names, digits = checked_names(header, where), re.compile(INTEGER)
    seen_in = [{record[n] for record in records if n < len(record)} - {""} for n in range(len(names))]
    whole = [name for name, cells in zip(names, seen_in, strict=True) if cells and all(map(digits.match, cells))]
    return Dialect(mark, decimal, names, whole)


def _as_plain(data: bytes, look: Dialect) -> pl.DataFrame | None:
    """Read a file without quotation marks, whole numbers at once; None where that might lose anything.

    A number such as 007 or +7 is longer in the file than its value is when written. So if all cells, as they are
    written usually, and all marks between them make up just as many bytes as the file has, no cell was another text.
    That holds if no line is short (its last value would be missing) and all lines end alike.
    """
    begin = data.find(b"\n") + 1
    ends = b"\r\n" if data[:begin].endswith(b"\r\n") else b"\n"
    alike = data.count(b"\r") == data.count(b"\n") == data.count(ends) if len(ends) > 1 else b"\r" not in data
    if not look.whole or b'"' in data or not alike:
        return None
    kinds: dict[str, Any] = dict.fromkeys(look.names, pl.String) | dict.fromkeys(look.whole, pl.Int64)
    try:
        frame = pl.read_csv(data, separator=look.delimiter, schema=kinds, empty_string_is_null=True)
    except pl.exceptions.PolarsError:
        return None
    texts = [name for name in look.names if name not in look.whole]
    written = sum(frame.select(pl.sum_horizontal(0, pl.col(texts).str.len_bytes().sum())).row(0))
    written += sum(_length(frame[name]) for name in look.whole)
    between = frame.height * (frame.width - 1 + len(ends)) - (0 if data.endswith(b"\n") else len(ends))
    complete = len(look.names) > 1 and not frame.to_series(-1).null_count()
    return frame if complete and begin + written + between == len(data) else None


def _length(numbers: pl.Series) -> int:
    """How many characters it takes to write whole numbers.

    >>> _length(pl.Series([0, -7, 10, None]))
    5
    """
    values = numbers.drop_nulls().to_numpy()
    if not len(values):
        return 0
    low, high, power = int(values.min()), int(values.max()), 10
    total = len(values) + (int(np.count_nonzero(values < 0)) if low < 0 else 0)
    while power <= max(high, -low):
        total += int(np.count_nonzero(values >= power)) if power <= high else 0
        total += int(np.count_nonzero(values <= -power)) if power <= -low else 0
        power *= 10
    return total


def _as_strings(data: bytes, where: str, mark: str, names: list[str], nulls: tuple[str, ...]) -> pl.DataFrame:
    empty = "" in nulls
    texts: dict[str, Any] = {"null_values": [*filter(None, nulls)] or None, "empty_string_is_null": empty}
    try:
        frame = pl.read_csv(data, separator=mark, infer_schema=False, **texts)
    except pl.exceptions.PolarsError as error:
        _explain(data, where, mark, len(names))
        raise refusal("R109", where, f"the lines cannot be parsed: {error}", "write the file again") from None
    # Polars fills up short lines in silence. They have no last value, so most files need no further look.
    last = frame.to_series(-1)
    if len(names) > 1 and (last.null_count() or (last == "").any()):
        inside = pl.all().str.count_matches(mark, literal=True).sum()
        quoted = sum(frame.select(inside).row(0)) + "".join(names).count(mark) if b'"' in data else 0
        if data.count(mark.encode()) != (frame.height + 1) * (len(names) - 1) + quoted:
            _explain(data, where, mark, len(names))
    frame.columns = names
    # Polars keeps a quoted nothing as text.
    filled = [pl.col(column.name) for column in frame if empty and (column == "").any()]
    return frame.with_columns(pl.when(column != "").then(column) for column in filled)


def _broken(where: str, line: int, wrong: str) -> InputError:
    return refusal("R109", where, f"line {line} is broken: {wrong}", "close quotes; double inner ones")


def _explain(data: bytes, where: str, mark: str, width: int) -> None:
    """Raise what is wrong with the lines, if anything is."""
    ragged = []
    # Blank lines above the header are skipped, as Polars does.
    for line, record, wrong in dropwhile(lambda r: not r[1] and not r[2], _records(data, mark, strict=True)):
        if wrong:
            raise _broken(where, line, wrong)
        if len(record) != width and (record or width > 1):
            ragged.append(f"line {line} has {len(record)}")
    if ragged:
        some = ", ".join(ragged[:5]) + (", and so on" if len(ragged) > 5 else "")
        what = f"the header has {width} fields, but {some}"
        raise refusal("R108", where, what, f"repair them; a value with {mark!r} in it needs quotes", len(ragged))


def _typed(frame: pl.DataFrame, decimal: str, wanted: Callable[[str], bool]) -> pl.DataFrame:
    """Give a type to each column whose every value has it. A sample proposes, the whole column decides."""
    number = FLOAT.replace(r"\.", rf"\{decimal}")
    texts = (column for column in frame if column.dtype == pl.String and wanted(column.name))
    kinds = {column.name: kind for column in texts if (kind := _proposal(column, number))}
    while kinds:
        plans = {name: _conversion(name, kind, decimal, number) for name, kind in kinds.items()}
        parsed = frame.select(value.alias("\0" + name) for name, (value, _) in plans.items())
        checked = frame.hstack(parsed).select(exact.alias(name) for name, (_, exact) in plans.items())
        held = checked.row(0, named=True)
        frame = frame.with_columns(parsed["\0" + name].alias(name) for name in kinds if held[name])
        # Integers that turn out to be something else may still be floats.
        kinds = {name: "float" for name, kind in kinds.items() if kind == "integer" and not held[name]}
    return frame


def _proposal(column: pl.Series, number: str) -> str | None:
    values = column.drop_nulls().head(SAMPLE_ROWS)
    patterns = {"integer": INTEGER, "float": number, "date": DATE} if len(values) else {}
    return next((kind for kind, pattern in patterns.items() if values.str.contains(pattern).all()), None)


def _conversion(name: str, kind: str, decimal: str, number: str) -> tuple[pl.Expr, pl.Expr]:
    """How to convert a column, and whether the result (under the name with a NUL) says what the text says."""
    text, value = pl.col(name), pl.col("\0" + name)
    complete = text.null_count() == value.null_count()
    if kind == "date":
        exact = text.unique().str.contains(DATE).all() & (value >= date.min).all()
        return text.str.to_date("%Y-%m-%d", strict=False, cache=False), complete & exact
    if kind == "integer":
        zeros = text.str.starts_with("0").sum() == (text == "0").sum()
        exact = zeros & ~text.str.starts_with("+").any() & ~text.str.starts_with("-0").any()
        return text.cast(pl.Int64, strict=False), complete & exact
    # A float holds no integer beyond 53 bits exactly; longer fractions are rounded, as in every reader.
    long = text.filter(value.abs() >= 2**53).str.contains(INTEGER).any()
    exact = text.str.contains(number).all() & value.is_finite().all() & ~long
    pointed = text.str.replace(",", ".", literal=True) if decimal == "," else text
    return pointed.cast(pl.Float64, strict=False), complete & exact
