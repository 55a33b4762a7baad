"""The pictures of docs/perturbation, differential-privacy, linkage and anatomy: measured, then drawn as SVG.

python bench/toolbox_plots.py docs
"""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl

import reveil
from persistent_plots import WIDTH, page, panel
from reveil.dp import mechanism
from reveil.measure.link import link
from reveil.measure.measure import measure


def people(rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(7)
    age = rng.integers(18, 90, rows)
    return pl.DataFrame(
        {
            "name": [f"p{i}" for i in range(rows)],
            "age": age,
            "zip": rng.choice([f"{z}" for z in range(47600, 47640)], rows),
            "sex": rng.choice(["F", "M"], rows),
            "pay": (rng.lognormal(7.5, 0.5, rows) * (1 + age / 90)).round(2),
            "hours": rng.normal(38, 9, rows).round(1),
            "ill": rng.choice(["flu", "cold", "gout", "ache", "HIV", "asthma"], rows),
        }
    )


def perturbation() -> str:
    """Five strengths of each method on 4,000 rows: what is found, what is near, what stays."""
    table = people(4_000).select("age", "pay", "hours")
    ways = {
        "noise": ("amount", (0.05, 0.1, 0.2, 0.4, 0.8)),
        "rank-swap": ("percent", (1, 2, 5, 10, 20)),
        "microaggregate": ("k", (2, 3, 5, 10, 20)),
        "condense": ("k", (3, 5, 10, 20, 40)),
    }
    links, near, ranks = {}, {}, {}
    for method, (name, strengths) in ways.items():
        found = []
        for strength in strengths:
            step = {"method": method, "columns": table.columns, name: strength}
            policy = {"columns": dict.fromkeys(table.columns, "sensitive"), "perturb": [step]}
            found.append(reveil.perturb(table, policy, seed=1).report)
        title = f"{method}, {name} {strengths[0]} to {strengths[-1]}"
        links[title] = [report["record linkage"]["right links"] for report in found]
        near[title] = [report["interval disclosure"][1]["within 10% of a deviation"] for report in found]
        ranks[title] = [report["columns"][1]["rank correlation with the original"] for report in found]
    titles = ("rows linked rightly by distance", "pay within 10 % of a deviation", "rank correlation of pay")
    charts = [
        panel(title, lines, i * WIDTH, "weak to strong", right=True, down=66 if lines is ranks else 0)
        for i, (title, lines) in enumerate(zip(titles, (links, near, ranks), strict=True))
    ]
    return page(charts)


def differential_privacy() -> str:
    """What a count costs, and what is left for each of many releases."""
    spends = [Fraction(n, 20) for n in range(1, 21)]
    single = [mechanism.error("epsilon", mechanism.calibrate("epsilon", 1, spend)) for spend in spends]
    releases = range(1, 25)
    laplace = [mechanism.error("epsilon", mechanism.calibrate("epsilon", 1, Fraction(1, n))) for n in releases]
    rho = next(r for r in (Fraction(n, 1000) for n in range(40, 0, -1)) if _epsilon(r) <= 1)
    gauss = [mechanism.error("rho", mechanism.calibrate("rho", 1, rho / n)) for n in releases]
    lines = {"epsilon 1": laplace, f"rho {float(rho):g} (epsilon 1 at delta 1e-6)": gauss}
    return page(
        [
            panel("error of 95 in 100 cells", {"one count": single}, 0, "epsilon 0.05 to 1", right=True),
            panel("error, budget shared by releases", lines, WIDTH, "releases, 1 to 24"),
        ]
    )


def _epsilon(rho: Fraction) -> float:
    return mechanism.epsilon_at(1, [mechanism.calibrate("rho", 1, rho)], Fraction(1, 10**6))


def linkage() -> str:
    """The attack on the raw table (k = 1) and on k-anonymous ones."""
    table = people(3_000)
    voters = table.select("name", "age", "zip", "sex")
    columns = {"name": "identifier", "age": "quasi", "zip": {"role": "quasi", "prefixes": [4, 3]}, "sex": "quasi"}
    roles = {**columns, "pay": "drop", "hours": "drop", "ill": "sensitive"}
    certain, average = [], []
    for k in (1, 2, 3, 5, 10, 20):
        policy = {"columns": roles, "guarantee": {"k": max(k, 2)}}
        published = table if k == 1 else reveil.anonymize(table, policy, seed=1)
        found = link(published, voters, policy, name="name").summary["after"]
        certain.append(found["certain"] / table.height)
        average.append(found["average"])
    lines = {"found for certain": certain, "average confidence": average}
    return page([panel("share of 3,000 people", lines, 0, "k = 1 (raw), 2, 3, 5, 10, 20", right=True)])


def anatomy() -> str:
    """COUNT queries on an anatomy and on a generalised table, both 4-diverse."""
    table = people(3_000).select("age", "zip", "sex", "ill")
    policy = {
        "columns": {"age": "quasi", "zip": {"role": "quasi", "prefixes": [4, 3]}, "sex": "quasi", "ill": "sensitive"},
        "guarantee": {"model": "l-diversity", "l": 4},
    }
    lines = {}
    sizes = (0.02, 0.05, 0.1, 0.2)
    for publish in ("anatomy", "generalized"):
        rules = {**policy, "method": {"publish": publish, **({"people": "exact"} if publish == "anatomy" else {})}}
        release = reveil.anonymize(table, rules, seed=1)
        found = measure(release.table, table, rules, values=release.values, queries=2_000, selectivity=sizes)
        lines[publish] = [error.median_relative or 0.0 for error in found.queries]
    return page([panel("median relative error of COUNT", lines, 0, "selectivity 2, 5, 10, 20 %", right=True)])


def main() -> None:
    folder = Path(sys.argv[1])
    drawings = {
        "perturbation": perturbation,
        "differential-privacy": differential_privacy,
        "linkage": linkage,
        "anatomy": anatomy,
    }
    for name, draw in drawings.items():
        (folder / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
