"""What is done to a series years later tells nothing by the rules that were taken, and would by others."""

from __future__ import annotations

from fractions import Fraction

import pytest

from oracle import amendments as oracle

SIZE, DOMAIN = 3, 5
CHANCES = {  # that a record is wrong, and what is true instead
    "any value alike": lambda recorded, true: Fraction(1, 20),
    "one value more often": lambda recorded, true: Fraction(1, 5) if recorded == 0 else Fraction(1, 50),
    "mostly for its neighbour": lambda recorded, true: Fraction(1, 5) if true == recorded + 1 else Fraction(1, 100),
}


def cohort_shown(world):
    recorded, _, _ = world
    return frozenset(recorded)


def goes_on(world):
    """The rule that was taken: the place shows the value that was recorded, whatever is true."""
    return ("person 0 in its cohort", frozenset(world[0]), frozenset(world[2]))


def becomes_counterfeit(world):
    """The person is shown no more, and the place goes on without them."""
    return ("person 0 gone" if world[1] is not None else "person 0 in its cohort", frozenset(world[2]))


def founds_anew(world):
    """The place becomes a counterfeit, and the person a newcomer with the true value, in a cohort of all different."""
    _, true, fresh = world
    if true is None or true in fresh:
        return ("person 0 not among the newcomers", true is None, frozenset(fresh))
    return ("person 0 among the newcomers", frozenset((true, *fresh)))


def values_of(world):
    recorded, true, _ = world
    now = recorded[0] if true is None else true
    return [("recorded", p, v) for p, v in enumerate(recorded)] + [("true", 0, now)]


@pytest.mark.parametrize("chances", CHANCES)
def test_a_correction_that_changes_nothing_tells_nothing(chances):
    worlds = list(oracle.corrected_cohorts(SIZE, DOMAIN, 2, CHANCES[chances]))
    before = lambda world: (cohort_shown(world), frozenset(world[2]))  # noqa: E731 what is shown anyway
    assert oracle.change(worlds, before, goes_on, values_of) == 0
    assert oracle.highest(
        oracle.beliefs(worlds, goes_on, lambda w: [s for s in values_of(w) if s[0] == "recorded"])
    ) == Fraction(1, SIZE)


def test_other_rules_for_corrections_tell_something():
    alike = list(oracle.corrected_cohorts(SIZE, DOMAIN, 2, CHANCES["any value alike"]))
    often = list(oracle.corrected_cohorts(SIZE, DOMAIN, 2, CHANCES["one value more often"]))
    before = lambda world: (cohort_shown(world), frozenset(world[2]))  # noqa: E731 what is shown anyway
    # Gone because corrected: whose records are more often wrong is known by their going.
    assert oracle.change(often, before, becomes_counterfeit, values_of) > Fraction(1, 3)
    # As a newcomer: even where all errors are alike, both cohorts together tell more than one of three.
    told = oracle.beliefs(alike, founds_anew, values_of)
    assert oracle.highest(told) > Fraction(1, SIZE)
    assert oracle.change(alike, before, founds_anew, values_of) > 0


def test_which_place_of_one_person_stays_is_not_decided_by_values():
    worlds = list(oracle.merged_places(SIZE, (Fraction(1, 2), Fraction(1, 2))))
    shown = lambda world: (frozenset(world[0]), frozenset(world[1]))  # noqa: E731
    true = lambda world: [("true", world[world[2]][0])]  # noqa: E731
    assert oracle.change(worlds, shown, lambda world: "the place that was shown last", true) == 0
    assert oracle.highest(oracle.beliefs(worlds, shown, true)) == Fraction(1, 2 * SIZE)
    by_value = lambda world: (shown(world), world[2])  # noqa: E731 the place whose record is true
    assert oracle.highest(oracle.beliefs(worlds, by_value, true)) == Fraction(1, SIZE)


def test_an_erasure_tells_what_leaving_tells():
    gone = lambda world: world[1]  # noqa: E731 who is shown no more
    held = lambda world: list(enumerate(world[0]))  # noqa: E731
    alike = list(oracle.erasures(SIZE, lambda value: Fraction(1, 4)))
    assert oracle.change(alike, lambda world: "the cohort", gone, held) == 0
    often = list(oracle.erasures(SIZE, lambda value: Fraction(1, 2) if value == 0 else Fraction(1, 10)))
    assert oracle.highest(oracle.beliefs(often, gone, held)) == Fraction(5, 7)  # stated: whoever leaves for their value
