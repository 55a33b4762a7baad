"""Spark: steps run where the rows are. The only module that knows PySpark; nothing here knows what the rows mean.

Rows travel as cells of many rows each, packed as integers, with the key that they have been brought together by. What a
step refuses is told to the driver under a mark that no cell can know, because Spark's own errors quote cells. Files are
made by executors and written by the driver, from the results of tasks that succeeded: what a lost or a second attempt
has made is in no result, and so in no release.
"""

from __future__ import annotations

import base64
import gc
import json
import os
import pickle
import re
import secrets
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache, reduce
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from py4j.protocol import Py4JError
from pyspark import SparkContext, StorageLevel, TaskContext, cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from reveil.base import errors
from reveil.base.errors import Fault, InputError, ReveilError
from reveil.base.threads import THREADS
from reveil.engine.blocks import by_key
from reveil.engine.verbs import Matrix, Small

warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)  # which is not used here

Piece = TypeVar("Piece")
Batches = Iterator[pa.RecordBatch]
Keyed = tuple[int, Matrix]

LOOSE = -1  # the key of rows that nothing has brought together
CELLS, FILES = "key int, cell binary", "key int, cell binary, about string"
LOOK = 0.2  # seconds between two looks at how far Spark is
FAN = 64  # results of partitions that the driver joins by itself
LARGEST = 1 << 18  # bytes of a cell: larger ones are a burden to a virtual machine of 1 GB
SAFE = {"spark.io.encryption.enabled": "true", "spark.ui.enabled": "false"}  # of sessions on this machine alone
SECRET = secrets.token_hex(16)  # of this process; executors have it from the task that they are sent
MARK = re.compile(f"reveil-refusal-{SECRET}:([A-Za-z0-9+/=]+):")
REFUSALS = {n: kind for n, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, ReveilError)}


def session_on(master: str | None) -> SparkSession:
    """The session of this process, or a new one on the named master (or the one that Spark's own settings name)."""
    if master is None and (active := SparkSession.getActiveSession()) is not None:
        return active
    builder = SparkSession.builder.appName("reveil").config("spark.ui.showConsoleProgress", "false")
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            for name, value in SAFE.items():
                builder = builder.config(name, value)
    return asked(builder.getOrCreate)


def unprotected(session: SparkSession) -> bool:
    """Whether rows lie on disks, or go over the network, as anybody there can read them."""
    on_disk = session.conf.get("spark.io.encryption.enabled", "false") == "true"
    local = re.match(r"local(\[|$)", session.conf.get("spark.master", "") or "") is not None
    sent = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")
    return not (on_disk and (local or any(session.conf.get(name, "false") == "true" for name in sent)))


def asked(job: Callable[[], Small]) -> Small:
    """What Spark comes to; what a step has refused is raised here as it was there."""
    try:
        return job()
    except (PySparkException, Py4JError, RuntimeError) as error:
        if (refused := MARK.search(str(error))) is not None:
            raise refusal_in(refused[1]) from None
        lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("\tat ")]
        reason = next((line for line in lines if "Error" in line or "Exception" in line), type(error).__name__)
        message = f"could not finish: {reason[:300]}. Nothing was published"
        raise InputError(Fault("R879", "Spark", message, "see Spark's own log, then make the release again")) from error


def refusal_told(error: ReveilError) -> str:
    """Its kind and its faults in letters: what comes back is read as text and never run.

    >>> refusal_in(refusal_told(InputError(Fault("R201", "column 'age'", "is odd", "correct it", 1, (7,)))))
    InputError("R201 column 'age': is odd (1 row: no. 7). Way out: correct it.")
    """
    told = [type(error).__name__, [fault.to_dict() for fault in error.faults]]
    return base64.b64encode(json.dumps(told, default=int).encode()).decode()


def refusal_in(told: str) -> ReveilError:
    kind, faults = json.loads(base64.b64decode(told))
    return REFUSALS.get(kind, ReveilError)(Fault(**{**one, "places": tuple(one["places"])}) for one in faults)


class Spark:
    """An engine on a session, until its rows are given up."""

    def __init__(self, session: SparkSession, rows: int) -> None:
        self.session, self.at_once = session, max(1, rows)
        self.watch: Callable[[float], None] = lambda done: None
        self._kept: list[DataFrame] = []

    def __enter__(self) -> Spark:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for frame in self._kept:
            frame.unpersist()

    def table(self, frame: DataFrame, read: Callable[[pl.DataFrame], pl.DataFrame]) -> PiecesOnSpark[pl.DataFrame]:
        """The rows of a frame, some at a time, as a reader makes them."""
        most = self.at_once
        return PiecesOnSpark(
            self, frame, lambda batches: (read(pl.DataFrame(some)) for some in gathered(batches, most))
        )

    def run(self, job: Callable[[], Small]) -> Small:
        """Have Spark do something, and say meanwhile how far it is; stopped, it stops."""
        context, group = self.session.sparkContext, f"reveil-{secrets.token_hex(8)}"

        def named() -> Small:
            context.setJobGroup(group, "Reveil", interruptOnCancel=True)
            return job()

        with ThreadPoolExecutor(1) as beside:
            working = beside.submit(named)
            try:
                while not wait([working], LOOK).done:
                    self.watch(share_done(context, group))
            except BaseException:
                context.cancelJobGroup(group)
                raise
            return asked(working.result)

    def kept(self, frame: DataFrame) -> DataFrame:
        self._kept.append(frame.persist(StorageLevel.DISK_ONLY))
        return self._kept[-1]

    def folded(
        self, frame: DataFrame, found: Callable[[Batches], Iterable[Small]], join: Callable[[Small, Small], Small]
    ) -> Small | None:
        """Joined within each partition, then partition by partition in order, by executors where they are many."""

        def of_partition(batches: Batches) -> Batches:
            each = list(found(batches))
            if each:
                yield packed([(TaskContext.get().partitionId(), pickle.dumps(reduce(join, each)))])  # type: ignore[union-attr]

        def of_group(batches: Batches) -> Batches:
            rows = sorted((key, cell) for batch in batches for key, cell in keyed(batch))
            for group, some in groupby(rows, key=lambda row: row[0] // fan):
                yield packed([(group, pickle.dumps(reduce(join, (pickle.loads(cell) for _, cell in some))))])

        fan, smalls = FAN, frame.mapInArrow(task(of_partition), CELLS).persist(StorageLevel.DISK_ONLY)
        try:
            if (many := self.run(smalls.count)) > fan:
                groups = smalls.repartitionById(-(-many // fan), (smalls.key / fan).cast("int"))
                rows = self.run(groups.mapInArrow(task(of_group), CELLS).collect)
            else:
                rows = self.run(smalls.collect)
        finally:
            smalls.unpersist()
        each = [pickle.loads(row["cell"]) for row in sorted(rows, key=lambda row: int(row["key"]))]
        return reduce(join, each) if each else None


class PiecesOnSpark(Generic[Piece]):
    """Pieces that executors open, from the rows of a frame."""

    def __init__(self, engine: Spark, frame: DataFrame, opened: Callable[[Batches], Iterator[Piece]]) -> None:
        self.engine, self.frame, self.opened = engine, frame, opened

    def fold(self, step: Callable[[Piece], Small], join: Callable[[Small, Small], Small]) -> Small | None:
        opened = self.opened
        return self.engine.folded(self.frame, lambda batches: map(step, opened(batches)), join)

    def rows(self, step: Callable[[Piece], Matrix]) -> RowsOnSpark:
        opened = self.opened
        made = task(lambda batches: cells((LOOSE, step(piece)) for piece in opened(batches)))
        return RowsOnSpark(self.engine, self.engine.kept(self.frame.mapInArrow(made, CELLS)))


class RowsOnSpark:
    """Rows in cells, and steps that are still to be done to each block of them."""

    def __init__(self, engine: Spark, frame: DataFrame, steps: tuple[Callable[[Matrix], Matrix], ...] = ()) -> None:
        self.engine, self.frame, self.steps = engine, frame, steps

    def fold(self, step: Callable[[Matrix], Small], join: Callable[[Small, Small], Small]) -> Small:
        steps = self.steps
        found = self.engine.folded(self.frame, lambda b: (step(block) for _, block in blocks(b, steps)), join)
        assert found is not None
        return found

    def each(self, step: Callable[[Matrix], Matrix]) -> RowsOnSpark:
        return RowsOnSpark(self.engine, self.frame, (*self.steps, step))

    def kept(self) -> RowsOnSpark:
        steps = self.steps
        made = self.frame.mapInArrow(task(lambda batches: cells(blocks(batches, steps))), CELLS)
        return RowsOnSpark(self.engine, self.engine.kept(made))

    def together(self, key: Callable[[Matrix], NDArray[np.int64]], parts: int) -> RowsOnSpark:
        steps, most = self.steps, self.engine.at_once

        def by_part(batches: Batches) -> Iterator[Keyed]:
            for block in joined((block for _, block in blocks(batches, steps)), most):
                yield from by_key(block, key(block), parts)

        sent = self.frame.mapInArrow(task(lambda batches: cells(by_part(batches))), CELLS)
        return RowsOnSpark(self.engine, sent.repartitionById(parts, "key"))

    def written(
        self, step: Callable[[Matrix, Path], dict[str, Any]], folder: Path
    ) -> tuple[list[dict[str, Any]], PiecesOnSpark[Path]]:
        steps = self.steps

        def files(batches: Batches) -> Batches:
            for key, block in blocks(batches, steps):
                with tempfile.TemporaryDirectory(prefix="reveil-") as scratch:
                    about = step(block, Path(scratch))
                    content = (Path(scratch) / about["path"]).read_bytes()
                yield pa.RecordBatch.from_pydict(
                    {"key": pa.array([key], pa.int32()), "cell": [content], "about": [json.dumps(about)]}
                )

        frame = self.engine.kept(self.frame.mapInArrow(task(files), FILES))
        self.engine.run(frame.count)  # all of them at the same time; what follows takes one after the other
        described = []
        for row in asked(lambda: frame.toLocalIterator()):
            described.append((int(row["key"]), json.loads(row["about"])))
            (folder / described[-1][1]["path"]).write_bytes(row["cell"])
        return [about for _, about in sorted(described, key=lambda one: one[0])], PiecesOnSpark(
            self.engine, frame, files_of
        )


def share_done(context: SparkContext, group: str) -> float:
    """Of the tasks of a group of jobs that Spark knows of so far."""
    tracker, done, of = context.statusTracker(), 0, 0
    for job in tracker.getJobIdsForGroup(group):
        for stage in getattr(tracker.getJobInfo(job), "stageIds", ()):
            if (info := tracker.getStageInfo(stage)) is not None:
                done, of = done + info.numCompletedTasks, of + info.numTasks
    return done / of if of else 0.0


def files_of(batches: Batches) -> Iterator[Path]:
    """Published files, each where a step can read it."""
    for batch in batches:
        for row in batch.to_pylist():
            with tempfile.TemporaryDirectory(prefix="reveil-") as scratch:
                path = Path(scratch) / json.loads(row["about"])["path"]
                path.write_bytes(row["cell"])
                yield path


def task(function: Callable[[Batches], Iterator[pa.RecordBatch]]) -> Callable[[Batches], Batches]:
    """What an executor is sent: pickled once, and unpickled once by each of its workers."""
    content, secret = cloudpickle.dumps(function), SECRET  # type: ignore[no-untyped-call]

    def run(batches: Batches) -> Batches:
        os.environ.setdefault(THREADS, "1")  # as many tasks as cores run beside each other
        try:
            yield from unpickled(content)(batches)
        except ReveilError as error:
            raise RuntimeError(f"reveil-refusal-{secret}:{refusal_told(error)}:") from None

    return run


@lru_cache(maxsize=4)
def unpickled(content: bytes) -> Callable[[Batches], Batches]:
    function: Callable[[Batches], Batches] = pickle.loads(content)
    gc.freeze()  # what is loaded stays: Spark has each worker look for garbage after every task
    return function


def gathered(batches: Batches, most: int) -> Iterator[pa.Table]:
    """Rows of a frame as they come, about so many at a time."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= most:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if any(one.num_rows for one in waiting):
        yield pa.Table.from_batches(waiting)


def joined(found: Iterable[Matrix], most: int) -> Iterator[Matrix]:
    waiting: list[Matrix] = []
    for block in found:
        waiting.append(block)
        if sum(map(len, waiting)) >= most:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


def cells(found: Iterable[Keyed]) -> Batches:
    """Blocks as cells of a bounded size; none of an empty block."""
    for key, rows in found:
        step = max(1, LARGEST // (4 * max(1, rows.shape[1])))
        for first in range(0, len(rows), step):
            yield packed([(key, to_cell(rows[first : first + step]))])


def to_cell(rows: Matrix) -> bytes:
    """How many rows and columns; which columns fit into 16 bits; these, and then the others, with 32.

    >>> from_cell(to_cell(np.array([[1, -70000, 3], [4, 5, -6]]))).tolist()
    [[1, -70000, 3], [4, 5, -6]]
    """
    narrow = (rows >= -(1 << 15)).all(axis=0) & (rows < 1 << 15).all(axis=0)
    shape = np.array(rows.shape, dtype=np.int32)
    both = rows[:, narrow].astype(np.int16), rows[:, ~narrow].astype(np.int32)
    return b"".join(part.tobytes() for part in (shape, narrow, *both))


def from_cell(cell: bytes) -> Matrix:
    number, width = np.frombuffer(cell, dtype=np.int32, count=2).tolist()
    narrow = np.frombuffer(cell, dtype=np.bool_, count=width, offset=8)
    few, first = int(narrow.sum()), 8 + width
    rows = np.empty((number, width), dtype=np.int32)
    rows[:, narrow] = np.frombuffer(cell, np.int16, number * few, first).reshape(number, few)
    if few < width:
        rows[:, ~narrow] = np.frombuffer(cell, np.int32, offset=first + 2 * number * few).reshape(number, -1)
    return rows


def packed(found: Iterable[tuple[int, bytes]]) -> pa.RecordBatch:
    keys, content = zip(*found, strict=True)
    return pa.RecordBatch.from_pydict({"key": pa.array(keys, pa.int32()), "cell": pa.array(content, pa.binary())})


def blocks(batches: Batches, steps: Iterable[Callable[[Matrix], Matrix]]) -> Iterator[Keyed]:
    """Each loose cell, and all cells of each key together, after these steps."""
    for key, block in unpacked(batches):
        for step in steps:
            block = step(block)
        if len(block):
            yield key, block


def keyed(batch: pa.RecordBatch) -> Iterator[tuple[int, bytes]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def unpacked(batches: Batches) -> Iterator[Keyed]:
    waiting: dict[int, list[Matrix]] = {}
    for batch in batches:
        for key, cell in keyed(batch):
            if key == LOOSE:
                yield key, from_cell(cell)
            else:
                waiting.setdefault(key, []).append(from_cell(cell))
    for key in sorted(waiting):
        yield key, np.concatenate(waiting.pop(key))
