"""Draw what each scheme and each kind of suppression does to a small table: docs/schemes.svg and docs/suppression.svg.

python scripts/draw_schemes.py docs

Every table in the pictures is planned by Reveil itself; rows are shown in the order of the input.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from reveil.history.history import History
from reveil.plan.cutting.boxes import boxes
from reveil.plan.methods import method
from reveil.plan.plan import silent
from reveil.policy.policy import load_policy
from reveil.table.encode import encode

JOBS = {"Professional": ["Engineer", "Lawyer", "Doctor"], "Artist": ["Dancer", "Writer"]}
PEOPLE = pl.DataFrame({"job": ["Engineer"] * 5 + ["Doctor"] + ["Lawyer"] * 3 + ["Dancer"] * 3 + ["Writer"] * 3})
WIDE, TALL, TOP = 84, 17, 26


def published(columns: Mapping[str, Any], how: Mapping[str, Any], k: int) -> list[tuple[str, ...] | None]:
    """What is shown for each row of the input; None where it is withheld."""
    policy = load_policy({"columns": columns, "guarantee": {"k": k}, "method": how})
    encoded = encode(PEOPLE, policy)
    plan = method(policy)(encoded, History(), policy, seed=1, progress=silent)
    low, high = plan.boxes or boxes(plan.groups, encoded.positions, plan.count)
    rows: list[tuple[str, ...] | None] = []
    for group in plan.groups.tolist():
        ends = zip(encoded.quasi, low[group].tolist(), high[group].tolist(), strict=True)
        rows.append(None if group < 0 else tuple(hierarchy.label(a, b) for hierarchy, a, b in ends))
    return rows


def panel(title: str, rows: Sequence[tuple[str, ...] | None], x: int) -> str:
    """A column with the cells that changed in colour."""
    parts = [text(x, 16, title, 12)]
    for number, (row, (was,)) in enumerate(zip(rows, PEOPLE.rows(), strict=True)):
        y, shown = TOP + number * TALL, "withheld" if row is None else row[0]
        fill = "#eeeeee" if row is None else {was: "white", "*": "#f3c9a5"}.get(shown, "#bcd8ee")
        parts.append(f'<rect x="{x - 3}" y="{y}" width="{WIDE}" height="{TALL}" fill="{fill}" stroke="#bbb"/>')
        parts.append(text(x, y + 12, shown, 10))
    return "".join(parts)


def text(x: float, y: float, content: str, size: int) -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="#333">{escape(content)}</text>'


def page(panels: Mapping[str, Sequence[tuple[str, ...] | None]]) -> str:
    step = WIDE + 24
    drawn = "".join(panel(title, rows, 8 + place * step) for place, (title, rows) in enumerate(panels.items()))
    wide, tall = 8 + step * len(panels), TOP + TALL * PEOPLE.height + 8
    size = f'viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}"'
    style = 'font-family="sans-serif" style="background:white"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{drawn}</svg>\n'


def main(folder: Path) -> None:
    columns = {"job": {"role": "quasi", "hierarchy": JOBS}}
    schemes = ("full-domain", "subtree", "sibling", "mondrian", "cell")
    drawn = {scheme: published(columns, {"name": scheme}, 3) for scheme in schemes}
    (folder / "schemes.svg").write_text(page({"original": PEOPLE.rows(), **drawn}), encoding="utf-8")
    kinds = {
        "record": {"name": "full-domain", "suppress": "1/4"},
        "column": {"name": "full-domain"},
        "value": {"name": "sibling"},
        "cell": {"name": "cell"},
    }
    shown = {kind: published(columns, {**how, "recode": "suppress"}, 3) for kind, how in kinds.items()}
    (folder / "suppression.svg").write_text(page({"original": PEOPLE.rows(), **shown}), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
