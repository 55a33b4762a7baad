"""Rows and columns that are no people, in a table that comes in blocks: the same questions, asked of all of it.

The last rows and those whose identifier is blank or says sum are kept until the end; what columns add up to is told
from their different values and how often each occurs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import nan

import polars as pl

from reveil.base.errors import Fault, stop_if
from reveil.policy.policy import Policy
from reveil.table.doubts import (
    LAST,
    LIKE_WORDS,
    LOOKED_AT,
    Suspects,
    few,
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
    """What is noticed block by block, and told after the last."""

    def __init__(self, policy: Policy, accept: Sequence[str]) -> None:
        self.policy, self.accept = policy, accept
        self.height, self.unnamed = 0, 0
        self.head: pl.DataFrame | None = None
        self.tail: dict[int, dict[str, object]] = {}
        self.named: dict[int, dict[str, object]] = {}
        self.words: dict[str, Counter[str]] = {}  # of columns that are not published

    def add(self, block: pl.DataFrame) -> None:
        """Look at the next block. Repeated headers and an index are refused at once."""
        again = None if "repeated-header" in self.accept else headers(block)
        index = index_doubts(block, self.policy, self.accept) if self.head is None else []
        stop_if([*([] if again is None else [again]), *index])
        if self.head is None or self.head.height < LOOKED_AT:
            self.head = block.head(LOOKED_AT) if self.head is None else pl.concat([self.head, block.head(LOOKED_AT)])
        if self.policy.identifier in block.columns:
            places = nobodies(block[self.policy.identifier])
            self.unnamed += len(places)
            self.named |= self._cells(block, places[: max(0, KEPT - len(self.named))])
        else:
            self._count_words(block)
        last = self.tail | self._cells(block, range(max(0, block.height - LAST), block.height))
        self.tail = dict(list(last.items())[-LAST:])
        self.height += block.height

    def _cells(self, block: pl.DataFrame, places: Sequence[int]) -> dict[int, dict[str, object]]:
        return {self.height + place: block.row(place, named=True) for place in places}

    def _count_words(self, block: pl.DataFrame) -> None:
        """Words for sums in columns whose values nobody else counts."""
        for name in self.policy.named("drop"):
            if name in block.columns and block.schema[name] == pl.String:
                alike = block[name].filter(block[name].str.contains(LIKE_WORDS))
                self.words.setdefault(name, Counter()).update(filter(is_word, alike))

    def sums(self, values: Mapping[str, pl.DataFrame]) -> list[Fault]:
        """Rows that are sums of the others; `values`: by published column its different values and their rows."""
        if self.head is None or self.height < LAST or "total-rows" in self.accept:
            return []
        rows = self.tail | (self.named if few(self.unnamed, self.height) else {})
        known = [name for name in self.head.columns if self._looked_at(name, values)]
        cells = {row: {name: rows[row][name] for name in known} for row in sorted(rows)}
        who = self.policy.identifier if self.policy.identifier in known else None
        fault = sums_fault(Suspects(self.height, cells, who, _Totals(self, cells, known, values)))
        return [] if fault is None else [fault]

    def _looked_at(self, name: str, values: Mapping[str, pl.DataFrame]) -> bool:
        """Numbers of columns that are not published are added up by nobody."""
        assert self.head is not None
        return name in values or name == self.policy.identifier or not is_numeric(self.head[name])


class _Totals:
    """What suspected rows are compared with, from the different values of each column."""

    def __init__(
        self,
        noticed: DoubtsInParts,
        rows: Mapping[int, Mapping[str, object]],
        known: Sequence[str],
        values: Mapping[str, pl.DataFrame],
    ) -> None:
        assert noticed.head is not None
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
