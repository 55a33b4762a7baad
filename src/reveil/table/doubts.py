"""Rows and columns that are no people: sums at the end, the header once more, a row index.

Only a few rows are looked at closely, so that this costs next to nothing: the last three, and those whose identifier is
blank or a word for a sum. A sum is told by
- the identifier, which is such a word; or
- another cell that is such a word, in a row whose identifier is blank or whose numbers are the sums of their columns
  (without any identifier in the policy: in one of the last rows, if the word occurs nowhere else in its column); or
- texts that are all blank beside numbers that are the sums of their columns.
"""

from __future__ import annotations

from collections.abc import Iterable

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
SHOWN = 4


def doubtful_rows(frame: pl.DataFrame, policy: Publication, accept: Iterable[str]) -> list[Fault]:
    """What is probably no person, of a table as it was read; without what is accepted.

    >>> from reveil.policy.policy import load_policy
    >>> policy = load_policy({"columns": {"name": "identifier", "age": "quasi"}, "guarantee": {"k": 2}})
    >>> table = pl.DataFrame({"name": ["Ann", "Bob", "Summe"], "age": [30, 31, 61]})
    >>> [fault.places for fault in doubtful_rows(table, policy, ())]
    [(3,)]
    """
    noticed = {"repeated-header": _headers(frame), "total-rows": _sums(frame, policy.identifier)}
    faults = [fault for name, fault in noticed.items() if fault is not None and name not in accept]
    index = _index(frame, policy)
    return faults if index is None or "row-index" in accept else [*faults, index]


def no_people(frame: pl.DataFrame, accept: Iterable[str]) -> list[Fault]:
    """Rows that are probably nobody, of a table that has no policy yet; without what is accepted."""
    noticed = {"repeated-header": _headers(frame), "total-rows": _sums(frame, None)}
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


def _headers(frame: pl.DataFrame) -> Fault | None:
    """Rows that say the names of their columns."""
    if not frame.width or any(kind != pl.String for kind in frame.dtypes):
        return None
    again = frame.to_series(0) == frame.columns[0]
    for name in frame.columns[1:]:
        if not again.any():
            return None
        again = again & (frame[name] == name)
    if not again.any():
        return None
    places = again.arg_true() + 1
    message = f"{some(len(places), 'row repeats', 'rows repeat')} the names of the columns, as where files were joined"
    return doubt("repeated-header", "table", message, "remove them", len(places), tuple(places.head(SHOWN).to_list()))


def _sums(frame: pl.DataFrame, identifier: str | None) -> Fault | None:
    """Rows that are sums of the others."""
    if frame.height < LAST:
        return None
    who = frame[identifier] if identifier is not None and identifier in frame.columns else None
    rows = _suspects(frame, who)
    added = _Sums(frame, rows)
    sums = [row for row in rows if _is_sum(frame, who, row, rows, added)]
    if not sums:
        return None
    cells = dict.fromkeys(brief(cell) for row in sums for cell in frame.row(row) if _is_word(cell))
    said = f" ({', '.join(list(cells)[:SHOWN])})" if cells else ", by their numbers and blank cells"
    message = f"{some(len(sums), 'row looks', 'rows look')} like {agree(len(sums), 'a sum', 'sums')}{said}"
    remedy = "remove sums from the table: they are no people"
    return doubt("total-rows", "table", message, remedy, len(sums), tuple(row + 1 for row in sums[:SHOWN]))


def _is_word(cell: object) -> bool:
    return isinstance(cell, str) and cell.strip(" :*=-").casefold() in WORDS


def _suspects(frame: pl.DataFrame, who: pl.Series | None) -> list[int]:
    """The last rows, and those whose identifier is blank or says sum: few, or it is not sums that are wrong."""
    last = list(range(frame.height - LAST, frame.height))
    if who is None or who.dtype != pl.String:
        blank = [] if who is None or not who.null_count() else who.is_null().arg_true().to_list()
        return sorted({*blank, *last}) if _few(blank, frame) else last
    alike = who.str.contains(LIKE_WORDS)  # a first look, which spares most tables the second
    words = [name for name in who.filter(alike).unique() if _is_word(name)]
    places = (who.is_null() | who.is_in(words)).arg_true().to_list()
    return sorted({*places, *last}) if _few(places, frame) else last


def _few(rows: list[int], frame: pl.DataFrame) -> bool:
    return len(rows) <= LAST + frame.height // 10


def _is_sum(frame: pl.DataFrame, who: pl.Series | None, row: int, suspects: list[int], added: _Sums) -> bool:
    cells = dict(zip(frame.columns, frame.row(row), strict=True))
    if who is not None and _is_word(who[row]):
        return True
    words = [name for name, cell in cells.items() if _is_word(cell)]
    nobody = who is not None and _blank(who[row])
    if words and (nobody or added.all(row)):
        return True
    if words and who is None and row >= frame.height - LAST:
        return any(_only_there(frame[name], str(cells[name]), suspects) for name in words)
    named = [cell for name, cell in cells.items() if name not in added.columns]
    blank = all(_blank(cell) for cell in named) and (bool(named) or len(added.columns) > 1)
    enough = frame.height >= SEVERAL and (who is None or nobody)
    return enough and blank and added.all(row)


def _blank(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _only_there(column: pl.Series, word: str, suspects: list[int]) -> bool:
    return {*(column == word).arg_true().to_list()} <= {*suspects}


class _Sums:
    """Columns of numbers and what they add up to, worked out when a row asks for it."""

    def __init__(self, frame: pl.DataFrame, rows: list[int]) -> None:
        self.frame, self.rows = frame, rows
        self.columns = [name for name in frame.columns if self._numeric(frame[name])]
        self._known: dict[str, pl.Series] = {}

    def all(self, row: int) -> bool:
        """Whether every number of the row is the sum of those above it (sums above are not added again)."""
        told = [name for name in self.columns if not _blank(self.frame[name][row])]
        return bool(told) and all(self._is_sum(name, row) for name in told)

    def _numeric(self, column: pl.Series) -> bool:
        if column.dtype != pl.String:
            return column.dtype.is_numeric()
        known = column.head(100).drop_nulls()
        return len(known) > 0 and parse(known.str.replace(",", ".", literal=True), ".").real.is_not_null().all()

    def _is_sum(self, name: str, row: int) -> bool:
        if name not in self._known:
            written = texts(self.frame[name]).str.replace(",", ".", literal=True)
            self._known[name] = parse(written, ".").real
        values = self._known[name]
        this, above = values[row], values.head(row).sum()
        before = sum(values[other] or 0.0 for other in self.rows if other < row and self._listed(other))
        wanted = {float(above), float(above) - float(before)}
        return this is not None and any(total and abs(this - total) <= NEARLY * abs(total) for total in wanted)

    def _listed(self, row: int) -> bool:
        return any(_is_word(cell) or _blank(cell) for cell in self.frame.row(row))
