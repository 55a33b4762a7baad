"""Priors: the judge's sums and bounds, and the planner's tests, against listing every world."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import priors as oracle
from reveil.background.prior import Prior
from reveil.base.errors import InfeasibleError
from reveil.history.history import History
from reveil.plan.priors.odds import Odds, accepts
from reveil.verify.judges import posterior
from reveil.verify.judges.contract import View
from reveil.verify.judges.robust import RRobustnessJudge

enumerate_posteriors, x_or_not_posterior = oracle.enumerate_posteriors, oracle.x_or_not_posterior

WEIGHTS = st.sampled_from([0, 1, 1, 2, 3, 5, 8, 40])


@st.composite
def groups(draw: st.DrawFn) -> tuple[list[list[Fraction]], list[int], list[int]]:
    """Priors of the kinds over the values, the kind of each person, the published values."""
    n = draw(st.integers(2, 5))
    width, kinds = draw(st.integers(1, n)), draw(st.integers(1, n))
    table = draw(st.lists(st.lists(WEIGHTS, min_size=width, max_size=width), min_size=kinds, max_size=kinds))
    kind = draw(st.lists(st.integers(0, kinds - 1), min_size=n, max_size=n))
    values = draw(st.lists(st.integers(0, width - 1), min_size=n, max_size=n))
    return [[Fraction(p, 60) for p in row] for row in table], kind, values


def compact(
    table: list[list[Fraction]], kind: list[int], values: list[int]
) -> tuple[list[int], list[int], list[int], list[int], list[list[Fraction]]]:
    kinds, shown = sorted(set(kind)), sorted(set(values))
    people, held = [kind.count(k) for k in kinds], [values.count(v) for v in shown]
    return kinds, shown, people, held, [[table[k][v] for v in shown] for k in kinds]


@settings(max_examples=400, deadline=None)
@given(groups())
def test_sums_equal_the_list_of_worlds_and_the_bound_is_never_below(
    drawn: tuple[list[list[Fraction]], list[int], list[int]],
) -> None:
    table, kind, values = drawn
    kinds, shown, people, held, rows = compact(table, kind, values)
    truth = enumerate_posteriors([table[k] for k in kind], values)
    found = posterior.exact(people, held, rows)
    weights = np.array([[float(p) for p in row] for row in rows])
    summed, bound = np.zeros_like(weights), np.zeros_like(weights)
    error = posterior.posteriors(np.array(people), np.array(held), weights, summed)
    slack = posterior.exchange_bound(np.array(people), np.array(held), weights, bound)
    largest = posterior.exact_bound(people, held, rows)
    assert found is not None
    if truth is None:
        assert error == np.inf
        assert all(p == 1 for row in found for p in row)
        return
    assert error < 1e-12
    for person, k in enumerate(kind):
        for value in shown:
            p, t, x = truth[person][value], kinds.index(k), shown.index(value)
            assert found[t][x] == p
            assert abs(Fraction(float(summed[t, x])) - p) <= Fraction(error) * p
            assert Fraction(float(bound[t, x])) * (1 + Fraction(slack)) >= p
            assert largest >= p


def test_thousands_of_groups() -> None:
    """2,000 groups of up to 4 people: sums equal the list of worlds, the bound is never below it."""
    rng = np.random.default_rng(4)
    for _ in range(2000):
        n, kinds = int(rng.integers(2, 5)), int(rng.integers(1, 5))
        table = [[Fraction(int(p), 1000) for p in row] for row in rng.integers(1, 400, (kinds, n))]
        kind, values = rng.integers(0, kinds, n).tolist(), rng.integers(0, n, n).tolist()
        index, shown, people, held, rows = compact(table, kind, values)
        truth = enumerate_posteriors([table[k] for k in kind], values)
        found = posterior.exact(people, held, rows)
        assert truth is not None
        assert found is not None
        for person, k in enumerate(kind):
            assert found[index.index(k)] == [truth[person][v] for v in shown]
        assert posterior.exact_bound(people, held, rows) >= max(max(row) for row in found)


@pytest.mark.parametrize("seed", range(4))
def test_sums_over_values_and_over_people_agree_on_large_groups(seed: int) -> None:
    """Two kinds of people, 12 to 14 values: one side has thousands of states, the other a few dozen."""
    rng = np.random.default_rng(seed)
    held = np.array([1] * 12 + [2])
    people = np.array([5, 9])
    weights = rng.uniform(0.01, 1, (2, 13))
    few, many = np.zeros((13, 2)), np.zeros((2, 13))
    posterior.sum_worlds(held, people, np.ascontiguousarray(weights.T), few)
    posterior.sum_worlds(people, held, weights, many)
    assert np.allclose(few.T * held / people[:, None], many, rtol=1e-12)
    assert np.allclose(many @ np.ones(13), 1.0)
    assert np.allclose(people @ many, held)


def test_extreme_odds_are_not_trusted_to_floats() -> None:
    """A total that floats cannot hold is decided in whole numbers, not rounded."""
    tiny = Fraction(1, 10**60)
    rows = [[tiny, tiny * 3, Fraction(1)], [tiny * 2, tiny, Fraction(1)], [tiny, tiny, Fraction(1)]]
    found = posterior.exact([1, 1, 1], [1, 1, 1], rows)
    truth = enumerate_posteriors(rows, [0, 1, 2])
    assert truth is not None
    assert found == [[row[v] for v in range(3)] for row in truth]


@settings(max_examples=150, deadline=None)
@given(groups(), st.sampled_from([Fraction(2), Fraction(5, 2), Fraction(3), Fraction(10, 3)]))
def test_the_judge_decides_as_the_list_of_worlds_does(
    drawn: tuple[list[list[Fraction]], list[int], list[int]], r: Fraction
) -> None:
    table, kind, values = drawn
    truth = enumerate_posteriors([table[k] for k in kind], values)
    worst = 1 if truth is None else max(max(row.values()) for row in truth)
    (verdict,) = judge(table, kind, values, r)
    assert verdict.holds == (worst <= 1 / r)


def judge(
    table: list[list[Fraction]],
    kind: list[int],
    values: list[int],
    r: Fraction,
    blind: bool = False,
    condition: str = "exact",
) -> list:
    n, width = len(kind), len(table[0])
    names = tuple(f"v{v}" for v in range(width))
    prior = Prior("p", ("who",), "x", tuple((f"k{k}",) for k in range(len(table))), names, tuple(map(tuple, table)))
    people = None if blind else pl.DataFrame({"class": np.zeros(n, dtype=np.int64), "p": np.array(kind)})
    cell = "{" + ",".join(sorted({f"k{k}" for k in kind})) + "}"
    view = View(
        np.zeros(n, dtype=np.int64),
        pl.DataFrame({"who": [cell] * n}),
        {"x": pl.Series([names[v] for v in values])},
        np.zeros(1, dtype=np.int64),
        None,
        people,
    )
    return RRobustnessJudge(r, prior, condition).judge(view, History())


@settings(max_examples=150, deadline=None)
@given(groups(), st.sampled_from([Fraction(2), Fraction(3)]))
def test_from_bytes_alone_nothing_is_accepted_that_worlds_refute(
    drawn: tuple[list[list[Fraction]], list[int], list[int]], r: Fraction
) -> None:
    table, kind, values = drawn
    truth = enumerate_posteriors([table[k] for k in kind], values)
    (verdict,) = judge(table, kind, values, r, blind=True)
    if verdict.holds and truth is not None:
        assert max(max(row.values()) for row in truth) <= 1 / r


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_what_the_planner_accepts_the_list_of_worlds_accepts(data: st.DataObject) -> None:
    """Its tests may refuse too much, never too little; the Delta test accepts what Theorem 1 covers."""
    n, r = data.draw(st.integers(2, 5)), data.draw(st.sampled_from([Fraction(2), Fraction(5, 2), Fraction(3)]))
    near = st.sampled_from([10, 11, 12, 14]) if data.draw(st.booleans()) else WEIGHTS
    table = data.draw(st.lists(st.lists(near, min_size=n, max_size=n), min_size=1, max_size=3))
    kind = data.draw(st.lists(st.integers(0, len(table) - 1), min_size=n, max_size=n))
    rows = [[Fraction(p, 100) for p in row] for row in table]
    truth = enumerate_posteriors([rows[k] for k in kind], list(range(n)))
    delta = data.draw(st.booleans())
    size = -(-r.numerator // r.denominator)
    odds = Odds(
        kinds=np.array(kind, dtype=np.int32)[:, None],
        first=np.array([0, len(table)]),
        table=np.array(table) / 100,
        r=float(r),
        delta=delta,
        size=size,
        place=np.zeros((n, 1)),
    )
    accepted = accepts(odds, np.arange(n, dtype=np.int32), np.arange(n), n)
    if accepted and delta:
        for value in range(n):
            chances = [rows[k][value] for k in kind]
            if 0 < max(chances) < 1:
                assert all(x_or_not_posterior(chances, v) <= 1 / r for v in range(n))
    elif accepted and truth is not None:
        assert max(max(row.values()) for row in truth) <= 1 / r
    elif not delta and not accepted and truth is not None and n >= size:
        assert max(max(row.values()) for row in truth) > (1 / r) * (1 - Fraction(1, 10**6))


@pytest.mark.parametrize("method", ["signatures", "linkage"])
@pytest.mark.parametrize("seed", range(6))
def test_every_group_of_a_release_is_robust(method: str, seed: int, tmp_path: Path) -> None:
    """Whole releases of random tables with random priors: each group's worlds are listed."""
    import reveil

    rng = np.random.default_rng(seed)
    n, values = 60, ["a", "b", "c", "d", "e", "f"]
    sex = rng.choice(["F", "M", "X"], n, p=[0.5, 0.45, 0.05])
    weights = {who: rng.uniform(1, 1.6 if seed % 2 else 6, 6) for who in "FMX"}
    odds = {who: [Fraction(int(w * 1000), int(1000 * sum(row))) for w in row] for who, row in weights.items()}
    odds = {who: [*row[:-1], 1 - sum(row[:-1])] for who, row in odds.items()}
    lines = [f"{who};{v};{p}" for who, row in odds.items() for v, p in zip(values, row, strict=True)]
    (tmp_path / "p.csv").write_text("sex;value;probability\n" + "\n".join(lines))
    disease = [str(rng.choice(values, p=[float(p) for p in odds[who]])) for who in sex]
    table = pl.DataFrame({"sex": sex, "age": rng.integers(20, 60, n), "disease": disease})
    policy = {
        "columns": {"sex": "quasi", "age": "quasi", "disease": "sensitive"},
        "guarantee": {"model": "r-robustness", "r": 3, "priors": ["p.csv"]},
        "method": {"infeasible": "withhold", "name": method},
        "folder": tmp_path,
    }
    release = reveil.anonymize(table, policy, seed=seed)
    published = np.flatnonzero(release.groups >= 0)
    assert len(published) > n / 2
    for group in np.unique(release.groups[published]):
        members = np.flatnonzero(release.groups == group)
        held = [values.index(disease[i]) for i in members]
        if len(members) <= 8:
            truth = enumerate_posteriors([odds[sex[i]] for i in members], held)
            assert truth is not None
            assert max(max(row.values()) for row in truth) <= Fraction(1, 3)
    if (release.groups < 0).any():
        policy["method"] = {"name": method}
        with pytest.raises(InfeasibleError, match="R440"):
            reveil.anonymize(table, policy, seed=seed)


def test_the_delta_condition_compares_an_r_of_many_digits_exactly() -> None:
    """Three people of one kind with three values: 1/3. 64 bits do not hold the digits of r."""
    for r, holds in (("2.99999999999999999999", True), ("3.00000000000000000001", False)):
        (verdict,) = judge([[Fraction(1, 3)] * 3], [0, 0, 0], [0, 1, 2], Fraction(r), condition="delta")
        assert verdict.holds == holds
