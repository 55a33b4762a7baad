"""Adversaries who know the odds: plain l-diversity of the same r against r-robustness.

    python bench/robust.py speed                               (ACS, r = 4: violations, and time against sorting)
    python bench/robust.py breach --data adult                 (r = 2..10: who is above 1/r, worst chance, query error)
    python bench/robust.py breach --data acs --rows 60000
    python bench/robust.py plot results.json figure.svg        (from the JSON lines that `breach` prints)

Tables are read from ../shared/data beside the checkout, or from --source. Priors are estimated from the table itself,
with smoothing 1: the adversary's statistics are as good as they can be.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.background.estimate import estimate
from reveil.background.prior import Prior, load, match_priors
from reveil.base.progress import silent
from reveil.history.history import History
from reveil.measure.measure import measure
from reveil.plan.loss import loss_of
from reveil.plan.methods import method
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy, load_policy
from reveil.table.encode import Encoded, encode
from reveil.table.roles import prepare
from reveil.verify.judges import posterior
from reveil.verify.judges.contract import Background, View
from reveil.verify.judges.registry import judges
from reveil.write.recode import recode
from reveil.write.two_tables import part

STATES = 1 << 17  # larger groups are left undecided here, to keep the experiment short
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
TABLES: dict[str, tuple[str, list[str], str, dict[str, list[str]]]] = {
    "adult": (
        "adult.parquet",
        ["age", "sex", "race", "education", "marital_status", "workclass"],
        "occupation",
        {"by-sex": ["sex"], "by-sex-race": ["sex", "race"], "by-age": ["age:10"]},
    ),
    "acs": (
        "acs2018_pums_sample.parquet",
        ["age", "gender", "education", "birthplace", "marital_status", "race", "workclass"],
        "occupation",
        {"by-gender": ["gender"], "by-gender-age": ["gender", "age:10"]},
    ),
}


class Setting:
    """A table, its priors in files, and policies over them."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        name, quasi, sensitive, self.priors = TABLES[args.data]
        self.quasi, self.sensitive, self.folder = quasi, sensitive, folder
        table = pl.read_parquet(Path(args.source) / name).select(*quasi, sensitive).drop_nulls()
        table = table.with_columns(pl.col(pl.Categorical).cast(pl.String))
        self.table = table.sample(min(args.rows or table.height, table.height), seed=1)
        for file, by in self.priors.items():
            estimate(self.table, by, sensitive).write(folder / f"{file}.csv")

    def policy(self, guarantee: dict[str, Any], **method: Any) -> Policy:
        columns = {**dict.fromkeys(self.quasi, "quasi"), self.sensitive: "sensitive"}
        rules = {"columns": columns, "guarantee": guarantee, "method": {"infeasible": "withhold", **method}}
        return load_policy({**rules, "folder": self.folder})

    def robust(self, r: int, **more: Any) -> Policy:
        files = [f"{name}.csv" for name in self.priors]
        changes = {name: more.pop(name) for name in ("condition",) if name in more}
        return self.policy({"model": "r-robustness", "r": r, "priors": files, **changes}, **more)

    def encoded(self, policy: Policy) -> Encoded:
        frame = prepare(self.table, policy)
        return replace(encode(frame, policy), signatures=match_priors(frame, self.robust(2)))


def chances(encoded: Encoded, plan: Plan, prior: Prior, number: int, values: tuple[Any, ...]) -> NDArray[np.float64]:
    """The largest chance of each published person, by the sum over worlds; nan where a group is too large for it."""
    rows = np.flatnonzero(plan.groups >= 0)
    rows = rows[np.argsort(plan.groups[rows], kind="stable")]
    assert encoded.signatures is not None
    table = np.array([[float(p) for p in row] for row in prior.rows(values)])
    found = np.full(encoded.rows, np.nan)
    starts = np.append(np.flatnonzero(np.diff(plan.groups[rows], prepend=-1)), len(rows))
    kind, code = encoded.signatures[rows, number], encoded.codes[rows, 0]
    alike = np.maximum.reduceat(kind, starts[:-1]) == np.minimum.reduceat(kind, starts[:-1])
    for begin, end, same in zip(starts[:-1], starts[1:], alike, strict=True):
        held = np.bincount(code[begin:end])
        if same:
            found[rows[begin:end]] = held.max() / (end - begin)
            continue
        kinds, place, people = np.unique(kind[begin:end], return_inverse=True, return_counts=True)
        codes = np.flatnonzero(held)
        weights = np.ascontiguousarray(table[np.ix_(kinds, codes)])
        chance = np.zeros_like(weights)
        states = min(posterior.states_of(people), posterior.states_of(held[codes]))
        if states <= STATES and np.isfinite(posterior.posteriors(people, held[codes], weights, chance)):
            found[rows[begin:end]] = chance.max(axis=1)[place]
    return found


def anatomize(encoded: Encoded, r: int, seed: int) -> Plan:
    """Plain anatomy: groups of r different values, whoever the people are. Rows of too frequent values are withheld."""
    rng = np.random.default_rng(seed)
    codes = encoded.codes[:, 0]
    counts = np.bincount(codes)
    groups = encoded.rows // r
    while np.minimum(counts, groups).sum() < groups * r:
        groups = int(np.minimum(counts, groups).sum()) // r
    shuffled = rng.permutation(encoded.rows)
    ordered = shuffled[np.argsort(codes[shuffled], kind="stable")]
    rank = np.arange(len(ordered)) - np.searchsorted(codes[ordered], codes[ordered])
    kept = ordered[rank < groups]
    found = np.full(encoded.rows, -1, dtype=np.int32)
    found[kept] = np.arange(len(kept)) % groups  # the rows of a value are neighbours, and no more than there are groups
    return Plan(found, "anatomy")


def breach(args: argparse.Namespace) -> None:
    """One JSON line per r and method."""
    with tempfile.TemporaryDirectory() as folder:
        setting = Setting(args, Path(folder))
        for r in map(int, args.r.split(",")):
            diverse = setting.policy({"model": "alpha-k", "alpha": f"1/{r}", "k": r})  # the paper's l-diversity
            tried = {
                "anatomy": diverse,
                "l-diversity": diverse,
                "Delta condition": setting.robust(r, condition="delta", name="linkage"),
                "r-robust, signatures": setting.robust(r),
                "r-robust, linkage": setting.robust(r, name="linkage"),
            }
            for name, policy in tried.items():
                sys.stdout.write(json.dumps(one(setting, name, r, policy, args)) + "\n")
                sys.stdout.flush()


def one(setting: Setting, name: str, r: int, policy: Policy, args: argparse.Namespace) -> dict[str, Any]:
    encoded = setting.encoded(policy)
    start = time.perf_counter()
    if name == "anatomy":
        plan = anatomize(encoded, r, 1)
    else:
        plan = method(policy)(encoded, History(), policy, seed=1, progress=silent)
    seconds = time.perf_counter() - start
    line: dict[str, Any] = {"data": args.data, "rows": encoded.rows, "r": r, "method": name}
    line |= {"withheld": plan.withheld, "groups": plan.count, "seconds": round(seconds, 3)}
    line["loss"] = round(loss_of(encoded, plan, policy).mean, 4)
    for number, prior in enumerate(load(setting.robust(2))):
        chance = chances(encoded, plan, prior, number, encoded.sensitive[0].values)
        known = chance[np.isfinite(chance)]
        line[prior.name.removesuffix(".csv")] = {
            "above": round(float((known > (1 + 1e-9) / r).mean()), 4) if len(known) else None,
            "worst": round(float(known.max()), 4) if len(known) else None,
            "undecided": int((plan.groups >= 0).sum()) - len(known),
        }
    if args.queries:
        line |= query_errors(setting, encoded, plan, policy, args.queries)
    return line


def query_errors(
    setting: Setting, encoded: Encoded, plan: Plan, policy: Policy, queries: int
) -> dict[str, float | None]:
    """Median relative error of COUNT queries at selectivity 0.05, published as anatomy and generalised."""
    frame, rng = prepare(setting.table, policy), np.random.default_rng(1)
    parts = part(frame, encoded, plan, policy, rng)
    parted = measure(
        parts.people.table, frame, policy, values=parts.values, queries=queries, selectivity=(0.05,), seed=2
    )
    boxes = recode(frame, encoded, plan, policy, rng, group_column=True).table
    whole = measure(boxes, frame, policy, queries=queries, selectivity=(0.05,), seed=2)
    found = {"error anatomy": parted.queries[0].median_relative, "error generalized": whole.queries[0].median_relative}
    return {name: None if error is None else round(error, 4) for name, error in found.items()}


def speed(args: argparse.Namespace) -> None:
    """Planning ACS at r = 4 under two priors, judged from groups and signatures, against one sort per column."""
    args.data = "acs"
    with tempfile.TemporaryDirectory() as folder:
        setting = Setting(args, Path(folder))
        policy = setting.robust(args.r, name=args.method)
        encoded = setting.encoded(policy)
        plan = method(policy)(encoded, History(), policy, seed=1, progress=silent)  # compiles
        times, sorts = [], []
        for _ in range(3):
            start = time.perf_counter()
            plan = method(policy)(encoded, History(), policy, seed=1, progress=silent)
            times.append(time.perf_counter() - start)
            start = time.perf_counter()
            for c in range(len(setting.quasi)):
                np.argsort(encoded.positions[:, c], kind="stable")
            sorts.append(time.perf_counter() - start)
        start = time.perf_counter()
        seen = view(encoded, plan, policy)
        verdicts = [v for judge in judges(policy, Background()) for v in judge.judge(seen, History())]
        judged = time.perf_counter() - start
        ratio, loss = min(times) / min(sorts), loss_of(encoded, plan, policy).mean
        what = f"ACS, {encoded.rows:,} rows, r = {args.r}, {args.method}"
        sys.stdout.write(f"{what}: {plan.count:,} groups, {plan.withheld:,} withheld, loss {loss:.4f}\n")
        sys.stdout.write(f"planned in {min(times):.2f} s, sorts {min(sorts):.3f} s: {ratio:.1f} times; ")
        sys.stdout.write(f"judged in {judged:.2f} s\n")
        for v in verdicts:
            sys.stdout.write(f"{v.violating_rows} violations; {v.statement}\n")


def view(encoded: Encoded, plan: Plan, policy: Policy) -> View:
    """What the judge sees of a plan."""
    kept = plan.groups >= 0
    classes = plan.groups[kept].astype(np.int64)
    assert encoded.signatures is not None
    columns = {prior.name: encoded.signatures[kept, number] for number, prior in enumerate(load(policy))}
    shown = pl.Series(encoded.sensitive[0].values).gather(encoded.codes[kept, 0])
    none = np.zeros(plan.count, dtype=np.int64)
    people = pl.DataFrame({"class": classes, **columns})
    return View(classes, pl.DataFrame(), {encoded.sensitive[0].name: shown}, none, None, people)


def plot(args: argparse.Namespace) -> None:
    """Share of people above 1/r by r, one line per method, worst of the priors; as SVG."""
    lines = [json.loads(text) for text in Path(args.results).read_text(encoding="utf-8").splitlines()]
    methods = list(dict.fromkeys(line["method"] for line in lines))
    rs = sorted({line["r"] for line in lines})
    priors = [key for key, value in lines[0].items() if isinstance(value, dict)]

    def known(line: dict[str, Any]) -> bool:
        return all(line[prior]["above"] is not None for prior in priors)

    share = {
        (line["method"], line["r"]): max((line[p]["above"] or 0 for p in priors), default=0)
        for line in lines
        if known(line)
    }
    colours = ("#7a0b0b", "#b3261e", "#e08a00", "#1a6b3c", "#2457a6")
    left, top, width, height = 60, 20, 460, 220

    def x(r: int) -> float:
        return left + width * (r - rs[0]) / max(1, rs[-1] - rs[0])

    def y(value: float) -> float:
        return top + height * (1 - value)

    parts = [f'<text x="{left}" y="14">people above 1/r for somebody who knows the odds ({lines[0]["data"]})</text>']
    for tick in (0, 0.25, 0.5, 0.75, 1):
        parts.append(f'<path d="M{left} {y(tick):.1f}h{width}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:.0%}</text>')
    parts += [f'<text x="{x(r):.1f}" y="{top + height + 18}" text-anchor="middle">{r}</text>' for r in rs]
    for number, name in enumerate(methods):
        points = " ".join(f"{x(r):.1f},{y(share[name, r]):.1f}" for r in rs if (name, r) in share)
        colour = colours[number % len(colours)]
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{left + width + 10}" y="{40 + 20 * number}" fill="{colour}">{name}</text>')
    style = 'font-family="sans-serif" font-size="12"'
    body = "\n".join(parts)
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 280" {style}>\n{body}\n</svg>\n'
    Path(args.figure).write_text(svg, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default=str(DATA))
    commands = parser.add_subparsers(required=True)
    quick = commands.add_parser("speed")
    quick.add_argument("--r", type=int, default=4)
    quick.add_argument("--rows", type=int)
    quick.add_argument("--method", choices=("signatures", "linkage"), default="signatures")
    quick.set_defaults(run=speed)
    long = commands.add_parser("breach")
    long.add_argument("--data", choices=tuple(TABLES), default="adult")
    long.add_argument("--rows", type=int)
    long.add_argument("--r", default="2,3,4,5,6,7,8,9,10")
    long.add_argument("--queries", type=int, default=1000)
    long.set_defaults(run=breach)
    figure = commands.add_parser("plot")
    figure.add_argument("results")
    figure.add_argument("figure")
    figure.set_defaults(run=plot)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
