"""Compiled code of an earlier version is thrown away before it can do harm.

Numba keeps compiled functions beside the sources and, when it loads them, looks for the classes they were compiled for.
Where a new version has moved such a class, that fails before Numba notices that the source has changed.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
STAMP = "compiled-for.txt"


@cache
def forget_stale_code(package: Path = PACKAGE) -> None:
    """Delete what was compiled for another version of this package, or for another set of modules with kernels."""
    modules = [
        path for path in package.rglob("*.py") if b"njit" in (text := path.read_bytes()) or b"NamedTuple" in text
    ]
    names = sorted(path.relative_to(package).as_posix() for path in modules)
    wanted = hashlib.sha256("\n".join([version("reveil"), *names]).encode()).hexdigest()
    stamp = package / "__pycache__" / STAMP
    with suppress(OSError):  # where we may not write, Numba keeps nothing beside the sources either
        if stamp.exists() and stamp.read_text(encoding="ascii") == wanted:
            return
        for path in package.rglob("__pycache__/*.nb?"):
            path.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(wanted, encoding="ascii")
