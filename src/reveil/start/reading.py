"""How a table that nobody has described is to be read: what its first look must settle before columns have roles.

What is settled becomes `[input]` of the policy, so that later releases are read in the same way; nothing is assumed in
silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from reveil.base.errors import InputError
from reveil.base.words import some
from reveil.table.blanks import BLANKS
from reveil.table.doubts import no_people
from reveil.table.numbers import plain
from reveil.table.options import ReadOptions
from reveil.table.read import read_table
from reveil.table.types import looked

MISSING: tuple[str, ...] = (
    "NA",
    "N/A",
    "n/a",
    "na",
    "n.a.",
    "NaN",
    "nan",
    "NULL",
    "null",
    "None",
    "#N/A",
    "k.A.",
    "k. A.",
    "kA",
    "k.a.",
)
MISSING += ("-", "--", "?", ".", "s.d.", "nd", "unbekannt", "unknown", "missing", "fehlt")
INDEX, TITLES, APART = "R132", "R115", "R116"  # refusals that say how the table is to be read


@dataclass(frozen=True, eq=False)
class FirstLook:
    """A table as it was read, how (keys of `[input]`), and what that means, in sentences."""

    frame: pl.DataFrame
    input: Mapping[str, Any]
    remarks: tuple[str, ...]


def first_look(source: Any, options: ReadOptions) -> FirstLook:
    """Read a table, settle how, and refuse rows that are nobody.

    >>> table = pl.DataFrame({"age": [" 31", " 40", " ?"], "ill": [" flu", " cold", " flu"]})
    >>> look = first_look(table, ReadOptions())
    >>> look.input, look.frame["age"].to_list()
    ({'strip': True, 'nulls': ['', '?']}, [31, 40, None])
    """
    remarks: list[str] = []
    given: dict[str, Any] = {"query": options.query} if options.query else {}
    given |= {} if options.header else {"header": False}
    raw, settled, said = _read(source, options)
    options, given, remarks = replace(options, **settled), {**given, **settled}, [*remarks, *said]
    if not options.header:
        remarks.append("Without names little can be told of the columns: name them in a first line, and begin again.")
    if options.header and _names_are_values(raw.columns):
        remarks.append("The names of the columns look like values. If there is no header line: --no-header.")
    if _padded(raw):
        options, given = replace(options, strip=True), {**given, "strip": True}
        raw = read_table(source, options)
        remarks.append("Texts have blanks around them, which are taken for no part of them (strip = true).")
    if nulls := _words_for_nothing(raw):
        options, given = replace(options, nulls=("", *nulls)), {**given, "nulls": ["", *nulls]}
        raw = read_table(source, options)
        remarks.append(f"Among numbers or dates, {', '.join(nulls)} is taken for missing, in every column (nulls).")
    faults = no_people(raw, options.accept)
    if faults:
        raise InputError(faults)
    return FirstLook(looked(raw), given, tuple(remarks))


def _read(source: Any, options: ReadOptions) -> tuple[pl.DataFrame, dict[str, Any], list[str]]:
    """The table, and what had to be settled to read it."""
    try:
        return read_table(source, options), {}, []
    except InputError as error:
        settled, said = _way_out(error)
        frame, more, others = _read(source, replace(options, **settled))
        return frame, {**settled, **more}, [said, *others]


def _way_out(error: InputError) -> tuple[dict[str, Any], str]:
    """A refusal that leaves one way to read the table; any other is raised."""
    fault, *others = error.faults
    if fault.code == INDEX and not others:
        said = "The first column has no name and numbers the rows: it is left out (row_index = true)."
        return {"row_index": True}, said
    if fault.code == APART:
        said = 'Cells are set apart by blanks, any number of them (delimiter = "blanks").'
        return {"delimiter": BLANKS}, said
    if fault.code == TITLES and fault.rows:
        lines = some(fault.rows, "line")
        return {"skip_lines": fault.rows}, f"Above the names of columns: {lines}, left out (skip_lines = {fault.rows})."
    raise error


def _names_are_values(names: Sequence[str]) -> bool:
    numbers = plain(pl.Series(list(names), dtype=pl.String))
    return len(names) > 1 and 2 * int(numbers.sum()) >= len(names)


def _padded(frame: pl.DataFrame) -> bool:
    """Whether nearly all cells of some column begin with a blank, as after `, ` in a file."""
    texts = [column.drop_nulls() for column in frame if column.dtype == pl.String]
    return any(len(column) > 1 and 10 * int(column.str.starts_with(" ").sum()) > 9 * len(column) for column in texts)


def _words_for_nothing(frame: pl.DataFrame) -> list[str]:
    """Words for missing values without which a column of texts is one of numbers or dates."""
    words: dict[str, None] = {}
    for column in frame:
        if column.dtype != pl.String:
            continue
        here = [word for word in column.drop_nulls().unique().to_list() if word in MISSING]
        rest = column.filter(~column.is_in(here)).drop_nulls()
        if here and len(rest) and looked(rest.to_frame()).dtypes[0] != pl.String:
            words |= dict.fromkeys(sorted(here))
    return list(words)
