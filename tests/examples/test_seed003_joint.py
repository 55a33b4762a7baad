"""Seed 003 in the joint view: histories that the paper's principle passes, and that give people away all the same."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest

from oracle import joint as oracle
from properties import lasting
from reveil.policy.policy import load_policy
from reveil.verify.judges.contract import Background
from reveil.verify.judges.registry import judges

A, B, C, D, E, F = range(6)
HISTORIES = {  # candidate update sets, model, m, series, and who is certain of what in release 1
    "two groups of two": (
        {"a": "acdf", "b": "bdef", "x": "xce", "y": "ydf"},
        ("m-distinct", 2),
        [[((A, B), "ab"), ((C, D), "xy")], [((A, C), "cd"), ((B, D), "ef")]],
        {A: "a", B: "b"},
    ),
    "one world": (
        {"a": "adf", "b": "bce", "x": "xde", "y": "ycef"},
        ("m-distinct", 2),
        [[((A, B), "ab"), ((C, D), "xy")], [((A, C), "cd"), ((B, D), "ef")]],
        {A: "b", B: "a", C: "x", D: "y"},
    ),
    "parted and together again": (
        {"a": "adfgh", "b": "bcegh", "c": "ch", "d": "dg", "e": "eg", "f": "fgh"},
        ("m-distinct", 2),
        [[((A, B), "ab")], [((A,), "cd"), ((B,), "ef")], [((A, B), "gh")]],
        {A: "b", B: "a"},
    ),
    "three, disjoint sets": (
        {"a": "ap1", "b": "bq2", "c": "cr3", "d": "dp2", "e": "eq1", "f": "fr3"},
        ("m-distinct-star", 3),
        [[((A, B, C), "abc"), ((D, E, F), "def")], [((A, B, D), "pqr"), ((C, E, F), "123")]],
        {C: "c", D: "f"},
    ),
}


def policy_of(sets, model, m, **more):
    table = {a: list(others) for a, others in sets.items()}
    return load_policy(
        {
            "columns": {"name": "identifier", "age": "quasi", "illness": "sensitive"},
            "values": {"change": "transitions", "transitions": table},
            "guarantee": {"model": model, "m": m, **more},
        }
    )


def last_verdict(policy, series):
    (judge,) = judges(policy, Background())
    return lasting.judged(judge, series)[-1]


@pytest.mark.parametrize("name", HISTORIES)
def test_what_passes_one_by_one_fails_together(name):
    sets, promise, series, certain = HISTORIES[name]
    chance = {a: {b: Fraction(1, len(others)) for b in others} for a, others in sets.items()}
    _, posterior, _ = oracle.beliefs(series, chance)
    assert all(posterior[person, 0] == {value: 1} for person, value in certain.items())
    alone = last_verdict(policy_of(sets, *promise, view="individual"), series)
    assert alone.holds, alone.statement
    together = last_verdict(policy_of(sets, *promise, compromised=0), series)
    assert not together.holds
    assert together.worst == 1


def test_changes_that_no_matching_explains_are_refused():
    sets = {"a": "ade", "b": "bf", "c": "cf"}
    series = [[((A, B, C), "abc")], [((A, B, C), "def")]]
    found = last_verdict(policy_of(sets, "m-distinct", 3), series)
    assert not found.holds
    assert found.details["cannot follow"] == 1


def test_unequal_chances_do_no_harm_in_a_closed_cohort():
    """Lemma 4 needs equal chances: regrouped, `{A,B}:ab ; {A,C}:a1 b` gives 10/11. Staying together gives 1/2."""
    sets = {"a": "a123456789", "b": "b"}
    series = [[((A, B), "ab")], [((A, B), "1b")]]
    found = last_verdict(policy_of(sets, "m-distinct-star", 2, compromised=0), series)
    assert found.holds
    assert found.worst == Fraction(1, 2)


def test_a_cohort_that_was_withheld_does_not_come_back():
    (judge,) = judges(policy_of({"a": "ab", "b": "ab", "c": "c"}, "m-distinct", 3), Background())
    series = [[((A, B, C), "abc")], [], [((A, B, C), "abc")]]
    past = lasting.history_of(series[:2])
    withheld = pl.DataFrame({"release": [2], "person": [A], "group": [-1], "illness": [0]})
    assert not judge.judge(lasting.view_of(series[2]), past)[0].details["not closed"]
    past = type(past)(2, "", past.persons, pl.concat([past.members, withheld]), past.groups, past.values, past.codebook)
    assert judge.judge(lasting.view_of(series[2]), past)[0].details["not closed"] == 1


def test_who_was_away_does_not_come_back():
    sets = {"a": "ab", "b": "ab", "c": "c"}
    series = [[((A, B, C), "abc")], [((A, B), "abc")], [((A, B, C), "abc")]]
    assert last_verdict(policy_of(sets, "m-distinct", 3), series).details["not closed"] == 1
