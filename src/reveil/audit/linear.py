"""Who must have the same value, whatever it is: equalities in the linear span of the groups.

Where values never change and a group has no counterfeits, the number of its people with value v is known: one linear
equation per group, the same left side for every v. If adding and subtracting groups leaves exactly "this person minus
that one", and the values of these groups cancel as well, the two have the same value; if two values are left over, one
has the first and the other the second. Candidates are people whose entries agree in random solutions modulo a prime;
each is confirmed in exact arithmetic with the groups it takes.

People who are in the same groups all the time are one unknown, their sum: nothing ties one of them to anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from reveil.audit.certain import Equality, State
from reveil.audit.observed import I64, Bools
from reveil.audit.sparse import PRIME, Echelon, combine, eliminate, fill_in

SPEED = 10_000_000  # multiplications in a second, about
UNKNOWN = 1 << 62
Wanted = tuple[int, int | None]  # unknowns that may be equal, or one that may be determined


@dataclass(frozen=True, eq=False)
class System:
    """One equation per factor without counterfeits: its people with an open choice, and their values."""

    state: State
    factors: I64  # of each row
    people: I64  # of each unknown; the first of several who are in the same groups
    alone: Bools  # unknowns that stand for one person
    part: I64  # the component of each unknown
    domain: I64  # of each unknown: a number for the set of values that are open
    start: I64  # unknowns of row r: column[start[r]:start[r + 1]]
    column: I64


@dataclass(frozen=True, eq=False)
class Closure:
    """Equalities that say something new, and components in which it was too much work to look for them."""

    found: list[Equality]
    left: I64


def equalities(state: State, label: I64, factors: Bools, seconds: float, seed: int = 0) -> Closure:
    """Equal or determined people of the components (`label` says which) of these factors."""
    rng = np.random.default_rng(seed)
    system = system_of(state, label, factors & _telling(state, label, rng), rng)
    if not len(system.people):
        return Closure([], np.zeros(0, dtype=np.int64))
    limit = int(max(0.0, seconds) * SPEED)
    form, rows, work = _echelon(system, rng, limit)
    unfinished = np.unique(label[system.factors[rows]])
    wanted = _candidates(system, form, ~np.isin(system.part, unfinished), rng)
    found, late = _confirmed(system, form, wanted, limit - work)
    return Closure(found, np.union1d(unfinished, system.part[late]))


def _telling(state: State, label: I64, rng: np.random.Generator) -> Bools:
    """Factors of components in which equalities can tell anything: where everybody may have the same values and every
    group shows each of these equally often, giving everybody an equal share of each value solves every equation."""
    m, o = state.model, state.model.observed
    free, owner = state.free_rows, np.repeat(np.arange(m.factors), np.diff(m.cell_start))
    shown = free > 0
    high, low = np.zeros(m.factors, dtype=np.int64), np.full(m.factors, UNKNOWN)
    np.maximum.at(high, owner[shown], free[shown])
    np.minimum.at(low, owner[shown], free[shown])
    apps = np.nonzero(state.open_options > 1)[0]
    domain = _domains(state, o.app_person[apps], rng)
    most, least = np.zeros(m.factors + 1, dtype=np.int64), np.full(m.factors + 1, UNKNOWN)
    np.maximum.at(most, label[m.app_factor[apps]], domain)
    np.minimum.at(least, label[m.app_factor[apps]], domain)
    telling = most != least  # by component
    telling[label[(high != low) & (label >= 0)]] = True
    found: Bools = telling[label] & (label >= 0)
    return found


def _domains(state: State, people: I64, rng: np.random.Generator) -> I64:
    """A number for the set of values that are open to each of these people (equal sets, equal numbers)."""
    m, o = state.model, state.model.observed
    salt = rng.integers(0, 1 << 54, len(o.values))  # a sum over a few hundred values stays below 2^63
    share = np.where(state.alive, salt[m.cell_value[m.opt_cell]], 0)
    sums = np.add.reduceat(share, m.opt_start[:-1])
    found: I64 = sums[o.person_start[people]]
    return found


def system_of(state: State, label: I64, factors: Bools, rng: np.random.Generator) -> System:
    """The equations of these factors."""
    m, o = state.model, state.model.observed
    used = np.nonzero(factors & ~m.implied & (o.group_fakes == 0))[0]
    row_of = np.full(m.factors, -1)
    row_of[used] = np.arange(len(used))
    apps = np.nonzero((state.open_options > 1) & (row_of[m.app_factor] >= 0))[0]
    row, everybody = row_of[m.app_factor[apps]], o.app_person[apps]
    listed, number = np.unique(everybody, return_inverse=True)
    keys = np.zeros((len(listed), 2), dtype=np.uint64)
    for salt in range(2):
        np.add.at(keys[:, salt], number, rng.integers(0, 1 << 63, len(used), dtype=np.uint64)[row])
    _, first, count = np.unique(keys, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first)
    first, count = first[order], count[order]
    column_of = np.full(len(listed), -1)
    column_of[first] = np.arange(len(first))
    kept = column_of[number] >= 0
    row, column = row[kept], column_of[number[kept]]
    order = np.lexsort((column, row))
    row, column = row[order], column[order]
    part = np.zeros(len(first), dtype=np.int64)
    part[column] = label[used[row]]
    return System(
        state, used, listed[first], count == 1, part, _domains(state, listed[first], rng),
        np.searchsorted(row, np.arange(len(used) + 1)).astype(np.int64), column,
    )  # fmt: skip


def _echelon(system: System, rng: np.random.Generator, limit: int) -> tuple[Echelon, I64, int]:
    """The system solved, for one random mixture of the values on the right; rows left; and the work."""
    m = system.state.model
    mix = rng.integers(0, PRIME, len(m.observed.values) + 1)
    shown = system.state.free_rows * mix[m.cell_value] % PRIME
    right = np.add.reduceat(np.append(shown, 0), m.cell_start[:-1])[system.factors] % PRIME
    steps, rows, work = eliminate(system.start, system.column, right, len(system.people), limit)
    return Echelon(*steps), rows, work


def _candidates(system: System, form: Echelon, done: Bools, rng: np.random.Generator) -> list[Wanted]:
    """Unknowns that are determined, or equal to another one of which something else is known."""
    free = np.ones(len(system.people), dtype=bool)
    free[form.column] = False
    entries = np.zeros((3, len(system.people)), dtype=np.int64)
    for entry in entries:
        entry[free] = rng.integers(0, PRIME, int(free.sum()))
        fill_in(form, entry)
    one = entries[0]
    steps = (entries[1:] - one) % PRIME  # solutions of the system without its right side
    at = np.nonzero(done & system.alone)[0]
    set_in = (steps[:, at] == 0).all(axis=0)
    wanted: list[Wanted] = [(int(n), None) for n in at[set_in]]
    at = at[~set_in]
    order = np.lexsort((system.domain[at], steps[1, at], steps[0, at], system.part[at]))
    at = at[order]
    same = np.ones(len(at), dtype=bool)
    for key in (steps[0, at], steps[1, at], system.part[at]):
        same &= np.diff(key, prepend=-1) == 0
    anchor = -1
    for n, alike in zip(at.tolist(), same.tolist(), strict=True):
        if not alike:
            anchor = n
        elif system.domain[n] != system.domain[anchor] or one[n] != one[anchor]:
            wanted.append((anchor, n))
    return wanted


def _confirmed(system: System, form: Echelon, wanted: Sequence[Wanted], limit: int) -> tuple[list[Equality], list[int]]:
    """The candidates that exact arithmetic confirms, with their groups; and unknowns for which it was too much work."""
    step_of = np.full(len(system.people), -1)
    step_of[form.column] = np.arange(len(form.column))
    amount, often = np.zeros(len(system.people), dtype=np.int64), np.zeros(len(form.row), dtype=np.int64)
    found: list[Equality] = []
    for number, (one, other) in enumerate(wanted):
        if limit < 0:
            return found, [n for n, _ in wanted[number:]]
        rows, residues, work = combine(form, step_of, one, -1 if other is None else other, amount, often)
        limit -= work + len(rows)
        equality = _exact(system, one, other, dict(zip(rows.tolist(), map(rational, residues.tolist()), strict=True)))
        if equality is not None:
            found.append(equality)
    return found, []


def _exact(system: System, one: int, other: int | None, times: dict[int, Fraction | None]) -> Equality | None:
    """What these rows say when they are added up as often as it says, if that is what was wanted."""
    exact = {int(system.factors[row]): often for row, often in times.items() if often is not None}
    if len(exact) < len(times):
        return None
    people, values = _left(system.state, exact)
    by_count = {int(count): value for value, count in values.items()}
    counts, groups = sorted(values.values()), tuple(sorted(exact.items()))
    first = int(system.people[one])
    if other is None:
        return Equality(first, None, groups, by_count[1]) if people == {first: 1} and counts == [1] else None
    second = int(system.people[other])
    if people != {first: 1, second: -1}:
        return None
    if not counts:
        return Equality(first, second, groups)
    return Equality(first, second, groups, by_count[1], by_count[-1]) if counts == [-1, 1] else None


def _left(state: State, times: dict[int, Fraction]) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
    """People and values that are left when factors are added up so often, each with how often it is."""
    m = state.model
    people: dict[int, Fraction] = {}
    values: dict[int, Fraction] = {}
    for f, often in times.items():
        apps = m.factor_apps[m.factor_start[f] : m.factor_start[f + 1]]
        for p in m.observed.app_person[apps[state.open_options[apps] > 1]].tolist():
            people[p] = people.get(p, Fraction(0)) + often
        for c in range(m.cell_start[f], m.cell_start[f + 1]):
            v = int(m.cell_value[c])
            values[v] = values.get(v, Fraction(0)) + often * int(state.free_rows[c])
    return {p: c for p, c in people.items() if c}, {v: c for v, c in values.items() if c}


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
