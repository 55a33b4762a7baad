"""Which judges a policy asks for, and what the registry refuses."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import reveil
from reveil.base.errors import InputError, ReveilError
from reveil.guarantees.catalog import descriptors
from reveil.hierarchies.tree import grow
from reveil.history.history import History
from reveil.policy.policy import load_policy
from reveil.policy.promise import promise_text
from reveil.verify.judges.closeness import TClosenessJudge
from reveil.verify.judges.contract import Background, View
from reveil.verify.judges.counts import beyond, count_values, places
from reveil.verify.judges.presence import PresenceJudge
from reveil.verify.judges.proximity import EpsilonMJudge
from reveil.verify.judges.registry import judges, load


def policy(guarantee, **columns):
    content = {"columns": {"age": "quasi", **columns}, "guarantee": guarantee}
    return load_policy({**content, "method": {"recode": "sets"}} if "population" in guarantee else content)


def view(values, dtype=None, cells=None):
    rows = len(values)
    quasi = pl.DataFrame({"age": cells or ["2*"] * rows})
    return View(
        np.zeros(rows, dtype=np.int64),
        quasi,
        {"s": pl.Series("s", values, dtype=dtype)},
        np.zeros(1, dtype=np.int64),
    )


def refusals(make):
    with pytest.raises(InputError) as caught:
        make()
    return [(fault.code, fault.where) for fault in caught.value.faults]


def test_every_model_of_the_policy_has_an_entry_that_loads():
    assert all(callable(load(one)) for one in descriptors().values())


def test_parameters_arrive_at_the_judges():
    population = pl.DataFrame({"age": [20, 30]})
    asked = policy(
        {
            "model": "presence",
            "population": "p.csv",
            "delta_min": 0.1,
            "delta_max": 0.5,
            "epsilon": 2,
            "m": 3,
            "proximity": "relative",
        },
        pay={"role": "sensitive", "type": "number"},
    )
    near, present = judges(asked, Background(population=population))
    assert near == EpsilonMJudge(Fraction(2), 3, "pay", "relative")
    assert isinstance(present, PresenceJudge)
    assert (present.delta_min, present.delta_max) == (Fraction(1, 10), Fraction(1, 2))


@pytest.mark.parametrize(
    ("column", "values", "hierarchy", "distance"),
    [
        ("sensitive", ["a", "b"], None, "equal"),
        ("sensitive", [1, 2], None, "ordered"),
        ({"role": "sensitive", "order": ["b", "a"]}, ["a", "b"], None, "ordered"),
        (
            {"role": "sensitive", "hierarchy": {"x": ["a", "b"]}},
            ["a", "b"],
            {"a": ("x", "a"), "b": ("x", "b")},
            "hierarchical",
        ),
    ],
)
def test_the_automatic_distance(column, values, hierarchy, distance):
    known = {} if hierarchy is None else {"s": grow("s", hierarchy, missing=False)}
    (judge,) = judges(policy({"model": "t-closeness", "t": 0.5}, s=column), Background(hierarchies=known))
    (verdict,) = judge.judge(view(values), History())
    assert verdict.details["distance"] == distance


def test_all_faults_come_at_once():
    asked = policy(
        {
            "t": 0.2,
            "distance": "hierarchical",
            "epsilon": 1,
            "m": 2,
            "k": 2,
            "population": "p.csv",
            "delta_max": 0.5,
        },
        disease={"role": "sensitive", "type": "category"},
        ward={"role": "sensitive", "order": ["A", "B"]},
    )
    assert refusals(lambda: judges(asked, Background())) == [
        ("R411", "column 'disease'"),
        ("R411", "column 'ward'"),
        ("R414", "column 'disease'"),
        ("R414", "column 'ward'"),
        ("R406", "guarantee.population"),
    ]


def test_an_ordered_distance_needs_an_order():
    asked = policy({"k": 2, "t": 0.2, "distance": "ordered"}, s={"role": "sensitive", "type": "category"})
    assert refusals(lambda: judges(asked, Background())) == [("R412", "column 's'")]
    (_, judge) = judges(policy({"k": 2, "t": 0.2, "distance": "ordered"}, s="sensitive"), Background())
    assert refusals(lambda: judge.judge(view(["a", "b"]), History())) == [("R412", "column 's'")]
    assert judge.judge(view([1, 2]), History())[0].holds


def test_values_that_the_hierarchy_or_order_does_not_know_are_named():
    tree = grow("s", {"a": ("a",)}, missing=False)
    for judge in (
        TClosenessJudge(Fraction(1), "s", "auto", tree),
        TClosenessJudge(Fraction(1), "s", "auto", order=("a",)),
    ):
        with pytest.raises(InputError, match=r"R413 .*1 published values: 'z'"):
            judge.judge(view(["a", "z"]), History())


def test_epsilon_refuses_text_and_endless_numbers():
    judge = EpsilonMJudge(Fraction(1), 2, "s")
    assert refusals(lambda: judge.judge(view(["a", "b"]), History())) == [("R414", "column 's'")]
    assert refusals(lambda: judge.judge(view([1.0, float("inf")]), History())) == [("R415", "column 's'")]


def test_presence_refuses_a_population_that_does_not_fit():
    asked = policy({"model": "presence", "population": "p.csv", "delta_max": 0.5}, sex="quasi")
    lacking = Background(population=pl.DataFrame({"age": [20]}))
    assert refusals(lambda: judges(asked, lacking)) == [("R407", "population, column 'sex'")]
    judge = PresenceJudge(Fraction(0), Fraction(1), Background(population=pl.DataFrame({"age": [20, 31]})))
    stranger = view(["x", "y"], cells=["[20-29]", "[20-29]"])
    assert refusals(lambda: judge.judge(stranger, History())) == [("R408", "population")]


def test_presence_of_people_nobody_published():
    """A person who matches no class is certainly absent, which a delta_min above 0 forbids."""
    population = pl.DataFrame({"age": [20, 21, 22, 23, 70]})
    judge = PresenceJudge(Fraction(1, 10), Fraction(1, 2), Background(population=population))
    most, least = judge.judge(view(["x", "y"], cells=["[20-29]", "[20-29]"]), History())
    assert (most.holds, most.worst) == (True, Fraction(1, 2))
    assert (least.holds, least.worst, least.details["people"]) == (False, 0, 1)


# What other tools got wrong (ECOSYSTEM.md), beside what is right.


def test_a_large_table_does_not_overflow():
    """ARX 3.9.2 lets classes of 292,070 rows pass at t = 0.2 that are further away: its sums have 32 bits."""
    chance = np.random.default_rng(1)
    skewed = np.concatenate((chance.integers(0, 3, 292_070), chance.integers(2, 14, 307_930)))
    values = pl.Series("s", [f"v{value}" for value in skewed])
    classes = np.repeat([0, 1], [292_070, 307_930])
    tree = grow("s", {f"v{value}": (f"group {value // 5}", f"v{value}") for value in range(14)}, missing=False)
    large = View(classes, pl.DataFrame({"age": classes.astype(str)}), {"s": values}, np.zeros(2, dtype=np.int64))
    (verdict,) = TClosenessJudge(Fraction(1, 5), "s", hierarchy=tree).judge(large, History())
    everything = np.bincount(skewed, minlength=14)
    distances = []
    for number in (0, 1):
        here = np.bincount(skewed[classes == number], minlength=14)
        gap = [
            Fraction(int(a), int(here.sum())) - Fraction(int(b), 600_000) for a, b in zip(here, everything, strict=True)
        ]
        groups = [
            gap[0:5],
            gap[5:10],
            gap[10:14],
        ]  # Li et al.: what must cross each inner node, by its height
        inside = sum(min(sum(g for g in group if g > 0), -sum(g for g in group if g < 0)) for group in groups)
        across = sum(total for total in map(sum, groups) if total > 0)
        distances.append(inside / 2 + across)
    assert verdict.worst == max(distances)
    assert (verdict.holds, verdict.violating_classes) == (
        False,
        sum(distance > Fraction(1, 5) for distance in distances),
    )


def test_the_largest_difference_of_frequencies_is_not_the_distance():
    """anonypyx compares frequencies value by value: 1/8 here, but the distance is 1/2. anonypy ignores t."""
    values = list("abcd") + list("efgh")
    classes = np.repeat([0, 1], 4)
    split = View(
        classes,
        pl.DataFrame({"age": classes.astype(str)}),
        {"s": pl.Series(values)},
        np.zeros(2, dtype=np.int64),
    )
    (verdict,) = TClosenessJudge(Fraction(1, 5), "s").judge(split, History())
    assert (verdict.holds, verdict.worst) == (False, Fraction(1, 2))


def test_values_of_few_bits_and_decimals_are_told_apart() -> None:
    """Differences of small integers overflow, and NumPy has no decimals: both once merged values or failed."""
    for values in (
        pl.Series([0, 127, -128, 127], dtype=pl.Int8),
        pl.Series(["0.1", "0.2", "0.1", "0.3"]).cast(pl.Decimal(10, 2)),
    ):
        distinct = values.unique().sort()
        assert [distinct[int(at)] for at in places(values, distinct)] == values.to_list()


def test_values_that_a_class_does_not_show_are_counted_and_not_stumbled_over() -> None:
    numbers = View(np.array([0, 0]), pl.DataFrame(), {"s": pl.Series([float("nan"), 1.0])}, np.zeros(1, dtype=np.int64))
    assert beyond(count_values(numbers, "s"), np.array([0, 0]), pl.Series([float("nan"), 1.0])) == 0
    texts = View(np.array([0, 0]), pl.DataFrame(), {"s": pl.Series(["a", "b"])}, np.zeros(1, dtype=np.int64))
    assert beyond(count_values(texts, "s"), np.array([0, 0]), pl.Series(["a", None])) == 1


def test_a_population_belongs_to_a_promise_about_it() -> None:
    columns = {"age": "quasi", "ill": "sensitive"}
    for keys, said in (
        ({"k": 2, "population": "p.csv"}, "population"),
        ({"model": "k-map", "k_map": 3}, "k_map needs population"),
        ({"k": 2, "delta_max": "1/2"}, "delta_max needs population"),
        ({"k": 2, "k_map": 1, "population": "p.csv"}, "k_map = 1 promises nothing"),
    ):
        with pytest.raises(InputError, match=said):
            load_policy({"columns": columns, "guarantee": keys})
    both = load_policy({"columns": columns, "guarantee": {"k": 2, "k_map": 5, "population": "p.csv"}}).guarantee
    assert [type(one).__name__ for one in both.conditions] == ["KAnonymity", "KMap"]


def test_bad_populations_and_huge_numbers_are_refused(tmp_path: Path) -> None:
    table = pl.DataFrame({"age": [20, 21, 30, 31], "ill": ["a", "b", "a", "b"]})
    columns = {"age": "quasi", "ill": "sensitive"}
    for ages, k, code in ((table["age"].cast(pl.String) + "y", 2, "R407"), (table["age"], 10**30, "R401")):
        pl.DataFrame({"age": ages}).write_parquet(tmp_path / "p.parquet")
        guarantee = {"model": "k-map", "k_map": k, "population": str(tmp_path / "p.parquet")}
        with pytest.raises(ReveilError, match=code):
            reveil.anonymize(table, {"columns": columns, "guarantee": guarantee})
    guarantee |= {"k_map": 2}
    pl.DataFrame({"age": [20, 20, 21, 21, 30, 30]}).write_parquet(tmp_path / "p.parquet")
    with pytest.raises(InputError, match=r"R408.*1 row of the table"):  # nobody is 31
        reveil.anonymize(table, {"columns": columns, "guarantee": guarantee})
    both = pl.concat([table.select("age")] * 3)
    both.write_parquet(tmp_path / "p.parquet")
    guarantee |= {"k_map": 3}
    trials = reveil.compare(table, {"columns": columns, "guarantee": guarantee}).trials
    assert {trial.scheme for trial in trials if trial.loss is not None} == {"mondrian"}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"l": 3}, "every group shows at least 3 different sensitive values"),
        ({"l": "2.5", "diversity": "entropy"}, "as mixed (by entropy) as 5/2 equally frequent ones"),
        ({"l": 3, "diversity": "recursive", "c": 2}, "fewer rows than 2 times its 3th and rarer ones"),
    ],
)
def test_what_is_promised_of_values_is_what_is_judged(keys: dict[str, Any], words: str) -> None:
    columns = {"age": "quasi", "ill": "sensitive"}
    policy = load_policy({"columns": columns, "guarantee": {"model": "l-diversity", "k": 2, **keys}})
    assert words in promise_text(policy)
