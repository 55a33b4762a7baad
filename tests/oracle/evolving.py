"""What closed cohorts of changing values give away, by listing every world. Imports nothing of the package.

A cohort is a list of releases, each (people, values). It has as many *places* as values. A place has a value in every
release, and goes from one to the next with the public chances, whoever holds it: a person, or after they left a
counterfeit. Founders hold one place each. Newcomers take vacant places, each choice being equally likely.
A world says which published row is which place's, and who has which place. Chances are whole numbers, in proportion
within the changes of one value: every place of a release goes on, so their sums are the same in all worlds.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import combinations, permutations, product


def worlds(cohort, chance):
    """(values of people where they were shown, values of the places at the end, their holders) -> weight."""
    found = defaultdict(int)
    size = len(cohort[0][1])

    def fill(release, rows, holder, seen, weight):
        if release == len(cohort):
            found[tuple(sorted(seen.items())), rows, tuple(sorted(holder.items()))] += weight
            return
        people, values = cohort[release]
        taken = {holder[p] for p in people if p in holder}
        vacant = [place for place in range(size) if place not in taken]
        newcomers = [p for p in people if p not in holder]
        choices = list(permutations(vacant, len(newcomers)))
        if release == 0:
            choices = choices[:1]  # places have no names before somebody holds them
        for order in permutations(range(size)):
            shown, times = tuple(values[row] for row in order), weight
            if rows is not None:
                for before, after in zip(rows, shown, strict=True):
                    times *= chance[before].get(after, 0)
            if not times:
                continue
            for chosen in choices:
                held = {**holder, **dict(zip(newcomers, chosen, strict=True))}
                fill(release + 1, shown, held, {**seen, **{(p, release): shown[held[p]] for p in people}}, times)

    fill(0, None, {}, {}, 1)
    return found


def worst_guess(cohort, chance, known, harmless=()):
    """The highest chance of anybody else's value in any release, whichever `known` people are known in all theirs.

    Guesses of harmless values do not count.
    """
    cases = defaultdict(int)
    for (seen, _, _), weight in worlds(cohort, chance).items():
        cases[seen, tuple(item for item in seen if item[1] not in harmless)] += weight
    return _worst(cases, sorted({p for people, _ in cohort for p in people}), known)


def worst_guess_with_stand_ins(cohort, chance, known, harmless=()):
    """The same where a release is (people, values, people who are stood in for, its number).

    The place of somebody who is stood in for goes on by itself; their own value goes on, with the same chances, from
    what they had when they were last among the people. Nothing that is shown depends on it.
    """
    exact = {a: {b: Fraction(w, sum(row.values())) for b, w in row.items()} for a, row in chance.items()}
    cases = defaultdict(int)
    for (seen, _, _), weight in worlds([(people, values) for people, values, _, _ in cohort], chance).items():
        ways = [(dict(seen), Fraction(weight))]
        for release, (_, _, stood, number) in enumerate(cohort):
            for person in stood:
                ways = [
                    ({**had, (person, release): value}, times * odds)
                    for had, times in ways
                    for value, odds in _own(had, person, release, number, cohort, exact).items()
                ]
        for had, times in ways:
            told = tuple(sorted(had.items()))
            cases[told, tuple(item for item in told if item[1] not in harmless)] += times
    return _worst(cases, sorted({p for people, _, _, _ in cohort for p in people}), known)


def _own(had, person, release, number, cohort, exact):
    """What somebody may have now, from what they had in the release before in which they were there."""
    before = max(earlier for who, earlier in had if who == person and earlier < release)
    odds = {had[person, before]: Fraction(1)}
    for _ in range(number - cohort[before][3]):
        after = defaultdict(Fraction)
        for value, weight in odds.items():
            for following, share in exact[value].items():
                after[following] += weight * share
        odds = after
    return odds


def withheld_guess(cohort, chance, repeats, known):
    """The highest chance of anybody's value after the last release, if the cohort is then withheld because some value
    is had by more than `repeats` of its places. Known people are known where they were shown. None: it cannot happen.
    """
    cases = defaultdict(int)
    here = cohort[-1][0]
    for (seen, rows, holders), weight in worlds(cohort, chance).items():
        for values in product(*(list(chance[row]) for row in rows)):
            if max(values.count(v) for v in values) > repeats:
                times = weight
                for row, value in zip(rows, values, strict=True):
                    times *= chance[row][value]
                place = dict(holders)
                cases[seen, tuple(((p, len(cohort)), values[place[p]]) for p in here)] += times
    return _worst(cases, here, known) if cases else None


def _worst(cases, people, known):
    """Over every choice of known people: the highest chance of what another has, given what is seen of those known."""
    worst = Fraction(0)
    for chosen in combinations(people, min(known, len(people) - 1)):
        told = defaultdict(lambda: defaultdict(int))
        for (seen, asked), weight in cases.items():
            beliefs = told[tuple(item for item in seen if item[0][0] in chosen)]
            beliefs[None] += weight
            for item in asked:
                if item[0][0] not in chosen:
                    beliefs[item] += weight
        for beliefs in told.values():
            total = beliefs.pop(None)
            worst = max(worst, Fraction(max(beliefs.values(), default=0), total))
    return worst


def possible(cohort, chance):
    """Whether there is any world."""
    return bool(worlds(cohort, chance))
