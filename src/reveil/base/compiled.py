"""Compiled code of an earlier version is thrown away before it can do harm.

Numba keeps compiled functions beside the sources and, when it loads them, looks for the classes they were compiled for.
Where a new version has moved such a class, that fails before Numba notices that the source has changed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
STAMP = "compiled-for.txt"


@cache
def forget_stale_code(package: Path = PACKAGE) -> None:
    """Delete what was compiled for another version of this package, or for another set of modules with kernels.

    Reading all sources takes longer than a small command, so the stamp also says when they were written.
    """
    stamp = package / "__pycache__" / STAMP
    written = _digest(f"{path} {found.stat().st_mtime_ns} {found.stat().st_size}" for path, found in _sources(package))
    with suppress(OSError):  # where we may not write, Numba keeps nothing beside the sources either
        known = stamp.read_text(encoding="ascii").split() if stamp.exists() else []
        if known[1:] == [written]:
            return
        wanted = _kernels(package)
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


def _kernels(package: Path) -> str:
    """Version of the package and names of its modules that have kernels or what they are compiled for."""
    from importlib.metadata import version

    modules = [
        path for path in package.rglob("*.py") if b"njit" in (text := path.read_bytes()) or b"NamedTuple" in text
    ]
    return _digest([version("reveil"), *(path.relative_to(package).as_posix() for path in modules)])


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
