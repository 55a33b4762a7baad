"""Small JSON values that planners and judges hand over, drawn by their shape alone (the shapes: see `make`)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from markupsafe import Markup

from reveil.report.graph import is_graph, picture
from reveil.report.plots import Bar, bars, line, number

BARS = 16  # entries of a dict that are drawn as bars; more are a table
ROWS = 40  # of a table
LINES = 8  # lists of a dict that are drawn, each as a line
TEXT = 2_000  # characters of anything else


def draw(values: Mapping[str, Any]) -> Markup:
    """All values of a mapping: single ones in one table, the others each under their name.

    >>> "<th>rounds</th><td>3</td>" in draw({"rounds": 3})
    True
    >>> "<svg" in draw({"loss by round": [5, 3, 2.5]})
    True
    """
    single = {name: value for name, value in values.items() if _is_single(value)}
    parts = [_pairs(single)] if single else []
    parts += [_figure(name, value) for name, value in values.items() if not _is_single(value)]
    return Markup("").join(parts)


def _figure(name: str, value: Any) -> Markup:
    return Markup("<figure><figcaption>{}</figcaption>{}</figure>").format(name, _shape(name, value))


def _shape(name: str, value: Any) -> Markup:
    if isinstance(value, Mapping):
        return _mapping(name, value)
    if _numbers(value):
        return line(name, value)
    if _records(value):
        return _table(value)
    if isinstance(value, (list, tuple)) and all(_is_single(item) for item in value):
        more = f" and {len(value) - ROWS:,} more" if len(value) > ROWS else ""
        return Markup("<p>{}{}</p>").format(", ".join(_word(item) for item in value[:ROWS]), more)
    return _raw(value)


def _mapping(name: str, value: Mapping[str, Any]) -> Markup:
    if is_graph(value):
        return picture(value)
    if value and all(_is_number(item) for item in value.values()):
        positive = all(item >= 0 for item in value.values())
        if positive and len(value) <= BARS:
            return bars(name, [Bar(str(key), float(item), number(item)) for key, item in value.items()])
        return _pairs(value)
    if value and all(_is_single(item) for item in value.values()):
        return _pairs(value)
    if value and len(value) <= LINES and all(_numbers(item) for item in value.values()):
        parts = [_figure(str(key), item) for key, item in value.items()]
        return Markup('<div class="grid">{}</div>').format(Markup("").join(parts))
    return _raw(value)


def _pairs(values: Mapping[str, Any]) -> Markup:
    rows = [
        Markup("<tr><th>{}</th><td>{}</td></tr>").format(name, _word(value))
        for name, value in list(values.items())[:ROWS]
    ]
    return Markup('<table class="pairs">{}{}</table>').format(Markup("").join(rows), _rest(len(values), 2))


def _table(records: Sequence[Mapping[str, Any]]) -> Markup:
    names = list(dict.fromkeys(name for record in records for name in record))
    head = Markup("").join(Markup("<th>{}</th>").format(name) for name in names)
    rows = [
        Markup("<tr>{}</tr>").format(
            Markup("").join(Markup("<td>{}</td>").format(_word(record.get(name))) for name in names)
        )
        for record in records[:ROWS]
    ]
    body = Markup("").join(rows)
    return Markup('<div class="wide"><table><tr>{}</tr>{}{}</table></div>').format(
        head, body, _rest(len(records), len(names))
    )


def _rest(count: int, columns: int) -> Markup:
    if count <= ROWS:
        return Markup("")
    return Markup('<tr><td colspan="{}">and {} more</td></tr>').format(columns, f"{count - ROWS:,}")


def _raw(value: Any) -> Markup:
    text = json.dumps(value, indent=1, default=str, ensure_ascii=False)
    return Markup("<pre>{}</pre>").format(text if len(text) <= TEXT else f"{text[:TEXT]} …")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _is_single(value: Any) -> bool:
    return value is None or isinstance(value, (str, bool, Real))


def _numbers(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) > 1 and all(_is_number(item) for item in value)


def _records(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and bool(value)
        and all(isinstance(item, Mapping) and all(_is_single(cell) for cell in item.values()) for item in value)
    )


def _word(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if _is_number(value) else str(value)
