"""The audit, measured: certain inferences of a whole series against the time that publishing it took, and the
comparison of ways to publish.

    python bench/audit.py scale   [ROWS] [RELEASES] [MODEL] [SECONDS that the audit may take]
    python bench/audit.py compare [ROWS] [RELEASES] [SECONDS of one attack]

`scale` publishes in one process and audits in another one, so that the memory of each is told.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from reveil.policy.policy import load_policy
from reveil.publish import Series, open_series
from reveil.simulation.scenario import Scenario
from reveil.simulation.simulate import simulate
from reveil.start.demo import compare, exposed_lines

GUARANTEES: dict[str, dict[str, Any]] = {
    "compromise-safety": {"model": "compromise-safety", "m": 6, "compromised": 1, "refill": 3},
    "m-invariance": {"model": "m-invariance", "m": 6},
    "l-diversity": {"model": "l-diversity", "l": 6, "k": 6},
}
COUNTS = ("people", "known", "exposed", "above_half", "undecided", "without_belief", "components")


def scale(rows: int, releases: int, model: str, limit: float) -> dict[str, Any]:
    """Publish a series and audit it with 4 % of the people known, as a ratio."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        published = apart(publish, home, rows, releases, model)
        found = apart(attack, home, rows, releases, model, limit)
    return {
        "model": model,
        "rows": rows,
        "releases": releases,
        "limit_s": limit,
        **{f"publishing_{name}": value for name, value in published.items()},
        "ratio": round(found["audit_processor_s"] / published["processor_s"], 3),
        **found,
    }


def apart(job: Callable[..., dict[str, Any]], *given: Any) -> dict[str, Any]:
    """Do a job in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(job, given)


def opened(home: Path, rows: int, releases: int, model: str) -> tuple[Series, Scenario]:
    scenario = Scenario(rows=rows, releases=releases, shape="census", values="never", seed=1)
    policy = simulate(Scenario(rows=rows, releases=1, shape="census", values="never", seed=1)).policy
    given = {**policy, "guarantee": GUARANTEES[model], "method": {"infeasible": "withhold"}}
    return open_series(load_policy(given), home), scenario


def publish(home: Path, rows: int, releases: int, model: str) -> dict[str, Any]:
    series, scenario = opened(home, rows, releases, model)
    tables = simulate(scenario).tables
    start = time.process_time()
    for table in tables:
        series.publish(table, seed=1)
    return {"processor_s": round(time.process_time() - start, 1), "peak_memory_mb": peak()}


def attack(home: Path, rows: int, releases: int, model: str, limit: float) -> dict[str, Any]:
    series, _ = opened(home, rows, releases, model)
    series.audit(share="0.04", limit=1.0, people=["#0"], worst=0)  # compiled
    start, began = time.process_time(), time.perf_counter()
    found = series.audit(share="0.04", limit=limit, worst=0)
    summary = {name: found.summary[name] for name in COUNTS}
    return {
        "audit_processor_s": round(time.process_time() - start, 1),
        "audit_wall_s": round(time.perf_counter() - began, 1),
        "audit_peak_memory_mb": peak(),
        **summary,
    }


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main(job: str = "scale", *given: str) -> None:
    if job == "scale":
        rows, releases, model, limit = (*given, *("60000", "24", "compromise-safety", "30")[len(given) :])
        print(json.dumps(scale(int(rows), int(releases), model, float(limit)), indent=2))
        return
    rows, releases, seconds = (*given, *("2000", "20", "20")[len(given) :])
    with tempfile.TemporaryDirectory() as scratch:
        table = compare(Path(scratch) / "compare", int(rows), int(releases), limit=float(seconds))
    print(exposed_lines(table))
    print(table.group_by("way", "known", maintain_order=True).agg(pl.col("people", "exposed", "undecided").last()))


if __name__ == "__main__":
    main(*sys.argv[1:])
