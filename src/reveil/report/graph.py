"""A picture of one person's update graph: a column for each appearance, a node for each value, edges for updates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape

KEYS = {"appearances", "updates", "pruned"}
WIDTH, HEIGHT, TOP, RADIUS = 190, 34, 40, 7
NODE, FAINT, INK = "#2a6f97", "#c4c9cf", "#333a41"


def is_graph(value: Any) -> bool:
    """Whether this is what `UpdateGraph.to_dict` yields."""
    return isinstance(value, Mapping) and set(value) == KEYS


def picture(graph: Mapping[str, Any]) -> Markup:
    """The graph as SVG that needs no style sheet. What is pruned is grey and dashed.

    >>> graph = {"appearances": [{"flu": 1.0, "cold": 0.0}], "updates": [], "pruned": []}
    >>> "flu 100%" in picture(graph)
    True
    """
    columns = graph["appearances"]
    spot = {
        (number, value): (30 + number * WIDTH, TOP + place * HEIGHT)
        for number, values in enumerate(columns)
        for place, value in enumerate(values)
    }
    parts = [
        _edge(spot[n, a], spot[n + 1, b], kept)
        for kept, edges in ((False, graph["pruned"]), (True, graph["updates"]))
        for n, a, b in edges
    ]
    for number, values in enumerate(columns):
        parts.append(_label(20 + number * WIDTH, 14, f"appearance {number + 1}", INK, bold=True))
        parts += [_node(spot[number, value], value, chance) for value, chance in values.items()]
    width = len(columns) * WIDTH + 20
    height = TOP + max((len(values) for values in columns), default=1) * HEIGHT
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" width="{width}" '
        f'style="max-width:100%"><title>Update graph of one person</title>{"".join(parts)}</svg>'
    )


def _edge(a: tuple[int, int], b: tuple[int, int], kept: bool) -> str:
    style = f'stroke="{NODE}" stroke-width="1.6"' if kept else f'stroke="{FAINT}" stroke-dasharray="4 3"'
    return f'<line x1="{a[0]}" y1="{a[1]}" x2="{b[0]}" y2="{b[1]}" {style}/>'


def _node(at: tuple[int, int], value: str, chance: float) -> str:
    colour = NODE if chance else FAINT
    text = f"{value or '(missing)'} {chance:.0%}" if chance else f"{value or '(missing)'} ruled out"
    circle = f'<circle cx="{at[0]}" cy="{at[1]}" r="{RADIUS}" fill="{colour}"/>'
    return circle + _label(at[0] + RADIUS + 4, at[1] - 6, text, INK if chance else "#888f96")


def _label(x: int, y: int, text: str, colour: str, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x}" y="{y}" font-size="11" font-family="sans-serif" fill="{colour}"{weight}>{escape(text)}</text>'
    )
