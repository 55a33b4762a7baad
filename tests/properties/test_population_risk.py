"""Samples and populations against their definitions and against published figures."""

from __future__ import annotations

import json
from math import exp

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import reveil
from oracle import population as oracle
from reveil.base.errors import InputError
from reveil.cli.app import app
from reveil.measure.population_risk import (
    counted_risk,
    expected_uniques,
    fitted,
    individual_risk,
    likelihood,
    weighted_risk,
)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.floats(1, 30))
def test_individual_risk_is_the_sum_of_its_definition(f, weight):
    found = individual_risk(np.array([f]), np.array([f * weight]))[0]
    assert found == pytest.approx(oracle.individual_risk(f, f * weight), rel=1e-9)


def test_the_distribution_of_people_is_one():
    assert sum(oracle.negative_binomial(3, 0.4, j) for j in range(3, 200)) == pytest.approx(1)


SIZES = st.lists(st.integers(1, 6), min_size=2, max_size=12)
CHANCES = st.floats(0.05, 0.95)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.floats(0.1, 5), CHANCES)
def test_pitman_is_the_chance_of_coming_one_after_another(people, theta, alpha):
    total = 0.0
    for one in oracle.partitions(list(range(people))):
        kinds, times = np.unique([len(group) for group in one], return_counts=True)
        chance = exp(likelihood(theta, alpha, kinds, times))
        assert chance == pytest.approx(oracle.seated(one, theta, alpha))
        total += chance
    assert total == pytest.approx(1)


@settings(max_examples=40, deadline=None)
@given(SIZES)
def test_nothing_near_is_more_likely_than_what_was_fitted(sizes):
    theta, alpha = fitted(np.array(sizes))
    kinds, times = np.unique(sizes, return_counts=True)
    best = likelihood(theta, alpha, kinds, times)
    for other in np.geomspace(1e-6, 1e6, 40):
        assert max(likelihood(other, a, kinds, times) for a in np.linspace(0.01, 0.99, 40)) <= best + 1e-3


@settings(max_examples=40, deadline=None)
@given(SIZES, st.integers(1, 7))
def test_expected_uniques_are_the_mean_over_partitions(sizes, people):
    found = expected_uniques(np.array(sizes), float(people))
    if 1 not in sizes:
        assert found == 0
    elif max(sizes) == 1:
        assert found == people
    else:
        assert found == pytest.approx(oracle.expected_uniques(people, *fitted(np.array(sizes))), rel=1e-6, abs=1e-9)


ROWS = st.lists(st.tuples(st.sampled_from([1, 2, None]), st.sampled_from(["f", "m"])), min_size=1, max_size=12)


@settings(max_examples=40, deadline=None)
@given(ROWS, ROWS, st.data())
def test_counts_of_a_population(sample, others, data):
    everybody = pl.DataFrame([*sample, *others], schema={"a": pl.Int64, "b": pl.String}, orient="row")
    table = everybody[: len(sample)]
    found, rows = counted_risk(table, everybody), [*sample, *others]
    around = [rows.count(row) for row in sample]
    assert found.risks == tuple(1 / big for big in around)
    assert (found.journalist, found.sample_unique) == (1 / min(around), sum(sample.count(row) == 1 for row in sample))
    assert found.marketer == pytest.approx(sum(1 / big for big in around) / len(sample))
    assert found.uniqueness == sum(rows.count(row) == 1 for row in rows) / len(rows)
    weights = pl.Series("w", data.draw(st.lists(st.integers(1, 9), min_size=len(sample), max_size=len(sample))))
    weighted = weighted_risk(table, weights)
    big = [sum(w for other, w in zip(sample, weights, strict=True) if other == row) for row in sample]
    wanted = [oracle.individual_risk(sample.count(row), people) for row, people in zip(sample, big, strict=True)]
    assert weighted.risks == pytest.approx(wanted, rel=1e-9)
    assert weighted.marketer == pytest.approx(sum(1 / people for people in big) / len(sample))
    assert (weighted.journalist, weighted.people) == (1 / min(big), sum(weights))


def test_the_example_of_the_practice_guide():
    """Table "sample frequencies, population frequencies and individual disclosure risk", and its global risk."""
    keys = pl.DataFrame({"key": [1, 1, 2, 3, 4, 3, 5, 6, 7, 7]})
    found = weighted_risk(keys, pl.Series([180, 180, 215, 76, 186, 76, 180, 215, 186, 76]))
    wanted = [0.0054, 0.0054, 0.0251, 0.0126, 0.0282, 0.0126, 0.0290, 0.0251, 0.0074, 0.0074]
    assert found.risks == pytest.approx(wanted, abs=5.1e-5)
    assert found.global_risk == pytest.approx(0.01582, abs=5.1e-6)


def test_python_and_command(tmp_path):
    table = pl.DataFrame({"sex": ["f", "m", "m"], "zip": [1, 1, 1], "w": [10, 20, 30]})
    found = reveil.risk(table, weight="w")
    assert found.population.people == 60
    assert [one.columns for one in found.combinations if len(one.columns) == 2] == [("sex", "zip")]
    assert reveil.risk(table, ["sex"], sampled="0.5").population.people == 6
    assert reveil.risk(table, ["sex"]).population is None
    source = tmp_path / "people.csv"
    table.write_csv(source)
    called = CliRunner().invoke(app, ["risk", str(source), "--keys", "sex", "--weight", "w"])
    assert called.exit_code == 0, called.output
    assert "among 60 people" in called.output
    called = CliRunner().invoke(app, ["risk", str(source), "--keys", "sex", "--population", str(source), "--json"])
    assert json.loads(called.output)["population"]["counted"] is True


def test_refusals():
    table = pl.DataFrame({"sex": ["f", "m"], "w": [1, 0]})
    for how, code in (
        ({"weight": "w"}, "R903"), ({"weight": "x"}, "R903"), ({"weight": "w", "population": table}, "R903"),
        ({"keys": ["sex"], "population": table.drop("sex")}, "R904"), ({"population": table[:1]}, "R904"),
        ({"keys": ["sex", "w"], "weight": "w"}, "R903"),
    ):  # fmt: skip
        with pytest.raises(InputError) as caught:
            reveil.risk(table, **how)
        assert {fault.code for fault in caught.value.faults} == {code}
