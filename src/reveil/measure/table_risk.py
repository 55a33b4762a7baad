"""The risk of a table before it is published: what `reveil risk` and `reveil.risk` tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from reveil.base.errors import Fault, InputError, stop_if
from reveil.measure.combinations import SAMPLED, CombinationRisk, combination_risk, share_of_population
from reveil.measure.population_risk import PopulationRisk, counted_risk, weighted_risk
from reveil.published.format import PACKAGE, PEOPLE, TABLE, public_half
from reveil.table.options import ReadOptions
from reveil.table.read import read_table


def risk(
    table: Any,
    keys: Sequence[str] | None = None,
    *,
    size: int = 3,
    sampled: object = None,
    weight: str | None = None,
    population: Any = None,
    delimiter: str | None = None,
) -> CombinationRisk:
    """Who stands out in a table, by every combination of up to `size` of its columns (or of `keys`).

    The table is a path or a frame. It is a sample where one of these is told: `sampled`, the share of the population
    that is in it; `weight`, a column of how many people each row stands for; `population`, a table of everybody. Then
    `population` of what comes back is the risk of each row among those people, by all keys together. DIS scores take a
    share of 0.01 where none is told. `delimiter` is that of text files; "blanks" are any number of blanks.

    >>> people = pl.DataFrame({"sex": ["f", "f", "f", "m"], "zip": [1, 1, 2, 2], "w": [10, 10, 20, 5]})
    >>> found = risk(people, ["sex", "zip"], weight="w")
    >>> found
    <CombinationRisk: 50.0 % of 4 rows are unique by sex, zip; 3 combinations>
    >>> found.population.people, round(found.population.expected, 2)
    (45.0, 0.73)
    """
    _refuse_releases(table)
    how = ReadOptions(delimiter=delimiter)
    frame = read_table(table, how)
    names = [name for name in frame.columns if name != weight] if keys is None else list(keys)
    stop_if(_faults(frame, names, weight, sampled is not None, population is not None))
    found = combination_risk(frame, names, size=size, sampled=SAMPLED if sampled is None else sampled)
    return replace(found, population=_population(frame, names, sampled, weight, population, how))


def _refuse_releases(table: Any) -> None:
    """Folders of releases hold tables, and counts beside them, which are no table of people together."""
    folder = Path(table) if isinstance(table, str | Path) and "://" not in str(table) else None
    if folder is None or not folder.is_dir() or not (public_half(folder) / PACKAGE).is_file():
        return
    tables = sorted(file.name for file in public_half(folder).iterdir() if file.stem in (TABLE, PEOPLE))
    remedy = f"name one of its tables ({', '.join(tables)}); `reveil link` and `reveil measure` read whole releases"
    raise InputError(Fault("R903", f"folder {folder}", "is a release, and this looks at a table before it", remedy))


def _population(
    frame: pl.DataFrame, names: Sequence[str], sampled: object, weight: str | None, population: Any, how: ReadOptions
) -> PopulationRisk | None:
    if population is not None:
        return counted_risk(frame.select(names), read_table(population, how))
    if weight is not None:
        return weighted_risk(frame.select(names), frame[weight])
    if sampled is not None:
        each = float(1 / share_of_population(sampled))
        return weighted_risk(frame.select(names), pl.Series("sampled", [each] * frame.height, dtype=pl.Float64))
    return None


def _faults(
    frame: pl.DataFrame, names: Sequence[str], weight: str | None, sampled: bool, population: bool
) -> list[Fault]:
    if weight is None and not (sampled and population):
        return []
    if (weight is not None) + sampled + population > 1:
        told = "sampled share, weight and population say the same thing twice"
        return [Fault("R903", "sample", told, "tell one of them")]
    if weight not in frame.columns:
        return [Fault("R903", f"column {weight!r}", "is not in the table", f"choose among {', '.join(frame.columns)}")]
    return [Fault("R903", f"column {weight!r}", "is both weight and key", "name other keys")] if weight in names else []
