"""The joint model: every appearance chooses a row of the release, groups have only so many rows of each value, and a
person's values over time must fit together.

Variables are appearances; their *options* are cells (a value of a group) or, where presence is not sure, the *absent*
cell. A *factor* is a set of groups of one release that share candidates: a single group where membership is known.
A world fills every factor (no cell beyond its rows, a group left with exactly its counterfeits) and follows the chain
of each person. Worlds are counted by rows, so that every published row is equally likely to be somebody's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from reveil.audit.input.knowledge import Adversary, Change
from reveil.audit.input.observed import Observed
from reveil.audit.model.options import having
from reveil.base.arrays import I32, I64, Bools, offsets_by_key
from reveil.base.errors import Fault, InputError
from reveil.base.kernels import kernel
from reveil.base.text import plain_text
from reveil.base.words import some_people

UNLIMITED = 1 << 40
Weight = dict[int, Fraction]


@dataclass(frozen=True, eq=False)
class Model:
    """Everything that inference needs, as flat arrays. `possible` marks options that what is known leaves open."""

    observed: Observed
    change: Change
    moves: tuple[Weight, ...] | None  # transitions: for each value, what it becomes and how likely
    priors: dict[int, Weight]  # person -> value -> weight
    known: frozenset[int]  # people with a value that the adversary knows from elsewhere
    pinned: dict[int, int]  # appearance -> known value
    opt_start: I64
    opt_cell: I32  # by far the longest array of numbers
    possible: Bools
    cell_value: I64  # -1 absent
    cell_group: I64  # -1 absent
    cell_cap: I64
    cell_low: I64
    cell_start: I64  # cells of factor f: cell_start[f] to cell_start[f + 1]
    app_factor: I64
    factor_start: I64  # appearances of factor f: factor_apps[factor_start[f]:factor_start[f + 1]]
    factor_apps: I64

    @property
    def factors(self) -> int:
        return len(self.factor_start) - 1

    @cached_property
    def relation(self) -> Bools:
        """Which value may follow which."""
        size = len(self.observed.values)
        if self.change == "freely":
            return np.ones((size, size), dtype=bool)
        if self.moves is None:
            return np.eye(size, dtype=bool)
        table = np.zeros((size, size), dtype=bool)
        for value, others in enumerate(self.moves):
            table[value, [other for other, weight in others.items() if weight > 0]] = True
        return table

    def by_option(self, of_app: NDArray[Any]) -> NDArray[Any]:
        """What is said of appearances, for each of their options."""
        return np.repeat(of_app, np.diff(self.opt_start))

    def app_of(self, option: int) -> int:
        return int(np.searchsorted(self.opt_start, option, side="right")) - 1

    @cached_property
    def tight(self) -> Bools:
        """Factors with as many rows (and people who are away) as people: whoever gives everybody a row fills it."""
        owner = np.repeat(np.arange(self.factors), np.diff(self.cell_start))
        rows = np.bincount(owner, self.cell_cap, self.factors)
        tight: Bools = rows == np.diff(self.factor_start)
        return tight

    @cached_property
    def counted(self) -> Bools:
        """Factors of which it is known how many of their people have each value: all are there, and every row is."""
        unsure = np.zeros(self.factors, dtype=bool)
        unsure[self.app_factor[~self.observed.app_sure]] = True
        return self.tight & ~unsure

    @cached_property
    def implied(self) -> Bools:
        """Factors that add nothing to another one: where values never change, a group whose people were together before
        and whose values include those that they had then."""
        if self.change != "never" or not self.observed.located:
            return np.zeros(self.factors, dtype=bool)
        o = self.observed
        members = (self.factor_start, self.factor_apps, self.cell_start, self.cell_value, self.cell_cap)
        factors = FactorCells(*members)
        return find_implied(o.person_start, o.app_person, self.app_factor, factors, o.group_fakes, len(o.values))


def build(observed: Observed, adversary: Adversary, *, pinned: dict[int, int] | None = None) -> Model:
    """The model of what this adversary believes. `pinned` are values known by appearance, besides those listed."""
    o = observed
    if not adversary.counterfeits_known and not o.located:  # where everybody's group is known, the rest is counted
        o = replace(o, group_fakes=np.full_like(o.group_fakes, -1))
    texts = [plain_text(value) for value in o.values]
    code = {text: n for n, text in enumerate(texts)}
    factor_of_group, count = _factors(o)
    lists = _lists(o, factor_of_group, count)
    fixed = dict(pinned or {}) | _pins(o, adversary, code)
    moves = None
    if adversary.transitions is not None:
        table = adversary.transitions
        moves = tuple(
            {code[b]: w for b, w in table.get(text, {text: Fraction(1)}).items() if b in code} for text in texts
        )
    priors = {p: {code[v]: w for v, w in row.items() if v in code} for p, row in _weighed(o, adversary)}
    known = frozenset(int(o.app_person[a]) for a in fixed)
    model = Model(o, adversary.change, moves, priors, known, fixed, possible=np.empty(0, dtype=bool), **lists)
    return _with_possible(model)


def rebuilt(model: Model, observed: Observed, pinned: dict[int, int]) -> Model:
    """The same adversary before another view of the same groups; `pinned` by its appearances."""
    lists: dict[str, Any] = dict(_lists(observed, *_factors(observed)))
    return _with_possible(replace(model, observed=observed, pinned=pinned, **lists))


def _factors(o: Observed) -> tuple[I64, int]:
    """The factor of each group."""
    groups = len(o.group_release)
    if o.located:
        return np.arange(groups), groups
    first = np.repeat(o.cand_group[o.cand_start[:-1]], np.diff(o.cand_start))
    links = coo_array((np.ones(len(first)), (first, o.cand_group)), shape=(groups, groups))
    count, label = connected_components(links, directed=False)
    return label.astype(np.int64), int(count)


def _lists(o: Observed, factor_of_group: I64, factors: int) -> dict[str, Any]:
    """Cells by factor (each factor's absent cell last, where somebody may be absent), options and factor members."""
    factor = factor_of_group[o.cell_group]
    low = np.where(o.group_fakes[o.cell_group] == 0, o.cell_rows, 0) if not o.located else np.zeros_like(o.cell_rows)
    app_factor = factor_of_group[o.cand_group[o.cand_start[:-1]]]
    unsure = np.unique(app_factor[~o.app_sure])
    away = _away(o, factor_of_group, app_factor, factors)[unsure]
    none = np.full(len(unsure), -1)
    owner = np.concatenate([factor, unsure])
    group = np.concatenate([o.cell_group, none])
    order = np.lexsort((group < 0, owner))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    start = offsets_by_key(owner[order], factors)
    absent = np.full(factors, -1)
    absent[unsure] = place[len(factor) :]
    opt_start, opt_cell = list_options(
        o.cand_start, o.cand_group, o.app_sure, app_factor, o.cell_start, place[: len(factor)], absent
    )
    by_factor = np.argsort(app_factor, kind="stable")
    return {
        "opt_start": opt_start,
        "opt_cell": opt_cell,
        "cell_value": np.concatenate([o.cell_value, none])[order],
        "cell_group": group[order],
        "cell_cap": np.concatenate([o.cell_rows, away])[order],
        "cell_low": np.concatenate([low, np.zeros(len(unsure), dtype=np.int64)])[order],
        "cell_start": start,
        "app_factor": app_factor,
        "factor_start": offsets_by_key(app_factor[by_factor], factors),
        "factor_apps": by_factor,
    }


def _away(o: Observed, factor_of_group: I64, app_factor: I64, factors: int) -> I64:
    """How many people of each factor are not in the release: all that its rows leave over, where these are theirs."""
    rows = np.bincount(factor_of_group, o.group_rows, factors).astype(np.int64)
    left = np.bincount(app_factor, minlength=factors) - rows
    known = np.ones(factors, dtype=bool)
    known[factor_of_group[o.group_fakes != 0]] = False
    away: I64 = np.where(known & (left >= 0), left, UNLIMITED)
    return away


@kernel
def list_options(
    cand_start: I64, cand_group: I64, sure: Bools, factor: I64, cell_start: I64, place: I64, absent: I64
) -> tuple[I64, I32]:
    """The cells that each appearance may have."""
    apps = len(cand_start) - 1
    start = np.zeros(apps + 1, dtype=np.int64)
    for a in range(apps):
        size = 0 if sure[a] else 1
        for i in range(cand_start[a], cand_start[a + 1]):
            size += cell_start[cand_group[i] + 1] - cell_start[cand_group[i]]
        start[a + 1] = start[a] + size
    cells = np.empty(start[apps], dtype=np.int32)
    for a in range(apps):
        o = start[a]
        for i in range(cand_start[a], cand_start[a + 1]):
            for c in range(cell_start[cand_group[i]], cell_start[cand_group[i] + 1]):
                cells[o] = place[c]
                o += 1
        if not sure[a]:
            cells[o] = absent[factor[a]]
    return start, cells


def _pins(o: Observed, adversary: Adversary, code: dict[str, int]) -> dict[int, int]:
    """Values known by appearance, from the list of the adversary. All that cannot be used at once."""
    listed = [item for item in adversary.compromised if item.value is not None]
    if not listed:
        return {}
    names = {str(name): n for n, name in enumerate(o.persons)}
    faults: list[Fault] = []
    pins: dict[int, int] = {}
    for item in listed:
        if item.person not in names:
            faults.append(Fault("R721", f"person {item.person!r}", "is in no release", "correct the list"))
        elif item.value not in code:
            message = f"value {item.value!r} is shown by no release"
            faults.append(Fault("R721", f"person {item.person!r}", message, "correct the value"))
        elif item.release is not None and item.release not in o.releases:
            message = f"release {item.release!r} is not among {', '.join(o.releases)}"
            faults.append(Fault("R721", f"person {item.person!r}", message, "correct the release"))
        elif o.person_start[names[item.person]] == o.person_start[names[item.person] + 1]:
            message = "fits no group of the released tables"
            faults.append(
                Fault("R721", f"person {item.person!r}", message, "correct the population, or leave them out")
            )
        else:
            p = names[item.person]
            for a in range(o.person_start[p], o.person_start[p + 1]):
                if item.release is None or o.releases[o.app_release[a]] == item.release:
                    pins[a] = code[str(item.value)]
    if faults:
        raise InputError(faults)
    return pins


def _weighed(o: Observed, adversary: Adversary) -> list[tuple[int, Mapping[str, Fraction]]]:
    """People with a prior, and what it says."""
    names = {str(name): n for n, name in enumerate(o.persons)} if adversary.priors else {}
    lost = [person for person in adversary.priors if person not in names]
    if lost:
        message = f"{some_people(len(lost))} in no release: {', '.join(map(repr, lost[:3]))}"
        raise InputError(Fault("R721", "priors", message, "correct the names, or leave them out"))
    return [(names[person], row) for person, row in adversary.priors.items()]


def _with_possible(m: Model) -> Model:
    wanted = np.full(len(m.app_factor), -1, dtype=np.int64)
    wanted[list(m.pinned)] = list(m.pinned.values())
    possible = m.by_option(wanted < 0) | having(m.opt_start, m.opt_cell, m.cell_value, wanted)
    for person, row in m.priors.items():
        first, last = m.observed.person_start[person], m.observed.person_start[person + 1]
        for a in range(first, last if m.change == "freely" else min(last, first + 1)):
            if not m.observed.app_sure[a]:
                break  # a later appearance may be the first
            span = slice(m.opt_start[a], m.opt_start[a + 1])
            likely = np.array([v < 0 or row.get(int(v), 0) > 0 for v in m.cell_value[m.opt_cell[span]]], dtype=bool)
            possible[span] &= likely
    object.__setattr__(m, "possible", possible)
    return m


class FactorCells(NamedTuple):
    """The appearances and cells of each factor, and value and rows of each cell."""

    factor_start: I64
    factor_apps: I64
    cell_start: I64
    cell_value: I64
    cell_cap: I64


@kernel
def find_implied(
    person_start: I64, app_person: I64, app_factor: I64, lists: FactorCells, fakes: I64, values: int
) -> NDArray[np.bool_]:
    """Factor g is implied by f if its people are among f's, every value of f occurs in g at least as often, and all
    ways of giving its rows out are equally many (single rows, or no counterfeits)."""
    factor_start, factor_apps, cell_start, cell_value, cell_cap = lists
    factors = len(factor_start) - 1
    implied = np.zeros(factors, dtype=np.bool_)
    stamp = np.full(len(person_start), -1, dtype=np.int64)
    cap = np.zeros(values, dtype=np.int64)
    for g in range(factors):
        size = factor_start[g + 1] - factor_start[g]
        single = True
        for c in range(cell_start[g], cell_start[g + 1]):
            cap[cell_value[c]] = cell_cap[c]
            single = single and cell_cap[c] == 1
        if size == 0:
            implied[g] = True
        elif single or fakes[g] == 0:
            for i in range(factor_start[g], factor_start[g + 1]):
                stamp[app_person[factor_apps[i]]] = g
            first = app_person[factor_apps[factor_start[g]]]
            for a in range(person_start[first], person_start[first + 1]):
                f = app_factor[a]
                other = factor_start[f + 1] - factor_start[f]
                if f == g or other < size or (other == size and f > g):
                    continue
                shared = 0
                for i in range(factor_start[f], factor_start[f + 1]):
                    shared += stamp[app_person[factor_apps[i]]] == g
                enough = shared == size
                for c in range(cell_start[f], cell_start[f + 1]):
                    enough = enough and cell_cap[c] <= cap[cell_value[c]]
                if enough:
                    implied[g] = True
                    break
        for c in range(cell_start[g], cell_start[g + 1]):
            cap[cell_value[c]] = 0
    return implied
