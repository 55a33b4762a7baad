"""Rows and columns that are no people: sums at the end, the header once more, a row index.

Only a few rows are looked at closely, so that this costs next to nothing: the last three, and those whose identifier is
blank or a word for a sum. A sum is told by
- the identifier, which is such a word; or
- another cell that is such a word, in a row whose identifier is blank or whose numbers are the sums of their columns
  (without any identifier in the policy: in one of the last rows, if the word occurs nowhere else in its column); or
- texts that are all blank beside numbers that are the sums of their columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from reveil.base.doubts import doubt
from reveil.base.errors import Fault, brief
from reveil.base.words import agree, some
from reveil.policy.policy import Publication
from reveil.table.cells import texts
from reveil.table.numbers import parse

WORDS = frozenset(
    (
        *("total", "totals", "grand total", "subtotal", "sub-total", "sum", "sum total", "overall", "all rows"),
        *("summe", "gesamt", "gesamtsumme", "insgesamt", "zwischensumme", "endsumme", "gesamtergebnis"),
        *("somme", "total général", "ensemble", "suma", "totale", "totaal", "σ", "∑"),
    )
)
LIKE_WORDS = r"(?i)^[ :*=-]*(tot|grand|sub|sum|som|over|all|ges|ins|zwi|end|ens|σ|∑)"
INDEX_NAMES = ("Unnamed: 0", "index", "level_0")
LAST = 3  # rows at the end that are looked at, and sums one below the other
NEARLY = 1e-9  # numbers of a file are added up in another order than here
SEVERAL = 4  # rows from which on all columns of numbers are hardly the sums of the others by chance
LOOKED_AT = 100  # cells that tell whether a column of texts is one of numbers
SHOWN = 4
NO_ROWS = Fault("R212", "table", "has no rows", "check that the right file was given", 0)


def doubtful_rows(frame: pl.DataFrame, policy: Publication, accept: Iterable[str]) -> list[Fault]:
    """What is probably no person, of a table as it was read; without what is accepted.

    >>> from reveil.policy.policy import load_policy
    >>> policy = load_policy({"columns": {"name": "identifier", "age": "quasi"}, "guarantee": {"k": 2}})
    >>> table = pl.DataFrame({"name": ["Ann", "Bob", "Summe"], "age": [30, 31, 61]})
    >>> [fault.places for fault in doubtful_rows(table, policy, ())]
    [(3,)]
    """
    noticed = {"repeated-header": header_fault(headers(frame)), "total-rows": _sums(frame, policy.identifier)}
    faults = [fault for name, fault in noticed.items() if fault is not None and name not in accept]
    return faults + index_doubts(frame, policy, accept)


def index_doubts(frame: pl.DataFrame, policy: Publication, accept: Iterable[str]) -> list[Fault]:
    """A first column that numbers the rows; nothing where that is accepted."""
    index = _index(frame, policy)
    return [] if index is None or "row-index" in accept else [index]


def no_people(frame: pl.DataFrame, accept: Iterable[str]) -> list[Fault]:
    """Rows that are probably nobody, of a table that has no policy yet; without what is accepted."""
    if frame.is_empty():
        return [NO_ROWS]
    noticed = {"repeated-header": header_fault(headers(frame)), "total-rows": _sums(frame, None)}
    return [fault for name, fault in noticed.items() if fault is not None and name not in accept]


def without_index(frame: pl.DataFrame, policy: Publication, accept: Iterable[str]) -> pl.DataFrame:
    """The table without a row index to which the policy gives no role, where that is accepted."""
    if "row-index" in accept and _index(frame, policy) is not None and frame.columns[0] not in policy.columns:
        return frame.drop(frame.columns[0])
    return frame


def counts_rows(column: pl.Series) -> bool:
    """Whether a column says 0, 1, 2 ... or 1, 2, 3 ... from the first row to the last."""
    if column.dtype == pl.String:
        if column.head(2).to_list() not in (["0", "1"], ["1", "2"]):
            return False
        column = column.cast(pl.Int64, strict=False)
    if not column.dtype.is_integer() or len(column) < 2 or column[0] not in (0, 1):
        return False
    first = int(column[0])
    return bool((column.cast(pl.Int64) == pl.int_range(first, first + len(column), eager=True)).all())


def index_fault(name: str) -> Fault:
    where = "the first column" if not name else f"column {name!r}"
    called = "has no name and numbers the rows" if not name else "numbers the rows"
    message = f"{called}, as pandas writes its index: a person would be known by their place in the table"
    remedy = 'write the table without it (index=False), or give it a name and the role "drop"'
    return doubt("row-index", where, message, remedy)


def _index(frame: pl.DataFrame, policy: Publication) -> Fault | None:
    name = frame.columns[0] if frame.width else ""
    dropped = name in policy.columns and policy.columns[name].role == "drop"
    return index_fault(name) if name in INDEX_NAMES and not dropped and counts_rows(frame[name]) else None


def headers(frame: pl.DataFrame) -> list[int]:
    """Rows that say the names of their columns, counted from 1."""
    if not frame.width or any(kind != pl.String for kind in frame.dtypes):
        return []
    again = frame.to_series(0) == frame.columns[0]
    for name in frame.columns[1:]:
        if not again.any():
            return []
        again = again & (frame[name] == name)
    return (again.arg_true() + 1).to_list()


def header_fault(places: Sequence[int]) -> Fault | None:
    if not places:
        return None
    message = f"{some(len(places), 'row repeats', 'rows repeat')} the names of the columns, as where files were joined"
    return doubt("repeated-header", "table", message, "remove them", len(places), tuple(places[:SHOWN]))


def _sums(frame: pl.DataFrame, identifier: str | None) -> Fault | None:
    """Rows that are sums of the others."""
    if frame.height < LAST:
        return None
    who = frame[identifier] if identifier is not None and identifier in frame.columns else None
    last, named = list(range(frame.height - LAST, frame.height)), [] if who is None else nobodies(who)
    rows = sorted({*named, *last}) if few(len(named), frame.height) else last
    columns = ColumnSums(frame, rows)
    cells = {row: dict(zip(frame.columns, frame.row(row), strict=True)) for row in rows}
    return sums_fault(Suspects(frame.height, cells, None if who is None else who.name, columns))


def sums_fault(suspects: Suspects) -> Fault | None:
    """Those of some suspected rows that are sums, as one fault."""
    sums = [row for row in suspects.rows if suspects.is_sum(row)]
    if not sums:
        return None
    cells = dict.fromkeys(brief(cell) for row in sums for cell in suspects.rows[row].values() if is_word(cell))
    said = f" ({', '.join(list(cells)[:SHOWN])})" if cells else ", by their numbers and blank cells"
    message = f"{some(len(sums), 'row looks', 'rows look')} like {agree(len(sums), 'a sum', 'sums')}{said}"
    remedy = "remove sums from the table: they are no people"
    return doubt("total-rows", "table", message, remedy, len(sums), tuple(row + 1 for row in sums[:SHOWN]))


def is_word(cell: object) -> bool:
    """Whether a cell says sum, in one of some languages."""
    return isinstance(cell, str) and cell.strip(" :*=-").casefold() in WORDS


def nobodies(who: pl.Series) -> list[int]:
    """Rows whose identifier is blank or says sum."""
    if who.dtype != pl.String:
        return who.is_null().arg_true().to_list() if who.null_count() else []
    alike = who.str.contains(LIKE_WORDS)  # a first look, which spares most tables the second
    words = [name for name in who.filter(alike).unique() if is_word(name)]
    return (who.is_null() | who.is_in(words)).arg_true().to_list()


def few(rows: int, height: int) -> bool:
    """Few enough to be sums: of more, it is not sums that are wrong."""
    return rows <= LAST + height // 10


class Around(Protocol):
    """What suspected rows are compared with."""

    @property
    def numeric(self) -> Sequence[str]:
        """Columns of numbers."""
        ...

    def above(self, name: str, row: int) -> float:
        """The sum of a column above a row; no number where it is not known."""
        ...

    def elsewhere(self, name: str, word: str) -> bool:
        """Whether a column has a word in a row that is not suspected."""
        ...


@dataclass(frozen=True, eq=False)
class Suspects:
    """Rows that may be sums: the last ones, and those whose identifier is blank or a word for a sum."""

    height: int  # of the table
    rows: Mapping[int, Mapping[str, object]]  # by place, rising: their cells
    who: str | None
    around: Around

    def is_sum(self, row: int) -> bool:
        cells = self.rows[row]
        if self.who is not None and is_word(cells[self.who]):
            return True
        words = [name for name, cell in cells.items() if is_word(cell)]
        nobody = self.who is not None and _blank(cells[self.who])
        if words and (nobody or self.adds_up(row)):
            return True
        if words and self.who is None and row >= self.height - LAST:
            return any(not self.around.elsewhere(name, str(cells[name])) for name in words)
        named = [cell for name, cell in cells.items() if name not in self.around.numeric]
        blank = all(_blank(cell) for cell in named) and (bool(named) or len(self.around.numeric) > 1)
        enough = self.height >= SEVERAL and (self.who is None or nobody)
        return enough and blank and self.adds_up(row)

    def adds_up(self, row: int) -> bool:
        """Whether every number of the row is the sum of those above it (sums above are not added again)."""
        told = [name for name in self.around.numeric if not _blank(self.rows[row][name])]
        return bool(told) and all(self._is_sum(name, row) for name in told)

    def _is_sum(self, name: str, row: int) -> bool:
        this, above = number(self.rows[row][name]), self.around.above(name, row)
        listed = [cells for other, cells in self.rows.items() if other < row and _listed(cells)]
        before = sum(number(cells[name]) or 0.0 for cells in listed)
        wanted = {above, above - before}
        return this is not None and any(total and abs(this - total) <= NEARLY * abs(total) for total in wanted)


def _blank(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _listed(cells: Mapping[str, object]) -> bool:
    return any(is_word(cell) or _blank(cell) for cell in cells.values())


def is_numeric(column: pl.Series) -> bool:
    """Whether a column is of numbers, by its type or the look of its first cells."""
    if column.dtype != pl.String:
        return column.dtype.is_numeric()
    known = column.head(LOOKED_AT).drop_nulls()
    return len(known) > 0 and bool(numbers_of(known).is_not_null().all())


def numbers_of(column: pl.Series) -> pl.Series:
    return parse(texts(column).str.replace(",", ".", literal=True), ".").real


def number(cell: object) -> float | None:
    """A cell as a number.

    >>> number("1,5"), number(3), number("x"), number(None)
    (1.5, 3.0, None, None)
    """
    found = None if cell is None else numbers_of(pl.Series([cell], strict=False))[0]
    return None if found is None else float(found)


class ColumnSums:
    """The columns of a table that is in memory; what they add up to is worked out when a row asks for it."""

    def __init__(self, frame: pl.DataFrame, suspects: Sequence[int]) -> None:
        self.frame, self.suspects = frame, {*suspects}
        self.numeric = [name for name in frame.columns if is_numeric(frame[name])]
        self._known: dict[str, pl.Series] = {}

    def above(self, name: str, row: int) -> float:
        if name not in self._known:
            self._known[name] = numbers_of(self.frame[name])
        return float(self._known[name].head(row).sum())

    def elsewhere(self, name: str, word: str) -> bool:
        return not {*(self.frame[name] == word).arg_true().to_list()} <= self.suspects
