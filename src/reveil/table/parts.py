"""A table that lies in many files, or in more rows than are read at once: its blocks, one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from reveil.base.errors import Fault, InputError, stop_if
from reveil.policy.policy import Policy
from reveil.table.doubts import doubtful_rows, without_index
from reveil.table.many import unlike
from reveil.table.read import read_table
from reveil.table.roles import options
from reveil.table.where import RowsWhere, Where

CELL = 87  # bytes that one cell costs when a whole table is published at once: 0.78 GB for a million rows of nine
TEXT_BYTE = 16  # the same for one byte of a text file, of nine columns in 50 bytes
INDEX = r"__index_level_\d+__"  # what pandas leaves in Parquet files


@dataclass(frozen=True)
class Parts:
    """The files of one table, and how they are read: so many rows at a time of Parquet, other files whole."""

    files: tuple[Path, ...]
    policy: Policy
    rows: int
    accept: tuple[str, ...] = ()
    where: Where | None = None  # only rows with these values

    @property
    def declared(self) -> bool:
        """Whether the files say of their texts that they are texts."""
        return all(_columnar(file) for file in self.files)

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """Blocks as they are read, without an accepted index; every block has the columns and types of the first."""
        schema: pl.Schema | None = None
        index: list[str] = []
        chosen = RowsWhere(self.where, self.policy)
        for file in self.files:
            for raw in self._blocks(file):
                block = read_table(raw, options(self.policy, self.accept))
                if schema is None:  # only the first rows tell that a column numbers them
                    kept = without_index(block, self.policy, self.accept).columns
                    index = [name for name in block.columns if name not in kept]
                block = block.drop(index, strict=False)
                stop_if([] if schema is None or block.schema == schema else [unlike(file, schema, block.schema)])
                schema = block.schema
                if (block := chosen.of(block)).height:
                    yield block
        if schema is not None:
            chosen.insist()

    def doubts(self, block: pl.DataFrame) -> list[Fault]:
        return doubtful_rows(block, self.policy, self.accept)

    def _blocks(self, file: Path) -> Iterator[Any]:
        if not _columnar(file):
            yield file
            return
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(file) as stored:
                columns = [name for name in stored.schema_arrow.names if not re.fullmatch(INDEX, name)]
                for batch in stored.iter_batches(self.rows, columns=columns):
                    yield pl.DataFrame(batch)
        except (OSError, ValueError) as error:  # what PyArrow makes of a damaged file
            raise InputError(Fault("R113", str(file), f"damaged, or not Parquet: {error}", "write it again")) from None


def _columnar(file: Path) -> bool:
    return file.suffix.lower() == ".parquet"


def needed(files: Sequence[Path]) -> int:
    """Bytes that publishing these files at once would take, from what Parquet says of itself and the size of others."""
    import pyarrow.parquet as pq

    total = 0
    for file in files:
        if _columnar(file):
            about = pq.read_metadata(file)
            total += CELL * about.num_rows * about.num_columns
        else:
            total += TEXT_BYTE * file.stat().st_size
    return total


def columns_in(file: Path) -> int:
    """How many columns a Parquet file has; a guess for others."""
    import pyarrow.parquet as pq

    return int(pq.read_metadata(file).num_columns) if _columnar(file) else 16


def too_large(files: Sequence[Path], memory: int) -> list[Fault]:
    """Files that can only be read whole, and are too large for that."""
    message = "is read whole, and that takes more memory than is allowed"
    remedy = "write it as Parquet, or in several files; or allow more memory"
    whole = [file for file in files if not _columnar(file) and TEXT_BYTE * file.stat().st_size > memory]
    return [Fault("R872", str(file), message, remedy) for file in whole]
