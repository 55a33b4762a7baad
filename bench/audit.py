"""The audit, measured: certain inferences of a whole series against the time that publishing it took, and the
comparison of ways to publish.

    python bench/audit.py scale   [ROWS] [RELEASES] [MODEL]
    python bench/audit.py compare [ROWS] [RELEASES] [SECONDS of one attack]
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

from reveil.demo import compare, exposed_lines
from reveil.policy import load_policy
from reveil.publish import open_series
from reveil.simulation.scenario import Scenario
from reveil.simulation.simulate import simulate

GUARANTEES: dict[str, dict[str, Any]] = {
    "compromise-safety": {"model": "compromise-safety", "m": 6, "compromised": 1, "refill": 3},
    "m-invariance": {"model": "m-invariance", "m": 6},
    "l-diversity": {"model": "l-diversity", "l": 6, "k": 6},
}


def scale(rows: int, releases: int, model: str) -> dict[str, Any]:
    """Publish a series and audit it with 4 % of the people known, as a ratio."""
    made = simulate(Scenario(rows=rows, releases=releases, shape="census", values="never", seed=1))
    policy = load_policy({**made.policy, "guarantee": GUARANTEES[model], "method": {"infeasible": "withhold"}})
    with tempfile.TemporaryDirectory() as scratch:
        series = open_series(policy, Path(scratch) / "home")
        start = time.process_time()
        for table in made.tables:
            series.publish(table, seed=1)
        published = time.process_time() - start
        series.audit(share="0.04", limit=1.0, people=["#0"], worst=0)  # compiled
        start, began = time.process_time(), time.perf_counter()
        found = series.audit(share="0.04", limit=30.0, worst=0)
        audited, waited = time.process_time() - start, time.perf_counter() - began
    s = found.summary
    return {
        "model": model,
        "rows": rows,
        "releases": releases,
        "publishing_processor_s": round(published, 1),
        "audit_processor_s": round(audited, 1),
        "audit_wall_s": round(waited, 1),
        "ratio": round(audited / published, 3),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        **{
            name: s[name]
            for name in ("people", "known", "exposed", "above_half", "undecided", "without_belief", "components")
        },
    }


def main(job: str = "scale", *given: str) -> None:
    if job == "scale":
        rows, releases, model = (*given, *("60000", "24", "compromise-safety")[len(given) :])
        print(json.dumps(scale(int(rows), int(releases), model), indent=2))
        return
    rows, releases, seconds = (*given, *("2000", "20", "20")[len(given) :])
    with tempfile.TemporaryDirectory() as scratch:
        table = compare(Path(scratch) / "compare", int(rows), int(releases), limit=float(seconds))
    print(exposed_lines(table))
    print(table.group_by("way", "known", maintain_order=True).agg(pl.col("people", "exposed", "undecided").last()))


if __name__ == "__main__":
    main(*sys.argv[1:])
