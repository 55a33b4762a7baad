"""Releases made at once and in blocks keep the same promise, judged by the oracle's own definitions."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.parts_cases import COLUMNS, PROMISES, TINY, holds, tables
from reveil.base.errors import InfeasibleError
from reveil.jobs.in_parts import anonymize_in_blocks
from reveil.jobs.table_in_parts import Sizes
from reveil.measure.measure import measure
from reveil.policy.policy import load_policy
from reveil.publish import anonymize


def distinct(table: pl.DataFrame) -> int:
    """Classes that show anything."""
    return table.filter((pl.col("age") != "*") | (pl.col("town") != "*")).select("age", "town").n_unique()


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 90), st.sampled_from(PROMISES), st.sampled_from(["csv", "parquet"]))
def test_blocks_keep_what_the_whole_keeps(seed: int, rows: int, promise: dict[str, Any], form: str) -> None:
    table = tables(seed, rows)
    policy = load_policy({"columns": COLUMNS, "guarantee": promise, "output": {"format": form}})
    with TemporaryDirectory() as folder:
        file = Path(folder) / "people.parquet"
        table.write_parquet(file)

        def blocks(at_once: int) -> Any:
            sizes = Sizes(at_once, **TINY)
            return anonymize_in_blocks([file], policy, Path(folder) / str(at_once), sizes, seed=1, key=bytes(32))

        try:
            anonymize(table, policy, seed=1)
        except InfeasibleError as refused:
            with pytest.raises(InfeasibleError) as also:
                blocks(7)
            assert {fault.code for fault in also.value.faults} == {fault.code for fault in refused.faults}
            return
        release = blocks(7)
        assert release.certificate.holds
        assert holds(release.table, promise)
        found, lost = measure(release.table, table, policy, queries=0), release.loss
        assert (found.discernibility, found.classes) == (lost.discernibility, distinct(release.table))
        assert abs(found.ncp_mean - lost.mean) < 1e-9
        same = ["ill", "note"]
        assert release.table.select(same).sort(same).equals(table.select(same).sort(same))
        assert release.certificate.hashes == blocks(1000).certificate.hashes == blocks(31).certificate.hashes


@pytest.mark.parametrize("promise", PROMISES[:2] + PROMISES[4:6], ids=str)
def test_loss_is_that_of_the_whole(promise: dict[str, Any], tmp_path: Path) -> None:
    table = tables(3, 6000)
    policy = load_policy({"columns": COLUMNS, "guarantee": promise})
    table.write_parquet(tmp_path / "people.parquet")
    anonymize(table, policy, seed=1, out=tmp_path / "whole")
    how = {"seed": 1, "key": bytes(32)}
    sizes = Sizes(500, part=1500, file=1000, sample=2000)
    release = anonymize_in_blocks([tmp_path / "people.parquet"], policy, tmp_path / "blocks", sizes, **how)
    whole = pl.read_json(tmp_path / "whole" / "private" / "plan.json")["loss"].struct.field("mean_ncp")[0]
    assert release.loss.mean <= 1.02 * whole


def test_suppression_stays_within_its_limit(tmp_path: Path) -> None:
    table = tables(5, 900)
    policy = load_policy({"columns": COLUMNS, "guarantee": {"k": 4}, "method": {"suppress": 0.05}})
    table.write_parquet(tmp_path / "people.parquet")
    sizes = Sizes(100, part=200, file=300, sample=300)
    release = anonymize_in_blocks([tmp_path / "people.parquet"], policy, tmp_path / "out", sizes, seed=1, key=bytes(32))
    counts = release.certificate.counts
    assert counts["withheld rows"] <= 45
    assert counts["withheld rows"] + release.table.height == 900
