"""Sensitive numbers in bins: what is published, protected and compared is the bin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import reveil
from reveil.base.errors import InputError
from reveil.measure.measure import measure
from reveil.policy.policy import load_policy
from reveil.table.bins import bin_labels, in_bins

POLICY: dict[str, Any] = {
    "columns": {
        "name": "identifier",
        "age": "quasi",
        "cost": {"role": "sensitive", "bins": [1, 10, 100, "1000.5"], "harmless": ["< 1"]},
    },
    "values": {"change": "never"},
    "guarantee": {"model": "compromise-safety", "m": 3, "k": 4},
    "method": {"publish": "anatomy"},
}
LABELS = ["< 1", "1 to < 10", "10 to < 100", "100 to < 1000.5", ">= 1000.5"]


def table(rows: int = 60) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    costs = rng.choice([0.0, 3.5, 9.99, 10.0, 55.0, 400.0, 1000.5, 7000.0], rows)
    return pl.DataFrame({"name": [f"p{n}" for n in range(rows)], "age": rng.integers(20, 70, rows), "cost": costs})


def test_values_are_bins_from_the_first_to_the_last(tmp_path: Path) -> None:
    series = reveil.open_series(POLICY, tmp_path / "home")
    frame = table()
    first = series.publish(frame)
    assert first.values is not None
    wanted = dict.fromkeys(LABELS, 0)
    for cost in frame["cost"]:
        wanted[LABELS[sum(cost >= cut for cut in (1, 10, 100, 1000.5))]] += 1
    shown = first.values["cost"].group_by("cost").agg(pl.col("count").sum())
    assert dict(shown.rows()) == {label: count for label, count in wanted.items() if count}
    moved = frame.with_columns(cost=pl.when(pl.col("cost") == 3.5).then(7.25).otherwise("cost"))  # within its bin
    second = series.publish(moved, accept=["same-table"])  # as far as it is ever looked at
    assert second.certificate.holds and series.audit().holds
    assert all(found.holds for found in series.verify().values())  # type: ignore[union-attr]
    with pytest.raises(InputError, match="rules out changes"):
        series.publish(frame.with_columns(cost=pl.when(pl.col("cost") == 3.5).then(70.0).otherwise("cost")))
    assert measure(second, moved, POLICY, queries=50).queries[0].median_relative is not None


def test_a_number_is_in_the_bin_that_its_writing_says() -> None:
    policy = load_policy(POLICY)
    frame = pl.DataFrame({"cost": [0.999, 1.0, None, 1000.499, 1000.5]})
    assert in_bins(frame, policy)["cost"].to_list() == ["< 1", "1 to < 10", None, "100 to < 1000.5", ">= 1000.5"]
    assert bin_labels(policy.columns["cost"].bins or ()) == LABELS
    assert in_bins(in_bins(frame, policy), policy).equals(in_bins(frame, policy))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"role": "sensitive", "bins": [10, 1]}, "do not rise"),
        ({"role": "sensitive", "bins": [1], "order": ["a"]}, "for numbers"),
        ({"role": "sensitive", "bins": [1], "type": "category"}, "for numbers"),
        ({"role": "sensitive", "bins": []}, "empty"),
        ({"role": "insensitive", "bins": [1]}, "only sensitive values"),
    ],
)
def test_bins_that_mean_nothing_are_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_policy({**POLICY, "columns": {**POLICY["columns"], "cost": spec}})


def test_bins_are_for_a_series() -> None:
    columns = {"age": "quasi", "cost": {"role": "sensitive", "bins": [1]}}
    with pytest.raises(InputError, match="about a series"):
        load_policy({"columns": columns, "guarantee": {"model": "l-diversity", "l": 2, "k": 2}})
