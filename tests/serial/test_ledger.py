"""The ledger in one process: what it keeps, what it refuses, what it notices."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from reveil.base.errors import ConflictError, InputError
from reveil.ledger import sqlite
from reveil.ledger.folder import take_lock
from reveil.ledger.ledger import Ledger, discover
from reveil.ledger.record import Head, Record
from reveil.ledger.sqlite import SqliteCatalog

POLICY: dict[str, Any] = {"guarantee": {"model": "k-anonymity", "k": 5}, "columns": {"age": "quasi"}}
PEOPLE = pl.DataFrame({"person": ["a", "b"], "group": [1, 2]})


def opened(home: Path, policy: dict[str, Any] = POLICY, series: str = "demo") -> Ledger:
    return Ledger.create_or_open(home, series=series, policy=policy)


def staged_in(ledger: Ledger) -> Path:
    staged = ledger.stage()
    (staged / "public" / "table.csv").write_text("age;sex\n1;f\n")
    (staged / "public" / "more").mkdir()
    (staged / "public" / "more" / "datapackage.json").write_text("{}")
    (staged / "private" / "certificate.json").write_text('{"holds": true}')
    ledger.write_memory(staged, "people", PEOPLE)
    return staged


def publish(ledger: Ledger) -> Record:
    record = ledger.record(staged_in(ledger), on=ledger.head(), facts={"rows": 1, "codes": {"age": [1, 2]}})
    ledger.reveal(record.number)
    return record


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def series(home: Path) -> Ledger:
    """Three releases."""
    ledger = opened(home)
    for _ in range(3):
        publish(ledger)
    return ledger


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- the good days


def test_a_release_from_stage_to_reveal(home: Path) -> None:
    assert not discover(home)
    ledger = opened(home)
    assert discover(home)
    assert ledger.head() == Head(0, "")
    assert ledger.policy is None
    assert ledger.records() == []

    staged = staged_in(ledger)
    record = ledger.record(staged, on=ledger.head(), facts={"rows": 1, "by age": {7: "text"}})
    assert staged.exists()
    assert not (home / "releases" / "0001").exists()
    assert not ledger.records()[0].revealed

    folder = ledger.reveal(1)
    assert folder == ledger.path(1) == home / "releases" / "0001"
    assert ledger.reveal(1) == folder
    assert list((home / "staging").iterdir()) == []

    (kept,) = Ledger.open(home).records()
    assert kept.revealed
    assert (kept.id, kept.number, kept.previous) == (record.id, 1, "")
    assert kept.facts == record.facts == {"rows": 1, "by age": {"7": "text"}}
    assert kept.manifest["public/table.csv"] == {
        "sha256": hashlib.sha256(b"age;sex\n1;f\n").hexdigest(),
        "size": 12,
    }
    assert set(kept.manifest) == {
        "public/table.csv",
        "public/more/datapackage.json",
        "private/certificate.json",
        "memory/people.parquet",
    }
    assert kept.made.endswith("+00:00")
    assert Ledger.open(home).policy == POLICY
    assert Ledger.open(home).series == "demo"
    assert_frame_equal(ledger.memory(1, "people"), PEOPLE)
    assert ledger.check() == []


def test_the_chain(series: Ledger) -> None:
    records = series.records()
    assert [record.previous for record in records] == ["", records[0].id, records[1].id]
    assert series.head() == records[2].head
    assert len({record.id for record in records}) == 3
    assert series.settle() == []
    assert series.check() == series.check([2]) == []


def test_permissions_do_not_depend_on_the_umask(home: Path) -> None:
    before = os.umask(0o000)
    try:
        publish(opened(home))
    finally:
        os.umask(before)
    release = home / "releases" / "0001"
    assert mode(home) == mode(release / "private") == mode(release / "memory") == 0o700
    assert mode(release / "public") == mode(release / "public" / "more") == 0o755
    assert mode(release / "public" / "table.csv") == 0o644
    assert mode(release / "private" / "certificate.json") == mode(release / "memory" / "people.parquet") == 0o600
    assert mode(home / "key") == mode(home / "ledger.sqlite") == 0o600


def test_the_key_is_random_and_stays(home: Path, tmp_path: Path) -> None:
    assert opened(home).key == opened(home).key == Ledger.open(home).key
    assert len(opened(home).key) == 32
    assert opened(tmp_path / "other").key != opened(home).key


def test_a_copied_home_is_the_same_series(series: Ledger, tmp_path: Path) -> None:
    shutil.copytree(series.home, tmp_path / "copy")
    copy = Ledger.open(tmp_path / "copy")
    assert copy.head() == series.head()
    assert copy.check() == []
    publish(copy)
    assert copy.head().number == 4
    assert series.head().number == 3


def test_discard_leaves_nothing(home: Path) -> None:
    ledger = opened(home)
    staged = staged_in(ledger)
    ledger.discard(staged)
    ledger.discard(staged)
    assert list((home / "staging").iterdir()) == []


def test_discard_keeps_what_is_recorded(home: Path) -> None:
    ledger = opened(home)
    staged = staged_in(ledger)
    ledger.record(staged, on=ledger.head(), facts={})
    ledger.discard(staged)
    assert Ledger.open(home).settle() == ["Release 1 was recorded but not yet revealed; it is revealed now."]
    assert ledger.check() == []


def test_check_reads_a_release_that_is_not_yet_revealed(home: Path) -> None:
    ledger = opened(home)
    staged = staged_in(ledger)
    ledger.record(staged, on=ledger.head(), facts={})
    assert ledger.check() == []
    assert_frame_equal(ledger.memory(1, "people"), PEOPLE)
    (staged / "public" / "table.csv").unlink()
    assert [fault.code for fault in ledger.check()] == ["R523"]


def test_bytes_are_on_the_disk_before_the_record_and_the_record_before_the_rename(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, steps = opened(home), []
    staged = staged_in(ledger)
    inside = list(staged.rglob("*"))
    sync, rename, connect = os.fsync, Path.rename, SqliteCatalog._connect

    def synced(handle: int) -> None:
        steps.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        sync(handle)

    def renamed(path: Path, target: Path) -> Path:
        steps.append("rename")
        return rename(path, target)

    def traced(connection: sqlite3.Connection) -> sqlite3.Connection:
        connection.set_trace_callback(lambda statement: steps.append("write") if statement == "COMMIT" else None)
        return connection

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    monkeypatch.setattr(SqliteCatalog, "_connect", lambda catalog: traced(connect(catalog)))
    ledger.reveal(ledger.record(staged, on=ledger.head(), facts={}).number)

    recorded = steps.index("write")
    assert {str(path) for path in [*inside, staged, staged.parent]} <= set(steps[:recorded])
    assert steps[recorded + 1 :] == ["rename", str(home / "releases"), str(home / "staging"), "write"]


def test_a_commit_survives_a_power_cut(home: Path) -> None:
    opened(home)
    with SqliteCatalog(home / "ledger.sqlite")._writing() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_lock_whose_name_is_gone_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, flock = tmp_path / "x.lock", fcntl.flock

    def removed_meanwhile(handle: int, how: int) -> None:
        path.unlink()
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", removed_meanwhile)
    assert take_lock(path, new=True) is None


def test_importing_the_ledger_is_quick() -> None:
    heavy = "'sqlalchemy', 'polars', 'numpy', 'pydantic'"
    code = f"import sys, reveil.ledger.ledger; print([name for name in ({heavy}) if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


# --- refusals


def test_policy_is_free_before_the_first_release_and_fixed_after(home: Path) -> None:
    opened(home, {"k": 2}, series="draft")
    early = opened(home, {"k": 3})
    publish(opened(home))
    with pytest.raises(InputError) as refusal:
        opened(home, {"guarantee": {"model": "k-anonymity", "k": 4, "l": [2]}}, series="other")
    assert [(fault.code, fault.message) for fault in refusal.value.faults] == [
        ("R502", 'columns.age: "quasi" -> (not set) (recorded -> given)'),
        ("R502", "guarantee.k: 5 -> 4 (recorded -> given)"),
        ("R502", "guarantee.l: (not set) -> [2] (recorded -> given)"),
        ("R502", 'series.name: "demo" -> "other" (recorded -> given)'),
    ]
    # A ledger opened before another process fixed its policy cannot go on with its own.
    with pytest.raises(InputError, match=r"k: \(not set\) -> 3|k: 5"):
        publish(early)
    assert opened(home).head().number == 1
    assert list((home / "staging").iterdir()) == []


def test_conflict_names_both_heads_and_leaves_nothing(series: Ledger) -> None:
    stale, head = series.records()[1].head, series.head()
    with pytest.raises(ConflictError) as refusal:
        series.record(staged_in(series), on=stale, facts={})
    assert stale.id[:12] in str(refusal.value)
    assert head.id[:12] in str(refusal.value)
    assert series.head() == head
    assert list((series.home / "staging").iterdir()) == []


def test_nothing_there(home: Path) -> None:
    with pytest.raises(InputError, match=r"R501.*no series"):
        Ledger.open(home)
    assert not home.exists()


@pytest.mark.parametrize("call", [opened, Ledger.open])
def test_home_is_a_file(call: Callable[[Path], Ledger], home: Path) -> None:
    home.write_text("a table")
    with pytest.raises(InputError, match=r"R501.*a file, not a folder"):
        call(home)
    with pytest.raises(InputError, match=r"R50[13]"):
        call(home / "inside")
    assert home.read_text() == "a table"


def test_home_with_other_files_is_not_taken_over(home: Path) -> None:
    home.mkdir(mode=0o755)
    (home / "thesis.docx").write_text("")
    with pytest.raises(InputError, match=r"R501.*thesis\.docx"):
        opened(home)
    assert mode(home) == 0o755


@contextmanager
def as_nobody() -> Iterator[Path]:
    """A folder that may be read but not written; root is let past permissions, so it steps down."""
    with tempfile.TemporaryDirectory() as name:
        place, root = Path(name), os.geteuid() == 0
        place.chmod(0o755)
        if root:
            os.seteuid(65534)
        else:
            place.chmod(0o555)
        try:
            yield place
        finally:
            if root:
                os.seteuid(0)
            place.chmod(0o755)


def test_unwritable_home(series: Ledger) -> None:
    with as_nobody() as place, pytest.raises(InputError, match=r"R503.*Permission denied"):
        opened(place / "home")


def test_series_that_may_be_read_but_not_written() -> None:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name) / "home"
        publish(opened(home))
        for path in [home.parent, home, *home.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            with as_nobody():
                ledger = opened(home)
                assert ledger.settle() == []
                assert ledger.check() == []
                with pytest.raises(InputError, match=r"R503.*Permission denied"):
                    ledger.stage()
        finally:
            for path in [home.parent, home, *(path for path in home.rglob("*") if path.is_dir())]:
                path.chmod(0o755)


def test_unknown_release_or_memory(series: Ledger) -> None:
    for ask in (series.path, series.reveal, lambda number: series.check([number])):
        with pytest.raises(InputError, match=r"R510.*no release 9.*1 to 3"):
            ask(9)
    with pytest.raises(InputError, match=r"R510.*no table 'groups'.*people"):
        series.memory(1, "groups")
    with pytest.raises(InputError, match="R511"):
        series.memory(1, "../private/x")


def test_staging_of_somebody_else(series: Ledger, tmp_path: Path) -> None:
    other = opened(series.home)
    staged = other.stage()
    for folder in (staged, tmp_path):
        with pytest.raises(InputError, match="R511"):
            series.record(folder, on=series.head(), facts={})
    series.discard(staged)
    assert staged.exists()


@pytest.mark.parametrize("strange", ["loose.csv", "extra/table.csv", "public/link"])
def test_only_plain_files_in_the_three_folders(strange: str, series: Ledger) -> None:
    staged = staged_in(series)
    (staged / strange).parent.mkdir(exist_ok=True)
    if strange == "public/link":
        (staged / strange).symlink_to(series.home / "key")
    else:
        (staged / strange).write_text("x")
    with pytest.raises(InputError, match="R511"):
        series.record(staged, on=series.head(), facts={})
    assert not staged.exists()
    assert series.head().number == 3


def test_first_release_needs_a_policy(home: Path) -> None:
    opened(home)
    with pytest.raises(InputError, match=r"R511.*policy"):
        publish(Ledger.open(home))


def test_busy_ledger(series: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "WAIT_SECONDS", 0.1)
    staged, head = staged_in(series), series.head()
    with closing(sqlite3.connect(series.home / "ledger.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match="R512"):
            series.record(staged, on=head, facts={})
    assert not staged.exists()
    assert publish(series).number == 4
