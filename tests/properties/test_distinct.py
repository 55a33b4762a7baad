"""m-Distinct and m-Distinct*, individual view: the judge against the definitions, and what the lemmas promise."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oracle.updates import is_distinct, path_chances
from properties import lasting
from reveil.policy.policy import load_policy
from reveil.verify.judges.contract import Background
from reveil.verify.judges.registry import judges

CLOSED = {"a": "acdf", "b": "bdef", "x": "xce", "y": "ydf"}  # SOUNDNESS.md, section 3
OTHER = {"a": "adf", "b": "bce", "x": "xde", "y": "ycef"}


def judge_of(table, m=2, model="m-distinct", closure="refuse"):
    policy = load_policy(
        {
            "columns": {"name": "identifier", "age": "quasi", "illness": "sensitive"},
            "values": {"change": "transitions", "transitions": table, "closure": closure},
            "guarantee": {"model": model, "m": m, "view": "individual"},
        }
    )
    (judge,) = judges(policy, Background())
    return judge


def sets(table):
    values = set(table).union(*table.values())
    return {v: {*table.get(v, ()), v} for v in values}


@st.composite
def histories(draw):
    """A transitive relation, and groups of people who are regrouped at will."""
    values = "abcdef"
    table = {a: draw(st.sets(st.sampled_from(values), max_size=3)) | {a} for a in values}
    for through in values:
        for a in values:
            if through in table[a]:
                table[a] |= table[through]
    series = []
    for _ in range(draw(st.integers(1, 3))):
        people = draw(st.permutations(range(6)))
        release = []
        for place in (0, 3):
            members = people[place : place + draw(st.integers(1, 3))]
            size = len(members) + draw(st.integers(0, 1))
            shown = draw(st.permutations(values))[:size]
            release.append((tuple(sorted(members)), tuple(shown)))
        series.append(release)
    return {a: sorted(others) for a, others in table.items()}, series


@given(histories(), st.sampled_from([2, 3]), st.booleans())
@settings(max_examples=300, deadline=None)
def test_the_judge_says_what_the_definitions_say(case, m, star):
    table, series = case
    judge = judge_of(table, m, "m-distinct-star" if star else "m-distinct")
    verdicts = lasting.judged(judge, series)
    allowed = sets(table)
    chance = {a: {b: Fraction(1, len(others)) for b in others} for a, others in allowed.items()}
    for number in range(len(series)):
        so_far = series[: number + 1]
        present = {p for people, _ in so_far[-1] for p in people}
        chains = {p: [dict.fromkeys(v, 1) for r in so_far for who, v in r if p in who] for p in present}
        chances = [found for shown in chains.values() for found in path_chances(shown, chance)]
        highest = max(max(found.values()) for found in chances)
        fewest = min(sum(c > 0 for c in found.values()) for found in chances)
        keeps = is_distinct(so_far, m, allowed, star) and (not star or highest <= Fraction(1, m))
        before = all(v.holds for v in verdicts[:number])
        assume(before or number == 0)
        assert verdicts[number].holds == keeps
        assert verdicts[number].worst == (highest if star else fewest)
        if keeps:  # Lemma 3
            assert fewest >= m


def test_individual_view_does_not_see_what_all_members_together_tell():
    """Histories in which everybody, or some, are certain jointly, and every person alone is not."""
    regrouped = [[((0, 1), "ab"), ((2, 3), "xy")], [((0, 2), "cd"), ((1, 3), "ef")]]
    for table in (CLOSED, OTHER):
        verdicts = lasting.judged(judge_of({a: list(others) for a, others in table.items()}), regrouped)
        assert all(v.holds for v in verdicts)
        assert "together" in verdicts[-1].details["adversary"]


def test_lemma_4_needs_equal_chances():
    """{A,B}:ab ; {A,C}:a1 b with |CUS(a)| = 10 and CUS(b) = {b}: risk 10/11."""
    table = {"a": [f"a{n}" for n in range(1, 10)], "b": [], "c": []}
    wide = [[((0, 1), ("a", "b"))], [((0, 2), ("a1", "b"))]]
    first, second = lasting.judged(judge_of(table, 2, "m-distinct-star"), wide)
    assert first.holds and first.worst == Fraction(1, 2)
    assert not second.holds and second.worst == Fraction(10, 11)
    assert lasting.judged(judge_of(table, 2), wide)[1].holds


def test_a_step_without_a_pairing_is_refused():
    table = {"a": ["a", "d", "e"], "b": ["b", "f"], "c": ["c", "f"]}
    verdicts = lasting.judged(judge_of(table, 3), [[((0, 1, 2), "abc")], [((0, 1, 2), "def")]])
    assert [v.holds for v in verdicts] == [True, False]


@pytest.mark.parametrize("closure", ["refuse", "transitive", "one-step"])
def test_transitions_that_are_not_transitive(closure):
    chain = {"a": ["b"], "b": ["c"]}
    if closure == "refuse":
        with pytest.raises(Exception, match=r"R314.*'a' -> 'b' and 'b' -> 'c', but not 'a' -> 'c'"):
            judge_of(chain)
        return
    step = [[((0, 1), "ax")], [((0, 1), "cx")]]
    verdicts = lasting.judged(judge_of(chain, closure=closure), step)
    assert verdicts[1].holds == (closure == "transitive")
