"""delta-presence: how sure one can be that a person of a known population is in the release at all.

A person of the population *matches* a class when every published cell of the class covers their true value.
The adversary holds equally likely all the ways to choose, for each class, as many different people who match
it as it has real rows (rows without its counterfeits, whose number is public), nobody twice. Let r be the
real rows of a class and N the people who match it.

Where the classes a person matches share nobody with other classes, the chance that the person is present is
exactly r / N. Where classes overlap, counting the ways is out of reach (it contains the permanent), so both
ends are bounded:

- from below by the largest r / N of the person's classes. Fix what all other classes chose: either it
  includes the person, or the person is one of at most N free people from whom r are drawn.
- from above by 1 - product of (1 - r / (N - u)) over the person's classes, where u is the largest number of
  the N people that other classes can have taken: for each other class, the people both match or its real
  rows, whichever is fewer. Fix what all other classes chose: of at least N - u free people r are drawn, so
  the person escapes this class with at least 1 - r / (N - u), whatever else happened; one class after the
  other, these chances multiply.

A person who matches no class is certainly absent. Not monotone: joining two classes widens their cells, which
may then cover people of a third class and make its chance harder to bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from reveil.base.arrays import I64, offsets_by_key, starts_of
from reveil.base.errors import Fault, InputError, stop_if
from reveil.base.words import some
from reveil.guarantees.presence import Presence
from reveil.hierarchies.tree import Hierarchy
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.published.notation import as_written, parse_column
from reveil.verify.judges.contract import Background, Judge, Verdict, View
from reveil.verify.judges.counts import written

PAIRS_AT_ONCE = 4_000_000  # bounds the memory of the search for matches


@dataclass
class PresenceJudge:
    """The chance that a person of the population is in the release lies between delta_min and delta_max."""

    delta_min: Fraction
    delta_max: Fraction
    background: Background
    name: str = "presence"

    def judge(self, view: View, history: History) -> list[Verdict]:
        population = self._population(view)
        people = population.group_by(population.columns, maintain_order=True).agg(pl.len().alias("\0people"))
        counts = people["\0people"].to_numpy().astype(np.int64)
        person, group = matches(view, people.drop("\0people"), self.background)
        real = view.sizes() - view.counterfeits
        chances = bounds(person, group, counts, real)
        verdicts = [self._at_most(chances, counts, view)]
        if self.delta_min > 0:
            verdicts.append(self._at_least(chances, counts, view))
        return verdicts

    def _population(self, view: View) -> pl.DataFrame:
        return population_with(self.background, view.quasi.columns)

    def _at_most(self, chances: Chances, counts: I64, view: View) -> Verdict:
        worst = max((high for _, high in chances.of), default=Fraction(0))
        bad = [number for number, (_, high) in enumerate(chances.of) if high > self.delta_max]
        bounded = "" if chances.exact else " (a bound from above, because classes overlap)"
        people = self._people(bad, chances, counts)
        limit = written(self.delta_max)
        if bad:
            statement = (
                f"{some(people, 'person', 'people')} of the population may be present with a chance above "
                f"{limit}; the largest chance is {written(worst)}{bounded}"
            )
            plain = (
                "For some people of the population it can be concluded with a chance of up to "
                f"{float(worst):.1%} that they are in this table; the promise was at most "
                f"{float(self.delta_max):.1%}."
            )
        else:
            statement = (
                f"nobody of the population is present with a chance above {limit}; "
                f"the largest chance is {written(worst)}{bounded}"
            )
            plain = (
                "Whoever knows the whole population can be at most "
                f"{float(worst):.1%} sure that a given person is in this table."
            )
        return self._verdict(statement, plain, bad, worst, self.delta_max, chances, people, view)

    def _at_least(self, chances: Chances, counts: I64, view: View) -> Verdict:
        worst = min((low for low, _ in chances.of), default=Fraction(0))
        bad = [number for number, (low, _) in enumerate(chances.of) if low < self.delta_min]
        bounded = "" if chances.exact else " (a bound from below, because classes overlap)"
        people = self._people(bad, chances, counts)
        limit = written(self.delta_min)
        if bad:
            statement = (
                f"{some(people, 'person', 'people')} of the population may be present with a chance below "
                f"{limit}; the smallest chance is {written(worst)}{bounded}"
            )
            plain = (
                f"For some people of the population it can be concluded that they are probably not in this "
                f"table (chance {float(worst):.1%}); the promise was at least {float(self.delta_min):.1%}."
            )
        else:
            statement = (
                f"everybody of the population is present with a chance of at least {limit}; "
                f"the smallest chance is {written(worst)}{bounded}"
            )
            plain = (
                "Nobody of the population can be ruled out: everybody's chance to be present is "
                f"{float(worst):.1%} or more."
            )
        return self._verdict(statement, plain, bad, worst, self.delta_min, chances, people, view)

    def _people(self, bad: list[int], chances: Chances, counts: I64) -> int:
        return int(counts[np.isin(chances.signature, bad)].sum())

    def _verdict(
        self,
        statement: str,
        plain: str,
        bad: list[int],
        worst: Fraction,
        bound: Fraction,
        chances: Chances,
        people: int,
        view: View,
    ) -> Verdict:
        classes = sorted({group for number in bad for group in chances.groups[number]})
        return Verdict(
            guarantee=self.name,
            statement=statement,
            plain=plain,
            holds=not bad,
            worst=worst,
            bound=bound,
            violating_classes=len(classes),
            violating_rows=int(view.sizes()[classes].sum()) if classes else 0,
            details={"people": people, "exact": chances.exact},
        )


@dataclass(frozen=True, eq=False)
class Chances:
    """People who match the same classes have the same chances: one entry for each such set of classes."""

    groups: list[tuple[int, ...]]  # the classes
    of: list[tuple[Fraction, Fraction]]  # the chance to be present: at least, at most
    signature: I64  # the entry of each kind of person
    exact: bool  # no two classes share anybody, so both bounds are the chance itself


def bounds(person: I64, group: I64, people: I64, real: I64) -> Chances:
    """Bound each person's chance, from pairs (kind of person, class they match), sorted by person.

    `people` says how many there are of each kind, `real` how many real rows each class has.
    """
    ones = np.ones(len(person), dtype=np.int64)
    incidence = sparse.csr_array((ones, (person, group)), (len(people), len(real)))
    matching = incidence.T @ people
    refuse_strangers(real, matching)
    shared = (incidence.T @ sparse.diags_array(people, dtype=np.int64) @ incidence).tocoo()
    apart = shared.row != shared.col
    taken = np.zeros(len(real), dtype=np.int64)
    np.add.at(taken, shared.row[apart], np.minimum(shared.data[apart], real[shared.col[apart]]))
    free = np.maximum(real, matching - taken)  # at least as many as are drawn, or there would be no way
    groups, signature = _signatures(person, group, len(people))
    return Chances(groups, [_chance(one, real, matching, free) for one in groups], signature, not taken.any())


def _chance(groups: tuple[int, ...], real: I64, matching: I64, free: I64) -> tuple[Fraction, Fraction]:
    low, escape = Fraction(0), Fraction(1)
    for group in groups:
        rows = int(real[group])
        if rows:
            low = max(low, Fraction(rows, int(matching[group])))
            escape *= 1 - Fraction(rows, int(free[group]))
    return low, 1 - escape


def _signatures(person: I64, group: I64, kinds: int) -> tuple[list[tuple[int, ...]], I64]:
    """The different sets of classes, and which of them each kind of person matches."""
    starts = offsets_by_key(person, kinds).tolist()
    flat = group.tolist()
    known: dict[tuple[int, ...], int] = {}
    sets = (tuple(sorted(flat[a:b])) for a, b in pairwise(starts))
    numbers = [known.setdefault(one, len(known)) for one in sets]
    return list(known), np.array(numbers, dtype=np.int64)


def refuse_strangers(real: I64, matching: I64) -> None:
    """Somebody published who is not in the population makes every chance meaningless."""
    odd = np.flatnonzero(real > matching)
    if len(odd):
        rows = int((real - matching)[odd].sum())
        where = some(len(odd), "class", "classes")
        message = f"in {where} there are more rows than people of the population who match"
        remedy = "use a population table that holds everybody in the release, with the same values"
        raise InputError(Fault("R408", "population", message, remedy, rows))


def matches(view: View, people: pl.DataFrame, background: Background) -> tuple[I64, I64]:
    """All pairs (kind of person, class that they match), sorted by person."""
    classes, firsts = np.unique(view.classes, return_index=True)
    labels, truths, covers = [], [], []
    for name in view.quasi.columns:
        cells = view.quasi[name].gather(firsts)
        label, truth, table = _column(cells, people[name], background.hierarchies.get(name))
        labels.append(label)
        truths.append(truth)
        covers.append(table)
    search = _BoxSearch.over(labels, truths, covers)
    fitting = list(search.run(people.height)) if len(classes) else []
    person = np.concatenate([np.zeros(0, dtype=np.int64), *(one for one, _ in fitting)])
    group = np.concatenate([np.zeros(0, dtype=np.int64), *(classes[search.order[one]] for _, one in fitting)])
    return person, group


@dataclass(frozen=True, eq=False)
class _BoxSearch:
    """Column after column, each person goes on to the beginnings of boxes that cover their values so far.

    So most classes are ruled out long before the last column. Classes are sorted by their cells; the
    beginnings of one column stand in the same order, and each knows where it goes on in the next.
    """

    order: I64  # classes by their cells
    starts: list[I64]  # per column: first continuation of each beginning; at the end, first class of each box
    labels: list[I64]  # per column: the last cell of each beginning
    truths: list[I64]  # per column: the value of each person
    covers: list[NDArray[np.bool_]]  # per column: cell x value

    @classmethod
    def over(cls, labels: list[I64], truths: list[I64], covers: list[NDArray[np.bool_]]) -> _BoxSearch:
        order = np.lexsort(labels[::-1])
        begins = np.zeros(len(order), dtype=np.bool_)
        earlier = np.zeros(1, dtype=np.int64)  # where each beginning starts among the classes
        starts, cells = [], []
        for label in labels:
            begins |= np.diff(label[order], prepend=-1) != 0
            now = np.flatnonzero(begins)
            starts.append(np.append(np.searchsorted(now, earlier), len(now)))
            cells.append(label[order][now])
            earlier = now
        starts.append(np.append(earlier, len(order)))
        return cls(order, starts, cells, truths, covers)

    def run(self, people: int) -> Iterator[tuple[I64, I64]]:
        """Pairs (person, place of the class in `order`), fewer people at a time where they have many."""
        waiting = [np.arange(a, min(a + 16_384, people)) for a in range(0, people, 16_384)][::-1]
        while waiting:
            some_people = waiting.pop()
            pairs = self._descend(some_people)
            if pairs is None:
                first, second = np.array_split(some_people, 2)
                waiting += [second, first]
            else:
                yield pairs

    def _descend(self, person: I64) -> tuple[I64, I64] | None:
        """The pairs of these people, or None where that would be too many at once."""
        node, several = np.zeros(len(person), dtype=np.int64), len(person) > 1
        columns = zip(self.starts[:-1], self.labels, self.truths, self.covers, strict=True)
        for starts, label, truth, table in columns:
            width = starts[node + 1] - starts[node]
            if several and width.sum() > PAIRS_AT_ONCE:
                return None
            person, node = np.repeat(person, width), _continuations(starts[node], width)
            fits = table[label[node], truth[person]]
            person, node = person[fits], node[fits]
        starts = self.starts[-1]
        width = starts[node + 1] - starts[node]
        return np.repeat(person, width), _continuations(starts[node], width)


def _continuations(first: I64, width: I64) -> I64:
    """first, first + 1, ... first + width - 1 of each, one after the other."""
    return np.repeat(first - (starts_of(width)), width) + np.arange(int(width.sum()))


def _column(published: pl.Series, truth: pl.Series, hierarchy: Hierarchy | None) -> tuple[I64, I64, NDArray[np.bool_]]:
    """The cell of each class, the value of each person, and which cell covers which value."""
    numeric = truth.dtype.is_numeric() if hierarchy is None and truth.dtype != pl.Date else None
    cells, label = parse_column(published, hierarchy, numeric)
    truth = truth.fill_nan(None) if truth.dtype.is_float() else truth
    values = truth.unique(maintain_order=True)
    if truth.dtype == pl.String:  # everybody's values are known: what is one of them is no notation
        cells = as_written(cells, set(values.drop_nulls()))
    number = {value: place for place, value in enumerate(values.to_list())}
    place = np.array([number[value] for value in truth.to_list()], dtype=np.int64)
    table = np.array([[cell.covers(value) for value in number] for cell in cells], dtype=np.bool_)
    return label, place, table.reshape(len(cells), len(number))


def population_with(background: Background, names: Sequence[str]) -> pl.DataFrame:
    """These columns of the population, or why there are none."""
    population = background.population
    if population is None:
        raise InputError(_no_population())
    stop_if([_no_column(name) for name in names if name not in population.columns])
    return population.select(names)


def _no_population() -> Fault:
    return Fault(
        "R406",
        "guarantee.population",
        "it is judged against a population table, and none was given",
        "name the file in guarantee.population, or remove delta_min, delta_max and k_map",
    )


def _no_column(name: str) -> Fault:
    return Fault(
        "R407",
        f"population, column {name!r}",
        "is missing, and the release publishes it as a quasi-identifier",
        "add the column to the population table under the same name",
    )


def build_presence(asked: Presence, policy: Policy, background: Background) -> list[Judge]:
    assert asked.delta_max is not None
    population_with(background, policy.named("quasi"))
    return [PresenceJudge(asked.delta_min, asked.delta_max, background)]
