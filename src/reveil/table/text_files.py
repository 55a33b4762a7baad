"""Text files: delimiter and header from the first lines, then every cell as the text that was written.

Nothing is typed here. Quotation marks are checked for the whole file before it is parsed: a lone one swallows rows.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import dropwhile, islice, tee
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from reveil.base.errors import Fault, InputError, stop_if
from reveil.table.blanks import BLANKS, cells_apart, tabbed
from reveil.table.encodings import SAMPLE_BYTES, utf8
from reveil.table.limits import check_width, unpacked
from reveil.table.options import ReadOptions, checked_names, refusal
from reveil.table.titles import better_explained, titles_above

TITLED = 50  # lines among which the names of columns are looked for
DELIMITERS = ("\t", ";", "|", ",")  # on a tie the comma loses: it is the one that also occurs inside text


@dataclass(frozen=True)
class Dialect:
    """What the first lines tell."""

    delimiter: str
    names: list[str]
    blanks: bool = False  # the delimiter stands for runs of them


def read_text(path: Path, where: str, options: ReadOptions, *, found_out: bool = True) -> pl.DataFrame:
    """The cells of a text file. Without `found_out` nothing is told from rows: the delimiter is the header's."""
    data = unpacked(path, options, where) if path.suffix.lower() == ".gz" else path.read_bytes()
    return parse_text(data, where, options, found_out=found_out)


def parse_text(
    data: bytes, where: str, options: ReadOptions, *, found_out: bool = True, later: bool = False
) -> pl.DataFrame:
    """The same, of the bytes of a file; of `later` rows of it the header, as `header_of` gives it, says everything."""
    data = utf8(data, where, options.encoding, found_out=found_out)
    if (place := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, place) + 1
        remedy = "give the file the suffix of what it is, or pass encoding = 'utf-16-le'"
        raise refusal("R104", where, f"line {line} holds a NUL byte, so this is not text", remedy)
    if not data or data.isspace():
        raise refusal("R103", where, "the file is empty", "give it a line of column names")
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")  # line ends of old Macintosh files
    data = _below_titles(data, options.skip_lines)
    try:
        return _cells(data, where, options, found_out=found_out, later=later)
    except InputError as error:
        raise better_explained(error, _titles(data) if found_out else 0, where, options) from None


def _below_titles(data: bytes, lines: int) -> bytes:
    """Blank lines in the place of titles, so that all others keep their numbers."""
    place = 0
    for _ in range(lines):
        place = data.find(b"\n", place) + 1 or len(data)
    return b"\n" * lines + data[place:]


def _titles(data: bytes) -> int:
    """How many lines above the header look like a title, by the delimiter that makes most cells."""
    first = _first_lines(data)
    tried = [list(islice(_records(first, mark), TITLED)) for mark in DELIMITERS]
    records = max(tried, key=lambda found: sum(len(record) for _, record, _ in found))
    rows = titles_above([record for _, record, _ in records])
    return records[rows][0] - 1 if rows else 0


def _cells(data: bytes, where: str, options: ReadOptions, *, found_out: bool, later: bool) -> pl.DataFrame:
    if blanks := options.delimiter == BLANKS:
        data, options = tabbed(data, options.header and not later), replace(options, delimiter="\t")
    lines = data.lstrip(b"\r\n")
    first = _first_lines(data) if found_out else lines[: lines.find(b"\n") + 1] or lines
    look = replace(_dialect(data, first, where, options), blanks=blanks)
    check_width(len(look.names), options, where)
    if not options.header:
        data = look.delimiter.join(look.names).encode() + b"\n" + data.lstrip(b"\r\n")
    if len(look.names) > 1 and data.endswith((b"\n\n", b"\n\r\n")):
        data = data.rstrip(b"\r\n") + b"\n"
    if data.endswith(look.delimiter.encode()):
        data += b"\n"  # of a cell too many at the very end Polars says nothing
    _check_quotes(data, where, look)
    frame = _as_strings(data, where, look, options.nulls)
    if b'"' in data and not options.multiline:
        stop_if(_swallowed(frame, look.delimiter))
    return frame


def header_of(data: bytes, where: str, options: ReadOptions) -> tuple[bytes, str]:
    """Of the first lines of a file those up to the end of its header, as they are written, and its delimiter.

    Where blanks set cells apart, the first row tells whether a name is missing: nothing is then written in its place.
    """
    text = _below_titles(utf8(data, where, options.encoding), options.skip_lines)
    delimiter, numbered = options.delimiter, False
    if delimiter == BLANKS:
        plain, text = tabbed(text, False), tabbed(text, options.header)
        numbered, options = text != plain, replace(options, delimiter="\t")
    look = _dialect(text, _first_lines(text), where, options)
    records = dropwhile(lambda record: not record[1], _records(text, look.delimiter))
    first = next(records, (1, [], ""))[0]
    first_row = next(records, (text.count(b"\n") + 2, [], ""))[0]
    lines = data.split(b"\n")[: first_row - 1]
    if numbered:
        lines[first - 1] = b'""\t' + lines[first - 1]
    return b"".join(line + b"\n" for line in lines), delimiter or look.delimiter


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


def _check_header(data: bytes, where: str, mark: str) -> None:
    """An open quotation mark in the header would swallow rows: Polars goes on to the next mark, wherever that is."""
    records = _records(data, mark, strict=True)
    line, _, wrong = next((record for record in records if record[1] or record[2]), (1, [], ""))
    if wrong:
        raise _broken(where, line, wrong)


def _check_quotes(data: bytes, where: str, look: Dialect) -> None:
    """Marks open at the beginning of a cell and close at its end; inside they are doubled. Anything else is broken.

    Parsers guess where a mark inside a cell ends, and may take it for the end of a cell many lines below.
    """
    if b'"' not in data:
        return
    content = np.frombuffer(data, dtype=np.uint8)
    places = np.flatnonzero(content == ord('"'))
    ends = np.zeros(256, dtype=np.bool_)
    ends[[*look.delimiter.encode(), *b'\r\n"']] = True
    opening, closing = places[0::2], places[1::2]
    starts_well = (opening == 0) | ends[content[np.maximum(opening - 1, 0)]]
    ends_well = (closing == len(content) - 1) | ends[content[np.minimum(closing + 1, len(content) - 1)]]
    # A mark after a mark belongs to the same pair: the one before must have closed.
    wrong = [*opening[~starts_well][:1], *closing[~ends_well][:1], *(places[-1:] if len(places) % 2 else ())]
    if wrong:
        _explain(data, where, look)
        line = data.count(b"\n", 0, int(min(wrong))) + 1
        raise _broken(where, line, "a quotation mark inside a cell")


def _swallowed(frame: pl.DataFrame, mark: str) -> list[Fault]:
    """Cells over several lines that look exactly as if two lone quotation marks had made one of several rows.

    Then the lines of the cell have just the delimiters that are needed to complete the rows it would consist of.
    """
    faults = []
    for place, column in enumerate(frame):
        over = column.str.contains("\n", literal=True).fill_null(False)
        if not over.any():
            continue
        cell = pl.col("").str
        lines = cell.count_matches("\n", literal=True)
        first = cell.replace("(?s)\n.*", "").str.count_matches(mark, literal=True) == frame.width - 1 - place
        last = cell.replace("(?s)^.*\n", "").str.count_matches(mark, literal=True) == place
        whole = cell.count_matches(mark, literal=True) == lines * (frame.width - 1)
        alike = column.alias("").to_frame().select(first & last & whole).to_series().fill_null(False) & over
        if frame.width > 1 and alike.any():
            message = "cells go over several lines that look like rows of their own, as after a lone quotation mark"
            remedy = "close the quotes, or set multiline = true under [input] if such cells are meant"
            rows, places = int(alike.sum()), tuple((alike.arg_true().head(4) + 1).to_list())
            faults.append(Fault("R109", f"column {column.name!r}", message, remedy, rows, places))
    return faults


def _dialect(data: bytes, first: bytes, where: str, options: ReadOptions) -> Dialect:
    given, faults = options.delimiter, []
    if given is not None and (len(given) != 1 or not given.isascii() or given in '"\r\n\0'):
        raise refusal(
            "R106", where, f"the delimiter {given!r} is not one plain character", "pass , ; | a tab or blanks"
        )
    present = [mark for mark in DELIMITERS if mark.encode() in first] or [","]
    samples = {mark: _sample(first, mark, len(first) < len(data)) for mark in {*present, given or ","}}
    best = max(present, key=lambda mark: (samples[mark][1], len(samples[mark][0][0])))
    mark = given or (best if samples[best][1] else ",")
    if given is None and not samples[best][1] and (cells := cells_apart(first)):
        message = f"blanks set {cells} cells of every line apart, and no other delimiter does"
        remedy = 'delimiter = "blanks" under [input] (`reveil init` writes it); "," if each line is one cell'
        raise refusal("R116", where, message, remedy)
    _check_header(data, where, mark)
    header = samples[mark][0][0]
    if samples[best][1] == 1 and len(header) == 1:
        what = f"the delimiter {given!r} is not in the first line, but {best!r} splits every line alike"
        faults.append(Fault("R106", where, what, f"leave the delimiter out or pass {best!r}"))
    if options.decimal not in (None, ".", ","):
        faults.append(Fault("R106", where, f"the decimal mark {options.decimal!r} is none", "pass . or a comma"))
    stop_if(faults)
    if not options.header:
        return Dialect(mark, [f"column_{place}" for place in range(1, len(header) + 1)])
    return Dialect(mark, checked_names(header, where, index=True))


def _as_strings(data: bytes, where: str, look: Dialect, nulls: tuple[str, ...]) -> pl.DataFrame:
    mark, names = look.delimiter, look.names
    empty = "" in nulls
    texts: dict[str, Any] = {"null_values": [*filter(None, nulls)] or None, "empty_string_is_null": empty}
    try:
        frame = pl.read_csv(data, separator=mark, infer_schema=False, **texts)
    except pl.exceptions.PolarsError as error:
        _explain(data, where, look)
        raise refusal("R109", where, f"the lines cannot be parsed: {error}", "write the file again") from None
    # Polars fills up short lines in silence. They have no last value, so most files need no further look.
    last, hollow = frame.to_series(-1), not empty or b'""' in data  # else no text is empty
    if len(names) > 1 and (last.null_count() or (hollow and (last == "").any())):
        inside = pl.all().str.count_matches(mark, literal=True).sum()
        quoted = sum(frame.select(inside).row(0)) + "".join(names).count(mark) if b'"' in data else 0
        if data.count(mark.encode()) != (frame.height + 1) * (len(names) - 1) + quoted:
            _explain(data, where, look)
    frame.columns = names
    # Polars keeps a quoted nothing as text.
    filled = [pl.col(column.name) for column in frame if empty and hollow and (column == "").any()]
    return frame.with_columns(pl.when(column != "").then(column) for column in filled)


def _broken(where: str, line: int, wrong: str) -> InputError:
    return refusal("R109", where, f"line {line} is broken: {wrong}", "close quotes; double inner ones")


def _explain(data: bytes, where: str, look: Dialect) -> None:
    """Raise what is wrong with the lines, if anything is."""
    ragged, mark, width = [], look.delimiter, len(look.names)
    # Blank lines above the header are skipped, as Polars does.
    for line, record, wrong in dropwhile(lambda r: not r[1] and not r[2], _records(data, mark, strict=True)):
        if wrong:
            raise _broken(where, line, wrong)
        if len(record) != width and (record or width > 1):
            ragged.append(f"line {line} has {len(record)}")
    if ragged:
        some = ", ".join(ragged[:5]) + (", and so on" if len(ragged) > 5 else "")
        what = f"the header has {width} fields, but {some}"
        inside = "blanks" if look.blanks else repr(mark)
        raise refusal("R108", where, what, f"repair them; a value with {inside} in it needs quotes", len(ragged))
