"""Who must have the same value, whatever it is: equalities in the linear span of the groups.

Where values never change and a group has no counterfeits, the number of its people with value v is known: one linear
equation per group, the same left side for every v. If adding and subtracting groups leaves exactly "this person minus
that one", and the values of these groups cancel as well, the two have the same value. Candidates are people whose
entries agree in random solutions modulo a prime; each is confirmed in exact arithmetic with the groups it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reveil.audit.certain import Equality, State

PRIME = (1 << 31) - 1
WORK = 3_000_000_000  # multiplications of one elimination at most
I64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class System:
    """One equation per factor without counterfeits: its people with an open choice, and their values."""

    factors: tuple[int, ...]
    people: tuple[int, ...]
    matrix: I64  # factors x people, 0 or 1
    shown: I64  # factors x values: how many of these people have each value

    @property
    def work(self) -> int:
        rows, columns = self.matrix.shape
        return int(rows * columns * min(rows, columns))


def system_of(state: State, factors: Sequence[int]) -> System:
    """The equations of one component."""
    m, o = state.model, state.model.observed
    many = state.open_options > 1
    used = [f for f in factors if not m.implied[f] and o.group_fakes[f] == 0]
    shown = np.zeros((len(used), len(o.values)), dtype=np.int64)
    entries: list[tuple[int, int]] = []
    for row, f in enumerate(used):
        cells = slice(m.cell_start[f], m.cell_start[f + 1])
        np.add.at(shown[row], m.cell_value[cells], m.cell_cap[cells])
        for a in m.factor_apps[m.factor_start[f] : m.factor_start[f + 1]]:
            if many[a]:
                entries.append((row, int(o.app_person[a])))
            else:
                shown[row, next(iter(state.values_of(int(a))))] -= 1
    people = sorted({p for _, p in entries})
    place = {p: n for n, p in enumerate(people)}
    matrix = np.zeros((len(used), len(people)), dtype=np.int64)
    for row, p in entries:
        matrix[row, place[p]] = 1
    return System(tuple(used), tuple(people), matrix, shown)


def equalities(state: State, factors: Sequence[int], seed: int = 0) -> list[Equality]:
    """Equal or determined people of one component about whom this says something new; none if it is too large."""
    system = system_of(state, factors)
    if not system.people or system.work > WORK:
        return []
    one, two = solutions(system, np.random.default_rng(seed))
    alike: dict[tuple[int, int], list[int]] = {}
    wanted: list[tuple[int, int | None]] = []
    for column, entry in enumerate(zip(one.tolist(), two.tolist(), strict=True)):
        if entry[0] == entry[1]:
            wanted.append((column, None))
        else:
            alike.setdefault(entry, []).append(column)
    for members in alike.values():
        wanted += [(members[0], other) for other in members[1:] if _differ(state, system, members[0], other)]
    return _confirmed(system, wanted)


def _differ(state: State, system: System, one: int, other: int) -> bool:
    start = state.model.observed.person_start
    first, second = (state.values_of(int(start[system.people[n]])) for n in (one, other))
    return first != second


def solutions(system: System, rng: np.random.Generator) -> tuple[I64, I64]:
    """Two random solutions modulo the prime, of the same random mixture of the values."""
    mix = rng.integers(0, PRIME, size=(system.shown.shape[1],))
    right = np.zeros(len(system.factors), dtype=np.int64)
    for v, times in enumerate(mix.tolist()):
        right = (right + system.shown[:, v] % PRIME * times) % PRIME
    table = np.column_stack([system.matrix, right])
    pivots = eliminate(table, len(system.people))
    free = np.ones(len(system.people), dtype=bool)
    rows = np.nonzero(pivots >= 0)[0]
    free[pivots[rows]] = False
    found = []
    for _ in range(2):
        entry = rng.integers(0, PRIME, len(system.people))
        entry[~free] = 0
        for row in rows:
            known = int((table[row, :-1] * entry % PRIME)[free].sum()) % PRIME
            entry[pivots[row]] = (int(table[row, -1]) - known) % PRIME
        found.append(entry)
    return found[0], found[1]


@njit(cache=True, nogil=True)
def eliminate(table: I64, columns: int) -> I64:
    """Reduced row echelon form modulo the prime, in place; the pivot column of each row, or -1."""
    rows, width = table.shape
    pivots = np.full(rows, -1, dtype=np.int64)
    rank = 0
    for c in range(columns):
        best = -1
        for r in range(rank, rows):
            if table[r, c] != 0:
                best = r
                break
        if best < 0:
            continue
        if best != rank:
            for j in range(width):
                table[rank, j], table[best, j] = table[best, j], table[rank, j]
        scale = inverse(table[rank, c])
        for j in range(c, width):
            table[rank, j] = table[rank, j] * scale % PRIME
        for r in range(rows):
            times = table[r, c]
            if r != rank and times != 0:
                for j in range(c, width):
                    table[r, j] = (table[r, j] + (PRIME - times) * table[rank, j]) % PRIME
        pivots[rank] = c
        rank += 1
        if rank == rows:
            break
    return pivots


@njit(cache=True, nogil=True)
def inverse(value: int) -> int:
    """By Fermat's little theorem."""
    result, base, power = 1, value % PRIME, PRIME - 2
    while power:
        if power & 1:
            result = result * base % PRIME
        base = base * base % PRIME
        power >>= 1
    return result


def _confirmed(system: System, wanted: list[tuple[int, int | None]]) -> list[Equality]:
    """The candidates that exact arithmetic confirms, with their groups."""
    if not wanted:
        return []
    right = np.zeros((len(system.people), len(wanted)), dtype=np.int64)
    for n, (one, other) in enumerate(wanted):
        right[one, n] = 1
        if other is not None:
            right[other, n] = PRIME - 1
    table = np.column_stack([system.matrix.T, right])
    pivots = eliminate(table, len(system.factors))
    rows = np.nonzero(pivots >= 0)[0]
    found = []
    for n, (one, other) in enumerate(wanted):
        column = table[:, len(system.factors) + n]
        times = {int(pivots[row]): rational(int(column[row])) for row in rows if column[row]}
        equality = _exact(system, one, other, times)
        if equality is not None:
            found.append(equality)
    return found


def _exact(system: System, one: int, other: int | None, times: dict[int, Fraction | None]) -> Equality | None:
    people: dict[int, Fraction] = {}
    values: dict[int, Fraction] = {}
    for row, factor in times.items():
        if factor is None:
            return None
        for p in np.nonzero(system.matrix[row])[0].tolist():
            people[p] = people.get(p, Fraction(0)) + factor
        for v in np.nonzero(system.shown[row])[0].tolist():
            values[v] = values.get(v, Fraction(0)) + factor * int(system.shown[row, v])
    left = {p: c for p, c in people.items() if c}
    rest = {v: c for v, c in values.items() if c}
    groups = tuple(sorted((system.factors[row], factor) for row, factor in times.items() if factor is not None))
    if other is None:
        alone = left == {one: Fraction(1)} and list(rest.values()) == [Fraction(1)]
        return Equality(system.people[one], None, groups, next(iter(rest))) if alone else None
    equal = left == {one: Fraction(1), other: Fraction(-1)} and not rest
    return Equality(system.people[one], system.people[other], groups) if equal else None


def rational(residue: int) -> Fraction | None:
    """The fraction with small terms that this residue stands for.

    >>> rational(PRIME - 1), rational((PRIME + 1) // 2)
    (Fraction(-1, 1), Fraction(1, 2))
    """
    a, b, s, t = PRIME, residue, 0, 1
    while b > 1 << 15:
        q = a // b
        a, b, s, t = b, a - q * b, t, s - q * t
    return None if t == 0 or abs(t) > 1 << 15 else Fraction(b, t)
