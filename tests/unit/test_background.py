"""What a policy states beside the table is read once per job, and a fault of any of it is told with all others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import reveil
from reveil.background.loading import load_background
from reveil.base.errors import InputError
from reveil.policy.policy import load_policy


def policy(folder):
    columns = {
        "who": "identifier",
        "zip": {"role": "quasi", "hierarchy": "zip.csv"},
        "age": "quasi",
        "ill": "sensitive",
    }
    return {
        "columns": columns,
        "guarantee": {"k": 2, "delta_max": 0.9, "population": "people.csv"},
        "method": {"recode": "sets"},
        "folder": folder,
    }


@pytest.fixture
def read(tmp_path, monkeypatch):
    """A folder of files that a policy names, and how often each was read."""
    (tmp_path / "zip.csv").write_text("a;X;*\nb;X;*\nc;Y;*\n", encoding="utf-8")
    pl.DataFrame({"zip": list("abcabc"), "age": [1, 2, 3, 4, 5, 6]}).write_csv(tmp_path / "people.csv")
    opened, open_bytes = Counter(), Path.read_bytes

    def counted(path):
        opened[path.name] += 1
        return open_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", counted)
    return opened


TABLE = pl.DataFrame({"who": list("pqrs"), "zip": list("abca"), "age": [1, 2, 3, 4], "ill": list("xyxz")})


def test_files_are_read_once_per_job(tmp_path, read):
    series = reveil.open_series(policy(tmp_path), tmp_path / "home")
    for release in (1, 2):
        series.publish(TABLE, seed=1, accept=["same-table"])
        assert (read["zip.csv"], read["people.csv"]) == (release, release)
    read.clear()
    reveil.anonymize(TABLE, policy(tmp_path), seed=1)
    assert (read["zip.csv"], read["people.csv"]) == (1, 1)
    read.clear()
    reveil.link(series.releases[0], TABLE.drop("ill"), policy(tmp_path), original=TABLE)
    assert (read["zip.csv"], read["people.csv"]) == (1, 1)


def test_faults_of_all_files_are_told_together(tmp_path, read):
    (tmp_path / "zip.csv").write_text("a;X;*\nb;X\n", encoding="utf-8")
    pl.DataFrame({"age": [1]}).write_csv(tmp_path / "people.csv")
    with pytest.raises(InputError) as refusal:
        load_background(load_policy(policy(tmp_path)))
    assert [fault.code for fault in refusal.value.faults] == ["R303", "R210"]
    with pytest.raises(InputError) as refusal:
        reveil.anonymize(TABLE.drop("ill"), policy(tmp_path))
    assert [fault.code for fault in refusal.value.faults] == ["R303", "R210", "R210"]
