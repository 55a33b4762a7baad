"""Every cell of the catalog edited, every row deleted, every file of a home flipped or cut: named, or harmless.

Each case is a copy of a small home, published on in this process: after the checks no kernel sees damaged input.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import reveil
from reveil.base.errors import InputError, ReveilError, TamperedError
from support import cli

POLICY: dict[str, Any] = {
    "columns": {"id": "identifier", "age": "quasi", "ill": "sensitive"},
    "values": {"change": "never"},
    "guarantee": {"model": "compromise-safety", "m": 4, "compromised": 1},
}
PEOPLE = pl.DataFrame({"id": range(24), "age": range(20, 44), "ill": [f"ill {n % 6}" for n in range(24)]})
COLUMNS = {
    "meta": ("name", "value"),
    "series": ("key", "name", "policy", "fingerprint"),
    "releases": ("series", "number", "id", "previous", "made", "facts", "manifest", "token", "state"),
}
SAME = ("same-table",)  # it is what stays alike that is tested here
EDITS = ("NULL", "''", "'x'", "X'FF00'", "'{}'", "7", "CAST(COLUMN AS TEXT) || 'x'")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("series") / "home"
    series = reveil.open_series(POLICY, home=place)
    for _ in range(2):
        series.publish(PEOPLE, seed=1, accept=SAME)
    return place


def go_on(place: Path) -> None:
    """Publish: everything is as it should be afterwards, or it is refused and the refusal names something."""
    try:
        release = reveil.open_series(POLICY, home=place).publish(PEOPLE, seed=1, accept=SAME)
    except ReveilError as error:
        assert isinstance(error, (TamperedError, InputError))
        assert all(fault.code.startswith("R5") and fault.where and fault.remedy for fault in error.faults)
    else:
        assert release.number == 3
        assert release.certificate.counts["came back"] == 24


@pytest.mark.parametrize(("table", "column"), [(table, column) for table, names in COLUMNS.items() for column in names])
def test_every_cell_of_the_catalog(table: str, column: str, home: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(home / "ledger.sqlite")) as base:
        rows = [row for (row,) in base.execute(f"SELECT rowid FROM {table}")]
    for row in rows:
        for number, edit in enumerate(EDITS):
            place = tmp_path / f"{row}-{number}"
            shutil.copytree(home, place)
            try:
                with closing(sqlite3.connect(place / "ledger.sqlite")) as base, base:
                    base.execute(
                        f"UPDATE {table} SET {column} = {edit.replace('COLUMN', column)} WHERE rowid = ?", (row,)
                    )
            except sqlite3.IntegrityError:
                continue
            go_on(place)


@pytest.mark.parametrize("table", COLUMNS)
def test_every_row_of_the_catalog(table: str, home: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(home / "ledger.sqlite")) as base:
        rows = [row for (row,) in base.execute(f"SELECT rowid FROM {table}")]
    for row in rows:
        place = tmp_path / str(row)
        shutil.copytree(home, place)
        with closing(sqlite3.connect(place / "ledger.sqlite")) as base, base:
            base.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))
        with pytest.raises(ReveilError, match="R5"):
            reveil.open_series(POLICY, home=place).publish(PEOPLE, accept=SAME)


def test_every_file_of_the_home(home: Path, tmp_path: Path) -> None:
    for number, file in enumerate(path for path in sorted(home.rglob("*")) if path.is_file()):
        data = file.read_bytes()
        for kind, damaged in (("cut", data[: len(data) // 2]), ("empty", b""), ("flip", flipped(data))):
            place = tmp_path / f"{number}-{kind}"
            shutil.copytree(home, place)
            (place / file.relative_to(home)).write_bytes(damaged)
            go_on(place)


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]


def test_an_edited_promise_is_noticed(home: Path, tmp_path: Path) -> None:
    place = tmp_path / "home"
    shutil.copytree(home, place)
    weaker = {**POLICY, "guarantee": {**POLICY["guarantee"], "m": 3}}
    with closing(sqlite3.connect(place / "ledger.sqlite")) as base, base:
        base.execute("""UPDATE series SET policy = replace(policy, '"m":4', '"m":3')""")
    with pytest.raises(TamperedError, match="R521"):
        reveil.open_series(weaker, home=place).publish(PEOPLE, accept=SAME)


def test_a_restored_or_forked_home_is_refused_by_its_anchor(tmp_path: Path) -> None:
    policy = {**POLICY, "output": {"anchor": str(tmp_path / "seen.json")}}
    home, copy = tmp_path / "home", tmp_path / "copy"
    reveil.open_series(policy, home=home).publish(PEOPLE, accept=SAME)
    shutil.copytree(home, copy)
    reveil.open_series(policy, home=home).publish(PEOPLE, accept=SAME)
    with pytest.raises(TamperedError, match="R528"):
        reveil.open_series(policy, home=copy).publish(PEOPLE, accept=SAME)
    with pytest.raises(TamperedError, match="R528"):
        reveil.open_series(policy, home=tmp_path / "new").publish(PEOPLE, accept=SAME)
    assert reveil.open_series(policy, home=home).publish(PEOPLE, accept=SAME).number == 3
    (tmp_path / "seen.json").unlink()
    with pytest.raises(TamperedError, match="R528"):
        reveil.open_series(policy, home=home).publish(PEOPLE, accept=SAME)


@pytest.mark.parametrize("done", ["hand over", "discard"])
def test_the_anchor_knows_what_was_done_last(tmp_path: Path, done: str) -> None:
    policy = {**POLICY, "output": {"anchor": str(tmp_path / "seen.json")}}
    home, copy = tmp_path / "home", tmp_path / "copy"
    series = reveil.open_series(policy, home=home)
    series.publish(PEOPLE, accept=SAME)
    shutil.copytree(home, copy)
    if done == "hand over":
        series.hand_over(tmp_path / "out")
    else:
        series.discard(1, reason="wrong table", no_copy_left=True)
    with pytest.raises(TamperedError, match=r"R528.*of which this home knows nothing"):
        reveil.open_series(policy, home=copy).publish(PEOPLE, accept=SAME)
    assert reveil.open_series(policy, home=home).publish(PEOPLE, accept=SAME).number == 1 + (done == "hand over")


def test_readers_notice_a_series_continued_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("reveil.toml").write_text(
        '[columns]\nid = "identifier"\nage = "quasi"\nill = "sensitive"\n[values]\nchange = "never"\n'
        '[guarantee]\nmodel = "compromise-safety"\nm = 4\ncompromised = 1\n'
    )
    one = reveil.open_series(POLICY, home="home").publish(PEOPLE, accept=SAME).path
    shutil.copytree("home", "copy")
    two = reveil.open_series(POLICY, home="home").publish(PEOPLE, accept=SAME).path
    other = reveil.open_series(POLICY, home="copy").publish(PEOPLE, accept=SAME).path
    three = reveil.open_series(POLICY, home="copy").publish(PEOPLE, accept=SAME).path
    assert "R530" not in cli("verify", str(one), str(two))[2]
    code, _, err = cli("verify", str(two), str(other))
    assert code == 1 and "R530" in err and "continued twice" in err
    assert "R530" in cli("verify", str(two), str(three))[2]
