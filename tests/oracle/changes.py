"""Chances of change, counted by hand from who had what when; written from the definition, with fractions only."""

from collections import Counter
from fractions import Fraction


def steps(seen):
    """(person, from, to) for people in two releases of which none lies between."""
    order = sorted({release for _, release, _ in seen})
    had = {(person, release): value for person, release, value in seen}
    return [
        (person, value, had[person, later])
        for (person, release), value in had.items()
        for later in order
        if order.index(later) == order.index(release) + 1 and (person, later) in had
    ]


def chances(seen, least, smoothing, spread):
    """By value, the chance of each other value; what is left to 1 stays."""
    made = steps(seen)
    share = {value: max(count, least) for value, count in Counter(value for _, _, value in seen).items()}
    moved = Fraction(sum(a != b for _, a, b in made), len(made))
    result = {}
    for a in share:
        mine = [(person, b) for person, start, b in made if start == a]
        others = [b for b in share if b != a]
        if len({person for person, _ in mine}) < least:
            result[a] = spread_over(others, share, moved) if spread else {}
            continue
        count = Counter(b for _, b in mine)
        movers = {b: {person for person, to in mine if to == b} for b in others}
        often = {b for b in others if len(movers[b]) >= least}
        seldom = sum(count[b] for b in others if b not in often)
        seldom_movers = set().union(*(movers[b] for b in others if b not in often))
        hidden = len(seldom_movers) >= least and spread
        rest = (seldom if hidden else 0) + smoothing
        total = count[a] + sum(count[b] for b in often) + rest
        result[a] = {b: Fraction(count[b]) / total for b in often} if total else {}
        if spread and total:
            result[a] |= spread_over([b for b in others if b not in often], share, rest / total)
    return result


def spread_over(values, share, mass):
    whole = sum(share[b] for b in values)
    return {b: mass * share[b] / whole for b in values}
