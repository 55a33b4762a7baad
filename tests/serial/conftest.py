"""Command lines in processes of their own, for tests that kill, starve or race them (see publish_child.py)."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Run = Callable[
    [], tuple[int, str, str]
]  # waits for it: exit code (negative: the signal that killed it), stdout, stderr
Start = Callable[[Path, str, list[str]], Run]


@pytest.fixture(scope="module")
def start(request: pytest.FixtureRequest) -> Iterator[Start]:
    """Starts a command line in the way that the module's CHILD knows: its folder, how it goes, and its words."""
    with subprocess.Popen(
        [sys.executable, str(request.module.CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        tell, hear = server.stdin, server.stdout

        def ask(job: dict[str, object]) -> int:
            tell.write(json.dumps(job) + "\n")
            tell.flush()
            return int(hear.readline())

        def begin(folder: Path, how: str, words: list[str]) -> Run:
            out, err = (folder / f"{name}-{time.monotonic_ns()}" for name in ("out", "err"))
            process = ask({"how": how, "arguments": words, "out": str(out), "err": str(err)})
            return lambda: (ask({"wait": process}), out.read_text(), err.read_text())

        yield begin
        tell.close()
