"""One release at once and in blocks, side by side: time, processor time, peak of memory, scratch and loss.

    reveil bench scale -- --rows 1000000 5000000 --memory 4GB

The table is `single.py`'s census: eight quasi-identifiers of census sizes and 50 sensitive values, k = 10 and l = 3,
relaxed cuts, written as Parquet. Each release is made by a process of its own, from the file to the verified files, so
that peaks do not add up; the first lines are made before anything is measured, so that kernels are compiled. `--blocks`
leaves the release at once out, where it does not fit.
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
HEADINGS = ("rows", "engine", "wall s", "CPU s", "peak GB", "scratch bytes / row", "NCP", "loss / whole", "CPU / whole")
HEADINGS += ("us / (row log rows)",)


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


def measure(table: str, out: str, policy: str, engine: str, memory: str | None) -> None:
    """One release, in this process; what it took as JSON."""
    import reveil

    began, before, scratch = time.perf_counter(), time.process_time(), Scratch(Path(out).parent)
    given = {"memory": memory} if engine == "blocks" else {}
    release = reveil.anonymize(table, json.loads(policy), seed=1, out=out, engine=engine, **given)
    loss = json.loads((Path(out) / "private" / "plan.json").read_text(encoding="utf-8"))["loss"]["mean_ncp"]
    taken = time.perf_counter() - began, time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # kilobytes on Linux
    print(json.dumps([*taken, peak, scratch.peak, loss, release.certificate.holds]))


class Scratch:
    """The largest size that the folder of temporary files had, looked at five times a second."""

    def __init__(self, beside: Path) -> None:
        self.folder, self.peak = Path(tempfile.mkdtemp(dir=beside)), 0
        tempfile.tempdir = str(self.folder)
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        while True:
            sizes = []
            for file in self.folder.rglob("*"):
                with suppress(OSError):  # gone already
                    sizes.append(file.stat().st_size)
            self.peak = max(self.peak, sum(sizes))
            time.sleep(0.2)


def in_own_process(table: Path, out: Path, policy: dict[str, Any], engine: str, memory: str) -> list[float]:
    words = [sys.executable, __file__, "--one", str(table), str(out), json.dumps(policy), engine, memory]
    found = subprocess.run(words, check=True, capture_output=True, text=True, cwd=Path(__file__).parent)
    figures: list[float] = json.loads(found.stdout.splitlines()[-1])
    return figures


def compare(rows: int, engines: list[str], memory: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        table = Path(scratch) / "table"
        table.mkdir()
        policy = write_table(rows, table)
        whole: list[float] | None = None
        for engine in engines:
            wall, cpu, peak, room, loss, holds = found = in_own_process(
                table, Path(scratch) / engine, policy, engine, memory
            )
            assert holds
            whole = found if engine == "whole" else whole
            ratios = ("-", "-") if whole is None else (f"{loss / whole[4]:.4f}", f"{cpu / whole[1]:.2f}")
            grown = f"{1e6 * cpu / (rows * log(rows)):.3f}"
            print(
                f"| {rows:,} | {engine} | {wall:.1f} | {cpu:.1f} | {peak:.2f} | {room / rows:.0f} | {loss:.4f} | "
                f"{ratios[0]} | {ratios[1]} | {grown} |",
                flush=True,
            )


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        measure(*sys.argv[2:7])
        return
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    asked.add_argument("--memory", default="4GB")
    asked.add_argument("--blocks", action="store_true", help="only in blocks")
    given = asked.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, --memory {given.memory}\n")
    print(f"| {' | '.join(HEADINGS)} |\n|{'-|' * len(HEADINGS)}")
    for rows in given.rows:
        compare(rows, ["blocks"] if given.blocks else ["whole", "blocks"], given.memory)


if __name__ == "__main__":
    main()
