"""Whoever proposes, accepts or withdraws is killed at every step: the old state or the new one, and files to match."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import test_publish_crash as publishing
from test_publish_crash import CHILD, Place, Run, begun, settled  # noqa: F401 CHILD and fixtures are asked for by name

from reveil.ledger.proposals import ProposalState

PROPOSING = ("seal", "in step", "proposed", "let go")
ACCEPTING = ("claimed", "compared", "in transaction", "record", "rename", "mark", "reveal")
WITHDRAWING = ("in step", "stepped", "removed")


@pytest.fixture
def place(begun: Path, tmp_path: Path, start: Callable[[Path, str, list[str]], Run]) -> Place:  # noqa: F811
    return Place(Path(shutil.copytree(begun, tmp_path / "series")), start)


def waiting(place: Place) -> list[ProposalState]:
    return [state for _, state in place.series().ledger.approval.open()]


def staged(place: Place) -> set[str]:
    return {path.name.removesuffix(".lock") for path in (place.home / "staging").iterdir() if path.is_dir()}


@pytest.mark.parametrize("step", PROPOSING)
def test_killed_while_proposing(place: Place, step: str) -> None:
    code, out, err = place.run("propose", place.table(2), how=step)
    assert code == -signal.SIGKILL, out + err
    there = step in ("proposed", "let go")
    code, out, err = place.run("history")
    assert (code, ": 1 release." in out) == (0, True), err
    assert waiting(place) == [ProposalState.STAGED] * there
    assert len(staged(place)) == there
    if there:
        assert "R535" in place.run("publish", place.table(2))[2]  # it is somebody's word that is waited for
        assert place.run("accept")[0] == 0
    else:
        assert place.run("publish", place.table(2))[0] == 0
    settled(place, 2)


@pytest.mark.parametrize("step", ACCEPTING)
def test_killed_while_accepting(place: Place, step: str) -> None:
    assert place.run("propose", place.table(2))[0] == 0
    code, out, err = place.run("accept", how=step)
    assert code == -signal.SIGKILL, out + err
    recorded = step in publishing.AFTER_RECORDING
    code, out, err = place.run("history")
    assert (code, f": {1 + recorded} release" in out) == (0, True), err
    assert waiting(place) == [ProposalState.STAGED] * (not recorded)
    if not recorded:
        assert place.run("accept")[0] == 0
    assert "R535" in place.run("accept")[2]
    settled(place, 2)
    assert place.run("publish", place.table(3))[0] == 0
    settled(place, 3)


@pytest.mark.parametrize("step", WITHDRAWING)
def test_killed_while_withdrawing(place: Place, step: str) -> None:
    assert place.run("propose", place.table(2))[0] == 0
    code, out, err = place.run("withdraw", how=step)
    assert code == -signal.SIGKILL, out + err
    assert place.run("history")[0] == 0
    kept = step == "in step"
    assert (len(waiting(place)), len(staged(place))) == (kept, kept)
    if kept:
        assert place.run("withdraw")[0] == 0
    settled(place, 1)


def test_killed_while_proposing_the_first_release(place: Place) -> None:
    shutil.rmtree(place.home)
    assert place.run("propose", place.table(1), how="let go")[0] == -signal.SIGKILL
    policy = place.folder / "reveil.toml"
    said = policy.read_text()
    policy.write_text(said.replace("k = 2", "k = 3"))  # the first release would fix a policy that nobody looked at
    assert "under another policy" in place.run("accept")[2]
    policy.write_text(said)
    assert place.run("accept")[0] == 0
    settled(place, 1)
