"""Published columns become files: the table, the counterfeit counts, and a Frictionless data package. Nothing else.

The files carry no index, no order of the input, no writer metadata beyond the name of the format's library, and no
statistics of row groups.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from reveil.plan.contract import Plan
from reveil.policy import Publication
from reveil.recode import GROUP

TYPES = {pl.Int64: "integer", pl.Float64: "number", pl.Date: "date", pl.String: "string", pl.Int32: "integer"}


def emit(
    tables: Mapping[str, pl.DataFrame], counterfeits: pl.DataFrame | None, policy: Publication, folder: Path
) -> None:
    """Write the public half of a release into an existing folder: one table, or several (anatomy), by name."""
    resources = [
        _resource(write_table(table, folder / f"{name}.{policy.output.format}"), table, policy)
        for name, table in tables.items()
    ]
    if counterfeits is not None:
        path = folder / "counterfeits.csv"
        counterfeits.write_csv(path)
        resources.append(_resource(path, counterfeits, policy))
    package = {
        "profile": "tabular-data-package",
        "name": "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in policy.series.name.lower()),
        "resources": resources,
    }
    (folder / "datapackage.json").write_text(json.dumps(package, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def count_counterfeits(plan: Plan) -> pl.DataFrame:
    """How many rows of each group are invented; published, so that counts can be corrected."""
    counts = np.bincount(plan.counterfeit_groups, minlength=plan.count)
    return pl.DataFrame({GROUP: np.arange(plan.count), "count": counts.astype(np.int64)})


def write_table(table: pl.DataFrame, path: Path) -> Path:
    if path.suffix == ".csv":
        table.write_csv(path)
        return path
    import pyarrow.parquet as pq

    arrow = table.to_arrow(compat_level=pl.CompatLevel.oldest()).replace_schema_metadata(None)
    pq.write_table(arrow, path, compression="zstd", write_statistics=False, store_schema=False)
    return path


def _resource(path: Path, table: pl.DataFrame, policy: Publication) -> dict[str, Any]:
    content = path.read_bytes()
    csv = path.suffix == ".csv"
    return {
        "name": path.stem,
        "path": path.name,
        "format": path.suffix[1:],
        "mediatype": "text/csv" if csv else "application/vnd.apache.parquet",
        **({"encoding": "utf-8"} if csv else {}),
        "bytes": len(content),
        "hash": f"sha256:{hashlib.sha256(content).hexdigest()}",
        "schema": {
            "fields": [_field(column, policy) for column in table.iter_columns()],
            "missingValues": [""],
        },
    }


def _field(column: pl.Series, policy: Publication) -> dict[str, str]:
    spec = policy.columns.get(column.name)
    role = {} if spec is None else {"role": spec.role}
    return {"name": column.name, "type": TYPES.get(type(column.dtype), "string"), **role}
