"""Plots of bench/persistent.py and of the paper's Figure 2, as SVG files without any library.

python bench/persistent_plots.py figure2 docs/persistent-figure2.svg
python bench/persistent_plots.py series result.json docs/persistent-series.svg
python bench/persistent_plots.py attack result.json docs/persistent-attack.svg
python bench/persistent_plots.py tradeoff docs/persistent-tradeoff.svg
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from reveil.background.breach_formulas import figure_2
from reveil.plan.persistent.forecast import counterfeit_shares

COLOURS = ("#1b6ca8", "#c8553d", "#3d8b57", "#8a5a9e", "#b08900", "#555555")
WIDTH, HEIGHT, LEFT, TOP, FOOT = 300, 190, 46, 30, 34


def panel(
    title: str, lines: Mapping[str, Sequence[float]], x: int, below: str, *, right: bool = False, down: int = 0
) -> str:
    """One chart: lines over 1, 2, 3 ..., with its own scale from 0. Names are on the left or right, so far `down`."""
    top = max((max(values) for values in lines.values()), default=0.0) or 1.0
    longest = max(len(values) for values in lines.values())
    wide, tall = WIDTH - LEFT - 12, HEIGHT - TOP - FOOT
    parts = [f'<g transform="translate({x},0)">', text(LEFT, 16, title, 12)]
    for share in (0, 0.5, 1):
        y = TOP + tall * (1 - share)
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + wide}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(text(LEFT - 4, y + 4, f"{top * share:.3g}", 10, "end"))
    for number, (name, values) in enumerate(lines.items()):
        step = wide / max(1, longest - 1)
        points = " ".join(f"{LEFT + i * step:.1f},{TOP + tall * (1 - v / top):.1f}" for i, v in enumerate(values))
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        place = (LEFT + wide, "end") if right else (LEFT + 6, "start")
        parts.append(text(place[0], TOP + 12 + down + 13 * number, name, 10, place[1], colour))
    parts.append(text(LEFT + wide, HEIGHT - 12, below, 10, "end"))
    return "".join(parts) + "</g>"


def text(x: float, y: float, content: str, size: int, anchor: str = "start", colour: str = "#333") -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">{escape(content)}</text>'


def page(panels: Sequence[str]) -> str:
    size = f'viewBox="0 0 {WIDTH * len(panels)} {HEIGHT}" width="{WIDTH * len(panels)}" height="{HEIGHT}"'
    style = 'font-family="sans-serif" style="background:white"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{"".join(panels)}</svg>\n'


def figure2() -> str:
    data = figure_2()
    titles = {"a": "p_ct by p", "b": "p_hc by n (p=0.04, m=6)", "c": "p_pb by n (p=0.04, m=6)"}
    return page([panel(titles[key], data[key], i * WIDTH, "releases") for i, key in enumerate("abc")])


def series(found: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    unsafe = {"m-invariance": [line["hc-unsafe"] for line in found["m-invariance"]]}
    fakes = {name: [line["counterfeits"] for line in lines] for name, lines in found.items() if name != "cohorts"}
    loss = {name: [line["loss"] for line in lines] for name, lines in found.items()}
    shown = (("hc-unsafe groups, n = 3", unsafe), ("counterfeits", fakes), ("information loss (NCP)", loss))
    return page([panel(title, lines, i * WIDTH, "release") for i, (title, lines) in enumerate(shown)])


def attack(found: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    lines = {name: shares["4%"] for name, shares in found.items()}
    return page([panel("share disclosed, 4 % known", lines, 0, "release")])


def tradeoff() -> str:
    panels = []
    for number, m in enumerate((4, 6, 8)):
        lines = {f"refill {r}": counterfeit_shares(m, r, 0.1, 24) for r in (2, 3, 4, "never")}
        panels.append(panel(f"counterfeit share, m = {m}, 10 % leave", lines, number * WIDTH, "release"))
    return page(panels)


def main() -> None:
    what, *rest = sys.argv[1:]
    if what in ("figure2", "tradeoff"):
        drawn = {"figure2": figure2, "tradeoff": tradeoff}[what]()
    else:
        found = json.loads(Path(rest[0]).read_text(encoding="utf-8"))["found"]
        drawn = {"series": series, "attack": attack}[what](found)
    Path(rest[-1]).write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
