"""Forecast and advice: made, not guessed, and nothing is touched."""

from __future__ import annotations

import datetime
import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import reveil
from reveil.base.errors import InputError
from reveil.measure.advice import advise
from reveil.measure.ahead import forecast
from reveil.measure.compare import compare
from support import cli

SCENARIO = reveil.Scenario(rows=240, releases=3, seed=4)
COLUMNS: dict[str, Any] = {
    "patient": "identifier",
    "age": "quasi",
    "sex": "quasi",
    "zip": {"role": "quasi", "prefixes": [3]},
    "diagnosis": "sensitive",
}
POLICY: dict[str, Any] = {
    "columns": COLUMNS,
    "values": {"change": "never"},
    "guarantee": {"model": "compromise-safety", "m": 4},
    "method": {"infeasible": "withhold"},
}
FREELY: dict[str, Any] = {
    "values": {"change": "freely"},
    "guarantee": {"model": "global", "l": 2, "strategy": "greedy", "protect": ["influenza"]},
}
RULES: dict[str, Any] = {
    "values": {"change": "transitions", "transitions": {"a": ["b"], "b": ["a"], "c": ["d"], "d": ["c"], "e": ["e"]}},
    "guarantee": {"model": "m-distinct", "m": 2, "compromised": 0},
}


def tables() -> list[pl.DataFrame]:
    return [table.select(*COLUMNS) for table in reveil.simulate(SCENARIO).tables]


def digest(home: Path) -> str:
    files = sorted(path for path in home.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def test_the_first_release_of_a_forecast_is_the_one_that_would_be_published(tmp_path: Path) -> None:
    first, second, third = tables()
    series = reveil.open_series(POLICY, tmp_path / "home")
    series.publish(first, seed=0)
    series.publish(second, seed=0)
    before = digest(tmp_path / "home")
    ahead = forecast(third, series, 3)
    assert digest(tmp_path / "home") == before
    assert ahead.pace.source == "as in the 2 releases so far"
    real = series.publish(third, seed=0)
    counts = real.certificate.counts
    shown = ahead.releases[0]
    assert (shown.release, shown.rows) == (3, third.height)
    assert (shown.withheld, shown.counterfeits) == (counts["withheld rows"], counts["counterfeit rows"])
    assert (shown.worst, shown.bound) == (
        real.certificate.verdicts[-1]["worst"],
        real.certificate.verdicts[-1]["bound"],
    )
    assert [one.release for one in ahead.releases] == [3, 4, 5]


def test_rates_are_those_of_the_ledger_or_as_stated(tmp_path: Path) -> None:
    first, second, _ = tables()
    series = reveil.open_series(POLICY, tmp_path / "home")
    series.publish(first, seed=0)
    assert "nothing to go by" in forecast(second, series, 1).pace.source
    series.publish(second, seed=0)
    stayed = len(set(first["patient"]) & set(second["patient"]))
    again = {"accept": ["same-table"]}
    pace = forecast(second, series, 1, **again).pace
    assert pace.leave == 1 - Fraction(stayed, first.height)
    stated = forecast(second, series, 2, leave="0", back="0", arrive="0", **again)
    assert [one.rows for one in stated.releases] == [second.height] * 2
    with pytest.raises(InputError, match="R222 leave"):
        forecast(second, series, 1, leave="1.5")


@pytest.mark.parametrize("change", [FREELY, RULES], ids=["freely", "transitions"])
def test_values_change_as_the_policy_says(tmp_path: Path, change: dict[str, Any]) -> None:
    rows = [{"who": str(i), "age": 20 + i % 50, "ill": "abcde"[i % 5]} for i in range(80)]
    columns = {"who": "identifier", "age": "quasi", "ill": "sensitive"}
    policy = {**POLICY, **change, "columns": columns}
    if change is FREELY:
        policy["guarantee"] = {**change["guarantee"], "protect": ["a"]}
    ahead = forecast(pl.DataFrame(rows), reveil.open_series(policy, tmp_path / "home"), 3)
    assert [one.refused for one in ahead.releases] == [None] * 3
    assert not (tmp_path / "home").exists()


def test_a_refused_release_ends_the_forecast(tmp_path: Path) -> None:
    rows = [{"who": str(i), "age": 20 + i, "ill": "ab"[i % 2]} for i in range(20)]
    policy = {**POLICY, "columns": {"who": "identifier", "age": "quasi", "ill": "sensitive"}, "method": {}}
    (only,) = forecast(pl.DataFrame(rows), reveil.open_series(policy, tmp_path / "home"), 5).releases
    assert only.refused is not None


def test_advice_is_what_the_changed_policy_gives(tmp_path: Path) -> None:
    table = tables()[0]
    advice = advise(table, POLICY)
    ways = {way.change: way for way in advice.ways}
    assert list(ways.values()) == sorted(ways.values(), key=lambda way: -way.gain)
    smaller = {**POLICY, "guarantee": {**POLICY["guarantee"], "m": 3}}
    assert ways["m = 3"].after == pytest.approx(advise(table, smaller).ways[0].before)
    without = {name: column for name, column in COLUMNS.items() if name != "zip"} | {"zip": "drop"}
    dropped = advise(table, {**POLICY, "columns": without})
    assert "zip" not in dropped.loss
    assert ways["drop 'zip'"].after == pytest.approx(sum(dropped.loss.values()) / len(dropped.loss))


def test_some_rows_of_a_panel_are_advised_on_compared_and_looked_ahead_from(tmp_path: Path) -> None:
    years = [table.with_columns(year=pl.lit(year)) for year, table in zip((2001, 2002), tables(), strict=False)]
    panel, policy = pl.concat(years, how="diagonal"), {**POLICY, "columns": {**COLUMNS, "year": "drop"}}
    first = panel.filter(pl.col("year") == 2001)
    assert advise(panel, policy, where={"year": 2001}).to_dict() == advise(first, policy).to_dict()
    series = reveil.open_series(policy, tmp_path / "home")
    ahead = forecast(panel, series, 2, leave="0.2", where={"year": 2001}), forecast(first, series, 2, leave="0.2")
    assert len({tuple((one.rows, one.refused) for one in each.releases) for each in ahead}) == 1
    alone = {"columns": {"age": "quasi", "sex": "quasi", "year": "drop"}, "guarantee": {"k": 3}}
    few, same = (part.select("age", "sex", "year") for part in (panel, first))
    assert [trial.loss for trial in compare(same, alone).trials] == [
        trial.loss for trial in compare(few, alone, where={"year": 2001}).trials
    ]


def test_a_series_that_does_not_say_how_values_change_is_looked_ahead_from(tmp_path: Path) -> None:
    silent = {**POLICY, "values": {}, "guarantee": {"model": "l-diversity", "l": 2, "k": 3}, "method": {}}
    ahead = forecast(tables()[0], reveil.open_series(silent, tmp_path / "home"), 2, leave="0.2")
    assert [one.refused for one in ahead.releases] == [None, None]


def test_a_column_of_stars_is_called_too_coarse() -> None:
    rows = [{"age": i % 3, "weight": i * 37 % 100, "ill": "xyz"[i % 3]} for i in range(40)]
    policy = {"columns": {"age": "quasi", "weight": "quasi", "ill": "sensitive"}, "guarantee": {"k": 20}}
    table = pl.DataFrame(rows)
    advice = advise(table, policy)
    published = reveil.anonymize(table, policy, seed=0).table
    whole = {
        name: (published[name] == f"[{table[name].min()}-{table[name].max()}]").mean() for name in ("age", "weight")
    }
    assert advice.nothing_said == pytest.approx(whole)


def test_no_time_is_said() -> None:
    advice = advise(tables()[0], POLICY, seconds=-1)
    assert advice.ways == ()
    assert "drop 'zip'" in advice.untried


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli("simulate", "s", "--rows", "200", "--releases", "2", "-q")[0] == 0
    where = ("s/release-01.csv", "-p", "s/reveil.toml")
    assert "as stated" in cli("plan", *where, "--ahead", "2", "--leave", "0.2")[1]
    drawn = ("--ahead", "2", "--json", "--report", "page.html")
    releases = json.loads(cli("plan", *where, *drawn)[1])["releases"]
    page = Path("page.html").read_text(encoding="utf-8")
    assert len(releases) == 2 and page.count("<svg") >= 4 and "People withheld" in page
    assert (
        all(f"<td>{one['counterfeits']}</td>" in page for one in releases) and "http" not in page.split("</style>")[1]
    )
    begun = cli("plan", *where, "--advice")[1]
    assert "cells that say nothing" in begun and "'admitted' is another one for everybody" in begun  # by its name
    assert cli("publish", *where)[0] == 0
    later = ("s/release-02.csv", "-p", "s/reveil.toml", "--advice", "--json")
    assert json.loads(cli("plan", *later)[1])["moving_columns"] == ["admitted"]  # as the series has seen
    assert json.loads(cli("plan", *where, "--advice", "--json")[1])["moving_columns"] == []
    for idle in (
        ["--report", "x.html"],
        ["--leave", "0.1"],
        ["--advice", "--ahead", "2"],
        ["--compare", "--home", "x"],
    ):
        assert cli("plan", *where, *idle)[0] == 2


def test_two_tables_are_tried_for_a_series_in_one() -> None:
    table = reveil.simulate(reveil.Scenario(rows=150, releases=1, values="never", seed=2)).tables[0]
    columns = {"patient": "identifier", "age": "quasi", "sex": "quasi", "diagnosis": "sensitive"}
    promise = {"model": "compromise-safety", "m": 4}
    policy = {"columns": columns, "values": {"change": "never"}, "guarantee": promise}
    advice = advise(table.select(*columns), policy)
    parted = next(way for way in advice.ways if way.change == "two tables, k = 5")
    assert parted.after < parted.before
    boxed = {**policy, "guarantee": {**promise, "k": 5}, "method": {"publish": "anatomy"}}
    again = advise(table.select(*columns), boxed)
    assert sum(again.loss.values()) == pytest.approx(parted.after * 2, abs=1e-6)
    exact = advise(table.select(*columns), {**policy, "method": {"publish": "anatomy", "people": "exact"}})
    assert set(exact.nothing_said.values()) == {0}


def test_coarser_dates_are_among_the_advice() -> None:
    """Days of birth by day, month and year, nothing above: years and decades say more than *, and that is tried."""
    rng = np.random.default_rng(4)
    days = [datetime.date(1930, 1, 1) + datetime.timedelta(days=int(n)) for n in rng.integers(0, 25_000, 300)]
    table = pl.DataFrame({"born": days, "zip": rng.integers(0, 40, 300), "ill": rng.choice(list("abc"), 300)})
    born = {"role": "quasi", "levels": ["day", "month", "year"]}
    policy: dict[str, Any] = {"columns": {"born": born, "zip": "quasi", "ill": "sensitive"}, "guarantee": {"k": 5}}
    way = next(way for way in advise(table, policy).ways if way.change == "'born' by year")
    by_year = {**policy["columns"], "born": {"role": "quasi", "levels": ["year", "decade"]}}
    trial = advise(table, {**policy, "columns": by_year}).loss
    year = 364.2 / (max(days) - min(days)).days
    assert way.after == pytest.approx((trial["zip"] + trial["born"] * (1 - year) + year) / 2) and way.gain > 0
    assert way.others[1] == pytest.approx(trial["zip"])
    free = {"columns": {**policy["columns"], "born": "quasi"}, "guarantee": {"k": 5}}
    assert not any(" by " in way.change for way in advise(table, free).ways)  # any interval of days does better
