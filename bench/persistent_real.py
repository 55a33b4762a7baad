"""Real people over time, published under the guarantees for lasting values: the whole path, files and ledger included.

    python bench/persistent_real.py [meps] [motor] [--m 3] [--people N]

Reads ../shared/data. The sensitive column of each person is their first value, kept for all releases.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

import reveil

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SETS: dict[str, dict[str, Any]] = {
    "meps": {
        "file": "meps_panel_2015_2016.parquet",
        "person": ["person_id"],
        "time": "release",
        "sensitive": "health",
        "quasi": ["age", "sex", "race_eth", "marital", "region"],
    },
    "motor": {
        "file": "motor_policy_panel_5y.parquet",
        "person": ["id_client", "id_vehicle"],
        "time": "id_year",
        "sensitive": "vh_make",
        "quasi": ["drv_age1", "drv_sex1", "dept_derived", "vh_age", "pol_usage"],
    },
}
MODELS: dict[str, dict[str, Any]] = {
    "cohorts": {"model": "compromise-safety", "compromised": 1, "refill": 2},
    "cohorts, never refilled": {"model": "compromise-safety", "compromised": 1},
    "m-invariance": {"model": "m-invariance"},
    "Cor-Split": {"model": "historical-safety", "n": 2, "closure": "pairwise"},
}


def tables(spec: dict[str, Any], people: int | None) -> list[pl.DataFrame]:
    frame = pl.read_parquet(DATA / spec["file"])
    frame = frame.with_columns(pl.concat_str(spec["person"], separator="/").alias("person_key")).sort(spec["time"])
    if people is not None:
        frame = frame.filter(pl.col("person_key").is_in(frame["person_key"].unique().sort().head(people).implode()))
    frame = frame.with_columns(pl.col(spec["sensitive"]).first().over("person_key").cast(pl.String))
    columns = ["person_key", *spec["quasi"], spec["sensitive"]]
    return [part.select(columns) for part in frame.partition_by(spec["time"], maintain_order=True)]


def run(name: str, model: str, m: int, people: int | None = None) -> list[dict[str, Any]]:
    spec = SETS[name]
    columns = {"person_key": "identifier", **dict.fromkeys(spec["quasi"], "quasi"), spec["sensitive"]: "sensitive"}
    policy = {
        "columns": columns,
        "values": {"change": "never"},
        "guarantee": {**MODELS[model], "m": m},
        "method": {"infeasible": "withhold"},
    }
    lines = []
    with tempfile.TemporaryDirectory() as home:
        series = reveil.open_series(policy, home=home)
        for table in tables(spec, people):
            start = time.perf_counter()
            release = series.publish(table, seed=1)
            facts = series.ledger.records()[-1].facts
            lines.append(
                {
                    "rows": table.height,
                    "violations": sum(v["violating_classes"] for v in release.certificate.verdicts),
                    "counterfeits": release.certificate.counts["counterfeit rows"],
                    "withheld": dict(release.certificate.withheld),
                    "loss": facts["loss"]["mean_ncp"],
                    "seconds": round(time.perf_counter() - start, 1),
                }
            )
            print(name, model, json.dumps(lines[-1]), flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--m", type=int, default=3)
    parser.add_argument("--people", type=int, help="only so many of them")
    parser.add_argument("--models", default=";".join(MODELS))
    args = parser.parse_args()
    for name in args.sets:
        for model in args.models.split(";"):
            run(name, model, args.m, args.people)


if __name__ == "__main__":
    main()
