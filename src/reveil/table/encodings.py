"""The bytes of a text file as UTF-8, in one encoding for the whole file.

It is stated, or marked at the beginning, or found out from all bytes: UTF-8 where they are UTF-8, else cp1252 (or
latin-1) where no character at all is UTF-8. A file that mixes encodings is refused with its lines: one cell in another
encoding must not change how everybody else is read.
"""

from __future__ import annotations

import codecs
import re

from reveil.base.errors import Fault, InputError
from reveil.base.words import some
from reveil.table.options import refusal

SAMPLE_BYTES = 1 << 15
BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
CHARACTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")  # of UTF-8
OPEN = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")  # bytes that cp1252 gives no meaning
TYPOGRAPHY = re.compile(rb"[\x80-\x9f]")  # bytes that cp1252 and latin-1 read differently
STATE_IT = "repair these lines, or pass the encoding the file was written in, such as 'cp1252'"


def utf8(data: bytes, where: str, given: str | None, *, found_out: bool = True) -> bytes:
    """The same text as UTF-8 without a byte order mark.

    Without `found_out` the encoding must be given, and what is not in it becomes the character for unknown ones.

    >>> utf8("Köln".encode("cp1252"), "t.csv", None).decode()
    'Köln'
    """
    marked = next((name for bom, name in BOMS if data.startswith(bom)), None)
    if given is not None:
        _check_given(data, where, given, marked)
    elif found_out and marked is None and data.isascii():
        return data
    if not found_out:
        return _as_stated(data, where, given, marked)
    encoding = marked or given or "utf-8"
    try:
        return data.decode(encoding).encode()
    except UnicodeDecodeError as error:
        bad = error.start
    if marked or given:
        raise refusal("R105", where, f"{_place(data, bad)} is not {encoding}", STATE_IT)
    if b"\0" in data:
        return data  # no text at all, as the caller says
    if CHARACTER.search(data):
        raise InputError(_mixture(data, where, bad))
    unknown = OPEN.search(data)
    if unknown is None:
        return data.decode("cp1252").encode()
    if len(TYPOGRAPHY.findall(data)) > len(OPEN.findall(data)):  # then latin-1 would read other cells differently
        what = f"{_place(data, unknown.start())} is neither UTF-8 nor cp1252"
        raise refusal("R105", where, what, STATE_IT)
    return data.decode("latin-1").encode()


def _as_stated(data: bytes, where: str, given: str | None, marked: str | None) -> bytes:
    if given is None:
        message = "the encoding is not stated, and finding it out would take everybody's rows"
        raise refusal("R105", where, message, "set encoding under [input], such as 'utf-8' or 'cp1252'")
    return data.decode(marked or given, errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}").encode()


def _place(data: bytes, bad: int) -> str:
    line = data.count(b"\n", 0, bad) + 1
    return f"byte 0x{data[bad]:02x} at offset {bad} (line {line})"


def _mixture(data: bytes, where: str, bad: int) -> Fault:
    """Which lines are UTF-8 and which are not."""
    marked = [(n, line) for n, line in enumerate(data.split(b"\n"), 1) if not line.isascii()]
    wrong = [n for n, line in marked if _contrary(line)]
    right = [n for n, line in marked if not _contrary(line)]
    few, what = (wrong, "are not") if len(wrong) <= len(right) or not right else (right, "are, unlike the others")
    lines = ", ".join(map(str, few[:5])) + (", and so on" if len(few) > 5 else "")
    message = (
        f"{_place(data, bad)} is not utf-8; of {some(len(marked), 'line')} with such characters these {what}: {lines}"
    )
    return Fault("R105", where, message, STATE_IT, len(few))


def _contrary(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return True
    return False


def _check_given(data: bytes, where: str, given: str, marked: str | None) -> None:
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
