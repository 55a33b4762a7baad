"""m-Distinct*: which values may begin together, and who would be too likely to have a value.

In a person's first group no two values may become the same one. Values whose candidate update sets overlap, also
through others, are of one *kind*; values of different kinds never meet. Where there are fewer kinds than a group needs,
values are combined one by one, with counterfeits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import lcm

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from reveil.background.transitions import Relation
from reveil.base.arrays import I32, I64
from reveil.base.errors import Fault, InfeasibleError, brief
from reveil.history.history import History
from reveil.table.encode import Sensitive

Flags = NDArray[np.bool_]
TRIED = 100_000  # steps of the search for values that begin together
CELLS = 2**23  # people x values x releases that are weighed at a time
NEAR = 1e-6  # chances that are this near to the bound are settled in whole numbers: floats are far more exact than that


def kinds_of(relation: Relation) -> I64:
    """The kind of each value: values of different kinds can never become the same."""
    return np.asarray(connected_components(csr_array(relation.allowed), directed=False)[1], dtype=np.int64)


def combine(counts: I64, relation: Relation, size: int, column: Sensitive) -> Iterator[tuple[list[int], int]]:
    """Values that begin together, and how many groups of them, until all rows are dealt: the most frequent first.

    Values that have no rows left are shown by counterfeits.
    """
    allowed = relation.allowed.astype(np.int32)
    overlap = (allowed @ allowed.T) > 0
    counts = counts.copy()
    stuck = [v for v in np.flatnonzero(counts).tolist() if _grown([v], overlap, counts * 0, size) is None]
    if stuck:
        raise InfeasibleError(_too_few(stuck, counts, size, column))
    while counts.any():
        top = int(counts.argmax())
        chosen = _grown([top], overlap, counts, size) or _grown([top], overlap, counts * 0, size)
        assert chosen is not None
        often = max(1, int(min(counts[v] for v in chosen if counts[v])))
        yield chosen, often
        for v in chosen:
            counts[v] -= min(often, int(counts[v]))


def _grown(start: list[int], overlap: Flags, counts: I64, size: int) -> list[int] | None:
    """`size` values without overlap that begin with these: frequent ones first, then those that overlap few others."""
    order = np.lexsort((overlap.sum(axis=1), -counts))
    steps = 0

    def search(chosen: list[int], free: I64) -> list[int] | None:
        nonlocal steps
        steps += 1
        if len(chosen) == size:
            return chosen
        while len(chosen) + len(free) >= size and steps < TRIED:
            v, free = int(free[0]), free[1:]
            grown = search([*chosen, v], free[~overlap[v, free]])
            if grown is not None:
                return grown
        return None

    apart = np.flatnonzero(~np.any(overlap[start], axis=0))
    return search(start, order[np.isin(order, apart)])


def _too_few(values: list[int], counts: I64, size: int, column: Sensitive) -> Fault:
    shown = ", ".join(brief(column.values[v]) for v in values[:5])
    more = f" and {len(values) - 5} more" if len(values) > 5 else ""
    return Fault(
        "R450",
        f"column {column.name!r}",
        f"no {size} values with candidate update sets that do not overlap were found that include {shown}{more}",
        'lower m (or k), use model = "m-distinct", or state narrower transitions',
        int(counts[values].sum()),
    )


def even(relation: Relation) -> bool:
    """Whether the paper's bound needs no check: equal chances, and as many of them for every value."""
    return relation.uniform and len(np.unique(relation.allowed.sum(axis=1))) <= 1


def too_likely(
    history: History, column: str, persons: I64, groups: I32, shown: Flags, relation: Relation, m: int
) -> Flags:
    """Rows whose person's value at some appearance would be likelier than 1/m, followed alone.

    `groups` are those planned for each row (-1: none), `shown` the values of each planned group.
    """
    chance = relation.weights / relation.totals[:, None]
    past = history.members.filter(history.members["group"] >= 0) if not history.members.is_empty() else history.members
    releases = [number for number in range(1, history.head + 1) if not past.is_empty()]
    values = {r: _values(history, column, r, len(relation.values)) for r in releases}
    place = np.full(max(int(persons.max(initial=-1)) + 1, history.persons.height), -1, dtype=np.int64)
    likely = np.zeros(len(persons), dtype=bool)
    step = max(1, CELLS // (len(relation.values) * (len(releases) + 1)))
    split = {r: past.filter(past["release"] == r) for r in releases}
    for start in range(0, len(persons), step):
        mine = np.arange(start, min(start + step, len(persons)))
        place[:] = -1
        place[persons[mine]] = np.arange(len(mine))
        layers: list[tuple[I64, Flags]] = []
        for r in releases:
            at = place[split[r]["person"].to_numpy()]
            layers.append((at[at >= 0], values[r][split[r]["group"].to_numpy()[at >= 0]]))
        kept = groups[mine] >= 0
        layers.append((np.flatnonzero(kept), shown[groups[mine][kept]]))
        ratio = _highest(layers, chance, len(mine)) * m
        near = np.abs(ratio - 1) <= NEAR
        likely[mine] = ratio > 1
        likely[mine[near]] = _settled(layers, near, relation, m)
    return likely & (groups >= 0)


def _values(history: History, column: str, release: int, width: int) -> Flags:
    listed = history.values.filter((history.values["release"] == release) & (history.values["column"] == column))
    group = listed["group"].to_numpy()
    table = np.zeros((int(group.max(initial=-1)) + 1, width), dtype=np.bool_)
    table[group, listed["code"].to_numpy()] = True
    return table


def _highest(layers: list[tuple[I64, Flags]], chance: NDArray[np.float64], people: int) -> NDArray[np.float64]:
    """The chance of everybody's likeliest value, over all their appearances: matrices of people by values."""
    width = len(chance)
    ahead, seen = np.ones((people, width)), np.zeros(people, dtype=bool)
    forward = []
    for who, shown in layers:
        arrived = np.where(seen[who, None], ahead[who] @ chance, 1.0) * shown
        ahead[who] = arrived / np.maximum(arrived.sum(axis=1, keepdims=True), 1e-300)
        seen[who] = True
        forward.append(ahead[who])
    back, highest = np.ones((people, width)), np.zeros(people)
    for (who, shown), sums in zip(reversed(layers), reversed(forward), strict=True):
        joint = sums * back[who]
        share = joint.max(axis=1) / np.maximum(joint.sum(axis=1), 1e-300)
        highest[who] = np.maximum(highest[who], share)
        before = (back[who] * shown) @ chance.T
        back[who] = before / np.maximum(before.max(axis=1, keepdims=True), 1e-300)
    return highest


def _settled(layers: list[tuple[I64, Flags]], near: Flags, relation: Relation, m: int) -> Flags:
    """Which of the people who are near to 1/m are above it, exactly. Equal series of values are weighed once."""
    seen = np.full((len(near), len(layers)), -1, dtype=np.int64)
    sets: list[list[list[int]]] = []
    for number, (who, shown) in enumerate(layers):
        mine = near[who]
        packed, which = np.unique(np.packbits(shown[mine], axis=1), axis=0, return_inverse=True)
        seen[who[mine], number] = which.ravel()
        listed = np.unpackbits(packed, axis=1, count=shown.shape[1])
        sets.append([np.flatnonzero(line).tolist() for line in listed])
    distinct, which = np.unique(seen[near], axis=0, return_inverse=True)
    above = [
        _is_above([sets[n][place] for n, place in enumerate(line) if place >= 0], relation, m)
        for line in distinct.tolist()
    ]
    return np.array(above, dtype=bool)[which.ravel()]


def _is_above(sets: Sequence[list[int]], relation: Relation, m: int) -> bool:
    """Whether some value is likelier than 1/m at some appearance of a person whose groups showed these values.

    All chances of a step are brought to one denominator. It is a factor of every way through, so it is left out.
    """
    steps = []
    for before, after in pairwise(sets):
        totals = relation.totals[before].tolist()
        common = lcm(*totals)
        rows = relation.weights[np.ix_(before, after)].tolist()
        steps.append([[w * (common // total) for w in row] for row, total in zip(rows, totals, strict=True)])
    forward = [[1] * len(sets[0])]
    for step in steps:
        forward.append(
            [sum(f * w for f, w in zip(forward[-1], column, strict=True)) for column in zip(*step, strict=True)]
        )
    back = [1] * len(sets[-1])
    for number in range(len(sets) - 1, -1, -1):
        joint = [f * b for f, b in zip(forward[number], back, strict=True)]
        if max(joint) * m > sum(joint):
            return True
        if number:
            back = [sum(w * b for w, b in zip(row, back, strict=True)) for row in steps[number - 1]]
    return False
