"""A series that lives for years: corrected, erased, merged, split, retracted, another key, ended."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import reveil
from reveil.base.errors import ConflictError, InputError, TamperedError
from reveil.history.recorded import history_of
from reveil.jobs.amending import Memory
from reveil.jobs.amending_specs import (
    CorrectSpec,
    EndSpec,
    EraseSpec,
    MergeSpec,
    RetractSpec,
    RotateSpec,
    SplitSpec,
)
from reveil.ledger.amending import Amending
from reveil.ledger.ledger import Ledger
from reveil.ledger.record import ReleaseState
from reveil.ledger.store import fingerprint
from reveil.publish import Series
from support import cli

POLICY: dict[str, Any] = {
    "columns": {"who": "identifier", "age": "quasi", "illness": "sensitive"},
    "guarantee": {"model": "compromise-safety", "m": 3},
    "values": {"change": "never"},
    "method": {"publish": "generalized", "infeasible": "withhold"},
}
MEANT = {"sure": True}


def table(first: int = 0, *, without: tuple[str, ...] = (), **values: str) -> pl.DataFrame:
    """Thirty people; some of them left out, some with other values than they always have."""
    rows = [
        {"who": f"p{i}", "age": 20 + random.Random(i).randrange(50), "illness": values.get(f"p{i}", "abcdef"[i % 6])}
        for i in range(first, first + 30)
        if f"p{i}" not in without
    ]
    return pl.DataFrame(rows)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases: p0 to p29, then p3 to p32."""
    folder = tmp_path_factory.mktemp("begun")
    series = reveil.open_series(POLICY, folder / "home")
    series.publish(table(), seed=1)
    series.publish(table(3), seed=1)
    return folder


@pytest.fixture
def home(begun: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(begun, tmp_path / "copy")) / "home"


def opened(home: Path) -> Series:
    return reveil.open_series(POLICY, home)


def public(home: Path, number: int) -> dict[str, bytes]:
    folder = home / "releases" / f"{number:04d}" / "public"
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def memory_bytes(home: Path) -> bytes:
    files = sorted((home / "releases").glob("*/memory/standing.parquet"))
    return b"".join(pl.read_parquet(file).select("hi", "lo").to_numpy().tobytes() for file in files)


def whole(home: Path) -> None:
    """Everything is as recorded, nothing is left over, and the promise holds in every release."""
    assert Ledger.open(home).check() == []
    assert list((home / "staging").iterdir()) == []
    assert all(found.holds for found in opened(home).verify().values())  # type: ignore[union-attr]


# --- a value that was recorded wrong -----------------------------------------------------------------------


def test_a_correction_changes_no_byte_of_what_is_published(home: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(home, tmp_path / "never corrected"))
    wrong = table(3, p5="z", p9="a")
    with pytest.raises(InputError, match=r"R311.*reveil correct"):
        opened(home).publish(wrong, seed=1)
    with pytest.raises(InputError, match=r"R560.*2 people would be corrected: 'f' -> 'z' \(1\), 'd' -> 'a' \(1\)"):
        CorrectSpec(POLICY, wrong, home=home).run()
    done = CorrectSpec(POLICY, wrong.filter(pl.col("who").is_in(["p5", "p9"])), home=home, **MEANT).run()
    assert (done.event.action, done.told) == ("corrected", {"people": 2})
    release = opened(home).publish(wrong, seed=1)
    opened(other).publish(table(3), seed=1, accept=["same-table"])
    assert public(home, 3) == public(other, 3)
    assert any("2 people was corrected" in limit for limit in release.certificate.limits)
    whole(home)
    with pytest.raises(InputError, match=r"R557.*nothing to correct"):
        CorrectSpec(POLICY, wrong, home=home, **MEANT).run()
    with pytest.raises(InputError, match="R311"):  # another change is another decision
        opened(home).publish(table(3, p5="b"), seed=1)
    opened(home).publish(table(3, p9="a"), seed=1)  # what was recorded first is right as well: nobody need be told
    assert opened(home).history().corrections.height == 2


def test_only_lasting_values_are_corrected(tmp_path: Path) -> None:
    policy = POLICY | {
        "values": {"change": "freely"},
        "guarantee": {"model": "global", "l": 2, "strategy": "constant-ratio", "horizon": 6, "protect": ["a"]},
    }
    reveil.open_series(policy, tmp_path / "home").publish(table(), seed=1)
    with pytest.raises(InputError, match=r"R557.*never change"):
        CorrectSpec(policy, table(p1="z"), home=tmp_path / "home", **MEANT).run()


# --- somebody who asks to be erased ------------------------------------------------------------------------


def test_who_was_erased_is_nobody_and_their_place_goes_on(home: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(home, tmp_path / "only left"))
    opened(home).hand_over(tmp_path / "out", number=2, recipient="the ministry")
    known = pl.read_parquet(home / "releases/0002/memory/standing.parquet").row(7)[:2]
    done = EraseSpec(POLICY, ["p7"], home=home, **MEANT).run()
    assert done.told["releases"] == [1, 2]
    assert "release 2 to the ministry" in done.told["handed over"][0]
    halves = [half.to_bytes(8, "little") for half in known]
    assert not any(half in memory_bytes(home) for half in halves)
    assert all(half in memory_bytes(other) for half in halves)  # the hash of p7, where nobody was erased
    whole(home)
    for respelled in ("p7", " P7 "):
        rows = table(3).with_columns(pl.col("who").replace("p7", respelled))
        with pytest.raises(InputError, match=r"R554.*1 person of this table has asked to be erased"):
            opened(home).publish(rows, seed=1, accept=["same-table"])
    opened(home).publish(table(3, without=("p7",)), seed=1)
    opened(other).publish(table(3, without=("p7",)), seed=1)
    csv = [{name: data for name, data in public(place, 3).items() if name.endswith(".csv")} for place in (home, other)]
    assert csv[0] == csv[1]  # as if they had left
    with pytest.raises(InputError, match=r"R553.*nobody.*p7"):
        EraseSpec(POLICY, ["p7"], home=home, **MEANT).run()
    whole(home)


def test_an_erased_person_is_forgotten_in_every_table(home: Path) -> None:
    CorrectSpec(POLICY, table(3, p8="z"), home=home, **MEANT).run()
    MergeSpec(POLICY, "p9", "p10", home=home, **MEANT).run()
    with pytest.raises(InputError, match=r"R553.*another identifier"):
        EraseSpec(POLICY, ["p9"], home=home, **MEANT).run()
    EraseSpec(POLICY, ["p8", "p9", "p10"], home=home, **MEANT).run()
    past = history_of(Ledger.open(home))
    assert (past.corrections.height, past.merged.height, past.erased.height) == (0, 0, 3)
    opened(home).publish(table(3, without=("p8", "p9", "p10")), seed=1)
    assert history_of(Ledger.open(home)).erased.height == 3  # later releases keep it
    whole(home)


def test_who_has_two_identifiers_is_erased_with_both_and_from_every_release(home: Path) -> None:
    def known(number: int) -> pl.DataFrame:
        return pl.read_parquet(home / f"releases/{number:04d}/memory/standing.parquet").select("hi", "lo")

    first, second = known(1)[0], known(2)[31]  # p0 was only in the first release, and p31 only in the second
    CorrectSpec(POLICY, table(p0="z"), home=home, **MEANT).run()
    MergeSpec(POLICY, "p0", "p31", home=home, **MEANT).run()
    for one in ("p0", "p31"):
        with pytest.raises(InputError, match=r"R553.*1 person of these has another identifier"):
            EraseSpec(POLICY, [one], home=home, **MEANT).run()
    done = EraseSpec(POLICY, ["p0", "p31"], home=home, **MEANT).run()
    assert (done.event.details["people"], done.told["releases"]) == (1, [1, 2])
    for number in (1, 2):
        assert known(number).join(pl.concat([first, second]), on=["hi", "lo"], how="semi").is_empty()
        assert Ledger.open(home).memory(number, "corrections").is_empty()
    for one in ("p0", "p31"):
        with pytest.raises(InputError, match="R554"):
            opened(home).publish(table(5, without=("p31",)).vstack(table(31 if one == "p31" else 0).head(1)), seed=1)
    whole(home)


# --- identifiers that are one person, or two ---------------------------------------------------------------


def test_two_identifiers_become_one_person(home: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(home, tmp_path / "only left"))
    with pytest.raises(InputError, match=r"R560.*whoever knows both of their rows has \d values? left"):
        MergeSpec(POLICY, "p1", "p12", home=home).run()
    MergeSpec(POLICY, "p1", "p12", home=home, **MEANT).run()  # p12 was shown last and stays
    MergeSpec(POLICY, "p13", "p14", home=home, **MEANT).run()  # both were: the one who came first stays
    with pytest.raises(InputError, match=r"R555.*keep one row"):
        opened(home).publish(table(3), seed=1, accept=["same-table"])
    rows = table(3, without=("p14",)).with_columns(pl.col("who").replace("p12", "p1"))
    rows = rows.with_columns(illness=pl.when(who="p1").then(pl.lit("a")).otherwise("illness"))
    opened(home).publish(rows, seed=1)
    opened(other).publish(table(3, without=("p14",)), seed=1)
    assert public(home, 3) == public(other, 3)
    respelled = rows.with_columns(pl.col("who").replace("p1", "P1"))
    with pytest.raises(InputError, match="R317"):
        opened(home).publish(respelled, seed=1)
    with pytest.raises(InputError, match="same person already"):
        MergeSpec(POLICY, "p1", "p12", home=home, **MEANT).run()
    whole(home)


def test_a_place_that_was_shown_stays_before_one_that_was_withheld(home: Path) -> None:
    opened(home).publish(table(3, without=("p3",)).vstack(table(40).head(1)), seed=1)
    assert opened(home).history().members.filter(group=-1).rows() == [(33, -1, 4, 3)]  # p40 waits
    done = MergeSpec(POLICY, "p40", "p3", home=home, **MEANT).run()
    assert "shown last (release 2)" in done.notes[0]
    assert Memory(POLICY, home).numbers(["p40", "p3"]) == [3, 3]
    whole(home)


def test_one_person_has_one_correction(home: Path) -> None:
    MergeSpec(POLICY, "p13", "p14", home=home, **MEANT).run()
    with pytest.raises(InputError, match=r"R555.*keep one row"):
        CorrectSpec(POLICY, table(3, p13="y", p14="z"), home=home, **MEANT).run()
    CorrectSpec(POLICY, table(3, without=("p13",), p14="z"), home=home, **MEANT).run()
    assert opened(home).history().corrections.height == 1


def test_three_identifiers_become_one_person(home: Path) -> None:
    MergeSpec(POLICY, "p0", "p31", home=home, **MEANT).run()
    MergeSpec(POLICY, "p0", "p5", home=home, **MEANT).run()  # p0 stands for the place of p31
    memory = Memory(POLICY, home)
    assert memory.numbers(["p0", "p31", "p5"]) == [5, 5, 5]
    assert memory.past.known().select("hi", "lo").is_duplicated().sum() == 0
    with pytest.raises(InputError, match=r"R553.*somebody in this series already"):
        SplitSpec(POLICY, "p0", "p31", home=home).run()
    RotateSpec(POLICY, [table(), table(3)], home=home).run()
    assert Memory(POLICY, home).numbers(["p0", "p31", "p5"]) == [5, 5, 5]
    whole(home)
    opened(home).discard(2, no_copy_left=True)
    release = opened(home).publish(table(without=("p5",), p0="f"), seed=2, accept=["same-table"])
    assert release.certificate.counts["came back"] == 29
    EraseSpec(POLICY, ["p0", "p5", "p31"], home=home, **MEANT).run()
    whole(home)


def test_one_identifier_becomes_two_people(home: Path) -> None:
    with pytest.raises(InputError, match=r"R553.*somebody in this series already"):
        SplitSpec(POLICY, "p12", "p13", home=home).run()
    EraseSpec(POLICY, ["p14"], home=home, **MEANT).run()
    with pytest.raises(InputError, match="R554"):
        SplitSpec(POLICY, "p12", "p14", home=home).run()
    before = opened(home).history().persons.height
    assert SplitSpec(POLICY, "p12", "q12", home=home).run().event.action == "split"
    opened(home).publish(pl.concat([table(3, without=("p14",)), table(40).head(1).with_columns(who=pl.lit("q12"))]))
    assert opened(home).history().persons.height == before + 1
    whole(home)


# --- a release, the key, the end ---------------------------------------------------------------------------


def test_a_retracted_release_is_named_in_later_packages(home: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"R558.*handed over to nobody"):
        RetractSpec(POLICY, 2, home=home).run()
    opened(home).hand_over(tmp_path / "out", number=2, recipient="the ministry")
    done = RetractSpec(POLICY, 2, "two columns were swapped", home=home).run()
    assert "the ministry" in done.told["handed over"][0]
    with pytest.raises(InputError, match=r"R558.*already"):
        RetractSpec(POLICY, 2, home=home).run()
    with pytest.raises(InputError, match=r"R532.*was handed over"):
        opened(home).discard(2, no_copy_left=True)
    with pytest.raises(ConflictError, match="R531"):
        opened(home).hand_over(tmp_path / "again", number=2)
    opened(home).publish(table(5), seed=1)
    package = json.loads(public(home, 3)["datapackage.json"])
    (told,) = package["retracted"]
    assert (told["release"], told["note"]) == (2, "two columns were swapped")
    assert Ledger.open(home).records()[1].state is ReleaseState.RETRACTED
    whole(home)


def test_another_key_knows_the_same_people(home: Path, tmp_path: Path) -> None:
    CorrectSpec(POLICY, table(3, p8="z"), home=home, **MEANT).run()
    MergeSpec(POLICY, "p9", "p10", home=home, **MEANT).run()
    EraseSpec(POLICY, ["p11"], home=home, **MEANT).run()
    old, before = (home / "key").read_bytes(), memory_bytes(home)
    with pytest.raises(InputError, match=r"R556.*3 identifiers of the series are in none"):
        RotateSpec(POLICY, [table(3)], home=home).run()
    everybody = [table(without=("p11",)), table(3, without=("p11",))]
    with pytest.raises(InputError, match=r"R556.*1 person asked to be erased"):
        RotateSpec(POLICY, everybody, home=home).run()
    RotateSpec(POLICY, [table(), table(3)], home=home).run()
    assert (home / "key").read_bytes() != old
    rows = [{before[i : i + 8] for i in range(0, len(before), 8)}, memory_bytes(home)]
    shared = sum(rows[1][i : i + 8] in rows[0] for i in range(0, len(rows[1]), 8))
    assert shared == 2 * 2 * 2  # p10 and p11 are nobody: two halves each, in both releases
    whole(home)
    now = opened(home)
    with pytest.raises(InputError, match="R554"):
        now.publish(table(3, without=("p10",)), seed=1)
    release = now.publish(table(3, p8="z", without=("p10", "p11")), seed=1)
    assert release.certificate.counts["came back"] == 28
    whole(home)
    (home / "key").write_bytes(old)
    with pytest.raises(TamperedError, match="R520"):
        opened(home).publish(table(3, without=("p10", "p11")), seed=2)


def test_two_who_change_the_key_at_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one has laid their key beside; the second one lays theirs before the first is entered."""
    entering, done = Amending._enter, list[Any]()

    def enter(self: Amending, *about: Any) -> Any:
        if not done:
            done.append((self, about))
            with pytest.raises(ConflictError):
                RotateSpec(POLICY, [table(), table(3)], home=home, by="eve").run()
            return done.pop()
        one, waiting = done.pop()
        done.append(entering(one, *waiting))
        return entering(self, *about)

    monkeypatch.setattr(Amending, "_enter", enter)
    event = RotateSpec(POLICY, [table(), table(3)], home=home, by="ann").run().event
    assert event.actor == "ann"
    assert fingerprint((home / "key").read_bytes()) == event.details["fingerprint"]
    whole(home)
    opened(home).publish(table(5), seed=1)
    assert sorted(path.name for path in home.iterdir()) == ["key", "ledger.sqlite", "releases", "staging"]


@pytest.mark.parametrize("lost", [True, False])
def test_a_series_ends_with_or_without_its_key(home: Path, tmp_path: Path, lost: bool) -> None:
    with pytest.raises(InputError, match="R560"):
        EndSpec(POLICY, home=home).run()
    if lost:
        (home / "key").unlink()
        with pytest.raises(TamperedError, match="R520"):
            opened(home).publish(table(5), seed=1)
    done = EndSpec(POLICY, destroy_key=not lost, home=home, **MEANT).run()
    assert done.event.details["key"] == ("lost" if lost else "destroyed")
    assert not (home / "key").exists()
    whole(home)
    with pytest.raises(InputError, match=r"R550.*has ended"):
        opened(home).publish(table(5), seed=1)
    for spec in (EraseSpec(POLICY, ["p5"], home=home, **MEANT), EndSpec(POLICY, home=home, **MEANT)):
        with pytest.raises(InputError, match="R550"):
            spec.run()
    assert opened(home).audit(share="1/10").summary["people"] > 0
    opened(home).hand_over(tmp_path / "out")
    RetractSpec(POLICY, 2, home=home).run()
    assert Ledger.open(home).check() == []


def test_a_series_ends_without_its_memory(home: Path) -> None:
    EndSpec(POLICY, destroy_memory=True, home=home, **MEANT).run()
    assert not list(home.glob("releases/*/memory/*"))
    assert not (home / "key").exists()
    assert Ledger.open(home).check() == []
    for looking in (opened(home).verify, opened(home).audit):
        with pytest.raises(InputError, match="R561"):
            looking()


# --- what all of them have in common -----------------------------------------------------------------------


def test_what_was_planned_before_is_not_recorded(home: Path) -> None:
    series = opened(home)
    with series._made(table(5), None, lambda *_: None) as (staged, _, head, facts):
        EraseSpec(POLICY, ["p30"], home=home, **MEANT).run()
        with pytest.raises(ConflictError, match="R559"):
            series.ledger.record(staged, on=head, facts=facts)
    whole(home)


def test_nothing_is_amended_while_a_proposal_waits(home: Path) -> None:
    series = opened(home)
    series.propose(table(5), seed=1)
    with pytest.raises(InputError, match="R551"):
        EraseSpec(POLICY, ["p30"], home=home, **MEANT).run()
    series.withdraw()
    EraseSpec(POLICY, ["p30"], home=home, **MEANT).run()
    whole(home)


def test_under_four_eyes_two_people_give_the_same_command(home: Path, tmp_path: Path) -> None:
    opened(home).hand_over(tmp_path / "out", number=1)
    Ledger.open(home).approval.require_four_eyes(True, by="root")
    asked = EraseSpec(POLICY, ["p7"], home=home, by="ann", **MEANT).run()
    assert asked.waits
    with pytest.raises(InputError, match="R552"):  # the same person again
        EraseSpec(POLICY, ["p7"], home=home, by="ann", **MEANT).run()
    other = EraseSpec(POLICY, ["p8"], home=home, by="eve", **MEANT).run()
    assert other.waits  # something else
    assert history_of(Ledger.open(home)).erased.is_empty()
    assert not EraseSpec(POLICY, ["p7"], home=home, by="eve", **MEANT).run().waits
    assert history_of(Ledger.open(home)).erased.height == 1
    assert RetractSpec(POLICY, 1, home=home, by="ann").run().waits
    assert Ledger.open(home).records()[0].state is ReleaseState.HANDED_OVER
    assert not RetractSpec(POLICY, 1, home=home, by="eve").run().waits
    assert EndSpec(POLICY, home=home, by="ann", **MEANT).run().waits
    assert not EndSpec(POLICY, home=home, by="eve", **MEANT).run().waits
    whole(home)


def test_under_four_eyes_both_people_mean_the_same_change_of_the_key(home: Path) -> None:
    EraseSpec(POLICY, ["p7"], home=home, **MEANT).run()
    Ledger.open(home).approval.require_four_eyes(True, by="root")
    tables = [table(), table(3)]
    assert RotateSpec(POLICY, tables, home=home, by="ann").run().waits
    assert RotateSpec(POLICY, tables, forget_erased=True, home=home, by="eve").run().waits
    assert not RotateSpec(POLICY, tables, home=home, by="eve").run().waits
    assert Ledger.open(home).check() == []


def test_under_four_eyes_a_release_is_retracted_after_the_end(home: Path, tmp_path: Path) -> None:
    opened(home).hand_over(tmp_path / "out", number=1)
    EndSpec(POLICY, home=home, **MEANT).run()
    Ledger.open(home).approval.require_four_eyes(True, by="root")
    assert RetractSpec(POLICY, 1, home=home, by="ann").run().waits
    assert not RetractSpec(POLICY, 1, home=home, by="eve").run().waits
    assert Ledger.open(home).records()[0].state is ReleaseState.RETRACTED


EDITS = {
    "an amendment is forgotten": "DELETE FROM events",
    "a hash is edited": "UPDATE events SET details = replace(details, '\"size\":', '\"size\":1')",
    "files are no files": 'UPDATE events SET details = \'{"files":{"x":{"y":7}}}\'',
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_amendment_is_noticed(home: Path, edit: str) -> None:
    EraseSpec(POLICY, ["p7"], home=home, **MEANT).run()
    with closing(sqlite3.connect(home / "ledger.sqlite")) as catalog, catalog:
        catalog.execute(EDITS[edit])
    assert Ledger.open(home).check()
    with pytest.raises(TamperedError):
        opened(home).publish(table(5), seed=1)


def test_a_discard_after_an_amendment_keeps_it(home: Path) -> None:
    CorrectSpec(POLICY, table(3, p8="z"), home=home, **MEANT).run()
    EraseSpec(POLICY, ["p7"], home=home, **MEANT).run()
    opened(home).discard(2, no_copy_left=True)
    assert not (home / "releases" / "0002").exists()
    release = opened(home).publish(table(3, p8="z", without=("p7",)), seed=1)
    assert release.number == 2
    whole(home)


def test_the_commands(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(home.parent)
    Path("reveil.toml").write_text(
        '[columns]\nwho = "identifier"\nage = "quasi"\nillness = "sensitive"\n[values]\nchange = "never"\n'
        '[guarantee]\nmodel = "compromise-safety"\nm = 3\n[method]\npublish = "generalized"\ninfeasible = "withhold"\n'
    )
    here = ("--home", "home")
    table(3, p8="z").write_csv("wrong.csv")
    assert cli("correct", "wrong.csv", *here)[0] == 2
    assert "1 person" in cli("correct", "wrong.csv", "--yes", *here)[1]
    Path("list.txt").write_bytes(b"p7\n\xfc\n")
    code, _, err = cli("erase", "--from", "list.txt", "--yes", *here)
    assert (code, "R105" in err, "0xfc at offset 3" in err) == (2, True, True)
    Path("list.txt").write_bytes("\ufeffp7\r\n\r\np6 \r\n".encode())
    assert cli("erase", *here)[0] == 2
    assert "release 1, 2" in cli("erase", "--from", "list.txt", "--yes", *here)[1]
    assert "Done" in cli("people", "merge", "p13", "p14", "--yes", *here)[1]
    assert "Done" in cli("people", "split", "p12", "q12", *here)[1]
    table().write_csv("one.csv")
    table(3).write_csv("two.csv")
    assert "Done" in cli("rotate", "one.csv", "two.csv", *here)[1]
    assert cli("hand-over", "--to", "out", *here)[0] == 0
    assert json.loads(cli("retract", "2", "--note", "x", "--json", *here)[1])["action"] == "retracted"
    assert "key is destroyed" in cli("end", "--destroy-key", "--yes", *here)[1]
    said = cli("history", *here)[1]
    for action in ("corrected", "erased", "merged", "split", "key changed", "ended"):
        assert f"Series: {action} on" in said
    assert "Release 2 was retracted" in said
    assert cli("verify", *here)[0] == 0


def test_the_page_for_others_does_not_tell_of_corrections(begun: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(begun / "home", home)
    right = table(3, p5="x")
    CorrectSpec(POLICY, right, home=home, **MEANT).run()
    release = reveil.open_series(POLICY, home).publish(right, accept=["same-table"])
    assert release.path is not None
    pages = [(release.path / "private" / name).read_text() for name in ("report.html", "report-external.html")]
    assert ["corrected" in page for page in pages] == [True, False]
