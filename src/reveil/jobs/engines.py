"""Where a job runs: at once, in blocks, or on Spark. Asked for, or because of what the table is and how large."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple

import polars as pl

from reveil.base.errors import Fault, InputError, stop_if
from reveil.base.sections import in_bytes
from reveil.engine.choice import ENGINES, free_memory, refusals
from reveil.jobs.input import seed_faults
from reveil.jobs.release import Release
from reveil.policy.policy import Policy
from reveil.table.many import files_of
from reveil.table.parts import CELL, columns_in, needed, too_large

MASTER = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?|local-cluster\[\d+(, *\d+){2}\]|yarn|(spark|k8s)://.+")
LEAST_ROWS, MOST_ROWS = 10_000, 1_000_000  # that are read at once
ROW_CELL = 400  # bytes that one cell of a block takes at most while it is read, encoded or judged
PROGRAM = 500_000_000  # bytes that a job in blocks takes of any table: Python, its libraries, compiled code


class EngineAsked(NamedTuple):
    """What is said about where a job runs."""

    engine: str = "auto"
    memory: int | str | None = None
    master: str | None = None


class InBlocks(NamedTuple):
    """What a job in blocks needs to know."""

    files: tuple[Path, ...]
    policy: Policy
    target: Path
    memory: int

    def run(self, **how: Any) -> Release:
        from reveil.jobs.in_parts import anonymize_in_blocks
        from reveil.jobs.table_in_parts import Sizes

        stop_if(seed_faults(how["seed"]))
        columns = max(4, columns_in(self.files[0]))
        rows = min(MOST_ROWS, max(LEAST_ROWS, self.memory // (4 * ROW_CELL * columns)))
        return anonymize_in_blocks(self.files, self.policy, self.target, Sizes(rows, memory=self.memory), **how)


class OnSpark(NamedTuple):
    """What a job on Spark needs to know."""

    source: Any  # a frame of Spark, or a tuple of files and addresses
    policy: Policy
    target: Path
    master: str | None

    def run(self, **how: Any) -> Release:
        from reveil.jobs.on_spark import anonymize_on_spark

        stop_if(seed_faults(how["seed"]))
        return anonymize_on_spark(self.source, self.policy, self.target, master=self.master, **how)


def in_parts(table: Any, policy: Policy, target: Path | None, asked: EngineAsked) -> InBlocks | OnSpark | None:
    """How to make a release in parts, or None where it is made at once (within the memory that is stated)."""
    engine, stated = asked.engine, _stated(asked.memory, policy)
    if engine not in ("auto", *ENGINES):
        message, remedy = f"{engine!r} is no engine", f"use auto, {', '.join(ENGINES[:-1])} or {ENGINES[-1]}"
        raise InputError(Fault("R874", "engine", message, remedy))
    files = None if _is_spark(table) else _files(table)
    if engine == "spark" or (engine == "auto" and _is_spark(table)):
        return _on_spark(table, files, policy, target, asked.master, stated)
    if asked.master is not None:
        stop_if([Fault("R875", "master", f"means nothing to engine {engine}", "leave it out, or use engine spark")])
    stop_if(_collected(table, engine))
    if engine == "whole" or (engine == "auto" and files is None):
        stop_if(_beyond(table, stated, "R878"))
        return None
    if engine == "auto" and files is not None and needed(files) <= (stated or free_memory()):
        return None
    faults = refusals(policy)
    if engine == "auto" and stated is None and (faults or target is None):
        return None  # as before: perhaps it fits
    if files is None or target is None:
        what = "files: CSV, Parquet, a folder or a pattern of them" if files is None else "a folder to write to (out)"
        faults.append(Fault("R875", "engine blocks", f"needs {what}", "give it, or use engine whole"))
    if stated is not None and stated < PROGRAM:
        message = f"in blocks takes {_size(PROGRAM)} of any table, and {_size(stated)} is allowed"
        faults.append(Fault("R878", "this job", message, f"allow {_size(PROGRAM)} or more"))
    stop_if(faults + too_large(files or (), policy, stated or free_memory()))
    assert files is not None and target is not None
    return InBlocks(files, policy, target, stated or free_memory())


def _on_spark(
    table: Any,
    files: tuple[Path, ...] | None,
    policy: Policy,
    target: Path | None,
    master: str | None,
    memory: int | None,
) -> OnSpark:
    faults = refusals(policy)
    if find_spec("pyspark") is None:
        remedy = "pip install 'reveil[spark]', and a Java runtime (Debian: default-jre-headless)"
        faults.append(Fault("R875", "engine spark", "needs PySpark, which is not installed", remedy))
    elif not (_is_spark(table) or which("java") or "JAVA_HOME" in os.environ):
        remedy = "install one (Debian: default-jre-headless), or name it in JAVA_HOME"
        faults.append(Fault("R875", "engine spark", "needs a Java runtime, which is not found", remedy))
    if target is None:
        faults.append(Fault("R875", "engine spark", "needs a folder to write to (out)", "give it"))
    if memory is not None:
        message, remedy = "means nothing on Spark, whose own settings say what it may take", "leave it out"
        faults.append(Fault("R875", "memory", message, remedy))
    if master is not None and not MASTER.fullmatch(master):
        message, remedy = (
            f"{master!r} is nothing that Spark knows",
            "use local[4], spark://HOST:PORT, yarn or k8s://...",
        )
        faults.append(Fault("R875", "master", message, remedy))
    if master is not None and _is_spark(table):
        message, remedy = "means nothing to a frame, which belongs to a session already", "leave it out"
        faults.append(Fault("R875", "master", message, remedy))
    stop_if(faults)
    assert target is not None
    if _is_spark(table):
        return OnSpark(table, policy, target, None)
    from reveil.jobs.on_spark import parquet_of

    return OnSpark(parquet_of(table, files), policy, target, master)


def _is_spark(table: Any) -> bool:
    """Whether a table is a frame of Spark, told without it."""
    return type(table).__module__.startswith("pyspark.sql.") and type(table).__name__ == "DataFrame"


def _collected(table: Any, engine: str) -> list[Fault]:
    """A frame of Spark is never gathered in the memory of this machine without being asked for."""
    if not _is_spark(table):
        return []
    message = f"a frame of Spark would have to be gathered in this machine's memory for {engine}"
    return [Fault("R870", "table", message, "give a table that is here: frame.toArrow(), or Parquet files")]


def beyond_memory(table: Any, policy: Policy) -> list[Fault]:
    """A series is published at once: what the policy's memory does not allow is refused before any work."""
    return [*_collected(table, "a series"), *_beyond(table, policy.engine.memory, "R870")]


def _beyond(table: Any, memory: int | None, code: str) -> list[Fault]:
    """Why a table cannot be published at once within a stated memory."""
    if memory is None or _is_spark(table):
        return []
    taken = _taken(table)
    if taken is None:
        message = "holds for files and frames: what a query takes is not known before it is read"
        return [Fault("R875", "memory", message, "write the table to Parquet files, or state no memory")]
    message = f"at once takes about {_size(taken)}, and {_size(memory)} is allowed"
    where = "a series, which does not come apart yet:" if code == "R870" else "this table"
    remedy = "allow more memory, or state none" + ("" if code == "R870" else "; or give files, to be read in blocks")
    return [Fault(code, where, message, remedy)] if taken > memory else []


def _taken(table: Any) -> int | None:
    """Bytes that publishing a table at once takes; None where nobody knows before it is read."""
    if (files := _files(table)) is not None:
        return needed(files)
    if isinstance(table, (str, Path)):
        return None if "://" in str(table) else 0  # no file: refused where it is read
    if isinstance(table, pl.LazyFrame):
        return CELL * int(table.select(pl.len()).collect().item()) * len(table.collect_schema())
    shape = getattr(table, "shape", None)
    return CELL * int(shape[0]) * int(shape[1]) if isinstance(shape, tuple) and len(shape) == 2 else None


def _size(number: int) -> str:
    """
    >>> _size(4_000_000_000), _size(87_000)
    ('4 GB', '0.087 MB')
    """
    return f"{number / 1e9:.3g} GB" if number >= 1e8 else f"{number / 1e6:.3g} MB"


def _stated(memory: int | str | None, policy: Policy) -> int | None:
    if memory is None:
        return policy.engine.memory
    try:
        return max(1, in_bytes(memory))
    except ValueError as error:
        raise InputError(Fault("R874", "memory", f"{memory!r} is no size", str(error))) from None


def _files(table: Any) -> tuple[Path, ...] | None:
    """Files that can be read in blocks; text files one by one."""
    several = files_of(table)
    if several is None and isinstance(table, (str, Path)) and "://" not in str(table) and Path(table).is_file():
        several = [Path(table)]
    return None if several is None else tuple(several)
