"""One release on Spark: of a frame that the caller has, or of Parquet files that a session is asked to read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from reveil.base.addresses import masked
from reveil.base.errors import Fault, InputError
from reveil.base.progress import Progress
from reveil.base.words import some
from reveil.engine import spark
from reveil.jobs.in_parts import TablePieces, released
from reveil.jobs.release import ReleaseInFiles
from reveil.jobs.table_in_parts import Sizes
from reveil.policy.policy import Policy
from reveil.table.doubts import without_index
from reveil.table.parts import INDEX
from reveil.table.read import read_table
from reveil.table.roles import options
from reveil.table.where import Where

AT_ONCE = 250_000  # rows that one task of Spark looks at together
FIRST = 1_000  # rows that tell whether a column numbers them
OPEN = (
    "While this release was made, its rows lay as numbers on the disks of a Spark cluster, or crossed its network, "
    "without encryption."
)


def anonymize_on_spark(
    source: Any,
    policy: Policy,
    target: Path,
    *,
    master: str | None = None,
    seed: int | None,
    key: bytes,
    progress: Progress,
    accept: Sequence[str] = (),
    where: Where | None = None,
    sizes: Sizes = Sizes(AT_ONCE),  # noqa: B008 it is frozen
) -> ReleaseInFiles:
    """`source`: a frame of Spark, or files and addresses of Parquet."""
    given = not isinstance(source, tuple)
    session = source.sparkSession if given else spark.session_on(master)
    frame = source if given else spark.asked(lambda: session.read.parquet(*source))
    frame = frame.drop(*(name for name in frame.columns if re.fullmatch(INDEX, name)))
    how, index = options(policy, accept), list[str]()
    if "row-index" in accept:
        first = spark.asked(lambda: read_table(pl.DataFrame(frame.limit(FIRST).toArrow()), how))
        kept = without_index(first, policy, accept).columns
        index = [name for name in first.columns if name not in kept]

    def read(rows: pl.DataFrame) -> pl.DataFrame:
        return read_table(rows, how).drop(index)

    with spark.Spark(session, sizes.at_once) as engine:
        notes = (OPEN,) if spark.unprotected(session) else ()
        origin = "a frame of Spark" if given else _called(source)
        table = TablePieces(engine.table(frame, read), policy, origin, True, tuple(accept), where, notes)
        return released(table, engine, sizes, target, seed=seed, key=key, progress=progress)


def _called(sources: Sequence[str]) -> str:
    return masked(sources[0].rpartition("/")[2]) if len(sources) == 1 else some(len(sources), "file")


def parquet_of(table: Any, files: Sequence[Path] | None) -> tuple[str, ...]:
    """What a session is asked to read; anything but Parquet is refused."""
    if isinstance(table, str) and "://" in table:
        return (table,)
    if files is None or any(file.suffix.lower() != ".parquet" for file in files):
        message = "reads Parquet files, addresses that Spark knows (s3a://, hdfs://), and frames of Spark"
        remedy = "write the table as Parquet, or read it with Spark and give reveil.anonymize the frame"
        raise InputError(Fault("R875", "engine spark", message, remedy))
    return tuple(str(file.absolute()) for file in files)
