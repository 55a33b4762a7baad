"""Columns that change for everybody from release to release."""

from datetime import date, timedelta

import polars as pl

import reveil
from reveil.start.suggest import suggest

POLICY = {
    "columns": {"name": "identifier", "admitted": "quasi", "born": "quasi", "illness": "sensitive"},
    "values": {"change": "never"},
    "guarantee": {"model": "compromise-safety", "m": 3},
}


def patients(month):
    return pl.DataFrame(
        {
            "name": [f"P{n}" for n in range(30)],
            "admitted": [date(2024, month, 1) + timedelta(days=n % 25) for n in range(30)],
            "born": [date(1950, 1, 1) + timedelta(days=400 * n) for n in range(30)],
            "illness": list("abcdef") * 5,
        }
    )


def test_a_date_that_is_later_for_everybody_is_named(tmp_path):
    series = reveil.open_series(POLICY, tmp_path / "home")
    assert series.plan(patients(1)).moving == ()
    series.publish(patients(1))
    preview = series.plan(patients(2))
    assert preview.moving == ("admitted",) and preview.to_dict()["moving_columns"] == ["admitted"]
    few = patients(1).with_columns(admitted=pl.lit(date(2024, 1, 3)))
    assert series.plan(few, accept=["older-table"]).moving == ()


def test_init_says_so_of_dates_and_ages_of_visits():
    table = patients(1).with_columns(age_at_visit=pl.Series(range(20, 50)), age=pl.Series(range(20, 50)))
    reasons = {one.column: one.reason for one in suggest(table)}
    assert all("changes for everybody" in reasons[name] for name in ("admitted", "age_at_visit"))
    assert not any("changes for everybody" in reasons[name] for name in ("born", "age"))
