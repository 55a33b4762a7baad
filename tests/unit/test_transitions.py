"""Which value may become which: every way to say it, and every refusal."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import reveil
from reveil.background.transitions import domain, relation_between, relation_of, weights_of
from reveil.base.errors import InputError
from reveil.base.progress import silent
from reveil.history.history import History
from reveil.plan.methods import method
from reveil.policy.policy import load_policy
from reveil.table.encode import encode

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
        ({"diameter": 0}, {"role": "sensitive", "order": ["a"]}, "not below 1"),
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


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("flu;asthma;0.2\nflu;asthma;0.3\n", r"R312.*state 'flu' -> 'asthma' twice"),
        ("flu;asthma;0.2\nflu;asthma;0.2\n", r"R312.*state 'flu' -> 'asthma' twice"),
        ("flu;asthma;1.7\n", r"R312.*'flu' -> 'asthma' the probability 1.7, which is more than 1"),
        ("flu;asthma;often\n", r"R312.*'flu' -> 'asthma': write a number"),
        ("flu;asthma;1.7\ngout;flu;0.1\ngout;flu;0.2\n", r"(?s)R312.*more than 1.*R312.*'gout' -> 'flu' twice"),
    ],
)
def test_slips_in_a_file_are_refused(tmp_path, lines, words):
    (tmp_path / "t.csv").write_text("from;to;probability\n" + lines)
    with pytest.raises(InputError, match=words):
        weights_of(policy("t.csv", folder=tmp_path))


def test_what_is_no_slip(tmp_path):
    """A change stated twice without a probability says the same; chances that sum to more than 1 are divided."""
    (tmp_path / "twice.csv").write_text("from;to\nflu;asthma\nflu;asthma\n")
    assert weights_of(policy("twice.csv", folder=tmp_path))["flu"]["asthma"] == Fraction(1, 2)
    assert weights_of(policy({"flu": {"asthma": 1, "flu": 3}}))["flu"]["asthma"] == Fraction(1, 4)
    (tmp_path / "sums.csv").write_text("from;to;probability\nflu;asthma;1\nflu;flu;1\n")
    assert weights_of(policy("sums.csv", folder=tmp_path))["flu"]["asthma"] == Fraction(1, 2)


@pytest.mark.parametrize(
    ("candidates", "transitions", "words"),
    [
        ([], {"a": ["b"]}, "R316 candidates: have no appearance"),
        ([["a"], []], {"a": ["b"]}, "R316 candidates, appearance 2: has no values"),
        ([{"a": "x", "b": 0}], {"a": ["b"]}, r"(?s)R316.*'a' 'x' times.*R316.*'b' 0 times"),
        ([["a"]], {"a": {"b": "x"}}, r"R312.*'a' -> 'b': write a number"),
    ],
)
def test_update_graphs_of_what_cannot_be_followed(candidates, transitions, words):
    with pytest.raises(InputError, match=words):
        reveil.update_graph(candidates, transitions)


@pytest.mark.parametrize("promise", [{"model": "m-distinct-star", "m": 3}, {"model": "k-anonymity", "k": 2}])
def test_one_step_is_for_m_distinct_alone(promise):
    columns = {"id": "identifier", "age": "quasi", "ill": "sensitive"}
    values = {"change": "transitions", "transitions": {"a": ["b"]}}
    with pytest.raises(InputError, match=rf'"one-step" does nothing with model "{promise["model"]}"'):
        load_policy({"columns": columns, "values": values | {"closure": "one-step"}, "guarantee": promise})
    for closure in ("refuse", "transitive"):
        load_policy({"columns": columns, "values": values | {"closure": closure}, "guarantee": promise})


def test_values_printed_with_their_defaults_can_be_read_back():
    content = {"columns": {"age": "quasi"}, "guarantee": {"k": 2}}
    printed = load_policy(content).to_dict()
    again = load_policy(content | {"values": printed["values"], "method": printed["method"]})
    assert again.to_dict() == printed


def test_r314_advises_what_the_model_can_use():
    for model, advised in (("m-distinct", True), ("m-distinct-star", False)):
        with pytest.raises(InputError, match="R314") as refused:
            weights_of(policy({"a": ["b"], "b": ["c"]}, promise={"model": model}))
        assert ("one-step" in str(refused.value)) == advised


def test_cohorts_are_not_planned_for_the_test_in_pairs():
    """Somebody who leaves a cohort would make it fail the paper's test, though a closed cohort tells nothing new."""
    content = {
        "columns": {"id": "identifier", "age": "quasi", "ill": "sensitive"},
        "values": {"change": "never"},
        "guarantee": {"model": "historical-safety", "m": 3, "n": 2, "closure": "pairwise"},
        "method": {"name": "cohorts"},
    }
    with pytest.raises(InputError, match=r'method "cohorts" needs closure = "transitive"'):
        load_policy(content)
    content["guarantee"]["closure"] = "transitive"
    assert load_policy(content).method.name == "cohorts"


@pytest.mark.parametrize(
    ("promise", "name", "used"),
    [
        ({"model": "m-invariance"}, "auto", False),
        ({"model": "m-invariance"}, "cohorts", True),
        ({"model": "historical-safety", "n": 2, "closure": "pairwise"}, "auto", False),
        ({"model": "historical-safety", "n": 2}, "auto", True),
        ({"model": "compromise-safety", "m": 3}, "auto", True),
        ({"model": "m-distinct", "view": "individual"}, "auto", True),
        ({"model": "m-distinct", "m": 3}, "auto", True),
    ],
)
def test_strict_cuts_are_used_or_refused(promise, name, used):
    evolving = promise["model"] == "m-distinct"
    table = {v: [v] for v in "abcdefghijkl"}
    content = {
        "columns": {"id": "identifier", "age": "quasi", "zip": "quasi", "ill": "sensitive"},
        "values": {"change": "transitions", "transitions": table} if evolving else {"change": "never"},
        "guarantee": {"m": 2, **promise},
        "method": {"name": name, "cuts": "strict", "infeasible": "withhold"},
    }
    if not used:
        with pytest.raises(InputError, match=r"method.cuts does nothing here"):
            load_policy(content)
    usual = load_policy(content | {"method": content["method"] | {"cuts": "relaxed"}})
    if used:
        rng = np.random.default_rng(1)
        rows = {"id": range(40), "age": rng.integers(20, 60, 40), "zip": rng.integers(0, 4, 40)}
        people = pl.DataFrame(rows | {"ill": rng.choice(list("abcdefghijkl"), 40)})
        plans = []
        for rules in (usual, load_policy(content)):
            encoded = replace(encode(people, rules), persons=np.arange(40))
            plans.append(method(rules)(encoded, History(), rules, seed=1, progress=silent).groups.tolist())
        assert plans[0] != plans[1]
