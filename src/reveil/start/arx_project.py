"""Projects of ARX (`.deid`): what their XML and CSV parts say. Parts that Java serialised (`.dat`) are never opened.

    project.xml                     the name, and the delimiter of all tables in it
    data/input.csv                  the table
    input/definition.xml            columns: type, data type, hierarchy, lowest and highest level
    input/config.xml                criteria, suppression limit, quality model, weights
    input/hierarchies/COLUMN.csv    hierarchies, leaf first

A project comes from somebody else: what is too large, names a place outside of it, or declares entities is refused.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import IO
from xml.parsers import expat

from reveil.base.errors import Fault, InputError
from reveil.table.limits import MEGABYTE, STEP

LARGEST = {".xml": 2 * MEGABYTE, ".csv": 100 * MEGABYTE}  # of a part of XML, and of all hierarchies together, unpacked
TABLE, LARGEST_TABLE = ("data/input.csv", "data/input.dat"), 4_000 * MEGABYTE
SERIALISED = b"\xac\xed"  # how a part begins that Java serialised
MOST_PARTS, DEEPEST, MOST_ELEMENTS = 10_000, 64, 100_000
NUMBER = r"[0-9]{1,20}(?:\.[0-9]{0,20})?(?:[eE][-+]?[0-9]{1,2})?"  # as Java writes them, of a size that is a number's


@dataclass(frozen=True)
class Element:
    """An element of XML: its text and what is in it."""

    name: str
    text: list[str] = field(default_factory=list)
    inside: list[Element] = field(default_factory=list)

    def all(self, name: str) -> list[Element]:
        return [one for one in self.inside if one.name == name]

    def get(self, name: str) -> str | None:
        """The text of the first element of this name."""
        text = self.whole(name)
        return None if text is None else text.strip()

    def whole(self, name: str) -> str | None:
        """The same with the blanks around it."""
        return next(("".join(one.text) for one in self.all(name)), None)


@dataclass(frozen=True)
class Attribute:
    """A column as ARX defines it."""

    name: str
    type: str  # such as QUASI_IDENTIFYING_ATTRIBUTE
    datatype: str
    hierarchy: str | None  # a part of the project
    lowest: str
    highest: str
    others: tuple[str, ...]  # of the things that it says, those that nobody here knows


@dataclass(frozen=True)
class Project:
    """What a project says."""

    name: str
    delimiter: str
    attributes: tuple[Attribute, ...]
    config: Element
    table: str  # the part that holds it


DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OSError,
    ValueError,
)


class Archive:
    """An open project."""

    def __init__(self, packed: zipfile.ZipFile, where: str) -> None:
        self.packed, self.where = packed, where
        self.names = {info.filename for info in packed.infolist()}
        self._left = LARGEST[".csv"]  # of what hierarchies may be together, however often each is named

    def project(self) -> Project:
        """Read the parts that matter; a part that is missing is named."""
        top, definition = self.element("project.xml"), self.element("input/definition.xml")
        attributes = tuple(self._attribute(one) for one in definition.all("assigment"))  # ARX spells it so
        table = next((name for name in TABLE if name in self.names and not self._serialised(name)), None)
        if table is None or not attributes:
            what = "no table (data/input.csv)" if table is None else "no columns (input/definition.xml)"
            raise self.unreadable(f"holds {what}", "save the project with its data in ARX")
        delimiter = top.whole("separator") or ";"
        if len(delimiter) > 1:
            delimiter = delimiter.strip()  # of an XML that was indented
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise self.unreadable(f"separator {delimiter[:20]!r} is not one character", "save it as CSV with ; in ARX")
        return Project(top.get("name") or "project", delimiter, attributes, self.element("input/config.xml"), table)

    def _attribute(self, said: Element) -> Attribute:
        known = {"name", "type", "datatype", "ref", "min", "max", "format", "locale"}
        ref = said.get("ref")
        part = None if ref is None or f"input/{ref}" not in self.names else f"input/{ref}"
        others = tuple(one.name for one in said.inside if one.name not in known)
        levels = said.get("min") or "All", said.get("max") or "All"
        return Attribute(
            said.get("name") or "", said.get("type") or "", said.get("datatype") or "", part, *levels, others
        )

    def element(self, name: str) -> Element:
        """The root of an XML part."""
        try:
            return _parsed(self._content(name, LARGEST[".xml"]))
        except (expat.ExpatError, ValueError, LookupError) as error:  # of an encoding that nobody knows, too
            raise self.unreadable(f"part {name}: {error}", "save the project again in ARX") from None

    def hierarchy(self, name: str) -> bytes:
        """A hierarchy, unpacked; never a part that Java serialised."""
        if not name.endswith(".csv"):
            raise self.unreadable(f"hierarchy {name!r} is no part that ends in .csv", "save the project again in ARX")
        content = self._content(name, self._left)
        self._left -= len(content)
        return content

    def number(self, text: str, what: str) -> Fraction:
        """A number that a part says; what is none, not finite, or of a size that only memory notices is refused."""
        if not re.fullmatch(NUMBER, text):
            raise self.unreadable(f"{what} {text[:40]!r} is no number", "correct it in ARX and save the project again")
        return Fraction(text)

    def _content(self, name: str, largest: int) -> bytes:
        if name not in self.names:
            raise self.unreadable(f"holds no {name}", "check that it is a project that ARX saved")
        return b"".join(self.pieces(name, largest))

    def pieces(self, name: str, largest: int = LARGEST_TABLE) -> Iterator[bytes]:
        """A part, piece by piece until it is too large: what a project says of its own sizes is not relied on."""
        size = 0
        with self._opened(name) as part:
            while piece := part.read(min(STEP, largest + 1)):
                size += len(piece)
                if size > largest:
                    raise _unsafe(self.where, f"part {name} is more than {largest:,} bytes that it may be, unpacked")
                yield piece

    @contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        if self.packed.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self.unreadable(f"part {name} is not packed as ARX packs", "save the project again in ARX")
        try:
            with self.packed.open(name) as part:
                yield part
        except DAMAGED as error:
            raise self.unreadable(f"part {name}: {error}", "save the project again in ARX") from None

    def _serialised(self, name: str) -> bool:
        with self._opened(name) as part:
            return part.read(2) == SERIALISED

    def unreadable(self, message: str, remedy: str) -> InputError:
        return InputError(Fault("R911", self.where, message, remedy))


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """A project whose parts have names that stay inside of it."""
    where = f"project {path.name}"
    try:
        packed = zipfile.ZipFile(path)
    except DAMAGED as error:
        message = (error.strerror if isinstance(error, OSError) else None) or "is no ARX project"
        raise InputError(Fault("R911", where, message, "name a file that ARX saved (.deid)")) from None
    with packed:
        names = [info.filename for info in packed.infolist()]
        if len(names) > MOST_PARTS:
            raise _unsafe(where, f"has {len(names):,} parts")
        if len({*names}) < len(names):
            raise _unsafe(where, "has two parts of one name")
        for name in names:
            if name.startswith("/") or "\\" in name or ":" in name or ".." in PurePosixPath(name).parts:
                raise _unsafe(where, f"has a part that names a place outside of it: {name!r}")
        yield Archive(packed, where)


def _unsafe(where: str, message: str) -> InputError:
    return InputError(Fault("R912", where, message, "do not use it; ask whoever sent it for the table and hierarchies"))


def _parsed(content: bytes) -> Element:
    """XML without declarations of any kind: nothing is expanded, and nothing from elsewhere is read."""
    root = Element("")
    open_elements = [root]

    many = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal many
        many += 1 + len(attributes)
        if many > MOST_ELEMENTS:
            raise ValueError(f"more than {MOST_ELEMENTS:,} elements and attributes")
        if len(open_elements) > DEEPEST:
            raise ValueError(f"more than {DEEPEST} elements inside each other")
        element = Element(name)
        open_elements[-1].inside.append(element)
        open_elements.append(element)

    def refuse(*declared: object) -> None:
        raise ValueError("declares a document type, which projects of ARX do not; entities are not read")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: open_elements.pop()
    parser.CharacterDataHandler = lambda text: open_elements[-1].text.append(text)
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.Parse(content, True)
    return root.inside[0]
