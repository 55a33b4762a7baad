"""Who must have the same value, whatever it is: equalities in the linear span of the groups.

Where values never change and a group has no counterfeits, the number of its people with value v is known: one linear
equation per group, the same left side for every v. If adding and subtracting groups leaves exactly "this person minus
that one", and the values of these groups cancel as well, the two have the same value; if two values are left over, one
has the first and the other the second. Candidates are people whose entries agree in random solutions modulo a prime;
they are confirmed by all solutions, in exact arithmetic.

People who are in the same groups all the time are one unknown, their sum: nothing ties one of them to anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from reveil.audit.infer.certain import Equality, State
from reveil.audit.infer.sparse import PRIME, Echelon, combine, eliminate, failing, fill_in, rational
from reveil.audit.model.options import sums_of
from reveil.base.arrays import I64, Bools, offsets_by_key

SPEED = 10_000_000  # multiplications in a second, about
UNKNOWN = 1 << 62
FEW = 60  # groups that an explanation may take
Wanted = tuple[int, int | None]  # unknowns that may be equal, or one that may be determined
Confirmed = tuple[list[Equality], list[int]]


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

    equalities: list[Equality]
    left: I64


def ready() -> None:
    """Compile the elimination, so that this does not count as time of looking for equalities."""
    start, column, blank = np.array([0, 2]), np.array([0, 1]), np.zeros(2, dtype=np.int64)
    form = Echelon(*eliminate(start, column, np.array([1]), 2, 1)[0])
    fill_in(form, blank)
    failing(start, column, blank)
    step_of = np.full(2, -1)
    step_of[form.column] = 0
    combine(form, step_of, 0, 1, np.zeros(2, dtype=np.int64), np.zeros(1, dtype=np.int64))


def equalities(state: State, label: I64, factors: Bools, seconds: float, seed: int = 0) -> Closure:
    """Equal or determined people of the components (`label` says which) of these factors."""
    rng = np.random.default_rng(seed)
    system = system_of(state, label, factors & _telling(state, label, rng), rng)
    if not len(system.people):
        return Closure([], np.zeros(0, dtype=np.int64))
    limit = int(max(0.0, seconds) * SPEED)
    mix = rng.choice(PRIME - 1, len(state.model.observed.values), replace=False) + 1
    form, rows, work = _echelon(system, mix, limit)
    unfinished = np.unique(label[system.factors[rows]])
    solution, wanted = _candidates(system, form, ~np.isin(system.part, unfinished), rng)
    confirmed, late = _confirmed(system, form, wanted, mix, solution, limit - work)
    return Closure(confirmed, np.union1d(unfinished, system.part[late]))


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
    tells: Bools = telling[label] & (label >= 0)
    return tells


def _domains(state: State, people: I64, rng: np.random.Generator) -> I64:
    """A number for the set of values that are open to each of these people (equal sets, equal numbers)."""
    m, o = state.model, state.model.observed
    salt = rng.integers(0, 1 << 54, len(o.values))  # a sum over a few hundred values stays below 2^63
    domains: I64 = sums_of(o.person_start[people], m.opt_start, m.opt_cell, m.cell_value, state.alive, salt)
    return domains


def system_of(state: State, label: I64, factors: Bools, rng: np.random.Generator) -> System:
    """The equations of these factors."""
    m, o = state.model, state.model.observed
    used = np.nonzero(factors & ~m.implied & m.counted)[0]
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
        offsets_by_key(row, len(used)), column,
    )  # fmt: skip


def _echelon(system: System, mix: I64, limit: int) -> tuple[Echelon, I64, int]:
    """The system solved, for one random mixture of the values on the right; rows left; and the work."""
    m = system.state.model
    shown = system.state.free_rows * mix[m.cell_value] % PRIME
    right = np.add.reduceat(np.append(shown, 0), m.cell_start[:-1])[system.factors] % PRIME
    steps, rows, work = eliminate(system.start, system.column, right, len(system.people), limit)
    return Echelon(*steps), rows, work


def _candidates(system: System, form: Echelon, done: Bools, rng: np.random.Generator) -> tuple[I64, list[Wanted]]:
    """A solution, and unknowns that are determined, or tied to another one of which something else is known."""
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
    return one, wanted


def _confirmed(system: System, form: Echelon, wanted: Sequence[Wanted], mix: I64, one: I64, limit: int) -> Confirmed:
    """The candidates that exact arithmetic confirms; and unknowns for which it was too much work, or fractions of too
    many digits.

    As many solutions of the system without right side as there are free unknowns, independent and exact, are all of
    them, for modulo a prime the rank is never higher. Who agrees in each of them is tied.
    """
    step_of = np.full(len(system.people), -1)
    step_of[form.column] = np.arange(len(form.column))
    free = np.nonzero(step_of < 0)[0]
    free = free[np.argsort(system.part[free], kind="stable")]
    place = np.arange(len(free)) - np.searchsorted(system.part[free], system.part[free])  # within the component
    plain = form._replace(right=np.zeros_like(form.right))
    first, second = (np.array([-1 if pair[n] is None else pair[n] for pair in wanted], dtype=np.int64) for n in (0, 1))
    same, sound = np.ones(len(wanted), dtype=bool), np.ones(int(system.part.max()) + 1, dtype=bool)
    rounds = min(int(place.max(initial=-1)) + 1, max(0, limit) // (len(form.rest) + len(system.column) + 1))
    sound[system.part[free[place >= rounds]]] = False
    row_part = np.zeros(len(system.factors), dtype=np.int64)
    row_part[np.repeat(np.arange(len(system.factors)), np.diff(system.start))] = system.part[system.column]
    entry = np.zeros(len(system.people) + 1, dtype=np.int64)  # the last one: nobody
    for number in range(rounds):
        entry[:] = 0
        entry[free[place == number]] = 1
        fill_in(plain, entry)
        sound[row_part[failing(system.start, system.column, entry)]] = False
        same &= entry[first] == entry[second]
    tied = same & sound[system.part[first]]
    chosen = [pair for pair, good in zip(wanted, tied.tolist(), strict=True) if good]
    late = [one for (one, _), good in zip(wanted, sound[system.part[first]].tolist(), strict=True) if not good]
    return _named(system, form, step_of, chosen, mix, one), late


def _named(
    system: System, form: Echelon, step_of: I64, tied: Sequence[Wanted], mix: I64, solution: I64
) -> list[Equality]:
    """What ties say of values: what is left of the mixture tells which are left, where not all cancel."""
    amount, often = np.zeros(len(system.people), dtype=np.int64), np.zeros(len(form.row), dtype=np.int64)
    equalities: list[Equality] = []
    for one, other in tied:
        rows, residues, _ = combine(form, step_of, one, -1 if other is None else other, amount, often)
        groups = _groups(system, rows, residues, one, other)
        people = [int(system.people[n]) for n in (one, other) if n is not None]
        left = int(solution[one] - (0 if other is None else solution[other])) % PRIME
        open_to = [system.state.values_of(int(system.state.model.observed.person_start[p])) for p in people]
        if other is None:
            equalities += [Equality(people[0], None, groups, v) for v in open_to[0] if mix[v] == left]
        elif left == 0:  # no two values have the same share of the mixture
            equalities.append(Equality(people[0], people[1], groups))
        else:
            fits = [(v, w) for v in open_to[0] for w in open_to[1] if (mix[v] - mix[w]) % PRIME == left]
            equalities += [Equality(people[0], people[1], groups, *fits[0])] if len(fits) == 1 else []
    return equalities


def _groups(system: System, rows: I64, residues: I64, one: int, other: int | None) -> tuple[tuple[int, Fraction], ...]:
    """The groups to add and subtract, if they are few and leave just these people: for explanations."""
    if len(rows) > FEW:
        return ()
    fractions = [rational(residue) for residue in residues.tolist()]
    if not all(under for _, under in fractions):
        return ()
    times = {int(system.factors[row]): Fraction(*often) for row, often in zip(rows.tolist(), fractions, strict=True)}
    left = {int(system.people[one]): 1} | ({} if other is None else {int(system.people[other]): -1})
    return tuple(sorted(times.items())) if _left(system.state, times) == left else ()


def _left(state: State, times: dict[int, Fraction]) -> dict[int, Fraction]:
    """People who are left when factors are added up so often, each with how often they are."""
    m = state.model
    people: dict[int, Fraction] = {}
    for f, often in times.items():
        apps = m.factor_apps[m.factor_start[f] : m.factor_start[f + 1]]
        for p in m.observed.app_person[apps[state.open_options[apps] > 1]].tolist():
            people[p] = people.get(p, Fraction(0)) + often
    return {p: c for p, c in people.items() if c}
