"""Kernels: functions over arrays that Numba compiles once per machine and keeps beside the sources.

Kernels take plain arrays and named tuples of arrays, release the interpreter lock, and have a twin in plain Python
(NUMBA_DISABLE_JIT=1) that the tests compare them with.

Numba, when it loads a compiled function, looks for the classes it was compiled for before it notices that a source has
changed. Where a new version has moved or renamed such a class that fails; so code of another version is thrown away
first.
"""

from __future__ import annotations

import gc
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import event

Function = TypeVar("Function", bound=Callable[..., Any])
COMPILE: Any = numba.njit  # whose type stubs do not know all options
PACKAGE = Path(__file__).parents[1]
STAMP = "compiled-for.txt"
MARKS = (b"base.kernels import", b"NamedTuple")  # of modules with kernels, or with what they take


def kernel(function: Function) -> Function:
    """Compile on first use, keep the result, and run without the interpreter lock."""
    forget_stale_code()
    return cast(Function, COMPILE(cache=True, nogil=True)(function))


def bare_kernel(function: Function) -> Function:
    """A kernel that allocates nothing, without Numba's reference counts.

    Two threads that count references to the same arrays slow each other down by half.
    """
    forget_stale_code()
    return cast(Function, COMPILE(cache=True, nogil=True, error_model="numpy", _nrt=False)(function))


def allocating_kernel(function: Function) -> Function:
    """What calls bare kernels and allocates memory for them."""
    forget_stale_code()
    return cast(Function, COMPILE(cache=True, nogil=True, error_model="numpy", _nrt=True)(function))


class NoCollecting(event.Listener):
    """While Numba compiles, Python's collector looks through its many objects again and again: a tenth of the time."""

    def __init__(self) -> None:
        self.collecting: list[bool] = []  # of each kernel that is being compiled, one within the other

    def on_start(self, event: event.Event) -> None:
        self.collecting.append(gc.isenabled())
        gc.disable()

    def on_end(self, event: event.Event) -> None:
        if self.collecting.pop():
            gc.enable()


event.register("numba:compile", NoCollecting())


@cache
def forget_stale_code(package: Path = PACKAGE) -> None:
    """Delete what was compiled for another set of modules with kernels.

    Reading all sources takes longer than a small command, so the stamp also says when they were written.
    """
    stamp = package / "__pycache__" / STAMP
    written = _digest(
        f"{path} {source.stat().st_mtime_ns} {source.stat().st_size}" for path, source in _sources(package)
    )
    with suppress(OSError):  # where we may not write, Numba keeps nothing beside the sources either
        known = stamp.read_text(encoding="ascii").split() if stamp.exists() else []
        if known[1:] == [written]:
            return
        wanted = _digest(_kernel_modules(package))
        if known[:1] != [wanted]:
            for path in package.rglob("__pycache__/*.nb?"):
                path.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(f"{wanted} {written}", encoding="ascii")


def _sources(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry.path, entry
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _sources(Path(entry.path))


def _kernel_modules(package: Path) -> Iterator[str]:
    """Modules that have kernels, or what kernels are compiled for, with the names of these classes."""
    for path in package.rglob("*.py"):
        text = path.read_bytes()
        if any(mark in text for mark in MARKS):
            classes = b" ".join(re.findall(rb"^class (\w+)\(NamedTuple\)", text, re.MULTILINE)).decode()
            yield f"{path.relative_to(package).as_posix()} {classes}"


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
