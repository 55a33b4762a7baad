"""The joint view of changing values: what closed cohorts keep on real panels, and how long they take.

    python bench/evolving_joint.py real [--panels meps,nlswork] [--queries 300]   (reads ../shared/data)
    python bench/evolving_joint.py speed [--rows 60000] [--kind families]
        (families; mixed: any value may become any other; large: two tables, cohorts of 60, ten next values each)

Transitions of the panels are estimated from the panels themselves. A value may always stay. Every form publishes the
same tables. Times are CPU seconds, beside one stable argsort of each quasi-identifier column in the same process (best
of 3). Planning includes reading.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import reveil
from reveil.base.errors import InfeasibleError
from reveil.measure.measure import measure
from reveil.publish import Series

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
APART = {"publish": "anatomy"}
LARGE = [(f"two tables, cohorts of {places}", {"k": 5, "places": places}, APART) for places in (30, 60, 120, 240)]
FORMS: dict[str, tuple[int, list[tuple[str, dict[str, Any], dict[str, Any]]]]] = {  # m; name, promise, method
    "meps": (4, [("one table, k = 7", {"k": 7}, {}), ("one table, k = 16", {"k": 16}, {}), *LARGE]),
    "nlswork": (3, [("one table, k = 9", {"k": 9}, {}), *LARGE]),
}
ALONE: tuple[str, dict[str, Any], dict[str, Any]] = ("one table, individual view", {"view": "individual"}, {})
HEADINGS = (
    "panel",
    "form",
    "release",
    "people shown",
    "with their own value",
    "counterfeits",
    "NCP",
    "of those shown",
    "query error",
    "holds",
)
VALUES = 60
FAMILY = 3
SUCCESSORS = 10


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


def policy(
    quasi: list[str], transitions: dict[str, dict[str, str]], promise: dict[str, Any], method: dict[str, Any]
) -> dict[str, Any]:
    closure = {"closure": "one-step"} if promise["model"] == "m-distinct" else {}
    return {
        "columns": {"id": "identifier", **dict.fromkeys(quasi, "quasi"), "job": "sensitive"},
        "values": {"change": "transitions", "transitions": transitions, **closure},
        "guarantee": promise,
        "method": {"infeasible": "withhold", **method},
    }


def real(panels: list[str], queries: int, only: str) -> None:
    """Every release of each panel, in every form whose name has `only` in it."""
    print(f"| {' | '.join(HEADINGS)} |\n{'|---' * len(HEADINGS)}|", flush=True)
    for name in panels:
        panel, quasi = {"meps": meps, "nlswork": nlswork}[name]()
        m, forms = FORMS[name]
        for form, promise, method in (one for one in (ALONE, *forms) if only in one[0]):
            asked = policy(quasi, estimated(panel), {"model": "m-distinct", "m": m, **promise}, method)
            with tempfile.TemporaryDirectory() as home:
                series = reveil.open_series(asked, home=Path(home) / "home")
                for number, release in enumerate(panel["release"].unique().sort(), 1):
                    table = panel.filter(pl.col("release") == release).drop("release")
                    try:
                        line = published(series, table, asked, number, queries)
                    except InfeasibleError as error:
                        print(f"| {name} | {form} | {number} | refused: {error.faults[0].message} |", flush=True)
                        break
                    print(f"| {name} | {form} | {number} | {' | '.join(line)} |", flush=True)


def published(series: Series, table: pl.DataFrame, asked: dict[str, Any], number: int, queries: int) -> tuple[str, ...]:
    """Publish one release: what became of its rows, and what recipients can do with it."""
    release = series.publish(table, seed=number)
    counts, verdict = release.certificate.counts, release.certificate.verdicts[-1]
    gone = counts["withheld rows"] / table.height
    found = measure(release, table, asked, queries=queries, selectivity=(0.05,))
    (error,) = found.queries
    return (
        f"{1 - gone:.0%}",
        f"{1 - gone - counts.get('people with a stand-in', 0) / table.height:.0%}",
        f"{counts['counterfeit rows'] / max(1, counts['published rows']):.0%}",
        f"{found.ncp_mean:.3f}",
        f"{(found.ncp_mean - gone) / max(1e-9, 1 - gone):.3f}",  # who is withheld counts as wholly lost
        "-" if error.median_relative is None else f"{error.median_relative:.3f}",
        f"{verdict['worst']} of {verdict['bound']}" if verdict["holds"] else "no",
    )


def speed(rows: int, kind: str, releases: int = 4) -> None:
    """A tenth of the people leaves and comes, and a tenth of the values changes, per release."""
    rng = np.random.default_rng(1)
    width = {"families": FAMILY, "mixed": VALUES, "large": SUCCESSORS}[kind]
    table = {
        str(v): {
            str(w): f"{9 * width + 1 if w == v else 1}/{10 * width}"
            for w in range(v - v % width, v - v % width + width)
        }
        for v in range(VALUES)
    }
    promise, method = {
        "families": ({"model": "m-distinct-star", "m": 6, "refill": 3}, {}),
        "mixed": ({"model": "m-distinct", "m": 6, "tau": "1/3"}, {}),
        "large": ({"model": "m-distinct", "m": 6, "k": 5, "places": 60}, APART),
    }[kind]
    domains = {"age": 80, "zip": 1000, "sex": 2, "educ": 17}
    people, last = newcomers(rng, domains, 0, rows), rows
    with tempfile.TemporaryDirectory() as home:
        series = reveil.open_series(policy(list(domains), table, promise, method), home=Path(home) / "home")
        for number in range(1, releases + 1):
            sort = min(sort_time(people.select(list(domains))) for _ in range(3))
            start = time.process_time()
            series.plan(people.cast({"job": pl.String}), seed=number)
            planned = time.process_time() - start
            release = series.publish(people.cast({"job": pl.String}), seed=number)
            made = time.process_time() - start - planned
            verdict, left = release.certificate.verdicts[-1], release.certificate.counts["withheld rows"]
            print(
                f"release {number}: {left:,} of {rows:,} withheld, worst guess {verdict['worst']} of {verdict['bound']}"
            )
            print(f"    plan {planned:.2f} s = {planned / sort:.0f} x sorting; publish {made:.2f} s", flush=True)
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
    parser.add_argument("--panels", default="meps,nlswork")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--only", default="", help="part of the names of forms: 'cohorts of 60'")
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--releases", type=int, default=4)
    parser.add_argument("--kind", choices=["families", "mixed", "large"], default="families")
    wanted = parser.parse_args()
    if wanted.what == "real":
        real(wanted.panels.split(","), wanted.queries, wanted.only)
    else:
        speed(wanted.rows, wanted.kind, wanted.releases)
