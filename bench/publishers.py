"""Releases in the ways of other publishers, made from any table: what a row stands for, and how each would write it.

A published row keeps its *box* (of each column, the values that its cell stands for) beside the text, so that who fits
it is known without reading the text: whoever compares an audit with enumeration does not depend on a reader.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import polars as pl

Values = frozenset[Hashable]
Box = tuple[Values, ...]
Person = tuple[Hashable, ...]  # quasi-identifiers
Domains = Sequence[Sequence[Hashable]]  # of each column, its values in order


@dataclass(frozen=True)
class Row:
    """One published row: the values behind each cell, and the sensitive value."""

    box: Box
    value: str

    def fits(self, person: Person) -> bool:
        return all(cell in values for cell, values in zip(person, self.box, strict=True))


Recoder = Callable[[Sequence[tuple[Person, str]], Domains, int, int, random.Random], list[Row]]
Writer = Callable[[Values, Sequence[Hashable]], str]


def allowed(values: Iterable[str], k: int, diverse: int) -> bool:
    """k rows with so many different values."""
    listed = list(values)
    return len(listed) >= k and len(set(listed)) >= diverse


def levels_of(domain: Sequence[Hashable]) -> list[dict[Hashable, Values]]:
    """From single values to everything: runs of 1, 2, 4, ... values in order."""
    levels, width = [], 1
    while width < len(domain):
        runs = [frozenset(domain[n : n + width]) for n in range(0, len(domain), width)]
        levels.append({value: run for run in runs for value in run})
        width *= 2
    return [*levels, {value: frozenset(domain) for value in domain}]


def _recoded(
    people: Sequence[tuple[Person, str]],
    domains: Domains,
    k: int,
    diverse: int,
    share: float,
) -> tuple[list[Row], list[tuple[Person, str]]]:
    """One level for each column, the finest in sum that leaves at most this share out; and who is left out."""
    ladders = [levels_of(domain) for domain in domains]
    best: tuple[list[Row], list[tuple[Person, str]]] | None = None
    for heights in sorted(product(*(range(len(ladder)) for ladder in ladders)), key=lambda h: (sum(h), h)):
        classes: dict[Box, list[tuple[Person, str]]] = {}
        for person, value in people:
            box = tuple(ladder[h][cell] for ladder, h, cell in zip(ladders, heights, person, strict=True))
            classes.setdefault(box, []).append((person, value))
        good = {box: rows for box, rows in classes.items() if allowed((v for _, v in rows), k, diverse)}
        out = [row for box, rows in classes.items() if box not in good for row in rows]
        if len(out) <= share * len(people):
            best = [Row(box, value) for box, rows in good.items() for _, value in rows], out
            break
    return best or ([], list(people))


def _everything(domains: Domains) -> Box:
    return tuple(frozenset(domain) for domain in domains)


def global_levels(people, domains, k, diverse, rng):  # type: ignore[no-untyped-def]
    """ARX, full-domain: one level per column; rows of classes that are too small have `*` everywhere."""
    rows, out = _recoded(people, domains, k, diverse, 0.05)
    return rows + [Row(_everything(domains), value) for _, value in out]


def dropped_rows(people, domains, k, diverse, rng):  # type: ignore[no-untyped-def]
    """The same, but such rows are left out."""
    return _recoded(people, domains, k, diverse, 0.1)[0]


def local_recoding(people, domains, k, diverse, rng):  # type: ignore[no-untyped-def]
    """ARX, local recoding: what one choice of levels leaves out is recoded by the next, and so on."""
    rows, out, share = [], list(people), 0.5
    while out:
        more, rest = _recoded(out, domains, k, diverse, share)
        rows += more
        if len(rest) == len(out) or not allowed((v for _, v in rest), k, diverse):
            return rows + [Row(_everything(domains), value) for _, value in rest]
        out = rest
    return rows


def mondrian(people, domains, k, diverse, rng):  # type: ignore[no-untyped-def]
    """anonypy and others: cut at the median as long as both sides are allowed; boxes are the smallest that fit."""
    place = [{value: n for n, value in enumerate(domain)} for domain in domains]
    rows, waiting = [], [list(people)]
    while waiting:
        part = waiting.pop()
        cut = _halves(part, place, k, diverse)
        if cut is None:
            rows += _boxed(part, domains, place)
        else:
            waiting += cut
    return rows


def _halves(part, place, k, diverse):  # type: ignore[no-untyped-def]
    spans = [len({person[c] for person, _ in part}) for c in range(len(place))]
    for c in sorted(range(len(place)), key=lambda c: -spans[c]):
        ranks = sorted(place[c][person[c]] for person, _ in part)
        middle = ranks[len(ranks) // 2]
        sides = [[r for r in part if (place[c][r[0][c]] < middle) == left] for left in (True, False)]
        if all(allowed((v for _, v in side), k, diverse) for side in sides):
            return sides
    return None


def _boxed(part, domains, place):  # type: ignore[no-untyped-def]
    box = []
    for c, domain in enumerate(domains):
        ranks = [place[c][person[c]] for person, _ in part]
        box.append(frozenset(domain[min(ranks) : max(ranks) + 1]))
    return [Row(tuple(box), value) for _, value in part]


def clusters(people, domains, k, diverse, rng):  # type: ignore[no-untyped-def]
    """Groups drawn at random, each with the smallest box around it (as of MDAV and hand-made tables): boxes overlap."""
    place = [{value: n for n, value in enumerate(domain)} for domain in domains]
    rest, rows = list(people), []
    rng.shuffle(rest)
    while rest:
        size = next((n for n in range(k, len(rest) + 1) if allowed((v for _, v in rest[:n]), k, diverse)), len(rest))
        if not allowed((v for _, v in rest[size:]), k, diverse):
            size = len(rest)
        rows += _boxed(rest[:size], domains, place)
        rest = rest[size:]
    return rows


def span_text(values: Values, domain: Sequence[Hashable]) -> str:
    """`[17-19]`, one value as it is, `*` for everything."""
    inside = [value for value in domain if value in values]
    if len(inside) == 1:
        return str(inside[0])
    return "*" if len(inside) == len(domain) else f"[{inside[0]}-{inside[-1]}]"


def half_open(values: Values, domain: Sequence[Hashable]) -> str:
    """`[17, 20[`, as ARX writes intervals."""
    inside = [value for value in domain if value in values]
    if len(inside) == len(domain):
        return "*"
    return str(inside[0]) if len(inside) == 1 else f"[{inside[0]}, {int(str(inside[-1])) + 1}["


def listed(values: Values, domain: Sequence[Hashable]) -> str:
    """`17,18,19`, as anonypy writes sets."""
    return ",".join(str(value) for value in domain if value in values)


def bare_span(values: Values, domain: Sequence[Hashable]) -> str:
    """`17-19`."""
    inside = [value for value in domain if value in values]
    return str(inside[0]) if len(inside) == 1 else f"{inside[0]}-{inside[-1]}"


def in_lists(values: Values, domain: Sequence[Hashable]) -> str:
    """`['17-19']`, as lists that were written by mistake."""
    return f"['{bare_span(values, domain)}']"


def braces(values: Values, domain: Sequence[Hashable]) -> str:
    """`{17,18,19}`, as Reveil writes sets."""
    return "{" + listed(values, domain) + "}"


def missing(values: Values, domain: Sequence[Hashable]) -> str:
    """`NA` where a cell was suppressed, as of sdcMicro; otherwise as it is."""
    return "NA" if len(values) == len(domain) and len(domain) > 1 else bare_span(values, domain)


@dataclass(frozen=True)
class Publisher:
    recode: Recoder
    write: Writer
    aggregated: bool = False  # one row for each class and value, with a column `count`


PUBLISHERS: Mapping[str, Publisher] = {
    "ARX, global levels": Publisher(global_levels, half_open),
    "ARX, local recoding": Publisher(local_recoding, half_open),
    "rows left out": Publisher(dropped_rows, span_text),
    "Mondrian, aggregated": Publisher(mondrian, bare_span, aggregated=True),
    "clusters, sets": Publisher(clusters, listed),
    "clusters, lists": Publisher(clusters, in_lists),
    "clusters, braces": Publisher(clusters, braces),
    "sdcMicro": Publisher(global_levels, missing),
}


def written(
    rows: Sequence[Row], names: Sequence[str], domains: Domains, how: Publisher, sensitive: str
) -> pl.DataFrame:
    """The table as its publisher would write it."""
    cells = [
        (*(how.write(values, domain) for values, domain in zip(row.box, domains, strict=True)), row.value)
        for row in rows
    ]
    columns = dict.fromkeys((*names, sensitive), pl.String)
    if not how.aggregated:
        return pl.DataFrame(cells, schema=columns, orient="row")
    counted = Counter(cells)
    return pl.DataFrame([(*c, n) for c, n in counted.items()], schema={**columns, "count": pl.Int64}, orient="row")
