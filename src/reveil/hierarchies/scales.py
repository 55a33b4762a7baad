"""Hierarchies that follow from the values: numbers, dates, prefixes, ordered and plain categories.

Each builder takes the distinct values of a column, sorted, without missing ones, and returns a `Hierarchy` and the key
under which each value is found among its leaves. The first level that a policy names is the finest ever published.
"""

from __future__ import annotations

import datetime
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise
from math import inf
from typing import Any

import numpy as np

from reveil.base.errors import Fault, InputError
from reveil.base.text import plain_text
from reveil.base.words import some
from reveil.hierarchies.tree import ANY, Hierarchy, Path, grow, refuse_ambiguous
from reveil.policy.column import DATE_LEVELS, DateLevel

Number = int | float
Built = tuple[Hierarchy, dict[Hashable, Hashable]]  # value -> leaf
Stretch = tuple[str, Any, Any]  # a label and where on the scale it begins and ends


def numbers(name: str, values: Sequence[Number], missing: bool) -> Built:
    """Numbers without levels: any interval from one value to another.

    >>> hierarchy, _ = numbers("age", [20, 25, 40], missing=False)
    >>> hierarchy.label(0, 1), hierarchy.label(2, 2), hierarchy.loss(0, 1)
    ('[20-25]', '40', 0.25)
    """
    paths: dict[Hashable, Path] = {value: (plain_text(value),) for value in values}
    place: dict[Hashable, tuple[float, float]] = {v: (where, where) for v, where in _places(values).items()}
    tree = grow(name, paths, missing=missing, free=True, place=place, span=number_span)
    return tree, {value: value for value in values}


def coded(name: str, values: Sequence[Number], ends: tuple[Fraction | None, Fraction | None], missing: bool) -> Built:
    """Numbers without levels, coded at their ends: all below the first are one value, and all from the second on.

    >>> hierarchy, leaf = coded("age", [9, 20, 40, 87, 95], (Fraction(18), Fraction(85)), missing=False)
    >>> leaf[9], leaf[95], hierarchy.label(3, 3), hierarchy.label(0, 1), hierarchy.label(2, 3)
    ('<18', '>=85', '>=85', '<=20', '>=40')
    """
    if bad := _endless(end for end in ends if end is not None):
        raise InputError(Fault("R202", f"column {name!r}, {'; '.join(bad)}", "cannot be an end", "round it"))
    bottom, top = ends
    below = "" if bottom is None else f"<{fraction_text(bottom)}"
    above = "" if top is None else f">={fraction_text(top)}"

    def key(value: Number) -> Hashable:
        exact = Fraction(str(value))
        return below if bottom is not None and exact < bottom else above if top is not None and exact >= top else value

    leaf: dict[Hashable, Hashable] = {value: key(value) for value in values}
    where = _places(values)
    paths: dict[Hashable, Path] = {one: (plain_text(one),) for one in leaf.values()}
    place: dict[Hashable, tuple[float, float]] = {leaf[value]: (where[value], where[value]) for value in values}
    origin = values[0] if len(values) and isinstance(values[0], int) else 0
    if bottom is not None and below in place:
        whole = bottom.denominator == 1 and all(isinstance(value, int) for value in values)
        place[below] = (where[values[0]], float(bottom - origin) - whole)
    if top is not None and above in place:
        place[above] = (float(top - origin), where[values[-1]])

    def span(first: Hashable, last: Hashable) -> str:
        if first == below and last == above:
            return ANY
        if first == below:
            return f"<={plain_text(last)}"
        return f">={plain_text(first)}" if last == above else number_span(first, last)

    tree = grow(name, paths, missing=missing, free=True, place=place, span=span)
    scale = tree.scale.copy()
    if len(scale) > int(missing) and tree.leaves[-1] == above:  # an interval that goes on to the top ends at its end
        scale[-1] = 1.0
    return replace(tree, scale=scale), leaf


def _places(values: Sequence[Number]) -> dict[Number, float]:
    """Where numbers lie. Whole ones count from the lowest, so that large neighbours stay apart as floats."""
    return {value: float(value - values[0]) if isinstance(value, int) else float(value) for value in values}


def number_span(first: Hashable, last: Hashable) -> str:
    return f"[{plain_text(first)}-{plain_text(last)}]"


def widths(name: str, values: Sequence[Number], steps: Sequence[Fraction], missing: bool) -> Built:
    """Numbers in intervals of fixed widths, each a multiple of the one before.

    >>> hierarchy, leaf = widths("age", [20, 23, 37], [Fraction(5), Fraction(10)], missing=False)
    >>> leaf[23], hierarchy.label(0, 0), list(hierarchy.ancestors(1))
    ('[20-24]', '[20-24]', ['[35-39]', '*'])
    """
    bad = ["widths must be positive"] if not steps or min(steps) <= 0 else _endless(steps)
    bad = bad or [f"{b} is not a multiple of {a}" for a, b in pairwise(steps) if b % a or b == a]
    if bad:
        reason = "; ".join(bad)
        raise InputError(Fault("R202", f"column {name!r}, widths", reason, "let each width be a multiple of the last"))
    whole = all(isinstance(value, int) for value in values) and all(step.denominator == 1 for step in steps)

    def path(value: Number) -> list[Stretch]:
        starts = [Fraction(str(value)) // step * step for step in reversed(steps)]
        return [_stretch(a, a + step, whole) for a, step in zip(starts, reversed(steps), strict=True)]

    return _buckets(name, values, path, missing)


def cuts(name: str, values: Sequence[Number], levels: Sequence[Sequence[Fraction]], missing: bool) -> Built:
    """Numbers between stated cut points; each level keeps some of the cut points of the one before.

    >>> hierarchy, leaf = cuts("age", [9, 30, 70], [[Fraction(18), Fraction(65)], [Fraction(18)]], missing=False)
    >>> leaf[30], list(hierarchy.ancestors(1))
    ('[18-64]', ['[18-64]', '>=18', '*'])
    """
    bad = [
        f"{sorted(set(b) - set(a))[0]} is not a cut of the finer level" for a, b in pairwise(levels) if set(b) - set(a)
    ]
    bad += _endless(levels[0]) if all(levels) else ["a level names no cut"]
    if bad:
        reason = "; ".join(bad)
        remedy = "let each level keep some of the cuts of the level before"
        raise InputError(Fault("R202", f"column {name!r}, cuts", reason, remedy))
    whole = all(isinstance(value, int) for value in values) and all(c.denominator == 1 for c in levels[0])
    ladders = [sorted(set(level)) for level in reversed(levels)]

    def path(value: Number) -> list[Stretch]:
        return [_between(value, ladder, whole) for ladder in ladders]

    return _buckets(name, values, path, missing)


def _between(value: Number, ladder: Sequence[Fraction], whole: bool) -> Stretch:
    place = bisect_right(ladder, Fraction(str(value)))
    if place == 0:
        return f"<{fraction_text(ladder[0])}", -inf, ladder[0] - whole
    if place == len(ladder):
        return f">={fraction_text(ladder[-1])}", ladder[-1], inf
    return _stretch(ladder[place - 1], ladder[place], whole)


def _stretch(start: Fraction, end: Fraction, whole: bool) -> Stretch:
    return bucket_label(start, end, whole), start, end - whole


def bucket_label(start: Fraction, end: Fraction, whole: bool) -> str:
    """`[20-24]` for whole numbers (both ends included), `[20-25[` for others (the right end is not)."""
    if whole:
        return fraction_text(start) if end == start + 1 else f"[{start}-{end - 1}]"
    return f"[{fraction_text(start)}-{fraction_text(end)}["


def fraction_text(value: Fraction) -> str:
    """The decimal, with all its digits: a rounded end would put values next to it into the wrong interval."""
    places = next(n for n in range(value.denominator.bit_length()) if 10**n % value.denominator == 0)
    digits = str(abs(value.numerator) * 10**places // value.denominator).zfill(places + 1)
    sign, point = "-" * (value < 0), len(digits) - places
    return f"{sign}{digits[:point]}.{digits[point:]}" if places else sign + digits


def _endless(values: Iterable[Fraction]) -> list[str]:
    """What is wrong with numbers such as 1/3, which no published cell could show exactly."""
    return [
        f"{value} has no finite decimal" for value in values if 10 ** value.denominator.bit_length() % value.denominator
    ]


def _buckets(name: str, values: Sequence[Number], path: Callable[[Number], list[Stretch]], missing: bool) -> Built:
    """Numbers under labels that reach as far as they say, but not beyond the least and the greatest number."""
    least, most = (Fraction(values[0]), Fraction(values[-1])) if len(values) else (Fraction(0), Fraction(0))
    origin = least if isinstance(values[0] if len(values) else 0, int) else 0

    def placed(stretch: Stretch) -> Stretch:
        label, low, high = stretch
        return label, float(max(low, least) - origin), float(min(high, most) - origin)

    return _leaves(name, {value: [placed(stretch) for stretch in path(value)] for value in values}, missing)


def _leaves(
    name: str,
    values: Mapping[Any, Sequence[Stretch]],
    missing: bool,
    absent: float | None = None,
) -> Built:
    """Leaves that each stand for several values, given each value's labels from the top and how far they reach.

    A missing value is nowhere, or lies at `absent`.
    """
    paths: dict[Hashable, Path] = {}
    place: dict[Hashable, tuple[Any, Any]] = {} if absent is None else {None: (absent, absent)}
    leaf: dict[Hashable, Hashable] = {}
    for value, stretches in values.items():
        labels = tuple(label for label, _, _ in stretches)
        paths[labels[-1]], leaf[value] = labels, labels[-1]
        for label, start, end in stretches:
            low, high = place.get(label, (start, end))
            place[label] = (min(low, start), max(high, end))
    return grow(name, paths, missing=missing, place=place), leaf


def dates(name: str, values: Sequence[datetime.date], levels: Sequence[DateLevel] | None, missing: bool) -> Built:
    """Dates: any interval of days, or calendar levels, finest first.

    >>> day = datetime.date(2026, 3, 14)
    >>> hierarchy, leaf = dates("seen", [day], ["month", "quarter", "year"], missing=False)
    >>> leaf[day]
    '2026-03'
    """
    if levels is None:
        paths: dict[Hashable, Path] = {value: (value.isoformat(),) for value in values}
        place: dict[Hashable, tuple[float, float]] = {v: (float(v.toordinal()),) * 2 for v in values}
        tree = grow(name, paths, missing=missing, free=True, place=place, span=date_span)
        return tree, {value: value for value in values}
    rising = [level for level in DATE_LEVELS if level in levels]
    if list(levels) != rising:
        remedy = f"write levels = {rising}"
        raise InputError(Fault("R202", f"column {name!r}, levels", "are not in rising order", remedy))
    return _leaves(name, {v: [_period(v, level, values) for level in reversed(rising)] for v in values}, missing)


def _period(value: datetime.date, level: DateLevel, values: Sequence[datetime.date]) -> Stretch:
    """The label of a day's month or year, and the days of it between the first and the last of the column."""
    first, last = period_of(value, level)
    return date_label(value, level), max(first, values[0]).toordinal(), min(last, values[-1]).toordinal()


def period_of(value: datetime.date, level: DateLevel) -> tuple[datetime.date, datetime.date]:
    """The first and the last day of a day's month, quarter, year or decade.

    >>> [day.isoformat() for day in period_of(datetime.date(2026, 2, 14), "quarter")]
    ['2026-01-01', '2026-03-31']
    """
    if level == "day":
        return value, value
    year, month = value.year, value.month
    first, months = {
        "month": ((year, month), 1),
        "quarter": ((year, (month - 1) // 3 * 3 + 1), 3),
        "year": ((year, 1), 12),
        "decade": ((max(1, year // 10 * 10), 1), 120 if year >= 10 else 108),
    }[level]
    ends = first[0] * 12 + first[1] - 1 + months  # months since year 0
    if ends // 12 > datetime.MAXYEAR:
        return datetime.date(*first, 1), datetime.date.max
    return datetime.date(*first, 1), datetime.date(ends // 12, ends % 12 + 1, 1) - datetime.timedelta(days=1)


def date_span(first: Hashable, last: Hashable) -> str:
    return f"[{first}/{last}]"


def date_label(value: datetime.date, level: DateLevel) -> str:
    return {
        "day": value.isoformat(),
        "month": f"{value.year:04d}-{value.month:02d}",
        "quarter": f"{value.year:04d}-Q{(value.month + 2) // 3}",
        "year": f"{value.year:04d}",
        "decade": f"{value.year // 10 * 10:04d}s",
    }[level]


def prefixes(name: str, values: Sequence[str], lengths: Sequence[int], missing: bool) -> Built:
    """Codes such as zip codes by their first characters; the rest is shown as `*`, to the length of the longest code.

    A code shorter than what is kept is shown as it is.

    >>> hierarchy, leaf = prefixes("zip", ["47602", "47677", "47905"], [4, 3], missing=False)
    >>> leaf["47677"], list(hierarchy.ancestors(0))
    ('4767*', ['4760*', '476**', '*'])
    """
    if list(lengths) != sorted(set(lengths), reverse=True) or not lengths or lengths[-1] < 1:
        remedy = "write the lengths to keep in falling order, such as [4, 3, 2]"
        raise InputError(Fault("R202", f"column {name!r}, prefixes", f"{list(lengths)} do not fall", remedy))
    starred = [value for value in values if "*" in value]
    if starred:
        message = (
            f"{some(len(starred), 'value has', 'values have')} a * as if shortened: {', '.join(map(repr, starred[:5]))}"
        )
        raise InputError(Fault("R304", f"column {name!r}, prefixes", message, "give the full codes"))
    longest = max(map(len, values), default=0)

    def label(value: str, length: int) -> str:
        return value[:length] + "*" * (longest - length) if len(value) >= length else value

    stretches = {
        value: [(label(value, length), rank, rank) for length in reversed(lengths)] for rank, value in enumerate(values)
    }
    tree, leaf = _leaves(name, stretches, missing, absent=-1 if missing else None)  # a missing code is one more code
    codes = Counter(leaf.values())
    return replace(tree, amount=np.array([codes.get(key, 1) for key in tree.leaves])), leaf


def ordered(name: str, order: Sequence[str], missing: bool) -> Built:
    """Categories with an order: any run of neighbours.

    >>> hierarchy, _ = ordered("stage", ["I", "II", "III", "IV"], missing=False)
    >>> hierarchy.label(0, 2)
    '[I-III]'
    """
    if len(set(order)) != len(order):
        raise InputError(Fault("R202", f"column {name!r}, order", "names a value twice", "keep it once"))
    paths: dict[Hashable, Path] = {value: (value,) for value in order}
    tree = grow(name, paths, missing=missing, free=True, span=_run)
    if any("-" in value for value in order):
        refuse_ambiguous(name, [*order, *(_run(a, b) for a, b in combinations(order, 2))])
    return tree, {value: value for value in order}


def _run(first: Hashable, last: Hashable) -> str:
    return f"[{first}-{last}]"


def flat(name: str, values: Sequence[str], missing: bool) -> Built:
    """Categories without a hierarchy: the value itself, or `*`."""
    paths: dict[Hashable, Path] = {value: (value,) for value in values}
    return grow(name, paths, missing=missing), {value: value for value in values}
