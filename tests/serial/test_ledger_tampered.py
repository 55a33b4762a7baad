"""What the ledger notices: changed, lost and added files, an edited or lost catalog, another key."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from reveil.base.errors import InputError, TamperedError
from reveil.ledger.ledger import Ledger, discover

PEOPLE = pl.DataFrame({"person": ["a", "b"], "group": [1, 2]})


def opened(home: Path) -> Ledger:
    return Ledger.create_or_open(home, series="demo", policy={"guarantee": {"k": 5}})


def publish(ledger: Ledger) -> None:
    staged = ledger.stage()
    (staged / "public" / "table.csv").write_text("age;sex\n1;f\n")
    (staged / "private" / "certificate.json").write_text('{"holds": true}')
    ledger.write_memory(staged, "people", PEOPLE)
    ledger.reveal(ledger.record(staged, on=ledger.head(), facts={"rows": 1}).number)


@pytest.fixture
def series(tmp_path: Path) -> Ledger:
    """Three releases."""
    ledger = opened(tmp_path / "home")
    for _ in range(3):
        publish(ledger)
    return ledger


def edit(home: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(home / "ledger.sqlite")) as connection, connection:
        assert connection.execute(statement, values).rowcount > 0


@pytest.mark.parametrize(
    ("name", "stake"),
    [
        ("public/table.csv", "publishing can go on"),
        ("private/certificate.json", "publishing can go on"),
        ("memory/people.parquet", "publishing stops until it is back"),
    ],
)
def test_flipped_byte_and_deleted_file(name: str, stake: str, series: Ledger) -> None:
    path = series.path(2) / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    (fault,) = series.check()
    assert (fault.code, fault.where) == ("R524", f"release 2, {name}")
    assert stake in fault.remedy
    assert series.check([1, 3]) == []

    path.unlink()
    (fault,) = series.check()
    assert (fault.code, fault.where) == ("R523", f"release 2, {name}")
    assert "restore this file" in fault.remedy
    assert stake in fault.remedy


def test_memory_is_not_read_when_changed(series: Ledger) -> None:
    path = series.path(2) / "memory" / "people.parquet"
    PEOPLE.with_columns(group=pl.lit(1)).write_parquet(path)
    with pytest.raises(TamperedError, match=r"R524.*memory/people\.parquet"):
        series.memory(2, "people")
    path.unlink()
    with pytest.raises(TamperedError):
        series.memory(2, "people")
    assert_frame_equal(series.memory(1, "people"), PEOPLE)


def test_extra_files_and_folders(series: Ledger) -> None:
    (series.path(1) / "public" / "notes.txt").write_text("hello")
    (series.home / "releases" / "old").mkdir()
    (series.home / "releases" / "0004").mkdir()
    assert [(fault.code, fault.where) for fault in series.check()] == [
        ("R525", "release 1, public/notes.txt"),
        ("R526", "releases/0004"),
        ("R526", "releases/old"),
    ]


def test_missing_release_folder(series: Ledger) -> None:
    shutil.rmtree(series.path(2))
    (fault,) = series.check()
    assert fault.code == "R523"
    assert "releases/0002 is missing" in fault.message


EDITS = {
    "UPDATE releases SET facts = '{\"rows\":2}' WHERE number = 2": ["R521 release 2"],
    "UPDATE releases SET made = '2020-01-01T00:00:00+00:00' WHERE number = 3": ["R521 release 3"],
    "UPDATE releases SET id = 'f00' WHERE number = 1": ["R521 release 1", "R521 release 2"],
    "UPDATE releases SET facts = 'what' WHERE number = 2": ["R521 release 2"],
    "UPDATE releases SET manifest = '{\"public/table.csv\":1}' WHERE number = 2": ["R521 release 2"],
    "DELETE FROM releases WHERE number = 2": ["R522 ledger.sqlite", "R526 releases/0002"],
    "DELETE FROM releases WHERE number = 3": ["R526 releases/0003"],
    "UPDATE series SET policy = '{\"k\":2}'": ["R521 ledger.sqlite"],
    "UPDATE series SET name = 'other'": ["R521 ledger.sqlite"],
}


@pytest.mark.parametrize("statement", EDITS)
def test_catalog_edited_by_hand(statement: str, series: Ledger) -> None:
    edit(series.home, statement)
    found = [f"{fault.code} {fault.where.rsplit(', ', 1)[-1]}" for fault in Ledger.open(series.home).check()]
    assert found == EDITS[statement]


def test_swapped_key(series: Ledger) -> None:
    (series.home / "key").write_bytes(bytes(32))
    (fault,) = series.check()
    assert fault.code == "R520"
    with pytest.raises(TamperedError, match="R520"):
        _ = series.key
    # Adjusting the fingerprint does not help: the releases were recorded with the old one.
    edit(
        series.home,
        "UPDATE series SET fingerprint = ?",
        hashlib.sha256(bytes(32)).hexdigest(),
    )
    assert [fault.code for fault in Ledger.open(series.home).check()] == ["R521"]

    (series.home / "key").unlink()
    with pytest.raises(TamperedError, match="R520"):
        _ = series.key


def test_an_older_catalog_does_not_publish_over_a_release(series: Ledger) -> None:
    edit(series.home, "DELETE FROM releases WHERE number = 3")
    with pytest.raises(TamperedError, match=r"R526.*does not know it"):
        publish(series)
    assert series.head().number == 2
    assert series.check([1, 2])[0].code == "R526"
    assert list((series.home / "staging").iterdir()) == []


@pytest.mark.parametrize("harm", ["gone", "empty", "text", "cut", "foreign", "no series"])
def test_lost_catalog_is_not_a_new_beginning(harm: str, series: Ledger) -> None:
    file = series.home / "ledger.sqlite"
    if harm == "cut":
        file.write_bytes(file.read_bytes()[:5000])
    elif harm == "no series":
        edit(series.home, "DELETE FROM series")
    else:
        file.unlink()
    if harm == "foreign":
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("CREATE TABLE runs (id)")
    elif harm in ("empty", "text"):
        file.write_text("" if harm == "empty" else "this is not a database " * 100)
    assert discover(series.home)
    for call in (opened, Ledger.open):
        with pytest.raises(TamperedError, match=r"R504.*restore ledger\.sqlite"):
            call(series.home)


def test_newer_schema(series: Ledger) -> None:
    edit(series.home, "UPDATE meta SET value = '99' WHERE name = 'schema'")
    with pytest.raises(InputError, match=r"R505.*newer Reveil.*upgrade"):
        Ledger.open(series.home)
