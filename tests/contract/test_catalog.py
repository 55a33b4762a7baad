"""What every catalog must do. Another backend is one more line in `BACKENDS`; its cases are these."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from reveil.base.errors import ConflictError, InputError
from reveil.ledger import amendments, proposals
from reveil.ledger.events import DISCARD, HAND_OVER, OUTCOME, next_event
from reveil.ledger.postgres import PostgresCatalog
from reveil.ledger.proposals import Proposal
from reveil.ledger.protocols import Catalog
from reveil.ledger.record import GENESIS, Event, Head, Identity, Record, ReleaseState, Snapshot, chain_id
from reveil.ledger.sqlite import SqliteCatalog

Open = Callable[[], Catalog]  # the same series each time, as another process would open it
BACKENDS: dict[str, Callable[[Path, str | None], Catalog]] = {  # a folder, and the series in it
    "sqlite": lambda folder, series: SqliteCatalog(folder / "ledger.sqlite", series),
}


@pytest.fixture(params=[*BACKENDS, "postgres"])
def backend(request: pytest.FixtureRequest) -> Callable[[Path, str | None], Catalog]:
    if request.param != "postgres":
        return BACKENDS[request.param]
    address = fresh_database(request.getfixturevalue("postgres"))
    return lambda _, series: PostgresCatalog(address, series)


def fresh_database(server: str) -> str:
    """A new database of a real server."""
    name = f"ledger_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return psycopg.conninfo.make_conninfo(server, dbname=name)


@pytest.fixture
def reopened(backend: Callable[[Path, str | None], Catalog], tmp_path: Path) -> Open:
    return lambda: backend(tmp_path, None)


@pytest.fixture
def shared(backend: Callable[[Path, str | None], Catalog], tmp_path: Path) -> Callable[[str], Catalog]:
    return lambda series: backend(tmp_path, series)


def founded(catalog: Catalog) -> Identity:
    return replace(catalog.found("demo", lambda: "f1n9e7"), policy='{"k":5}')


def entry(identity: Identity, on: Head, token: str) -> Record:
    manifest = {"public/table.csv": {"sha256": "ab", "size": 3}}
    facts = {"rows": 3, "text": "ä\u2028", "none": None}
    made = "2026-01-02T03:04:05+00:00"
    link = chain_id(identity, on.id, on.number + 1, made, facts, manifest)  # type: ignore[arg-type]
    return Record(on.number + 1, link, on.id, made, facts, manifest, ReleaseState.RECORDED, token)  # type: ignore[arg-type]


def test_nothing_was_entered(reopened: Open) -> None:
    assert reopened().identity() is None
    assert reopened().snapshot() is None
    assert reopened().head() == GENESIS
    assert not reopened().holds("t1")


def test_a_series_is_founded_once(reopened: Open) -> None:
    assert reopened().found("demo", lambda: "one") == Identity("demo", None, "one")
    assert reopened().found("other", lambda: pytest.fail("a second key")) == Identity("demo", None, "one")
    assert reopened().snapshot() == Snapshot(Identity("demo", None, "one"), ())


def test_what_is_appended_is_there_and_fixes_the_policy(reopened: Open) -> None:
    identity = founded(reopened())
    first = entry(identity, GENESIS, "t1")
    reopened().append(first, GENESIS, identity)
    second = entry(identity, first.head, "t2")
    reopened().append(second, first.head, identity)
    assert reopened().snapshot() == Snapshot(identity, (first, second))
    assert reopened().identity() == identity
    assert reopened().head() == second.head == reopened().snapshot().head  # type: ignore[union-attr]
    assert [reopened().holds(token) for token in ("t1", "t2", "t3")] == [True, True, False]


def test_the_name_of_a_series_is_fixed_with_the_policy(reopened: Open) -> None:
    identity = replace(founded(reopened()), series="renamed before the first release")
    reopened().append(entry(identity, GENESIS, "t1"), GENESIS, identity)
    assert reopened().identity() == identity


def test_only_the_newest_head_can_be_appended_to(reopened: Open) -> None:
    identity = founded(reopened())
    first = entry(identity, GENESIS, "t1")
    reopened().append(first, GENESIS, identity)
    for stale in (GENESIS, Head(1, "another release 1"), Head(2, first.id)):
        with pytest.raises(ConflictError, match=r"R507.*Nothing was recorded"):
            reopened().append(entry(identity, stale, "t2"), stale, identity)
    assert reopened().snapshot() == Snapshot(identity, (first,))


def test_of_many_who_append_at_once_one_wins(reopened: Open) -> None:
    identity = founded(reopened())
    outcomes: list[str] = []

    def publish(token: str) -> None:
        try:
            reopened().append(entry(identity, GENESIS, token), GENESIS, identity)
            outcomes.append(token)
        except ConflictError:
            outcomes.append("")

    threads = [threading.Thread(target=publish, args=(f"t{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [token for token in outcomes if token]
    assert [record.token for record in reopened().snapshot().records] == [winner]  # type: ignore[union-attr]


def test_a_release_comes_further_and_nothing_else_of_it_changes(reopened: Open) -> None:
    identity = founded(reopened())
    first = entry(identity, GENESIS, "t1")
    reopened().append(first, GENESIS, identity)
    assert not first.revealed
    for _ in range(2):
        reopened().set_state(1, ReleaseState.REVEALED)
        assert reopened().snapshot() == Snapshot(identity, (replace(first, state=ReleaseState.REVEALED),))


def happened(catalog: Catalog, action: str, record: Record) -> Event:
    series = catalog.snapshot()
    assert series is not None
    event = next_event(series, action, record.id, {"why": "ä"})
    catalog.happen(event, OUTCOME[action])
    return event


def test_a_discarded_number_is_free_again_and_its_entry_stays(reopened: Open) -> None:
    identity = founded(reopened())
    first = entry(identity, GENESIS, "t1")
    reopened().append(first, GENESIS, identity)
    with pytest.raises(ConflictError):  # nobody has seen it in its place yet
        happened(reopened(), DISCARD, first)
    reopened().set_state(1, ReleaseState.REVEALED)
    event = happened(reopened(), DISCARD, first)
    gone = replace(first, state=ReleaseState.DISCARDED)
    assert reopened().snapshot() == Snapshot(identity, (gone,), (event,))
    assert reopened().head() == Head(0, first.id)
    reopened().set_state(1, ReleaseState.REVEALED)  # of no release that counts
    second = entry(identity, Head(0, first.id), "t2")
    with pytest.raises(ConflictError):
        reopened().append(entry(identity, GENESIS, "t3"), GENESIS, identity)
    reopened().append(second, Head(0, first.id), identity)
    assert reopened().snapshot() == Snapshot(identity, (gone, second), (event,))
    assert reopened().head() == second.head


def test_events_happen_once_and_in_order(reopened: Open) -> None:
    identity = founded(reopened())
    first = entry(identity, GENESIS, "t1")
    reopened().append(first, GENESIS, identity)
    reopened().set_state(1, ReleaseState.REVEALED)
    late = next_event(reopened().snapshot(), DISCARD, first.id, {})  # type: ignore[arg-type]
    event = happened(reopened(), HAND_OVER, first)
    again = happened(reopened(), HAND_OVER, first)
    for refused in (late, event):
        with pytest.raises(ConflictError):
            reopened().happen(refused, OUTCOME[refused.action])
    with pytest.raises(ConflictError):
        happened(reopened(), DISCARD, first)
    assert reopened().snapshot().events == (event, again)  # type: ignore[union-attr]


def test_series_of_one_catalog_do_not_see_each_other(shared: Callable[[str], Catalog]) -> None:
    one, other = shared("one"), shared("other")
    mine = founded(one)
    assert other.identity() is None
    theirs = replace(other.found("elsewhere", lambda: "key"), policy="{}")
    first, foreign = entry(mine, GENESIS, "t1"), entry(theirs, GENESIS, "t2")
    one.append(first, GENESIS, mine)
    other.append(foreign, GENESIS, theirs)
    one.set_state(1, ReleaseState.REVEALED)
    assert shared("one").snapshot() == Snapshot(mine, (replace(first, state=ReleaseState.REVEALED),))
    assert shared("other").snapshot() == Snapshot(theirs, (foreign,))
    assert shared("third").snapshot() is None


def proposed(catalog: Catalog, identity: Identity, on: Head, token: str, by: str = "ann") -> Proposal:
    like = entry(identity, on, token)
    proposal = Proposal(token, on, like.made, by, like.facts, like.manifest)
    series = catalog.snapshot()
    assert series is not None
    about = {"digest": proposal.digest(identity), "release": proposal.number}
    catalog.propose(proposal, next_event(series, proposals.PROPOSE, token, about, by))
    return proposal


def stepped(catalog: Catalog, action: str, token: str, by: str, **details: object) -> None:
    series = catalog.snapshot()
    assert series is not None
    catalog.step(next_event(series, action, token, details, by))


def test_a_proposal_is_kept_until_it_is_withdrawn(reopened: Open) -> None:
    identity = founded(reopened())
    assert not reopened().waits("t1")
    first = proposed(reopened(), identity, GENESIS, "t1")
    assert reopened().snapshot().proposals == (first,)  # type: ignore[union-attr]
    assert (reopened().waits("t1"), reopened().holds("t1"), reopened().head()) == (True, False, GENESIS)
    with pytest.raises(ConflictError, match=r"R535.*open proposal already.*t1"):
        proposed(reopened(), identity, GENESIS, "t2")
    with pytest.raises(ConflictError, match=r"R535.*open proposal already.*t1"):  # nor is another release recorded
        reopened().append(entry(identity, GENESIS, "t3"), GENESIS, identity)
    stepped(reopened(), proposals.WITHDRAW, "t1", "ann")
    assert not reopened().waits("t1")
    with pytest.raises(ConflictError, match=r"R535.*is withdrawn"):
        reopened().append(entry(identity, GENESIS, "t1"), GENESIS, identity)
    proposed(reopened(), identity, GENESIS, "t2")
    reopened().append(entry(identity, GENESIS, "t2"), GENESIS, identity)
    assert (reopened().head().number, reopened().holds("t2")) == (1, True)


def test_a_proposal_is_made_on_the_newest_release(reopened: Open) -> None:
    identity = founded(reopened())
    first = entry(identity, GENESIS, "t1")
    reopened().append(first, GENESIS, identity)
    with pytest.raises(ConflictError, match="R507"):
        proposed(reopened(), identity, GENESIS, "t2")
    assert reopened().snapshot().proposals == ()  # type: ignore[union-attr]


def test_only_the_steps_of_the_state_machine_are_taken(reopened: Open) -> None:
    identity = founded(reopened())
    proposed(reopened(), identity, GENESIS, "t1")
    for action in (proposals.SIGN, proposals.RETURN):  # nobody has asked for it
        with pytest.raises(ConflictError, match=r"R535.*is staged, and cannot be"):
            stepped(reopened(), action, "t1", "eve")
    stepped(reopened(), proposals.SUBMIT, "t1", "ben")
    for maker in ("ann", "ben"):
        with pytest.raises(ConflictError, match=r"R537"):
            stepped(reopened(), proposals.SIGN, "t1", maker)
    late = next_event(reopened().snapshot(), proposals.SIGN, "t1", {}, "eve")  # type: ignore[arg-type]
    stepped(reopened(), proposals.RETURN, "t1", "eve", note="why two?")
    with pytest.raises(ConflictError):
        reopened().step(late)
    with pytest.raises(ConflictError, match=r"R535.*not in this series"):
        stepped(reopened(), proposals.SUBMIT, "t9", "ann")


def test_under_four_eyes_only_what_was_signed_is_recorded(reopened: Open) -> None:
    identity = founded(reopened())
    stepped(reopened(), proposals.FOUR_EYES, "", "root", on=True)
    with pytest.raises(InputError, match=r"R536"):
        reopened().append(entry(identity, GENESIS, "t0"), GENESIS, identity)
    proposal = proposed(reopened(), identity, GENESIS, "t1")
    record = entry(identity, GENESIS, "t1")
    stepped(reopened(), proposals.SUBMIT, "t1", "ann")
    with pytest.raises(InputError, match=r"R536.*has none"):
        reopened().append(record, GENESIS, identity)
    stepped(reopened(), proposals.SIGN, "t1", "eve", digest="of something else")
    with pytest.raises(InputError, match=r"R536.*something else"):
        reopened().append(record, GENESIS, identity)
    stepped(reopened(), proposals.RETURN, "t1", "eve")
    stepped(reopened(), proposals.SUBMIT, "t1", "ann")
    stepped(reopened(), proposals.SIGN, "t1", "eve", digest=proposal.digest(identity))
    reopened().append(record, GENESIS, identity)
    assert reopened().head() == record.head
    stepped(reopened(), proposals.FOUR_EYES, "", "root", on=False)
    second = entry(identity, record.head, "t2")
    reopened().append(second, record.head, identity)
    assert reopened().head() == second.head


def amended(catalog: Catalog, action: str, by: str = "ann", **details: object) -> Event:
    series = catalog.snapshot()
    assert series is not None
    event = next_event(series, action, "", {"head": series.head.id, "digest": "d", **details}, by)
    catalog.step(event)
    return event


def test_what_did_not_know_an_amendment_is_not_recorded(reopened: Open) -> None:
    identity = founded(reopened())
    first = entry(identity, GENESIS, "t1")
    reopened().append(first, GENESIS, identity)
    files = {first.id: {"public/table.csv": {"sha256": "cd", "size": 4}, "private/x": None}}
    event = amended(reopened(), amendments.ERASE, files=files)
    now = reopened().snapshot()
    assert now is not None
    assert now.chain[0].manifest == first.manifest  # the chain holds what was recorded
    assert now.records[0].manifest == {"public/table.csv": {"sha256": "cd", "size": 4}}
    for known in ({}, {"amended": "another"}):
        late = replace(entry(identity, first.head, "t2"), facts=known)
        with pytest.raises(ConflictError, match="R559"):
            reopened().append(late, first.head, identity)
        with pytest.raises(ConflictError, match="R559"):
            facts = Proposal("t3", first.head, "now", "ann", known, {})
            reopened().propose(facts, next_event(now, proposals.PROPOSE, "t3", {}, "ann"))
    told = replace(entry(identity, first.head, "t2"), facts={"amended": event.id})
    reopened().append(told, first.head, identity)
    with pytest.raises(ConflictError, match="R559"):  # a release was recorded since
        reopened().step(next_event(reopened().snapshot(), amendments.MERGE, "", {"head": first.id}, "ann"))  # type: ignore[arg-type]


def test_nothing_follows_on_the_end(reopened: Open) -> None:
    identity = founded(reopened())
    first = entry(identity, GENESIS, "t1")
    reopened().append(first, GENESIS, identity)
    amended(reopened(), amendments.END, key="kept")
    with pytest.raises(InputError, match="R550"):
        reopened().append(entry(identity, first.head, "t2"), first.head, identity)
    for action in (amendments.ERASE, amendments.END, amendments.ASK):
        with pytest.raises(ConflictError, match="R550"):
            amended(reopened(), action)
    amended(reopened(), amendments.ASK, **{"for": amendments.RETRACT})  # what others have can still be retracted


def test_an_amendment_waits_for_what_was_proposed(reopened: Open) -> None:
    identity = founded(reopened())
    proposed(reopened(), identity, GENESIS, "t1")
    with pytest.raises(ConflictError, match=r"R551.*t1"):
        amended(reopened(), amendments.ERASE)
    stepped(reopened(), proposals.WITHDRAW, "t1", "ann")
    amended(reopened(), amendments.ERASE)


def test_under_four_eyes_another_person_asks_first(reopened: Open) -> None:
    identity = founded(reopened())
    first = entry(identity, GENESIS, "t1")
    reopened().append(first, GENESIS, identity)
    reopened().set_state(1, ReleaseState.REVEALED)
    reopened().happen(next_event(reopened().snapshot(), HAND_OVER, first.id, {}), ReleaseState.HANDED_OVER)  # type: ignore[arg-type]
    stepped(reopened(), proposals.FOUR_EYES, "", "root", on=True)

    def retract(by: str) -> None:
        event = next_event(reopened().snapshot(), amendments.RETRACT, first.id, {"digest": "r"}, by)  # type: ignore[arg-type]
        reopened().happen(event, ReleaseState.RETRACTED)

    with pytest.raises(ConflictError, match="R552"):
        amended(reopened(), amendments.ERASE, by="eve")
    with pytest.raises(ConflictError, match="R552"):
        retract("eve")
    stepped(reopened(), amendments.ASK, "", "ann", digest="d", **{"for": amendments.ERASE})
    stepped(reopened(), amendments.ASK, "", "ann", digest="r", **{"for": amendments.RETRACT})
    for refused in ({"by": "ann"}, {"by": "eve", "digest": "other"}):
        with pytest.raises(ConflictError, match="R552"):
            amended(reopened(), amendments.ERASE, **refused)
    amended(reopened(), amendments.ERASE, by="eve")
    with pytest.raises(ConflictError, match="R552"):  # it was asked for once
        amended(reopened(), amendments.ERASE, by="eve")
    retract("eve")
    assert reopened().snapshot().records[0].state is ReleaseState.RETRACTED  # type: ignore[union-attr]
