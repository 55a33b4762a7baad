"""A text file that is larger than memory, some records at a time: cut where a record ends, each part read as a file.

How a file is written (encoding, delimiter, header) is settled once, for all its parts. An encoding that is not stated
must be UTF-8, which is told from all bytes before any of them is read as a table.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import polars as pl

from reveil.table.encodings import BOMS
from reveil.table.options import NAMELESS, ReadOptions, refusal
from reveil.table.suffixes import TEXT
from reveil.table.text_files import header_of, parse_text

STEP = 1 << 22  # bytes that are decoded together
LOOKED_AT = 1 << 20  # bytes that tell delimiter and header
MANY = 64_000_000  # bytes of one record, of which no end is found
PLAIN = ("utf-8", "ascii", "cp125", "iso8859", "latin", "mac-", "koi8")  # a byte of a line end or of a mark is one


def comes_apart(file: Path, options: ReadOptions) -> bool:
    """Whether records can be told apart by bytes: in text files, of encodings in which a line end is one byte."""
    if file.suffix.lower() not in TEXT:
        return False
    with file.open("rb") as opened:
        start = opened.read(4)
    if any(start.startswith(mark) for mark, name in BOMS if name == "utf-16"):
        return False
    try:
        return options.encoding is None or codecs.lookup(options.encoding).name.startswith(PLAIN)
    except LookupError:
        return True  # the reader says that there is no such encoding


def text_blocks(file: Path, options: ReadOptions, step: int) -> Iterator[pl.DataFrame]:
    """The cells of the file as texts, about `step` bytes at a time.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text("zip;age\\n02139;41\\n10115;29\\n")
    >>> [block.rows() for block in text_blocks(path, ReadOptions(), 8)]
    [[('02139', '41')], [('10115', '29')]]
    """
    if options.encoding is None:
        _insist_on_utf8(file)
    with file.open("rb") as opened:
        start = _skip_mark(opened)
        look = opened.read(LOOKED_AT)
        header, mark = header_of(look[: look.rfind(b"\n") + 1] or look, str(file), options)
        options = replace(options, delimiter=mark)
        titles = _first_lines(look, options.skip_lines)
        opened.seek(start + len(titles))
        line, first = 1 + titles.count(b"\n"), True
        for number, records in enumerate(_cut(opened, step, str(file))):
            where = str(file) if number == 0 else f"{file}, from line {line:,} on (lines are counted from there)"
            if number == 0:
                frame = parse_text(titles + records, where, options)
            elif options.header:
                frame = parse_text(header + records, where, options, later=True)
            else:
                frame = parse_text(records, where, replace(options, skip_lines=0), later=True)
            line += records.count(b"\n")
            if frame.height:
                yield frame if first else frame.drop(NAMELESS, strict=False)  # the first rows tell what it is
                first = False


def _insist_on_utf8(file: Path) -> None:
    decoder, place = codecs.getincrementaldecoder("utf-8")(), 0
    with file.open("rb") as opened:
        while part := opened.read(STEP):
            try:
                decoder.decode(part)
            except UnicodeDecodeError as error:
                message = (
                    f"near byte {place + error.start:,} is no UTF-8, and the encoding of a file in parts is not guessed"
                )
                remedy = "set encoding under [input], such as 'cp1252'"
                raise refusal("R105", str(file), message, remedy) from None
            place += len(part)


def _skip_mark(opened: BinaryIO) -> int:
    """Where the text begins: the byte order mark of UTF-8 is no part of the first name."""
    return opened.seek(3 if opened.read(3) == codecs.BOM_UTF8 else 0)


def _first_lines(data: bytes, lines: int) -> bytes:
    """So many of them; none if there are not so many, as where lines end in another way."""
    *above, below = data.split(b"\n", lines)
    return data[: len(data) - len(below)] if len(above) == lines else b""


def _cut(opened: BinaryIO, step: int, where: str) -> Iterator[bytes]:
    """Whole records: bytes up to a line end that is outside quotation marks."""
    rest, wanted = b"", step
    while part := opened.read(max(1, wanted - len(rest))):
        rest += part
        end = _last_end(rest)
        if end and rest[:end].strip():
            yield rest[:end]
            rest, wanted = rest[end:], step
        elif len(rest) >= wanted:
            wanted = 2 * len(rest)
        if len(rest) > max(MANY, 4 * step):
            message = f"{len(rest):,} bytes are one record, as after a lone quotation mark"
            raise refusal("R109", where, message, "close quotes; double inner ones")
    if rest.strip():
        yield rest


def _last_end(data: bytes) -> int:
    """Where the last complete record ends, 0 if none does.

    >>> _last_end(b'a,"b\\nc"\\nd,"e\\n')
    8
    """
    end = len(data)
    while end := data.rfind(b"\n", 0, end) + 1:
        if data.count(b'"', 0, end) % 2 == 0:
            return end
        end = data.rfind(b'"', 0, end)  # inside marks: go on before the one that opens them
    return 0
