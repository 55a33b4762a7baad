"""The joint view of changing values: what closed cohorts keep on real panels, and how long they take.

    python bench/evolving_joint.py real                                     (MEPS and NLS young women: ../shared/data)
    python bench/evolving_joint.py speed [--rows 60000] [--kind families]   (or mixed: any value may become any other)

Transitions of the panels are estimated from the panels themselves. A value may always stay. Times are CPU seconds,
beside one stable argsort of each quasi-identifier column in the same process (best of 3). Planning includes reading.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import reveil
from reveil.publish import Series

DATA = Path("../shared/data")
PROMISES: dict[str, list[dict[str, Any]]] = {
    "meps": [
        {"model": "m-distinct", "m": 4, "k": 7},
        {"model": "m-distinct", "m": 4, "k": 16},
        {"model": "m-distinct", "m": 4, "tau": "1/2"},
    ],
    "nlswork": [{"model": "m-distinct", "m": 3, "k": 9}],
}
VALUES = 60
FAMILY = 3


def meps() -> tuple[pl.DataFrame, list[str]]:
    """Employed people by interview round."""
    quasi = ["age", "sex", "race_eth", "region", "educ_years"]
    panel = pl.read_parquet(DATA / "meps_panel_2015_2016.parquet").filter(pl.col("occupation") > 0)
    job = pl.col("occupation").cast(pl.String).alias("job")
    return panel.select("release", pl.col("person_id").alias("id"), *quasi, job), quasi


def nlswork() -> tuple[pl.DataFrame, list[str]]:
    """Young women from 1977 on, by survey."""
    quasi = ["age", "race", "grade", "south"]
    panel = pl.read_parquet(DATA / "nlswork_1968_1988.parquet").drop_nulls("occ_code").filter(pl.col("year") >= 77)
    release, job = pl.col("year").rank("dense").alias("release"), pl.col("occ_code").cast(pl.String).alias("job")
    return panel.select(release, pl.col("idcode").alias("id"), *quasi, job), quasi


def estimated(panel: pl.DataFrame) -> dict[str, dict[str, str]]:
    """The share of each change from one appearance to the next."""
    steps = panel.sort("id", "release").with_columns(after=pl.col("job").shift(-1).over("id")).drop_nulls("after")
    counts: dict[str, dict[str, int]] = {value: {value: 1} for value in panel["job"].unique().sort()}
    for before, after, rows in steps.group_by("job", "after").len().iter_rows():
        counts[before][after] = rows
    return {a: {b: f"{n}/{sum(row.values())}" for b, n in row.items()} for a, row in counts.items()}


def policy(quasi: list[str], transitions: dict[str, dict[str, str]], promise: dict[str, Any]) -> dict[str, Any]:
    closure = {"closure": "one-step"} if promise["model"] == "m-distinct" else {}
    return {
        "columns": {"id": "identifier", **dict.fromkeys(quasi, "quasi"), "job": "sensitive"},
        "values": {"change": "transitions", "transitions": transitions, **closure},
        "guarantee": promise,
        "method": {"infeasible": "withhold"},
    }


def show(series: Series, table: pl.DataFrame, number: int) -> None:
    """Publish one release and say what became of its rows."""
    release = series.publish(table, seed=number)
    counts, verdict = release.certificate.counts, release.certificate.verdicts[-1]
    assert release.path is not None
    plan = json.loads((release.path / "private" / "plan.json").read_text(encoding="utf-8"))
    kept = 1 - counts["withheld rows"] / counts["input rows"]
    invented = counts["counterfeit rows"] / max(1, counts["published rows"])
    print(
        f"  release {number}: {kept:.0%} of {counts['input rows']:,} rows, {invented:.0%} counterfeits, "
        f"{counts['groups']:,} groups, worst guess {verdict['worst']} of {verdict['bound']}, holds: {verdict['holds']}"
        f"; {plan['withheld_why']}"
    )


def real() -> None:
    for name, source in (("meps", meps), ("nlswork", nlswork)):
        panel, quasi = source()
        for promise in PROMISES[name]:
            print(name, promise)
            with tempfile.TemporaryDirectory() as home:
                series = reveil.open_series(policy(quasi, estimated(panel), promise), home=Path(home) / "home")
                for number, release in enumerate(panel["release"].unique().sort(), 1):
                    show(series, panel.filter(pl.col("release") == release).drop("release"), number)


def speed(rows: int, kind: str, releases: int = 4) -> None:
    """A tenth of the people leaves and comes, and a tenth of the values changes, per release."""
    rng = np.random.default_rng(1)
    width = FAMILY if kind == "families" else VALUES
    table = {
        str(v): {
            str(w): f"{9 * width + 1 if w == v else 1}/{10 * width}"
            for w in range(v - v % width, v - v % width + width)
        }
        for v in range(VALUES)
    }
    star = kind == "families"
    promise = (
        {"model": "m-distinct-star", "m": 6, "refill": 3} if star else {"model": "m-distinct", "m": 6, "tau": "1/3"}
    )
    domains = {"age": 80, "zip": 1000, "sex": 2, "educ": 17}
    people, last = newcomers(rng, domains, 0, rows), rows
    with tempfile.TemporaryDirectory() as home:
        series = reveil.open_series(policy(list(domains), table, promise), home=Path(home) / "home")
        for number in range(1, releases + 1):
            sort = min(sort_time(people.select(list(domains))) for _ in range(3))
            start = time.process_time()
            series.plan(people.cast({"job": pl.String}), seed=number)
            planned = time.process_time() - start
            show(series, people.cast({"job": pl.String}), number)
            published = time.process_time() - start - planned
            print(f"    plan {planned:.2f} s = {planned / sort:.0f} x sorting; publish {published:.2f} s")
            kept = people.filter(pl.Series(rng.random(people.height) < 0.9))
            job = kept["job"].to_numpy()
            moved = job - job % width + rng.integers(0, width, len(job))
            kept = kept.with_columns(job=pl.Series(np.where(rng.random(len(job)) < 0.1, moved, job)))
            people = pl.concat([kept, newcomers(rng, domains, last, rows - kept.height)])
            last += rows - kept.height


def newcomers(rng: np.random.Generator, domains: dict[str, int], first: int, rows: int) -> pl.DataFrame:
    columns = {name: rng.integers(0, size, rows) for name, size in domains.items()}
    return pl.DataFrame({"id": np.arange(first, first + rows), **columns, "job": rng.integers(0, VALUES, rows)})


def sort_time(columns: pl.DataFrame) -> float:
    arrays = [column.to_numpy() for column in columns]
    start = time.process_time()
    for array in arrays:
        np.argsort(array, kind="stable")
    return time.process_time() - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["real", "speed"])
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--releases", type=int, default=4)
    parser.add_argument("--kind", choices=["families", "mixed"], default="families")
    wanted = parser.parse_args()
    if wanted.what == "real":
        real()
    else:
        speed(wanted.rows, wanted.kind, wanted.releases)
