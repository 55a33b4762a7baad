"""Who must have the same value, whatever it is: equalities in the linear span of the groups.

Where values never change and a group has no counterfeits, the number of its people with value v is known: one linear
equation per group, the same left side for every v. If adding and subtracting groups leaves exactly "this person minus
that one", and the values of these groups cancel as well, the two have the same value. Candidates are people whose
entries agree in random solutions modulo a large prime; each is confirmed in exact arithmetic with the groups it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from reveil.audit.certain import Equality, State

PRIME = (1 << 61) - 1
FILL = 3_000_000  # entries of the eliminated system at most
Row = dict[int, int]


@dataclass(frozen=True)
class Span:
    equalities: tuple[Equality, ...]
    complete: bool  # False: the system was too large to eliminate


def equalities(state: State, factors: Sequence[int], seed: int = 0) -> Span:
    """Equal people within one component."""
    rows, shown = _system(state, factors)
    solver = _Elimination(rows)
    if not solver.run():
        return Span((), False)
    rng = np.random.default_rng(seed)
    values = sorted({v for row in shown.values() for v in row})
    mix = {v: int(x) for v, x in zip(values, rng.integers(0, PRIME, len(values)), strict=True)}
    one, two = (solver.solution(rng, shown, mix) for _ in range(2))
    alike: dict[tuple[int, int], list[int]] = {}
    found = []
    for person in solver.people:
        if one[person] != two[person]:
            alike.setdefault((one[person], two[person]), []).append(person)
        elif (alone := _determined(solver, rows, shown, person)) is not None:
            found.append(alone)
    for members in alike.values():
        for other in members[1:]:
            groups = solver.explain({members[0]: 1, other: PRIME - 1})
            if groups is not None and _sums(rows, shown, groups) == ({members[0]: 1, other: -1}, {}):
                found.append(Equality(members[0], other, tuple(sorted(groups.items()))))
    return Span(tuple(found), True)


def _determined(
    solver: _Elimination, rows: dict[int, set[int]], shown: dict[int, dict[int, int]], person: int
) -> Equality | None:
    """Somebody who is left alone when groups are added and subtracted."""
    groups = solver.explain({person: 1})
    if groups is None:
        return None
    people, values = _sums(rows, shown, groups)
    if people != {person: 1} or list(values.values()) != [1]:
        return None
    return Equality(person, None, tuple(sorted(groups.items())), next(iter(values)))


def _system(state: State, factors: Sequence[int]) -> tuple[dict[int, set[int]], dict[int, dict[int, int]]]:
    """By factor without counterfeits: its people with an open choice, and how many of them have each value."""
    m, o = state.model, state.model.observed
    many = state.open_options > 1
    rows, shown = {}, {}
    for f in factors:
        if m.implied[f] or o.group_fakes[f] != 0:
            continue
        cells = range(m.cell_start[f], m.cell_start[f + 1])
        left = {int(m.cell_value[c]): int(m.cell_cap[c]) for c in cells}
        people = set()
        for a in m.factor_apps[m.factor_start[f] : m.factor_start[f + 1]]:
            if many[a]:
                people.add(int(o.app_person[a]))
            else:
                left[next(iter(state.values_of(int(a))))] -= 1
        rows[f], shown[f] = people, left
    return rows, shown


class _Elimination:
    """Gaussian elimination of sparse rows modulo a prime, keeping what each row was made of."""

    def __init__(self, rows: dict[int, set[int]]) -> None:
        self.rows = rows
        self.people = sorted({p for people in rows.values() for p in people})
        self.often: dict[int, int] = {}
        for people in rows.values():
            for p in people:
                self.often[p] = self.often.get(p, 0) + 1
        self.pivots: dict[int, tuple[Row, Row]] = {}  # pivot person -> (row with 1 at the pivot, what it is made of)
        self.order: list[int] = []

    def run(self) -> bool:
        size = 0
        for factor, people in self.rows.items():
            row, made = self.reduce(dict.fromkeys(people, 1), {factor: 1})
            if not row:
                continue
            pivot = min(row, key=lambda p: (self.often[p], p))
            scale = pow(row[pivot], -1, PRIME)
            row = {p: c * scale % PRIME for p, c in row.items()}
            self.pivots[pivot] = row, {f: c * scale % PRIME for f, c in made.items()}
            self.order.append(pivot)
            size += len(row) + len(made)
            if size > FILL:
                return False
        return True

    def reduce(self, row: Row, made: Row) -> tuple[Row, Row]:
        """Take away pivots until none is left in the row."""
        waiting = [p for p in row if p in self.pivots]
        while waiting:
            pivot = waiting.pop()
            times = row.get(pivot, 0)
            if not times:
                continue
            other, parts = self.pivots[pivot]
            for p, c in other.items():
                value = (row.get(p, 0) - times * c) % PRIME
                if value:
                    if p not in row and p in self.pivots:
                        waiting.append(p)
                    row[p] = value
                else:
                    row.pop(p, None)
            for f, c in parts.items():
                value = (made.get(f, 0) - times * c) % PRIME
                if value:
                    made[f] = value
                else:
                    made.pop(f, None)
        return row, made

    def solution(self, rng: np.random.Generator, shown: dict[int, dict[int, int]], mix: Row) -> Row:
        """A random solution for a mixture of the values."""
        right = {f: sum(mix[v] * n for v, n in row.items()) % PRIME for f, row in shown.items()}
        draws = rng.integers(0, PRIME, len(self.people))
        entry = {p: int(x) for p, x in zip(self.people, draws, strict=True) if p not in self.pivots}
        for pivot in reversed(self.order):
            row, made = self.pivots[pivot]
            total = sum(right[f] * c for f, c in made.items())
            entry[pivot] = (total - sum(entry[p] * c for p, c in row.items() if p != pivot)) % PRIME
        return entry

    def explain(self, wanted: Row) -> dict[int, Fraction] | None:
        """The groups whose sum is the wanted one, or None if there are none."""
        row, made = self.reduce(wanted, {})
        if row:
            return None
        found = {f: rational((PRIME - c) % PRIME) for f, c in made.items()}
        return None if None in found.values() else {f: c for f, c in found.items() if c is not None}


def rational(residue: int) -> Fraction | None:
    """The fraction with small terms that this residue stands for.

    >>> rational(PRIME - 1), rational((PRIME + 1) // 2)
    (Fraction(-1, 1), Fraction(1, 2))
    """
    a, b, s, t = PRIME, residue, 0, 1
    while b > 1 << 30:
        q = a // b
        a, b, s, t = b, a - q * b, t, s - q * t
    return None if t == 0 or abs(t) > 1 << 30 else Fraction(b, t)


def _sums(
    rows: dict[int, set[int]], shown: dict[int, dict[int, int]], groups: dict[int, Fraction]
) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
    """Groups added and subtracted in exact arithmetic: the people and the values that are left."""
    people: dict[int, Fraction] = {}
    values: dict[int, Fraction] = {}
    for f, times in groups.items():
        for p in rows[f]:
            people[p] = people.get(p, Fraction(0)) + times
        for v, n in shown[f].items():
            values[v] = values.get(v, Fraction(0)) + times * n
    return {p: c for p, c in people.items() if c}, {v: c for v, c in values.items() if c}
