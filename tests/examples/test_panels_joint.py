"""The joint view on a real panel. Runs where the data lies beside the project (it is not ours to ship)."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import reveil

DATA = Path(__file__).parents[3] / "shared" / "data" / "meps_panel_2015_2016.parquet"


@pytest.mark.skipif(not DATA.exists(), reason="needs the MEPS panel")
def test_occupations_of_a_panel(tmp_path):
    panel = pl.read_parquet(DATA).filter((pl.col("occupation") > 0) & (pl.col("person_id") // 100 % 4 == 0))
    panel = panel.select("release", "person_id", "age", "sex", pl.col("occupation").cast(pl.String).alias("job"))
    steps = panel.sort("person_id", "release").with_columns(after=pl.col("job").shift(-1).over("person_id"))
    counts = {value: {value: 1} for value in panel["job"].unique().sort()}
    for before, after, rows in steps.drop_nulls("after").group_by("job", "after").len().iter_rows():
        counts[before][after] = rows
    chances = {a: {b: f"{n}/{sum(row.values())}" for b, n in row.items()} for a, row in counts.items()}
    policy = {
        "columns": {"person_id": "identifier", "age": "quasi", "sex": "quasi", "job": "sensitive"},
        "values": {"change": "transitions", "transitions": chances, "closure": "one-step"},
        "guarantee": {"model": "m-distinct", "m": 4, "tau": "1/2"},
        "method": {"infeasible": "withhold"},
    }
    series = reveil.open_series(policy, home=tmp_path / "home")
    shares = []
    for number in range(1, 6):
        table = panel.filter(pl.col("release") == number).drop("release")
        release = series.publish(table, seed=number)
        assert release.certificate.holds
        shares.append(1 - release.certificate.counts["withheld rows"] / table.height)
    assert min(shares) > 0.5, shares
