"""Who fits which published row: people's true quasi-identifiers against generalised cells, whoever wrote them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from reveil.base.arrays import I64, Bools
from reveil.base.text import plain_text
from reveil.hierarchies.tree import Hierarchy
from reveil.published.foreign import as_ours
from reveil.published.format import GROUP
from reveil.published.notation import as_written, parse_column
from reveil.table.numbers import plain

BLOCK = 1 << 26  # person-group pairs that are compared at once


@dataclass(frozen=True, eq=False)
class Notations:
    """How the cells of each quasi-identifier are to be read."""

    trees: Mapping[str, Hierarchy] = field(default_factory=dict)
    padded: Sequence[str] = ()  # codes of unequal length
    named: Sequence[str] = ()  # categories as Reveil writes them
    ours: bool = False  # Reveil wrote the table


def match(
    lines: pl.DataFrame, quasi: pl.DataFrame, labels: pl.Series, names: Sequence[str], how: Notations
) -> tuple[I64, I64]:
    """Pairs (line of the population, place of the group in `labels`) where all cells of the group cover the person."""
    place = quasi[GROUP].cast(pl.Enum(labels)).to_physical().cast(pl.Int64).to_numpy()
    covers: list[Bools] = []
    codes: list[I64] = []
    for name in names:
        distinct = lines[name].unique(maintain_order=True)
        covers.append(_covering(distinct, lines[name], quasi[name], name, how))
        number = {value: n for n, value in enumerate(distinct)}
        codes.append(np.array([number[value] for value in lines[name]], dtype=np.int64))
    matches: list[tuple[I64, I64]] = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))]
    for start, stop in _blocks(lines.height, quasi.height):
        inside = np.ones((stop - start, quasi.height), dtype=bool)
        for table, code in zip(covers, codes, strict=True):
            inside &= table[code[start:stop]]
        who, which = np.nonzero(inside)
        matches.append((who + start, place[which]))
    pairs = np.unique(np.stack([np.concatenate(part) for part in zip(*matches, strict=True)]), axis=1)
    return pairs[0], pairs[1]


def _covering(distinct: pl.Series, lines: pl.Series, published: pl.Series, name: str, how: Notations) -> Bools:
    """Of each value that people have and each published row, whether its cell covers the value."""
    tree, named = how.trees.get(name), name in how.named
    numeric = None if named else _numeric(lines, tree)
    values = {plain_text(value) for value in distinct if value is not None}
    if not how.ours and not named:
        published = as_ours(published, values, missing=bool(distinct.null_count()) or "" in values)
    cells, index = parse_column(published, tree, numeric, padded=name in how.padded, names=named)
    if not numeric and not lines.dtype.is_temporal():
        cells = as_written(cells, values)
    table = np.array([[cell.covers(value) for cell in cells] for value in distinct], dtype=bool)
    return table.reshape(len(distinct), len(cells))[:, index]


def _blocks(rows: int, width: int) -> Iterator[tuple[int, int]]:
    step = max(1, BLOCK // max(1, width))
    return ((start, min(rows, start + step)) for start in range(0, rows, step))


def _numeric(values: pl.Series, tree: Hierarchy | None) -> bool | None:
    if tree is not None:
        return None
    return True if values.dtype.is_numeric() or (values.dtype == pl.String and _all_numbers(values)) else None


def _all_numbers(values: pl.Series) -> bool:
    """Whether a file's texts are all numbers; they are compared as they are written."""
    known = values.drop_nulls().unique()
    return len(known) > 0 and bool(plain(known).all())
