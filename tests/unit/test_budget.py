"""Budgets: the numbers that were computed independently, and what must hold for every strategy."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reveil.base.errors import InputError
from reveil.plan.budgets.budget import (
    Pace,
    ever_linked,
    largest_share,
    lasts,
    power,
    share_spent,
    sizes,
    smallest_group,
    survival,
)
from reveil.policy.policy import load_policy

F = Fraction
HALF = F(2)


@pytest.mark.parametrize(
    ("pace", "expected"),
    [
        (Pace(HALF, "constant-ratio", horizon=2), [4, 3]),
        (Pace(HALF, "constant-ratio", horizon=4), [7, 6, 6, 7]),
        (Pace(HALF, "geometric", rate=F(4, 5)), [8, 10, 11, 14, 18, 23, 27, 35, 44, 53]),
        (Pace(HALF, "telescoping"), [4, 7, 14, 27, 43, 60, 81, 104, 130, 160]),
        (Pace(HALF, "greedy"), [2, None, None]),
    ],
)
def test_group_sizes_with_slack_carried_forward(pace, expected):
    assert sizes(pace, len(expected)) == expected


@pytest.mark.parametrize(
    ("l", "horizon", "ratio"),
    [(2, 1, 2.0), (2, 2, 3.414), (2, 4, 6.285), (2, 5, 7.73), (2, 10, 14.93), (2, 20, 29.36), (5, 10, 45.3)],
)
def test_constant_ratio(l, horizon, ratio):  # noqa: E741 - the name the field uses
    share = largest_share(F(1), Pace(F(l), "constant-ratio", horizon=horizon).target(1))
    assert float(1 / share) == pytest.approx(ratio, abs=0.05 if l == 5 else 0.006)


@pytest.mark.parametrize(
    ("rate", "shares"), [(F(1, 2), [0.2929, 0.1591, 0.0830, 0.0424]), (F(4, 5), [0.1295, 0.1050, 0.0849, 0.0685])]
)
def test_geometric_shares_without_slack(rate, shares):
    pace = Pace(HALF, "geometric", rate=rate)
    before = F(1)
    for step, share in enumerate(shares, 1):
        assert float(1 - pace.target(step) / before) == pytest.approx(share, abs=6e-5)
        before = pace.target(step)


def test_open_strategies_never_exhaust_the_budget_and_let_groups_grow():
    for pace in (
        Pace(HALF, "geometric", rate=F(1, 2)),
        Pace(HALF, "telescoping"),
        Pace(F(3), "geometric", rate=F(9, 10)),
    ):
        found = sizes(pace, 40)
        assert None not in found
        assert ever_linked([(1, n) for n in found]) < 1 / pace.l
        assert found[-1] > 4 * found[0]


def test_the_horizon_is_used_up_exactly():
    pace = Pace(HALF, "constant-ratio", horizon=2)
    assert ever_linked([(1, n) for n in sizes(pace, 2)]) == F(1, 2)
    assert sizes(pace, 3)[2] is None
    assert pace.target(2) == pace.floor == F(1, 2)
    assert pace.target(1, steps=1) == F(1, 2)  # somebody who comes in the last release may use everything


@settings(max_examples=200, deadline=None)
@given(
    st.fractions(F(51, 50), 20, max_denominator=50),
    st.integers(1, 40),
    st.sampled_from(["constant-ratio", "geometric", "telescoping", "greedy"]),
)
def test_targets_are_bounds_and_only_just(l, step, strategy):  # noqa: E741 - the name the field uses
    pace = Pace(l, strategy, horizon=40, rate=F(3, 4))
    target, spent = pace.target(step), pace.spent(step)
    assert pace.floor <= target <= 1
    assert 0 < spent <= 1
    if spent.denominator <= 60:  # never below the true power, and by less than 1e-30 above it
        exact = pace.floor**spent.numerator
        assert target**spent.denominator >= exact
        below = target - F(2, 10**30)
        assert below <= 0 or below**spent.denominator < exact
    assert pace.target(step + 1) <= target


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(10, 60)), max_size=6), st.integers(1, 5))
def test_the_smallest_group_is_the_smallest(past, held):
    left, target = survival(past), F(1, 3)
    n = smallest_group(left, target, held)
    if n is None:
        assert left <= target
    else:
        assert left * F(n - held, n) >= target
        assert n == held or left * F(n - 1 - held, n - 1) < target


def test_power_is_exact_where_it_can_be():
    assert power(F(8, 27), F(2, 3)) == F(4, 9)
    assert power(F(1, 2), F(1, 2)) ** 2 > F(1, 2)
    assert power(F(1, 2), F(1, 2)).denominator > 10**20


def test_how_long_a_frequent_value_lasts():
    assert lasts(Pace(HALF, "constant-ratio", horizon=5), F(1, 8)) == 5
    assert lasts(Pace(HALF, "constant-ratio", horizon=5), F(1, 7)) == 0
    assert lasts(Pace(HALF, "telescoping"), F(0), most=50) is None
    assert share_spent(F(1, 2), HALF) == 1.0
    assert share_spent(F(1), HALF) == 0.0
    assert share_spent(F(0), HALF) == 1.0


COLUMNS = {"id": "identifier", "age": "quasi", "illness": "sensitive"}


@pytest.mark.parametrize(
    ("guarantee", "change", "words"),
    [
        ({"l": 2}, "freely", "needs strategy"),
        ({"l": 1, "strategy": "greedy"}, "freely", "l must be larger than 1"),
        ({"l": 2, "strategy": "constant-ratio"}, "freely", "needs horizon"),
        ({"l": 2, "strategy": "geometric"}, "freely", "needs rate"),
        ({"l": 2, "strategy": "greedy", "rate": "1/2"}, "freely", "rate does nothing unless"),
        ({"l": 2, "strategy": "greedy", "diversity": "entropy"}, "freely", "diversity does nothing"),
        ({"l": 2, "strategy": "greedy"}, "never", "Where values persist it is no bound"),
        ({"l": 2, "strategy": "greedy"}, None, 'needs values.change = "freely"'),
        ({"l": 2, "strategy": "greedy", "protect": []}, "freely", "protect: is empty"),
    ],
)
def test_policies_that_promise_what_cannot_be_kept_are_refused(guarantee, change, words):
    policy = {"columns": COLUMNS, "values": {"change": change}, "guarantee": {"model": "global", **guarantee}}
    with pytest.raises(InputError, match="R201") as refusal:
        load_policy(policy)
    assert words in str(refusal.value)


def test_parameters_of_the_global_guarantee_do_nothing_elsewhere():
    with pytest.raises(InputError) as refusal:
        load_policy({"columns": COLUMNS, "guarantee": {"k": 2, "strategy": "greedy", "protect": ["a"]}})
    assert "strategy does nothing unless" in str(refusal.value)
    assert "protect does nothing unless" in str(refusal.value)
