"""What being left out tells about people, to somebody who knows who was in the table (seed 003's E_i).

A newcomer who waits while others of the same release are shown, or while there were enough of them for a group, was
chosen by value. How sure a guess is then: the share of the most frequent value among those who wait. Whoever was so
chosen must not be shown later: their group and what waiting told would be put together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import polars as pl

from reveil.base.words import some
from reveil.guarantees.k_anonymity import KAnonymity
from reveil.guarantees.lasting import ManyValues
from reveil.history.history import History
from reveil.policy.guarantee import Guarantee
from reveil.verify.judges.counts import written


@dataclass(frozen=True)
class Waiting:
    """Newcomers who wait because of their value now, how sure a guess of theirs is, and who was shown all the same."""

    people: int = 0
    sure: Mapping[str, Fraction] = field(default_factory=dict)  # by sensitive column
    shown: int = 0  # people in this release who had waited because of their value

    def limits(self) -> list[str]:
        """What being left out tells about those who wait, for the certificate."""
        if not self.people:
            return []
        sure = ", ".join(f"{name!r} with a chance of {written(chance)}" for name, chance in self.sure.items())
        return [
            f"{some(self.people, 'newcomer')} of this table wait because of their value. Whoever knows that they were "
            f"in the table, and how people are chosen, guesses it right: {sure}. They are outside the promise, and are "
            "not shown later."
        ]


def who_waits(members: pl.DataFrame, history: History, guarantee: Guarantee, columns: Sequence[str]) -> Waiting:
    """`members` are all people of the release that is judged: person, group (-1: left out) and their values."""
    many = guarantee.find(ManyValues)
    if many is None:
        return Waiting()
    k = guarantee.find(KAnonymity)
    enough = max(many.m, 1 if k is None else k.k)
    chosen, published = set[int](), set[int]()
    if history.head:
        for past in history.members.sort("release").partition_by("release", maintain_order=True):
            _go_on(past, chosen, published, enough)
    before = frozenset(chosen)
    _go_on(members, chosen, published, enough)
    now = chosen - before
    theirs = members.filter(pl.col("person").is_in(list(now)))
    sure = {name: _largest_share(theirs[name]) for name in columns if now}
    return Waiting(len(now), sure, len(before & _people(members, shown=True)))


def _go_on(members: pl.DataFrame, chosen: set[int], published: set[int], enough: int) -> None:
    """One release more: newcomers whom it left out are chosen by value, unless all wait and are too few."""
    left = _people(members, shown=False) - chosen - published
    here = _people(members, shown=True)
    new_here = here - chosen - published
    if new_here or len(left) >= enough:
        chosen |= left
    published |= here


def _people(members: pl.DataFrame, *, shown: bool) -> set[int]:
    return set(members["person"].filter((members["group"] >= 0) == shown).to_list())


def _largest_share(values: pl.Series) -> Fraction:
    return Fraction(max(values.value_counts()["count"].to_list()), len(values))
