"""Perturbation: what each method promises, against enumeration; and that a broken promise is found in the bytes."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import perturbed as oracle
from reveil.base.errors import GuaranteeError
from reveil.perturb import apply as applying
from reveil.perturb import perturb as job
from reveil.perturb.condensation import condense
from reveil.perturb.microaggregation import group_means, group_rows
from reveil.perturb.noise import add_noise, least_rows
from reveil.perturb.perturb import perturb
from reveil.perturb.pram import draw, invariant_of, keeping
from reveil.perturb.swapping import rank_distance, swap_pairs, swap_ranks

SEEDS = st.integers(0, 2**32)


def numbers(rows: int, columns: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, columns)) * rng.uniform(0.1, 100, columns) + rng.uniform(-50, 50, columns)


@given(st.lists(st.integers(0, 30), min_size=4, max_size=8), st.integers(2, 3))
def test_one_column_is_grouped_with_the_least_error_of_all(values: list[int], k: int) -> None:
    groups = group_rows(np.array(values, dtype=float)[:, None], k, "univariate")
    sizes = np.bincount(groups)
    assert sizes.min() >= k
    assert sizes.max() <= 2 * k - 1
    found = [np.flatnonzero(groups == g).tolist() for g in range(len(sizes))]
    assert oracle.squared_error(values, found) == oracle.least_error(values, k)


@given(
    st.integers(2, 9), st.integers(1, 4), st.integers(0, 120), SEEDS, st.booleans(), st.sampled_from(["mdav", "blocks"])
)
def test_mdav_groups_have_k_to_2k_minus_1_rows(
    k: int, columns: int, more: int, seed: int, tied: bool, algorithm: str
) -> None:
    values = numbers(k + more, columns, seed)
    values = np.round(values / 20) if tied else values
    groups = group_rows(values, k, algorithm)
    sizes = np.bincount(groups)
    assert sizes.min() >= k
    assert sizes.max() <= 2 * k - 1
    assert sizes.sum() == k + more
    means = group_means(values, groups)
    assert np.allclose(means.mean(axis=0), values.mean(axis=0))


def test_blocks_group_many_rows_and_stay_near_mdav() -> None:
    values = numbers(5_000, 3, 1)
    errors = {}
    for algorithm in ("mdav", "blocks"):
        groups = group_rows(values, 5, algorithm)
        assert set(np.bincount(groups)) <= set(range(5, 10))
        scaled = values / values.std(axis=0)
        errors[algorithm] = float(((scaled - group_means(scaled, groups)) ** 2).sum())
    assert errors["mdav"] < errors["blocks"] < 1.2 * errors["mdav"]


def test_mdav_finds_far_clusters() -> None:
    rng = np.random.default_rng(5)
    clusters = rng.permutation(np.repeat(np.arange(12), 4))
    groups = group_rows(clusters[:, None] * [1000.0, -700.0] + rng.normal(size=(48, 2)), 4, "mdav")
    assert len({(c, g) for c, g in zip(clusters, groups, strict=True)}) == 12


@given(st.integers(3, 8), st.integers(1, 4), st.integers(0, 40), SEEDS)
def test_condensed_groups_keep_mean_and_covariance(k: int, columns: int, more: int, seed: int) -> None:
    values = numbers(k + more, columns, seed)
    groups = group_rows(values, k, "mdav")
    drawn = condense(values, groups, np.random.default_rng(seed + 1))
    for g in range(groups.max() + 1):
        before, after = values[groups == g], drawn[groups == g]
        size = np.abs(before).max()
        assert np.allclose(after.mean(axis=0), before.mean(axis=0), rtol=0, atol=1e-9 * size)
        assert np.allclose(np.cov(after.T, bias=True), np.cov(before.T, bias=True), rtol=0, atol=1e-9 * size**2)
    assert np.isclose(drawn, values).all(axis=1).mean() < 0.1


@given(st.integers(1, 4), st.integers(0, 60), SEEDS, st.booleans(), st.booleans())
def test_noise_keeps_its_moments_exactly(columns: int, more: int, seed: int, correlated: bool, kept: bool) -> None:
    values = numbers(least_rows(columns) + more, columns, seed)
    rng = np.random.default_rng(seed + 1)
    noisy = add_noise(values, 0.5, correlated=correlated, keep_variance=kept, rng=rng)
    before, after = (np.cov(side.T, bias=True).reshape(columns, columns) for side in (values, noisy))
    factor = 1.25
    wanted = before * factor if correlated else before + 0.25 * np.diag(np.diag(before))
    assert np.allclose(after, wanted / factor if kept else wanted, rtol=1e-6)
    assert np.allclose(noisy.mean(axis=0), values.mean(axis=0))
    assert not np.isclose(noisy, values, rtol=1e-6).all()


def test_noise_of_columns_that_depend_on_each_other() -> None:
    values = numbers(40, 1, 3) * np.array([[1.0, 2.0]])
    noisy = add_noise(values, 0.3, correlated=True, keep_variance=True, rng=np.random.default_rng(0))
    assert np.allclose(np.cov(noisy.T), np.cov(values.T))


@given(st.lists(st.integers(0, 9), min_size=2, max_size=60), st.integers(1, 100), SEEDS)
def test_ranks_are_swapped_within_reach(values: list[int], percent: int, seed: int) -> None:
    array, distance = np.array(values), rank_distance(Fraction(percent), len(values))
    source = swap_ranks(array, distance, np.random.default_rng(seed))
    assert sorted(source.tolist()) == list(range(len(values)))
    assert (source[source] == np.arange(len(values))).all()  # pairs that exchange
    assert all(
        oracle.rank_distance(values, a, b) <= distance for a, b in zip(values, array[source].tolist(), strict=True)
    )


def test_rank_swapping_pairs_nearly_everybody_and_uses_its_reach() -> None:
    source = swap_ranks(np.arange(10_000), 500, np.random.default_rng(0))
    apart = np.abs(source - np.arange(10_000))
    assert (apart == 0).mean() < 0.01
    assert apart.max() > 490
    assert apart.mean() > 100


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.fractions(Fraction(1, 20), 1), SEEDS)
def test_swaps_are_pairs_within_strata(strata: list[int], share: Fraction, seed: int) -> None:
    array = np.array(strata)
    source = swap_pairs(array, share, np.random.default_rng(seed))
    assert (source[source] == np.arange(len(strata))).all()
    assert (array[source] == array).all()
    for stratum, size in Counter(strata).items():
        moved = int(((source != np.arange(len(strata))) & (array == stratum)).sum())
        assert moved == 2 * (size * share // 2)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6), st.data())
def test_invariant_matrices_leave_frequencies_alone(counts: list[int], data: st.DataObject) -> None:
    size, t = len(counts), np.array(counts)
    keep = data.draw(st.floats(0, 1))
    weights = data.draw(st.lists(st.integers(0, 9), min_size=size * size, max_size=size * size))
    stated = np.array(weights, dtype=float).reshape(size, size) + np.eye(size)
    stated /= stated.sum(axis=1, keepdims=True)
    for matrix in (keeping(t, keep, invariant=True), invariant_of(stated, t)):
        assert np.allclose(matrix.sum(axis=1), 1)
        assert (matrix >= 0).all()
        assert np.allclose(t @ matrix, t)
    assert np.allclose(keeping(t, keep, invariant=False).sum(axis=1), 1)


def test_drawing_follows_the_matrix() -> None:
    matrix = np.array([[0.7, 0.3, 0.0], [0.0, 0.5, 0.5], [0.25, 0.0, 0.75]])
    codes = np.repeat(np.arange(3), 200_000)
    new = draw(codes, matrix, np.random.default_rng(0))
    moves = np.array([np.bincount(new[codes == c], minlength=3) for c in range(3)]) / 200_000
    assert (moves[matrix == 0] == 0).all()
    assert np.abs(moves - matrix).max() < 0.006


def people(rows: int = 60, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "name": [f"p{i}" for i in range(rows)],
            "age": rng.integers(18, 90, rows),
            "salary": rng.lognormal(8, 0.6, rows),
            "hours": rng.normal(38, 9, rows),
            "ill": rng.choice(["flu", "cold", "gout", None], rows),
            "sex": rng.choice(["F", "M"], rows),
        }
    )


ROLES = {
    "name": "identifier",
    "age": "quasi",
    "salary": "sensitive",
    "hours": "insensitive",
    "ill": "sensitive",
    "sex": "quasi",
}
STEPS = {
    "noise": {"method": "noise", "columns": ["age", "salary"], "amount": "1/5"},
    "correlated noise": {
        "method": "noise",
        "columns": ["age", "salary", "hours"],
        "amount": 0.3,
        "correlated": True,
        "preserve": "variance",
    },
    "swap": {"method": "swap", "columns": ["salary", "ill"], "within": ["sex"], "share": 0.8},
    "swap together": {"method": "swap", "columns": ["salary", "ill"], "together": True},
    "rank-swap": {"method": "rank-swap", "columns": ["salary", "age"], "percent": 10},
    "pram": {"method": "pram", "columns": ["ill", "sex"], "keep": 0.7},
    "pram, not invariant": {"method": "pram", "columns": ["sex"], "keep": 0.7, "invariant": False},
    "microaggregate": {"method": "microaggregate", "columns": ["age", "salary"], "k": 4},
    "one column": {"method": "microaggregate", "columns": ["salary"], "k": 4, "digits": 1},
    "condense": {"method": "condense", "columns": ["age", "salary", "hours"], "k": 5},
}


@pytest.mark.parametrize("name", STEPS)
@settings(max_examples=15)
@given(rows=st.integers(20, 90), seed=st.integers(0, 10_000))
def test_every_method_keeps_its_promise_in_the_bytes(name: str, rows: int, seed: int) -> None:
    made = perturb(people(rows, seed), {"columns": ROLES, "perturb": [STEPS[name]]}, seed=seed)
    assert all(item.holds for item in made.checks)
    assert "name" not in made.table.columns


def broken(name: str, table: pl.DataFrame) -> pl.DataFrame:
    """The smallest change to one row that breaks what the method promises."""
    first = pl.int_range(pl.len()) == 0
    other = "salary" if "salary" in STEPS[name]["columns"] else "sex"
    new = pl.lit("X") if other == "sex" else pl.col(other) * 3 + 1000
    return table.with_columns(pl.when(first).then(new).otherwise(pl.col(other)).alias(other))


@pytest.mark.parametrize("name", STEPS)
def test_a_broken_promise_reveals_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emit = job.emit
    monkeypatch.setattr(job, "emit", lambda tables, *rest: emit({"table": broken(name, tables["table"])}, *rest))
    with pytest.raises(GuaranteeError) as refusal:
        perturb(people(), {"columns": ROLES, "perturb": [STEPS[name]]}, seed=1, out=tmp_path / "out")
    assert {fault.code for fault in refusal.value.faults} == {"R605"}
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("column", ["hours", "ill"])
def test_a_column_of_no_step_must_not_change(column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    emit = job.emit

    def reversed_column(tables: dict[str, pl.DataFrame], *rest: object) -> None:
        emit({"table": tables["table"].with_columns(pl.col(column).reverse())}, *rest)

    monkeypatch.setattr(job, "emit", reversed_column)
    with pytest.raises(GuaranteeError, match="columns of no step"):
        perturb(people(), {"columns": ROLES, "perturb": [STEPS["microaggregate"]]}, seed=1)


def test_values_that_were_swapped_across_strata_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The multiset of the column is as before, but not that within each sex."""
    monkeypatch.setattr(applying, "swap_pairs", lambda strata, share, rng: rng.permutation(len(strata)))
    with pytest.raises(GuaranteeError, match="combinations of"):
        perturb(people(), {"columns": ROLES, "perturb": [STEPS["swap"]]}, seed=1)


def test_ranks_swapped_too_far_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "rank_distance", lambda percent, rows: rows)
    with pytest.raises(GuaranteeError, match="ranks of 'salary'"):
        perturb(people(), {"columns": ROLES, "perturb": [STEPS["rank-swap"]]}, seed=1)


def test_a_matrix_that_is_not_followed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "draw", lambda codes, matrix, rng: (codes + 1) % len(matrix))
    with pytest.raises(GuaranteeError, match="moves of 'ill'"):
        perturb(people(300), {"columns": ROLES, "perturb": [STEPS["pram"]]}, seed=1)


def test_a_matrix_that_is_not_invariant_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "keeping", lambda counts, keep, invariant: keeping(counts, keep, False))
    with pytest.raises(GuaranteeError, match="invariance of 'ill'"):
        perturb(people(), {"columns": ROLES, "perturb": [STEPS["pram"]]}, seed=1)


def lazy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal of steps that change nothing is out of the way: the check of the bytes has to find them."""
    monkeypatch.setattr(job, "unchanged", lambda *_: [])


@pytest.mark.parametrize("name", ["swap", "swap together", "rank-swap", "pram", "condense"])
def test_publishing_the_original_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lazy(monkeypatch)
    monkeypatch.setattr(applying, "swap_pairs", lambda strata, share, rng: np.arange(len(strata)))
    monkeypatch.setattr(applying, "swap_ranks", lambda values, distance, rng: np.arange(len(values)))
    monkeypatch.setattr(applying, "draw", lambda codes, matrix, rng: codes)
    monkeypatch.setattr(applying, "condense", lambda values, groups, rng: values)
    with pytest.raises(GuaranteeError, match="changed rows of") as refusal:
        perturb(people(), {"columns": ROLES, "perturb": [STEPS[name]]}, seed=1)
    assert {fault.code for fault in refusal.value.faults} == {"R605"}


@pytest.mark.parametrize("share", [Fraction(7, 10), Fraction(9, 10)])
def test_swapping_fewer_or_more_rows_than_stated_is_found(share: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "swap_pairs", lambda strata, _, rng: swap_pairs(strata, share, rng))
    with pytest.raises(GuaranteeError, match="share of salary"):
        perturb(people(), {"columns": ROLES, "perturb": [STEPS["swap"]]}, seed=1)


@pytest.mark.parametrize("drawn", [Fraction(1, 10), Fraction(8, 10)])
def test_swapping_too_few_of_equal_values_is_found(drawn: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "swap_pairs", lambda strata, _, rng: swap_pairs(strata, drawn, rng))
    policy = {"columns": ROLES, "perturb": [{**STEPS["swap"], "columns": ["ill"]}]}
    if drawn == Fraction(8, 10):
        assert perturb(people(3_000), policy, seed=1)
        return
    with pytest.raises(GuaranteeError, match="share of ill"):
        perturb(people(3_000), policy, seed=1)


@pytest.mark.parametrize("name", ["pram", "pram, not invariant"])
def test_another_matrix_than_that_of_the_policy_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "keeping", lambda counts, keep, invariant: keeping(counts, 0.99, invariant))
    with pytest.raises(GuaranteeError, match="matrix of 'sex'") as refusal:
        perturb(people(2_000), {"columns": ROLES, "perturb": [STEPS[name]]}, seed=1)
    assert "moves of 'sex'" in str(refusal.value)


@given(st.lists(st.integers(1, 9), min_size=2, max_size=5), st.booleans(), SEEDS)
def test_the_check_and_the_method_agree_on_stated_matrices(weights: list[int], invariant: bool, seed: int) -> None:
    names = [f"v{i}" for i in range(len(weights))]
    total = sum(weights)
    turned = [weights[-i:] + weights[:-i] for i in range(len(weights))]
    matrix = {
        a: {b: f"{w}/{total}" for b, w in zip(names, row, strict=True)} for a, row in zip(names, turned, strict=True)
    }
    table = pl.DataFrame({"v": names + np.random.default_rng(seed).choice(names, 200).tolist()})
    step = {"method": "pram", "columns": ["v"], "matrix": matrix, "invariant": invariant}
    made = perturb(table, {"columns": {"v": "quasi"}, "perturb": [step]}, seed=seed)
    assert all(item.holds for item in made.checks)
