"""One release at once, in blocks and on Spark, side by side: time, processor time, peak of memory, scratch and loss.

    reveil bench scale -- --rows 1000000 5000000 --memory 4GB --engines whole blocks spark

The table is `single.py`'s census: eight quasi-identifiers of census sizes and 50 sensitive values, k = 10 and l = 3,
relaxed cuts, written as Parquet. Each release is made by a process of its own, from the file to the verified files, so
that peaks do not add up. Spark is `local[2]`, or what `--master` names: processor time and memory are those of all its
processes on this machine, and of the driver's Python by itself.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

PART = 5_000_000  # rows of a file of the table
HEADINGS = ("rows", "engine", "wall s", "CPU s", "peak GB", "driver GB", "scratch bytes / row", "NCP", "loss / whole")
HEADINGS += ("CPU / whole", "us / (row log rows)")
TICK = os.sysconf("SC_CLK_TCK")


def write_table(rows: int, folder: Path) -> dict[str, Any]:
    """The table, in files of a few million rows, and its policy."""
    from single import census

    columns: dict[str, Any] = {}
    for number, first in enumerate(range(0, rows, PART)):
        table, policy = census(min(PART, rows - first))
        columns = policy["columns"]
        if number:  # other rows in each file: every column is moved round by itself
            rng = np.random.default_rng(number)
            table = table.select(pl.col(name).shuffle(seed=int(rng.integers(1 << 31))) for name in table.columns)
        table.write_parquet(folder / f"{number:04}.parquet")
    return {"columns": columns, "guarantee": {"model": "l-diversity", "k": 10, "l": 3}, "output": {"format": "parquet"}}


def measure(table: str, out: str, policy: str, engine: str, memory: str, master: str) -> None:
    """One release, in this process; what it took as JSON."""
    import reveil

    began, watched = time.perf_counter(), Watched(Path(out).parent)
    given = {"blocks": {"memory": memory}, "spark": {"master": master}}.get(engine, {})
    release = reveil.anonymize(table, json.loads(policy), seed=1, out=out, engine=engine, **given)
    loss = json.loads((Path(out) / "private" / "plan.json").read_text(encoding="utf-8"))["loss"]["mean_ncp"]
    watched.look()
    taken = time.perf_counter() - began, sum(watched.ticks.values()) / TICK
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # kilobytes on Linux
    peak = max(own, watched.memory / 1e9)
    print(json.dumps([*taken, peak, own, watched.room, loss, release.certificate.holds]))


class Watched:
    """What this process and all that it has begun take, looked at five times a second.

    Scratch: the largest size of the folder of temporary files. Memory: the largest sum over processes of what is
    theirs, with their parts of what they share. Time: of each process, as long as it lived.
    """

    def __init__(self, beside: Path) -> None:
        self.folder, self.room, self.memory = Path(tempfile.mkdtemp(dir=beside)), 0, 0
        self.ticks: dict[int, int] = {}
        tempfile.tempdir = os.environ["TMPDIR"] = os.environ["SPARK_LOCAL_DIRS"] = str(self.folder)
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        while True:
            self.look()
            time.sleep(0.2)

    def look(self) -> None:
        sizes, memory = [], 0
        for file in self.folder.rglob("*"):
            with suppress(OSError):  # gone already
                sizes.append(file.stat().st_size)
        for process in family():
            with suppress(OSError, ValueError):
                fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
                self.ticks[process] = int(fields[11]) + int(fields[12])
                rollup = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii")
                memory += sum(1024 * int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
        self.room, self.memory = max(self.room, sum(sizes)), max(self.memory, memory)


def family() -> list[int]:
    """This process and its descendants."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            parents[int(folder.name)] = int((folder / "stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])
    found = [os.getpid()]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found


def in_own_process(table: Path, out: Path, policy: dict[str, Any], *how: str) -> list[float]:
    words = [sys.executable, __file__, "--one", str(table), str(out), json.dumps(policy), *how]
    found = subprocess.run(words, check=True, capture_output=True, text=True, cwd=Path(__file__).parent)
    figures: list[float] = json.loads(found.stdout.splitlines()[-1])
    return figures


def compare(rows: int, engines: list[str], memory: str, master: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        table = Path(scratch) / "table"
        table.mkdir()
        policy = write_table(rows, table)
        whole: list[float] | None = None
        for engine in engines:
            wall, cpu, peak, own, room, loss, holds = found = in_own_process(
                table, Path(scratch) / engine, policy, engine, memory, master
            )
            assert holds
            whole = found if engine == "whole" else whole
            ratios = ("-", "-") if whole is None else (f"{loss / whole[5]:.4f}", f"{cpu / whole[1]:.2f}")
            grown = f"{1e6 * cpu / (rows * log(rows)):.3f}"
            print(
                f"| {rows:,} | {engine} | {wall:.1f} | {cpu:.1f} | {peak:.2f} | {own:.2f} | {room / rows:.0f} | "
                f"{loss:.4f} | {ratios[0]} | {ratios[1]} | {grown} |",
                flush=True,
            )


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        measure(*sys.argv[2:8])
        return
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    asked.add_argument("--memory", default="4GB")
    asked.add_argument("--engines", nargs="+", default=["whole", "blocks"], choices=["whole", "blocks", "spark"])
    asked.add_argument("--master", default="local[2]")
    given = asked.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, --memory {given.memory}\n")
    print(f"| {' | '.join(HEADINGS)} |\n|{'-|' * len(HEADINGS)}")
    for rows in given.rows:
        compare(rows, given.engines, given.memory, given.master)


if __name__ == "__main__":
    main()
