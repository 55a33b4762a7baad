"""Which sensitive value may become which: a public relation, from a file or the policy. A value may always stay."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from reveil.errors import Fault, InputError
from reveil.read import read_table

Relation = Mapping[str, frozenset[str]]  # value -> what it may become, itself included


def read_relation(source: str | Mapping[str, list[str]], folder: Path) -> Relation:
    """The relation of a policy's [values] section.

    >>> sorted(read_relation({"flu": ["pneumonia"]}, Path())["flu"])
    ['flu', 'pneumonia']
    """
    if isinstance(source, Mapping):
        return _closed_under_staying({value: set(others) for value, others in source.items()})
    frame = read_table(str(folder / source))
    missing = [name for name in ("from", "to") if name not in frame.columns]
    if missing:
        message = f"has no column {missing[0]!r}; its columns are {', '.join(frame.columns)}"
        raise InputError(Fault("R312", f"transitions {source}", message, "write a first line from;to;probability"))
    pairs = frame.select(pl.col("from", "to").cast(pl.String)).drop_nulls()
    return _closed_under_staying({a: set(b) for a, b in pairs.group_by("from").agg("to").iter_rows()})


def _closed_under_staying(relation: dict[str, set[str]]) -> Relation:
    values = set(relation) | {other for others in relation.values() for other in others}
    return {value: frozenset(relation.get(value, set()) | {value}) for value in values}
