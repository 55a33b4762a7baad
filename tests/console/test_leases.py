"""Who works on which job: leases on SQLite and PostgreSQL, workers that race, die, or are stopped for too long."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import psycopg
import pytest

import reveil
from reveil.base.errors import ConflictError, InputError
from reveil.serve import leases as table
from reveil.serve.leases import Leases, LeasesInFile, LeasesInPostgres, leases_of
from reveil.serve.place import Place
from reveil.serve.queue import Queue

POLICY = '[columns]\nid = "identifier"\nage = "quasi"\nill = "sensitive"\n[guarantee]\nk = 2\n'
LOOK, PUBLISH = {"job": "unique", "table": "none", "columns": []}, {"job": "accept"}
Many = Callable[[], Leases]


@pytest.fixture(scope="module")
def database(postgres: str) -> str:
    name = f"queue_{secrets.token_hex(6)}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres.replace("/postgres?", f"/{name}?").replace(":@", "@")


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest) -> str | None:
    return None if request.param == "sqlite" else str(request.getfixturevalue("database"))


@pytest.fixture
def opened(tmp_path: Path, address: str | None) -> Many:
    """The same table, as another process would open it."""
    key = secrets.token_hex(4)
    if address is None:
        return lambda: LeasesInFile(tmp_path / "queue.sqlite", key)
    return lambda: LeasesInPostgres(address, key)


def add(leases: Leases, job: dict[str, Any], token: str = "a", by: str = "ann", **about: Any) -> None:
    leases.add({"id": token, "title": "t", "by": by, "at": "", "job": job, **about})


def state(leases: Leases, token: str = "a") -> str:
    row = leases.row(token)
    assert row is not None
    return row.state


def brief(monkeypatch: pytest.MonkeyPatch, seconds: float = 0.05) -> None:
    monkeypatch.setattr(table, "LEASE_SECONDS", seconds)


def test_each_job_is_taken_by_one(opened: Many) -> None:
    first = opened()
    for number in range(40):
        add(first, LOOK, f"job{number:02d}", by=f"person {number}")
    taken: list[str] = []

    def work() -> None:
        own = opened()
        while (row := own.claim("me")) is not None:
            taken.append(row.id)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [f"job{number:02d}" for number in range(40)]


def test_one_person_does_not_take_all_places(opened: Many) -> None:
    leases = opened()
    for number in range(3):
        add(leases, LOOK, f"ann{number}")
    add(leases, LOOK, "ben", by="ben")
    taken = [leases.claim("me") for _ in range(4)]
    assert [row and row.id for row in taken] == ["ann0", "ann1", "ben", None]
    assert taken[0] is not None
    leases.finish("ann0", taken[0].epoch, "succeeded")
    assert getattr(leases.claim("me"), "id", "") == "ann2"


def test_what_only_looks_is_done_once_more(opened: Many, monkeypatch: pytest.MonkeyPatch) -> None:
    leases = opened()
    add(leases, LOOK)
    brief(monkeypatch)
    epochs = []
    for expected in ("queued", "lost"):
        row = leases.claim("me")
        assert row is not None
        epochs.append(row.epoch)
        time.sleep(0.1)
        assert leases.reap() == 1
        assert state(leases) == expected
    assert epochs == [1, 2]
    assert leases.reap() == 0


def test_what_publishes_is_lost_and_its_worker_too_late(opened: Many, monkeypatch: pytest.MonkeyPatch) -> None:
    leases = opened()
    add(leases, PUBLISH)
    brief(monkeypatch)
    row = leases.claim("me")
    assert row is not None
    time.sleep(0.1)
    for late in (lambda: leases.renew("a", row.epoch), lambda: leases.finish("a", row.epoch, "succeeded")):
        assert not late()
    with pytest.raises(ConflictError, match="R861"):
        leases.insist("a", row.epoch)
    leases.reap()
    assert state(leases) == "lost"
    leases.give_up("a", row.epoch, back=True)
    assert state(leases) == "lost"


def test_an_old_epoch_is_nobodys(opened: Many, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first worker wakes while another has the job."""
    leases = opened()
    add(leases, LOOK)
    with monkeypatch.context() as patched:
        brief(patched)
        first = leases.claim("one")
    time.sleep(0.1)
    leases.reap()
    second = leases.claim("two")
    assert first is not None
    assert second is not None
    assert not leases.renew("a", first.epoch)
    assert not leases.finish("a", first.epoch, "failed")
    leases.give_up("a", first.epoch)
    assert leases.renew("a", second.epoch)
    assert leases.finish("a", second.epoch, "succeeded")
    assert state(leases) == "succeeded"


def test_cancelled_before_it_records_and_not_after(opened: Many) -> None:
    leases = opened()
    for token in "abc":
        add(leases, PUBLISH, token, by=token)
    leases.cancel("c")
    assert state(leases, "c") == "cancelled"
    rows = [leases.claim("me"), leases.claim("me")]
    leases.cancel("a")
    assert rows[0] is not None
    with pytest.raises(ConflictError, match="R861"):
        leases.insist("a", rows[0].epoch)
    leases.give_up("a", rows[0].epoch)
    assert state(leases, "a") == "cancelled"
    assert rows[1] is not None
    leases.insist("b", rows[1].epoch)
    with pytest.raises(ConflictError, match="R844"):
        leases.cancel("b")


def test_what_a_console_that_ends_was_doing(opened: Many) -> None:
    leases = opened()
    for token, job in (("a", LOOK), ("b", PUBLISH)):
        add(leases, job, token, by=token)
    for row in [leases.claim("me"), leases.claim("me")]:
        assert row is not None
        leases.give_up(row.id, row.epoch, back=True)
    assert (state(leases, "a"), state(leases, "b")) == ("queued", "lost")


def test_where_the_queue_is(tmp_path: Path, database: str) -> None:
    place = Place(tmp_path)
    place.lay_out()
    for bad in ("mysql://host/db", "postgresql://ann:secret@host/db"):
        with pytest.raises(InputError, match="R514") as refusal:
            leases_of(place, bad)
        assert "secret" not in str(refusal.value)
    assert isinstance(leases_of(place), LeasesInFile)
    add(leases_of(place), LOOK)
    with pytest.raises(InputError, match=r"R514.*wait or run"):
        leases_of(place, database)
    leases_of(place).cancel("a")
    moved = leases_of(place, database)
    assert moved.place == leases_of(place).place == leases_of(place, database).place
    with pytest.raises(InputError, match=r"R514.*has its queue"):
        leases_of(place, "postgresql://elsewhere/db")


# --- processes ---------------------------------------------------------------------------------------------


@pytest.fixture
def queue(tmp_path: Path, address: str | None) -> Iterator[Queue]:
    """A queue on which only the test works."""
    made = Queue(Place(tmp_path), at_once=0, address=address)
    yield made
    made.close()


def proposed(place: Place) -> dict[str, Any]:
    """A series with a proposal, and the job that would record it."""
    folder = place.folder / "own"
    folder.mkdir()
    (folder / "reveil.toml").write_text(POLICY)
    people = {"id": list("abcdef"), "age": [20, 21, 30, 31, 40, 41], "ill": ["flu", "gout"] * 3}
    token = reveil.open_series(folder / "reveil.toml").propose(pl.DataFrame(people), seed=1).token
    return {"job": "accept", "policy": str(folder / "reveil.toml"), "token": token}


def worker(place: Place, row: table.Row) -> subprocess.Popen[bytes]:
    folder = place.state / "jobs" / row.id
    (folder / f"run-{row.epoch}").mkdir()
    return subprocess.Popen([sys.executable, "-m", "reveil.serve.worker", str(folder), str(row.epoch)])


def test_a_worker_that_was_stopped_beyond_its_lease_records_nothing(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wakes, is refused, and says nothing; the job was lost, and asked for again it is done."""
    job = proposed(queue.place)
    asked = queue.ask(job, "Recording", "ann", series="own")
    with monkeypatch.context() as patched:
        brief(patched, 0.3)
        row = queue.leases.claim("me")
    assert row is not None
    process = worker(queue.place, row)
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(0.4)
    queue.leases.reap()
    os.kill(process.pid, signal.SIGCONT)
    assert process.wait(60) == 1
    assert "R861" in (queue.folder(asked) / "fault.json").read_text()
    found = queue.job(asked)
    assert (found["state"], found["faults"][0]["code"]) == ("lost", "R843")
    series = reveil.open_series(queue.place.folder / "own" / "reveil.toml")
    assert series.releases == ()
    again = queue.ask(job, "Recording", "ann", series="own")
    row = queue.leases.claim("me")
    assert row is not None
    assert worker(queue.place, row).wait(60) == 0
    assert queue.job(again)["state"] == "succeeded"
    assert [one.number for one in series.releases] == [1]


def test_a_worker_whose_console_was_killed(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody renews its lease any more: what it looked at is looked at again, by whoever works next."""
    pl.DataFrame({"x": [1, 1, 2]}).write_parquet(queue.place.folder / "t.parquet")
    job = {"job": "unique", "table": str(queue.place.folder / "t.parquet"), "columns": ["x"]}
    asked = queue.ask(job, "Counting", "ann")
    brief(monkeypatch)
    assert queue.leases.claim("a console that is gone") is not None
    time.sleep(0.1)
    monkeypatch.undo()
    other = Queue(queue.place)
    other.begin()
    found = other.wait(asked, 60)
    other.close()
    assert (found["state"], found["result"]) == ("succeeded", {"rows": 3, "unique": 1})
    row = other.leases.row(asked)
    assert row is not None
    assert (row.epoch, row.again) == (2, 1)


def test_work_beside_a_console_that_works_on_nothing(queue: Queue) -> None:
    """`reveil work`, as it is started on another machine."""
    pl.DataFrame({"x": [1, 1, 2]}).write_parquet(queue.place.folder / "t.parquet")
    job = {"job": "unique", "table": str(queue.place.folder / "t.parquet"), "columns": ["x"]}
    asked = [queue.ask(job, "Counting", f"person {n}", small=n == 0) for n in range(2)]
    command = [sys.executable, "-m", "reveil", "work", str(queue.place.folder), "--at-once", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as beside:
        assert [queue.wait(token, 90)["state"] for token in asked] == ["succeeded", "succeeded"]
        beside.terminate()
        assert beside.wait(30) == 0


def test_a_folder_that_is_elsewhere_on_this_machine(queue: Queue, tmp_path_factory: pytest.TempPathFactory) -> None:
    asked = queue.ask(LOOK, "Looking", "ann")
    row = queue.leases.claim("me")
    assert row is not None
    link = tmp_path_factory.mktemp("mounted") / "here"
    link.symlink_to(queue.place.folder)
    assert worker(Place(link), row).wait(60) == 1
    found = queue.job(asked)
    assert (found["state"], found["faults"][0]["code"]) == ("failed", "R862")
