"""Which value may become which: every way to say it, and every refusal."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import reveil
from reveil.encode import encode
from reveil.errors import InputError
from reveil.policy import load_policy
from reveil.transitions import domain, relation_between, relation_of, weights_of

CHAPTERS = {"respiratory": ["flu", "asthma"], "digestive": ["colitis", "gastritis", "ulcer"]}


def policy(transitions, *, sensitive="sensitive", folder=None, promise=None, **values):
    content = {
        "columns": {"id": "identifier", "age": "quasi", "ill": sensitive},
        "values": {"change": "transitions", "transitions": transitions, **values},
        "guarantee": {"model": "m-distinct", "m": 2, "view": "individual", **(promise or {})},
    }
    return load_policy(content if folder is None else content | {"folder": folder})


def test_a_file_with_chances(tmp_path):
    (tmp_path / "t.csv").write_text("from;to;probability\nflu;asthma;0.25\nasthma;asthma;1\n")
    relation = relation_of(policy("t.csv", folder=tmp_path), ["asthma", "flu", "gout"])
    assert relation.probability(1, 0) == Fraction(1, 4) and relation.probability(1, 1) == Fraction(3, 4)
    assert relation.weights.tolist() == [[1, 0, 0], [1, 3, 0], [0, 0, 1]]
    assert relation.totals.tolist() == [1, 4, 1] and not relation.uniform


def test_a_file_without_chances_and_missing_values(tmp_path):
    (tmp_path / "t.csv").write_text("from;to\nflu;asthma\n;flu\nasthma;\nflu;\nasthma;flu\n;asthma\n")
    relation = relation_of(policy("t.csv", folder=tmp_path), ["flu", None, "asthma"])
    assert relation.allowed.all() and relation.uniform
    assert relation.probability(0, 2) == Fraction(1, 3)


def test_levels_of_a_hierarchy_and_blocks_of_neighbours():
    ill = {"role": "sensitive", "hierarchy": CHAPTERS}
    by_level = weights_of(policy({"level": 1}, sensitive=ill))
    assert by_level["flu"] == {"flu": Fraction(1, 2), "asthma": Fraction(1, 2)}
    assert set(by_level["ulcer"]) == {"colitis", "gastritis", "ulcer"}
    ordered = {"role": "sensitive", "order": list("abcde")}
    blocks = weights_of(policy({"diameter": 2}, sensitive=ordered))
    assert [sorted(blocks[v]) for v in "abcde"] == [["a", "b"], ["a", "b"], ["c", "d"], ["c", "d"], ["e"]]
    assert domain(policy({"diameter": 9}, sensitive=ordered)) == list("abcde")


@pytest.mark.parametrize(
    ("transitions", "sensitive", "words"),
    [
        ({"level": 1}, "sensitive", "needs a hierarchy"),
        ({"diameter": 2}, "sensitive", "needs an order or a hierarchy"),
        ({"radius": 2}, "sensitive", "one rule|a rule"),
        ({"diameter": 0}, {"role": "sensitive", "order": ["a"]}, "greater than or equal to 1"),
    ],
)
def test_rules_that_cannot_be_followed(transitions, sensitive, words):
    with pytest.raises(InputError, match=words):
        policy(transitions, sensitive=sensitive)


@pytest.mark.parametrize(
    ("promise", "words"),
    [
        ({"compromised": 1}, "compromised does nothing"),
        ({"refill": 3}, "refill does nothing"),
        ({"tau": "1/2"}, "tau does nothing"),
        ({"m": 1}, "hides nothing"),
        ({"t": 0.2}, "cannot be planned together"),
        ({"model": "l-diversity", "l": 2, "m": None}, "view does nothing"),
    ],
)
def test_parameters_that_would_be_idle(promise, words):
    with pytest.raises(InputError, match=words):
        policy({"a": ["b"]}, promise=promise)


def test_models_need_transitions():
    content = {
        "columns": {"id": "identifier", "age": "quasi", "ill": "sensitive"},
        "values": {"change": "never"},
        "guarantee": {"model": "m-distinct", "m": 2, "view": "individual"},
    }
    with pytest.raises(InputError, match=r'needs values.change = "transitions"'):
        load_policy(content)
    with pytest.raises(InputError, match="closure does nothing"):
        load_policy(content | {"values": {"change": "never", "closure": "transitive"}})


@pytest.mark.parametrize(
    ("transitions", "closure", "words"),
    [
        ({"a": {"b": 1}}, "refuse", "R313.*never let 'a' stay"),
        ({"a": ["b"], "b": ["c"]}, "refuse", "R314.*'a' -> 'b' and 'b' -> 'c', but not 'a' -> 'c'"),
        ({"a": {"b": "1/4"}}, "transitive", "R314.*chain"),
        ({"a": {"b": "1/4", "c": -1}}, "refuse", "R312.*negative"),
        ({"a": {"b": "1/1000000007", "c": "1/998244353", "d": "1/999999937"}}, "refuse", "R315.*fewer digits"),
    ],
)
def test_relations_that_are_refused(transitions, closure, words):
    with pytest.raises(InputError, match=words):
        relation_of(policy(transitions, closure=closure), list("abcd"))


def test_the_closure_allows_all_chains():
    closed = weights_of(policy({"a": ["b"], "b": ["c"], "d": ["a"]}, closure="transitive"))
    assert sorted(closed["d"]) == list("abcd") and closed["d"]["c"] == Fraction(1, 4)
    assert sorted(closed["c"]) == ["c"]


def test_too_many_values():
    with pytest.raises(InputError, match=r"R315.*5,001 values"):
        relation_between(range(5_001), {})


def test_every_value_of_the_relation_has_a_code_of_the_columns_type():
    table = pl.DataFrame({"id": [1, 2], "age": [30, 40], "ill": [3, 1]})
    encoded = encode(table, policy({"1": ["2", "3"]}))
    assert encoded.sensitive[0].values == (1, 3, 2)
    later = encode(table.with_columns(ill=pl.Series([2, 9])), policy({"1": ["2", "3"]}), {"ill": [1, 3, 2]})
    assert later.sensitive[0].values == (1, 3, 2, 9)
    assert later.codes[:, 0].tolist() == [2, 3]
    with pytest.raises(InputError, match=r"R312.*'two'"):
        encode(table, policy({"1": ["two"]}))
    relation = relation_of(policy({"1": ["2", "3"]}), later.sensitive[0].values)
    assert np.array_equal(relation.allowed[0], [True, True, True, False])


@pytest.mark.parametrize("model", ["m-distinct", "m-invariance"])
def test_promises_about_series_are_refused_for_one_release(model):
    rules = policy({"a": ["b"]})
    if model == "m-invariance":
        values = {"change": "never"}
        columns = {"id": "identifier", "age": "quasi", "ill": "sensitive"}
        rules = load_policy({"columns": columns, "values": values, "guarantee": {"model": model, "m": 2}})
    with pytest.raises(InputError, match=r"R225.*reveil publish"):
        reveil.anonymize(pl.DataFrame({"id": [1, 2], "age": [30, 40], "ill": ["a", "b"]}), rules)
