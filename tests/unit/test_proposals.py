"""Propose, look, accept or withdraw: from Python, as jobs and on the command line; and four eyes."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

import reveil
from reveil.base.errors import ConflictError, InputError, TamperedError
from reveil.jobs.specs import load_spec
from reveil.ledger.proposals import ProposalState
from reveil.publish import Series
from support import cli

POLICY = """
[series]
name = "proposals"
[columns]
id = "identifier"
age = "quasi"
ill = "sensitive"
[guarantee]
k = 2
"""


def people(release: int, rows: int = 24) -> pl.DataFrame:
    ills = ["flu", "cold", "gout"]
    return pl.DataFrame(
        {
            "id": [f"p{i + release}" for i in range(rows)],
            "age": [20 + (i + release) % 50 for i in range(rows)],
            "ill": [ills[(i + release) % 3] for i in range(rows)],
        }
    )


@pytest.fixture
def series(tmp_path: Path) -> Series:
    (tmp_path / "reveil.toml").write_text(POLICY)
    return reveil.open_series(tmp_path / "reveil.toml")


def test_accepting_is_publishing_what_was_looked_at(series: Series) -> None:
    made = series.propose(people(1), seed=1)
    assert (made.number, made.state, made.folder is not None) == (1, ProposalState.STAGED, True)
    looked_at = {p.name: p.read_bytes() for p in (made.folder / "public").iterdir()}
    assert (made.folder / "private" / "report.html").exists()
    assert series.releases == ()
    assert reveil.open_series(series.policy).settle() == []  # others leave it alone
    release = series.accept()
    assert {p.name: p.read_bytes() for p in (release.path / "public").iterdir()} == looked_at
    assert [one.number for one in series.releases] == [1]
    assert series.ledger.check() == []
    assert [state for _, state in series.ledger.approval.all()] == [ProposalState.REVEALED]


def test_withdrawn_and_made_again(series: Series) -> None:
    series.publish(people(1), seed=1)
    made = series.propose(people(2), seed=1)
    gone = series.withdraw(made.token[:6], note="wrong quarter")
    assert (gone.state, gone.folder, gone.steps[-1]["note"]) == (ProposalState.WITHDRAWN, None, "wrong quarter")
    assert not made.folder.exists()
    again = series.propose(people(2), seed=2)
    assert series.accept(again.token).number == 2
    with pytest.raises(ConflictError, match=r"R535.*is withdrawn"):
        series.accept(made.token)
    assert series.ledger.check() == []
    assert series.verify()[2].holds  # type: ignore[union-attr]


def test_a_changed_byte_voids_it(series: Series) -> None:
    made = series.propose(people(1), seed=1)
    table = made.folder / "public" / "table.csv"
    table.write_bytes(table.read_bytes() + b"x")
    for act in (series.accept, lambda: series.ledger.approval.sign(made.token, by="eve")):
        with pytest.raises((TamperedError, ConflictError), match=r"R538"):
            act()
    series.withdraw()
    assert series.propose(people(1), seed=1).number == 1


def test_a_discarded_release_makes_its_successor_stale(series: Series) -> None:
    series.publish(people(1), seed=1)
    made = series.propose(people(2), seed=1)
    series.discard(1, no_copy_left=True)
    ((_, state),) = series.ledger.approval.open()
    assert state is ProposalState.STALE
    with pytest.raises(ConflictError, match=r"R535.*planned on"):
        series.accept(made.token)
    assert made.folder.exists()  # until somebody withdraws it
    series.withdraw()
    assert series.publish(people(2), seed=1).number == 1


def test_four_eyes(series: Series) -> None:
    series.publish(people(1), seed=1)
    approval = series.ledger.approval
    approval.require_four_eyes(True, by="root")
    with pytest.raises(InputError, match=r"R536.*reveil propose"):
        series.publish(people(2), seed=1)
    made = series.propose(people(2), seed=1, by="ann")
    with pytest.raises(InputError, match=r"R536.*has none"):
        series.accept()
    approval.submit(made.token, by="ann")
    with pytest.raises(ConflictError, match=r"R537"):
        approval.sign(made.token, by="ann")
    approval.give_back(made.token, by="eve", note="why are 3 rows withheld?")
    with pytest.raises(ConflictError, match=r"R535.*is returned"):
        series.accept()
    approval.submit(made.token, by="ben", note="they are newcomers")
    with pytest.raises(ConflictError, match=r"R537"):
        approval.sign(made.token, by="ben")
    approval.sign(made.token[:5], by="eve", statement="looked at")
    assert series.accept().number == 2
    assert series.ledger.check() == []
    steps = [(one["action"], one["by"]) for one in reveil_steps(series, made.token)]
    assert steps == [
        *(("proposed", "ann"), ("submitted", "ann"), ("returned", "eve")),
        *(("submitted", "ben"), ("signed", "eve")),
    ]


def test_four_eyes_from_the_first_release_on(series: Series) -> None:
    approval = series.ledger.approval
    approval.require_four_eyes(True, by="root")
    made = series.propose(people(1), seed=1, by="ann")
    approval.submit(made.token, by="ann")
    approval.sign(made.token, by="eve")
    assert series.accept().number == 1
    assert series.ledger.check() == []


def reveil_steps(series: Series, token: str) -> list[dict[str, str]]:
    content = load_spec({"job": "proposals", "policy": str(series.policy.folder / "reveil.toml")}).run().to_dict()
    (found,) = [one for one in content["proposals"] if one["proposal"] == token]
    return list(found["steps"])


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE proposals SET facts = '{}'",
        "UPDATE proposals SET actor = 'somebody'",
        "DELETE FROM proposals",
        "DELETE FROM events WHERE action = 'proposed'",
        "UPDATE events SET actor = 'eve' WHERE action = 'submitted'",
        "DELETE FROM events",
    ],
)
def test_an_edited_proposal_is_noticed(series: Series, edit: str) -> None:
    series.publish(people(1), seed=1)
    made = series.propose(people(2), seed=1, by="ann")
    series.ledger.approval.submit(made.token, by="ann")
    with closing(sqlite3.connect(series.home / "ledger.sqlite")) as connection, connection:
        connection.execute(edit)
    assert {fault.code for fault in series.ledger.check()} & {"R533", "R521"}
    with pytest.raises(TamperedError):
        series.accept()


def said(*words: str, code: int = 0) -> str:
    ended, out, err = cli(*words)
    assert ended == code, out + err
    return out + err


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("reveil.toml").write_text(POLICY)
    people(1).write_csv("one.csv")
    people(2).write_csv("two.csv")
    assert "R501" in said("accept", code=2)
    assert "Look at it:" in said("propose", "one.csv")
    assert "staged" in said("proposals")
    assert "R535" in said("propose", "two.csv", code=2)
    assert "Release 1 of 'proposals'" in said("accept")
    token = json.loads(said("propose", "two.csv", "--json"))["proposal"]
    assert "is withdrawn" in said("withdraw", token, "--note", "not yet")
    assert "there is no open proposal" in said("accept", code=2)
    listed = json.loads(said("proposals", "--json"))["proposals"]
    assert [one["state"] for one in listed] == ["revealed", "withdrawn"]
    assert ": 1 release." in said("history")
