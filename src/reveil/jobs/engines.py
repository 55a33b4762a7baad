"""Whether a job runs at once or in blocks: asked for, or because the files are larger than memory allows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from reveil.base.errors import Fault, InputError, stop_if
from reveil.base.sections import in_bytes
from reveil.engine.choice import ENGINES, free_memory, refusals
from reveil.jobs.release import Release
from reveil.policy.policy import Policy
from reveil.table.many import files_of
from reveil.table.parts import columns_in, needed, too_large

LEAST_ROWS, MOST_ROWS = 10_000, 1_000_000  # that are read at once
ROW_CELL = 400  # bytes that one cell of a block takes at most while it is read, encoded or judged


class InBlocks(NamedTuple):
    """What a job in blocks needs to know."""

    files: tuple[Path, ...]
    policy: Policy
    target: Path
    memory: int

    def run(self, **how: Any) -> Release:
        from reveil.jobs.in_blocks import Sizes, anonymize_in_blocks

        columns = max(4, columns_in(self.files[0]))
        rows = min(MOST_ROWS, max(LEAST_ROWS, self.memory // (4 * ROW_CELL * columns)))
        return anonymize_in_blocks(self.files, self.policy, self.target, Sizes(rows, memory=self.memory), **how)


def in_blocks(
    table: Any, policy: Policy, target: Path | None, engine: str, memory: int | str | None
) -> InBlocks | None:
    """How to make a release in blocks, or None where it is made at once."""
    if engine not in ("auto", *ENGINES):
        message, remedy = f"{engine!r} is no engine", f"use auto, {' or '.join(ENGINES)}"
        raise InputError(Fault("R874", "engine", message, remedy))
    stated = _stated(memory, policy)
    files = _files(table)
    if engine == "whole":
        message, remedy = "does nothing with engine whole", "leave it out, or leave the engine to be chosen"
        stop_if([] if memory is None else [Fault("R874", "memory", message, remedy)])
        return None
    if engine == "auto" and (files is None or needed(files) <= (stated or free_memory())):
        return None
    faults = refusals(policy)
    if engine == "auto" and stated is None and (faults or target is None):
        return None  # as before: perhaps it fits
    if files is None or target is None:
        what = "files: CSV, Parquet, a folder or a pattern of them" if files is None else "a folder to write to (out)"
        faults.append(Fault("R875", "engine blocks", f"needs {what}", "give it, or use engine whole"))
    stop_if(faults + too_large(files or (), stated or free_memory()))
    assert files is not None and target is not None
    return InBlocks(files, policy, target, stated or free_memory())


def beyond_memory(table: Any, policy: Policy) -> list[Fault]:
    """A series is published at once: a table that the policy's memory does not allow is refused before any work."""
    files = None if policy.engine.memory is None else _files(table)
    if files is None or policy.engine.memory is None or needed(files) <= policy.engine.memory:
        return []
    message = "does not come apart yet, and the table is larger than engine.memory allows"
    return [Fault("R870", "a series", message, "allow more memory, or leave engine.memory out of the policy")]


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
