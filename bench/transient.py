"""Values that change freely: what the global guarantee costs, and what goes wrong without it.

    python bench/transient.py series [--rows 100000] [--releases 20] [--l 2]     violations, groups and query error
    python bench/transient.py speed [--rows 600000] [--past 10]                  planning against sorting
    python bench/transient.py real [--data ../shared/data]                       MEPS and NLS young women
    python bench/transient.py grid [--rows 10000]                                the same by l, horizon and strategy
    python bench/transient.py plot --of series.md --out docs/changing-values.svg   a picture of what `series` printed

Each of the first four prints Markdown tables and what they were measured on, and writes nothing.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import reveil
from reveil.base.errors import InfeasibleError
from reveil.base.progress import silent
from reveil.history.history import History
from reveil.measure.measure import measure
from reveil.plan.loss import loss_of
from reveil.plan.methods import method
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy, load_policy
from reveil.simulation.scenario import Scenario
from reveil.simulation.simulate import iterate, simulate
from reveil.table.encode import Encoded, encode
from reveil.verify.judges.contract import Verdict, View
from reveil.verify.judges.ever_linked import GlobalJudge

HEAD = "release | violations | highest chance | withheld | rows per group | NCP | seconds |\n|-|-|-|-|-|-|-|"


def census_policy(guarantee: dict[str, Any], **method: Any) -> Policy:
    columns = simulate(Scenario(shape="census", rows=10, releases=1, values="freely")).policy["columns"]
    content = {"columns": columns, "values": {"change": "freely"}, "guarantee": guarantee, "method": method}
    return load_policy(content)


def census(rows: int, releases: int, seed: int = 1) -> Iterator[pl.DataFrame]:
    """10 % leave and 10 % come between releases; everybody's value is redrawn each time among 50."""
    return iterate(Scenario(shape="census", rows=rows, releases=releases, values="freely", skew=0.0, seed=seed))


class Memory:
    """A series in memory, without files: enough past for planning and judging, fast enough for large benches."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.key = policy, policy.identifier or ""
        self.known = pl.DataFrame(schema={self.key: pl.String, "number": pl.Int64})
        self.history = History()

    def encode(self, table: pl.DataFrame) -> Encoded:
        encoded = encode(table, self.policy, self.history.codebook)
        ids = table.select(pl.col(self.key).cast(pl.String))
        new = ids.join(self.known, on=self.key, how="anti").unique(maintain_order=True)
        new = new.with_columns((pl.int_range(pl.len()) + self.known.height).alias("number"))
        self.known = pl.concat([self.known, new])
        persons = ids.join(self.known, on=self.key, how="left", maintain_order="left")["number"].to_numpy()
        return replace(encoded, persons=persons)

    def plan(self, encoded: Encoded) -> Plan:
        return method(self.policy)(encoded, self.history, self.policy, seed=1, progress=silent)

    def remember(self, encoded: Encoded, plan: Plan) -> None:
        number = self.history.head + 1
        name = encoded.sensitive[0].name
        members = pl.DataFrame(
            {
                "release": np.full(encoded.rows, number, dtype=np.int32),
                "person": encoded.persons,
                "group": plan.groups,
                name: encoded.codes[:, 0],
            }
        )
        shown = members.filter(pl.col("group") >= 0)
        groups = shown.group_by("release", "group").agg(pl.len().alias("rows"), pl.lit(0).alias("counterfeits"))
        values = shown.group_by("release", "group", pl.col(name).alias("code")).agg(pl.len().alias("rows"))
        values = values.with_columns(pl.lit(name).alias("column"))
        past = self.history
        people = pl.DataFrame(
            {"hi": np.arange(self.known.height), "lo": np.zeros(self.known.height)},
            schema={"hi": pl.UInt64, "lo": pl.UInt64},
        )
        first = past.head == 0
        self.history = History(
            head=number,
            persons=people,
            members=members if first else pl.concat([past.members, members]),
            groups=groups if first else pl.concat([past.groups, groups]),
            values=values if first else pl.concat([past.values, values]),
            codebook={name: encoded.sensitive[0].values},
        )

    def judge(self, encoded: Encoded, plan: Plan, bound: int) -> Verdict:
        """What the global guarantee says of a plan, whatever it was planned under."""
        kept = plan.groups >= 0
        column = encoded.sensitive[0]
        classes = plan.groups[kept].astype(np.int64)
        view = View(
            classes=classes,
            quasi=pl.DataFrame(),
            sensitive={column.name: pl.Series(column.name, column.values).gather(encoded.codes[kept, 0])},
            counterfeits=np.zeros(plan.count, dtype=np.int64),
            members=pl.DataFrame({"person": encoded.persons[kept], "class": classes}),
        )
        return GlobalJudge(Fraction(bound), column.name).judge(view, self.history)[0]


def run_series(rows: int, releases: int, bound: int) -> None:
    """The naive baseline beside the strategies: people above 1/l after each release, and what groups look like."""
    naive = Memory(census_policy({"model": "alpha-k", "alpha": f"1/{bound}", "k": bound}))
    print(f"census, {rows:,} rows, {releases} releases, 10 % churn, 50 values redrawn, l = {bound}\n")
    print("| localized: release | people above 1/l | highest chance | rows per group | NCP |\n|-|-|-|-|-|")
    for table in census(rows, releases):
        encoded = naive.encode(table)
        plan = naive.plan(encoded)
        verdict, loss = naive.judge(encoded, plan, bound), loss_of(encoded, plan, naive.policy)
        naive.remember(encoded, plan)
        shown = f"{verdict.violating_rows:,} of {encoded.rows:,} | {float(verdict.worst or 0):.3f}"
        print(f"| {naive.history.head} | {shown} | {loss.average_group:.1f} | {loss.mean:.3f} |", flush=True)
    for pace in ({"strategy": "constant-ratio", "horizon": releases}, {"strategy": "geometric", "rate": "9/10"}):
        policy = census_policy({"model": "global", "l": bound, **pace}, infeasible="withhold")
        print(f"\n| {pace['strategy']}: {HEAD}")
        publish_all(policy, census(rows, releases))


def publish_all(policy: Policy, tables: Iterable[pl.DataFrame]) -> None:
    """Publish through the whole pipeline; the verifier reads the published files again."""
    with tempfile.TemporaryDirectory() as home:
        series = reveil.open_series(policy, home=home)
        for table in tables:
            begin = time.perf_counter()
            try:
                release = series.publish(table)
            except InfeasibleError as refusal:
                print(f"| refused: {refusal.faults[0].message} |")
                return
            spent = time.perf_counter() - begin
            verdict = next(v for v in release.certificate.verdicts if v["guarantee"] == "global")
            used = measure(release.table, table, policy, counterfeits=release.counterfeits, queries=0)
            print(
                f"| {release.number} | {verdict['violating_rows']} | {float(Fraction(verdict['worst'])):.3f} | "
                f"{int((release.groups < 0).sum()):,} | {used.average_class:.1f} | {used.ncp_mean:.3f} | {spent:.1f} |",
                flush=True,
            )


def run_speed(rows: int, past: int) -> None:
    """One more release on `past` releases: planning in units of a stable sort of every quasi-identifier column."""
    print("| rows | past | sort, s | plan, s | ratio | sort, CPU s | plan, CPU s | ratio | CPU ns / (rows log2 rows) |")
    print("|-|-|-|-|-|-|-|-|-|")
    for size in (rows // 16, rows // 4, rows):
        pace = {"strategy": "constant-ratio", "horizon": 2 * past}
        memory = Memory(census_policy({"model": "global", "l": 2, **pace}, infeasible="withhold"))
        *earlier, last = census(size, past + 1)
        for table in earlier:
            encoded = memory.encode(table)
            memory.remember(encoded, memory.plan(encoded))
        encoded = memory.encode(last)
        columns = [np.ascontiguousarray(column) for column in encoded.positions.T]
        sort = _best(lambda columns=columns: [np.argsort(column, kind="stable") for column in columns])
        plan = _best(lambda memory=memory, encoded=encoded: memory.plan(encoded))
        unit = plan[1] / (encoded.rows * np.log2(encoded.rows)) * 1e9
        print(
            f"| {encoded.rows:,} | {past} | {sort[0]:.3f} | {plan[0]:.3f} | {plan[0] / sort[0]:.1f} | "
            f"{sort[1]:.3f} | {plan[1]:.3f} | {plan[1] / sort[1]:.1f} | {unit:.1f} |",
            flush=True,
        )


def _best(job: Callable[[], object]) -> tuple[float, float]:
    """Shortest wall and processor time of five runs."""
    wall, cpu = [], []
    for _ in range(5):
        begin, used = time.perf_counter(), time.process_time()
        job()
        wall.append(time.perf_counter() - begin)
        cpu.append(time.process_time() - used)
    return min(wall), min(cpu)


def run_real(data: Path) -> None:
    """Real panels: how many people are withheld, and what is lost."""
    meps = pl.read_parquet(data / "meps_panel_2015_2016.parquet")
    quasi = {"age": "quasi", "sex": "quasi", "race_eth": "quasi", "marital": "quasi", "region": "quasi"}
    codes = [str(code) for code in sorted(meps["occupation"].drop_nulls().unique()) if code != 0]
    cases = {"health": ["4", "5"], "occupation": codes}
    for sensitive, protect in cases.items():
        columns = {"person_id": "identifier", **quasi, sensitive: "sensitive"}
        tables = [part.select(list(columns)) for part in _releases(meps, "release")]
        for pace in ({"strategy": "constant-ratio", "horizon": len(tables)}, {"strategy": "telescoping"}):
            _real(f"MEPS, {sensitive}, protected {', '.join(protect)}", columns, tables, pace, protect)
    nls = pl.read_parquet(data / "nlswork_1968_1988.parquet")
    columns = {
        "idcode": "identifier",
        "age": "quasi",
        "race": "quasi",
        "msp": "quasi",
        "grade": "quasi",
        "south": "quasi",
    }
    columns["occ_code"] = "sensitive"
    tables = [part.select(list(columns)) for part in _releases(nls, "year")]
    shares = nls["occ_code"].value_counts().drop_nulls().sort("count", descending=True)
    seen = set(tables[0]["occ_code"])  # a value that no table has had yet cannot be told from a misspelt one
    rare = [str(code) for code, count in shares.iter_rows() if count < 0.03 * nls.height and code in seen]
    for pace in ({"strategy": "constant-ratio", "horizon": len(tables)}, {"strategy": "geometric", "rate": "9/10"}):
        _real(f"NLS young women, occ_code, protected {', '.join(rare)}", columns, tables, pace, rare)


def _releases(panel: pl.DataFrame, column: str) -> list[pl.DataFrame]:
    return [part for _, part in sorted(panel.partition_by(column, as_dict=True).items())]


def _real(
    title: str, columns: dict[str, str], tables: list[pl.DataFrame], pace: dict[str, Any], protect: list[str]
) -> None:
    guarantee = {"model": "global", "l": 2, **pace, "protect": protect}
    policy = load_policy(
        {
            "columns": columns,
            "values": {"change": "freely"},
            "guarantee": guarantee,
            "method": {"infeasible": "withhold"},
        }
    )
    print(f"\n{title}, {pace['strategy']}, l = 2")
    print(f"\n| {HEAD}")
    publish_all(policy, tables)


def run_grid(rows: int, most: int) -> None:
    """Rows per group, loss and query error of the first and the last release, by l, horizon and strategy."""
    print(
        "| l | strategy | releases | rows per group, first and last | NCP, first and last | median query error, last |"
    )
    print("|-|-|-|-|-|-|")
    for bound in (2, 4):
        for releases in (min(5, most), most):
            paces = [
                {"strategy": "constant-ratio", "horizon": releases},
                {"strategy": "geometric", "rate": "9/10"},
                {"strategy": "telescoping"},
            ]
            for pace in [None, *paces]:
                _grid_line(rows, bound, releases, pace)


def _grid_line(rows: int, bound: int, releases: int, pace: dict[str, Any] | None) -> None:
    localized = {"model": "alpha-k", "alpha": f"1/{bound}", "k": bound}
    policy = census_policy(
        localized if pace is None else {"model": "global", "l": bound, **pace}, infeasible="withhold"
    )
    found, withheld, error = [], 0, None
    name = "localized" if pace is None else pace["strategy"]
    with tempfile.TemporaryDirectory() as home:
        series = reveil.open_series(policy, home=home)
        for number, table in enumerate(census(rows, releases), 1):
            try:
                release = series.publish(table)
            except InfeasibleError:
                name += f" (refused at release {number})"
                break
            asked = 2_000 if number == releases else 0
            used = measure(release.table, table, policy, counterfeits=release.counterfeits, queries=asked)
            found.append((used.average_class, used.ncp_mean))
            withheld = used.suppressed
            error = used.queries[1].median_relative if asked else None
    if not found:
        print(f"| {bound} | {name} | {releases} | | | |", flush=True)
        return
    (first, early), (last, late) = found[0], found[-1]
    shown = "" if error is None else f"{error:.1%}"
    name += f", {withheld:,} withheld at the end" if withheld else ""
    print(
        f"| {bound} | {name} | {releases} | {first:.1f}, {last:.1f} | {early:.3f}, {late:.3f} | {shown} |", flush=True
    )


def plot(printed: str) -> str:
    """Chances, group sizes and loss by release, as an SVG picture, from what `series` printed."""
    from persistent_plots import page, panel

    chance: dict[str, list[float]] = {}
    size: dict[str, list[float]] = {}
    loss: dict[str, list[float]] = {}
    above: list[float] = []
    for block in printed.split("\n\n")[1:]:
        head, _, *lines = block.strip().splitlines()
        name = head.strip("| ").split(":")[0]
        cells = [
            [cell.strip() for cell in line.strip("| ").split("|")] for line in lines if not line.startswith("| refused")
        ]
        place = 2
        if name == "localized":
            above = [_number(row[1].split(" of ")[0]) / _number(row[1].split(" of ")[1]) for row in cells]
            rows, ncp = 3, 4
        else:
            rows, ncp = 4, 5
        chance[name] = [_number(row[place]) for row in cells]
        size[name] = [min(100.0, _number(row[rows])) for row in cells]
        loss[name] = [_number(row[ncp]) for row in cells]
    people = {"localized": above, **{name: [0.0] * len(found) for name, found in chance.items() if name != "localized"}}
    charts = {
        "Share of people above 1/l": people,
        "Highest chance of anybody": chance,
        "Rows per group (100 or more: 100)": size,
        "Loss (NCP)": loss,
    }
    return page([panel(title, lines, 300 * i, "release") for i, (title, lines) in enumerate(charts.items())])


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["series", "speed", "real", "grid", "plot"])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--past", type=int, default=10)
    parser.add_argument("--l", type=int, default=2)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--of", type=Path, help="plot: what `series` printed")
    parser.add_argument("--out", type=Path, help="plot: the SVG file to write")
    wanted = parser.parse_args()
    if wanted.what == "series":
        run_series(wanted.rows or 100_000, wanted.releases, wanted.l)
    elif wanted.what == "speed":
        run_speed(wanted.rows or 600_000, wanted.past)
    elif wanted.what == "real":
        run_real(wanted.data)
    elif wanted.what == "grid":
        run_grid(wanted.rows or 10_000, wanted.releases)
    elif wanted.of is None or wanted.out is None:
        parser.error("plot needs --of and --out")
    else:
        wanted.out.write_text(plot(wanted.of.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
