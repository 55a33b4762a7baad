"""Planning and publishing one release: time, growth and memory, as ratios within one run.

    reveil bench single

Eight quasi-identifiers, k = 5 and distinct l = 3, relaxed cuts. The measure of time is eight stable NumPy argsorts of
the same encoded columns. Planning uses all cores and an argsort one, so on a machine that is busy with other work the
ratio comes out too high: the processor time beside it, and the load, say how far. Each table has a process of its own,
so that peaks of memory do not add up. Adult rows (drawn with replacement, with ARX's hierarchies) are added where
`../shared/data/adult_arx` is. Below the table: the whole `publish` of a CSV file against Polars reading and writing it,
and `reveil --help` against `python -c pass`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

ADULT = Path(__file__).resolve().parents[2] / "shared" / "data" / "adult_arx"
DOMAINS = (100, 2, 17, 57, 6, 9, 24, 50)
HEADINGS = (
    *("table", "rows", "argsorts s", "encode s", "plan s", "plan / argsorts", "plan cpu s", "cpu / argsorts"),
    *("growth of cpu", "peak MB / (4 x Arrow + 300)", "NCP", "load"),
)
GUARANTEE = {"model": "l-diversity", "k": 5, "l": 3}


def census(rows: int) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Eight numeric columns of census sizes, every second one skewed, and 50 sensitive values."""
    rng = np.random.default_rng(1)
    columns = {
        f"q{i}": np.minimum(rng.zipf(1.3, rows) - 1, size - 1) if i % 2 else rng.integers(0, size, rows)
        for i, size in enumerate(DOMAINS)
    }
    table = pl.DataFrame(columns).with_columns(value=pl.Series(rng.integers(0, 50, rows)).cast(pl.String))
    return table, {"columns": {**dict.fromkeys(columns, "quasi"), "value": "sensitive"}}


def adult(rows: int) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Rows of Adult with replacement, ages moved by up to two years."""
    text = gzip.decompress((ADULT / "adult.csv.gz").read_bytes())
    table = pl.read_csv(text, separator=";", infer_schema=False)
    moved = pl.Series(np.random.default_rng(1).integers(-2, 3, rows))
    table = table.sample(rows, with_replacement=True, seed=1)
    table = table.with_columns((pl.col("age").cast(pl.Int64) + moved).clip(1, 100).cast(pl.String))
    quasi = [name for name in table.columns if name != "occupation"]
    files = {n: {"role": "quasi", "hierarchy": str(ADULT / f"adult_hierarchy_{n}.csv")} for n in quasi}
    return table, {"columns": {**files, "occupation": "sensitive"}}


TABLES: dict[str, Callable[[int], tuple[pl.DataFrame, dict[str, Any]]]] = {"census": census, "adult": adult}


def best_of(times: int, job: Callable[[], Any]) -> tuple[float, float]:
    """The shortest time of several runs and the least processor time, in seconds."""
    found = []
    for _ in range(times):
        begin, used = time.perf_counter(), time.process_time()
        job()
        found.append((time.perf_counter() - begin, time.process_time() - used))
    return min(wall for wall, _ in found), min(cpu for _, cpu in found)


def measure(name: str, rows: int) -> dict[str, Any]:
    """Times of one table, in this process."""
    from reveil.base.progress import silent
    from reveil.history.history import History
    from reveil.plan.cutting import mondrian
    from reveil.plan.loss import loss_of
    from reveil.policy.policy import load_policy
    from reveil.table.encode import encode

    table, settings = TABLES[name](rows)
    policy = load_policy({**settings, "guarantee": GUARANTEE, "method": {"cuts": "relaxed"}})
    small = encode(table.head(1000), policy)
    mondrian.plan(small, History(), policy, seed=1, progress=silent)  # compiles, or loads what is compiled
    encoded = encode(table, policy)
    columns = [np.ascontiguousarray(encoded.positions[:, c]) for c in range(encoded.positions.shape[1])]
    plans: list[Any] = []

    def plan() -> None:
        plans[:] = [mondrian.plan(encoded, History(), policy, seed=1, progress=silent)]

    argsorts, sorting = best_of(3, lambda: [np.argsort(column, kind="stable") for column in columns])
    planning, used = best_of(3, plan)
    return {
        "table": name,
        "rows": rows,
        "argsorts": argsorts,
        "encode": best_of(1 if rows > 1_000_000 else 3, lambda: encode(table, policy))[0],
        "plan": planning,
        "plan_cpu": used,
        "time_ratio": planning / argsorts,
        "cpu_ratio": used / sorting,
        "arrow_mb": (encoded.positions.nbytes + encoded.codes.nbytes) / 1e6,
        "groups": plans[0].count,
        "ncp": loss_of(encoded, plans[0], policy).mean,
        "load": os.getloadavg()[0],
    }


def peak(name: str, rows: int) -> dict[str, float]:
    """Peak memory of a process that makes, encodes and plans the table once, and the peak before planning."""
    from reveil.base.progress import silent
    from reveil.history.history import History
    from reveil.plan.cutting import mondrian
    from reveil.policy.policy import load_policy
    from reveil.table.encode import encode

    table, settings = TABLES[name](rows)
    policy = load_policy({**settings, "guarantee": GUARANTEE, "method": {"cuts": "relaxed"}})
    encoded = encode(table, policy)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    del table
    mondrian.plan(encoded, History(), policy, seed=1, progress=silent)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return {"peak_mb": after, "before_planning_mb": before}


def publish(name: str, rows: int) -> dict[str, Any]:
    """The whole way from a CSV file to a revealed release, against Polars reading and writing that file."""
    import reveil

    table, settings = TABLES[name](rows)
    table = table.with_columns(pl.int_range(rows).cast(pl.String).alias("person"))
    policy = {"columns": {**settings["columns"], "person": "identifier"}, "guarantee": GUARANTEE}
    with tempfile.TemporaryDirectory() as scratch:
        source, copy, homes = Path(scratch, "table.csv"), Path(scratch, "copy.csv"), iter(range(10))
        table.write_csv(source)
        reveil.open_series(policy, home=Path(scratch, "small")).publish(table.head(1000))  # compiles

        def whole_way() -> None:
            reveil.open_series(policy, home=Path(scratch, f"home{next(homes)}")).publish(source)

        copying = best_of(5, lambda: pl.read_csv(source).write_csv(copy))[0]
        publishing = best_of(3, whole_way)[0]
    return {"table": name, "rows": rows, "copy": copying, "publish": publishing, "ratio": publishing / copying}


def start() -> dict[str, float]:
    """How long `reveil --help` takes in relation to starting Python, best of 20."""
    found = {}
    program = str(Path(sys.executable).with_name("reveil"))
    for name, command in (("help", [program, "--help"]), ("pass", [sys.executable, "-c", "pass"])):
        call = partial(subprocess.run, command, check=True, stdout=subprocess.DEVNULL)
        found[name] = best_of(20, call)[0]
    return {**found, "ratio": found["help"] / found["pass"]}


def run(rows: Sequence[int] = (30_000, 600_000, 5_000_000), out: Path | None = None) -> list[dict[str, Any]]:
    """Measure all tables and print them with their ratios. `out` takes the numbers as JSON."""
    wanted = [("census", n) for n in rows]
    if ADULT.exists():
        wanted += [("adult", n) for n in rows if n <= 600_000]
    found: list[dict[str, Any]] = []
    print("| " + " | ".join(HEADINGS) + " |\n" + "|---" * len(HEADINGS) + "|")
    for name, n in wanted:
        line = {**_child("measure", name, n), **_child("peak", name, n)}
        line["memory_ratio"] = line["peak_mb"] / (4 * line["arrow_mb"] + 300)
        earlier = [other for other in found if other["table"] == name]
        line["growth"] = _growth(earlier[-1], line) if earlier else None
        found.append(line)
        print(_shown(line), flush=True)
    print()
    for name in dict.fromkeys(name for name, _ in wanted):
        line = _child("publish", name, min(600_000, max(rows)))
        found.append(line)
        print(
            f"{name}: publishing {line['rows']:,} rows of CSV {line['publish']:.2f} s, Polars reading and writing "
            f"them {line['copy']:.2f} s, ratio {line['ratio']:.1f}",
            flush=True,
        )
    starting = start()
    print(f"reveil --help {starting['help']:.3f} s, python -c pass {starting['pass']:.3f} s: {starting['ratio']:.1f}")
    if out is not None:
        out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return found


def _child(what: str, name: str, rows: int) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).resolve()), "--child", what, name, str(rows)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _growth(small: dict[str, Any], large: dict[str, Any]) -> float:
    """Processor time in relation to n log n: 1 where it grows exactly so, less where it grows more slowly."""
    size = large["rows"] * log(large["rows"]) / (small["rows"] * log(small["rows"]))
    return float(large["plan_cpu"] / small["plan_cpu"] / size)


def _shown(line: dict[str, Any]) -> str:
    cells = [line["table"], f"{line['rows']:,}", *(f"{line[name]:.3f}" for name in ("argsorts", "encode", "plan"))]
    cells += [f"{line['time_ratio']:.2f}", f"{line['plan_cpu']:.3f}", f"{line['cpu_ratio']:.2f}"]
    cells.append("" if line["growth"] is None else f"{line['growth']:.2f} n log n")
    cells.append(f"{line['peak_mb']:,.0f} / {4 * line['arrow_mb'] + 300:,.0f} = {line['memory_ratio']:.2f}")
    return "| " + " | ".join([*cells, f"{line['ncp']:.4f}", f"{line['load']:.1f}"]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[30_000, 600_000, 5_000_000])
    parser.add_argument("--out", type=Path, help="a file for the numbers, as JSON")
    parser.add_argument("--child", nargs=3, metavar=("WHAT", "TABLE", "ROWS"), help=argparse.SUPPRESS)
    wanted, _ = parser.parse_known_args()
    if wanted.child:
        what, name, rows = wanted.child
        print(json.dumps({"measure": measure, "peak": peak, "publish": publish}[what](name, int(rows))))
        return
    run(wanted.rows, wanted.out)


if __name__ == "__main__":
    main()
