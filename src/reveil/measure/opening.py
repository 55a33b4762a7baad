"""What somebody was handed: a published table, or the folder of a release, in one table or in two (anatomy)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from reveil.base.errors import Fault, InputError, stop_if
from reveil.published.anatomy import COUNT, GROUP, QUASI, VALUES, pair
from reveil.table.read import read_table
from reveil.verify.verify import read_published


@dataclass(frozen=True, eq=False)
class Opened:
    """A published table. An anatomy has `values`: for each sensitive column, group, value and count."""

    table: pl.DataFrame
    counterfeits: pl.DataFrame | None = None
    values: Mapping[str, pl.DataFrame] | None = None


def open_published(source: Any) -> Opened:
    """Open a file, a frame, a release folder (or its public half, or the table in it), or a `Release`.

    >>> open_published(pl.DataFrame({"age": ["[20-29]"]})).table.height
    1
    """
    if hasattr(source, "certificate") and hasattr(source, "table"):  # a Release
        return Opened(source.table, source.counterfeits, source.values)
    if not isinstance(source, (str, Path)):
        return Opened(read_table(source))
    path = Path(source).parent if _in_release(Path(source)) else Path(source)
    if not path.is_dir():
        return Opened(read_table(source))
    public = path / "public" if (path / "public").is_dir() else path
    files = {file.stem: file for file in sorted(public.iterdir()) if file.suffix in (".csv", ".parquet")}
    if QUASI in files:
        return _anatomy(public, files)
    if "table" not in files:
        raise InputError(Fault("R603", f"folder {path}", "holds no published table", "name a release folder or a file"))
    fakes = files.get("counterfeits")
    return Opened(read_published(files["table"]), None if fakes is None else pl.read_csv(fakes))


def _in_release(file: Path) -> bool:
    """Whether a file is the table of people in a public folder, where its counterfeits or values lie beside it."""
    package = file.parent / "datapackage.json"
    if file.stem not in ("table", QUASI) or not (file.is_file() and package.is_file()):
        return False
    try:
        return file.name in {resource["path"] for resource in json.loads(package.read_bytes())["resources"]}
    except (ValueError, KeyError, TypeError):  # somebody else's file of that name
        return False


def _anatomy(public: Path, files: Mapping[str, Path]) -> Opened:
    """The two or more tables of an anatomy; what does not fit together is refused."""
    stated = [file for name, file in files.items() if name == VALUES or name.startswith(f"{VALUES}-")]
    if not stated:
        raise InputError(Fault("R603", f"folder {public}", f"has no {VALUES}", "name an anatomy release"))
    tables = [read_published(file) for file in (files[QUASI], *stated)]
    faults = [
        Fault("R603", f"table {file.name}", f"has no column {name!r}", "name an anatomy release")
        for file, table, names in zip(
            (files[QUASI], *stated), tables, [(GROUP,), *[(GROUP, COUNT)] * len(stated)], strict=True
        )
        for name in names
        if name not in table.columns
    ]
    stop_if(faults)
    try:
        quasi, *others = (
            table.cast({name: pl.Int64 for name in (GROUP, COUNT) if name in table.columns}) for table in tables
        )
        values = {next(name for name in table.columns if name not in (GROUP, COUNT)): table for table in others}
        pair(quasi, values)
    except (ValueError, StopIteration, pl.exceptions.PolarsError) as error:
        reason = str(error).partition("\n")[0] or "a table of values has no column of values"
        fault = Fault(
            "R603", f"folder {public}", f"its tables do not fit together: {reason}", "restore them from a backup"
        )
        raise InputError(fault) from None
    return Opened(quasi, None, values)
