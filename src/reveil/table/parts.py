"""A table that lies in many files, or in more rows than are read at once: its blocks, one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from reveil.base.errors import Fault, InputError, stop_if
from reveil.base.words import some
from reveil.policy.policy import Policy
from reveil.table.doubts import without_index
from reveil.table.many import unlike
from reveil.table.options import ReadOptions
from reveil.table.read import read_table
from reveil.table.roles import options
from reveil.table.suffixes import TEXT
from reveil.table.text_files import DELIMITERS
from reveil.table.text_parts import comes_apart, text_blocks

CELL = 87  # bytes that one cell costs when a whole table is published at once: 0.78 GB for a million rows of nine
TEXT_BYTE = 16  # the same for one byte of a workbook or a packed file: 50 bytes are a row of nine columns
LOOKED_AT = 1 << 16  # bytes of a text file that tell how many cells it has
ROW_BYTES = 64  # of a text file that are read for each row that may be in memory
INDEX = r"__index_level_\d+__"  # what pandas leaves in Parquet files


@dataclass(frozen=True)
class Parts:
    """The files of one table, and how they are read: so many rows at a time of Parquet and texts, other files whole."""

    files: tuple[Path, ...]
    policy: Policy
    rows: int
    accept: tuple[str, ...] = ()

    @property
    def declared(self) -> bool:
        """Whether the files say of their texts that they are texts."""
        return all(_columnar(file) for file in self.files)

    @property
    def origin(self) -> str:
        """What the table came from, for whoever keeps it."""
        return self.files[0].name if len(self.files) == 1 else f"{some(len(self.files), 'file')}"

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """Blocks as they are read, without an accepted index; every block has the columns and types of the first."""
        schema: pl.Schema | None = None
        index: list[str] = []
        for file in self.files:
            for raw, how in self._blocks(file):
                block = read_table(raw, how)
                if schema is None:  # only the first rows tell that a column numbers them
                    kept = without_index(block, self.policy, self.accept).columns
                    index = [name for name in block.columns if name not in kept]
                block = block.drop(index, strict=False)
                stop_if([] if schema is None or block.schema == schema else [unlike(file, schema, block.schema)])
                schema = block.schema
                yield block

    def _blocks(self, file: Path) -> Iterator[tuple[Any, ReadOptions]]:
        how = options(self.policy, self.accept)
        if comes_apart(file, how):
            plain = replace(how, delimiter=None, encoding=None, multiline=False, header=True)  # done with
            yield from ((frame, plain) for frame in text_blocks(file, how, ROW_BYTES * self.rows))
            return
        if not _columnar(file):
            yield file, how
            return
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(file) as stored:
                columns = [name for name in stored.schema_arrow.names if not re.fullmatch(INDEX, name)]
                for batch in stored.iter_batches(self.rows, columns=columns):
                    yield pl.DataFrame(batch), how
        except (OSError, ValueError) as error:  # what PyArrow makes of a damaged file
            raise InputError(Fault("R113", str(file), f"damaged, or not Parquet: {error}", "write it again")) from None


def _columnar(file: Path) -> bool:
    return file.suffix.lower() == ".parquet"


def needed(files: Sequence[Path]) -> int:
    """Bytes that publishing these files at once would take: by rows and columns of Parquet, by how a text begins."""
    import pyarrow.parquet as pq

    total = 0
    for file in files:
        if _columnar(file):
            about = pq.read_metadata(file)
            total += CELL * about.num_rows * about.num_columns
        elif file.suffix.lower() in TEXT:
            total += int(file.stat().st_size * (1 + CELL * _cells_per_byte(file)))
        else:
            total += TEXT_BYTE * file.stat().st_size
    return total


def _cells_per_byte(file: Path) -> float:
    """Cells of a text file, for each of its bytes, from the first of them."""
    with file.open("rb") as opened:
        first = opened.read(LOOKED_AT)
    marks = max(first.count(mark.encode()) for mark in DELIMITERS)
    return (marks + first.count(b"\n")) / max(1, len(first))


def columns_in(file: Path) -> int:
    """How many columns a Parquet file has; a guess for others."""
    import pyarrow.parquet as pq

    return int(pq.read_metadata(file).num_columns) if _columnar(file) else 16


def too_large(files: Sequence[Path], policy: Policy, memory: int) -> list[Fault]:
    """Files that can only be read whole, and are too large for that."""
    message = "is read whole, and that takes more memory than is allowed"
    remedy = "write it as Parquet or as CSV in UTF-8, or in several files; or allow more memory"
    apart = [_columnar(file) or comes_apart(file, options(policy)) for file in files]
    sizes = [TEXT_BYTE * file.stat().st_size for file in files]
    whole = [file for file, can, size in zip(files, apart, sizes, strict=True) if not can and size > memory]
    return [Fault("R872", str(file), message, remedy) for file in whole]
