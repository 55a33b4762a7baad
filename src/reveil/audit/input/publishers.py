"""Several publishers: each a folder of its tables in order, about people who may be with one, another or all of them.

A line of the population may say in a column `publisher` which of them it is about, and in `release` which of that
publisher's tables. Without the former nobody says who is with whom: a line then may be about any of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from reveil.audit.input.columns import RELEASE
from reveil.base.errors import Fault, brief, stop_if
from reveil.base.text import plain_text
from reveil.published.format import PACKAGE, is_table, public_half
from reveil.table.suffixes import SUFFIXES

PUBLISHER = "publisher"  # column of a population


@dataclass(frozen=True)
class Publisher:
    """A folder and the tables (files, or folders of releases) in it, by name."""

    name: str
    tables: tuple[Path, ...]


def publishers_of(releases: Any) -> tuple[Publisher, ...]:
    """The folders of publishers among what is to be attacked; none if only tables and releases are named."""
    listed = releases if isinstance(releases, list | tuple) else [releases]
    folders = [Path(one) for one in listed if isinstance(one, str | Path) and _holds_tables(Path(one))]
    if not folders:
        return ()
    faults = []
    if len(folders) < len(listed):
        message = f"{brief(str(folders[0]))} is a folder of tables, and other tables are named beside it"
        faults.append(Fault("R723", "released tables", message, "name folders only, one for each publisher"))
    names = _names(folders)
    found = tuple(Publisher(name, _tables(folder)) for name, folder in zip(names, folders, strict=True))
    faults += [
        Fault("R723", f"folder {one.name}", "holds no table", "put the publisher's tables there, named in order")
        for one in found
        if not one.tables
    ]
    stop_if(faults)
    return found


def _holds_tables(folder: Path) -> bool:
    """Whether a folder is that of a publisher, and not a release of ours or a pair of tables."""
    if not folder.is_dir() or public_half(folder) != folder or (folder / PACKAGE).exists():
        return False
    return not any(is_table(file.stem) for file in folder.iterdir() if file.is_file())


def _tables(folder: Path) -> tuple[Path, ...]:
    """The tables in a folder, and folders of two tables, in the order of their names: 2 before 10."""
    shown = [one for one in folder.iterdir() if not one.name.startswith(".")]
    tables = [one for one in shown if (one.is_dir() and any(one.iterdir())) or one.name.lower().endswith(SUFFIXES)]
    return tuple(sorted(tables, key=lambda one: _by_number(one.name)))


def _by_number(name: str) -> list[tuple[int, int, str]]:
    """A key by which numbers in names stand in their order.

    >>> sorted(["10.csv", "2.csv", "a.csv", "1b.csv"], key=_by_number)
    ['1b.csv', '2.csv', '10.csv', 'a.csv']
    """
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.findall(r"[0-9]+|[^0-9]+", name)]


def _names(folders: Sequence[Path]) -> list[str]:
    """What the folders are called; whole paths where two end alike."""
    short = [folder.resolve().name for folder in folders]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]


@dataclass(frozen=True, eq=False)
class Lines:
    """A population for some tables: its lines, and whether it says who is in which of them."""

    people: pl.DataFrame
    told: bool


def lines_of(people: pl.DataFrame, publishers: Sequence[Publisher]) -> Lines:
    """The population for the tables of these publishers, one after the other: each line by the number of its table."""
    at, parts = 0, []
    named, dated = PUBLISHER in people.columns, RELEASE in people.columns
    for one in publishers:
        mine = people.filter(pl.col(PUBLISHER).cast(pl.String) == one.name).drop(PUBLISHER) if named else people
        numbers = pl.int_range(len(one.tables), eager=True, dtype=pl.Int64).alias("\0table") + 1
        if dated:
            place = pl.col(RELEASE).map_elements(plain_text, return_dtype=pl.String).cast(pl.Int64, strict=False)
            mine = mine.with_columns(place.alias(RELEASE)).filter(pl.col(RELEASE).is_in(numbers.implode()))
        else:
            mine = mine.join(numbers.to_frame(), how="cross").rename({"\0table": RELEASE})
        parts.append(mine.with_columns(pl.col(RELEASE) + at))
        at += len(one.tables)
    return Lines(pl.concat(parts), named and dated)


def refuse_lines(people: pl.DataFrame, publishers: Sequence[Publisher]) -> None:
    """Lines of publishers or releases that are not there."""
    faults, most = [], max(len(one.tables) for one in publishers)
    if PUBLISHER in people.columns:
        names = [one.name for one in publishers]
        lost = people.filter(~pl.col(PUBLISHER).cast(pl.String).fill_null("").is_in(names))
        if lost.height:
            shown = ", ".join(brief("" if name is None else str(name)) for name in lost[PUBLISHER].unique().sort()[:3])
            message = f"its column publisher says {shown}, and the folders are called {', '.join(names)}"
            faults.append(Fault("R724", "population", message, "write the names of the folders", lost.height))
    if RELEASE in people.columns:
        texts = people[RELEASE].map_elements(plain_text, return_dtype=pl.String, skip_nulls=False)
        numbers = texts.cast(pl.Int64, strict=False)
        last = pl.Series([most] * people.height, dtype=pl.Int64)
        if PUBLISHER in people.columns:  # who is not there has been told above
            tables = {one.name: len(one.tables) for one in publishers}
            last = people[PUBLISHER].cast(pl.String).replace_strict(tables, default=most, return_dtype=pl.Int64)
        lost = people.filter(numbers.is_null() | (numbers < 1) | (numbers > last))
        if lost.height:
            message = f"its column release does not say which of a publisher's tables (1 to {most}) a line is about"
            faults.append(Fault("R724", "population", message, "number each publisher's tables from 1 on", lost.height))
    stop_if(faults)


def called(publishers: Sequence[Publisher]) -> tuple[str, ...]:
    """What the releases are called, in order."""
    return tuple(f"{one.name} {number}" for one in publishers for number in range(1, len(one.tables) + 1))
