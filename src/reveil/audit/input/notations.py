"""How the cells of released tables are read, before anything is attacked: each kind of notation with an example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from reveil.audit.input.tables import OTHERS
from reveil.base.text import plain_text
from reveil.published.foreign import foreign_cell
from reveil.published.format import COUNT, GROUP
from reveil.published.notation import Cell, parse_cell
from reveil.published.reader import read_published


@dataclass(frozen=True)
class Notation:
    """One kind of notation in a column: how many different cells and rows have it, one of them, and what it means."""

    source: str
    column: str
    kind: str
    cells: int
    rows: int
    example: str
    meaning: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.source,
            "column": self.column,
            "kind": self.kind,
            "cells": self.cells,
            "rows": self.rows,
            "example": self.example,
            "meaning": self.meaning,
        }


def notations(releases: Sequence[Any]) -> list[Notation]:
    """What is read in each column of released tables, without a population.

    >>> table = pl.DataFrame({"age": ["[17, 20[", "*", "['30-39']"], "illness": ["flu", "flu", "cold"]})
    >>> [(n.column, n.kind, n.meaning) for n in notations([table])][:2]
    [('age', 'any value', 'any value'), ('age', 'interval', 'from 17 to below 20')]
    """
    return [
        one
        for number, source in enumerate(releases, 1)
        for one in _of_table(str(source) if isinstance(source, str) else f"table {number}", source)
    ]


def _of_table(name: str, source: Any) -> list[Notation]:
    published = read_published(source, None, OTHERS)
    found = []
    for column in published.table.columns:
        if column == GROUP or (column == COUNT and published.values is None):
            meaning = "the number of the group" if column == GROUP else "how many rows a line stands for"
            cells, example = published.table[column].n_unique(), plain_text(published.table[column][0])
            found.append(Notation(name, column, meaning, cells, published.table.height, example, meaning))
            continue
        found += _of_column(name, column, published.table[column])
    return found


def _of_column(name: str, column: str, cells: pl.Series) -> list[Notation]:
    texts = cells.map_elements(plain_text, return_dtype=pl.String, skip_nulls=False).fill_null("")
    counts = texts.value_counts(sort=True).rows()
    kinds: dict[str, list[tuple[str, int, Cell]]] = {}
    for text, rows in counts:
        cell = parse_cell(foreign_cell(text))
        kinds.setdefault(_kind(cell), []).append((text, rows, cell))
    return [
        Notation(name, column, kind, len(mine), sum(rows for _, rows, _ in mine), mine[0][0], meaning_of(mine[0][2]))
        for kind, mine in sorted(kinds.items())
    ]


def _kind(cell: Cell) -> str:
    if cell.prefix is not None:
        return "prefix"
    return {"any": "any value", "missing": "empty", "value": "single value"}.get(cell.kind, cell.kind)


def meaning_of(cell: Cell) -> str:
    """A cell in words.

    >>> meaning_of(parse_cell("476**")), meaning_of(parse_cell(">=40"))
    ('texts that begin with 476', 'from 40 on')
    """
    if cell.kind == "any":
        return "any value"
    if cell.kind == "missing":
        return "no value, or suppressed: any value, if nobody of the population lacks one"
    if cell.prefix is not None:
        return f"texts that begin with {cell.prefix}"
    if cell.kind == "interval":
        return _interval(cell)
    if cell.kind == "set":
        parts = [*sorted(map(plain_text, cell.values)), *(meaning_of(part) for part in cell.parts)]
        return f"one of {', '.join(parts)}"
    return f"{cell.text}, as it is"


def _interval(cell: Cell) -> str:
    low, high = (None if end is None else plain_text(end) for end in (cell.low, cell.high))
    if low is None:
        return f"up to {high}" if cell.high_closed else f"below {high}"
    start = f"from {low}" if cell.low_closed else f"above {low}"
    if high is None:
        return f"{start} on" if cell.low_closed else start
    return f"{start} to {high}" if cell.high_closed else f"{start} to below {high}"
