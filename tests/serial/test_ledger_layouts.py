"""Homes of earlier layouts: read as they are, rewritten by the first command that writes, or not at all."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reveil.base.errors import InputError, TamperedError
from reveil.ledger import layouts
from reveil.ledger.ledger import Ledger
from reveil.ledger.opening import catalog_of
from support import cli

CHILD = Path(__file__).with_name("ledger_child.py")
POLICY: dict[str, Any] = {"guarantee": {"k": 5}}
LAYOUT_1 = (  # as SQLAlchemy made it
    "CREATE TABLE meta (name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name))",
    """CREATE TABLE releases (number INTEGER NOT NULL, id TEXT NOT NULL, previous TEXT NOT NULL, made TEXT NOT NULL,
    facts TEXT NOT NULL, manifest TEXT NOT NULL, token TEXT NOT NULL, revealed BOOLEAN NOT NULL, PRIMARY KEY (number),
    UNIQUE (id), UNIQUE (token))""",
)
LAYOUT_2 = """CREATE TABLE releases (
        series TEXT NOT NULL, number INTEGER NOT NULL, id TEXT NOT NULL, previous TEXT NOT NULL, made TEXT NOT NULL,
        facts TEXT NOT NULL, manifest TEXT NOT NULL, token TEXT NOT NULL UNIQUE, state TEXT NOT NULL,
        PRIMARY KEY (series, number), UNIQUE (series, id), UNIQUE (series, previous)
    )"""
NEWEST = str(layouts.NEWEST)


def publish(ledger: Ledger) -> None:
    staged = ledger.stage()
    (staged / "public" / "table.csv").write_text("age;n\n")
    ledger.reveal(ledger.record(staged, on=ledger.head(), facts={"rows": 1}).number)


def opened(home: Path) -> Ledger:
    return Ledger.create_or_open(home, series="demo", policy=POLICY)


def back_to_layout_1(home: Path) -> None:
    """Write the catalog anew as the version before did. Records, files, key and chain were the same."""
    file = home / "ledger.sqlite"
    with closing(sqlite3.connect(file)) as now:
        entries = now.execute("SELECT name, policy, fingerprint FROM series").fetchone()
        rows = now.execute(
            "SELECT number, id, previous, made, facts, manifest, token, state = 'revealed' FROM releases"
        ).fetchall()
    file.unlink()
    with closing(sqlite3.connect(file)) as before, before:
        for statement in LAYOUT_1:
            before.execute(statement)
        meta = zip(("schema", "series", "policy", "fingerprint"), ("1", *entries), strict=True)
        before.executemany("INSERT INTO meta VALUES (?, ?)", [(name, value) for name, value in meta if value])
        before.executemany("INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)


def back_to_layout_2(home: Path) -> None:
    """The version before last: a key for the series, no events, and no place beside the number."""
    with closing(sqlite3.connect(home / "ledger.sqlite")) as now, now:
        rows = now.execute("SELECT series, number, id, previous, made, facts, manifest, token, state FROM releases")
        kept = rows.fetchall()
        now.execute("DROP TABLE proposals")
        now.execute("DROP TABLE events")
        now.execute("DROP TABLE releases")
        now.execute(LAYOUT_2)
        now.executemany("INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", kept)
        now.execute("UPDATE meta SET value = '2' WHERE name = 'schema'")


def back_to_layout_3(home: Path) -> None:
    """The version before: no proposals."""
    with closing(sqlite3.connect(home / "ledger.sqlite")) as now, now:
        now.execute("DROP TABLE proposals")
        now.execute("UPDATE meta SET value = '3' WHERE name = 'schema'")


BACK = {"1": back_to_layout_1, "2": back_to_layout_2, "3": back_to_layout_3}


@pytest.fixture(params=BACK)
def old(request: pytest.FixtureRequest) -> str:
    """An earlier layout."""
    return str(request.param)


@pytest.fixture
def home(tmp_path: Path, old: str) -> Path:
    """Two releases in an earlier layout."""
    home = tmp_path / "home"
    for _ in range(2):
        publish(opened(home))
    BACK[old](home)
    return home


def layout(home: Path) -> str | None:
    with closing(sqlite3.connect(home / "ledger.sqlite")) as connection:
        return layouts.layout_of(connection)


def test_looking_back_changes_nothing(home: Path) -> None:
    before = (home / "ledger.sqlite").read_bytes()
    ledger = Ledger.open(home)
    assert (ledger.series, ledger.policy) == ("demo", POLICY)
    assert [(record.number, record.revealed) for record in ledger.records()] == [(1, True), (2, True)]
    assert ledger.head() == ledger.records()[-1].head
    assert ledger.settle() == ledger.check() == []
    assert (home / "ledger.sqlite").read_bytes() == before


def test_the_first_write_rewrites_it_and_the_chain_goes_on(home: Path) -> None:
    before = Ledger.open(home).records()
    publish(opened(home))
    assert layout(home) == NEWEST
    ledger = Ledger.open(home)
    assert ledger.records()[:2] == before
    assert ledger.head().number == 3
    assert ledger.check() == []
    with closing(sqlite3.connect(home / "ledger.sqlite")) as connection:
        (key,) = connection.execute("SELECT key FROM series").fetchone()
        assert connection.execute("SELECT DISTINCT series FROM releases").fetchall() == [(key,)]
        assert connection.execute("SELECT name, value FROM meta").fetchall() == [("schema", NEWEST)]
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    assert len(key) == 16
    assert tables == [("events",), ("meta",), ("proposals",), ("releases",), ("series",)]


def test_upgraded_when_it_is_asked_for(home: Path, old: str) -> None:
    """`reveil db upgrade` says what it did, does it once, and is a stop before or after for whoever is in between."""
    before = Ledger.open(home).records()
    (home.parent / "reveil.toml").write_text('[columns]\nage = "quasi"\nill = "sensitive"\n[guarantee]\nk = 2\n')
    words = ("db", "upgrade", "-p", str(home.parent / "reveil.toml"), "--home", str(home))
    code, out, err = cli(*words)
    assert (code, f"from layout {old} to {NEWEST}" in out, "2 releases" in out) == (0, True, True), out + err
    assert layout(home) == NEWEST
    assert Ledger.open(home).records() == before
    assert "newest layout already" in cli(*words)[1]
    assert cli("db", "upgrade", "-p", words[3], "--home", str(home.parent / "none"))[0] == 2


def test_an_upgrade_that_would_read_otherwise_changes_nothing(home: Path, old: str) -> None:
    seen = Ledger.open(home).snapshot()
    with pytest.raises(TamperedError, match="nothing was changed"):
        catalog_of(home).rewrite(replace(seen, chain=seen.chain[:1]))
    assert layout(home) == old


@pytest.mark.parametrize("old", ["1"], indirect=True)  # which had none
def test_two_homes_have_two_keys(home: Path, tmp_path: Path) -> None:
    shutil.copytree(home, tmp_path / "copy")
    keys = set()
    for place in (home, tmp_path / "copy"):
        publish(opened(place))
        with closing(sqlite3.connect(place / "ledger.sqlite")) as connection:
            keys |= set(connection.execute("SELECT key FROM series"))
    assert len(keys) == 2


def test_a_release_that_was_recorded_and_not_revealed(home: Path, old: str) -> None:
    """Settling is a write: it reveals the release and rewrites the catalog in one transaction."""
    ledger = opened(home)
    staged = ledger.stage()
    (staged / "public" / "table.csv").write_text("age;n\n")
    ledger.record(staged, on=ledger.head(), facts={})
    ledger.discard(staged)
    BACK[old](home)
    assert not Ledger.open(home).records()[-1].revealed
    assert Ledger.open(home).settle() == ["Release 3 was recorded but not yet revealed; it is revealed now."]
    assert layout(home) == NEWEST
    assert Ledger.open(home).check() == []


def test_a_series_that_was_only_founded(tmp_path: Path, old: str) -> None:
    opened(tmp_path / "home")
    BACK[old](tmp_path / "home")
    assert Ledger.open(tmp_path / "home").policy is None
    publish(opened(tmp_path / "home"))
    assert layout(tmp_path / "home") == NEWEST
    assert Ledger.open(tmp_path / "home").check() == []


@pytest.mark.parametrize(
    ("old", "step"),
    [
        *((old, step) for old in ("1", "2") for step in ("rewriting", "tables made")),
        *((old, step) for old in BACK for step in ("rewritten", "in transaction")),
    ],
    indirect=["old"],
)
def test_killed_while_it_is_rewritten(home: Path, old: str, step: str) -> None:
    """The old layout stays, with everything in it, until the one commit that also records the release."""
    before = Ledger.open(home).records()
    process = subprocess.run([sys.executable, str(CHILD), "publish", str(home), step], check=False, timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert layout(home) == old
    assert Ledger.open(home).records() == before
    assert len(Ledger.open(home).settle()) == 1
    publish(opened(home))
    assert layout(home) == NEWEST
    assert Ledger.open(home).head().number == 3
    assert Ledger.open(home).check() == []


def edit(home: Path, statement: str) -> None:
    with closing(sqlite3.connect(home / "ledger.sqlite")) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize("name", ["schema", "series", "fingerprint"])
@pytest.mark.parametrize("old", ["1"], indirect=True)  # later ones keep only the layout in `meta`
def test_a_lost_entry_is_noticed(home: Path, name: str) -> None:
    edit(home, f"DELETE FROM meta WHERE name = '{name}'")
    with pytest.raises(TamperedError, match=rf"R504.*missing or wrong: {name}.*restore ledger\.sqlite"):
        Ledger.open(home)


def test_edits_are_noticed_before_and_after(home: Path) -> None:
    edit(home, "UPDATE releases SET facts = '{}' WHERE number = 1")
    assert [fault.code for fault in Ledger.open(home).check()] == ["R521"]
    publish(opened(home))
    assert [(fault.code, fault.where) for fault in Ledger.open(home).check()] == [("R521", "release 1")]


def test_an_older_reveil_is_told_that_it_is_too_old(home: Path) -> None:
    """It looks for the layout in `meta`, and so does this one."""
    publish(opened(home))
    edit(home, f"UPDATE meta SET value = '{layouts.NEWEST + 1}' WHERE name = 'schema'")
    with pytest.raises(InputError, match=r"R505.*newer Reveil \(layout 6; this one knows up to 5\)"):
        Ledger.open(home)
