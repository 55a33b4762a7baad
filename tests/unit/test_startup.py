"""Commands load what they use and nothing else; opening a series does nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from reveil.ledger.sqlite import SqliteCatalog
from reveil.publish import open_series

POLICY = """
[series]
name = "start"
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
"""
HEAVY = (  # what takes time to load
    *("jinja2", "llvmlite", "numba", "numpy", "ortools", "pandas", "polars", "pyarrow", "rich"),
    *("scipy", "scipy.linalg", "scipy.sparse", "sqlalchemy"),
)
NEEDED = {
    "history": set(),
    "publish": {"jinja2", "llvmlite", "numba", "numpy", "polars", "scipy"},  # Numba looks for SciPy, and only that
}
RUN = """
import json, sys
from reveil.__main__ import main
try:
    main()
finally:
    print(json.dumps([name for name in {heavy} if name in sys.modules]), file=sys.stderr)
"""


def people(rows: int = 40) -> pl.DataFrame:
    ills = ["flu", "cold", "gout", "asthma"]
    return pl.DataFrame(
        {
            "id": [f"p{i}" for i in range(rows)],
            "age": [20 + i % 60 for i in range(rows)],
            "ill": [ills[i % 4] for i in range(rows)],
        }
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy, a table, and a series with one release."""
    folder = tmp_path_factory.mktemp("startup")
    (folder / "reveil.toml").write_text(POLICY)
    people().write_csv(folder / "table.csv")
    open_series(folder / "reveil.toml").publish(folder / "table.csv", seed=1)
    return folder


COMMANDS = (["history"], ["publish", "table.csv", "--accept", "same-table"])


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_command_loads_what_it_uses(words: list[str], place: Path) -> None:
    command = [sys.executable, "-c", RUN.format(heavy=HEAVY), *words]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True)
    assert set(json.loads(done.stderr.splitlines()[-1])) <= NEEDED[words[0]]


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {str(p): (p.stat().st_mtime_ns, p.read_bytes()) for p in sorted(folder.rglob("*")) if p.is_file()}


def test_opening_a_series_changes_nothing_and_publishing_settles(place: Path, tmp_path: Path) -> None:
    """What a crash left is finished when somebody publishes, or asks for it."""
    home = tmp_path / "home"
    series = open_series(place / "reveil.toml", home)
    series.publish(people(), seed=1)
    staged = series.ledger.stage()  # of a ledger that is gone before the next one looks
    del series
    before = everything(home)
    again = open_series(place / "reveil.toml", home)
    assert [release.number for release in again.releases] == [1]
    assert again.history().head == 1
    assert everything(home) == before
    assert staged.exists()
    again.publish(people(41), seed=2)
    assert not staged.exists()
    assert again.settle() == []


def test_releases_are_read_once(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    series = open_series(place / "reveil.toml", tmp_path / "home")
    series.publish(people(), seed=1)
    (first,) = series.releases
    series.publish(people(41), seed=2)
    assert [release.number for release in series.releases] == [1, 2]
    assert series.releases[0] is first


def test_publishing_looks_into_the_catalog_four_times(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To open it, for all it knows, to record, and to note that the release is revealed; whatever the past is."""
    for rows in (40, 41, 42):
        open_series(place / "reveil.toml", tmp_path / "home").publish(people(rows), seed=rows)
    opened, connect = [], SqliteCatalog._connect
    monkeypatch.setattr(SqliteCatalog, "_connect", lambda catalog: opened.append(1) or connect(catalog))
    open_series(place / "reveil.toml", tmp_path / "home").publish(people(43), seed=43)
    assert len(opened) == 4
