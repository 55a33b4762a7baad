"""Projects of ARX (`.deid`): what their XML and CSV parts say. Parts that Java serialised (`.dat`) are never opened.

    project.xml                     the name, and the delimiter of all tables in it
    data/input.csv                  the table
    input/definition.xml            columns: type, data type, hierarchy, lowest and highest level
    input/config.xml                criteria, suppression limit, quality model, weights
    input/hierarchies/COLUMN.csv    hierarchies, leaf first

A project comes from somebody else: what is too large, names a place outside of it, or declares entities is refused.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO
from xml.parsers import expat

from reveil.base.errors import Fault, InputError
from reveil.table.limits import MEGABYTE, STEP

LARGEST = {".xml": 20 * MEGABYTE, ".csv": 200 * MEGABYTE}  # of a part, unpacked; the table itself may be larger
TABLE, LARGEST_TABLE = ("data/input.csv", "data/input.dat"), 4_000 * MEGABYTE
SERIALISED = b"\xac\xed"  # how a part begins that Java serialised
MOST_PARTS, DEEPEST = 10_000, 64


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
        return next(("".join(one.text).strip() for one in self.all(name)), None)


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


class Archive:
    """An open project."""

    def __init__(self, packed: zipfile.ZipFile, where: str) -> None:
        self.packed, self.where = packed, where
        self.names = {info.filename for info in packed.infolist()}

    def project(self) -> Project:
        """Read the parts that matter; a part that is missing is named."""
        top, definition = self.element("project.xml"), self.element("input/definition.xml")
        attributes = tuple(self._attribute(one) for one in definition.all("assigment"))  # ARX spells it so
        table = next((name for name in TABLE if name in self.names and not self._serialised(name)), None)
        if table is None or not attributes:
            what = "no table (data/input.csv)" if table is None else "no columns (input/definition.xml)"
            raise self._unreadable(f"holds {what}", "save the project with its data in ARX")
        delimiter = top.get("separator") or ";"
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
            return _parsed(self.content(name))
        except (expat.ExpatError, ValueError) as error:
            raise self._unreadable(f"part {name}: {error}", "save the project again in ARX") from None

    def content(self, name: str) -> bytes:
        """A part, unpacked; never one of those that Java serialised."""
        if name not in self.names:
            raise self._unreadable(f"holds no {name}", "check that it is a project that ARX saved")
        return b"".join(self.pieces(name, LARGEST[PurePosixPath(name).suffix]))

    def pieces(self, name: str, largest: int = LARGEST_TABLE) -> Iterator[bytes]:
        """A part, piece by piece until it is too large: what a project says of its own sizes is not relied on."""
        size = 0
        with self._opened(name) as part:
            while piece := part.read(min(STEP, largest + 1)):
                size += len(piece)
                if size > largest:
                    raise _unsafe(self.where, f"part {name} is more than {largest // MEGABYTE:,} MB, unpacked")
                yield piece

    @contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        try:
            with self.packed.open(name) as part:
                yield part
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
            raise self._unreadable(f"part {name}: {error}", "save the project again in ARX") from None

    def _serialised(self, name: str) -> bool:
        with self._opened(name) as part:
            return part.read(2) == SERIALISED

    def _unreadable(self, message: str, remedy: str) -> InputError:
        return InputError(Fault("R911", self.where, message, remedy))


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """A project whose parts have names that stay inside of it."""
    where = f"project {path.name}"
    try:
        packed = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
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

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(open_elements) > DEEPEST:
            raise ValueError(f"more than {DEEPEST} elements inside each other")
        element = Element(name)
        open_elements[-1].inside.append(element)
        open_elements.append(element)

    def refuse(*declared: object) -> None:
        raise ValueError("declares a document type, which projects of ARX do not; entities are not read")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: open_elements.pop()
    parser.CharacterDataHandler = lambda text: open_elements[-1].text.append(text)
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.Parse(content, True)
    return root.inside[0]
