"""How long commands take from start to end, as ratios of the time of `python -c pass` in the same run.

    reveil bench startup [RUNS [ROWS]]

Medians of RUNS (10) on an idle machine, with everything compiled and bytecode written: each command runs once before.
`history` looks at two releases of ROWS (300) people; `publish` adds the third. Then CPU seconds of `Series.publish` in
one process by the number of releases before, for a promise about each table and two about all of them.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

from reveil.publish import open_series

POLICY = """
[series]
name = "startup"
[columns]
id = "identifier"
age = "quasi"
sex = "quasi"
zip = "quasi"
ill = "sensitive"
[values]
change = "never"
[guarantee]
model = "compromise-safety"
m = 3
[method]
infeasible = "withhold"
"""
ILLS = ("flu", "cold", "gout", "asthma", "none", "angina", "cancer")
PROMISES: dict[str, dict[str, Any]] = {
    "k-anonymity": {"guarantee": {"k": 3}},
    "compromise-safety": {"values": {"change": "never"}, "guarantee": {"model": "compromise-safety", "m": 3}},
    "global": {
        "values": {"change": "freely"},
        "guarantee": {"model": "global", "l": 2, "strategy": "telescoping", "protect": ["cancer"]},
    },
}


def people(rows: int, first: int = 0) -> pl.DataFrame:
    """Persons from this number on; each has the same values in every table."""
    numbers = range(first, first + rows)
    return pl.DataFrame(
        {
            "id": [f"p{i}" for i in numbers],
            "age": [18 + i * 37 % 70 for i in numbers],
            "sex": ["fm"[i * 7 % 2] for i in numbers],
            "zip": [10_000 + i * 61 % 97 for i in numbers],
            "ill": ["cancer" if i % 30 == 0 else ILLS[i * 5 % 6] for i in numbers],
        }
    )


def wall(words: list[str], folder: Path, runs: int) -> float:
    """Median seconds of a command; what it leaves behind is taken away each time."""
    took = []
    for _ in range(runs + 1):
        shutil.rmtree(folder / ".reveil", ignore_errors=True)
        shutil.copytree(folder / "begun", folder / ".reveil")
        begin = time.perf_counter()
        subprocess.run([sys.executable, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL, env=writing())
        took.append(time.perf_counter() - begin)
    return statistics.median(took[1:])


def writing() -> dict[str, str]:
    """The environment, with bytecode being written."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def commands(runs: int, rows: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "reveil.toml").write_text(POLICY)
        people(rows).write_csv(folder / "table.csv")
        series = open_series(folder / "reveil.toml", folder / "begun")
        for _ in range(2):
            series.publish(folder / "table.csv", accept=["same-table"])
        nothing = wall(["-c", "pass"], folder, runs)
        print(f"python -c pass             {nothing:6.3f} s")
        for words in (["--help"], ["history"], ["publish", "table.csv", "-q", "--accept", "same-table"]):
            took = wall(["-m", "reveil", *words], folder, runs)
            print(f"reveil {words[0]:<20}{took:6.3f} s  {took / nothing:4.0f}x")


def growth(rows: int, upto: tuple[int, ...]) -> None:
    print(f"\nCPU seconds to publish one more release of {rows} people, after so many")
    print(f"{'':20}" + "".join(f"{before:>8}" for before in upto))
    for name, promise in PROMISES.items():
        columns = {"id": "identifier", "age": "quasi", "sex": "quasi", "zip": "drop", "ill": "sensitive"}
        policy = {"columns": columns, "method": {"infeasible": "withhold"}, **promise}
        with tempfile.TemporaryDirectory() as place:
            series, took = open_series(policy, Path(place) / "home"), {}
            for number in range(max(upto) + 1):
                begin = time.process_time()
                series.publish(people(rows, number * (rows // 3)))
                took[number] = time.process_time() - begin
        print(f"{name:20}" + "".join(f"{took[before]:8.3f}" for before in upto))


def main(runs: int = 10, rows: int = 300) -> None:
    commands(runs, rows)
    growth(min(60, rows), (2, 49, 199) if runs > 1 else (1, 2))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
