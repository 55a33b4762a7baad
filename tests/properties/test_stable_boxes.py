"""Boxes that keep to the cuts of the first release: from the public bytes, the ledger's boxes, and by hand."""

from __future__ import annotations

import datetime
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import reveil
from reveil.base.errors import InfeasibleError, InputError
from reveil.history.history import History
from reveil.history.recorded import history_of
from reveil.policy.policy import load_policy
from reveil.publish import Series
from reveil.verify.comparing import Crowds, Truth
from reveil.verify.covering import Held
from reveil.verify.steady import steady_boxes

TREE = {"north": {"n1": ["a", "b"], "n2": ["c", "d"]}, "south": ["e", "f", "g"]}
COLUMNS = {
    "who": "identifier",
    "age": "quasi",
    "seen": {"role": "quasi", "type": "date"},
    "zip": {"role": "quasi", "type": "category", "prefixes": [2, 1]},
    "town": {"role": "quasi", "hierarchy": TREE},
    "rank": {"role": "quasi", "type": "category", "order": ["low", "mid", "high"]},
    "sex": "quasi",
    "illness": "sensitive",
}
K = 3


def rules(k: int = K, **method: object) -> dict[str, object]:
    promise = {"model": "compromise-safety", "m": 3, "compromised": 1, "refill": "never", "k": k}
    shown = {"publish": "anatomy", "people": "stable-boxes", "infeasible": "wait", **method}
    return {"columns": COLUMNS, "values": {"change": "never"}, "guarantee": promise, "method": shown}


def population(rng: np.random.Generator, releases: int, people: int, widening: bool) -> list[pl.DataFrame]:
    """People who stay as they are, come and go; with `widening`, later ones have values that nobody had before."""
    day = datetime.date(2026, 1, 1)
    everybody = pl.DataFrame(
        {
            "who": [f"p{i:03}" for i in range(people)],
            "age": rng.permutation(people).tolist(),
            "seen": [day + datetime.timedelta(days=int(d)) for d in rng.integers(0, 60, people)],
            "zip": rng.choice(["101", "102", "123", "201", "299"], people),
            "town": rng.choice(list("abcdefg"), people),
            "rank": rng.choice(["low", "mid", "high"], people),
            "sex": rng.choice(["f", "m", "x"], people, p=[0.5, 0.45, 0.05]),
            "illness": rng.choice(list("uvwxyz"), people),
        }
    )
    blank = pl.Series(rng.random(people) < 0.1)
    everybody = everybody.with_columns(
        pl.when(~blank).then(pl.col("sex")).alias("sex"), pl.when(~blank).then(pl.col("age")).alias("age")
    )
    arrival = rng.integers(-releases, releases, people)
    if widening:
        late = pl.Series(arrival > 0)
        everybody = everybody.with_columns(
            (pl.col("age") + pl.when(late).then(200).otherwise(0)).alias("age"),
            pl.when(late).then(pl.lit("777")).otherwise(pl.col("zip")).alias("zip"),
        )
    return [everybody.filter(pl.Series((arrival <= n) & (rng.random(people) < 0.75))) for n in range(releases)]


def boxes_by_release(series: Series) -> list[dict[int, int]]:
    ledger = series.ledger
    frames = [ledger.memory(record.number, "boxes") for record in ledger.records()]
    return [dict(zip(frame["person"].to_list(), frame["box"].to_list(), strict=True)) for frame in frames]


@pytest.mark.parametrize("seed", range(6))
def test_nobody_is_parted_from_their_first_box(seed: int) -> None:
    """Quasi-identifiers stay: whoever shared a box in a release with an unmerged cell shares all boxes after it."""
    rng = np.random.default_rng(seed)
    tables = population(rng, 4, 60, widening=bool(seed % 2))
    with tempfile.TemporaryDirectory() as home:
        series = reveil.open_series(rules(), home)
        for table in tables:
            release = series.publish(table, seed=seed, new_people=True)
            cells = release.table.drop("group")
            assert cells.group_by(cells.columns).len()["len"].min() >= K  # from the public table
        trails = boxes_by_release(series)
        first = trails[0]
        for later in trails[1:]:
            homes: dict[int, set[int]] = {}
            for person, box in first.items():
                if person in later:
                    homes.setdefault(box, set()).add(later[person])
            assert all(len(boxes) == 1 for boxes in homes.values())
        assert all(one.holds for one in series.verify().values())


def test_a_box_that_is_parted_is_found_out() -> None:
    cuts = pl.DataFrame(
        {"column": ["age", None, None], "upto": ["30", None, None], "under": [None] * 3},
        schema={"column": pl.String, "upto": pl.String, "under": pl.String},
    )
    ages = Held(pl.Series("age", [20, 25, 40, 45]), [20, 25, 40, 45], np.arange(4, dtype=np.int32))
    policy = load_policy({**rules(2), "columns": {"who": "identifier", "age": "quasi", "illness": "sensitive"}})

    def found(box: list[int]) -> list[bool]:
        crowds = Crowds(pl.DataFrame({"age": ["*"] * 2}), np.array(box, dtype=np.int32), cuts)
        truth = Truth(4, 0, quasi={"age": ages}, crowds=crowds)
        return [check.holds for check in steady_boxes(truth, policy, History(), {})]

    assert found([0, 0, 1, 1]) == found([0, 0, 0, 0]) == [True]
    assert found([0, 1, 1, 1]) == [False]
    broken = Crowds(pl.DataFrame(), np.zeros(4, dtype=np.int32), cuts.head(2))
    truth = Truth(4, 0, quasi={"age": ages}, crowds=broken)
    assert [c.holds for c in steady_boxes(truth, policy, History(), {})] == [False]


def test_few_people_join_the_box_that_loses_least(tmp_path: Path) -> None:
    """Ages 10, 20, 30 three times each; then one of age 10 is left, and is shown with those of age 20."""
    columns = {"who": "identifier", "age": "quasi", "illness": "sensitive"}
    rows = [{"who": f"{age}{i}", "age": age, "illness": "xyz"[i]} for age in (10, 20, 30) for i in range(3)]
    series = reveil.open_series({**rules(), "columns": columns}, tmp_path / "home")
    release = series.publish(pl.DataFrame(rows), seed=1)
    assert sorted(release.table["age"]) == ["10"] * 3 + ["20"] * 3 + ["30"] * 3
    release = series.publish(pl.DataFrame(rows[2:]), seed=1, new_people=True)
    assert sorted(release.table["age"]) == ["30"] * 3 + ["[10-20]"] * 4
    assert history_of(series.ledger).cuts.height == 5
    release = series.publish(
        pl.DataFrame(rows), seed=1, new_people=True, accept=["same-table"]
    )  # all are back, and so are their boxes
    assert sorted(release.table["age"]) == ["10"] * 3 + ["20"] * 3 + ["30"] * 3
    with pytest.raises(InfeasibleError, match="would be shown"):
        series.publish(pl.DataFrame(rows[:2]), seed=1, new_people=True)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"method": {"publish": "anatomy", "people": "stable-boxes", "recode": "sets"}}, "goes with"),
        ({"method": {"publish": "anatomy", "people": "stable-boxes", "cuts": "strict"}}, "cuts are strict"),
        ({"guarantee": {"model": "compromise-safety", "m": 3}}, "needs guarantee.k"),
        ({"guarantee": {"model": "l-diversity", "l": 2, "k": 2}, "values": {}}, "is for a series"),
    ],
)
def test_what_stable_boxes_do_not_go_with(change: dict[str, object], found: str) -> None:
    with pytest.raises(InputError, match=found):
        load_policy({**rules(), **change})
