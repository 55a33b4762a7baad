"""What must be known of a whole table before any of its rows is encoded: told by each block, and added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from reveil.base.errors import stop_if
from reveil.policy.policy import Policy
from reveil.table.books import SeenValues, seen_in
from reveil.table.doubts import NO_ROWS
from reveil.table.doubts_in_parts import DoubtsInParts
from reveil.table.where import RowsWhere, Where


@dataclass(frozen=True, eq=False)
class TableFacts:
    """Different values, doubts about rows, and whether any row was asked for."""

    seen: SeenValues
    noticed: DoubtsInParts
    chosen: RowsWhere

    def __add__(self, later: TableFacts) -> TableFacts:
        return TableFacts(self.seen + later.seen, self.noticed + later.noticed, self.chosen + later.chosen)

    def insist(self) -> None:
        """Refuse a table of which no row was asked for, or with rows that are probably nobody."""
        self.chosen.insist()
        stop_if(self.noticed.faults(self.seen.values))


def facts_of(block: pl.DataFrame, policy: Policy, accept: Sequence[str], where: Where | None) -> TableFacts:
    chosen = RowsWhere(where, policy)
    block = chosen.of(block)
    return TableFacts(seen_in(block, policy), DoubtsInParts(policy, accept, block), chosen)


def refuse_empty(facts: TableFacts | None) -> TableFacts:
    if facts is None:
        stop_if([NO_ROWS])
    assert facts is not None
    return facts
