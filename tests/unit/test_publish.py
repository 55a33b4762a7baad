"""The calls that Python users make: series, single releases, checks, and the objects that come back."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import shutil
import stat
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import reveil
from reveil.base.errors import InfeasibleError, InputError, ReveilError, TamperedError
from reveil.write.recode import Recoded

POLICY: dict[str, Any] = {
    "series": {"name": "<b>visits</b>"},
    "columns": {"id": "identifier", "age": "quasi", "sex": "quasi", "ill": "sensitive"},
    "guarantee": {"k": 2},
}
TOML = """
[series]
name = "<b>visits</b>"
[columns]
id = "identifier"
age = "quasi"
sex = "quasi"
ill = "sensitive"
[guarantee]
k = 2
"""


def people(first: int = 0, rows: int = 12) -> pl.DataFrame:
    numbers = range(first, first + rows)
    return pl.DataFrame(
        {
            "id": list(numbers),
            "age": [20 + i * 7 % 50 for i in numbers],
            "sex": ["mf"[i % 2] for i in numbers],
            "ill": [("flu", "cold", "gout")[i % 3] for i in numbers],
        }
    )


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(folder.rglob("*"))
    }


def test_a_policy_is_a_path_a_dict_or_an_object(tmp_path: Path) -> None:
    (tmp_path / "reveil.toml").write_text(TOML)
    tables = []
    for number, policy in enumerate(
        (tmp_path / "reveil.toml", str(tmp_path / "reveil.toml"), POLICY, reveil.load_policy(POLICY))
    ):
        home = tmp_path / f"home{number}"
        home.mkdir()
        (home / "key").write_bytes(bytes(32))
        series = reveil.open_series(policy, home)
        tables.append(series.publish(people(), seed=1).table)
    for table in tables[1:]:
        assert_frame_equal(table, tables[0])


def test_the_home_is_beside_the_policy_unless_given(tmp_path: Path) -> None:
    (tmp_path / "reveil.toml").write_text(TOML)
    release = reveil.open_series(tmp_path / "reveil.toml").publish(people())
    assert release.path == tmp_path / ".reveil" / "releases" / "0001"


def test_planning_changes_nothing(tmp_path: Path) -> None:
    series = reveil.open_series(POLICY, tmp_path / "home")
    preview = series.plan(people())
    assert preview.number == 1
    assert not (tmp_path / "home").exists()
    assert series.releases == ()
    assert series.verify() == {}
    assert "0 releases" in repr(series)
    assert not (tmp_path / "home").exists()
    series.publish(people())
    before = tree(tmp_path)
    preview = series.plan(people(3))
    assert preview.number == 2
    assert preview.rows == 12
    assert tree(tmp_path) == before


def test_an_empty_folder_may_be_a_home(tmp_path: Path) -> None:
    series = reveil.open_series(POLICY, tmp_path)
    series.plan(people())
    assert list(tmp_path.iterdir()) == []
    assert series.publish(people()).number == 1


def test_a_series_goes_on_where_it_stopped(tmp_path: Path) -> None:
    first = reveil.open_series(POLICY, tmp_path / "home")
    one, two = first.publish(people()), first.publish(people(3))
    again = reveil.open_series(POLICY, tmp_path / "home")
    three = again.publish(people(6))
    assert [one.number, two.number, three.number] == [1, 2, 3]
    assert [release.number for release in first.releases] == [1, 2, 3]
    for made, loaded in zip((one, two, three), again.releases, strict=True):
        assert_frame_equal(made.table, loaded.table)
        assert made.groups.tolist() == loaded.groups.tolist()
        assert made.certificate.to_dict() == loaded.certificate.to_dict()
        assert made.path == loaded.path
    assert "3 releases" in repr(again)
    assert again.history().persons.height == 18


def test_people_are_known_again_however_their_number_is_written(tmp_path: Path) -> None:
    series = reveil.open_series({**POLICY, "values": {"change": "never"}}, tmp_path / "home")
    series.publish(people())
    for kind in (pl.String, pl.Float64):
        series.publish(people().with_columns(pl.col("id").cast(kind)), accept=["same-table"])
    assert series.history().persons.height == 12
    with pytest.raises(InputError, match="R311"):
        series.publish(people().with_columns(pl.col("id").cast(pl.String), ill=pl.lit("gout")))


def test_large_identifiers_are_different_people(tmp_path: Path) -> None:
    series = reveil.open_series(POLICY, tmp_path / "home")
    series.publish(people().with_columns(id=pl.Series([2**63 + i for i in range(12)], dtype=pl.UInt64)))
    assert series.history().persons.n_unique() == 12


def test_a_series_without_a_sensitive_column(tmp_path: Path) -> None:
    policy = {**POLICY, "columns": {"id": "identifier", "age": "quasi", "sex": "quasi", "ill": "drop"}}
    series = reveil.open_series(policy, tmp_path / "home")
    series.publish(people())
    assert series.publish(people(2)).table.columns == ["group", "age", "sex"]


def test_a_refusal_leaves_the_series_as_it_was(tmp_path: Path) -> None:
    series = reveil.open_series({**POLICY, "guarantee": {"k": 2, "l": 2}}, tmp_path / "home")
    series.publish(people())
    before = tree(tmp_path)
    with pytest.raises(InfeasibleError, match="R402"):
        series.publish(people().with_columns(ill=pl.lit("flu")))
    assert tree(tmp_path) == before


def test_a_failure_while_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong between staging and recording, bugs included."""
    series = reveil.open_series(POLICY, tmp_path / "home")
    series.publish(people())
    before = tree(tmp_path)
    for stage in ("recode", "emit", "verify", "write_reports", "memory_of", "facts_of"):
        with monkeypatch.context() as patch:
            patch.setattr(f"reveil.publish.{stage}", lambda *_, **__: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                series.publish(people(3))
        assert tree(tmp_path) == before
    assert series.publish(people(3)).number == 2


def test_a_damaged_release_is_not_loaded(tmp_path: Path) -> None:
    series = reveil.open_series(POLICY, tmp_path / "home")
    release = series.publish(people())
    assert release.public is not None
    table = release.public / "table.csv"
    table.write_text(table.read_text().replace("flu", "flo", 1))
    with pytest.raises(TamperedError, match=r"R524 release 1, public/table.csv"):
        _ = series.releases


def test_anonymize_leaves_two_halves_or_nothing(tmp_path: Path) -> None:
    before = tree(tmp_path)
    release = reveil.anonymize(people(), POLICY, seed=4, key=bytes(32))
    assert release.path is None
    assert release.number is None
    assert release.public is None
    assert release.counterfeits is None
    assert "group" not in release.table.columns
    assert tree(tmp_path) == before
    kept = reveil.anonymize(people(), POLICY, seed=4, key=bytes(32), out=tmp_path / "out")
    assert_frame_equal(kept.table, release.table)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["private", "public"]
    assert stat.S_IMODE((tmp_path / "out" / "private").stat().st_mode) == 0o700
    assert sorted(path.name for path in (tmp_path / "out" / "public").iterdir()) == ["datapackage.json", "table.csv"]
    before = tree(tmp_path)
    with pytest.raises(InputError, match="R513"):
        reveil.anonymize(people(), POLICY, out=tmp_path / "out")
    assert tree(tmp_path) == before


def test_anonymize_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copytree", full)
    with pytest.raises(InputError, match=r"R506 .*No space left"):
        reveil.anonymize(people(), POLICY, out=tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_sources(tmp_path: Path) -> None:
    """Every form of the same table gives the same release."""
    frame = people()
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    sources = [
        frame,
        frame.lazy(),
        frame.to_arrow(),
        frame.to_pandas(),
        tmp_path / "t.csv",
        str(tmp_path / "t.parquet"),
    ]
    tables = [reveil.anonymize(source, POLICY, seed=1, key=bytes(32)).table for source in sources]
    for table in tables[1:]:
        assert_frame_equal(table, tables[0])


def test_check_judges_what_others_published() -> None:
    policy = {"columns": {"age": "quasi", "ill": "sensitive"}, "guarantee": {"k": 2}}
    good = pl.DataFrame({"age": ["[20, 30[", "[20, 30[", "*", "*"], "ill": ["a", "b", "a", "b"]})
    assert reveil.check(good, policy).holds
    found = reveil.check(good.head(3), policy)
    assert not found.holds
    assert found.counts["smallest group"] == 1
    with pytest.raises(InputError, match="R604 column 'ill'"):
        reveil.check(good.drop("ill"), policy)


def test_check_takes_a_column_called_group_for_what_the_policy_says() -> None:
    """Two classes of equal cells, though the column called group would make one."""
    table = pl.DataFrame({"group": ["a", "a", "a"], "age": ["20", "20", "*"]})
    policy = {"columns": {"group": "sensitive", "age": "quasi"}, "guarantee": {"k": 2}}
    assert not reveil.check(table, policy).holds


def test_objects_are_frozen_and_show_themselves(tmp_path: Path) -> None:
    series = reveil.open_series(POLICY, tmp_path / "home")
    preview, release = series.plan(people()), series.publish(people())
    for thing in (preview, release, release.certificate):
        field = dataclasses.fields(thing)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, field, None)
        json.dumps(thing.to_dict())
        assert len(repr(thing)) < 300
        page = thing._repr_html_()
        assert page.startswith("<")
        assert "<b>visits</b>" not in page  # names are data, not markup
    assert repr(release).startswith("<Release 1 of '<b>visits</b>': 12 rows in ")
    assert "the promise holds" in repr(release)
    assert "Preview of release 1 under k-anonymity: 12 rows" in repr(preview)
    assert release.to_dict()["certificate"]["holds"] is True
    assert preview.to_dict()["release"] == 1


def test_a_certificate_says_what_was_assumed_and_checked(tmp_path: Path) -> None:
    release = reveil.open_series(POLICY, tmp_path / "home").publish(people())
    certificate = release.certificate
    assert release.path is not None
    assert json.loads((release.path / "private" / "certificate.json").read_text()) == certificate.to_dict()
    assert certificate.counts["input rows"] == certificate.counts["published rows"] == 12
    assert any("age, sex" in sentence for sentence in certificate.assumptions)
    assert any("promise about one table" in sentence for sentence in certificate.limits)
    assert set(certificate.hashes) == {"counterfeits.csv", "datapackage.json", "table.csv"}
    for name, digest in certificate.hashes.items():
        assert hashlib.sha256((release.path / "public" / name).read_bytes()).hexdigest() == digest
    text = json.dumps(certificate.to_dict()).lower()
    assert "compliant" not in text
    assert "safe" not in text.replace("compromise-safety", "").replace("historical-safety", "")


def test_a_seed_stays_private(tmp_path: Path) -> None:
    seed = 918_273_645
    release = reveil.open_series(POLICY, tmp_path / "home").publish(people(), seed=seed)
    assert release.public is not None
    assert all(str(seed).encode() not in path.read_bytes() for path in release.public.iterdir())


def test_memory_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is written beside the release; the staged folder goes only when both are done."""
    from reveil import publish
    from reveil.ledger.ledger import Ledger

    failed = threading.Event()
    reports = publish.write_reports

    def no_space(*_: object) -> None:
        failed.set()
        raise OSError(errno.ENOSPC, "No space left on device")

    def slowly(*args: Any, **kwargs: Any) -> None:
        assert failed.wait(60)
        reports(*args, **kwargs)

    monkeypatch.setattr(Ledger, "write_memory", no_space)
    monkeypatch.setattr(publish, "write_reports", slowly)
    series = reveil.open_series(POLICY, home=tmp_path / "home")
    with pytest.raises(ReveilError, match="R506"):
        series.publish(people())
    assert not list((tmp_path / "home" / "staging").iterdir())
    assert series.releases == ()


LASTING: dict[str, Any] = {
    "columns": {"id": "identifier", "age": "quasi", "ill": "sensitive"},
    "values": {"change": "never"},
    "guarantee": {"model": "m-invariance", "m": 2},
}


def test_the_same_seed_does_not_put_rows_in_the_same_order(tmp_path: Path) -> None:
    """Whoever knows the groups would otherwise know people again by the places of their rows."""
    table = pl.DataFrame({"id": range(40), "age": range(20, 60), "ill": [f"illness {i}" for i in range(40)]})
    series = reveil.open_series(LASTING, home=tmp_path / "home")
    same = ["same-table"]
    first, second = (series.publish(table, seed=1, accept=same).table["ill"].to_list() for _ in range(2))
    assert sum(a == b for a, b in zip(first, second, strict=True)) < 10
    (tmp_path / "again").mkdir()
    shutil.copy(tmp_path / "home" / "key", tmp_path / "again")
    again = reveil.open_series(LASTING, home=tmp_path / "again")
    assert [again.publish(table, seed=1, accept=same).table["ill"].to_list() for _ in range(2)] == [first, second]


def test_values_in_the_wrong_group_are_found_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each table as a whole has the right values, so that only a look into the groups tells."""
    from reveil import publish

    table = pl.DataFrame({"id": range(8), "age": range(20, 28), "ill": list("abcdefgh")})
    emit = publish.emit

    def exchanged(tables: dict[str, Recoded], *rest: Any) -> None:
        shown = tables["table"].table.sort("group")
        values = shown["ill"].to_list()
        values[0], values[-1] = values[-1], values[0]
        emit({"table": shown.with_columns(pl.Series("ill", values))}, *rest)

    series = reveil.open_series(LASTING, home=tmp_path / "home")
    series.publish(table)
    monkeypatch.setattr(publish, "emit", exchanged)
    with pytest.raises(ReveilError, match="by group"):
        reveil.open_series(LASTING, home=tmp_path / "other").publish(table)
    assert all(verdict.holds for verdict in series.verify().values())  # type: ignore[union-attr]
