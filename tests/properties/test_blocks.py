"""Releases made at once and in blocks keep the same promise, judged by the oracle's own definitions."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import disclosure, likeness, single
from reveil.base.errors import InfeasibleError
from reveil.jobs.in_blocks import Sizes, anonymize_in_blocks
from reveil.measure.measure import measure
from reveil.policy.policy import load_policy
from reveil.publish import anonymize

COLUMNS = {"age": "quasi", "town": {"role": "quasi", "prefixes": [1]}, "ill": "sensitive", "note": "insensitive"}
PROMISES: list[dict[str, Any]] = [
    {"k": 3},
    {"model": "l-diversity", "k": 2, "l": 2},
    {"model": "l-diversity", "l": 2, "diversity": "entropy"},
    {"model": "l-diversity", "l": 2, "c": 2, "diversity": "recursive"},
    {"model": "alpha-k", "k": 2, "alpha": 0.6},
    {"model": "t-closeness", "k": 2, "t": 0.4},
    {"model": "beta-likeness", "beta": 2},
    {"model": "beta-likeness", "beta": 1, "likeness": "basic"},
    {"model": "delta-disclosure", "delta": 1},
]
TINY = {"part": 8, "file": 13, "sample": 30}  # parts that often cannot keep the promise by themselves


def tables(seed: int, rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    town, ill = ["10", "11", "20", "21", "30"], ["flu", "cold", "asthma", "gout", None]
    return pl.DataFrame(
        {
            "age": rng.integers(20, 20 + rng.integers(1, 60), rows),
            "town": rng.choice(town, rows),
            "ill": pl.Series([ill[i] for i in np.minimum(rng.geometric(0.4, rows) - 1, 4)], dtype=pl.String),
            "note": rng.choice(["a", "b"], rows),
        }
    )


def holds(table: pl.DataFrame, promise: dict[str, Any]) -> bool:
    """The promise by its definition, as the oracles have it."""
    classes = [group["ill"].to_list() for _, group in table.group_by("age", "town")]
    asked = {name: Fraction(str(value)) for name, value in promise.items() if isinstance(value, (int, float))}
    kept = [single.smallest_class(classes) >= asked.get("k", 1)]
    match promise.get("model"):
        case "l-diversity" if promise.get("diversity") == "entropy":
            kept.append(single.entropy_diverse(classes, promise["l"]))
        case "l-diversity" if promise.get("diversity") == "recursive":
            kept.append(single.recursively_diverse(classes, asked["c"], promise["l"]))
        case "l-diversity":
            kept.append(single.fewest_values(classes) >= promise["l"])
        case "alpha-k":
            kept.append(single.largest_share(classes) <= asked["alpha"])
        case "t-closeness":
            values = sorted({value for rows in classes for value in rows}, key=str)
            kept.append(single.furthest_class(classes, single.ground_equal(values)) <= asked["t"])
        case "beta-likeness":
            kept.append(likeness.holds(classes, asked["beta"], promise.get("likeness") != "basic"))
        case "delta-disclosure":
            kept.append(disclosure.holds(classes, asked["delta"]))
        case model:
            assert model is None
    return all(kept)


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
