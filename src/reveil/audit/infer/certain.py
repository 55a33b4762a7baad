"""What is certain: values that a person cannot have had, with the reason for each.

Three stages, each of which only ever removes what no world contains: filters to a fixpoint, equalities in the linear
span of the groups (values that never change), and a search for worlds in components that are small enough. What no
stage settles is *undecided*, and said to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from reveil.audit.infer.filters import EQUAL, KNOWN, OPEN, Marks, Shape, propagate
from reveil.audit.model.model import Model
from reveil.audit.model.options import count_of
from reveil.base.arrays import I64, Bools
from reveil.base.errors import Fault, InputError


@dataclass(frozen=True)
class Equality:
    """Two people tied together, and the factors to add (+) and subtract (-) to see it.

    Without values they have the same one, whatever it is; with values, `one` has the first and `other` the second.
    Without an `other`, what is left is this person alone, who has the value that is left.
    """

    one: int
    other: int | None
    groups: tuple[tuple[int, Fraction], ...]
    value: int | None = None
    other_value: int | None = None


@dataclass(eq=False)
class State:
    """Options still open, and why and when the others went (`when` orders the reasons)."""

    model: Model
    alive: Bools
    why: NDArray[np.uint8]
    where: NDArray[np.int32]
    when: NDArray[np.int32]
    match: I64
    clock: int = 1
    equal: list[Equality] = field(default_factory=list)  # by number: the reason of what EQUAL removed
    _open: tuple[int, I64] | None = None
    _free: tuple[int, I64] | None = None

    @classmethod
    def start(cls, model: Model) -> State:
        options = len(model.opt_cell)
        return cls(
            model,
            model.possible.copy(),
            np.where(model.possible, np.uint8(OPEN), np.uint8(KNOWN)),
            np.full(options, -1, dtype=np.int32),
            np.zeros(options, dtype=np.int32),
            np.full(len(model.app_factor), -1, dtype=np.int64),
        )

    def narrow(self, factors: Bools | None = None, people: Bools | None = None, *, chains_only: bool = False) -> None:
        """Filter to a fixpoint, starting from these factors and people (default: all)."""
        m, o = self.model, self.model.observed
        skip = np.ones(m.factors, dtype=bool) if chains_only else m.implied
        shape = Shape(
            m.relation, m.change == "never", o.person_start, m.opt_start, m.opt_cell, m.cell_value, m.cell_cap,
            m.cell_low, m.cell_start, o.app_person, m.app_factor, m.factor_start, m.factor_apps, skip,
        )  # fmt: skip
        marks = Marks(
            self.alive, self.why, self.where, self.when, self.match,
            np.ones(m.factors, dtype=bool) if factors is None else factors,
            np.ones(o.people, dtype=bool) if people is None else people,
        )  # fmt: skip
        clock = propagate(shape, marks, self.clock)
        if clock < 0:
            raise no_world(m, -1 - clock)
        self.clock = clock + 1

    def equate(self, equalities: Sequence[Equality]) -> Bools:
        """What one of two equal people cannot have, neither can. Says of whom anything went."""
        m, o = self.model, self.model.observed
        people = np.zeros(o.people, dtype=bool)
        for number, e in enumerate(equalities, len(self.equal)):
            for p, left in self._left_to(e):
                for option in range(m.opt_start[o.person_start[p]], m.opt_start[o.person_start[p] + 1]):
                    if self.alive[option] and int(m.cell_value[m.opt_cell[option]]) not in left:
                        self.remove(option, EQUAL, number)
                        people[p] = True
        self.equal += equalities
        if people.any():
            self.narrow(np.zeros(m.factors, dtype=bool), people.copy())
        return people

    def _left_to(self, e: Equality) -> list[tuple[int, set[int]]]:
        """Values that an equality leaves to each of its people."""
        if e.value is not None:
            second = [] if e.other is None or e.other_value is None else [(e.other, {e.other_value})]
            return [(e.one, {e.value}), *second]
        start = self.model.observed.person_start
        pair = [p for p in (e.one, e.other) if p is not None]
        common = set.intersection(*(self.values_of(int(start[p])) for p in pair))
        return [(p, common) for p in pair]

    def remove(self, option: int, why: int, where: int) -> None:
        self.alive[option] = False
        self.why[option], self.where[option], self.when[option] = why, where, self.clock
        self.clock += 1

    def values_of(self, app: int) -> set[int]:
        """Values that the appearance may still have (-1: absent)."""
        m = self.model
        span = slice(m.opt_start[app], m.opt_start[app + 1])
        return {int(v) for v in m.cell_value[m.opt_cell[span][self.alive[span]]]}

    def is_open(self, app: int) -> bool:
        """Whether the appearance has more than one option left."""
        start = self.model.opt_start
        return int(np.count_nonzero(self.alive[start[app] : start[app + 1]])) > 1

    @property
    def open_options(self) -> I64:
        """Open options of each appearance; kept until something goes."""
        if self._open is None or self._open[0] != self.clock:
            self._open = self.clock, count_of(self.model.opt_start, self.alive)
        return self._open[1]

    @property
    def free_rows(self) -> I64:
        """Rows of each cell that are not taken by people with nothing left to choose; kept until something goes."""
        if self._free is None or self._free[0] != self.clock:
            m = self.model
            fixed = self.alive & m.by_option(self.open_options == 1)
            self._free = self.clock, m.cell_cap - np.bincount(m.opt_cell[fixed], minlength=len(m.cell_cap))
        return self._free[1]

    def fixed_people(self) -> Bools:
        """People with nothing left to choose."""
        o = self.model.observed
        many = np.zeros(o.people, dtype=bool)
        many[o.app_person[self.open_options > 1]] = True
        return ~many

    def components(self) -> I64:
        """The component of each factor: factors that share a person whose choice is still open. -1: nothing open."""
        m, o = self.model, self.model.observed
        loose = (self.open_options > 1) & ~m.implied[m.app_factor]
        if m.change == "freely":
            label = np.arange(m.factors)
        else:
            held = np.nonzero(loose if m.change == "never" else self._linking(loose))[0]
            first = np.full(o.people, -1)
            first[o.app_person[held[::-1]]] = m.app_factor[held[::-1]]
            pairs = (first[o.app_person[held]], m.app_factor[held])
            links = coo_array((np.ones(len(held)), pairs), shape=(m.factors, m.factors))
            label = connected_components(links, directed=False)[1].astype(np.int64)
        busy = np.zeros(m.factors, dtype=bool)
        busy[m.app_factor[loose]] = True
        label[~busy] = -1
        _, packed = np.unique(label[busy], return_inverse=True)
        label[busy] = packed
        return label

    def _linking(self, loose: Bools) -> Bools:
        """Transitions: all appearances of somebody with an open choice stay in the chain."""
        o = self.model.observed
        people = np.zeros(o.people, dtype=bool)
        people[o.app_person[loose]] = True
        return people[o.app_person]


def no_world(m: Model, place: int) -> InputError:
    """Releases and knowledge contradict each other."""
    if place < m.factors:
        groups = sorted({int(g) for g in m.cell_group[m.cell_start[place] : m.cell_start[place + 1]] if g >= 0})
        where = m.observed.group_name(groups[0])
        message = "its rows cannot be given out to the people who are in it: no world fits what is known"
    else:
        where = f"person {m.observed.persons[place - m.factors]!r}"
        message = "no value fits all of their releases: no world fits what is known"
    remedy = (
        "check how values change (--change freely, if they do), who is in which group, and what is said to be known"
    )
    return InputError(Fault("R722", where, message, remedy))
