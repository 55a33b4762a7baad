"""People whom nothing tells apart: in each of their releases the same cells are open to them.

Exchanging two of them maps worlds to worlds, so what one may have, all of their *class* may have, and a program needs
only to say how many of a class have what.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reveil.base.arrays import I64, Bools, offsets_by_key


@dataclass(frozen=True, eq=False)
class AlikePeople:
    """The classes of some people, who are listed by their options: every member has as many, in the same order."""

    person: I64  # people, by the number that they have elsewhere
    owner: I64  # of each option, by place in `person`
    of_person: I64  # the class of each, numbered from 0
    leader: I64  # of each class: the place of its first member

    @cached_property
    def start(self) -> I64:
        """Options of the n-th person: start[n] to start[n + 1]."""
        return offsets_by_key(self.owner, len(self.person))

    @cached_property
    def size(self) -> I64:
        """How many people each class has."""
        return np.bincount(self.of_person, minlength=len(self.leader)).astype(np.int64)

    @cached_property
    def twin(self) -> I64:
        """Of each option, the one that stands in its place for the first member of the class."""
        inside = np.arange(len(self.owner)) - self.start[self.owner]
        twin: I64 = self.start[self.leader[self.of_person[self.owner]]] + inside
        return twin

    @cached_property
    def leading(self) -> Bools:
        """Options of first members."""
        mine: Bools = self.twin == np.arange(len(self.twin))
        return mine

    def members(self, one: int) -> I64:
        return np.flatnonzero(self.of_person == one)


def classes_of(person: I64, cell: I64, apart: Collection[int] = ()) -> AlikePeople:
    """From options in order: whose they are, and their cells. People who are `apart` are like nobody."""
    people, owner = np.unique(person, return_inverse=True)
    start = offsets_by_key(owner, len(people))
    number: dict[object, int] = {}
    of_person, leader = np.empty(len(people), dtype=np.int64), list[int]()
    alone = set(apart)
    for n, who in enumerate(people.tolist()):
        key = (who,) if who in alone else cell[start[n] : start[n + 1]].tobytes()
        mine = of_person[n] = number.setdefault(key, len(number))
        if mine == len(leader):
            leader.append(n)
    return AlikePeople(people, owner.astype(np.int64), of_person, np.array(leader, dtype=np.int64))


__all__ = ["AlikePeople", "classes_of"]
