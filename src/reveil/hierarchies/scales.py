"""Hierarchies that follow from the values: numbers, dates, prefixes, ordered and plain categories.

Each builder takes the distinct values of a column, sorted, without missing ones, and returns a `Hierarchy` and the key
under which each value is found among its leaves. The first level that a policy names is the finest ever published.
"""

from __future__ import annotations

import datetime
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

from reveil.base.errors import Fault, InputError
from reveil.base.text import plain_text
from reveil.base.words import some
from reveil.hierarchies.tree import Hierarchy, Path, grow, refuse_ambiguous
from reveil.policy.column import DATE_LEVELS, DateLevel

Number = int | float
Built = tuple[Hierarchy, dict[Hashable, Hashable]]  # value -> leaf


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

    def path(value: Number) -> Path:
        starts = [Fraction(str(value)) // step * step for step in reversed(steps)]
        return tuple(bucket_label(a, a + step, whole) for a, step in zip(starts, reversed(steps), strict=True))

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

    def path(value: Number) -> Path:
        return tuple(_between(value, ladder, whole) for ladder in ladders)

    return _buckets(name, values, path, missing)


def _between(value: Number, ladder: Sequence[Fraction], whole: bool) -> str:
    place = bisect_right(ladder, Fraction(str(value)))
    if place == 0:
        return f"<{fraction_text(ladder[0])}"
    if place == len(ladder):
        return f">={fraction_text(ladder[-1])}"
    return bucket_label(ladder[place - 1], ladder[place], whole)


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


def _buckets(name: str, values: Sequence[Number], path: Callable[[Number], Path], missing: bool) -> Built:
    return _leaves(name, {value: (path(value), where) for value, where in _places(values).items()}, missing)


def _leaves(name: str, values: Mapping[Any, tuple[Path, float]], missing: bool) -> Built:
    """Leaves that each stand for several values, given the labels of each value and where it lies."""
    paths: dict[Hashable, Path] = {}
    place: dict[Hashable, tuple[float, float]] = {}
    leaf: dict[Hashable, Hashable] = {}
    for value, (labels, where) in values.items():
        low, high = place.get(labels[-1], (where, where))
        paths[labels[-1]], leaf[value] = labels, labels[-1]
        place[labels[-1]] = (min(low, where), max(high, where))
    return grow(name, paths, missing=missing, place=place), leaf


def dates(name: str, values: Sequence[datetime.date], levels: Sequence[DateLevel] | None, missing: bool) -> Built:
    """Dates: any interval of days, or calendar levels, finest first.

    >>> day = datetime.date(2026, 3, 14)
    >>> hierarchy, leaf = dates("seen", [day], ["month", "quarter", "year"], missing=False)
    >>> leaf[day]
    '2026-03'
    """
    day = {value: float(value.toordinal()) for value in values}
    if levels is None:
        paths: dict[Hashable, Path] = {value: (value.isoformat(),) for value in values}
        place: dict[Hashable, tuple[float, float]] = {value: (day[value], day[value]) for value in values}
        tree = grow(name, paths, missing=missing, free=True, place=place, span=date_span)
        return tree, {value: value for value in values}
    rising = [level for level in DATE_LEVELS if level in levels]
    if list(levels) != rising:
        remedy = f"write levels = {rising}"
        raise InputError(Fault("R202", f"column {name!r}, levels", "are not in rising order", remedy))
    labels = {value: tuple(date_label(value, level) for level in reversed(rising)) for value in values}
    return _leaves(name, {value: (labels[value], day[value]) for value in values}, missing)


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

    paths = {value: tuple(label(value, length) for length in reversed(lengths)) for value in values}
    return _leaves(name, {value: (paths[value], float(rank)) for rank, value in enumerate(values)}, missing)


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
