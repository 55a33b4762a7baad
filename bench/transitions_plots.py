"""Plots of bench/transitions.py as one SVG file: the figures whose names begin as named.

python bench/transitions_plots.py 3,4 docs/evolving-attacks.svg figures-1.json [figures-2.json ...]
python bench/transitions_plots.py 5,6,7,8 docs/evolving-utility.svg figures-1.json [figures-2.json ...]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from persistent_plots import page, panel

Found = dict[str, dict[str, list[dict[str, Any]]]]


def share(lines: list[dict[str, Any]]) -> list[float]:
    return [line["vulnerable"] / line["published"] for line in lines]


def panels(found: Found) -> list[tuple[str, dict[str, list[float]], str]]:
    """Title, lines and what is below, for each figure that was run."""
    charts = []
    for name, runs in found.items():
        if name.startswith("3"):
            charts.append(
                (f"Figure {name}", {key: share(lines) for key, lines in runs.items()}, "releases 1, 5, 10, 15, 20")
            )
        elif name.startswith("4"):
            counts = {key: [line["invalid so far"] for line in lines] for key, lines in runs.items()}
            charts.append((f"Figure {name}", counts, "releases"))
        elif name.startswith(("5", "6")):
            errors = {key: [line["error"]["0.5"] for line in lines if "error" in line] for key, lines in runs.items()}
            charts.append((f"Figure {name}: median query error", errors, "releases 1, 5, 10, 15, 20"))
        else:
            fakes = {key: [line["counterfeits per group"] for line in lines] for key, lines in runs.items()}
            charts.append((f"Figure {name}", fakes, "releases"))
    return charts


def main() -> None:
    wanted, target, sources = tuple(sys.argv[1].split(",")), Path(sys.argv[2]), sys.argv[3:]
    found: Found = {}
    for source in sources:
        content = json.loads(Path(source).read_text(encoding="utf-8"))
        rows = int(content["settings"]["rows"])
        found |= {f"{name}, {rows:,} rows": runs for name, runs in content["found"].items() if name.startswith(wanted)}
    charts = panels(dict(sorted(found.items())))
    drawn = [panel(title, lines, 300 * number, below) for number, (title, lines, below) in enumerate(charts)]
    target.write_text(page(drawn), encoding="utf-8")


if __name__ == "__main__":
    main()
