"""Why a column that changes freely is refused beside one that never changes: the smallest case of each way to show it.

All are computed over all worlds by tests/oracle/free_beside.py; docs/anatomy.md has the table.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from oracle.free_beside import beliefs, multiset
from reveil.base.errors import InputError
from reveil.policy.policy import load_policy

HALF, ALIKE = Fraction(1, 2), {"a": Fraction(1, 2), "b": Fraction(1, 2)}
TELLING = {"a": {"p": Fraction(1)}, "b": {"q": Fraction(1)}}  # who knows the cost knows the diagnosis
ODDS = {"p": Fraction(3, 4), "q": Fraction(1, 4)}
FREE = {"a": ODDS, "b": ODDS}  # one column says nothing of the other
EVEN = {d: {"p": Fraction(1, 3), "q": Fraction(1, 3), "r": Fraction(1, 3)} for d in "ab"}
LEAVES = [{0, 1}, {1}]  # person 0 is there once, person 1 twice


def worst(there, sick, pays, show, least=None):
    """The highest belief over everything that can be published; of those cases that show `least`."""
    found = beliefs(there, sick, pays, show)
    return max(max(case.values()) for shown, case in found.items() if least is None or least(shown))


def first(diagnoses, costs):
    """What the first release shows of the only cohort, which has two different diagnoses."""
    return multiset(diagnoses), multiset(costs[person, 0] for person in range(len(diagnoses)))


def different(shown):
    return len(set(shown[0][0])) == 2 and len(set(shown[0][1])) == 2


def test_only_those_who_are_there_tell_the_leaver_by_the_rest() -> None:
    def show(diagnoses, costs):
        yield (first(diagnoses, costs), costs[1, 1]), Fraction(1)

    assert worst(LEAVES, ALIKE, TELLING, show, different) == 1


def test_a_kept_value_tells_the_new_one() -> None:
    """The counterfeit keeps the leaver's cost, as it keeps the diagnosis: what was not there before is the other's."""

    def show(diagnoses, costs):
        yield (first(diagnoses, costs), multiset([costs[0, 0], costs[1, 1]])), Fraction(1)

    assert worst(LEAVES, ALIKE, EVEN, show, different) == 1


def test_a_value_drawn_evenly_does_not_hide_what_is_frequent() -> None:
    """One release shows cost {p, q}, one of them drawn by an even lot: 3/4 where two values promise 1/2."""

    def show(diagnoses, costs):
        for drawn in "pq":
            yield (multiset([costs[0, 0], drawn]),), HALF

    found = beliefs([{0}], ALIKE, FREE, show)
    assert found[(("p", "q"),)][0, "p"] == Fraction(3, 4)


def test_withholding_by_what_a_cohort_would_show_tells_it() -> None:
    """Costs are shown where they differ, and 1/2 is promised: withheld, both are p with 9/10."""

    def show(diagnoses, costs):
        shown = multiset(costs.values())
        yield shown if len(set(shown)) == 2 else ("withheld",), Fraction(1)

    found = beliefs([{0, 1}], ALIKE, FREE, show)
    assert found["p", "q"][0, "p"] == HALF and found[("withheld",)][0, "p"] == Fraction(9, 10)


def test_groups_of_its_own_tell_where_one_column_tells_the_other() -> None:
    """Diagnoses in {0, 1} and {2, 3}, costs in {0, 2} and {1, 3}, each group with two values: everybody is certain."""
    sick, pays = (
        dict.fromkeys("abcd", Fraction(1, 4)),
        {d: {c: Fraction(1)} for d, c in zip("abcd", "pqrs", strict=True)},
    )

    def show(diagnoses, costs):
        groups = [multiset(diagnoses[p] for p in pair) for pair in ((0, 1), (2, 3))]
        groups += [multiset(costs[p, 0] for p in pair) for pair in ((0, 2), (1, 3))]
        yield tuple(groups), Fraction(1)

    case = beliefs([{0, 1, 2, 3}], sick, pays, show)[("a", "b"), ("c", "d"), ("p", "r"), ("q", "s")]
    assert case[0, "a"] == case[1, "b"] == case[2, "c"] == case[3, "d"] == 1


def test_true_chances_would_do() -> None:
    """The leaver's cost drawn anew by its true chances given the diagnosis: nobody is above what is counted."""
    mixed = {"a": {"p": Fraction(3, 4), "q": Fraction(1, 4)}, "b": {"p": Fraction(1, 5), "q": Fraction(4, 5)}}

    def show(diagnoses, costs):
        for drawn, chance in mixed[diagnoses[0]].items():
            yield (first(diagnoses, costs), multiset([drawn, costs[1, 1]])), chance

    for shown, case in beliefs(LEAVES, ALIKE, mixed, show).items():
        for person in (0, 1):
            for value in "ab":
                counted = Fraction(shown[0][0].count(value), 2)
                assert case.get((person, value), 0) == counted


def test_it_is_refused_with_the_reason() -> None:
    columns = {
        "who": "identifier",
        "age": "quasi",
        "ill": "sensitive",
        "cost": {"role": "sensitive", "change": "freely"},
    }
    promise = {"model": "compromise-safety", "m": 3, "k": 2}
    policy = {"columns": columns, "values": {"change": "never"}, "guarantee": promise, "method": {"publish": "anatomy"}}
    with pytest.raises(InputError, match="says nothing about the others"):
        load_policy(policy)
