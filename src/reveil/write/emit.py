"""Published columns become files: the tables, the counterfeit counts, and a Frictionless data package. Nothing else.

The files carry no index, no order of the input, no writer metadata beyond the name of the format's library, and no
statistics of row groups.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from reveil.base.files import write_json
from reveil.plan.plan import Plan
from reveil.policy.policy import Publication
from reveil.published.format import (
    APOSTROPHE,
    COUNT,
    COUNTERFEITS,
    DATE,
    ESCAPED,
    FORMULAS,
    GROUP,
    INTEGER,
    NUMBER,
    PACKAGE,
    PEOPLE,
    TEXT,
    TUPLES,
    is_value_table,
)
from reveil.published.imprint import RETRACTED, Imprint
from reveil.table.cells import texts
from reveil.write.recode import Recoded

FIGURE = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"  # spreadsheets see no formula in it
TYPES = {pl.Int64: INTEGER, pl.Float64: NUMBER, pl.Date: DATE, pl.String: TEXT, pl.Int32: INTEGER}


def emit(
    tables: Mapping[str, pl.DataFrame | Recoded], counterfeits: pl.DataFrame | None, policy: Publication, folder: Path
) -> None:
    """Write the public half of a release into an existing folder: one table, or people and values, by name."""
    resources = []
    keys = [name for name in tables if is_value_table(name) or name == TUPLES]
    for name, table in tables.items():
        resource = emit_table(name, table, policy, folder)
        if name == PEOPLE:
            resource["schema"]["foreignKeys"] = [_foreign_key(key) for key in keys]
        resources.append(resource)
    if counterfeits is not None:
        path = folder / f"{COUNTERFEITS}.csv"
        counterfeits.write_csv(path)
        resources.append(_resource(path, counterfeits, policy))
    emit_package(resources, policy, folder)


def emit_table(name: str, table: pl.DataFrame | Recoded, policy: Publication, folder: Path) -> dict[str, Any]:
    """Write one table and say what the data package states of it."""
    path = folder / f"{name}.{policy.output.format}"
    return _resource(path, write_table(table, path), policy)


def emit_package(resources: Sequence[Mapping[str, Any]], policy: Publication, folder: Path) -> None:
    package = {
        "profile": "tabular-data-package",
        "name": "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in policy.series.name.lower()),
        "resources": resources,
    }
    write_json(folder / PACKAGE, package)


def stamp(folder: Path, imprint: Imprint, retracted: Sequence[Mapping[str, Any]] = ()) -> None:
    """Let the data package of a series say which release it is, which one it follows, and which nobody should use."""
    package = json.loads((folder / PACKAGE).read_bytes())
    more = {RETRACTED: [dict(one) for one in retracted]} if retracted else {}
    write_json(folder / PACKAGE, {**package, **imprint.to_dict(), **more})


def count_counterfeits(plan: Plan) -> pl.DataFrame:
    """How many rows of each group belong to nobody who is shown; published, so that counts can be corrected."""
    counts = np.bincount(plan.counterfeit_groups, minlength=plan.count)
    if plan.stand_ins is not None:
        counts -= np.bincount(plan.stand_ins[plan.stand_ins >= 0], minlength=plan.count)
    return pl.DataFrame({GROUP: np.arange(plan.count), COUNT: counts.astype(np.int64)})


def write_table(table: pl.DataFrame | Recoded, path: Path) -> pl.DataFrame:
    """Write a table, in the format that the name of the file says; return it as it was written."""
    whole = table.table if isinstance(table, Recoded) else table
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        arrow = whole.to_arrow(compat_level=pl.CompatLevel.oldest()).replace_schema_metadata(None)
        pq.write_table(arrow, path, compression="zstd", write_statistics=False, store_schema=False)
    elif isinstance(table, Recoded) and whole.width > 1:  # an empty cell alone in its line would need quotes
        joined(table).write_csv(path, quote_style="never")
    else:
        shown = escaped_table(whole)
        shown.with_columns(texts(column) for column in shown if column.dtype.is_float()).write_csv(path)
    return whole


def escaped_table(table: pl.DataFrame) -> pl.DataFrame:
    """The texts of a table as CSV shows them: none that a spreadsheet takes for a formula."""
    texts = [name for name, kind in table.schema.items() if kind == pl.String]
    shown = table.with_columns(map(_escaped, texts))
    shown.columns = escaped_names(table.columns)
    return shown


def escaped_names(names: Sequence[str]) -> list[str]:
    return pl.Series("name", names, pl.String).to_frame().select(_escaped("name")).to_series().to_list()


def _escaped(name: str) -> pl.Expr:
    """Text cells of a column, with an apostrophe before those that a spreadsheet would compute."""
    text = pl.col(name)
    formula = text.str.contains(f"^'*[{FORMULAS}]") & ~text.str.contains(FIGURE)
    return pl.when(formula).then(pl.concat_str(pl.lit(APOSTROPHE), text)).otherwise(text).alias(name)


def joined(recoded: Recoded) -> pl.DataFrame:
    """A table of which each part is one column, quoted as it is to be written.

    Cells of a group are put together once, and not in each of its rows: that takes a third of the time.
    """
    return pl.DataFrame([_lines(part.cells).gather(part.index) for part in recoded.parts])


def _lines(cells: pl.DataFrame) -> pl.Series:
    """The lines of a CSV file without their ends, named like its first line."""
    name = ",".join(pl.DataFrame({"name": escaped_names(cells.columns)}).select(_quoted("name")).to_series())
    cells = cells.with_columns(_escaped(text) for text, kind in cells.schema.items() if kind == pl.String)
    if cells.width == 1 and cells.dtypes != [pl.String]:
        only = cells.to_series()
        return (texts(only) if only.dtype.is_float() else only).alias(name)  # Polars writes whole numbers and days
    cells = cells.with_columns(texts(column) for column in cells if column.dtype.is_float())
    return cells.select(pl.concat_str(map(_quoted, cells.columns), separator=",").alias(name)).to_series()


def _quoted(name: str) -> pl.Expr:
    """Text cells of CSV, in quotation marks where commas, line ends or marks in them would be misread."""
    text = pl.col(name).cast(pl.String)
    marked = pl.concat_str(pl.lit('"'), text.str.replace_all('"', '""', literal=True), pl.lit('"'))
    return pl.when(text.str.contains('[",\r\n]') | (text == "")).then(marked).otherwise(text).fill_null("")


def _resource(path: Path, table: pl.DataFrame, policy: Publication) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    csv = path.suffix == ".csv"
    return {
        "name": path.stem,
        "path": path.name,
        "format": path.suffix[1:],
        "mediatype": "text/csv" if csv else "application/vnd.apache.parquet",
        **({"encoding": "utf-8", ESCAPED: APOSTROPHE} if csv else {}),
        "bytes": path.stat().st_size,
        "hash": f"sha256:{digest}",
        "schema": {
            "fields": [_field(column, policy) for column in table.iter_columns()],
            "missingValues": [""],
        },
    }


def _foreign_key(resource: str) -> dict[str, Any]:
    """The group of a person is one of those that a table of values counts."""
    return {"fields": GROUP, "reference": {"resource": resource, "fields": GROUP}}


def _field(column: pl.Series, policy: Publication) -> dict[str, str]:
    spec = policy.columns.get(column.name)
    role = {} if spec is None else {"role": spec.role}
    return {"name": column.name, "type": TYPES.get(type(column.dtype), TEXT), **role}
