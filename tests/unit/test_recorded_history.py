"""The past is the same however it is kept: release by release, in spans, or as where everybody stood last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from reveil import publish
from reveil.history import recorded
from reveil.history.history import SPELLED, History
from reveil.history.memory import memory_of
from reveil.ledger.ledger import Ledger
from reveil.publish import Series, open_series

ILLS = ("flu", "cold", "gout", "asthma", "lo")
POLICY: dict[str, Any] = {
    "columns": {"id": "identifier", "age": "quasi", "lo": "sensitive"},  # called as half of a hash is
    "values": {"change": "never"},
    "guarantee": {"model": "compromise-safety", "m": 3},
    "method": {"infeasible": "withhold"},
}
TABLES = ("members", "groups", "values")


def people(release: int, rows: int = 20) -> pl.DataFrame:
    """People come and go, and come back."""
    numbers = [i for i in range(rows + 3 * release) if (i * 7 + release) % 5]
    return pl.DataFrame(
        {
            "id": [f"p{i}" for i in numbers],
            "age": [20 + i * 11 % 60 for i in numbers],
            "lo": [ILLS[i * i % 5] for i in numbers],
        }
    )


def published(home: Path, releases: int, policy: dict[str, Any] = POLICY) -> Series:
    series = open_series(policy, home)
    for number in range(1, releases + 1):
        series.publish(people(number), seed=number)
    return series


def release_by_release(ledger: Ledger) -> History:
    """The definition: the rows of every release, one after the other."""
    numbers = [record.number for record in ledger.records()]
    stacked = {
        name: pl.concat([recorded.numbered(ledger.memory(number, name), number) for number in numbers])
        for name in TABLES
    }
    return History(head=numbers[-1], persons=recorded.history_of(ledger).persons, **stacked)


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Series:
    return published(tmp_path_factory.mktemp("recorded") / "home", 11)


def test_spans_are_the_releases_one_after_the_other(series: Series) -> None:
    expected, past = release_by_release(series.ledger), series.history()
    for name in TABLES:
        assert_frame_equal(getattr(past, name), getattr(expected, name))
    assert (past.members["group"] < 0).any()  # somebody was withheld


def test_what_is_opened_grows_with_the_logarithm(series: Series, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[int, str]] = []
    memory = Ledger.memory
    monkeypatch.setattr(Ledger, "memory", lambda ledger, n, name: opened.append((n, name)) or memory(ledger, n, name))
    past = series.history()
    _ = past.persons
    assert opened == [(11, "standing")]
    _ = past.members
    assert opened[1:] == [(11, "members"), (10, "members-span"), (8, "members-span")]


def test_the_newest_standing_is_where_everybody_stood_last(series: Series) -> None:
    expected, past = release_by_release(series.ledger), series.history()
    assert_frame_equal(past.standing().drop(SPELLED), expected.standing(), check_column_order=False)
    everybody = np.arange(past.persons.height + 2)
    assert past.last_codes(everybody, "lo").tolist() == expected.last_codes(everybody, "lo").tolist()
    assert past.last_codes(everybody, "lo").tolist()[-2:] == [-1, -1]
    assert past.persons.n_unique() == past.persons.height == expected.members["person"].n_unique()


def test_sums_are_those_of_the_groups(series: Series) -> None:
    expected = release_by_release(series.ledger).sums()
    assert_frame_equal(series.history().sums(), expected, check_dtypes=False)


def test_the_past_of_a_release_is_cut_off_before_it(series: Series) -> None:
    past = series.history().until(4)
    assert past.head == 3
    assert past.members["release"].unique().sort().to_list() == past.sums()["release"].to_list() == [1, 2, 3]


def test_large_releases_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "SPAN_ROWS", 50)  # two releases fit, four do not
    series = published(tmp_path / "home", 4)
    spans = [r.number for r in series.ledger.records() if "memory/members-span.parquet" in r.manifest]
    assert spans == [2]
    assert_frame_equal(series.history().members, release_by_release(series.ledger).members)


def test_a_promise_about_each_table_does_not_look_at_the_past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    single = {**POLICY, "guarantee": {"k": 3}}
    series = published(tmp_path / "home", 3, single)
    names = []
    memory = Ledger.memory
    monkeypatch.setattr(Ledger, "memory", lambda ledger, n, name: names.append((n, name)) or memory(ledger, n, name))
    series.publish(people(4), seed=4)
    assert names == [(3, "standing")]
    assert not [name for r in series.ledger.records() for name in r.manifest if name.endswith("-span.parquet")]


def test_homes_without_standing_and_spans_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the version before kept them: newcomers' hashes with each release, and nothing that rolls."""

    def before(encoded: Any, plan: Any, past: History, hashes: pl.DataFrame, policy: Any) -> dict[str, pl.DataFrame]:
        kept = memory_of(encoded, plan, past, hashes, policy)
        newcomers = kept["standing"].select("hi", "lo")[past.persons.height :]
        return {"persons": newcomers, **{name: kept[name] for name in TABLES}}

    monkeypatch.setattr(publish, "memory_of", before)
    for home in ("old", "new"):  # of the same key, from which all lots come
        (tmp_path / home).mkdir()
        (tmp_path / home / "key").write_bytes(bytes(32))
    old = published(tmp_path / "old", 3)
    monkeypatch.undo()
    new = published(tmp_path / "new", 3)
    for series in (old, new):
        for number in (4, 5):
            series.publish(people(number), seed=number)
    for name in TABLES:
        assert_frame_equal(getattr(old.history(), name), getattr(new.history(), name))
    assert_frame_equal(old.history().standing().drop(SPELLED), new.history().standing().drop(SPELLED))
    assert old.history().persons.n_unique() == new.history().persons.n_unique()
    assert all(found.holds for found in old.verify().values())  # type: ignore[union-attr]


def test_people_of_a_cohort_who_were_never_there_together_again_come_back_to_it(tmp_path: Path) -> None:
    """One is away in release 2, the other in release 3: only the first release says that they belong together."""
    policy: dict[str, Any] = {
        "columns": {"name": "identifier", "age": "quasi", "ill": "sensitive"},
        "values": {"change": "never"},
        "guarantee": {"model": "compromise-safety", "m": 2, "compromised": 0},
    }
    everybody = pl.DataFrame({"name": list("abcdefgh"), "age": list(range(20, 28)), "ill": list("wxyzwxyz")})
    series = open_series(policy, tmp_path / "home")
    first = series.publish(everybody).groups
    ones = [int(np.flatnonzero(first == group)[0]) for group in range(4)]
    others = [row for row in range(8) if row not in ones]
    series.publish(everybody[ones])
    series.publish(everybody[others], new_people=True)
    last = series.publish(everybody, new_people=True, accept=["same-table"])
    assert last.certificate.holds
    assert [[int(a == b) for b in last.groups] for a in last.groups] == [[int(a == b) for b in first] for a in first]
