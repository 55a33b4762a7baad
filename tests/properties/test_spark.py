"""Releases made on Spark are those made in blocks, byte for byte, and keep the promise by the oracle's own definitions.

One session for all cases: starting one takes longer than any of them.
"""

from __future__ import annotations

import base64
import pickle
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

import reveil
from properties.parts_cases import COLUMNS, PROMISES, TINY, holds, tables
from reveil.base.errors import InfeasibleError, InputError, ReveilError
from reveil.base.progress import silent
from reveil.jobs.in_parts import anonymize_in_blocks
from reveil.jobs.on_spark import anonymize_on_spark
from reveil.jobs.table_in_parts import Sizes
from reveil.policy.policy import load_policy

missing = "PySpark is missing" if find_spec("pyspark") is None else ""
missing = missing or ("" if shutil.which("java") else "Java is missing (Debian: default-jre-headless)")
pytestmark = pytest.mark.skipif(bool(missing), reason=f"{missing}: Spark is not tested")

NAMED = {"who": "identifier", **COLUMNS}
KEY = bytes(range(32))


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    from reveil.engine import spark

    found = spark.session_on("local[2]")
    found.sparkContext.setLogLevel("OFF")
    yield found
    found.stop()


def made(source: Any, policy: Any, target: Path, at_once: int) -> Any:
    """On Spark if it is one of its frames, otherwise in blocks."""
    how: dict[str, Any] = {"seed": 1, "key": KEY, "progress": silent}
    if isinstance(source, Path):
        return anonymize_in_blocks([source], policy, target, Sizes(at_once, **TINY), **how)
    return anonymize_on_spark(source, policy, target, sizes=Sizes(at_once, **TINY), **how)


def refused(job: Callable[[], Any]) -> list[Any]:
    with pytest.raises(ReveilError) as error:
        job()
    return sorted((fault.code, fault.where, fault.rows) for fault in error.value.faults)


def same_bytes(session: Any, folder: Path, promise: dict[str, Any], form: str, partitions: list[int]) -> None:
    """Whole, blocks of several sizes, the rows in another order, and Spark with so many partitions."""
    people = tables(7, 70).with_columns(pl.Series("who", [f"p{n}" for n in range(70)]))
    people.write_parquet(file := folder / "people.parquet")
    people.sample(fraction=1, shuffle=True, seed=2).write_parquet(mixed := folder / "mixed.parquet")
    policy = load_policy({"columns": NAMED, "guarantee": promise, "output": {"format": form}})
    assert reveil.anonymize(people, policy, seed=1).certificate.holds
    blocks = [made(one, policy, folder / f"blocks {n}", rows) for n, (one, rows) in enumerate([(file, 9), (mixed, 40)])]
    assert blocks[0].files > 2
    assert blocks[0].certificate.hashes == blocks[1].certificate.hashes
    for parts in partitions:
        frame = session.read.parquet(str(mixed)).repartition(parts)
        release = made(frame, policy, folder / f"spark {parts}", 25)
        assert release.certificate.hashes == blocks[0].certificate.hashes
        assert holds(release.table, promise)
        assert release.loss == blocks[0].loss
    for written in release.public.glob("*.parquet"):
        about = pq.read_metadata(written)
        assert about.metadata is None
        assert not any(about.row_group(0).column(i).is_stats_set for i in range(about.num_columns))


def strict_of(k: int) -> Any:
    return load_policy({"columns": {**COLUMNS, "who": "drop"}, "guarantee": {"k": k}})


def death_of_a_worker() -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Nobody tries again on one machine: `bench scale --faults` kills executors of a cluster."""

    def die(batches: Iterator[Any]) -> Iterator[Any]:
        from os import getpid, kill

        kill(getpid(), 9)
        yield from batches

    return die


def drawn_anew() -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Rows that are other ones each time they are read."""

    def other_people(batches: Iterator[Any]) -> Iterator[Any]:
        from os import urandom

        import pyarrow as pa

        for batch in batches:
            ages = [20 + number % 5 for number in range(batch.num_rows)]
            ills = [str(urandom(1)[0] % 9) for _ in ages]
            yield pa.RecordBatch.from_pydict(
                {"age": ages, "town": ["10"] * len(ages), "ill": ills, "note": ["a"] * len(ages)}
            )

    return other_people


def same_refusals(session: Any, folder: Path) -> None:
    """What a step refuses on an executor is refused here, as in blocks; and nothing is written."""
    people = tables(3, 40).with_columns(pl.Series("who", [f"p{n // 2}" for n in range(40)]))
    people.write_parquet(file := folder / "twice.parquet")
    frame, target = session.read.parquet(str(file)), folder / "refused"
    policy = load_policy({"columns": NAMED, "guarantee": {"k": 2}})
    assert refused(lambda: made(frame, policy, target, 9)) == refused(lambda: made(file, policy, target, 9))
    strict = strict_of(41)
    assert refused(lambda: made(frame, strict, target, 9)) == refused(lambda: made(file, strict, target, 9))
    with pytest.raises(InfeasibleError):
        made(frame, strict, target, 9)
    nobody: dict[str, Any] = {"out": target, "where": {"note": "c"}}
    with pytest.raises(InputError, match="R138"):
        reveil.anonymize(frame, strict, **nobody)
    with pytest.raises(InputError, match="R870"):
        reveil.anonymize(frame, policy, engine="whole")
    with pytest.raises(InputError, match="R870"):
        reveil.open_series({"columns": NAMED, "guarantee": {"k": 2}}, folder / "home").publish(frame)
    loose = load_policy({"columns": COLUMNS, "guarantee": {"k": 2}})
    drawn = session.range(60).mapInArrow(drawn_anew(), "age long, town string, ill string, note string")
    dying = session.range(60).mapInArrow(death_of_a_worker(), "age long, town string, ill string, note string")
    assert refused(lambda: made(dying, loose, target, 9)) == [("R879", "Spark", None)]
    assert "R880" in [code for code, _, _ in refused(lambda: made(drawn, loose, target, 9))]
    assert not target.exists()


class Planted:
    """What leaves a file where it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return Path.touch, (self.file,)


def cells_that_pass_for_refusals(session: Any, folder: Path) -> None:
    """Spark's errors quote cells: what stands in one is neither run nor taken for what a step has said."""
    from pyspark.sql import functions

    from reveil.engine import spark

    told = base64.b64encode(pickle.dumps(Planted(folder / "planted"))).decode()
    forged = spark.refusal_told(InfeasibleError([]))
    policy = load_policy({"columns": {"age": "quasi", "ill": "sensitive"}, "guarantee": {"k": 3}})
    for cell in (
        f"reveil-refusal:{told}:",
        f"reveil-refusal-{'0' * 32}:{told}:",
        f"reveil-refusal-{'0' * 32}:{forged}:",
    ):
        rows = [(str(20 + n % 9), "ab"[n % 2]) for n in range(30)] + [(cell, "a")]
        frame = session.createDataFrame(rows, ["age", "ill"]).withColumn("age", functions.col("age").cast("int"))
        assert refused(lambda: made(frame, policy, folder / "forged", 9)) == [("R879", "Spark", None)]  # noqa: B023
    assert not (folder / "planted").exists()
    assert not (folder / "forged").exists()


def one_call(session: Any, folder: Path) -> None:
    """As users call it: a frame is enough, and files with the engine's name; text is read as it is in Parquet."""
    people = tables(5, 60)
    people.with_row_index("index").write_parquet(file := folder / "a.parquet")
    policy = {"columns": COLUMNS, "guarantee": {"k": 3}}
    frame, how = session.read.parquet(str(file)), {"seed": 4, "key": KEY}
    with pytest.raises(InputError, match="R132"):
        reveil.anonymize(frame, policy, out=folder / "o")
    once = reveil.anonymize(frame, policy, out=folder / "o", accept=["row-index"], **how)
    again = reveil.anonymize(people, policy, engine="whole", **how)
    assert once.table["ill"].sort().to_list() == again.table["ill"].sort().to_list()
    asked: dict[str, Any] = {"engine": "spark", "master": "local[2]", "accept": ["row-index"], **how}
    assert reveil.anonymize(file, policy, out=folder / "f", **asked).certificate.hashes == once.certificate.hashes
    assert reveil.measure(folder / "o", people, policy, queries=0).rows == 60


def test_spark_does_what_blocks_do(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reveil.engine.spark.FAN", 2)  # so that executors join as well
    for number, (promise, form, partitions) in enumerate([(PROMISES[1], "parquet", [1, 3]), (PROMISES[5], "csv", [2])]):
        (folder := tmp_path / str(number)).mkdir()
        same_bytes(session, folder, promise, form, partitions)
    same_refusals(session, tmp_path)
    cells_that_pass_for_refusals(session, tmp_path)
    one_call(session, tmp_path)


@pytest.mark.parametrize(
    ("settings", "open_to_others"),
    [
        ({"spark.master": "local[4]", "spark.io.encryption.enabled": "true"}, False),
        ({"spark.master": "local"}, True),
        ({"spark.master": "yarn", "spark.io.encryption.enabled": "true"}, True),
        ({"spark.io.encryption.enabled": "true", "spark.network.crypto.enabled": "true"}, False),
    ],
)
def test_a_cluster_without_encryption_is_named(settings: dict[str, str], open_to_others: bool) -> None:
    from reveil.engine import spark

    class Named:
        conf = settings

    assert spark.unprotected(Named()) == open_to_others  # type: ignore[arg-type]


def test_what_spark_is_told_in_vain_is_refused_before_it_starts(tmp_path: Path) -> None:
    tables(1, 20).write_parquet(tmp_path / "p.parquet")
    tables(1, 20).write_csv(tmp_path / "p.csv")
    policy: dict[str, Any] = {"columns": COLUMNS, "guarantee": {"k": 2}}
    out = tmp_path / "out"
    cases: list[tuple[Any, dict[str, Any], dict[str, Any], str]] = [
        (tmp_path / "p.parquet", policy, {"engine": "spark"}, "R875"),
        (tmp_path / "p.csv", policy, {"engine": "spark", "out": out}, "R875"),
        (tables(1, 20), policy, {"engine": "spark", "out": out}, "R875"),
        (tmp_path / "p.parquet", policy, {"engine": "spark", "out": out, "memory": "4GB"}, "R875"),
        (tmp_path / "p.parquet", policy, {"engine": "blocks", "out": out, "master": "local"}, "R875"),
        (tmp_path / "p.parquet", policy, {"engine": "spark", "out": out, "master": "nonsense"}, "R875"),
        (tmp_path / "p.parquet", {**policy, "method": {"recode": "sets"}}, {"engine": "spark", "out": out}, "R870"),
        (tmp_path / "p.parquet", policy, {"engine": "spark", "out": out, "seed": -1}, "R222"),
    ]
    for table, rules, how, code in cases:
        with pytest.raises(InputError) as error:
            reveil.anonymize(table, rules, **how)
        assert {fault.code for fault in error.value.faults} == {code}
    assert not out.exists()
