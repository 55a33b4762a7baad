"""Whoever amends the memory of a series is killed at every step: the old memory or the new one, and its key."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from test_publish_crash import CHILD, Place, Run, begun, settled  # noqa: F401 CHILD and fixtures are asked for by name

from reveil.history.recorded import history_of

BEFORE = ("sealed", "key beside", "in step")
FINISHED = ("stepped", "one replaced", "one dropped", "key taken", "key gone")  # by the next command
ERASING = ("sealed", "in step", "stepped", "one replaced", "removed")
ROTATING = ("sealed", "key beside", "in step", "stepped", "one replaced", "key taken", "removed")
ENDING = ("in step", "stepped", "one dropped", "key gone", "removed")


@pytest.fixture
def place(begun: Path, tmp_path: Path, start: Callable[[Path, str, list[str]], Run]) -> Place:  # noqa: F811
    place = Place(Path(shutil.copytree(begun, tmp_path / "series")), start)
    assert place.run("publish", place.table(2))[0] == 0
    return place


def killed(place: Place, step: str, *words: str) -> bool:
    """Whether the change was made, when everything is settled by the next command."""
    code, out, err = place.run(*words, how=step)
    assert code == -signal.SIGKILL, out + err
    done = step not in BEFORE
    code, out, err = place.run("history")
    assert code == 0, err
    assert ("A change of the memory" in err) == (
        step in ("stepped", "one replaced", "one dropped", "key taken", "key gone")
    )
    settled(place, 2)
    return done


@pytest.mark.parametrize("step", ERASING)
def test_killed_while_erasing(place: Place, step: str) -> None:
    done = killed(place, step, "erase", "p5", "--yes")
    assert history_of(place.series().ledger).erased.height == done
    code, _, err = place.run("publish", place.table(3))
    assert (code == 2, "R554" in err) == (done, done)
    if not done:
        assert place.run("erase", "p5", "--yes")[0] == 0
    assert "R554" in place.run("publish", place.table(3), "--accept", "same-table")[2]


@pytest.mark.parametrize("step", ROTATING)
def test_killed_while_the_key_is_changed(place: Place, step: str) -> None:
    before = (place.home / "key").read_bytes()
    done = killed(place, step, "rotate", place.table(1), place.table(2))
    assert ((place.home / "key").read_bytes() != before) == done
    assert place.run("publish", place.table(3))[0] == 0
    settled(place, 3)
    assert place.series().history().persons.height == 42  # p1 to p42: everybody was known again


@pytest.mark.parametrize("step", ENDING)
def test_killed_while_ending(place: Place, step: str) -> None:
    code, out, err = place.run("end", "--destroy-memory", "--yes", how=step)
    assert code == -signal.SIGKILL, out + err
    assert place.run("history")[0] == 0
    done = step not in BEFORE
    assert (place.home / "key").exists() != done
    assert bool(list(place.home.glob("releases/*/memory/*"))) != done
    assert place.series().ledger.check() == []
    assert list((place.home / "staging").iterdir()) == []
    assert ("R550" in place.run("publish", place.table(3))[2]) == done
