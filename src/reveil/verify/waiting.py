"""What being left out tells about people, to somebody who knows who was in the table (seed 003's E_i).

A newcomer who waits while others of the same release are shown, or while there were enough of them for a group, was
chosen by value. How sure a guess is then: the share of the most frequent value among those who wait. Whoever was so
chosen must not be shown later: their group and what waiting told would be put together.

But for those who waited all together by the rule (`infeasible = "wait"`). What is told of such a crowd is that some
value was too frequent in it. If they are shown later in one cohort with all that is known of it, beliefs rise by no
more than what that event rules out: the bound must hold with so much to spare.

Of many newcomers some are drawn by that rule, so that the others can be shown. No value may then have more than twice
the promised odds among those who wait, and they are never shown later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb

import polars as pl

from reveil.base.bags import rows_in
from reveil.base.words import some
from reveil.guarantees.k_anonymity import KAnonymity
from reveil.guarantees.lasting import CohortTerms, ManyValues
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.verify.bags import largest_share, people_by_value
from reveil.verify.judges.cohort_bounds import promised_guess
from reveil.verify.judges.counts import written

ROWS = "\0rows"
MANY = 6  # times the least size of a group: so many newcomers are parted by lot where they do not fit


@dataclass(frozen=True)
class Waiting:
    """Newcomers who wait because of their values now, how sure a guess of theirs is, and who was shown all the same."""

    people: int = 0
    sure: Mapping[str, Fraction] = field(default_factory=dict)  # by sensitive column
    shown: int = 0  # people in this release who had waited because of their value
    crowd: int = 0  # newcomers who wait all together, besides
    among: Mapping[str, Fraction] = field(default_factory=dict)  # the share of the most frequent value in the crowd
    parted: bool = False  # they were drawn by lot, and others of the same release are shown
    too_sure: int = 0  # people who were so drawn, with a value that is more frequent among them than is allowed
    known: int = 0  # so many people may be known besides
    all_new: bool = False  # nobody was chosen: all newcomers wait for good
    each: tuple[tuple[int, Waiting], ...] = ()  # of people with several rows: by how many, what is true of those

    def limits(self) -> list[str]:
        """What being left out tells about those who wait, for the certificate."""
        if self.each:
            return [f"Of those who show {some(n, 'row')}: {text}" for n, one in self.each for text in one.limits()]
        limits = []
        if self.people and self.parted:
            limits.append(
                f"{some(self.people, 'newcomer')} of this table wait, drawn by lot so that all others can be shown, "
                "because some value is too frequent among newcomers for what is promised. Whoever knows that they were "
                "in the table guesses the most frequent value right with its share among them: "
                f"{self._chances(self.sure, self.people)}. They are outside the promise, and are not shown later."
            )
        elif self.people and self.all_new:
            limits.append(
                f"All {some(self.people, 'newcomer')} of this table wait for good, because some value is too frequent "
                "among them for what is promised. Whoever knows that they were in the table guesses the most frequent "
                f"value right with its share: {self._chances(self.sure, self.people)}. They are outside the promise."
            )
        elif self.people:
            limits.append(
                f"{some(self.people, 'newcomer')} of this table wait because of their value. Whoever knows that they "
                "were in the table, and how people are chosen, guesses it right: "
                f"{self._chances(self.sure, self.people)}. They are outside the promise, and are not shown later."
            )
        if self.crowd:
            limits.append(
                f"{some(self.crowd, 'newcomer')} of this table wait all together, because some value is too frequent "
                "among them for what is promised. Whoever knows that they were in the table learns that, and of no one "
                "more than of another; the most frequent value is guessed right with its share: "
                f"{self._chances(self.among, self.crowd)}. They are shown later only in one cohort that is large "
                "enough for the promise with that knowledge."
            )
        return limits

    def _chances(self, by_column: Mapping[str, Fraction], people: int) -> str:
        """How surely the most frequent value is guessed; and when as many of these people are known as may be."""

        def surer(share: Fraction) -> str:
            others = people - self.known
            chance = min(Fraction(1), share * people / others) if others > 0 else Fraction(1)
            return f" ({written(chance)} with {self.known:,} of them known)" if self.known and chance > share else ""

        return ", ".join(f"{n!r} with a chance of {written(share)}{surer(share)}" for n, share in by_column.items())


@dataclass
class _Past:
    """Who was shown, who was chosen by value, who waited in a crowd; and everybody who waited or was new, by crowd."""

    enough: int
    published: set[int] = field(default_factory=set)
    chosen: set[int] = field(default_factory=set)
    crowded: set[int] = field(default_factory=set)
    crowds: list[set[int]] = field(default_factory=list)

    def go_on(self, members: pl.DataFrame, *, together: bool, by_lot: bool) -> None:
        """One release more, and its rule: newcomers without a group wait `together`, of many some are drawn to."""
        here, away = _people(members, shown=True), _people(members, shown=False)
        pool = (here | away) - self.published - self.chosen
        fresh = pool - self.crowded
        large = by_lot and len(fresh) >= MANY * self.enough  # then some are drawn to wait, or all of them wait for good
        if (fresh & here) or large or (not together and len(fresh) >= self.enough):
            self.chosen |= fresh & away
        waiting = (pool & away) - self.chosen
        if together and waiting and len(pool) >= self.enough:
            self.crowds.append(pool)
            if fresh != pool and fresh <= away and len(fresh) >= self.enough:  # nor do they fit without the crowd
                self.crowds.append(fresh)
            self.crowded |= waiting
        self.published |= here


def who_waits(members: pl.DataFrame, history: History, policy: Policy, *, by_lot: bool = True) -> Waiting:
    """`members` are all people of the release that is judged: person, group (-1: left out) and their values.

    `by_lot`: of many newcomers who do not fit some are drawn to wait. It was not the rule when old releases were made.
    People with several rows wait among those who show as many.
    """
    if not policy.bundled:
        return _who_waits(members, history, policy, by_lot=by_lot)
    (column,) = policy.named("sensitive")
    of_code = [rows_in(bag) for bag in history.codebook.get(column, ())]
    now = members.with_columns(pl.Series(ROWS, [rows_in(bag) for bag in members[column]], dtype=pl.Int64))
    parts = []
    for (rows,), theirs in now.group_by(ROWS, maintain_order=True):
        codes = [code for code, number in enumerate(of_code) if number == rows]
        past = history.members
        earlier = past if past.is_empty() else past.filter(pl.col(column).is_in(codes))
        alone = History(head=history.head, members=earlier, waits=history.waits, by_lot=history.by_lot)
        parts.append((int(str(rows)), _who_waits(theirs.drop(ROWS), alone, policy, by_lot=by_lot)))
    return _merged(parts)


def _merged(parts: list[tuple[int, Waiting]]) -> Waiting:
    """Those who wait among people with as many rows, together; what is said of each number of rows stays apart."""
    if not parts:
        return Waiting()
    return Waiting(
        people=sum(one.people for _, one in parts),
        shown=sum(one.shown for _, one in parts),
        crowd=sum(one.crowd for _, one in parts),
        parted=any(one.parted for _, one in parts),
        too_sure=sum(one.too_sure for _, one in parts),
        each=tuple((rows, one) for rows, one in sorted(parts, key=lambda part: part[0])),
    )


def _who_waits(members: pl.DataFrame, history: History, policy: Policy, *, by_lot: bool) -> Waiting:
    """The same of people who can stand for each other."""
    many = policy.guarantee.find(ManyValues)
    if many is None or not (_left(members) or _left(history.members)):
        return Waiting()
    k = policy.guarantee.find(KAnonymity)
    past = _Past(max(many.founders, 1 if k is None or policy.method.boxed else k.k))
    if history.head:
        for one in history.members.sort("release").partition_by("release", maintain_order=True):
            number = one["release"][0]
            past.go_on(one, together=number in history.waits, by_lot=number in history.by_lot)
    chosen, crowded, here = set(past.chosen), past.crowded - past.published, _people(members, shown=True)
    wrong = (chosen & here) | _told(members, crowded & here, past, policy)
    new, together = here - past.published, policy.method.infeasible == "wait"
    past.go_on(members, together=together, by_lot=together and by_lot)
    now, crowd = past.chosen - chosen, past.crowded - crowded - past.published
    shares, parted = _shares(members, now, policy), together and bool(new - crowded)
    too_sure = len(now) if parted and not _few_alike(members, now, policy) else 0
    among = _shares(members, crowd, policy)
    terms = policy.guarantee.find(CohortTerms)
    known = 0 if terms is None else terms.compromised
    return Waiting(
        len(now), shares, len(wrong), len(crowd), among, parted, too_sure, known, all_new=together and not parted
    )


def _few_alike(members: pl.DataFrame, drawn: set[int], policy: Policy) -> bool:
    """Whether those drawn to wait are guessed with twice the promised odds at most, as many known as may be."""
    theirs, terms = members.filter(pl.col("person").is_in(list(drawn))), policy.guarantee.find(CohortTerms)
    for name in policy.named("sensitive"):
        counted = people_by_value(theirs[name], policy.protects(name), bags=bool(policy.bundled))
        top = max((max(one, default=0) for one in counted), default=0)
        if terms is None:
            return False
        odds = 2 * promised_guess(terms) / (1 - promised_guess(terms))
        if top > odds * (theirs.height - terms.compromised - top):
            return False
    return True


def _left(members: pl.DataFrame) -> bool:
    return not members.is_empty() and bool((members["group"] < 0).any())


def _told(members: pl.DataFrame, shown: set[int], past: _Past, policy: Policy) -> set[int]:
    """Those of a crowd who are shown now, and not in a cohort that keeps the bound with what is known of the crowd."""
    terms, wrong = policy.guarantee.find(CohortTerms), set[int]()
    for group in set(members.filter(pl.col("person").is_in(list(shown)))["group"].to_list()):
        cohort = members.filter(pl.col("group") == group)
        people = set(cohort["person"].to_list())
        if terms is None or people & past.published or not _spared(cohort, people, past, terms, policy):
            wrong |= people & shown
    return wrong


def _spared(cohort: pl.DataFrame, people: set[int], past: _Past, terms: CohortTerms, policy: Policy) -> bool:
    """Whether a guess stays within the promise when the crowds that met in this cohort are known to have waited."""
    others, counts = cohort.height - terms.compromised, list[list[int]]()
    for name in policy.named("sensitive"):
        counts += people_by_value(cohort[name], policy.protects(name), bags=bool(policy.bundled)) or [[]]
    chance = Fraction(1)
    for crowd in past.crowds:
        met = len(crowd & people)
        if met:
            limit = int(promised_guess(terms) * (len(crowd) - terms.compromised))
            chance -= min(_never_above(rows, cohort.height, met, limit, terms.compromised) for rows in counts)
    worst = max(max(rows, default=0) for rows in counts)
    return others > 0 and Fraction(worst, others) <= promised_guess(terms) * chance


def _never_above(rows: list[int], size: int, met: int, limit: int, known: int) -> Fraction:
    """The highest chance that none of `met` people of a cohort's values occurs more than `limit` times among them.

    Values are drawn one after the other. Who is known may be among these people, with any value: they and one place of
    every value for each of them are left out of account.
    """
    if met > 400:  # not worked out
        return Fraction(1)
    left = {max(0, met - known): Fraction(1)}  # people who have none of the values so far: the chance of it
    population = size - known
    for count in (count - known for count in rows if count - known > limit):
        after: dict[int, Fraction] = {}
        for people, chance in left.items():
            ways = comb(population, people)
            for own in range(min(limit, people, count) + 1):
                share = Fraction(comb(count, own) * comb(population - count, people - own), ways)
                if share:
                    after[people - own] = after.get(people - own, Fraction(0)) + chance * share
        left, population = after, population - count
    return sum(left.values(), Fraction(0))


def _people(members: pl.DataFrame, *, shown: bool) -> set[int]:
    return set(members["person"].filter((members["group"] >= 0) == shown).to_list())


def _shares(members: pl.DataFrame, people: set[int], policy: Policy) -> dict[str, Fraction]:
    theirs = members.filter(pl.col("person").is_in(list(people)))
    tops = {n: largest_share(theirs[n], bags=bool(policy.bundled)) for n in policy.named("sensitive") if people}
    return {name: Fraction(top, theirs.height) for name, top in tops.items()}
