"""Input that attacks: passwords, queries that write, escape sequences, formulas, and options that would do nothing."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reveil
from reveil.base.addresses import masked
from reveil.base.errors import InputError
from reveil.published.reader import read_release
from reveil.table.read import read_table
from reveil.table.text_files import ReadOptions
from reveil.verify import reading
from reveil.write.emit import write_table
from support import cli

TOML = '[columns]\nid = "identifier"\nage = "quasi"\nill = "sensitive"\n[guarantee]\nk = 2\n'
PEOPLE = pl.DataFrame({"id": range(8), "age": range(20, 28), "ill": list("aabbccdd")})


# --- passwords


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:S3cret@127.0.0.1:1/db",
        "postgresql://ann:S3@S3cret@127.0.0.1:1/db",
        "postgresql://ann:S3%40S3cret@127.0.0.1:1/db",
        "postgresql://ann:S3?S3cret@127.0.0.1:1/db",
        "postgresql://ann:S3/S3cret@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?user=ann&password=S3cret",
        "postgresql://127.0.0.1:1/db?user=ann&PASSWORD=S3cret&connect_timeout=1",
        "postgresql://127.0.0.1:1/db?sslpassword=S3cret&user=ann",
        "mysql://ann:S3cret@host/db",
        "postgresql+odd://ann:S3cret@host/db",
    ],
)
def test_no_password_is_ever_said(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("reveil.toml").write_text(TOML + '[input]\nquery = "SELECT 1"\n')
    assert "S3" not in masked(f"reveil publish {address} --seed 3")
    for command in ("publish", "plan", "anonymize --out out", "publish --json"):
        code, out, err = cli(*command.split(), address)
        assert code == 2
        assert "S3" not in out + err
    code, out, err = cli("init", address, "--policy", "new.toml")
    assert code == 2 and "S3" not in out + err


def test_suggested_commands_and_policies_hold_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("reveil.table.read._from_database", lambda source, options: PEOPLE)
    address = "postgresql://ann:S3cret@host/db?password=S3cret"
    code, out, _ = cli("init", address)
    assert code == 0
    assert "S3cret" not in out + Path("reveil.toml").read_text()
    Path("reveil.toml").write_text(TOML)
    code, out, _ = cli("plan", address)
    assert code == 0
    assert "reveil publish 'postgresql://ann:***@host/db?password=***'" in out  # quoted: a shell would match * and ?


def test_an_unescaped_at_is_explained() -> None:
    with pytest.raises(InputError, match="%40") as refusal:
        read_table("postgresql://ann:p@ss@host/db", ReadOptions(query="SELECT 1"))
    assert "PGPASSWORD" in refusal.value.faults[0].remedy


# --- queries that are not reading


@pytest.mark.parametrize(
    "query",
    [
        "ATTACH 'new.db' AS other",
        "SELECT 1; DELETE FROM people",
        "SELECT 1; ATTACH 'new.db' AS other",
        "CREATE TEMP TABLE t AS SELECT 1 AS a",
        "CREATE TABLE t AS SELECT 1 AS a",
        "INSERT INTO people VALUES (9) RETURNING id",
        "DELETE FROM people RETURNING id",
        "VACUUM INTO 'new.db'",
        "PRAGMA journal_mode = WAL",
        "SELECT load_extension('x')",
        "SELECT writefile('new.db', 'x')",
    ],
)
def test_sqlite_is_only_read(query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with sqlite3.connect("people.db") as base:
        base.execute("CREATE TABLE people (id INTEGER)")
        base.execute("INSERT INTO people VALUES (1)")
    base.close()
    before = Path("people.db").read_bytes()
    with pytest.raises(InputError, match="R112"):
        read_table("sqlite:///people.db", ReadOptions(query=query))
    assert Path("people.db").read_bytes() == before
    assert [path.name for path in Path().iterdir()] == ["people.db"]


def test_queries_that_read_are_free(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "people.db") as base:
        base.execute("CREATE TABLE people (id INTEGER, name TEXT)")
        base.execute("CREATE VIEW named AS SELECT upper(name) AS name FROM people")
        base.executemany("INSERT INTO people VALUES (?, ?)", [(1, "a"), (2, "b;c")])
    base.close()
    query = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2) "
        "SELECT count(*) AS n, max(name) AS name, sum(i) AS i FROM named, n WHERE name LIKE '%;%' ;"
    )
    assert read_table(f"sqlite:///{tmp_path}/people.db", ReadOptions(query=query)).rows() == [(2, "B;C", 3)]


# --- escape sequences

NASTY = "\x1b[2J\x1b]0;owned\x07\r\x9b31m\u202eevil\nThe guarantee holds"


def harmless(text: str) -> bool:
    return not any(c in text for c in "\x1b\x07\r\x9b\u202e") and "\nThe guarantee" not in text


def test_nothing_that_a_terminal_obeys_reaches_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("reveil.toml").write_text(TOML)
    PEOPLE.rename({"ill": f"ill{NASTY}"}).write_parquet("names.parquet")
    PEOPLE.with_columns(age=pl.lit(NASTY)).write_parquet("cells.parquet")
    Path("number.toml").write_text(TOML.replace('age = "quasi"', 'age = { role = "quasi", type = "number" }'))
    calls = [
        ("publish", "names.parquet"),
        ("publish", f"no{NASTY}.csv"),
        ("init", "names.parquet", "--policy", "new.toml"),
        ("publish", "cells.parquet", "--policy", "number.toml"),
        ("show", "--home", f"h{NASTY}"),
        ("publish", "names.parquet", "--policy", f"p{NASTY}.toml"),
        ("explain", NASTY),
    ]
    for call in calls:
        code, out, err = cli(*call)
        assert harmless(out + err), (call, out, err)
        code, out, err = cli(*call, "--json") if call[0] != "explain" else (0, "{}", "")
        assert harmless(out + err)
        if code == 2:
            assert json.loads(out)["faults"]


def test_cells_of_results_are_spelled_out() -> None:
    from reveil.cli import terminal

    text = terminal.table((f"a{NASTY}", "b"), [(NASTY, 1)])
    assert harmless(text)
    assert len(text.splitlines()) == 2


# --- formulas

TEXTS = st.text(alphabet="=+-@\t\r'a1.,e\"\n é", max_size=6)


@given(cells=st.lists(TEXTS, min_size=1, max_size=8), name=TEXTS.filter(lambda name: name not in ("", "n")))
def test_formulas_are_escaped_and_read_back(
    tmp_path_factory: pytest.TempPathFactory, cells: list[str], name: str
) -> None:
    folder = tmp_path_factory.mktemp("public")
    table = pl.DataFrame({name: cells, "n": [-number for number in range(len(cells))]})
    policy = reveil.load_policy({"columns": {name: "quasi"}, "guarantee": {"k": 2}})
    from reveil.write.emit import emit

    emit({"table": table}, None, policy, folder)
    with (folder / "table.csv").open(encoding="utf-8", newline="") as file:
        written = list(csv.reader(file))
    for cell in (row[0] for row in written):
        assert not cell.startswith(("=", "@", "\t", "\r"))
        assert not cell.startswith(("+", "-")) or is_number(cell)
    assert [row[1] for row in written[1:]] == [str(-number) for number in range(len(cells))]
    expected = table.with_columns(pl.col(name).replace("", None))
    assert read_release(folder).table.equals(expected)
    package = json.loads((folder / "datapackage.json").read_bytes())
    assert package["resources"][0]["formulaEscape"] == "'"
    assert reading.typed(reading.read_published(folder / "table.csv"), package).equals(expected)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("publish", ["generalized", "anatomy"])
def test_formulas_are_published_escaped_and_verified(publish: str, tmp_path: Path) -> None:
    ills = ["=cmd()", "+sum", "-1", "@x", "'=y", "-", "=cmd()", "z"]
    people = PEOPLE.with_columns(ill=pl.Series(ills), town=pl.Series(["=a", "b"] * 4))
    policy: dict[str, Any] = {
        "columns": {"id": "identifier", "age": "quasi", "town": "quasi", "ill": "sensitive"},
        "guarantee": {"model": "l-diversity", "l": 2},
        "method": {"publish": publish, **({"people": "exact"} if publish == "anatomy" else {})},
    }
    release = reveil.anonymize(people, policy, out=tmp_path / "out")
    assert release.certificate.holds
    everything = "".join(path.read_text() for path in (tmp_path / "out" / "public").glob("*.csv"))
    assert not any(f"{start}{text}" in everything for start in ",\n" for text in ("=cmd", "+sum", "@x", "-\n", "=a"))
    assert "'=cmd()" in everything and "''=y" in everything and "'-1" not in everything
    read = read_release(tmp_path / "out" / "public")
    found = read.table["ill"] if read.values is None else read.values["ill"]["ill"]
    assert set(found) == set(ills)


def test_releases_without_the_mark_are_read_as_they_are(tmp_path: Path) -> None:
    """Earlier versions escaped nothing."""
    (tmp_path / "table.csv").write_text("ill\n'=x\n")
    resource = {"name": "table", "path": "table.csv", "schema": {"fields": [{"name": "ill", "type": "string"}]}}
    (tmp_path / "datapackage.json").write_text(json.dumps({"resources": [resource]}))
    assert read_release(tmp_path).table["ill"].to_list() == ["'=x"]


def test_parquet_holds_texts_as_they_are(tmp_path: Path) -> None:
    write_table(pl.DataFrame({"a": ["=x"]}), tmp_path / "t.parquet")
    assert pl.read_parquet(tmp_path / "t.parquet")["a"].to_list() == ["=x"]


# --- options that would do nothing


@pytest.mark.parametrize(("section", "key"), [("audit", {"gate": True}), ("output", {"anchor": "seen.json"})])
def test_options_that_would_do_nothing_are_refused(section: str, key: dict[str, Any]) -> None:
    columns = {"id": "identifier", "age": "quasi", "ill": "sensitive"}
    with pytest.raises(InputError, match=rf"R225 \[{section}\] {next(iter(key))}"):
        reveil.anonymize(PEOPLE, {"columns": columns, "guarantee": {"k": 2}, section: key})


def test_what_only_series_use_is_no_key_of_a_perturbation() -> None:
    step = {"method": "microaggregate", "columns": ["age"], "k": 3}
    policy = {"columns": {"id": "identifier", "age": "quasi", "ill": "drop"}, "perturb": [step]}
    for section in ({"output": {"anchor": "x"}}, {"input": {"identifiers": "normalise"}}):
        with pytest.raises(InputError, match="is not a key of the policy"):
            reveil.perturb(PEOPLE, {**policy, **section})
