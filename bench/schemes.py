"""Generalisation schemes on Adult: what each loses, withholds and takes, beside the figures of ARX.

    reveil bench schemes

Adult and 600,000 rows drawn from it with replacement (bench/single.py), with ARX's hierarchies, k = 5 and k = 5 with
l = 3. Times are wall and processor seconds of planning, best of `--times`; the load says how far to trust the first.
`--exhaustive` also checks every node of the lattice of Adult by plain group-bys, and compares. `--plot FILE` draws
the losses as SVG. Needs `../shared/data/adult_arx`.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import sys
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parent))
from single import ADULT, adult

# ARX 3.9 measured on two noisy cores, best of 3, without loading: seconds and mean NCP of (Adult, 600,000 rows).
ARX = {
    ("full-domain", "k=5, 5 % withheld"): ((0.76, 0.185), (0.61, 0.012)),
    ("cell", "k=5"): ((1.34, 0.035), (1.2, 0.0056)),
    ("full-domain", "k=5, l=3, 5 % withheld"): ((1.1, 0.186), (2.7, 0.167)),
    ("cell", "k=5, l=3"): ((2.1, 0.039), (15.8, 0.030)),
}
TASKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "k=5": ({"k": 5}, {}),
    "k=5, 5 % withheld": ({"k": 5}, {"suppress": "1/20"}),
    "k=5, l=3": ({"k": 5, "l": 3}, {}),
    "k=5, l=3, 5 % withheld": ({"k": 5, "l": 3}, {"suppress": "1/20"}),
    "k=5, value or *": ({"k": 5}, {"recode": "suppress"}),
}
COLOURS = ("#1b6ca8", "#c8553d", "#3d8b57", "#8a5a9e", "#b08900")


def original() -> tuple[pl.DataFrame, dict[str, Any]]:
    """Adult as it is."""
    table = pl.read_csv(gzip.decompress((ADULT / "adult.csv.gz").read_bytes()), separator=";", infer_schema=False)
    return table, adult(1)[1]


def run(sizes: Sequence[int], times: int) -> list[dict[str, Any]]:
    """All tasks and schemes; 0 rows means Adult as it is."""
    from reveil.measure.compare import COMPARED, compare

    found = []
    print("| table | promise | scheme | NCP | withheld | groups | s | processor s | ARX: s, NCP | load |")
    print("|---" * 10 + "|")
    for size in sizes:
        table, settings = original() if size == 0 else adult(size)
        for task, (guarantee, method) in TASKS.items():
            policy = {**settings, "guarantee": guarantee, "method": method}
            for scheme in COMPARED:
                tries = [compare(table, policy, schemes=[scheme], seed=1).trials[0] for _ in range(times)]
                best = min(tries, key=lambda trial: trial.processor_seconds or 0.0)
                line = {**best_line(best, tries), "rows": table.height, "task": task, "load": os.getloadavg()[0]}
                found.append(line)
                print(shown(line, ARX.get((scheme, task)), size > 0), flush=True)
    return found


def best_line(best: Any, tries: Sequence[Any]) -> dict[str, Any]:
    wall = min(trial.seconds for trial in tries)
    figures = {"scheme": best.scheme, "ncp": best.loss, "withheld": best.withheld, "groups": best.groups}
    return {**figures, "seconds": wall, "processor": best.processor_seconds}


def shown(line: Mapping[str, Any], arx: Any, large: bool) -> str:
    peer = "" if arx is None else "{}, {}".format(*arx[large])
    cells = [f"{line['rows']:,}", line["task"], line["scheme"], f"{line['ncp']:.4f}", f"{line['withheld']:,}"]
    cells += [f"{line['groups']:,}", f"{line['seconds']:.2f}", f"{line['processor']:.2f}", peer, f"{line['load']:.1f}"]
    return "| " + " | ".join(cells) + " |"


def exhaustive(suppress: float, k: int = 5) -> dict[str, Any]:
    """The best node of Adult's lattice by looking at all of them; nothing of the planner is used."""
    table, settings = original()
    files = {name: spec["hierarchy"] for name, spec in settings["columns"].items() if isinstance(spec, dict)}
    codes, costs = [], []
    for name, file in files.items():
        lines = [line.split(";") for line in Path(file).read_text(encoding="utf-8").splitlines()]
        place = {line[0]: number for number, line in enumerate(lines)}
        rows = np.array([place[value] for value in table[name]])
        levels = list(zip(*lines, strict=True))
        numbers = [np.unique(level, return_inverse=True, return_counts=True) for level in levels]
        codes.append([inverse[rows] for _, inverse, _ in numbers])
        costs.append([((counts - 1) / (len(lines) - 1))[inverse][rows] for _, inverse, counts in numbers])
    best: dict[str, Any] = {"loss": np.inf}
    for node in itertools.product(*(range(len(column)) for column in codes)):
        key = np.zeros(table.height, dtype=np.int64)
        for column, level in zip(codes, node, strict=True):
            key = key * 128 + column[level]
        _, ids, sizes = np.unique(key, return_inverse=True, return_counts=True)
        out = sizes[ids] < k
        if out.sum() <= suppress * table.height:
            means = [np.where(out, 1.0, column[level]).mean() for column, level in zip(costs, node, strict=True)]
            loss = float(np.exp(np.mean(np.log1p(means))) - 1)
            if loss < best["loss"]:
                best = {"loss": loss, "levels": node, "withheld": int(out.sum())}
    return best


def plot(found: Sequence[Mapping[str, Any]], title: str) -> str:
    """Bars of the loss by scheme, one group of bars per promise."""
    tasks = list(dict.fromkeys(line["task"] for line in found))
    schemes = list(dict.fromkeys(line["scheme"] for line in found))
    bar, gap, left, tall = 17, 30, 44, 170
    wide = left + len(tasks) * (len(schemes) * bar + gap) + 10
    top = max(line["ncp"] for line in found)
    parts = [text(left, 16, title, 12)]
    for share in (0.0, 0.5, 1.0):
        y = 30 + tall * (1 - share)
        parts.append(f'<line x1="{left}" x2="{wide}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(text(left - 4, y + 4, f"{top * share:.2f}", 10, "end"))
    for place, task in enumerate(tasks):
        x = left + 8 + place * (len(schemes) * bar + gap)
        parts.append(text(x, 30 + tall + 16, task, 10))
        for number, scheme in enumerate(schemes):
            loss = next((line["ncp"] for line in found if (line["task"], line["scheme"]) == (task, scheme)), 0.0)
            height, at = tall * loss / top, x + number * bar
            parts.append(
                f'<rect x="{at}" y="{30 + tall - height:.1f}" width="{bar - 2}" height="{height:.1f}" '
                f'fill="{COLOURS[number]}"/>'
            )
            label = f"{loss:.3f}".lstrip("0")
            parts.append(text(at + bar / 2 - 1, 26 + tall - height, label, 7, "middle"))
    for number, scheme in enumerate(schemes):
        parts.append(text(left + 8 + number * 105, 30 + tall + 36, scheme, 11, colour=COLOURS[number]))
    size = f'viewBox="0 0 {wide} {tall + 76}" width="{wide}" height="{tall + 76}"'
    style = 'font-family="sans-serif" style="background:white"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{"".join(parts)}</svg>\n'


def text(x: float, y: float, content: str, size: int, anchor: str = "start", colour: str = "#333") -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {where}>{escape(content)}</text>"


def main() -> None:
    wanted = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    wanted.add_argument("--rows", type=int, nargs="*", default=[0, 600_000], help="0: Adult as it is")
    wanted.add_argument("--times", type=int, default=3)
    wanted.add_argument("--exhaustive", action="store_true")
    wanted.add_argument("--json", type=Path)
    wanted.add_argument("--plot", type=Path)
    chosen = wanted.parse_args()
    if not ADULT.exists():
        sys.exit("the data of this benchmark is not here")
    if chosen.exhaustive:
        for share in (0.0, 0.05):
            print(f"all nodes, geometric mean, {share:.0%} may be withheld: {exhaustive(share)}", flush=True)
    found = run(chosen.rows, chosen.times)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if chosen.plot is not None:
        small = [line for line in found if line["rows"] < 100_000]
        chosen.plot.write_text(plot(small, "Adult, 30,162 rows, 8 columns: mean NCP per cell"), encoding="utf-8")


if __name__ == "__main__":
    main()
