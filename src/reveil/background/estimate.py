"""A prior counted in a table: the odds of a sensitive value by some attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl

from reveil.base.errors import Fault, stop_if
from reveil.table.cells import texts


@dataclass(frozen=True, eq=False)
class Estimate:
    """A prior counted in a table. `small` are the signatures with too few people to be trusted."""

    table: pl.DataFrame  # attribute columns, value, probability; written as it is, it is a prior file
    people: pl.DataFrame  # attribute columns, people
    small: pl.DataFrame
    smoothing: Fraction

    def write(self, path: Path) -> None:
        self.table.write_csv(path, separator=";")

    def to_dict(self) -> dict[str, Any]:
        counts = {"signatures": self.people.height, "values": self.table["value"].n_unique()}
        return {**counts, "smoothing": str(self.smoothing), "few people": self.small.to_dicts()}

    def __repr__(self) -> str:
        return (
            f"Estimate({self.people.height} signatures, {self.table['value'].n_unique()} values, "
            f"smoothing {self.smoothing}, {self.small.height} signatures with few people)"
        )


def estimate(
    table: pl.DataFrame,
    by: Sequence[str],
    column: str,
    *,
    smoothing: Fraction = Fraction(1),
    few: int = 30,
) -> Estimate:
    """Count the distribution of `column` by the attributes `by`; `age:10` means bands of ten.

    With n people of a signature, c of whom have the value, and the share q of the value in the whole table,
    the probability is (c + smoothing * q) / (n + smoothing). With smoothing above 0 no value of the table is
    impossible.

    >>> people = pl.DataFrame({"sex": ["M", "M", "F"], "age": [41, 47, 29], "disease": ["flu", "ache", "flu"]})
    >>> found = estimate(people, ["sex", "age:10"], "disease", smoothing=Fraction(3))
    >>> found.table.rows()[0], found.small.height
    (('F', '[20-29]', 'ache', '1/4'), 2)
    """
    cells = _banded(table, by, column, smoothing)
    names = [series.name for series in cells]
    values = _texts(table[column]).alias("value")
    counted = pl.DataFrame([*cells, values]).group_by([*names, "value"]).len()
    held = {tuple(row[:-1]): row[-1] for row in counted.iter_rows()}
    people = counted.group_by(names).agg(pl.col("len").sum().alias("people")).sort(names, nulls_last=False)
    overall = {value: Fraction(n, table.height) for value, n in values.value_counts().sort("value").iter_rows()}
    rows = []
    for *signature, total in people.iter_rows():
        for value, share in overall.items():
            chance = (held.get((*signature, value), 0) + smoothing * share) / (total + smoothing)
            rows.append((*signature, value, str(chance)))
    schema = dict.fromkeys([*names, "value", "probability"], pl.String)
    return Estimate(
        pl.DataFrame(rows, schema=schema, orient="row"),
        people,
        people.filter(pl.col("people") < few),
        smoothing,
    )


def _banded(table: pl.DataFrame, by: Sequence[str], column: str, smoothing: Fraction) -> list[pl.Series]:
    """The attribute cells of each row: values as they are published, or bands of numbers."""
    faults, cells = [], list[pl.Series]()
    names = [text.partition(":")[0] for text in by]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        message = f"{', '.join(map(repr, twice))} is named twice"
        faults.append(Fault("R437", "attributes", message, "name each attribute once"))
    if smoothing < 0:
        faults.append(Fault("R437", "smoothing", f"{smoothing} is below 0", "use 0 for none, 1 for a little"))
    for text in by:
        name, _, width = text.partition(":")
        if name not in table.columns:
            message = f"the table has no column {name!r}"
            faults.append(Fault("R437", "attributes", message, f"use some of {', '.join(table.columns)}"))
        elif width and not (width.isdigit() and int(width) and _whole(table[name]).dtype.is_integer()):
            message = f"{text!r}: a band is a whole number of years or the like, in a column of whole numbers"
            faults.append(Fault("R437", "attributes", message, f"write {name}:10, or {name} alone"))
        elif width:
            low = _whole(table[name]) // int(width) * int(width)
            labels = {v: None if v is None else f"[{v}-{v + int(width) - 1}]" for v in low.unique()}
            cells.append(low.replace_strict(labels, return_dtype=pl.String).fill_null(""))
        else:
            cells.append(_texts(table[name]))
    if column not in table.columns:
        faults.append(Fault("R437", "value", f"the table has no column {column!r}", "name its sensitive column"))
    stop_if(faults)
    return cells


def _whole(values: pl.Series) -> pl.Series:
    """Whole numbers, also where a file has them as texts."""
    numbers = values.cast(pl.Int64, strict=False) if values.dtype == pl.String else values
    return numbers if numbers.null_count() == values.null_count() else values


def _texts(values: pl.Series) -> pl.Series:
    """A column as the texts of a prior file; the missing value is empty."""
    return texts(values.dt.date() if values.dtype == pl.Datetime else values).fill_null("")
