"""Jobs as plain data: the same result as the call, over a wire and back, and a refusal of what means nothing."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import reveil
from reveil.base.errors import InputError
from reveil.jobs.specs import (
    SPECS,
    AnonymizeSpec,
    AuditSpec,
    HistorySpec,
    MeasureSpec,
    PlanSpec,
    PublishSpec,
    ShowSpec,
    VerifySpec,
    load_spec,
)

POLICY = """
[columns]
id = "identifier"
age = "quasi"
ill = "sensitive"
[guarantee]
model = "l-diversity"
l = 2
k = 2
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "reveil.toml").write_text(POLICY)
    people = pl.DataFrame({"id": [*range(12)], "age": [*range(12)], "ill": ["flu", "cold", "gout"] * 4})
    people.write_csv(tmp_path / "people.csv")
    return tmp_path


def test_every_job_goes_over_a_wire_and_does_the_same(folder: Path) -> None:
    policy, table = folder / "reveil.toml", folder / "people.csv"
    publish = PublishSpec(table, policy, seed=3)
    assert load_spec(json.loads(json.dumps(publish.to_dict()))) == PublishSpec(str(table), str(policy), seed=3)
    previewed = load_spec(PlanSpec(table, policy, seed=3).to_dict()).run().to_dict()
    release = load_spec(publish.to_dict()).run()
    assert previewed["groups"] == release.certificate.counts["groups"]
    public = release.path / "public"
    for spec in (
        HistorySpec(policy),
        ShowSpec(policy, 1),
        VerifySpec(policy),
        VerifySpec(policy, 1),
        VerifySpec(policy, str(public)),
        AuditSpec(policy=policy, settings={"share": "1/4", "limit": 5.0}),
        MeasureSpec(public, table, policy, queries=10),
        AnonymizeSpec(table, policy, seed=3, out=folder / "out"),
    ):
        assert json.loads(json.dumps(load_spec(json.loads(json.dumps(spec.to_dict()))).run().to_dict(), default=str))
    assert VerifySpec(policy).run().holds
    assert [r["number"] for r in HistorySpec(policy).run().releases] == [1]


def test_the_same_measure_from_paths_and_from_frames(folder: Path) -> None:
    policy, table = folder / "reveil.toml", folder / "people.csv"
    release = AnonymizeSpec(table, policy, seed=3, out=folder / "out").run()
    frame = pl.read_csv(table)
    wanted = reveil.measure(release.table, frame, policy, queries=0)
    assert reveil.measure(folder / "out", table, policy, queries=0) == wanted
    assert reveil.measure(folder / "out", frame.to_pandas(), policy, queries=0) == wanted


def test_what_means_nothing_is_refused_at_once() -> None:
    with pytest.raises(InputError) as refusal:
        load_spec({"job": "publish", "tabel": "people.csv"})
    assert [(f.code, f.where) for f in refusal.value.faults] == [
        ("R796", "tabel"),
        ("R796", "policy"),
        ("R796", "table"),
    ]
    with pytest.raises(InputError, match="is no job"):
        load_spec({"job": "undo"})
    with pytest.raises(InputError, match="cannot be described"):
        PublishSpec(pl.DataFrame(), "reveil.toml").to_dict()


def test_describing_a_job_loads_nothing() -> None:
    import subprocess
    import sys

    heavy = ("polars", "numpy", "numba", "pydantic", "sqlalchemy", "pyarrow", "scipy")
    code = f"import sys, reveil.jobs.specs; sys.exit(any(name in sys.modules for name in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    assert set(SPECS) >= {"plan", "publish", "anonymize", "audit", "measure", "history", "verify"}
