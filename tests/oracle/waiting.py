"""Newcomers who wait in crowds, over all worlds: what who is shown when tells, if the rule is known. Plain Python.

People arrive in batches; values are drawn independently with the same chances for everybody. A *rule* says, from the
values, who is shown in which cohort at each release. Everybody sees cohorts with what they show, and who waits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, permutations, product
from math import comb, factorial


def beliefs(batches, values, weights, rule, known):
    """The highest belief in anybody's value, who is shown, over all public outcomes and all choices of known people.

    `batches`: numbers of people, by release; `rule(batches, held)` gives the outcome: a tuple of (people, values), with
    the release, for each cohort; and how many outcomes showed somebody who had waited in a crowd.
    """
    people = sum(batches)
    outcomes = defaultdict(list)
    for held in product(range(values) if isinstance(values, int) else values, repeat=people):
        chance = Fraction(1)
        for value in held:
            chance *= weights[value]
        if chance:
            outcomes[rule(batches, held)].append((held, chance))
    worst, late = Fraction(0), 0
    for (cohorts, crowded), worlds in outcomes.items():
        shown = {p for _, who, _ in cohorts for p in who}
        late += bool(shown & set(crowded))
        for chosen in combinations(range(people), known):
            cases = defaultdict(list)
            for held, chance in worlds:
                cases[tuple(held[p] for p in chosen)].append((held, chance))
            worst = max([worst, *(_surest(case, shown - set(chosen)) for case in cases.values())])
    return worst, late


def beliefs_by_lot(batches, values, weights, rule, known, told=None):
    """As `beliefs`, for a rule that draws: all lots as well, each an order of all people; `rule(batches, held, order)`.

    The highest belief in the value of anybody who is shown, and of who was drawn to wait, and how many outcomes there
    are in which somebody was. `values` may be tuples, one value for each column, with weights by tuple; then `told` are
    the columns in which people are known, all unless it is given.
    """
    people, outcomes = sum(batches), defaultdict(lambda: defaultdict(Fraction))
    for held in product(range(values) if isinstance(values, int) else values, repeat=people):
        chance = Fraction(1, factorial(people))
        for value in held:
            chance *= weights[value]
        for order in permutations(range(people)) if chance else ():
            outcomes[rule(batches, held, order)][held] += chance
    shown_worst, drawn_worst, parted = Fraction(0), Fraction(0), 0
    for (cohorts, _, drawn), worlds in outcomes.items():
        shown = {p for _, who, _ in cohorts for p in who}
        parted += bool(drawn)
        for chosen in combinations(range(people), known):
            cases = defaultdict(list)
            for held, chance in worlds.items():
                seen = tuple(held[p] if told is None else tuple(held[p][c] for c in told) for p in chosen)
                cases[seen].append((held, chance))
            for case in cases.values():
                shown_worst = max(shown_worst, _surest(case, shown - set(chosen)))
                drawn_worst = max(drawn_worst, _surest(case, set(drawn) - set(chosen)))
    return shown_worst, drawn_worst, parted


def beliefs_of_one_batch(people, weights, m, known, tau):
    """As `beliefs_by_lot` for one release of newcomers who are many, by counting: so there may be a dozen of them.

    Only kinds at places matter: of every multiset all sequences are looked at, and whoever is drawn is any set of
    people with the kinds that the crowd has. The highest beliefs in a value of who is shown and of who is drawn,
    whichever `known` people are known, of either part; and how many multisets are parted.
    """
    outcomes, parted = defaultdict(lambda: defaultdict(Fraction)), 0
    for bag in combinations_with_replacement(sorted(weights), people):
        chance = Fraction(factorial(people))
        for kind, n in Counter(bag).items():
            chance *= weights[kind] ** n / factorial(n)
        if not chance or fits(bag, m, known, tau):
            continue
        sequences = list(_arrangements(Counter(bag)))
        parted += waits_at(sequences[0], m, known, tau) is not None
        for held in sequences:
            places = waits_at(held, m, known, tau)
            if places is not None:
                crowd = tuple(sorted(held[p] for p in places))
                others = tuple(sorted(held[p] for p in range(people) if p not in places))
                outcomes[len(crowd), shows(others)][crowd, others] += chance / len(sequences)
    shown_worst, drawn_worst = Fraction(0), Fraction(0)
    for cases in outcomes.values():
        for inside in range(known + 1):
            drawn_worst = max(drawn_worst, _surest_of(cases, 0, inside, known - inside))
            shown_worst = max(shown_worst, _surest_of(cases, 1, inside, known - inside))
    return shown_worst, drawn_worst, parted


def _arrangements(left):
    """All sequences with so many of each kind."""
    if not any(left.values()):
        yield ()
    for kind in [kind for kind, n in left.items() if n]:
        for rest in _arrangements(left - Counter([kind])):
            yield (kind, *rest)


def _surest_of(cases, part, inside, outside):
    """Over pairs of bags: the highest belief in a value of somebody of one part, `inside` of the first one known."""
    seen = defaultdict(lambda: (Counter(), Counter()))
    for bags, chance in cases.items():
        for (mine, a), (theirs, b) in product(_known(bags[0], inside), _known(bags[1], outside)):
            total, chances = seen[mine, theirs]
            weight, left = chance * a * b, list((Counter(bags[part]) - Counter((mine, theirs)[part])).elements())
            total[()] += weight
            for column, values in enumerate(columns_of(left)):
                for v, n in Counter(values).items():
                    chances[column, v] += weight * Fraction(n, len(left))
    return max((c / total[()] for total, chances in seen.values() for c in chances.values()), default=Fraction(0))


def _known(bag, number):
    """What that many people of a bag have, in turn, with the chance of it."""
    if not number:
        yield (), Fraction(1)
        return
    for kind, n in Counter(bag).items():
        rest = list(bag)
        rest.remove(kind)
        for others, chance in _known(rest, number - 1):
            yield (kind, *others), chance * Fraction(n, len(bag))


def columns_of(held):
    """What people hold, column by column: values, or tuples of them; of bags, a column for each value.

    Who has a value not has a number below 0 of their own: it counts for nothing.
    """
    if held and isinstance(held[0], frozenset):
        every = sorted(set().union(*held))
        return [tuple(value if value in bag else -1 - p for p, bag in enumerate(held)) for value in every]
    return list(zip(*held, strict=True)) if held and isinstance(held[0], tuple) else [tuple(held)]


def _surest(worlds, people):
    total, chances = Fraction(0), Counter()
    for held, chance in worlds:
        total += chance
        for column, values in enumerate(columns_of(held)):
            for p in people:
                if isinstance(held[0], frozenset):
                    chances[values[p], p] += chance * (values[p] >= 0)
                else:
                    chances[column, p, values[p]] += chance
    return max((chance / total for chance in chances.values()), default=Fraction(0))


def waits_at(held, m, known, tau):
    """Places of a lot's order, with these values, whose people wait so that the others fit; None if no crowd will do.

    As few as can be; whoever is known of them, no value of the others has more than twice the odds of tau. First those
    of whom some must wait, in one column at least, then anybody.
    """
    share, columns = 2 * tau / (1 + tau), columns_of(held)
    counted = [_counted(column) for column in columns]
    for crowd in range(1, len(held) - m + 1):
        most_shown, most = max(0, int(tau * (len(held) - crowd - known))), int(share * (crowd - known))
        needed = [{v: n - most_shown for v, n in counts.items()} for counts in counted]
        places, taken = [], [Counter() for _ in columns]
        if max(max(need.values()) for need in needed) > most:
            continue
        for urgent in (True, False):
            for place in range(len(held)):
                mine = [column[place] for column in columns]
                short = any(took[v] < need.get(v, 0) for took, need, v in zip(taken, needed, mine, strict=True))
                room = all(took[v] < most or v < 0 for took, v in zip(taken, mine, strict=True))
                if place not in places and len(places) < crowd and room and (short or not urgent):
                    places.append(place)
                    for took, v in zip(taken, mine, strict=True):
                        took[v] += 1
        enough = all(took[v] >= n for took, need in zip(taken, needed, strict=True) for v, n in need.items())
        if len(places) == crowd and enough:
            return sorted(places)
    return None


def fits(held, m, known, tau):
    """Whether people with these values can be in one cohort."""
    return len(held) >= m and all(max(_counted(one).values()) <= tau * (len(held) - known) for one in columns_of(held))


def _counted(column):
    """How many have each value."""
    return Counter(value for value in column if value >= 0)


def shows(held):
    """What a cohort of people with these values publishes: the sorted values of each column, by themselves; or bags."""
    if held and isinstance(held[0], frozenset):
        return tuple(sorted(tuple(sorted(bag)) for bag in held))
    columns = [tuple(sorted(column)) for column in columns_of(held)]
    return columns[0] if len(columns) == 1 else tuple(columns)


def in_crowds(m, known, tau):
    """The rule of `infeasible = "wait"` for few newcomers: all wait or all are shown; a crowd, where that is spared."""
    by_lot = parted_by_lot(m, known, tau, many=None)
    return lambda batches, held: by_lot(batches, held, ())[:2]


def parted_by_lot(m, known, tau, many):
    """The whole rule: of `many` newcomers or more who do not fit, some are drawn to wait for good, or all do."""

    def rule(batches, held, order):
        waiting, crowds, crowded, cohorts, first = [], [], set(), [], 0
        drawn, gone = set(), set()
        for release, number in enumerate(batches):
            fresh = list(range(first, first + number)) + [p for p in waiting if p not in crowded]
            first += number
            old = [p for p in waiting if p in crowded]
            pool = sorted(old + fresh)
            mine = [held[p] for p in pool]
            if fits(mine, m, known, tau) and (not old or spared(mine, pool, crowds, known, tau)):
                cohorts.append((release, tuple(pool), shows(mine)))
                waiting = []
                continue
            if many and len(fresh) >= many and not fits([held[p] for p in fresh], m, known, tau):
                lot = [p for p in order if p in fresh]
                places = waits_at([held[p] for p in lot], m, known, tau)
                if places is None:
                    gone |= set(fresh)
                else:
                    drawn |= {lot[place] for place in places}
            shown = sorted(set(fresh) - drawn - gone)
            if shown and (old or drawn & set(fresh)) and fits([held[p] for p in shown], m, known, tau):
                cohorts.append((release, tuple(shown), shows([held[p] for p in shown])))
                waiting = old
            else:
                waiting = [p for p in pool if p not in drawn | gone]
            if len(pool) >= m and waiting:
                crowds.append(set(pool))
                if old and len(fresh) >= m and set(fresh) <= set(waiting):  # they were tried without the crowd, too
                    crowds.append(set(fresh))
                crowded |= set(waiting)
        return tuple(cohorts), tuple(sorted(crowded)), tuple(sorted(drawn))

    return rule


def as_soon_as_it_fits(m, known, tau):
    """The rule that is refuted: who waits is shown with whoever comes, as soon as their values fit."""

    def rule(batches, held):
        waiting, crowded, cohorts, first = [], set(), [], 0
        for release, number in enumerate(batches):
            pool = waiting + list(range(first, first + number))
            first += number
            mine = [held[p] for p in pool]
            if fits(mine, m, known, tau):
                cohorts.append((release, tuple(pool), tuple(sorted(mine))))
                waiting = []
            else:
                waiting = pool
                crowded |= set(pool) if len(pool) >= m else set()
        return tuple(cohorts), tuple(sorted(crowded))

    return rule


def spared(mine, pool, crowds, known, tau):
    missed, counted = Fraction(0), [_counted(column).values() for column in columns_of(mine)]
    for crowd in crowds:
        met = len(crowd & set(pool))
        if met:
            most = int(tau * (len(crowd) - known))
            missed += 1 - max(chance_of_crowd(counts, len(mine), met, most, known) for counts in counted)
    top = max(max(counts) for counts in counted)
    return Fraction(top, len(mine) - known) <= tau * (1 - missed)


def chance_of_crowd(counts, size, there, most, known):
    """By listing who is drawn: some value more than `most` times among `there` - `known` of `size` - `known` places."""
    places = [v for v, count in enumerate(counts) for _ in range(max(0, count - known))]
    places += [-1 - n for n in range(size - known - len(places))]  # of no value that counts
    drawn = max(0, there - known)
    if drawn == 0:
        return Fraction(0)
    above = sum(any(n > most for v, n in Counter(chosen).items() if v >= 0) for chosen in combinations(places, drawn))
    return Fraction(above, comb(size - known, drawn))
