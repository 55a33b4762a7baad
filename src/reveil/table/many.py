"""A table in many files: which they are, and that they are alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import Any

import polars as pl

from reveil.base.errors import Fault, InputError, stop_if
from reveil.table.suffixes import SUFFIXES


def files_of(source: Any) -> list[Path] | None:
    """The files of a folder or a pattern, by name; None where the source is anything else.

    >>> files_of("people.csv") is None
    True
    """
    if not isinstance(source, (str, Path)) or "://" in str(source):
        return None
    path = Path(source)
    if path.is_dir():
        found = [file for file in path.iterdir() if file.is_file() and not file.name.startswith((".", "_"))]
    elif has_magic(str(source)) and not path.exists():
        found = [Path(name) for name in glob(str(source)) if Path(name).is_file()]  # noqa: PTH207 any folder may be one
    else:
        return None
    files = sorted(file for file in found if file.suffix.lower() in SUFFIXES)
    if not files:
        message, remedy = "a folder or a pattern that holds no table", f"it needs files of {' '.join(SUFFIXES)}"
        raise InputError(Fault("R101", str(source), message, remedy))
    return files


def unlike(file: Path, first: Mapping[str, Any], other: Mapping[str, Any]) -> Fault:
    differ = [name for name in {**first, **other} if first.get(name) != other.get(name)]
    names = ", ".join(repr(name) for name in differ) or "their order"
    message = f"has other columns or types than the files before it: {names}"
    return Fault("R871", str(file), message, "give all files of a table the same columns, of the same types")


def joined(frames: Sequence[pl.DataFrame], files: Sequence[Path]) -> pl.DataFrame:
    """The rows of all files, one below the other."""
    first = frames[0].schema
    stop_if([unlike(file, first, f.schema) for f, file in zip(frames, files, strict=True) if f.schema != first])
    return pl.concat(frames)
