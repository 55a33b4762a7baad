"""The global guarantee against possible worlds: judge, budget and planner, on thousands of small histories."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from math import factorial, prod

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oracle import transient as oracle
from reveil.base.errors import InfeasibleError
from reveil.base.progress import silent
from reveil.history.history import History
from reveil.plan.budgets import budget, budget_cuts, global_guarantee
from reveil.plan.budgets.remaining_budget import RemainingBudget
from reveil.policy.policy import load_policy
from reveil.table.encode import Encoded, encode
from reveil.verify.judges.contract import View
from reveil.verify.judges.ever_linked import GlobalJudge

many = settings(max_examples=150, deadline=None)
fewer = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 2**32)
protections = st.sampled_from([None, ["a"], ["a", "b"]])
VALUES = ["a", "b", "c"]


@st.composite
def releases(draw, most=3, people=6):
    """Up to `most` releases of some of the people, in groups of 1 to 3, with up to one counterfeit each."""
    series = []
    for _ in range(draw(st.integers(1, most))):
        present = draw(st.permutations(range(people)))[: draw(st.integers(1, people))]
        groups = []
        while present:
            size = draw(st.integers(1, 3))
            members, present = present[:size], present[size:]
            rows = len(members) + draw(st.integers(0, 1))
            groups.append((members, draw(st.lists(st.sampled_from(VALUES), min_size=rows, max_size=rows))))
        series.append(groups)
    return series


def worlds(series):
    return prod(
        factorial(len(values)) // factorial(len(values) - len(members))
        for groups in series
        for members, values in groups
    )


def history_of(series):
    """The past that these releases leave behind, as the ledger would tell it."""
    members, groups, values = [], [], []
    for number, release in enumerate(series, 1):
        for group, (people, published) in enumerate(release):
            members += [(number, person, group, 0) for person in people]
            groups.append((number, group, len(published), len(published) - len(people)))
            for code, value in enumerate(VALUES):
                if value in published:
                    values.append((number, group, "illness", code, published.count(value)))
    known = 1 + max((person for _, person, _, _ in members), default=-1)
    frame = {"schema_overrides": {"person": pl.UInt32}, "orient": "row"}
    return History(
        head=len(series),
        persons=pl.DataFrame({"hi": range(known), "lo": range(known)}, schema={"hi": pl.UInt64, "lo": pl.UInt64}),
        members=pl.DataFrame(members, schema=["release", "person", "group", "illness"], **frame)
        if members
        else pl.DataFrame(),
        groups=pl.DataFrame(groups, schema=["release", "group", "rows", "counterfeits"], orient="row")
        if groups
        else pl.DataFrame(),
        values=pl.DataFrame(values, schema=["release", "group", "column", "code", "rows"], orient="row")
        if values
        else pl.DataFrame(),
        codebook={"illness": VALUES},
    )


def view_of(groups):
    rows = [(number, value) for number, (_, values) in enumerate(groups) for value in values]
    members = [(person, number) for number, (people, _) in enumerate(groups) for person in people]
    return View(
        classes=np.array([number for number, _ in rows], dtype=np.int64),
        quasi=pl.DataFrame(),
        sensitive={"illness": pl.Series("illness", [value for _, value in rows], dtype=pl.String)},
        counterfeits=np.array([len(v) - len(p) for p, v in groups], dtype=np.int64),
        members=pl.DataFrame(members, schema={"person": pl.Int64, "class": pl.Int64}, orient="row"),
    )


@many
@given(
    releases(),
    st.sampled_from([Fraction(2), Fraction(3, 2), Fraction(4, 3), Fraction(16, 7)]),
    st.sets(st.sampled_from(VALUES), min_size=1),
)
def test_judge_finds_what_counting_worlds_finds(series, l, protected):  # noqa: E741
    assume(worlds(series) <= 3000)
    ever, _ = oracle.chances(series)
    present = {person for members, _ in series[-1] for person in members}
    mine = {key: chance for key, chance in ever.items() if key[0] in present and key[1] in protected}
    (found,) = GlobalJudge(l, "illness", lambda value: value in protected).judge(
        view_of(series[-1]), history_of(series[:-1])
    )
    assert found.worst == max(mine.values(), default=0)
    assert found.holds == all(chance <= 1 / l for chance in mine.values())
    assert found.violating_rows == len({person for (person, _), chance in mine.items() if chance > 1 / l})
    assert sum(found.details["people by tenth of the bound"]) == len(present)


@many
@given(releases())
def test_lemma_2_and_lemma_1(series):
    """The closed form is the share of worlds, and the localized chance is never above the global one."""
    assume(worlds(series) <= 3000)
    ever, once = oracle.chances(series)
    for (person, value), chance in ever.items():
        pairs = [(v.count(value), len(v)) for groups in series for members, v in groups if person in members]
        assert budget.ever_linked(pairs) == chance
    for (person, value, _), chance in once.items():
        assert chance <= ever[person, value]


def test_corollary_1_the_localized_guarantee_does_not_imply_the_global_one():
    """Figure 2: every release at 1/2, together 3/4. And tuple-level worlds with counterfeits, and persistent values."""
    figure_2 = [[(["o1", "o2"], ["flu", "chlamydia"])], [(["o1", "o2"], ["chlamydia", "flu"])]]
    ever, once = oracle.chances(figure_2)
    assert max(once.values()) == Fraction(1, 2)
    assert ever["o2", "chlamydia"] == Fraction(3, 4)
    counterfeits = [[(["A"], ["a", "a", "a", "b"])]]
    assert oracle.chances(counterfeits)[0]["A", "a"] == Fraction(3, 4)
    regrouped = [[("AB", "xy")], [("AC", "xz")]]
    assert oracle.chances(regrouped)[0]["A", "x"] == Fraction(3, 4)
    assert oracle.ever_linked_if_persistent(regrouped, "A", "x") == 1


def test_people_who_are_absent_and_releases_without_a_value_cost_nothing():
    series = [[([0, 1], ["a", "b"])], [([1, 2], ["b", "c"])], [([0, 2], ["c", "c"])]]
    (found,) = GlobalJudge(Fraction(2), "illness", lambda v: v == "a").judge(view_of(series[2]), history_of(series[:2]))
    assert (found.worst, found.holds) == (Fraction(1, 2), True)
    (found,) = GlobalJudge(Fraction(2), "illness").judge(view_of(series[2]), history_of(series[:2]))
    assert (found.worst, found.violating_rows) == (Fraction(1), 2)


POLICY = {
    "columns": {"id": "identifier", "age": "quasi", "town": "quasi", "illness": "sensitive"},
    "values": {"change": "freely"},
}
PACES = [
    {"strategy": "greedy"},
    {"strategy": "telescoping"},
    {"strategy": "geometric", "rate": "1/2"},
    {"strategy": "geometric", "rate": "4/5"},
    {"strategy": "constant-ratio", "horizon": 2},
    {"strategy": "constant-ratio", "horizon": 4},
]


def policy_of(pace, l, protect=None, infeasible="refuse", **more):  # noqa: E741
    chosen = {} if protect is None else {"protect": protect}
    guarantee = {"model": "global", "l": l, **pace, **chosen, **more}
    return load_policy({**POLICY, "guarantee": guarantee, "method": {"infeasible": infeasible}})


def encoded_of(table, policy):
    encoded = encode(table, policy, {"illness": VALUES})
    persons = table["id"].to_numpy().astype(np.int64)
    return Encoded(encoded.quasi, encoded.positions, encoded.sensitive, encoded.codes, None, persons)


@many
@given(releases(people=5), st.sampled_from(PACES), st.sampled_from(["2", "3", "4/3"]), st.integers(0, 7))
def test_needs_are_exact(series, pace, l, person):  # noqa: E741
    """For every person, value and group: the float comparison decides as the fractions do, ties included."""
    policy = policy_of(pace, l)
    table = pl.DataFrame({"id": [person, 9], "age": [1, 2], "town": ["x", "y"], "illness": ["a", "b"]})
    history = history_of(series)
    encoded = encoded_of(table, policy)
    known = history.persons.height
    encoded = Encoded(
        *(getattr(encoded, n) for n in ("quasi", "positions", "sensitive", "codes")),
        None,
        np.array([person, known + 9]),
    )
    remaining, left = global_guarantee.remaining_budgets(encoded, history, policy, global_guarantee.pace_of(policy))
    rate, horizon = policy.guarantee.headline.rate, policy.guarantee.headline.horizon
    for row, who in enumerate(encoded.persons.tolist()):
        seen = [j for j, groups in enumerate(series, 1) if any(who in members for members, _ in groups)]
        share = Fraction(1)
        if pace["strategy"] == "telescoping":
            share = Fraction(len(seen) + 1, len(seen) + 2)
        elif pace["strategy"] == "geometric":
            share = 1 - rate ** (len(seen) + 1)
        elif pace["strategy"] == "constant-ratio":
            came, now = min([*seen, len(series) + 1]), len(series) + 1
            share = min(Fraction(1), Fraction(now - came + 1, max(horizon, now) - came + 1))
        survivals = []
        for code, value in enumerate(VALUES):
            pairs = [(v.count(value), len(v)) for groups in series for m, v in groups if who in m]
            escaped = prod((Fraction(n - held, n) for held, n in pairs), start=Fraction(1))
            survivals.append(escaped)
            need = remaining.need[remaining.line[row], remaining.slot[code]]
            for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 30):
                for held in range(n + 1):
                    # after ** (1 / share) >= floor, in whole powers
                    after = escaped * Fraction(n - held, n)
                    exact = after**share.denominator >= (1 - 1 / policy.guarantee.headline.l) ** share.numerator
                    assert ((n - held) / n >= need) == exact
        assert left[row] == pytest.approx(float(min(survivals)), abs=1e-9)


def publish(tables, policy):
    """Plan one table after the other, each on the past that the plans before it left. Returns plans and releases."""
    series, plans = [], []
    for table in tables:
        history = history_of(series)
        encoded = encoded_of(table, policy)
        plan = global_guarantee.plan(encoded, history, policy, seed=1, progress=silent)
        groups = []
        for group in range(plan.count):
            mine = np.flatnonzero(plan.groups == group).tolist()
            groups.append(([table["id"][i] for i in mine], [table["illness"][i] for i in mine]))
        plans.append(plan)
        series.append(groups)
    return plans, series


def tables(seed, count):
    """Tables of 8 to 40 people of 60; values are redrawn each time, and some are rarer than others."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        rows = int(rng.integers(8, 41))
        found.append(
            pl.DataFrame(
                {
                    "id": rng.permutation(60)[:rows],
                    "age": rng.integers(20, 60, rows),
                    "town": rng.choice(["x", "y", "z"], rows),
                    "illness": rng.choice(VALUES, rows, p=rng.dirichlet([1, 3, 6])),
                }
            )
        )
    return found


def exposures(series, person, value):
    return [(v.count(value), len(v)) for groups in series for members, v in groups if person in members]


@fewer
@given(seeds, st.integers(1, 4), st.sampled_from(PACES), st.sampled_from(["2", "3/2"]), protections)
def test_what_is_planned_keeps_the_promise_after_every_release(seed, count, pace, l, protect):  # noqa: E741
    found = tables(seed, count)
    policy = policy_of(pace, l, protect, "withhold", k=3)
    try:
        plans, series = publish(found, policy)
    except InfeasibleError as refusal:
        assert {fault.code for fault in refusal.faults} <= {"R460", "R462"}
        return
    for plan, groups in zip(plans, series, strict=True):
        assert all(len(members) >= 3 for members, _ in groups)
        assert sum(len(members) for members, _ in groups) == len(plan.groups) - plan.withheld
    for person in range(60):
        for value in protect or VALUES:
            assert budget.ever_linked(exposures(series, person, value)) <= 1 / policy.guarantee.headline.l
    if len(series) > 1 and protect is None:
        (found_by_judge,) = GlobalJudge(policy.guarantee.headline.l, "illness").judge(
            view_of(series[-1]), history_of(series[:-1])
        )
        assert found_by_judge.holds


@fewer
@given(seeds, st.integers(2, 4), st.sampled_from(PACES), protections)
def test_who_is_withheld_does_not_depend_on_who_has_which_value(seed, count, pace, protect):
    """Values dealt anew among the people of the last table: those withheld are the poorest, to a step that is given
    by history and totals. (Which step may depend on how frequent values are among the rest.)"""
    found = tables(seed, count)
    policy = policy_of(pace, "2", protect, "withhold")
    try:
        _, series = publish(found[:-1], policy)
    except InfeasibleError:
        assume(False)
    history, table = history_of(series), found[-1]
    encoded = encoded_of(table, policy)
    counts = np.bincount(encoded.codes[:, 0], minlength=len(VALUES))
    steps = []
    for ahead, allowance in itertools.product(global_guarantee.LENDERS, global_guarantee.ALLOWANCES):
        lent = replace(global_guarantee.pace_of(policy), ahead=ahead)
        remaining, _ = global_guarantee.remaining_budgets(encoded, history, policy, lent)
        poor = np.zeros(table.height, dtype=bool)
        for code in np.flatnonzero(counts * (remaining.slot >= 0)):
            share = counts[code] / table.height * (1 + allowance)
            poor |= remaining.need[remaining.line, remaining.slot[code]] > 1 - share + 1e-12
        steps.append(poor.tolist())
    rng = np.random.default_rng(seed)
    for _ in range(4):
        dealt = table.with_columns(pl.Series("illness", rng.permutation(table["illness"].to_list())))
        try:
            plan = global_guarantee.plan(encoded_of(dealt, policy), history, policy, seed=1, progress=silent)
        except InfeasibleError:
            continue
        assert (plan.groups < 0).tolist() in steps


@fewer
@given(seeds, st.integers(1, 4), st.sampled_from(PACES), st.sampled_from(["2", "3"]), protections)
def test_a_soft_pace_withholds_no_more_and_borrows_nothing_without_need(seed, count, pace, l, protect):  # noqa: E741
    found = tables(seed, count)
    soft, strict = (policy_of({**pace, "pace": kind}, l, protect, "withhold") for kind in ("soft", "strict"))
    try:
        _, series = publish(found[:-1], soft)
        slow = global_guarantee.plan(encoded_of(found[-1], strict), history_of(series), strict, seed=1, progress=silent)
    except InfeasibleError:
        return
    quick = global_guarantee.plan(encoded_of(found[-1], soft), history_of(series), soft, seed=1, progress=silent)
    lent = quick.statistics["later releases that lend their part to this one"]
    assert quick.withheld <= slow.withheld
    assert (lent == 0) == (quick.withheld == slow.withheld)
    if lent == 0:
        assert (quick.groups == slow.groups).all()


def test_the_pace_is_not_the_promise():
    """One in twenty has the value, 1/4 is promised over 12 releases: too fast for the pace, far from the promise."""
    table = pl.DataFrame({"id": range(40), "age": range(20, 60), "town": ["x"] * 40, "illness": ["a"] * 2 + ["b"] * 38})
    steady = {"strategy": "constant-ratio", "horizon": 12}
    with pytest.raises(InfeasibleError, match="'a' is in 2 of 40 rows"):
        publish([table], policy_of({**steady, "pace": "strict"}, "4", ["a"]))
    plans, series = publish([table] * 2, policy_of(steady, "4", ["a"]))
    assert [plan.statistics["later releases that lend their part to this one"] for plan in plans] == [2, 4]
    assert max(budget.ever_linked(exposures(series, person, "a")) for person in range(40)) <= Fraction(1, 4)


def test_a_tie_is_afforded():
    """Four rows, then three: survival 3/4 * 2/3 is exactly 1/2, and greedy planning uses it to the last bit."""
    policy = policy_of({"strategy": "constant-ratio", "horizon": 2}, "2", ["a"])
    first = pl.DataFrame({"id": [0, 1, 2, 3], "age": [1, 2, 3, 4], "town": ["x"] * 4, "illness": ["a", "b", "b", "b"]})
    second = pl.DataFrame({"id": [0, 1, 2], "age": [1, 2, 3], "town": ["x"] * 3, "illness": ["b", "a", "b"]})
    _, series = publish([first, second], policy)
    assert [len(groups) for groups in series] == [1, 1]
    assert budget.ever_linked(exposures(series, 0, "a")) == Fraction(1, 2)


def test_rare_values_share_a_need_when_there_are_too_many(monkeypatch):
    """With room for few needs the plan is coarser and still keeps the promise."""
    monkeypatch.setattr(global_guarantee, "CELLS", 0)
    monkeypatch.setattr(global_guarantee, "FEWEST_SLOTS", 1)
    policy = policy_of({"strategy": "telescoping"}, "3/2", None)
    rng = np.random.default_rng(3)
    found = [
        pl.DataFrame(
            {
                "id": np.arange(40),
                "age": rng.integers(20, 60, 40),
                "town": ["x"] * 40,
                "illness": rng.permutation(["a", "b", "c"] * 13 + ["a"]),
            }
        )
        for _ in range(2)
    ]
    _, series = publish(found[:1], policy)
    encoded = encoded_of(found[1], policy)
    remaining, _ = global_guarantee.remaining_budgets(
        encoded, history_of(series), policy, global_guarantee.pace_of(policy)
    )
    assert remaining.need.shape[1] == 1
    assert set(remaining.slot.tolist()) == {0}
    for person in range(40):
        exact = max(
            float(global_guarantee.pace_of(policy).target(2) / budget.survival(exposures(series, person, value)))
            for value in VALUES
        )
        assert remaining.need[remaining.line[person], 0] == pytest.approx(exact, rel=1e-12)


def test_a_group_is_afforded_by_everybody_in_it():
    """Value 0 may have half of the rows; value 1 is not protected."""
    remaining = RemainingBudget(
        line=np.zeros(4, dtype=np.int64),
        need=np.array([[0.5]]),
        worst=np.full(4, 0.5),
        least=np.ones(4, dtype=np.int32),
        column=np.array([1]),
        first_code=np.array([0, 2]),
        slot=np.array([0, -1]),
    )
    rows = np.array([[0, 0], [1, 1], [2, 0], [3, 0]], dtype=np.int32)
    count, work = np.zeros(3, dtype=np.int64), np.zeros(6, dtype=np.int64)
    order = np.arange(4)
    assert budget_cuts.affords(remaining, rows, order, 0, 2, count, work)
    assert not budget_cuts.affords(remaining, rows, order, 2, 4, count, work)
    assert not budget_cuts.affords(remaining, rows, order, 0, 4, count, work)
    assert not count.any()


def test_people_with_much_left_are_parted_from_those_with_little():
    """Half of the people were in the first release, half are new: cuts by need give the new ones smaller groups."""
    rng = np.random.default_rng(5)

    def table(ids):
        rows = len(ids)
        ages, values = rng.integers(20, 80, rows), rng.choice(VALUES, rows, p=[0.1, 0.2, 0.7])
        return pl.DataFrame({"id": ids, "age": ages, "town": rng.choice(["x", "y"], rows), "illness": values})

    found = [table(np.arange(150)), table(np.arange(300))]
    sizes = {}
    for cuts in ("strict", "relaxed"):
        policy = policy_of({"strategy": "telescoping"}, "2", ["a"])
        policy = policy.model_copy(update={"method": policy.method.model_copy(update={"cuts": cuts})})
        plans, series = publish(found, policy)
        rows = np.bincount(plans[1].groups)[plans[1].groups]
        sizes[cuts] = rows[150:].mean()
        assert max(budget.ever_linked(exposures(series, person, "a")) for person in range(300)) <= Fraction(1, 2)
    assert sizes["relaxed"] < sizes["strict"]


def test_needs_are_the_same_from_a_table_of_the_past_and_from_lists(monkeypatch):
    policy = policy_of({"strategy": "telescoping"}, "2", ["a", "b"])
    series = [[([0, 1, 2], ["a", "b", "c"]), ([3, 4], ["c", "c", "a"])], [([0, 4], ["b", "c"]), ([2], ["c"])]]
    table = pl.DataFrame({"id": range(5), "age": range(5), "town": ["x"] * 5, "illness": list("abcca")})
    needs = []
    for share in (0.0, 2.0):
        monkeypatch.setattr(global_guarantee, "DENSE", share)
        remaining, _ = global_guarantee.remaining_budgets(
            encoded_of(table, policy), history_of(series), policy, global_guarantee.pace_of(policy)
        )
        needs.append(remaining.need[remaining.line][:, remaining.slot[:2]])
    assert (needs[0] == needs[1]).all()
    assert needs[0][0] == pytest.approx(np.array([3 / 2, 3 / 2 * 2]) * 0.5 ** (3 / 4))
