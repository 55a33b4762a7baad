"""k-map to the planner: how many people of the population a region must have that has rows."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from reveil.base.errors import Fault
from reveil.base.words import some
from reveil.guarantees.k_map import KMap
from reveil.plan.cutting.conditions.contract import LARGEST, Condition
from reveil.table.encode import Encoded


def people(asked: KMap | None) -> int:
    """How many; 0 where nothing is asked."""
    return 0 if asked is None or asked.k_map is None else min(LARGEST, asked.k_map)


def table_faults(asked: KMap, encoded: Encoded) -> Iterator[Fault]:
    if encoded.population is not None and len(encoded.population) < people(asked):
        message = f"the population has {some(len(encoded.population), 'person', 'people')}, fewer than {asked.k_map}"
        remedy = f"lower k_map to at most {len(encoded.population)}, or give a table of the whole population"
        yield Fault("R401", "guarantee.k_map", message, remedy, encoded.rows)


def strangers(asked: KMap | None, encoded: Encoded) -> list[Fault]:
    """Rows that are like nobody of the population: then it is not the one that they are drawn from."""
    if asked is None or encoded.population is None:
        return []
    kinds = pl.DataFrame(encoded.population).unique()
    unlike = pl.DataFrame(encoded.positions).join(kinds, on=kinds.columns, how="anti").height
    message = f"nobody in it has the quasi-identifiers of {some(unlike, 'row')} of the table"
    remedy = "use a population table that holds everybody in the release, with the same values"
    return [Fault("R408", "guarantee.population", message, remedy, unlike)] if unlike else []


CONDITION = Condition(table_faults=table_faults)
