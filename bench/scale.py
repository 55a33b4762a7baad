"""One release at once, in blocks and on Spark, side by side: time, processor time, peak of memory, scratch and loss.

    reveil bench scale -- --rows 1000000 5000000 --memory 4GB --engines whole blocks spark

The table is `single.py`'s census: eight quasi-identifiers of census sizes and 50 sensitive values, k = 10 and l = 3,
relaxed cuts, written as Parquet. Each release is made by a process of its own, from the file to the verified files, so
that peaks do not add up. Spark is `local[2]`, or what `--master` names: processor time and memory are those of all its
processes on this machine, and of the driver's Python by itself.

    reveil bench scale -- --faults

makes a small release on `local-cluster[2,1,1500]`, again and again: an executor is killed while it reads, plans,
writes or verifies, and once slow tasks are doubled by speculation. Each time the bytes should be those of blocks.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
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


def faults() -> None:
    """Executors that are killed, and tasks that run twice."""
    from pyspark.sql import SparkSession

    from reveil.jobs.in_parts import anonymize_in_blocks
    from reveil.jobs.on_spark import anonymize_on_spark
    from reveil.jobs.table_in_parts import Sizes
    from reveil.policy.policy import load_policy

    os.environ["PYSPARK_PYTHON"] = sys.executable
    twice = {"multiplier": "1.01", "quantile": "0.1", "interval": "20ms", "minTaskRuntime": "1ms"}
    parts: dict[str, Any] = {"part": 4000, "file": 9000, "sample": 20000}
    how: dict[str, Any] = {"seed": 1, "key": bytes(32)}
    with tempfile.TemporaryDirectory() as scratch:
        table, folder = Path(scratch) / "table", Path(scratch)
        table.mkdir()
        policy = load_policy(write_table(60_000, table))
        files = sorted(table.iterdir())
        wanted = anonymize_in_blocks(files, policy, folder / "blocks", Sizes(20_000, **parts), **how).certificate.hashes
        print("| an executor is killed while it is | killed | same bytes |\n|-|-|-|")
        for doubled in (True, False):
            (events := folder / f"events {doubled}").mkdir()
            builder = SparkSession.builder.master("local-cluster[2,1,1500]").config("spark.executor.memory", "1200m")
            logged = {"enabled": "true", "dir": events.as_uri(), "rolling.enabled": "false", "compress": "false"}
            settings = {"ui.enabled": "false", **{f"eventLog.{name}": value for name, value in logged.items()}}
            settings |= {"speculation": str(doubled).lower(), **{f"speculation.{name}": twice[name] for name in twice}}
            for name, value in settings.items():
                builder = builder.config(f"spark.{name}", value)
            session = builder.getOrCreate()
            session.sparkContext.setLogLevel("OFF")
            frame = session.read.parquet(*map(str, files)).repartition(6)
            for stage in ("(speculation)",) if doubled else ("verifying", "writing", "planning", "reading"):
                killer = Killer(stage)
                sizes, out = Sizes(5000, **parts), folder / f"{stage} {doubled}"
                made = anonymize_on_spark(frame, policy, out, sizes=sizes, progress=killer, **how)
                same = "yes" if made.certificate.hashes == wanted else "NO"
                print(f"| {stage} | {len(killer.killed)} | {same} |", flush=True)
            session.stop()
            if doubled:
                print(f"| tasks begun twice | {copies(events)} | |", flush=True)


class Killer:
    """Kills one executor when a stage has begun."""

    def __init__(self, stage: str) -> None:
        self.stage, self.killed = stage, list[int]()

    def __call__(self, stage: str, done: float) -> None:
        if stage == self.stage and done > 0 and not self.killed:
            for process in family():
                with suppress(OSError):
                    if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{process}/cmdline").read_bytes():
                        os.kill(process, signal.SIGKILL)
                        self.killed.append(process)
                        return


def copies(events: Path) -> int:
    """Tasks that Spark began a second time because they seemed slow, from its log of events."""
    lines = (line for file in events.rglob("*") if file.is_file() for line in file.read_text("utf-8").splitlines())
    return sum('"SparkListenerTaskStart"' in line and '"Speculative":true' in line for line in lines)


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        measure(*sys.argv[2:8])
        return
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    asked.add_argument("--memory", default="4GB")
    asked.add_argument("--engines", nargs="+", default=["whole", "blocks"], choices=["whole", "blocks", "spark"])
    asked.add_argument("--master", default="local[2]")
    asked.add_argument("--faults", action="store_true", help="kill executors of a small cluster on this machine")
    given = asked.parse_args()
    if given.faults:
        faults()
        return
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, --memory {given.memory}\n")
    print(f"| {' | '.join(HEADINGS)} |\n|{'-|' * len(HEADINGS)}")
    for rows in given.rows:
        compare(rows, given.engines, given.memory, given.master)


if __name__ == "__main__":
    main()
