"""Backups as docs/operating.md has them: the folder of a home, or a dump of the database and then the folder."""

from __future__ import annotations

import secrets
import shutil
import subprocess
from pathlib import Path

import pgserver
import polars as pl
import psycopg
import pytest

import reveil
from reveil.base.errors import InputError, TamperedError
from reveil.history.recorded import history_of
from reveil.jobs.amending_specs import CorrectSpec, EndSpec, EraseSpec, RotateSpec
from reveil.ledger.ledger import Ledger
from reveil.ledger.moving import move
from reveil.ledger.postgres import PostgresCatalog
from reveil.publish import Series

POLICY = """
[series]
name = "office"
[columns]
id = "identifier"
age = "quasi"
ill = "sensitive"
[values]
change = "never"
[guarantee]
model = "compromise-safety"
m = 3
[method]
infeasible = "withhold"
[output]
anchor = "{anchor}"
"""
PROGRAMS = Path(pgserver.__file__).parent / "pginstall" / "bin"


def people(release: int, **values: str) -> pl.DataFrame:
    names = [f"p{i}" for i in range(release, release + 24)]
    held = [values.get(name, "abcd"[int(name[1:]) % 4]) for name in names]
    return pl.DataFrame({"id": names, "age": [20 + i for i in range(24)], "ill": held})


@pytest.fixture
def series(tmp_path: Path) -> Series:
    folder = tmp_path / "series"
    folder.mkdir()
    (folder / "reveil.toml").write_text(POLICY.format(anchor=tmp_path / "anchor.json"))
    series = reveil.open_series(folder / "reveil.toml")
    series.publish(people(1))
    return series


def database(server: str) -> tuple[str, str]:
    """A new database: its address, and its name."""
    name = f"office_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.replace("/postgres?", f"/{name}?").replace(":@", "@"), name


def opened(series: Series) -> Series:
    return reveil.open_series(series.home.parent / "reveil.toml")


def whole(series: Series, releases: int) -> None:
    again = opened(series)
    assert again.ledger.check() == []
    found = again.verify()
    assert len(found) == releases
    assert all(one.holds for one in found.values())  # type: ignore[union-attr]


def test_a_folder_that_was_copied_is_a_backup(series: Series, tmp_path: Path) -> None:
    EraseSpec(series.home.parent / "reveil.toml", ["p5"], sure=True).run()
    shutil.copytree(series.home, tmp_path / "backup")
    shutil.rmtree(series.home)
    shutil.copytree(tmp_path / "backup", series.home)
    whole(series, 1)
    opened(series).publish(people(6))
    whole(series, 2)
    shutil.rmtree(series.home)
    shutil.copytree(tmp_path / "backup", series.home)
    with pytest.raises(TamperedError, match="R528"):  # it is older than what was published: the anchor knows
        opened(series).publish(people(7))


def test_a_dump_and_then_the_folder_are_a_backup(series: Series, tmp_path: Path, postgres: str) -> None:
    """And what is done to a series years later works there."""
    policy, (address, name) = series.home.parent / "reveil.toml", database(postgres)
    move(series.home, address)
    CorrectSpec(policy, people(1, p7="z"), sure=True).run()
    EraseSpec(policy, ["p5"], sure=True).run()
    dump = subprocess.run([PROGRAMS / "pg_dump", address], capture_output=True, check=True).stdout
    shutil.copytree(series.home, tmp_path / "backup")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name}")
        connection.execute(f"CREATE DATABASE {name}")
    shutil.rmtree(series.home)
    with pytest.raises(InputError):
        Ledger.open(series.home)
    shutil.copytree(tmp_path / "backup", series.home)
    subprocess.run([PROGRAMS / "psql", "-q", address], input=dump, capture_output=True, check=True)
    whole(series, 1)
    RotateSpec(policy, [people(1)]).run()
    assert opened(series).publish(people(6, p7="z")).number == 2
    past = history_of(opened(series).ledger)
    assert (past.corrections.height, past.erased.height) == (1, 1)
    EndSpec(policy, destroy_key=True, sure=True).run()
    with pytest.raises(InputError, match="R550"):
        opened(series).publish(people(7, p7="z"))
    whole(series, 2)


def test_a_database_of_the_version_before_is_read_and_rewritten(series: Series, postgres: str) -> None:
    address, _ = database(postgres)
    move(series.home, address)

    def layout(to: str = "") -> str:
        with psycopg.connect(address, autocommit=True) as connection:
            if to:
                connection.execute("UPDATE reveil.meta SET value = %s", (to,))
            return str(connection.execute("SELECT value FROM reveil.meta").fetchone()[0])  # type: ignore[index]

    newest = layout()
    layout("4")
    whole(series, 1)
    assert layout() == "4"  # looking back changes nothing
    opened(series).publish(people(6))
    assert layout() == newest
    layout("3")
    with pytest.raises(TamperedError):
        PostgresCatalog(address).snapshot()
    layout("99")
    with pytest.raises(InputError, match=r"R505.*layout 99"):
        PostgresCatalog(address).snapshot()
