"""Real processes, killed at every step, racing each other, on disks that are full."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reveil.base.errors import CommitUnknownError, InputError, TamperedError
from reveil.ledger import sqlite
from reveil.ledger.ledger import Ledger

CHILD = Path(__file__).with_name("ledger_child.py")
POLICY = {"guarantee": {"k": 5}}


def child(job: str, home: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(CHILD), job, str(home), *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def publish_here(home: Path, text: str = "age;n\n") -> None:
    ledger = Ledger.create_or_open(home, series="demo", policy=POLICY)
    staged = ledger.stage()
    (staged / "public" / "table.csv").write_text(text)
    (staged / "memory" / "people.parquet").write_bytes(b"12")
    ledger.reveal(ledger.record(staged, on=ledger.head(), facts={"rows": 1}).number)


def assert_whole(home: Path, releases: int) -> None:
    """The series has so many releases, all revealed and unharmed, and nothing else lies about."""
    ledger = Ledger.open(home)
    assert [record.number for record in ledger.records()] == list(range(1, releases + 1))
    assert all(record.revealed for record in ledger.records())
    assert ledger.check() == []
    assert list((home / "staging").iterdir()) == []
    assert sorted(path.name for path in (home / "releases").iterdir()) == [
        f"{number:04d}" for number in range(1, releases + 1)
    ]


@pytest.mark.parametrize(("step", "left"), {"discarding": 2, "discarded": 1, "deleting": 1}.items())
def test_killed_while_it_is_discarded(tmp_path: Path, step: str, left: int) -> None:
    home = tmp_path / "home"
    publish_here(home)
    publish_here(home)
    process = child("take back", home, step)
    process.wait(60)
    assert process.returncode == -signal.SIGKILL
    Ledger.open(home).settle()
    assert_whole(home, left)
    publish_here(home)
    assert_whole(home, left + 1)


KILLED = {
    "lock taken": (1, ""),
    "staged": (1, "was removed; it had not been recorded"),
    "writing": (1, "was removed; it had not been recorded"),
    "sealed": (1, "was removed; it had not been recorded"),
    "in transaction": (1, "was removed; it had not been recorded"),
    "in transaction, spilled": (1, "was removed; it had not been recorded"),
    "committed": (2, "Release 2 was recorded but not yet revealed; it is revealed now"),
    "renamed": (2, "Release 2 was recorded but not yet revealed; it is revealed now"),
    "marked": (2, ""),
}


@pytest.mark.parametrize("step", KILLED)
def test_a_killed_publisher_leaves_the_old_state_or_the_new_one(step: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    publish_here(home)
    releases, sentence = KILLED[step]

    process = child("publish", home, step)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert any((home / "staging").iterdir())  # it did die in the middle
    assert (home / "ledger.sqlite-journal").exists() == (step.startswith("in transaction"))

    done = Ledger.open(home).settle()
    assert (sentence in done[0] and len(done) == 1) if sentence else done == []
    assert_whole(home, releases)
    assert Ledger.open(home).settle() == []
    publish_here(home)
    assert_whole(home, releases + 1)
    assert not (home / "ledger.sqlite-journal").exists()


def test_the_spilled_transaction_was_really_in_the_database_file(tmp_path: Path) -> None:
    home = tmp_path / "home"
    publish_here(home)
    before = (home / "ledger.sqlite").read_bytes()
    child("publish", home, "in transaction, spilled").communicate(timeout=60)
    assert (home / "ledger.sqlite").read_bytes() != before
    assert Ledger.open(home).head().number == 1


@pytest.mark.parametrize("step", ["key made", "in transaction", "committed"])
def test_a_first_publisher_killed_leaves_a_home_that_can_be_used(step: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    process = child("publish", home, step)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL

    ledger = Ledger.create_or_open(home, series="demo", policy=POLICY)
    ledger.settle()
    assert len(ledger.key) == 32
    assert_whole(home, 1 if step == "committed" else 0)


def test_killed_at_any_moment(tmp_path: Path) -> None:
    home, chance, known = tmp_path / "home", random.Random(5), 0
    publish_here(home)
    for _ in range(6):
        process = child("loop", home)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0.02, 0.3))
        process.kill()
        process.communicate()
        Ledger.open(home).settle()
        releases = Ledger.open(home).head().number
        assert releases >= known
        assert_whole(home, releases)
        known = releases
    assert known > 6  # the children did publish


def test_two_publishers_at_once(tmp_path: Path) -> None:
    """Planned on one head, settled in between, recorded at once: one wins, the other leaves nothing."""
    home, rounds = tmp_path / "home", 20
    pair = [child("turns", home) for _ in range(2)]  # they also race to make the home

    def both(order: str) -> list[str]:
        for process in pair:
            assert process.stdin is not None
            process.stdin.write(order + "\n")
            process.stdin.flush()
        return [process.stdout.readline().strip() for process in pair if process.stdout is not None]

    assert [process.stdout.readline() for process in pair if process.stdout is not None] == ["ready\n"] * 2
    winners = []
    for number in range(1, rounds + 1):
        assert both("plan") == ["done", "done"]
        assert both("settle") == ["[]", "[]"]
        answers = both("go")
        won = [place for place, answer in enumerate(answers) if answer == f"won {number:04d}"]
        assert len(won) == 1, answers
        loser = answers[1 - won[0]]
        assert loser.startswith("ConflictError R507")
        assert ("the empty series" if number == 1 else f"release {number - 1} (") in loser
        assert f"now release {number} (" in loser
        winners.append(pair[won[0]].pid)
        table = home / "releases" / f"{number:04d}" / "public" / "table.csv"
        assert table.read_text() == f"{winners[-1]}\n" * 100
        assert list((home / "staging").iterdir()) == []
    for process in pair:
        process.communicate(timeout=60)
    assert_whole(home, rounds)
    assert [record.facts["by"] for record in Ledger.open(home).records()] == winners


def test_settling_and_checking_all_the_time_does_not_disturb_a_publisher(tmp_path: Path) -> None:
    home = tmp_path / "home"
    publish_here(home)
    process, ledger = child("loop", home), Ledger.open(home)
    assert process.stdout is not None
    process.stdout.readline()
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        for sentence in ledger.settle():
            assert "it is revealed now" in sentence
        assert ledger.check() == []
    assert process.poll() is None
    process.kill()
    process.communicate()
    ledger.settle()
    assert ledger.head().number > 2
    assert_whole(home, ledger.head().number)


def test_a_living_publisher_keeps_its_staging_and_a_dead_one_does_not(tmp_path: Path) -> None:
    home = tmp_path / "home"
    publish_here(home)
    process = child("turns", home)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    process.stdin.write("plan\n")
    process.stdin.flush()
    process.stdout.readline()

    assert Ledger.open(home).settle() == []
    assert len(list((home / "staging").iterdir())) == 2  # folder and lock
    process.kill()
    process.communicate()
    assert len(Ledger.open(home).settle()) == 1
    assert_whole(home, 1)


@pytest.mark.parametrize("harm", ["missing", "damaged", "damaged after the rename"])
def test_recorded_but_lost_before_it_was_revealed(harm: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    publish_here(home)
    child("publish", home, "renamed" if "rename" in harm else "committed").communicate(timeout=60)
    folder = home / "staging" / Ledger.open(home).records()[1].token
    if harm == "missing":
        folder.rename(tmp_path / "elsewhere")
    else:
        folder = home / "releases" / "0002" if "rename" in harm else folder
        (folder / "memory" / "people.parquet").write_bytes(b"changed here!")
    leftover = Ledger.open(home).stage()  # of a ledger that is gone at once: it must still be cleared away

    with pytest.raises(TamperedError, match=r"release 2.*restore the folder") as refusal:
        Ledger.open(home).settle()
    assert refusal.value.faults[0].code == "R527"
    assert not leftover.exists()

    if harm == "missing":
        (tmp_path / "elsewhere").rename(folder)
    else:
        (folder / "memory" / "people.parquet").write_bytes(b"not read here")
    Ledger.open(home).settle()
    assert_whole(home, 2)


def breaking(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, *, committed: bool, readable: bool = True) -> None:
    def fail(connection: sqlite3.Connection) -> Exception:
        if committed:
            connection.execute("COMMIT")
        if not readable:
            monkeypatch.setattr(ledger._catalog, "holds", unreadable)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        return error

    def unreadable(token: str) -> bool:
        raise TamperedError([])

    monkeypatch.setattr(sqlite, "_commit", fail)


def test_failed_commit_that_did_not_take_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    publish_here(home)
    ledger = Ledger.open(home)
    staged, head = ledger.stage(), ledger.head()
    (staged / "public" / "table.csv").write_text("age;n\n")
    breaking(ledger, monkeypatch, committed=False)
    with pytest.raises(InputError, match=r"R506.*Nothing was recorded"):
        ledger.record(staged, on=head, facts={})
    assert_whole(home, 1)


@pytest.mark.parametrize(("committed", "readable"), [(True, True), (True, False), (False, False)])
def test_unknown_commit_is_settled_by_the_next_command(
    committed: bool, readable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    publish_here(home)
    ledger = Ledger.open(home)
    staged, head = ledger.stage(), ledger.head()
    (staged / "public" / "table.csv").write_text("age;n\n")
    breaking(ledger, monkeypatch, committed=committed, readable=readable)
    with pytest.raises(CommitUnknownError, match="R508"):
        ledger.record(staged, on=head, facts={})
    ledger.discard(staged)  # what a caller does on the way out must not destroy a recorded release
    assert staged.exists()

    assert len(Ledger.open(home).settle()) == 1
    assert_whole(home, 2 if committed else 1)


@pytest.mark.parametrize("where", ["memory", "catalog"])
def test_file_size_limit(where: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    publish_here(home)
    output, _ = child("limited", home, where).communicate(timeout=60)
    assert output.startswith("InputError R506"), output
    assert "Nothing was recorded" in output
    assert list((home / "staging").iterdir()) == []
    assert Ledger.open(home).settle() == []
    assert_whole(home, 1)


def _can_mount() -> bool:
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as place:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "none", place], capture_output=True, check=False)
        return mounted.returncode == 0 and not subprocess.run(["umount", place], check=False).returncode


# Without the right to mount there is nothing to run here; `test_file_size_limit` runs everywhere.
if _can_mount():

    @pytest.fixture
    def small_disk(tmp_path: Path) -> Iterator[Path]:
        place = tmp_path / "disk"
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", str(place)], check=True)
        yield place
        subprocess.run(["umount", str(place)], check=True)

    @pytest.mark.parametrize("left", [0, 4096, 40_960])
    def test_full_disk(small_disk: Path, left: int) -> None:
        home = small_disk / "home"
        publish_here(home)
        ledger = Ledger.open(home)
        staged = ledger.stage()
        (staged / "public" / "table.csv").write_text("age;n\n")
        filler = small_disk / "filler"
        with pytest.raises(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"0" * 4096)
        os.truncate(filler, filler.stat().st_size - left)

        with pytest.raises(InputError, match=r"R506.*Nothing was recorded"):
            ledger.record(staged, on=ledger.head(), facts={"long": "x" * 300_000})
        assert_whole(home, 1)
        filler.unlink()
        publish_here(home)
        assert_whole(home, 2)


def test_readers_do_not_wait_for_a_writer(tmp_path: Path) -> None:
    home = tmp_path / "home"
    publish_here(home)
    writer = sqlite3.connect(home / "ledger.sqlite", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    assert Ledger.open(home).head().number == 1  # the writer never ends, so waiting would be refused in the end
    writer.close()
