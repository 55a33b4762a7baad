"""Rows and columns that are no people, in a table that comes in blocks: the same questions, asked of all of it.

The last rows and those whose identifier is blank or says sum are kept until the end; what columns add up to is told
from their different values and how often each occurs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from math import nan

import polars as pl

from reveil.base.errors import Fault
from reveil.policy.policy import Policy
from reveil.table.doubts import (
    LAST,
    LIKE_WORDS,
    LOOKED_AT,
    Suspects,
    few,
    header_fault,
    headers,
    index_doubts,
    is_numeric,
    is_word,
    nobodies,
    number,
    numbers_of,
    sums_fault,
)

KEPT = 1000  # rows without a proper identifier that are kept to be looked at; without any they are refused as well


class DoubtsInParts:
    """What is noticed of a block; of all of them, when those of each are added in their order."""

    def __init__(self, policy: Policy, accept: Sequence[str], block: pl.DataFrame) -> None:
        self.policy, self.accept, self.height = policy, accept, block.height
        self.head = block.head(LOOKED_AT)
        self.headers = [] if "repeated-header" in accept else headers(block)
        self.index = index_doubts(block, policy, accept)  # only the first rows tell that a column numbers them
        who = block[policy.identifier] if policy.identifier in block.columns else None
        places = [] if who is None else nobodies(who)
        self.unnamed, self.named = len(places), _cells(block, places[:KEPT])
        self.tail = _cells(block, range(max(0, block.height - LAST), block.height))
        self.words = {} if who is not None else _words_of(block, policy)  # of columns that are not published

    def __add__(self, later: DoubtsInParts) -> DoubtsInParts:
        both, first = copy(self), self.height
        both.height = first + later.height
        both.head = pl.concat([self.head, later.head]).head(LOOKED_AT)
        both.headers = [*self.headers, *(first + place for place in later.headers)]
        both.unnamed = self.unnamed + later.unnamed
        both.named = dict([*self.named.items(), *_moved(later.named, first)][:KEPT])
        both.tail = dict([*self.tail.items(), *_moved(later.tail, first)][-LAST:])
        names = {**self.words, **later.words}
        both.words = {name: self.words.get(name, Counter()) + later.words.get(name, Counter()) for name in names}
        both.index = self.index if first else later.index
        return both

    def faults(self, values: Mapping[str, pl.DataFrame]) -> list[Fault]:
        """All that is doubted of the table; `values`: by published column its different values and their rows."""
        again = header_fault(self.headers)
        return [*([] if again is None else [again]), *self.sums(values), *self.index]

    def sums(self, values: Mapping[str, pl.DataFrame]) -> list[Fault]:
        """Rows that are sums of the others."""
        if self.height < LAST or "total-rows" in self.accept:
            return []
        rows = self.tail | (self.named if few(self.unnamed, self.height) else {})
        known = [name for name in self.head.columns if self._looked_at(name, values)]
        cells = {row: {name: rows[row][name] for name in known} for row in sorted(rows)}
        who = self.policy.identifier if self.policy.identifier in known else None
        fault = sums_fault(Suspects(self.height, cells, who, _Totals(self, cells, known, values)))
        return [] if fault is None else [fault]

    def _looked_at(self, name: str, values: Mapping[str, pl.DataFrame]) -> bool:
        """Numbers of columns that are not published are added up by nobody."""
        return name in values or name == self.policy.identifier or not is_numeric(self.head[name])


def _cells(block: pl.DataFrame, places: Sequence[int]) -> dict[int, dict[str, object]]:
    return {place: block.row(place, named=True) for place in places}


def _moved(rows: Mapping[int, dict[str, object]], by: int) -> list[tuple[int, dict[str, object]]]:
    return [(by + place, cells) for place, cells in rows.items()]


def _words_of(block: pl.DataFrame, policy: Policy) -> dict[str, Counter[str]]:
    """Words for sums in columns whose values nobody else counts."""
    found = {}
    for name in policy.named("drop"):
        if name in block.columns and block.schema[name] == pl.String:
            alike = block[name].filter(block[name].str.contains(LIKE_WORDS))
            found[name] = Counter(filter(is_word, alike))
    return found


class _Totals:
    """What suspected rows are compared with, from the different values of each column."""

    def __init__(
        self,
        noticed: DoubtsInParts,
        rows: Mapping[int, Mapping[str, object]],
        known: Sequence[str],
        values: Mapping[str, pl.DataFrame],
    ) -> None:
        self.noticed, self.rows, self.values = noticed, rows, values
        self.numeric = [name for name in known if is_numeric(noticed.head[name])]
        self._totals: dict[str, float] = {}

    def above(self, name: str, row: int) -> float:
        if name not in self.values or row not in self.noticed.tail:
            return nan
        if name not in self._totals:
            different, rows = self.values[name].get_columns()
            self._totals[name] = float((numbers_of(different) * rows).sum())
        below = sum(number(cells[name]) or 0.0 for other, cells in self.noticed.tail.items() if other >= row)
        return self._totals[name] - below

    def elsewhere(self, name: str, word: str) -> bool:
        here = sum(cells[name] == word for cells in self.rows.values())
        if name not in self.values:
            return self.noticed.words.get(name, Counter())[word] > here
        different, rows = self.values[name].get_columns()
        return int(rows.filter(different == word).sum()) > here if different.dtype == pl.String else False
