"""People who were in a table and are not shown by its release: the adversary knows everybody who was put in.

Seed 003's adversary knows who was in the *input* (its E_i), the withheld included. Newcomers who are left out while
others who came with them are shown, or though there were enough of them for a group, were chosen by their value: those
are left out whose value is too frequent. So whoever knows how people are chosen names the value that is shown most
often in the groups that begin with this release; among several that are shown as often, the one that is too frequent
in the table, because how frequent values are is no secret. Where newcomers were simply too few, or people who are
known lost their place, that follows from who was there, and tells nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reveil.audit.input.observed import Observed
from reveil.base.arrays import I64, Bools
from reveil.guarantees.k_anonymity import KAnonymity
from reveil.guarantees.lasting import ManyValues
from reveil.policy.guarantee import Guarantee
from reveil.policy.method import may_wait


@dataclass(frozen=True, eq=False)
class LeftOut:
    """One entry for each person and release; `held`, their true value, is for scoring guesses alone."""

    person: I64
    release: I64
    held: I64  # code, -1 for a value that no release shows

    def __len__(self) -> int:
        return len(self.person)


@dataclass(frozen=True, eq=False)
class Telling:
    """What being left out tells: of each entry, whether its person was chosen by value, and the value that is named.

    `later` are people who were so chosen and whom a later release shows all the same.
    """

    left: LeftOut
    by_value: Bools
    named: I64  # code, -1 for none
    later: I64

    @property
    def right(self) -> Bools:
        """Of each guess about somebody chosen by value, whether it is the truth."""
        return np.asarray((self.left.held == self.named) & (self.named >= 0))[self.by_value]

    def to_dict(self) -> dict[str, Any]:
        """Counts alone."""
        return {
            "people": len(np.unique(self.left.person)),
            "by_value": len(np.unique(self.left.person[self.by_value])),
            "guesses": len(self.right),
            "guessed_right": int(self.right.sum()),
            "shown_later": len(self.later),
        }


def what_it_tells(o: Observed, left: LeftOut, guarantee: Guarantee, protects: Callable[[object], bool]) -> Telling:
    """Of everybody who was left out; where a promise is kept without looking at values, nobody was chosen by value."""
    none = np.zeros(len(left), dtype=bool)
    many = guarantee.find(ManyValues)
    if many is None or not len(left) or not len(o.values):
        return Telling(left, none, np.full(len(left), -1), np.empty(0, dtype=np.int64))
    k = guarantee.find(KAnonymity)
    enough = max(many.m, 1 if k is None else k.k)
    mild = np.array([not protects(value) for value in o.values], dtype=bool)
    by_value, named = none.copy(), np.full(len(left), -1)
    chosen, crowded, published = set[int](), set[int](), set[int]()
    later: set[int] = set()
    for release in range(len(o.releases)):
        here = set(o.app_person[o.app_release == release].tolist())
        entries = np.flatnonzero(left.release == release)
        away = {int(left.person[entry]) for entry in entries}
        new = (here | away) - published - chosen - crowded
        later |= here & (chosen - published)
        if (new & here) or len(new) >= enough:
            mine = [entry for entry in entries if int(left.person[entry]) in new]
            by_value[mine] = True
            named[mine] = _named(_most_shown(o, release, published, mild), left.held[mine])
            if may_wait(guarantee) and not (new & here):
                crowded |= new & away  # all of them wait: they may be shown in a crowd, as the verifier judges
            else:
                chosen |= new & away
        published |= here
    return Telling(left, by_value, named, np.array(sorted(later), dtype=np.int64))


def _most_shown(o: Observed, release: int, published: set[int], mild: Bools) -> I64:
    """The protected values that groups which begin now show most often; of all groups, where none does."""
    groups = o.group_release == release
    old = np.isin(o.app_person, np.fromiter(published, dtype=np.int64, count=len(published)))
    begun = groups.copy()
    begun[o.cand_group[o.cand_start[:-1]][old & (o.app_release == release)]] = False
    cells = (begun if begun.any() else groups)[o.cell_group] & ~mild[o.cell_value]
    counts = np.bincount(o.cell_value[cells], o.cell_rows[cells], len(o.values))
    return np.flatnonzero((counts == counts.max()) & (counts > 0))


def _named(values: I64, held: I64) -> int:
    """Of these values the one that most of those who are left out have; -1 where there is none."""
    often = [int((held == value).sum()) for value in values]
    return int(values[int(np.argmax(often))]) if often else -1
