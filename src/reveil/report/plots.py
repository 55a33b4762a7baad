"""Small plots as inline SVG text.

Why not a plotting library: the common ones bring about 4 MB of JavaScript into every report, and a report must still
be readable offline, without scripts and on paper, in ten years. Five plain shapes are enough for what a report says.

Lengths are percentages of the width, so a plot fits a narrow window without shrinking its text. Colours are classes
of the style sheet, so that dark mode and print need nothing here. Every plot has a title and a description in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral

from markupsafe import Markup, escape

from reveil.base.words import some

BINS = 14  # columns of a histogram at most
POINTS = 240  # of a line at most; more would not be seen


@dataclass(frozen=True)
class Bar:
    """One labelled length between 0 and the maximum of its plot; `text` is what is printed for it.

    One that is `amber` is no fault, and nothing to be content with.
    """

    label: str
    value: float
    text: str
    amber: bool = False


@dataclass(frozen=True)
class Pair:
    """The same quantity before and after."""

    label: str
    before: Bar
    after: Bar


def bars(title: str, items: Sequence[Bar], *, maximum: float | None = None) -> Markup:
    """Horizontal bars, one under the other.

    >>> "50.0%" in bars("Loss", [Bar("age", 0.5, "0.50")], maximum=1)
    True
    """
    top = maximum or max((item.value for item in items), default=0) or 1.0
    parts = [
        _text("0", 38 * n + 13, item.label)
        + _text("100%", 38 * n + 13, item.text, "end value")
        + _rect(0, 38 * n + 20, 100, 8, "track")
        + _rect(0, 38 * n + 20, 100 * item.value / top, 8, "bar amber" if item.amber else "bar")
        for n, item in enumerate(items)
    ]
    described = "; ".join(f"{item.label} {item.text}" for item in items)
    return _svg(title, described, 38 * len(items), parts)


def before_after(title: str, items: Sequence[Pair], *, maximum: float = 1.0) -> Markup:
    """Two bars per quantity, the earlier one grey."""
    parts = []
    for n, item in enumerate(items):
        y = 66 * n
        parts.append(_text("0", y + 13, item.label, "strong"))
        for offset, bar, kind in (
            (20, item.before, "bar muted"),
            (38, item.after, "bar amber" if item.after.amber else "bar"),
        ):
            parts.append(_text("0", y + offset + 11, bar.label, "small"))
            parts.append(_rect(14, y + offset + 3, 64, 8, "track"))
            parts.append(_rect(14, y + offset + 3, 64 * min(1.0, bar.value / maximum), 8, kind))
            parts.append(_text("100%", y + offset + 11, bar.text, "end value"))
    described = "; ".join(f"{i.label}: {i.before.label} {i.before.text}, {i.after.label} {i.after.text}" for i in items)
    return _svg(title, described, 66 * len(items), parts)


def histogram(title: str, counts: Mapping[int, int], *, unit: str) -> Markup:
    """How often each whole number occurs; neighbouring numbers share a column when there are many.

    >>> "5 rows: 3; 6 rows: 1" in histogram("Sizes", {5: 3, 6: 1}, unit="rows")
    True
    """
    if not counts:
        return Markup("")
    columns = _bins(counts)
    top = max(count for _, _, count in columns) or 1
    tail = len(columns) > 1 and columns[-1][1] - columns[-1][0] > columns[0][1] - columns[0][0]
    step = 100 / len(columns)
    parts = [_line(0, 170, 100, 170, "axis")]
    for n, (low, high, count) in enumerate(columns):
        tall = max(1.0 if count else 0.0, 140 * count / top)
        middle = f"{step * (n + 0.5):.2f}%"
        parts.append(_rect(step * (n + 0.1), 170 - tall, step * 0.8, tall, "bar"))
        if count:
            parts.append(_text(middle, 164 - tall, short(count), "middle small value"))
        if _has_tick(n, len(columns), tail):
            label = f"{low:,}+" if tail and n == len(columns) - 1 else _range(low, high)
            parts.append(_text(middle, 186, label, "middle small"))
    parts.append(_text("50%", 206, unit, "middle small"))
    described = "; ".join(f"{_range(low, high)} {unit}: {count:,}" for low, high, count in columns if count)
    return _svg(title, described, 210, parts)


def _has_tick(n: int, columns: int, tail: bool) -> bool:
    """Every second column is labelled when there are many; the one that takes a long tail always is."""
    if columns <= 7 or (tail and n == columns - 1):
        return True
    return n % 2 == 0 and not (tail and n == columns - 2)


def _bins(counts: Mapping[int, int]) -> list[tuple[int, int, int]]:
    """Columns of equal width from the smallest number on; the last one takes a long tail."""
    numbers = sorted(counts)
    total, seen, body = sum(counts.values()), 0, numbers[-1]
    for number in numbers:
        seen += counts[number]
        if seen >= 0.98 * total:
            body = number
            break
    width = max(1, -(-(body - numbers[0] + 1) // (BINS - 1)))
    filled: dict[int, int] = {}
    last = (body - numbers[0]) // width
    for number, count in counts.items():
        place = min((number - numbers[0]) // width, last + 1)
        filled[place] = filled.get(place, 0) + count
    edges = [(numbers[0] + width * n, numbers[0] + width * (n + 1) - 1) for n in range(last + 1)]
    columns = [(low, high, filled.get(n, 0)) for n, (low, high) in enumerate(edges)]
    if last + 1 in filled:
        columns.append((edges[-1][1] + 1, numbers[-1], filled[last + 1]))
    return columns


def _range(low: int, high: int) -> str:
    return f"{low:,}" if high <= low else f"{low:,}–{high:,}"


def line(title: str, values: Sequence[float], labels: Sequence[str] | None = None) -> Markup:
    """Values in order, joined by a line; the first, the last and the extremes are printed.

    >>> "lowest 1, highest 4" in line("Groups", [1, 4, 2])
    True
    """
    named = labels or [str(n + 1) for n in range(len(values))]
    shown = _thinned(len(values))
    low, high = min(0.0, *(float(v) for v in values)), max(float(v) for v in values)
    spread = (high - low) or 1.0
    xs = [4 + 92 * n / max(1, len(values) - 1) for n in shown]
    ys = [96 - 74 * (float(values[n]) - low) / spread for n in shown]
    path = " ".join(f"{x:.2f},{y:.2f}" for x, y in zip(xs, ys, strict=True))
    parts = [
        _line(0, 104, 100, 104, "axis"),
        f'<svg width="100%" height="110" viewBox="0 0 100 110" preserveAspectRatio="none">'
        f'<polyline class="stroke" points="{path}"/></svg>',
    ]
    if len(values) <= 40:
        parts += [f'<circle class="dot" cx="{x:.2f}%" cy="{y:.1f}" r="3"/>' for x, y in zip(xs, ys, strict=True)]
    ends = [(0, "0", "small", "start"), (len(values) - 1, "100%", "end small", "end")]
    for n, x, kind, _ in ends[: min(2, len(values))]:
        parts.append(_text(x, 122, named[n], kind))
        parts.append(
            _text(x, max(11.0, 96 - 74 * (float(values[n]) - low) / spread - 9), number(values[n]), f"{kind} value")
        )
    described = (
        f"{some(len(values), 'value')} from {named[0]} to {named[-1]}: first {number(values[0])}, last "
        f"{number(values[-1])}, "
        f"lowest {number(min(values))}, highest {number(max(values))}"
    )
    return _svg(title, described, 128, parts)


def _thinned(count: int) -> list[int]:
    step = -(-count // POINTS)
    return sorted({*range(0, count, step), count - 1})


def number(value: float) -> str:
    """A number as people write it.

    >>> number(12345), number(0.034567), number(1.5), number(0)
    ('12,345', '0.0346', '1.5', '0')
    """
    if isinstance(value, Integral) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{float(value):,.1f}" if abs(value) >= 100 else f"{float(value):.3g}"


def short(count: int) -> str:
    """A count that fits over a narrow column.

    >>> short(950), short(12345), short(2_500_000)
    ('950', '12k', '2.5M')
    """
    if count < 10_000:
        return f"{count:,}"
    return f"{count / 1000:.0f}k" if count < 1_000_000 else f"{count / 1e6:.1f}M"


def _svg(title: str, described: str, height: float, parts: Sequence[str]) -> Markup:
    return Markup(
        f'<svg class="plot" role="img" width="100%" height="{height:g}">'
        f"<title>{escape(title)}</title><desc>{escape(described)}</desc>{''.join(parts)}</svg>"
    )


def _text(x: str, y: float, text: str, kind: str = "") -> str:
    return f'<text x="{x}" y="{y:.1f}" class="{kind}">{escape(text)}</text>'


def _rect(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect x="{x:.2f}%" y="{y:.1f}" width="{width:.1f}%" height="{height:.1f}" rx="2" class="{kind}"/>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:g}%" y1="{y1:g}" x2="{x2:g}%" y2="{y2:g}" class="{kind}"/>'
