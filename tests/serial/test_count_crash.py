"""A count is killed (SIGKILL) at every step: numbers that anyone can see are always paid for."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

from reveil.dp.count import count, spent

Start = Callable[[Path, str, list[str]], Callable[[], tuple[int, str, str]]]  # see conftest.py
CHILD = Path(__file__).with_name("count_child.py")
POLICY = """
[series]
name = "crash"
[columns]
who = "identifier"
sex = "quasi"
[input]
encoding = "utf-8"
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
BEGINNING = ("laid out", "key", "founded")  # of a home
AFTER = ("record", "rename", "mark", "reveal")


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A series that has spent 0.4 of 1."""
    folder = tmp_path_factory.mktemp("begun")
    (folder / "counts.toml").write_text(POLICY)
    pl.DataFrame({"who": ["a", "b", "c"], "sex": ["F", "M", "F"]}).write_csv(folder / "people.csv")
    count(folder / "people.csv", folder / "counts.toml", home=folder / "home")
    return folder


def run(start: Start, folder: Path, how: str) -> int:
    """Exit code of one `reveil count`; negative for the signal that ended it."""
    words = ["count", str(folder / "people.csv"), "-p", str(folder / "counts.toml"), "--home", str(folder / "home")]
    return start(folder, how, words)()[0]


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "home" / "releases").iterdir())


@pytest.mark.parametrize("step", [*BEFORE, *AFTER])
def test_no_number_is_seen_that_was_not_paid_for(step: str, begun: Path, start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "place"
    shutil.copytree(begun, folder)
    assert run(start, folder, step) == -signal.SIGKILL
    seen = len(visible(folder))
    found = spent(folder / "counts.toml", folder / "home")  # the next command settles what was left
    assert found.spent >= Fraction(2, 5) * seen
    assert found.spent == Fraction(2, 5) * (2 if step in AFTER else 1)
    assert len(visible(folder)) == len(found.releases)
    assert not list((folder / "home" / "staging").iterdir())
    # What is left of the budget can be spent, and no more than that.
    codes = [run(start, folder, "") for _ in range(2)]
    assert codes == ([2, 2] if step in AFTER else [0, 2])
    assert spent(folder / "counts.toml", folder / "home").spent == Fraction(4, 5)


@pytest.mark.parametrize("step", [*BEGINNING, *BEFORE, *AFTER])
def test_the_first_count_of_a_series_killed_locks_nothing(step: str, start: Start, begun: Path, tmp_path: Path) -> None:
    folder = tmp_path / "place"
    shutil.copytree(begun, folder, ignore=shutil.ignore_patterns("home"))
    assert run(start, folder, step) == -signal.SIGKILL
    paid = 1 if step in AFTER else 0
    assert spent(folder / "counts.toml", folder / "home").spent == Fraction(2, 5) * paid
    assert run(start, folder, "") == 0
    assert spent(folder / "counts.toml", folder / "home").spent == Fraction(2, 5) * (paid + 1)
