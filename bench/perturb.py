"""How fast perturbation is, as ratios within one run: against one stable sort of each column that is changed.

    reveil bench perturb [ROWS of the large table]

CPU seconds (best of three) of the methods alone, without reading, writing, checking and reporting; and once the whole
command's time on the large table. Kernels are compiled before.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import polars as pl

from reveil.perturb.apply import apply
from reveil.perturb.perturb import perturb
from reveil.perturb.steps import Recipe

LARGE, MIDDLE = 600_000, 30_000
NUMBERS = ["age", "pay", "hours", "rent"]
WORDS = ["job", "place"]


def people(rows: int) -> pl.DataFrame:
    """Whole and real numbers, and two columns of categories."""
    rng = np.random.default_rng(1)
    jobs, places = [f"job {i:02d}" for i in range(25)], [f"place {i:03d}" for i in range(300)]
    return pl.DataFrame(
        {
            "age": rng.integers(17, 91, rows),
            "pay": rng.lognormal(8, 0.6, rows).round(2),
            "hours": rng.normal(38, 9, rows),
            "rent": rng.gamma(3, 250, rows),
            "job": rng.choice(jobs, rows),
            "place": rng.choice(places, rows),
        }
    )


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """CPU seconds of the best of a few runs."""
    found = []
    for _ in range(times):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return min(found)


def recipe(**step: object) -> Recipe:
    columns = dict.fromkeys([*NUMBERS, *WORDS], "quasi")
    return Recipe.model_validate({"columns": columns, "perturb": [step]})


STEPS: dict[str, dict[str, object]] = {
    "noise, independent": {"method": "noise", "columns": NUMBERS, "amount": "1/5"},
    "noise, correlated, variance kept": {
        "method": "noise",
        "columns": NUMBERS,
        "amount": "1/5",
        "correlated": True,
        "preserve": "variance",
    },
    "rank swapping, 5 %": {"method": "rank-swap", "columns": NUMBERS, "percent": 5},
    "PRAM, invariant": {"method": "pram", "columns": WORDS, "keep": "4/5"},
    "swap within job": {"method": "swap", "columns": NUMBERS, "within": ["job"]},
    "microaggregate, one column, optimal": {"method": "microaggregate", "columns": ["pay"], "k": 5},
    "microaggregate, blocks, k = 5": {"method": "microaggregate", "columns": NUMBERS, "k": 5, "algorithm": "blocks"},
    "condense, blocks, k = 10": {"method": "condense", "columns": NUMBERS, "k": 10, "algorithm": "blocks"},
}


def run(table: pl.DataFrame, steps: dict[str, dict[str, object]], times: int = 3) -> None:
    sort = {name: seconds(lambda name=name: np.argsort(sortable(table[name]), kind="stable")) for name in table.columns}  # type: ignore[misc]
    print(f"\n{table.height:,} rows; one stable sort of a column: {np.mean(list(sort.values())):.3f} s on average")
    print(f"{'':38}{'seconds':>9}{'sorts of its columns':>22}")
    for title, step in steps.items():
        rules = recipe(**step)
        found = seconds(lambda rules=rules: apply(table, rules.perturb[0], rules, np.random.default_rng(0)), times)  # type: ignore[misc]
        base = sum(sort[name] for name in rules.perturb[0].columns)
        print(f"{title:38}{found:9.3f}{found / base:22.1f}")


def sortable(column: pl.Series) -> np.ndarray:
    """Text is sorted by its codes, as whoever sorts it fast would."""
    return column.cast(pl.Categorical).to_physical().to_numpy() if column.dtype == pl.String else column.to_numpy()


def main(rows: str = str(LARGE)) -> None:
    large = int(rows)
    small = people(min(large, 2_000))
    mdav = {"method": "microaggregate", "columns": NUMBERS, "k": 5, "algorithm": "mdav"}
    for step in (*STEPS.values(), mdav):  # compiles
        rules = recipe(**step)
        apply(small, rules.perturb[0], rules, np.random.default_rng(0))
    run(people(large), STEPS)
    run(people(min(large, MIDDLE)), {"microaggregate, MDAV, k = 5": mdav})
    table, whole = people(large), recipe(**STEPS["rank swapping, 5 %"])
    begin, cpu = time.perf_counter(), time.process_time()
    perturb(table, whole, seed=1)
    print(
        f"\nreveil.perturb of {large:,} rows, rank swapping of four columns, with checks and report:"
        f" {time.process_time() - cpu:.1f} CPU seconds, {time.perf_counter() - begin:.1f} by the clock"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
