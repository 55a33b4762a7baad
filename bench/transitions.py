"""Values that change by rules: the experiments of seed 003 (figures 3 to 9), speed, and real people.

    python bench/transitions.py figures [--data acs] [--rows 20000 --arrive 5000 --leave 2000 --releases 20]
    python bench/transitions.py speed --rows 77000                    (against sorting; reveil bench transitions)
    python bench/transitions.py real                                  (MEPS, NLS, hospital encounters: ../shared/data)

Figures and speed are planned and judged in memory by the package's planners and judges; `real` publishes files.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path[:0] = [str(Path(__file__).resolve().parent)]

import reveil  # noqa: E402
from persistent import Memory, sorting_time, view_of  # noqa: E402
from reveil.background.transitions import relation_of  # noqa: E402
from reveil.background.update_graph import walk_all  # noqa: E402
from reveil.base.errors import InputError  # noqa: E402
from reveil.base.progress import silent  # noqa: E402
from reveil.history.history import History  # noqa: E402
from reveil.measure.measure import measure  # noqa: E402
from reveil.plan.loss import loss_of  # noqa: E402
from reveil.plan.methods import method  # noqa: E402
from reveil.plan.persistent.past import read_past  # noqa: E402
from reveil.plan.plan import Plan  # noqa: E402
from reveil.policy.policy import Policy, load_policy  # noqa: E402
from reveil.simulation.scenario import Scenario  # noqa: E402
from reveil.simulation.simulate import iterate  # noqa: E402
from reveil.table.encode import Encoded  # noqa: E402
from reveil.verify.judges.contract import Background  # noqa: E402
from reveil.verify.judges.distinct import chains_of  # noqa: E402
from reveil.verify.judges.registry import judges  # noqa: E402
from reveil.verify.judges.trail import trail  # noqa: E402
from reveil.write.emit import count_counterfeits  # noqa: E402
from reveil.write.recode import recode  # noqa: E402

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
QUASI = ("age", "gender", "education", "birthplace")
CLASSES = 50  # of income, where the table has no occupation of 50 values
THETAS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


def names_of(data: str) -> list[str]:
    return Scenario(shape="census").names if data == "generated" else [f"class{n:02d}" for n in range(CLASSES)]


def policy_of(args: argparse.Namespace, d: int, guarantee: dict[str, Any]) -> Policy:
    occupation = {"role": "sensitive", "order": names_of(args.data)}
    columns = {"person": "identifier", **dict.fromkeys(QUASI, "quasi"), "occupation": occupation}
    values = {"change": "transitions", "transitions": {"diameter": d}}
    if guarantee["model"] == "m-invariance":
        values = {"change": "never"}
    return load_policy({"columns": columns, "values": values, "guarantee": guarantee})


def tables(args: argparse.Namespace, d: int, leave: int) -> Iterator[pl.DataFrame]:
    """A table that grows and whose values change within blocks of d, as in the paper: generated, or drawn from ACS."""
    if args.data == "generated":
        flow = {"arrive_rows": args.arrive, "leave_rows": leave, "update_rows": args.updates, "returns": 0.0}
        scenario = Scenario(
            shape="census",
            rows=args.rows,
            releases=args.releases,
            values="transitions",
            diameter=d,
            seed=args.seed,
            **flow,
        )
        for table in iterate(scenario):
            yield table.select("person", *QUASI, "occupation")
        return
    frame = pl.read_parquet(DATA / "acs2018_pums_sample.parquet").select(*QUASI, "income")
    rank = frame["income"].rank("ordinal").to_numpy().astype(np.int64) - 1
    value = rank * CLASSES // frame.height
    frame = frame.with_columns(pl.Series("person", np.arange(frame.height)), pl.col(*QUASI[1:]).cast(pl.String))
    blocks = np.array_split(np.arange(CLASSES), -(-CLASSES // d))
    first, size = (np.concatenate([np.full(len(b), x) for b, x in zip(blocks, xs, strict=True)]) for xs in
                   ([b[0] for b in blocks], [len(b) for b in blocks]))  # fmt: skip
    rng = np.random.default_rng(args.seed)
    order, names = rng.permutation(frame.height), np.array(names_of(args.data))
    here, unused = order[: args.rows], order[args.rows :]
    for number in range(args.releases):
        yield (
            frame[here]
            .with_columns(pl.col("age") + number, pl.Series("occupation", names[value[here]]))
            .select("person", *QUASI, "occupation")
        )
        changed = rng.choice(here, min(args.updates, len(here)), replace=False)
        shift = rng.integers(0, size[value[changed]])
        value[changed] = first[value[changed]] + (value[changed] - first[value[changed]] + shift) % size[value[changed]]
        here = np.concatenate([rng.permutation(here)[leave:], unused[: args.arrive]])
        unused = unused[args.arrive :]


def vulnerable(args: argparse.Namespace, l: int, d: int) -> list[dict[str, Any]]:  # noqa: E741
    """Figure 3: each release is l-diverse by itself; how many values does following people give away?"""
    policy = policy_of(args, d, {"model": "l-diversity", "l": l})
    memory, lines = Memory(policy), []
    for number, table in enumerate(tables(args, d, args.leave), 1):
        encoded, past = memory.encode(table), memory.history()
        plan = method(policy)(encoded, History(), policy, seed=args.seed, progress=silent)
        if number in (1, args.releases) or number % 5 == 0:
            series = trail(view_of(encoded, plan), past, "occupation")
            assert series is not None
            everybody = walk_all(chains_of(replace(series, now=0)), relation_of(policy, series.book))
            gone = int(everybody.vulnerable.sum())
            lines.append({"release": number, "published": len(everybody.possible), "vulnerable": gone})
            print("l-diversity", l, d, lines[-1], file=sys.stderr, flush=True)
        memory.add(encoded, plan)
    return lines


def invalid(args: argparse.Namespace, m: int, d: int) -> list[dict[str, Any]]:
    """Figure 4: under m-invariance, rows whose value is no longer in their signature cannot be published."""
    policy = policy_of(args, d, {"model": "m-invariance", "m": m})
    memory, lines, total = Memory(policy), [], 0
    for number, table in enumerate(tables(args, d, args.leave), 1):
        encoded, history = memory.encode(table), memory.history()
        assert encoded.persons is not None
        past = read_past(history, len(memory.numbers), "occupation")
        latest = past.latest[encoded.persons]
        codes, known = encoded.codes[:, 0], latest >= 0
        group = np.repeat(np.arange(len(past.first) - 1), np.diff(past.first))
        there = np.isin(latest * 1000 + codes, group * 1000 + past.codes)
        fits = ~known | there
        total += int((~fits).sum())
        kept = Encoded(encoded.quasi, encoded.positions[fits], encoded.sensitive, encoded.codes[fits], None,
                       encoded.persons[fits])  # fmt: skip
        plan = method(policy)(kept, history, policy, seed=args.seed, progress=silent)
        memory.add(kept, plan)
        lines.append({"release": number, "invalid so far": total})
    print("m-invariance", m, d, lines[-1], file=sys.stderr, flush=True)
    return lines


def series(args: argparse.Namespace, m: int, d: int, leave: int, model: str = "m-distinct") -> list[dict[str, Any]]:
    """Figures 5 to 8: one whole series under m-Distinct, every release judged."""
    policy = policy_of(args, d, {"model": model, "m": m, "view": "individual"})
    memory, lines = Memory(policy), []
    for number, table in enumerate(tables(args, d, leave), 1):
        encoded, past = memory.encode(table), memory.history()
        busy = time.process_time()
        plan = method(policy)(encoded, past, policy, seed=args.seed, progress=silent)
        busy = time.process_time() - busy
        (verdict,) = next(iter(judges(policy, Background()))).judge(view_of(encoded, plan), past)
        line = {
            "release": number,
            "rows": table.height,
            "groups": plan.count,
            "violations": verdict.violating_classes,
            "highest chance": round(verdict.details["highest chance of a value"], 4),
            "counterfeits per group": round(plan.counterfeits / max(1, plan.count), 4),
            "withheld": plan.withheld,
            "loss": round(loss_of(encoded, plan, policy).mean, 4),
            "planning": round(busy, 3),
        }
        if args.queries and (number in (1, args.releases) or number % 5 == 0):
            line["error"] = errors(table, encoded, plan, policy, args)
        memory.add(encoded, plan)
        lines.append(line)
    print(model, m, d, leave, lines[-1], file=sys.stderr, flush=True)
    return lines


def errors(
    table: pl.DataFrame, encoded: Encoded, plan: Plan, policy: Policy, args: argparse.Namespace
) -> dict[str, Any]:
    """Median relative error of counts, by theta: ranges of theta of the domain in all five columns."""
    shown = recode(table, encoded, plan, policy, np.random.default_rng(args.seed), group_column=True).table
    grid = [theta**5 for theta in THETAS]
    found = measure(
        shown, table, policy, counterfeits=count_counterfeits(plan), queries=args.queries, selectivity=grid, seed=1
    )
    return {
        str(theta): None if q.median_relative is None else round(q.median_relative, 4)
        for theta, q in zip(THETAS, found.queries, strict=True)
    }


def run_figures(args: argparse.Namespace) -> dict[str, Any]:
    more = args.leave + args.arrive // 5  # 3,000 where the paper wants counterfeits
    figures: dict[str, Callable[[], dict[str, Any]]] = {
        "3a, vulnerable by l": lambda: {f"l={n}": vulnerable(args, n, 10) for n in (2, 4, 6)},
        "3b, vulnerable by d": lambda: {f"d={d}": vulnerable(args, 2, d) for d in (2, 5, 25)},
        "4a, invalid by m": lambda: {f"m={m}": invalid(args, m, 10) for m in (2, 6)},
        "4b, invalid by d": lambda: {f"d={d}": invalid(args, 6, d) for d in (2, 5, 25)},
        "5, by m": lambda: {f"m={m}": series(args, m, 10, args.leave) for m in (2, 4, 6, 8)},
        "6, by d": lambda: {f"d={d}": series(args, 4, d, args.leave) for d in (5, 25)},
        "7 and 8b, counterfeits by m": lambda: {f"m={m}": series(args, m, 5, more) for m in (2, 4, 6, 8)},
        "8a, counterfeits by d": lambda: {f"d={d}": series(args, 6, d, more) for d in (10, 25)},
    }
    wanted = args.only.split(",")
    return {name: run() for name, run in figures.items() if name.startswith(tuple(wanted))}


def run_speed(args: argparse.Namespace) -> dict[str, Any]:
    """Figure 9 and beyond: one more release after two, in processor time, against sorting once per column."""
    args.releases, args.data = 3, "generated"
    args.arrive, args.leave, args.updates = args.rows * 5 // 77, args.rows * 2 // 77, args.rows * 5 // 77
    found: dict[str, Any] = {}
    for m, d in [(args.m, 10)] if args.short else [(2, 10), (4, 10), (6, 10), (8, 10), (6, 5), (6, 25)]:
        policy = policy_of(args, d, {"model": "m-distinct", "m": m, "view": "individual"})
        memory = Memory(policy)
        for number, table in enumerate(tables(args, d, args.leave), 1):
            encoded, past = memory.encode(table), memory.history()
            plan = method(policy)(encoded, past, policy, seed=args.seed, progress=silent)
            if number == args.releases:
                found[f"m={m}, d={d}"] = _timed(encoded, past, plan, policy, args)
                print(m, d, found[f"m={m}, d={d}"], file=sys.stderr, flush=True)
            memory.add(encoded, plan)
    return found


def _timed(encoded: Encoded, past: History, plan: Plan, policy: Policy, args: argparse.Namespace) -> dict[str, Any]:
    times = []
    for _ in range(3):
        wall, busy = time.perf_counter(), time.process_time()
        method(policy)(encoded, past, policy, seed=args.seed, progress=silent)
        times.append((time.process_time() - busy, time.perf_counter() - wall))
    sorting = min(sorting_time(encoded.positions)[1] for _ in range(5))
    busy = time.process_time()
    (verdict,) = next(iter(judges(policy, Background()))).judge(view_of(encoded, plan), past)
    judged = time.process_time() - busy
    cpu, wall = min(times)
    return {
        "rows": encoded.rows,
        "sorting": round(sorting, 4),
        "planning": round(cpu, 4),
        "wall": round(wall, 4),
        "ratio": round(cpu / sorting, 2),
        "judging": round(judged, 3),
        "holds": verdict.holds,
        "counterfeits": plan.counterfeits,
    }


REAL: dict[str, dict[str, Any]] = {
    "meps": {
        "file": "meps_panel_2015_2016.parquet",
        "rows": (pl.col("occupation") > 0),  # people at work
        "person": "person_id",
        "time": pl.col("release"),
        "sensitive": "occupation",
        "quasi": ["age", "sex", "race_eth", "marital", "region"],
    },
    "nlswork": {
        "file": "nlswork_1968_1988.parquet",
        "rows": pl.col("occ_code").is_not_null(),
        "person": "idcode",
        "time": pl.col("year"),
        "sensitive": "occ_code",
        "quasi": ["age", "race", "grade", "south"],
    },
    "diabetes": {
        "file": "diabetes130_us_hospitals.parquet",
        "rows": pl.col("diag1_chapter_derived").is_not_null(),
        "person": "patient_nbr",
        "time": (pl.col("encounter_id").rank("ordinal") - 1) * 8 // pl.len(),
        "sensitive": "diag1_chapter_derived",
        "quasi": ["age", "gender", "race", "admission_type_id"],
    },
}


def run_real(args: argparse.Namespace) -> dict[str, Any]:
    """Real people: the relation are the changes that occur in the file, each once at most per appearance."""
    found: dict[str, Any] = {}
    for name, spec in REAL.items():
        column = spec["sensitive"]
        frame = pl.read_parquet(DATA / spec["file"]).filter(spec["rows"]).with_columns(spec["time"].alias("when"))
        frame = frame.unique(["when", spec["person"]], keep="first", maintain_order=True).sort("when")
        frame = frame.with_columns(pl.col(spec["person"], column).cast(pl.String))
        steps = frame.with_columns(pl.col(column).shift(1).over(spec["person"]).alias("before")).drop_nulls("before")
        relation = dict(steps.group_by("before").agg(pl.col(column).unique().sort()).sort("before").iter_rows())
        columns = {spec["person"]: "identifier", **dict.fromkeys(spec["quasi"], "quasi"), column: "sensitive"}
        for m in (2, 3):
            policy = {
                "columns": columns,
                "values": {"change": "transitions", "transitions": relation, "closure": "one-step"},
                "guarantee": {"model": "m-distinct", "m": m, "view": "individual"},
            }
            found[f"{name}, m={m}"] = _publish(policy, [t.select(*columns) for t in frame.partition_by("when")])
            print(name, m, found[f"{name}, m={m}"][-1], file=sys.stderr, flush=True)
    found["diabetes, level"] = _within_chapters()
    return found


def _publish(policy: dict[str, Any], releases: list[pl.DataFrame]) -> list[dict[str, Any]]:
    lines = []
    with tempfile.TemporaryDirectory() as home:
        opened = reveil.open_series(policy, home=Path(home) / "home")
        for number, table in enumerate(releases, 1):
            busy = time.process_time()
            release = opened.publish(table, seed=1)
            counts = release.certificate.counts
            fakes = 0 if release.counterfeits is None else int(release.counterfeits["count"].sum())
            detail = release.certificate.to_dict()["verdicts"][0]["details"]
            lines.append(
                {
                    "release": number,
                    "rows": table.height,
                    "groups": counts["groups"],
                    "counterfeits per row": round(fakes / table.height, 3),
                    "highest chance": round(detail["highest chance of a value"], 3),
                    "holds": release.certificate.holds,
                    "seconds": round(time.process_time() - busy, 2),
                }
            )
    return lines


def _within_chapters() -> str:
    """Whether patients' first diagnoses stay within their ICD-9 chapter, as a rule would have it."""
    frame = pl.read_parquet(DATA / "diabetes130_us_hospitals.parquet").drop_nulls(["diag_1", "diag1_chapter_derived"])
    frame = frame.with_columns(pl.col("diag_1", "diag1_chapter_derived", "patient_nbr").cast(pl.String))
    tree = dict(frame.group_by("diag1_chapter_derived").agg(pl.col("diag_1").unique().sort()).iter_rows())
    windows = frame.sort("encounter_id").with_columns(when=pl.int_range(pl.len()) * 8 // pl.len())
    windows = windows.unique(["when", "patient_nbr"], keep="first", maintain_order=True)
    columns = {"patient_nbr": "identifier", "gender": "quasi", "age": "quasi"}
    policy = {
        "columns": {**columns, "diag_1": {"role": "sensitive", "hierarchy": tree}},
        "values": {"change": "transitions", "transitions": {"level": 1}},
        "guarantee": {"model": "m-distinct", "m": 3, "view": "individual"},
    }
    try:
        _publish(policy, [t.select(*columns, "diag_1") for t in windows.partition_by("when")])
    except InputError as error:
        return str(error)
    return "published"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="speed", choices=["figures", "speed", "real"])
    parser.add_argument("--data", choices=["generated", "acs"], default="generated")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--arrive", type=int, default=5_000)
    parser.add_argument("--leave", type=int, default=2_000)
    parser.add_argument("--updates", type=int, default=5_000)
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--m", type=int, default=6)
    parser.add_argument("--short", action="store_true", help="speed: the paper's m and d only")
    parser.add_argument("--only", default="", help="figures whose names begin so, such as 3a,5")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--out", type=Path)
    started_by_reveil = sys.argv[1:2] == ["bench"]
    args = parser.parse_args(sys.argv[3:] if started_by_reveil else None)
    args.rows = args.rows or (20_000 if args.what == "figures" else 77_000)
    settings = {key: str(value) for key, value in vars(args).items() if key != "out"}
    found = {"figures": run_figures, "speed": run_speed, "real": run_real}[args.what](args)
    text = json.dumps({"settings": settings, "found": found}, indent=1)
    if args.out is None:
        print(text)
    else:
        args.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
