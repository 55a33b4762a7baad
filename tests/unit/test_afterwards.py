"""After a release was published: handing over, and taking back what nobody has."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import reveil
from reveil.base.errors import ConflictError, InfeasibleError, InputError, TamperedError
from reveil.jobs.specs import DiscardSpec
from reveil.ledger.events import DISCARD, next_event
from reveil.ledger.ledger import Ledger
from reveil.ledger.record import ReleaseState
from support import cli

POLICY: dict[str, Any] = {
    "columns": {"who": "identifier", "age": "quasi", "illness": "sensitive"},
    "guarantee": {"model": "compromise-safety", "m": 3},
    "values": {"change": "never"},
    "method": {"infeasible": "withhold"},
}
MODELS: dict[str, dict[str, Any]] = {
    "compromise-safety": {},
    "global": {
        "values": {"change": "freely"},
        "guarantee": {"model": "global", "l": 2, "strategy": "constant-ratio", "horizon": 6, "protect": ["a"]},
    },
}


def table(seed: int, first: int = 0) -> pl.DataFrame:
    rng = random.Random(seed)
    people = range(first, first + 30)
    values = {i: "abcdef"[random.Random(i).randrange(6)] for i in people}
    return pl.DataFrame([{"who": f"p{i}", "age": 20 + rng.randrange(50), "illness": values[i]} for i in people])


def bytes_of(home: Path, number: int) -> dict[str, bytes]:
    folder = home / "releases" / f"{number:04d}" / "public"
    return {path.name: path.read_bytes() for path in folder.glob("*.csv")}


@pytest.mark.parametrize("model", MODELS)
def test_after_a_discard_the_series_goes_on_as_if_it_had_never_been(tmp_path: Path, model: str) -> None:
    policy = POLICY | MODELS[model]
    series = reveil.open_series(policy, tmp_path / "home")
    series.publish(table(1), seed=1)
    shutil.copytree(tmp_path / "home", tmp_path / "without")
    series.publish(table(2, first=5), seed=1)
    discarded = bytes_of(tmp_path / "home", 2)
    series.discard(2, reason="wrong table", no_copy_left=True)
    assert not (tmp_path / "home" / "releases" / "0002").exists()
    again = reveil.open_series(policy, tmp_path / "home").publish(table(3, first=2), seed=1)
    other = reveil.open_series(policy, tmp_path / "without").publish(table(3, first=2), seed=1)
    assert again.number == other.number == 2
    assert {k: v for k, v in again.certificate.counts.items() if k != "groups"} == {
        k: v for k, v in other.certificate.counts.items() if k != "groups"
    }
    assert bytes_of(tmp_path / "home", 2) != discarded
    third = series.publish(table(4, first=3), seed=1)
    assert third.number == 3
    assert all(verified.holds for verified in series.verify().values())  # type: ignore[union-attr]
    ledger = Ledger.open(tmp_path / "home")
    assert [(r.number, r.discarded) for r in ledger.snapshot().chain] == [(1, False), (2, True), (2, False), (3, False)]
    assert not ledger.check()
    assert series.audit(share="1/10").summary["people"] > 0


def test_the_same_seed_draws_other_lots_after_a_discard(tmp_path: Path) -> None:
    series = reveil.open_series(POLICY, tmp_path / "home")
    series.publish(table(1), seed=1)
    before = bytes_of(tmp_path / "home", 1)
    series.discard(1, no_copy_left=True)
    series.publish(table(1), seed=1)
    assert bytes_of(tmp_path / "home", 1) != before


def test_what_was_handed_over_or_built_on_is_never_discarded(tmp_path: Path) -> None:
    series = reveil.open_series(POLICY, tmp_path / "home")
    series.publish(table(1), seed=1)
    series.publish(table(2), seed=1)
    with pytest.raises(InputError, match="not the newest"):
        series.discard(1, no_copy_left=True)
    with pytest.raises(InputError, match="R534"):
        series.discard(2)
    done = series.hand_over(tmp_path / "out", recipient="the ministry")
    assert done.number == 2
    assert done.event.details == {"recipient": "the ministry"}
    assert {p.name for p in (tmp_path / "out").iterdir()} >= {"datapackage.json"}
    with pytest.raises(InputError, match="was handed over"):
        series.discard(2, no_copy_left=True)
    series.hand_over(tmp_path / "again")
    with pytest.raises(InputError, match="not empty"):
        series.hand_over(tmp_path / "out")
    assert not Ledger.open(tmp_path / "home").check()


EDITS = {
    "a discard nobody made": "UPDATE releases SET state = 'discarded' WHERE number = 2",
    "handed over is forgotten": "UPDATE releases SET state = 'revealed' WHERE number = 1",
    "an event is deleted": "DELETE FROM events",
    "an event is edited": "UPDATE events SET details = '{}'",
    "an event is another's": "UPDATE events SET release = (SELECT id FROM releases WHERE number = 2)",
    "an event is of no series": "UPDATE events SET series = 'x'",
    "details are no JSON": "UPDATE events SET details = '['",
}


@pytest.mark.parametrize("edit", EDITS)
def test_edited_events_and_states_are_refused(tmp_path: Path, edit: str) -> None:
    series = reveil.open_series(POLICY, tmp_path / "home")
    series.publish(table(1), seed=1)
    series.hand_over(tmp_path / "out", recipient="a")
    series.publish(table(2), seed=1)
    with closing(sqlite3.connect(tmp_path / "home" / "ledger.sqlite")) as catalog, catalog:
        catalog.execute(EDITS[edit])
    with pytest.raises(TamperedError):
        reveil.open_series(POLICY, tmp_path / "home").publish(table(3), seed=1)


def test_two_who_decide_at_once_are_told(tmp_path: Path) -> None:
    series = reveil.open_series(POLICY, tmp_path / "home")
    series.publish(table(1), seed=1)
    ledger = Ledger.open(tmp_path / "home")
    late = next_event(ledger.snapshot(), DISCARD, ledger.records()[0].id, {})
    series.hand_over(tmp_path / "out")
    with pytest.raises(ConflictError):
        ledger._catalog.happen(late, ReleaseState.DISCARDED)


def test_a_stop_between_discarding_and_deleting_is_settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    series = reveil.open_series(POLICY, tmp_path / "home")
    series.publish(table(1), seed=1)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "settle", lambda *_: [])
        series.discard(1, no_copy_left=True)
    assert (tmp_path / "home" / "releases" / "0001").exists()
    fresh = reveil.open_series(POLICY, tmp_path / "home")
    assert fresh.settle() == ["The files of release 1, which was discarded, were deleted."]
    assert fresh.publish(table(2), seed=1).number == 1


def test_a_late_settling_leaves_the_release_that_took_the_number(tmp_path: Path) -> None:
    series = reveil.open_series(POLICY, tmp_path / "home")
    series.publish(table(1), seed=1)
    series.discard(1, no_copy_left=True)
    late = Ledger.open(tmp_path / "home")
    stale = late.checked()
    series.publish(table(2), seed=1)
    assert late.settle(stale) == []
    assert Ledger.open(tmp_path / "home").check() == []


def test_revealing_late_takes_nothing_back(tmp_path: Path) -> None:
    series = reveil.open_series(POLICY, tmp_path / "home")
    series.publish(table(1), seed=1)
    ledger = Ledger.open(tmp_path / "home")
    ledger.snapshot()
    series.hand_over(tmp_path / "out")
    ledger._catalog.set_state(1, ReleaseState.REVEALED)
    assert Ledger.open(tmp_path / "home").check() == []


def test_a_discarded_count_stays_spent(tmp_path: Path) -> None:
    people = pl.DataFrame({"who": ["a", "b", "c"], "sex": ["F", "F", "M"]})
    dp = {"epsilon": 3, "bins": {"sex": ["F", "M"]}, "counts": [{"name": "by-sex", "by": ["sex"], "spend": 2}]}
    policy = {"columns": {"who": "identifier", "sex": "quasi"}, "dp": dp}
    made = reveil.count(people, policy, home=tmp_path / "home")
    assert made.number == 1
    DiscardSpec(policy, 1, no_copy_left=True, home=tmp_path / "home").run()
    with pytest.raises(InfeasibleError, match="epsilon 2 of 3 is spent"):
        reveil.count(people, policy, home=tmp_path / "home")


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table(1).write_csv("people.csv")
    Path("reveil.toml").write_text(
        '[columns]\nwho = "identifier"\nage = "quasi"\nillness = "sensitive"\n'
        '[values]\nchange = "never"\n[guarantee]\nmodel = "compromise-safety"\nm = 3\n'
        '[method]\ninfeasible = "withhold"\n'
    )
    assert cli("publish", "people.csv")[0] == 0
    code, _, said = cli("discard", "1")
    assert code == 2
    assert "--yes-no-copy-left" in said
    assert "number 1 again" in cli("discard", "1", "--yes-no-copy-left", "--reason", "a name in it")[1]
    assert "discarded" in cli("history")[1]
    assert "0 releases" in cli("history")[1]
    assert cli("publish", "people.csv")[0] == 0
    assert cli("hand-over")[0] == 2
    assert "handed over" in cli("hand-over", "--to", "out")[1]
    assert cli("discard", "1", "--yes-no-copy-left")[0] == 2
