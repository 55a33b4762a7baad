"""A long series in one table and in two: what is promised, who is lost, what recipients can still count.

    reveil bench series                                        (hospital and census, 10 % and 30 % churn, the panels)
    python bench/series.py table --rows 5000 --releases 12 --churn 0.1 --shapes hospital
    python bench/series.py table --shapes meps,nlswork,motor   (reads ../shared/data; names those that are not there)
    python bench/series.py speed --rows 600000 --past 10       (one more release in two tables, against sorting)

Every form publishes the same tables with files and ledger. The error is the median of COUNT queries on the newest
release. In the NCP whoever is withheld or waits is wholly lost; `of those shown` is that of people in the table, and
`k alone` what a single release of the input under k = 5 alone loses.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

import reveil
from reveil.base.errors import InfeasibleError
from reveil.base.progress import silent
from reveil.measure.measure import measure
from reveil.plan.methods import method
from reveil.policy.policy import load_policy
from reveil.simulation.scenario import Scenario
from reveil.simulation.simulate import iterate, simulate

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
K = 5
ONE = {"infeasible": "withhold"}
TWO = {"publish": "anatomy", "infeasible": "withhold"}
FORMS: dict[str, tuple[Any, dict[str, Any]]] = {  # refill, method
    "one table, refill 3": (3, ONE),  # what `reveil init` wrote until there were two tables for series
    "one table, never refilled": ("never", ONE),
    "two tables, refill 3": (3, TWO),
    "two tables, never refilled (default)": ("never", {**TWO, "infeasible": "wait"}),
    "two tables, exact people, never refilled": ("never", {**TWO, "infeasible": "wait", "people": "exact"}),
}
PANELS: dict[str, dict[str, Any]] = {
    "meps": {
        "file": "meps_panel_2015_2016.parquet",
        "person": ["person_id"],
        "time": "release",
        "sensitive": "health",
        "quasi": ["age", "sex", "race_eth", "marital", "region"],
        "m": 3,
    },
    "nlswork": {
        "file": "nlswork_1968_1988.parquet",
        "person": ["idcode"],
        "time": "year",
        "sensitive": "ind_code",
        "quasi": ["age", "race", "msp", "grade", "south"],
        "m": 3,
    },
    "motor": {
        "file": "motor_policy_panel_5y.parquet",
        "person": ["id_client", "id_vehicle"],
        "time": "id_year",
        "sensitive": "vh_make",
        "quasi": ["drv_age1", "drv_sex1", "dept_derived", "vh_age", "pol_usage"],
        "m": 6,
    },
}
HEADINGS = (
    *("series", "form", "releases", "promise", "withheld", "of whom for a place", "counterfeit values"),
    *("NCP", "of those shown", "k alone", "query error", "seconds"),
)


def simulated(shape: Any, args: argparse.Namespace) -> tuple[list[pl.DataFrame], dict[str, Any], int]:
    churn = {"arrive": args.churn, "leave": args.churn}
    scenario = Scenario(shape=shape, rows=args.rows, releases=args.releases, values="never", seed=args.seed, **churn)
    return list(simulate(scenario).tables), simulate(Scenario(shape=shape, rows=50, releases=1)).policy["columns"], 6


def panel(name: str, args: argparse.Namespace) -> tuple[list[pl.DataFrame], dict[str, Any], int]:
    """Real people over time; the sensitive value of each is their first one, kept for all releases."""
    spec = PANELS[name]
    frame = pl.read_parquet(DATA / spec["file"]).drop_nulls(spec["sensitive"])
    frame = frame.with_columns(pl.concat_str(spec["person"], separator="/").alias("person_key")).sort(spec["time"])
    people = frame["person_key"].unique().sort().head(args.rows)
    frame = frame.filter(pl.col("person_key").is_in(people.implode()))
    frame = frame.unique(["person_key", spec["time"]], keep="first", maintain_order=True)
    frame = frame.with_columns(pl.col(spec["sensitive"]).first().over("person_key").cast(pl.String))
    columns = ["person_key", *spec["quasi"], spec["sensitive"]]
    tables = [part.select(columns) for part in frame.partition_by(spec["time"], maintain_order=True)]
    roles = {"person_key": "identifier", **dict.fromkeys(spec["quasi"], "quasi"), spec["sensitive"]: "sensitive"}
    return tables[: args.releases], roles, min(spec["m"], args.m)


def policy_of(columns: dict[str, Any], m: int, form: str) -> dict[str, Any]:
    refill, how = FORMS[form]
    boxed = how.get("publish") == "anatomy" and how.get("people") != "exact"
    places = refill if refill == "never" else min(refill, m - 1)
    guarantee = {"model": "compromise-safety", "m": m, "compromised": 1, "refill": places}
    return {
        "columns": columns,
        "values": {"change": "never"},
        "guarantee": {**guarantee, **({"k": K} if boxed else {})},
        "method": how,
    }


def published(
    tables: list[pl.DataFrame], columns: dict[str, Any], m: int, form: str, args: argparse.Namespace
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Publish the series in one form; figures of the releases that are asked for."""
    policy, start = policy_of(columns, m, form), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        series = reveil.open_series(policy, folder)
        for number, table in enumerate(tables, 1):
            release = series.publish(table, seed=args.seed, new_people=True)
            if number not in (args.also, len(tables)):
                continue
            counts, certificate = release.certificate.counts, release.certificate
            found = measure(release, table, policy, queries=args.queries, selectivity=(args.selectivity,))
            lost = sum(rows for reason, rows in certificate.withheld.items() if "place" in reason)
            bound = next(v["bound"] for v in certificate.verdicts if v["guarantee"] == "compromise-safety")
            (error,) = found.queries
            unseen = counts["withheld rows"] / table.height  # each counts as wholly lost in the NCP
            yield (
                number,
                (
                    str(number),
                    str(bound),
                    f"{counts['withheld rows']:,}",
                    f"{lost:,}",
                    f"{counts['counterfeit rows'] / max(1, counts['published rows']):.0%}",
                    f"{found.ncp_mean:.3f}",
                    f"{(found.ncp_mean - unseen) / (1 - unseen):.3f}",
                    f"{alone(table, columns, args):.3f}",
                    "-" if error.median_relative is None else f"{error.median_relative:.3f}",
                    f"{time.perf_counter() - start:.0f}",
                ),
            )


def alone(table: pl.DataFrame, columns: dict[str, Any], args: argparse.Namespace) -> float:
    """The mean NCP of a single release of the table that promises k and nothing else."""
    policy = {"columns": columns, "guarantee": {"k": K}}
    return measure(reveil.anonymize(table, policy, seed=args.seed), table, policy, queries=0).ncp_mean


def run_table(args: argparse.Namespace) -> None:
    print(f"| {' | '.join(HEADINGS)} |\n{'|---' * len(HEADINGS)}|", flush=True)
    for shape in args.shapes.split(","):
        if shape in PANELS and not (DATA / PANELS[shape]["file"]).is_file():
            print(f"{shape} is not here: {PANELS[shape]['file']}", file=sys.stderr)
            continue
        tables, columns, m = panel(shape, args) if shape in PANELS else simulated(shape, args)
        title = shape if shape in PANELS else f"{shape}, {args.churn:.0%} churn"
        for form in FORMS:
            try:
                for _, line in published(tables, columns, m, form, args):
                    print(f"| {' | '.join((title, form, *line))} |", flush=True)
            except InfeasibleError as error:  # nobody may wait where nobody would be shown
                print(f"| {title} | {form} | refused: {error.faults[0].message} |", flush=True)


def run_speed(args: argparse.Namespace) -> None:
    """One more release in two tables after `past` releases: planning groups and boxes, against sorting."""
    from persistent import COLUMNS, Memory, sorting_time

    form = "two tables, never refilled (default)"
    policy = load_policy(policy_of(COLUMNS, args.m, form))
    whole = load_policy(policy_of(COLUMNS, args.m, "one table, never refilled"))
    memory = Memory(policy)
    churn = {"arrive": args.churn, "leave": args.churn, "returns": 0.0, "seed": args.seed}
    scenario = Scenario(shape="census", rows=args.rows, releases=args.past + 1, **churn)
    for number, table in enumerate(iterate(scenario), 1):
        encoded, past = memory.encode(table.select(*COLUMNS)), memory.history()
        if number <= args.past:
            memory.add(encoded, method(whole)(encoded, past, whole, seed=args.seed, progress=silent))
    sorting, processor = min(sorting_time(encoded.positions) for _ in range(5))
    print("| what | rows | sorting s | planning s | ratio | processor ratio |\n|---|---|---|---|---|---|")
    for name, asked in (("groups alone (one table)", whole), ("groups and boxes (two tables)", policy)):
        times, busy = [], []
        for _ in range(args.times):
            clock, used = time.perf_counter(), time.process_time()
            method(asked)(encoded, past, asked, seed=args.seed, progress=silent)
            times.append(time.perf_counter() - clock)
            busy.append(time.process_time() - used)
        best, used = min(times), min(busy)
        ratios = f"{best / sorting:.1f}", f"{used / processor:.1f}"
        figures = (f"{encoded.rows:,}", f"{sorting:.3f}", f"{best:.3f}", *ratios)
        print(f"| {name} | {' | '.join(figures)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["table", "speed"])
    parser.add_argument("--shapes", default="hospital,census")
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--releases", type=int, default=12)
    parser.add_argument("--also", type=int, default=0, help="figures of this release as well")
    parser.add_argument("--churn", type=float, default=0.1)
    parser.add_argument("--m", type=int, default=6)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--selectivity", type=float, default=0.05)
    parser.add_argument("--past", type=int, default=10)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.what == "speed":
        run_speed(given)
    elif given.what == "table":
        run_table(given)
    else:
        for churn in (0.1, 0.3):
            run_table(argparse.Namespace(**{**vars(given), "churn": churn, "releases": 24, "also": 12}))
        run_table(argparse.Namespace(**{**vars(given), "shapes": ",".join(PANELS)}))


if __name__ == "__main__":
    main()
