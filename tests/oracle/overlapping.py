"""Worlds of released tables whose groups may overlap: plain enumeration of who has which row, nothing of the package.

A release is (rows, people, present): rows are (fits, value), where `fits` says which people a row may be about; people
are those who may be in it, and all are if they are `present`. Everybody has at most one row, every row has one
holder, and values never change.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction


def ways(rows, people, present):
    """Counter: (value or None of each person, in order) -> in how many ways rows can be given out so."""
    left = dict(Counter((frozenset(fits), value) for fits, value in rows))
    found, away = Counter(), 0 if present else len(people) - len(rows)

    def give(place, given, weight, away):
        if place == len(people):
            if not any(left.values()):
                found[tuple(given)] += weight
            return
        for kind, count in list(left.items()):
            if count and people[place] in kind[0]:
                left[kind] = count - 1
                give(place + 1, [*given, kind[1]], weight * count, away)
                left[kind] = count
        if away:
            give(place + 1, [*given, None], weight, away - 1)

    give(0, [], 1, away)
    return found


def beliefs(releases):
    """(person, release) -> value or None (not in it) -> probability; nothing where no world fits."""
    parts = [(list(people), ways(rows, list(people), present)) for rows, people, present in releases]
    return _shares(parts, sum(_joined(parts)[1].values()))


def _shares(parts, total):
    """Of each release by itself, weighed by how often the rest of the series fits."""
    shares: dict = {}
    for number, (people, found) in enumerate(parts):
        others = [part for n, part in enumerate(parts) if n != number]
        names, worlds = _joined(others)
        place = {p: n for n, p in enumerate(names)}
        for given, times in found.items():
            pairs = list(zip(people, given, strict=True))
            weight = sum(
                w
                for world, w in worlds.items()
                if all(v is None or world[place[p]] in (None, v) for p, v in pairs if p in place)
            )
            for p, v in pairs:
                row = shares.setdefault((p, number), Counter())
                row[v] += times * weight
    return {key: {v: Fraction(n, total) for v, n in row.items() if n} for key, row in shares.items()} if total else {}


def _joined(parts):
    joined, known = {(): 1}, []
    for people, found in parts:
        place = {p: n for n, p in enumerate(known)}
        fresh = [p for p in people if p not in place]
        after = Counter()
        for world, weight in joined.items():
            for given, times in found.items():
                values = dict(zip(people, given, strict=True))
                if all(v is None or p not in place or world[place[p]] in (None, v) for p, v in values.items()):
                    merged = list(world)
                    for p, v in values.items():
                        if v is not None and p in place:
                            merged[place[p]] = v
                    after[(*merged, *(values[p] for p in fresh))] += weight * times
        joined, known = after, [*known, *fresh]
    return known, joined
