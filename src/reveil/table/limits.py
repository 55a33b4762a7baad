"""Limits of size: a small file that unpacks to any size, a header without end and a cell of a whole book are refused.

They are stated under `[input]` and may be raised there.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl

from reveil.base.errors import Fault
from reveil.base.words import some
from reveil.table.numbers import first_rows
from reveil.table.options import ReadOptions, refusal

MEGABYTE = 1_000_000
STEP = 16 * MEGABYTE  # of a compressed file, unpacked at a time


def check_size(unpacked: int, options: ReadOptions, where: str) -> None:
    """Refuse what would take more memory than is allowed."""
    if unpacked > options.max_megabytes * MEGABYTE:
        message = f"is more than {options.max_megabytes:,} MB, unpacked"
        raise refusal("R114", where, message, "check that it is the right file, or raise max_megabytes under [input]")


def unpacked(path: Path, options: ReadOptions, where: str) -> bytes:
    """The content of a gzip file, read step by step until it is too large."""
    parts, size = [], 0
    with gzip.open(path) as packed:
        while part := packed.read(STEP):
            size += len(part)
            check_size(size, options, where)
            parts.append(part)
    return b"".join(parts)


def check_width(columns: int, options: ReadOptions, where: str) -> None:
    """Refuse a header that is no header."""
    if columns > options.max_columns:
        message = f"has {columns:,} columns, and {options.max_columns:,} are read"
        raise refusal("R114", where, message, "check the delimiter and the header, or raise max_columns under [input]")


def limit_faults(frame: pl.DataFrame, options: ReadOptions, where: str) -> list[Fault]:
    """Columns and lengths of cells beyond what is allowed."""
    check_width(frame.width, options, where)
    faults = []
    for column in frame:
        if column.dtype != pl.String or (column.str.len_bytes().max() or 0) <= options.max_cell:  # type: ignore[operator]
            continue
        long = column.str.len_chars() > options.max_cell
        if long.any():
            cells = some(int(long.sum()), "cell has", "cells have")
            message = f"{cells} more than {options.max_cell:,} characters"
            remedy = "look for an open quotation mark there, or raise max_cell under [input]"
            rows = first_rows(long)
            faults.append(Fault("R114", f"column {column.name!r}", message, remedy, int(long.sum()), rows))
    return faults
