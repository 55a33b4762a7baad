"""The ledger in PostgreSQL: a series begins there or moves there, is published in, proposed in, killed and raced."""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import psycopg
import pytest

import reveil
from reveil.base.errors import ConflictError, Fault, InputError, ReveilError, TamperedError, UnfinishedError
from reveil.ledger.ledger import Ledger
from reveil.ledger.moving import move
from reveil.ledger.postgres import PostgresCatalog
from reveil.ledger.upgrading import upgrade
from reveil.publish import Series
from support import cli

POLICY = """
[series]
name = "office"
[columns]
id = "identifier"
age = "quasi"
ill = "sensitive"
[guarantee]
k = 2
"""
KILLED = """
import os, signal, sys
from pathlib import Path
from reveil.ledger import sqlite
from reveil.ledger.ledger import Ledger
step, home = sys.argv[1], Path(sys.argv[2])
die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
ledger = Ledger.open(home)
staged = ledger.stage()
(staged / "public" / "table.csv").write_text("age;n")
if step == "in transaction":
    sqlite._commit = die
append = sqlite.SqliteCatalog.append
if step == "recorded":
    sqlite.SqliteCatalog.append = lambda *given: (append(*given), die())
ledger.record(staged, on=ledger.head(), facts={})
"""


@pytest.fixture(scope="module")
def database(postgres: str) -> str:
    name = f"office_{secrets.token_hex(6)}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres.replace("/postgres?", f"/{name}?").replace(":@", "@")  # which has an empty password


def people(release: int) -> pl.DataFrame:
    names = [f"p{i + release}" for i in range(12)]
    return pl.DataFrame({"id": names, "age": [20 + i for i in range(12)], "ill": ["flu", "cold", "gout"] * 4})


@pytest.fixture
def series(tmp_path: Path) -> Series:
    (tmp_path / "reveil.toml").write_text(POLICY)
    return reveil.open_series(tmp_path / "reveil.toml")


def test_a_series_moves_and_goes_on(series: Series, database: str) -> None:
    series.publish(people(1), seed=1)
    late = Ledger.open(series.home)  # somebody who has the file open while it moves
    token = series.propose(people(2), seed=1).token
    before = series.ledger.snapshot()
    code, out, err = cli("catalog", database, "-p", str(series.policy.folder / "reveil.toml"))
    assert (code, "with 1 release" in out) == (0, True), out + err
    with pytest.raises(TamperedError):
        late.head()
    again = reveil.open_series(series.policy.folder / "reveil.toml")
    assert again.ledger.snapshot() == before
    assert again.accept(token).number == 2
    again.publish(people(3), seed=1)
    again.hand_over(series.home.parent / "out")
    assert [record.number for record in again.ledger.records()] == [1, 2, 3]
    assert again.ledger.check() == []
    assert all(one.holds for one in again.verify().values())  # type: ignore[union-attr]
    with pytest.raises(InputError, match=r"R514.*already"):
        move(series.home, database)


def test_many_series_in_one_database(tmp_path: Path, database: str) -> None:
    homes = [tmp_path / name for name in ("a", "b", "c")]
    for number, home in enumerate(homes):
        move(home, database)
        assert (home / "catalog").stat().st_mode & 0o077 == 0
        series = reveil.open_series(
            {"columns": {"id": "identifier", "age": "quasi", "ill": "sensitive"}, "guarantee": {"k": 2}}, home
        )
        for release in range(number + 1):
            series.publish(people(release), seed=release)
    assert [len(Ledger.open(home).records()) for home in homes] == [1, 2, 3]
    assert all(Ledger.open(home).check() == [] for home in homes)


@pytest.mark.parametrize("step", ["in transaction", "recorded"])
def test_killed(series: Series, database: str, step: str) -> None:
    series.publish(people(1), seed=1)
    move(series.home, database)
    process = subprocess.run([sys.executable, "-c", KILLED, step, str(series.home)], check=False, timeout=120)
    assert process.returncode == -signal.SIGKILL
    ledger = Ledger.open(series.home)
    assert len(ledger.settle()) == 1
    assert [record.number for record in ledger.records()] == ([1, 2] if step == "recorded" else [1])
    assert ledger.check() == []
    assert list((series.home / "staging").iterdir()) == []


def test_of_two_who_publish_one_is_told(series: Series, database: str) -> None:
    series.publish(people(1), seed=1)
    move(series.home, database)
    ends: list[str] = []

    def publish(number: int) -> None:
        try:
            ledger = Ledger.open(series.home)
            head, staged = ledger.head(), ledger.stage()
            (staged / "public" / "table.csv").write_text(f"{number}")
            both.wait()
            ledger.reveal(ledger.record(staged, on=head, facts={}).number)
            ends.append("won")
        except ConflictError:
            ends.append("told")

    both = threading.Barrier(2)
    threads = [threading.Thread(target=publish, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == ["told", "won"]
    assert Ledger.open(series.home).check() == []


@pytest.mark.parametrize("accepted", [False, True])
def test_a_database_that_goes_away_after_recording(
    series: Series, database: str, monkeypatch: pytest.MonkeyPatch, accepted: bool
) -> None:
    """Found by `bench rounds`: what is recorded is not told as a refusal (R503), and the next command finishes it."""
    move(series.home, database)
    if accepted:
        series.propose(people(1), seed=1)

    def gone(*_: object) -> None:
        raise InputError(Fault("R503", "ledger", "the database does not answer", "look after the server"))

    with monkeypatch.context() as away:
        away.setattr(PostgresCatalog, "set_state", gone)
        with pytest.raises(UnfinishedError, match=r"R509.*it is recorded, but"):
            series.accept() if accepted else series.publish(people(1), seed=1)
    again = reveil.open_series(series.policy.folder / "reveil.toml")
    assert len(again.settle()) == 1
    assert [one.number for one in again.releases] == [1]
    with monkeypatch.context() as away:
        if accepted:
            again.propose(people(2), seed=1)
            away.setattr(Ledger, "check", gone)
            with pytest.raises(UnfinishedError, match="R509"):
                again.accept()


def test_a_series_begins_there(series: Series, database: str, tmp_path: Path) -> None:
    """`--catalog`: with its first release, not before; every other command follows the home."""
    policy, bad, good = tmp_path / "reveil.toml", tmp_path / "bad.csv", tmp_path / "good.csv"
    bad.write_text("id,age\np1,3\n")
    people(1).write_csv(good)
    told = cli("plan", str(good), "-p", str(policy), "--catalog", database)[1]
    assert f"--catalog '{database}'" in told.replace(f"--catalog {database}", f"--catalog '{database}'")
    assert cli("publish", str(bad), "-p", str(policy), "--catalog", database)[0] == 2
    assert not series.home.exists()
    code, out, err = cli("publish", str(good), "-p", str(policy), "--catalog", database)
    assert code == 0, out + err
    assert not (series.home / "ledger.sqlite").exists()
    assert (series.home / "catalog").is_file()
    again = reveil.open_series(policy, catalog=database)
    assert [one.number for one in again.releases] == [1]
    assert again.ledger.check() == []
    people(2).write_csv(good)
    other = database.replace("postgresql://", "postgres://")
    code, _, err = cli("publish", str(good), "-p", str(policy), "--catalog", other)
    assert (code, "R514" in err, "has its ledger in" in err) == (2, True, True)
    assert cli("propose", str(good), "-p", str(policy), "--catalog", database)[0] == 0
    assert cli("accept", "-p", str(policy))[0] == 0
    assert "2 releases" in cli("history", "-p", str(policy))[1]


def test_a_home_with_a_file_is_not_used_as_if_it_were_there(series: Series, database: str) -> None:
    series.publish(people(1), seed=1)
    with pytest.raises(InputError, match=r"R514.*its own file.*reveil catalog"):
        reveil.open_series(series.policy.folder / "reveil.toml", catalog=database)
    with pytest.raises(InputError, match="R514"):
        reveil.open_series(series.policy.folder / "reveil.toml", catalog="mysql://host/db")


def test_upgraded_in_place(series: Series, database: str) -> None:
    """The first catalogs in PostgreSQL had layout 4."""
    move(series.home, database)
    series.publish(people(1), seed=1)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE reveil.meta SET value = '4' WHERE name = 'schema'")
    done = upgrade(series.home)
    assert (done.before, done.after, done.releases) == (4, 5, 1)
    assert upgrade(series.home).before == 5


def test_what_is_refused(series: Series, database: str, tmp_path: Path) -> None:
    for bad in ("sqlite:///x", "postgresql://ann:secret@host/db"):
        with pytest.raises(InputError, match="R514") as refusal:
            move(series.home, bad)
        assert "secret" not in str(refusal.value)
    with pytest.raises(ReveilError, match=r"R503.*does not answer"):
        move(tmp_path / "home", "postgresql://127.0.0.1:1/none")
    move(tmp_path / "other", database)
    (tmp_path / "other" / "catalog").write_text("{}")
    with pytest.raises(TamperedError, match="does not say where"):
        Ledger.open(tmp_path / "other")
