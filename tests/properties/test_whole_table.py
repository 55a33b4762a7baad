"""Average risk, sample and population uniqueness: judges and plans against the definitions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reveil
from oracle import whole
from reveil.base.errors import InfeasibleError, InputError
from reveil.history.history import History
from reveil.measure.population_risk import expected_uniques
from reveil.policy.policy import load_policy
from reveil.verify.judges.contract import Background, View
from reveil.verify.judges.registry import judges
from reveil.verify.judges.whole_table import uniqueness

TREE = {"A": ["a", "b"], "B": ["c", "d"]}
LABELS = {leaf: (leaf, node, "*") for node, leaves in TREE.items() for leaf in leaves}
COLUMNS = {"x": {"role": "quasi", "hierarchy": TREE}, "y": {"role": "quasi", "hierarchy": TREE}, "note": "insensitive"}
ROWS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), min_size=2, max_size=14)
SHARES = st.sampled_from([Fraction(n, d) for d in range(2, 9) for n in range(1, d)])


def table_of(rows: list[tuple[str, str]]) -> pl.DataFrame:
    return pl.DataFrame({"x": [a for a, _ in rows], "y": [b for _, b in rows], "note": ["-"] * len(rows)})


def cells_of(table: pl.DataFrame) -> list[tuple[Any, ...]]:
    return table.select("x", "y").rows()


def policy_of(promise: dict[str, Any], name: str = "auto", **method: Any) -> dict[str, Any]:
    return {"columns": COLUMNS, "guarantee": promise, "method": {"name": name, **method}}


def promised(key: str, share: Fraction) -> dict[str, Any]:
    more = {"sampled": "1/3"} if key == "population_uniqueness" else {}
    return {"model": key.replace("_", "-"), key: str(share), **more}


@given(st.lists(st.tuples(st.sampled_from(["1", "2", None]), st.sampled_from("ab")), min_size=1, max_size=20), SHARES)
@settings(max_examples=150, deadline=None)
def test_judges_say_what_the_definitions_say(rows: list[tuple[str | None, str]], bound: Fraction) -> None:
    """With missing values and ties; thresholds are compared exactly."""
    quasi = pl.DataFrame(
        {"x": [a for a, _ in rows], "y": [b for _, b in rows]}, schema={"x": pl.String, "y": pl.String}
    )
    kinds = {cells: number for number, cells in enumerate(dict.fromkeys(rows))}
    classes = np.array([kinds[row] for row in rows], dtype=np.int64)
    view = View(classes, quasi, {}, np.zeros(len(kinds), dtype=np.int64))
    for key, found in (
        ("average_risk", whole.average_risk(rows)),
        ("sample_uniqueness", whole.sample_uniqueness(rows)),
    ):
        (judge,) = judges(load_policy(policy_of(promised(key, bound))), Background())
        (verdict,) = judge.judge(view, History())
        assert verdict.worst == found and verdict.holds == (found <= bound)
        assert bool(verdict.violating_rows) == (not verdict.holds)


@pytest.mark.parametrize("seed", [*range(8), 9, 10])
def test_estimates_are_those_of_a_grid_and_of_the_report(seed: int) -> None:
    """The judge's search for Pitman's parameters against grids in plain Python, and against that of `reveil risk`."""
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, int(rng.integers(2, 40)), int(rng.integers(3, 60))).tolist()
    sizes, people = np.array(list(pl.Series(cells).value_counts()["count"])), len(cells) / float(rng.uniform(0.05, 1))
    found, wanted = uniqueness(sizes, people), whole.population_uniqueness(cells, people)
    assert found == pytest.approx(wanted, rel=5e-4, abs=1e-5)
    assert found == pytest.approx(expected_uniques(sizes, people) / people, rel=5e-3, abs=1e-5)


def test_estimates_of_every_seating_are_the_formula() -> None:
    """Nobody alone, everybody alone, and a class of two beside one of one: the ends of the formula."""
    assert (uniqueness(np.array([2, 2]), 40.0), uniqueness(np.array([1, 1]), 40.0)) == (0.0, 1.0)
    assert 0 < uniqueness(np.array([1, 2, 3, 4]), 10.0) < 1


@pytest.mark.parametrize("key", ["average_risk", "sample_uniqueness"])
@given(rows=ROWS, bound=SHARES)
@settings(max_examples=30, deadline=None)
def test_the_best_node_is_that_of_every_node(key: str, rows: list[tuple[str, str]], bound: Fraction) -> None:
    measured = getattr(whole, key)
    wanted = whole.best_nodes(rows, [LABELS, LABELS], lambda cells: measured(cells) <= bound)
    policy = policy_of(promised(key, bound), "full-domain")
    if wanted is None:
        with pytest.raises(InfeasibleError, match="R401"):
            reveil.anonymize(table_of(rows), policy, seed=1)
        return
    release = reveil.anonymize(table_of(rows), policy, seed=1)
    assert measured(cells_of(release.table)) <= bound and release.certificate.holds
    preview = reveil.compare(table_of(rows), policy, schemes=["full-domain"]).trials[0]
    assert preview.loss == pytest.approx(float(wanted), abs=1e-9)


@given(rows=st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("ab")), min_size=4, max_size=9), bound=SHARES)
@settings(max_examples=8, deadline=None)
def test_the_best_node_for_an_estimate_is_that_of_every_node(rows: list[tuple[str, str]], bound: Fraction) -> None:
    """Nodes nearer to the threshold than planner and judge may be apart are left out of account."""
    people, near = len(rows) * 3, []

    def passes(cells: list[Any]) -> bool:
        share = whole.population_uniqueness(cells, people, steps=16)
        near.append(abs(share - float(bound)) < 3e-2)
        return share <= float(bound)

    wanted = whole.best_nodes(rows, [LABELS, LABELS], passes)
    policy = policy_of(promised("population_uniqueness", bound))
    if wanted is not None and not any(near):
        trial = reveil.compare(table_of(rows), policy, schemes=["full-domain"]).trials[0]
        assert trial.loss == pytest.approx(float(wanted), abs=1e-9)
        assert reveil.anonymize(table_of(rows), policy, seed=1).certificate.holds


@pytest.mark.parametrize("key", ["average_risk", "sample_uniqueness"])
@given(rows=ROWS, bound=SHARES, strict=st.booleans())
@settings(max_examples=20, deadline=None)
def test_mondrian_keeps_the_whole_table_and_loses_no_more_than_k_would(
    key: str, rows: list[tuple[str, str]], bound: Fraction, strict: bool
) -> None:
    policy = policy_of(promised(key, bound), "mondrian", cuts="strict" if strict else "relaxed")
    try:
        release = reveil.anonymize(table_of(rows), policy, seed=1)
    except InfeasibleError:
        assert getattr(whole, key)([("*", "*")] * len(rows)) > bound
        return
    assert getattr(whole, key)(cells_of(release.table)) <= bound and release.certificate.holds


def test_mondrian_takes_smaller_groups_than_the_same_k_everywhere() -> None:
    """Average risk 1/5 over 600 people: groups of 5 everywhere lose more than groups that are 5 on average."""
    rng = np.random.default_rng(3)
    people = pl.DataFrame({"age": rng.normal(50, 15, 600).round(), "pay": rng.lognormal(8, 1, 600).round()})
    columns = {"age": "quasi", "pay": "quasi"}
    loss = {}
    for name, promise in (("k", {"k": 5}), ("average", {"model": "average-risk", "average_risk": "1/5"})):
        release = reveil.anonymize(people, {"columns": columns, "guarantee": promise}, seed=1)
        assert release.certificate.holds
        loss[name] = (
            reveil.compare(people, {"columns": columns, "guarantee": promise}, schemes=["mondrian"]).trials[0].loss
        )
    assert loss["average"] < loss["k"]


def test_with_other_conditions_and_within_the_allowance() -> None:
    """k, l and the average together; rows of classes that may not be shown are withheld first."""
    rng = np.random.default_rng(5)
    rows = [("abcd"[int(n)], "abcd"[int(m)]) for n, m in rng.integers(0, 4, (80, 2))]
    table = table_of(rows).with_columns(ill=pl.Series(rng.choice(list("pqr"), 80)))
    columns = {**COLUMNS, "ill": "sensitive"}
    for name in ("full-domain", "mondrian"):
        promise = {"k": 3, "l": 2, "average_risk": "1/6", "sample_uniqueness": 0}
        policy = {"columns": columns, "guarantee": promise, "method": {"name": name, "suppress": "1/10"}}
        release = reveil.anonymize(table, policy, seed=1)
        assert release.certificate.holds and len(release.certificate.verdicts) == 4
        assert whole.average_risk(cells_of(release.table)) <= Fraction(1, 6)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (policy_of({"average_risk": "1/5", "k": 2}, "cell"), "looks at all classes of the table together"),
        (policy_of({"population_uniqueness": 0.1, "sampled": 0.5, "k": 2}, "mondrian"), "estimated from all classes"),
        (policy_of({"population_uniqueness": 0.1, "k": 2}), "population_uniqueness"),
        (policy_of({"model": "average-risk", "average_risk": 1}), "promises nothing"),
        (policy_of({"sampled": 0.5, "k": 2}), "sampled does nothing"),
    ],
)  # fmt: skip
def test_what_does_not_keep_it_is_refused(policy: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as refused:
        load_policy(policy)
    assert words in str(refused.value)


def test_two_tables_series_and_bundles_are_refused() -> None:
    columns = {"id": "identifier", "x": "quasi", "ill": "sensitive"}
    two = {"columns": columns, "guarantee": {"k": 2, "l": 2, "average_risk": "1/5"}, "method": {"publish": "anatomy"}}
    many = {"columns": columns, "guarantee": {"k": 2, "average_risk": "1/5"}, "people": {"rows": "many"}}
    lasting = {"columns": columns, "values": {"change": "never"}}
    lasting |= {"guarantee": {"model": "m-invariance", "m": 3, "average_risk": "1/5"}}
    for policy, words in (
        (two, "publish = generalized"),
        (many, "has no meaning where"),
        (lasting, "cannot be planned"),
    ):
        with pytest.raises(InputError, match=words):
            load_policy(policy)


def test_what_not_even_the_whole_table_keeps_is_said_of_what_was_asked():
    table = pl.DataFrame({"x": [i % 7 for i in range(40)], "note": "-"})
    promise = {"model": "average-risk", "average_risk": "1/50"}
    with pytest.raises(InfeasibleError) as refusal:
        reveil.anonymize(table, {"columns": {"x": "quasi", "note": "insensitive"}, "guarantee": promise})
    assert [fault.where for fault in refusal.value.faults] == ["guarantee.average_risk"]
