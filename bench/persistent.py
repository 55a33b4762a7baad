"""Series with values that never change: m-invariance, Cor-Split and closed cohorts side by side.

    python bench/persistent.py series --rows 60000 --churn 0.33 --releases 24      (figures 7, 8 and 9 of the seed)
    python bench/persistent.py series --data acs --rows 60000 --churn 0.33 --releases 24
    python bench/persistent.py attack --rows 6000 --churn 0.1 --releases 8         (compromised people)
    python bench/persistent.py speed --rows 600000 --past 10                       (against sorting)
    python bench/persistent.py tradeoff --rows 20000 --churn 0.1 --releases 12     (m, refill -> counterfeits, loss)

Everything is planned and judged in memory, by the package's planners and judges; nothing is written but the result.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.progress import silent
from reveil.history.history import History
from reveil.measure.measure import measure
from reveil.plan.loss import loss_of
from reveil.plan.methods import method
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy, load_policy
from reveil.simulation.scenario import Scenario
from reveil.simulation.simulate import iterate
from reveil.table.encode import Encoded, encode
from reveil.verify.judges.contract import Background, View
from reveil.verify.judges.correlation import pairs
from reveil.verify.judges.registry import judges
from reveil.verify.judges.trail import trail
from reveil.write.emit import count_counterfeits
from reveil.write.recode import recode

COLUMNS = {
    "person": "identifier",
    "age": "quasi",
    "gender": "quasi",
    "education": "quasi",
    "birthplace": "quasi",
    "occupation": "sensitive",
}
MODELS: dict[str, dict[str, Any]] = {
    "m-invariance": {"model": "m-invariance"},
    "Cor-Split": {"model": "historical-safety", "n": 3, "closure": "pairwise"},
    "cohorts": {"model": "compromise-safety", "compromised": 1, "refill": 3},
}


def policy_of(name: str, m: int, **changes: Any) -> Policy:
    guarantee = {**MODELS[name], "m": m, **changes}
    values = {"change": "never"}
    method = {"infeasible": "withhold"}
    return load_policy({"columns": COLUMNS, "values": values, "guarantee": guarantee, "method": method})


def tables(args: argparse.Namespace) -> Iterator[pl.DataFrame]:
    """Generated census-shaped tables, or samples of the ACS file in which people are replaced at the same rate."""
    if args.data == "generated":
        churn = {"arrive": args.churn, "leave": args.churn, "returns": 0.0, "seed": args.seed}
        for table in iterate(Scenario(shape="census", rows=args.rows, releases=args.releases, **churn)):
            yield table.select(*COLUMNS)
        return
    source = Path(__file__).resolve().parents[2] / "shared" / "data" / "acs2018_pums_sample.parquet"
    frame = pl.read_parquet(source)
    edges = frame["income"].quantile  # 50 classes of income, as in the paper
    cuts = sorted({float(edges(q / 50)) for q in range(1, 50)})
    frame = frame.with_columns(
        pl.Series("person", np.arange(frame.height)),
        frame["income"].cut(cuts).cast(pl.String).alias("occupation"),
        pl.col("gender", "education", "birthplace").cast(pl.String),
    ).select(*COLUMNS)
    rng = np.random.default_rng(args.seed)
    order = rng.permutation(frame.height)
    here, unused = order[: args.rows], order[args.rows :]
    for _ in range(args.releases):
        yield frame[here]
        swapped = round(args.churn * args.rows)
        if len(unused) < swapped:  # the file is used up: people from the start of it come again as others
            frame = pl.concat([frame, frame.with_columns(pl.col("person") + frame.height)])
            unused = np.concatenate([unused, rng.permutation(np.arange(frame.height // 2, frame.height))])
        here = np.concatenate([rng.permutation(here)[swapped:], unused[:swapped]])
        unused = unused[swapped:]


class Memory:
    """The past of a series, kept in memory as the ledger would keep it."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.numbers: dict[Any, int] = {}
        self.members: list[pl.DataFrame] = []
        self.groups: list[pl.DataFrame] = []
        self.values: list[pl.DataFrame] = []
        self.codebook: dict[str, Any] = {}

    def encode(self, table: pl.DataFrame) -> Encoded:
        e = encode(table, self.policy, self.codebook)
        numbers = self.numbers
        persons = np.array([numbers.setdefault(p, len(numbers)) for p in table["person"].to_list()], dtype=np.int64)
        return Encoded(e.quasi, e.positions, e.sensitive, e.codes, None, persons)

    def history(self) -> History:
        if not self.members:
            return History()
        frames = (pl.concat(part) for part in (self.members, self.groups, self.values))
        members, groups, values = frames
        known = 1 + max(int(part["person"].to_numpy().max()) for part in self.members)  # newcomers have numbers already
        persons = pl.DataFrame({"hi": np.arange(known, dtype=np.uint64)}).with_columns(lo=pl.col("hi"))
        return History(len(self.members), "", persons, members, groups, values, self.codebook)

    def add(self, encoded: Encoded, plan: Plan) -> None:
        release = pl.lit(len(self.members) + 1, dtype=pl.Int32).alias("release")
        column = encoded.sensitive[0].name
        kept = plan.groups >= 0
        group = np.concatenate([plan.groups[kept], plan.counterfeit_groups])
        code = np.concatenate([encoded.codes[kept, 0], plan.counterfeit_codes.reshape(-1)])
        fake = np.concatenate([np.zeros(int(kept.sum()), dtype=np.int64), np.ones(plan.counterfeits, dtype=np.int64)])
        rows = pl.DataFrame({"group": group, "code": code.astype(np.int32), "fake": fake})
        groups = rows.group_by("group").agg(rows=pl.len(), counterfeits=pl.col("fake").sum()).sort("group")
        values = rows.group_by("group", "code").agg(rows=pl.len()).sort("group", "code")
        persons = encoded.persons
        assert persons is not None
        members = pl.DataFrame({"person": persons.astype(np.uint32), "group": plan.groups, column: encoded.codes[:, 0]})
        self.members.append(members.with_columns(release))
        self.groups.append(groups.with_columns(release))
        self.values.append(values.with_columns(release, pl.lit(column).alias("column")))
        self.codebook = {column: list(encoded.sensitive[0].values)}


def view_of(encoded: Encoded, plan: Plan) -> View:
    kept = plan.groups >= 0
    column = encoded.sensitive[0]
    codes = np.concatenate([encoded.codes[kept, 0], plan.counterfeit_codes.reshape(-1)])
    assert encoded.persons is not None
    return View(
        classes=np.concatenate([plan.groups[kept], plan.counterfeit_groups]).astype(np.int64),
        quasi=pl.DataFrame(),
        sensitive={column.name: pl.Series(column.values).gather(codes)},
        counterfeits=np.bincount(plan.counterfeit_groups, minlength=plan.count).astype(np.int64),
        members=pl.DataFrame({"person": encoded.persons[kept], "class": plan.groups[kept].astype(np.int64)}),
    )


def run_series(args: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in args.models.split(","):
        policy = policy_of(name, args.m)
        memory, lines = Memory(policy), []
        for number, table in enumerate(tables(args), 1):
            encoded, past = memory.encode(table), memory.history()
            start = time.perf_counter()
            plan = method(policy)(encoded, past, policy, seed=args.seed, progress=silent)
            planned = time.perf_counter() - start
            view = view_of(encoded, plan)
            verdicts = [v for judge in judges(policy, Background()) for v in judge.judge(view, past)]
            series = trail(view, past, "occupation")
            assert series is not None
            line: dict[str, Any] = {
                "release": number,
                "groups": plan.count,
                "violations": sum(v.violating_classes for v in verdicts),
                "hc-unsafe": int(pairs(series, 3).sum()),
                "counterfeits": plan.counterfeits,
                "withheld": plan.withheld,
                "loss": round(loss_of(encoded, plan, policy).mean, 4),
                "planning": round(planned, 3),
            }
            if number in (1, args.releases // 2, args.releases):
                line["query error"] = errors(table, encoded, plan, policy, args)
            memory.add(encoded, plan)
            lines.append(line)
            print(name, json.dumps(line), file=sys.stderr, flush=True)
        found[name] = lines
    return found


def errors(
    table: pl.DataFrame, encoded: Encoded, plan: Plan, policy: Policy, args: argparse.Namespace
) -> dict[str, Any]:
    rng = np.random.default_rng(args.seed)
    shown = recode(table, encoded, plan, policy, rng, group_column=True).table
    fakes = count_counterfeits(plan)
    grid = [float(s) for s in args.selectivity.split(",")]
    result = measure(shown, table, policy, counterfeits=fakes, queries=args.queries, selectivity=grid, seed=args.seed)
    return {
        str(q.selectivity): None if q.median_relative is None else round(q.median_relative, 4) for q in result.queries
    }


def run_speed(args: argparse.Namespace) -> dict[str, Any]:
    """One more release after `past` releases, against sorting the table once per quasi-identifier."""
    args.releases, args.data = args.past + 1, "generated"
    found: dict[str, Any] = {}
    for name in args.models.split(","):
        policy = policy_of(name, args.m)
        memory = Memory(policy)
        for number, table in enumerate(tables(args), 1):
            encoded, past = memory.encode(table), memory.history()
            if number <= args.past:
                plan = method(policy)(encoded, past, policy, seed=args.seed, progress=silent)
                memory.add(encoded, plan)
                continue
            sorting = min(sorting_time(encoded.positions) for _ in range(5))
            times = []
            for _ in range(5):  # processor time beside wall time: other work on the machine does not count
                start, busy = time.perf_counter(), time.process_time()
                method(policy)(encoded, past, policy, seed=args.seed, progress=silent)
                times.append((time.perf_counter() - start, time.process_time() - busy))
            wall, cpu = (min(column) for column in zip(*times, strict=True))
            found[name] = {
                "sorting": round(sorting[0], 4),
                "planning": round(wall, 4),
                "ratio": round(wall / sorting[0], 2),
                "cpu ratio": round(cpu / sorting[1], 2),
            }
            print(name, found[name], file=sys.stderr, flush=True)
    return found


def sorting_time(positions: NDArray[np.int32]) -> tuple[float, float]:
    """Wall and processor time of sorting once per column."""
    columns = [np.ascontiguousarray(positions[:, c]) for c in range(positions.shape[1])]
    start, busy = time.perf_counter(), time.process_time()
    for column in columns:
        np.argsort(column, kind="stable")
    return time.perf_counter() - start, time.process_time() - busy


def run_tradeoff(args: argparse.Namespace) -> dict[str, Any]:
    """Counterfeits and loss at the end of a series for several m and refill."""
    found: dict[str, Any] = {}
    for m in (3, 4, 6, 8):
        for refill in (2, 3, 4, "never"):
            if isinstance(refill, int) and refill > m:
                continue
            policy = policy_of("cohorts", m, refill=refill)
            memory = Memory(policy)
            plan, encoded = None, None
            for table in tables(args):
                encoded = memory.encode(table)
                plan = method(policy)(encoded, memory.history(), policy, seed=args.seed, progress=silent)
                memory.add(encoded, plan)
            assert plan is not None and encoded is not None
            (judge,) = judges(policy, Background())
            line = {
                "bound": str(judge.tau),  # type: ignore[attr-defined]
                "counterfeit share": plan.statistics["counterfeit share"],
                "loss": round(loss_of(encoded, plan, policy).mean, 4),
                "withheld": plan.withheld,
            }
            found[f"m={m}, refill={refill}"] = line
            print(m, refill, line, file=sys.stderr, flush=True)
    return found


def run_attack(args: argparse.Namespace) -> dict[str, Any]:
    from attack_persistent import disclosed

    found: dict[str, Any] = {}
    for name in args.models.split(","):
        policy = policy_of(name, args.m)
        memory = Memory(policy)
        for table in tables(args):
            encoded = memory.encode(table)
            memory.add(encoded, method(policy)(encoded, memory.history(), policy, seed=args.seed, progress=silent))
        found[name] = {}
        for known in ("0", "1", "4%"):
            found[name][known] = disclosed(memory.history(), known, args.seed)
            print(name, known, found[name][known], file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["series", "attack", "speed", "tradeoff"])
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--churn", type=float, default=0.1)
    parser.add_argument("--releases", type=int, default=24)
    parser.add_argument("--past", type=int, default=10)
    parser.add_argument("--m", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", choices=["generated", "acs"], default="generated")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--selectivity", default="0.01,0.05,0.1")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    run = {"series": run_series, "attack": run_attack, "speed": run_speed, "tradeoff": run_tradeoff}[args.what]
    settings = {key: str(value) for key, value in vars(args).items() if key != "out"}
    text = json.dumps({"settings": settings, "found": run(args)}, indent=1)
    if args.out is None:
        print(text)
    else:
        args.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
