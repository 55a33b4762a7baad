"""What docs/evolving-values-joint.md says of people who come back, over all worlds of small cohorts."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.coming_back import ahead, beliefs, outcomes, worst_guess
from properties.test_jointly import relations

ALWAYS, AWAY_ONCE = (True, True, True), (True, False, True)


@st.composite
def cases(draw):
    """A cohort of two or three over three releases, some of whom are away in the second."""
    weights = draw(relations("abc"))
    chance = {a: {b: Fraction(w, sum(row.values())) for b, w in row.items()} for a, row in weights.items()}
    first = draw(st.lists(st.sampled_from(sorted(chance)), min_size=2, max_size=3))
    away = draw(st.integers(1, 2 if len(first) < 3 else 1))
    return first, [AWAY_ONCE] * away + [ALWAYS] * (len(first) - away), chance


def test_their_own_value_in_their_old_place_makes_people_certain():
    chance = {"a": {"a": Fraction(1, 2), "b": Fraction(1, 2)}, "b": {"b": Fraction(1)}, "x": {"x": Fraction(1)}}
    there = [AWAY_ONCE, ALWAYS]
    shown = (("a", "x"), ("b", "x"), ("a", "x"))  # nobody gets from b to a but by coming back
    found = {way: outcomes("ax", there, chance, way) for way in ("own", "stand-in", "meeting")}
    assert beliefs(found["own"][shown], 0)[0, 0, "a"] == 1
    assert shown not in found["stand-in"] and shown not in found["meeting"]
    assert max(worst_guess(one, there, 0) for one in found["own"].values()) == 1
    assert max(beliefs(one, 0)[0, 0, "a"] for one in found["meeting"].values()) == Fraction(1, 2)


@given(cases())
@settings(max_examples=20, deadline=None)
def test_a_place_that_goes_on_until_they_meet_is_like_all_others(case):
    """Places stay alike, and on return one's own value follows from what the cohort showed when one left."""
    first, there, chance = case
    for way in ("stand-in", "meeting"):
        for rows, worlds in outcomes(first, there, chance, way).items():
            for (_, release, value), belief in beliefs(worlds, 1).items():
                assert belief == Fraction(rows[release].count(value), len(first))
            expected = ahead(rows[0], chance, 2)
            for (person, release, value), belief in beliefs(worlds, 0).items():
                if release == 2 and there[person] == AWAY_ONCE:
                    assert belief == expected[value] / len(first)


@given(cases())
@settings(max_examples=8, deadline=None)
def test_who_is_known_tells_no_more_of_others_than_one_place(case):
    first, there, chance = case
    if len(first) < 3:
        return
    for rows, worlds in outcomes(first, there, chance, "stand-in").items():
        shown = max(row.count(value) for row in rows for value in row)
        most = max(Fraction(shown), *ahead(rows[0], chance, 2).values())
        assert worst_guess(worlds, there, 1) <= min(Fraction(1), most / (len(first) - 1))
