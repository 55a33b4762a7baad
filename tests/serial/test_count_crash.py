"""A count is killed (SIGKILL) at every step: numbers that anyone can see are always paid for."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

from reveil.dp.api import count, spent

CHILD = Path(__file__).with_name("count_child.py")
POLICY = """
[series]
name = "crash"
[columns]
who = "identifier"
sex = "quasi"
[dp]
epsilon = 1
[dp.bins]
sex = ["F", "M"]
[[dp.counts]]
name = "by-sex"
by = ["sex"]
spend = 0.4
"""
BEFORE = ("afford", "read", "stage", "noise", "emit", "check", "seal", "in transaction")
AFTER = ("record", "rename", "mark", "reveal")


@pytest.fixture(scope="module")
def server() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A series that has spent 0.4 of 1."""
    folder = tmp_path_factory.mktemp("begun")
    (folder / "counts.toml").write_text(POLICY)
    pl.DataFrame({"who": ["a", "b", "c"], "sex": ["F", "M", "F"]}).write_csv(folder / "people.csv")
    count(folder / "people.csv", folder / "counts.toml", home=folder / "home")
    return folder


def ask(server: subprocess.Popen[str], job: dict[str, object]) -> int:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(job) + "\n")
    server.stdin.flush()
    return int(server.stdout.readline())


def run(server: subprocess.Popen[str], folder: Path, how: str) -> int:
    """Exit code of one `reveil count`; negative for the signal that ended it."""
    words = ["count", str(folder / "people.csv"), "-p", str(folder / "counts.toml"), "--home", str(folder / "home")]
    out, err = (str(folder / f"{name}-{time.monotonic_ns()}") for name in ("out", "err"))
    process = ask(server, {"how": how, "arguments": words, "out": out, "err": err})
    return ask(server, {"wait": process})


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "home" / "releases").iterdir())


@pytest.mark.parametrize("step", [*BEFORE, *AFTER])
def test_no_number_is_seen_that_was_not_paid_for(
    step: str, begun: Path, server: subprocess.Popen[str], tmp_path: Path
) -> None:
    folder = tmp_path / "place"
    shutil.copytree(begun, folder)
    assert run(server, folder, step) == -signal.SIGKILL
    seen = len(visible(folder))
    found = spent(folder / "counts.toml", folder / "home")  # the next command settles what was left
    assert found.spent >= Fraction(2, 5) * seen
    assert found.spent == Fraction(2, 5) * (2 if step in AFTER else 1)
    assert len(visible(folder)) == len(found.releases)
    assert not list((folder / "home" / "staging").iterdir())
    # What is left of the budget can be spent, and no more than that.
    codes = [run(server, folder, "") for _ in range(2)]
    assert codes == ([2, 2] if step in AFTER else [0, 2])
    assert spent(folder / "counts.toml", folder / "home").spent == Fraction(4, 5)


def test_the_first_count_of_a_series_killed_is_no_series(
    server: subprocess.Popen[str], begun: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "place"
    shutil.copytree(begun, folder, ignore=shutil.ignore_patterns("home"))
    assert run(server, folder, "in transaction") == -signal.SIGKILL
    assert spent(folder / "counts.toml", folder / "home").spent == 0
    assert run(server, folder, "") == 0
    assert spent(folder / "counts.toml", folder / "home").spent == Fraction(2, 5)
