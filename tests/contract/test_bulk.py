"""What every store of files must do. Another backend is one more line in `BACKENDS`; its cases are these."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reveil.base.errors import InputError
from reveil.ledger.folder import Folders
from reveil.ledger.protocols import Bulk
from reveil.ledger.record import Record, ReleaseState

Open = Callable[[], Bulk]  # the same store each time, as another process would open it
BACKENDS: dict[str, Callable[[Path], Bulk]] = {"folders": Folders}
FILES = {"public/table.csv": b"age;n\n", "private/report.html": b"<p>", "memory/people.parquet": bytes(9)}


@pytest.fixture(params=BACKENDS)
def reopened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    return lambda: BACKENDS[request.param](tmp_path)


def staged_in(bulk: Bulk) -> Path:
    staged = bulk.stage()
    for name, data in FILES.items():
        bulk.put(staged, name, data)
    return staged


def sealed_in(bulk: Bulk, number: int = 1) -> Record:
    staged = staged_in(bulk)
    return Record(number, "id", "", "now", {}, bulk.seal(staged), ReleaseState.RECORDED, staged.name)


def test_nothing_is_there(reopened: Open) -> None:
    assert reopened().staged() == reopened().revealed() == []
    record = Record(1, "id", "", "now", {}, {"public/a": {"sha256": "", "size": 0}}, ReleaseState.REVEALED, "token")
    assert reopened().locate(record) is None
    assert reopened().compare(record) is None
    assert reopened().read(record, "public/a") is None


def test_the_manifest_names_every_file_by_its_hash(reopened: Open) -> None:
    record = sealed_in(reopened())
    expected = {name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name, data in FILES.items()}
    assert record.manifest == expected


def test_sealed_files_are_read_back_before_and_after_they_are_revealed(reopened: Open) -> None:
    bulk = reopened()
    record = sealed_in(bulk)
    for told in (record, replace(record, state=ReleaseState.REVEALED)):
        if told.revealed:
            assert bulk.reveal(record) == bulk.reveal(record) == bulk.place_of(told)
            bulk.forget(record)
        assert reopened().locate(told) == reopened().place_of(told)
        assert {name: reopened().read(told, name) for name in FILES} == FILES
        assert not reopened().compare(told)
    assert reopened().locate(record) == reopened().place_of(told)  # whoever knows only that it was recorded finds it
    assert reopened().revealed() == ["0001"]
    assert reopened().staged() == []


def test_what_is_not_as_recorded_is_not_read(reopened: Open) -> None:
    record = sealed_in(reopened())
    folder = reopened().locate(record)
    assert folder is not None
    (folder / "public" / "table.csv").write_bytes(b"age;m\n")
    (folder / "memory" / "people.parquet").unlink()
    (folder / "private" / "new.txt").write_bytes(b"")
    assert reopened().read(record, "public/table.csv") is reopened().read(record, "memory/people.parquet") is None
    difference = reopened().compare(record)
    assert difference
    assert (difference.changed, difference.missing) == (["public/table.csv"], ["memory/people.parquet"])
    assert difference.extra == ["private/new.txt"]


def test_a_staged_release_is_its_makers_while_they_live(reopened: Open) -> None:
    maker, other = reopened(), reopened()
    staged = staged_in(maker)
    token = staged.name
    assert maker.mine(token)
    assert maker.token_of(staged) == token
    assert maker.token_of(staged.parent / "elsewhere" / token) is other.token_of(staged) is None
    assert not other.mine(token)
    assert not other.claim(token)
    assert other.staged() == [token]
    maker.let_go(token)
    assert not maker.mine(token)
    assert other.has(token)
    assert other.claim(token)
    assert other.discard(token)
    assert other.staged() == []
    assert not other.has(token)


def test_a_lock_without_files_is_discarded_as_nothing(reopened: Open) -> None:
    maker, other = reopened(), reopened()
    token = maker.stage().name
    maker.discard(token)
    assert other.claim(token)
    assert not other.discard(token)
    assert other.staged() == []


def test_nothing_but_plain_files_is_sealed(reopened: Open) -> None:
    bulk = reopened()
    staged = staged_in(bulk)
    (staged / "loose.txt").write_text("")
    with pytest.raises(InputError, match=r"R511.*loose\.txt"):
        bulk.seal(staged)


def test_a_staged_file_takes_the_place_of_a_revealed_one_once(reopened: Open) -> None:
    bulk = reopened()
    record = sealed_in(bulk)
    bulk.reveal(record)
    bulk.forget(record)
    told = replace(record, state=ReleaseState.REVEALED)
    staged = bulk.stage()
    bulk.put(staged, "memory/0001-people.parquet", b"other")
    bulk.seal(staged)
    for other in (reopened(), bulk, reopened()):  # whoever comes first
        other.replace(told, "memory/people.parquet", staged.name, "memory/0001-people.parquet")
    assert (reopened().place_of(told) / "memory/people.parquet").read_bytes() == b"other"
    entry = {"sha256": hashlib.sha256(b"other").hexdigest(), "size": 5}
    now = replace(told, manifest={**record.manifest, "memory/people.parquet": entry})  # type: ignore[dict-item]
    assert not reopened().compare(now)
    for _ in range(2):
        reopened().drop(now, "memory/people.parquet")
    assert reopened().compare(now).missing == ["memory/people.parquet"]  # type: ignore[union-attr]
