"""A publisher is killed at every step, starved of disk, or raced: the old state or the new one, never half.

The publishers are real processes (publish_child.py), and so is every command that looks at what they left.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from reveil.base.errors import InputError
from reveil.ledger.ledger import Ledger
from reveil.publish import Series, open_series
from reveil.verify.verify import Verification

Run = Callable[[], tuple[int, str, str]]  # waits for a command line: exit code, stdout, stderr (see conftest.py)
CHILD = Path(__file__).with_name("publish_child.py")
POLICY = """
[series]
name = "crash"
[columns]
id = "identifier"
age = "quasi"
ill = "sensitive"
ward = "insensitive"
[guarantee]
k = 2
"""


STEPS = (
    *("read", "roles", "encode", "plan", "stage", "recode", "half a table", "emit", "verify", "reports"),
    *("first memory", "memory", "seal", "in transaction", "record", "rename", "mark", "reveal"),
)
AFTER_RECORDING = ("record", "rename", "mark", "reveal")
ANCHORING = ("record", "half an anchor", "anchor", "rename")


def people(release: int, rows: int = 40) -> pl.DataFrame:
    ills = ["flu", "cold", "gout"]
    return pl.DataFrame(
        {
            "id": [f"p{i + release}" for i in range(rows)],
            "age": [20 + (i + release) % 60 for i in range(rows)],
            "ill": [ills[(i + release) % 3] for i in range(rows)],
            "ward": [f"w{(i * 7) % 5}" for i in range(rows)],
        }
    )


@dataclass
class Place:
    """A folder with a policy, tables and the home of a series."""

    folder: Path
    begin: Callable[[Path, str, list[str]], Run]

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def table(self, number: int) -> str:
        return str(self.folder / f"table{number}.csv")

    def series(self) -> Series:
        return open_series(self.folder / "reveil.toml", self.home)

    def start(self, *words: str, how: str = "") -> Run:
        place = ["--policy", str(self.folder / "reveil.toml"), "--home", str(self.home)]
        return self.begin(self.folder, how, [*words, *place])

    def run(self, *words: str, how: str = "") -> tuple[int, str, str]:
        return self.start(*words, how=how)()


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A series with one release, and the table of a second one."""
    folder = tmp_path_factory.mktemp("begun")
    (folder / "reveil.toml").write_text(POLICY)
    for number in (1, 2, 3):
        people(number).write_csv(folder / f"table{number}.csv")
    open_series(folder / "reveil.toml", folder / "home").publish(folder / "table1.csv", seed=1)
    return folder


@pytest.fixture
def place(begun: Path, tmp_path: Path, start: Callable[[Path, str, list[str]], Run]) -> Place:
    return Place(Path(shutil.copytree(begun, tmp_path / "series")), start)


def old_state(home: Path) -> dict[str, str]:
    """What must never change: the first release, byte by byte."""
    return {
        str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((home / "releases" / "0001").rglob("*"))
        if path.is_file()
    }


def settled(place: Place, expected: int) -> None:
    """The series has so many releases, each whole, verified and with nothing left beside them."""
    series = place.series()
    numbers = list(range(1, expected + 1))
    assert [record.number for record in series.ledger.records()] == numbers
    assert all(record.revealed for record in series.ledger.records())
    assert series.ledger.check() == []
    assert list((place.home / "staging").iterdir()) == []
    assert sorted(path.name for path in (place.home / "releases").iterdir()) == [f"{n:04d}" for n in numbers]
    found = series.verify()
    assert all(isinstance(result, Verification) and result.holds for result in found.values())
    assert [release.number for release in series.releases] == numbers


@pytest.mark.parametrize("step", STEPS)
def test_killed_after(place: Place, step: str) -> None:
    before = old_state(place.home)
    code, out, err = place.run("publish", place.table(2), how=step)
    assert code == -signal.SIGKILL, out + err
    expected = 2 if step in AFTER_RECORDING else 1
    code, out, err = place.run("history")
    assert code == 0
    assert f": {expected} release{'' if expected == 1 else 's'}." in out
    if step in ("record", "rename"):
        assert "Release 2 was recorded but not yet revealed; it is revealed now" in err
    elif step in AFTER_RECORDING or step in ("read", "roles", "encode", "plan"):
        assert err == ""
    else:
        assert "was removed; it had not been recorded" in err
    settled(place, expected)
    series = place.series()
    if step in AFTER_RECORDING:  # whoever runs the command again is told that it is published
        with pytest.raises(InputError, match="R134"):
            series.publish(place.table(2))
    assert series.publish(place.table(2), accept=["same-table"]).number == expected + 1
    settled(place, expected + 1)
    assert old_state(place.home) == before
    persons = series.history().persons
    assert (persons.height, persons.n_unique()) == (41, 41)  # p1 to p41, however often they came


@pytest.mark.parametrize("step", ["plan", "stage", "in transaction", "record"])
def test_killed_during_the_first_release(place: Place, step: str) -> None:
    shutil.rmtree(place.home)
    code, out, err = place.run("publish", place.table(1), how=step)
    assert code == -signal.SIGKILL, out + err
    assert place.home.exists() == (step != "plan")
    place.series().publish(place.table(1), accept=["same-table"])
    settled(place, 2 if step in AFTER_RECORDING else 1)


@pytest.mark.parametrize("step", ANCHORING)
def test_killed_between_recording_and_the_anchor(place: Place, step: str) -> None:
    """The next command writes the anchor and then reveals: nothing is ever seen that the anchor forgets."""
    anchor = place.folder / "seen.json"
    (place.folder / "reveil.toml").write_text(POLICY + '[output]\nanchor = "seen.json"\n')
    shutil.rmtree(place.home)
    place.series().publish(place.table(1))
    old = place.folder / "old"
    shutil.copytree(place.home, old)
    code, out, err = place.run("publish", place.table(2), how=step)
    assert code == -signal.SIGKILL, out + err
    assert json.loads(anchor.read_text())["release"] == (1 if step in ("record", "half an anchor") else 2)
    assert (place.home / "releases" / "0002").is_dir() == (step == "rename")
    code, out, err = place.run("history")
    assert (code, ": 2 releases." in out) == (0, True), err
    assert json.loads(anchor.read_text())["release"] == 2
    settled(place, 2)
    shutil.rmtree(place.home)
    shutil.copytree(old, place.home)  # the backup of before is refused
    assert "R528" in place.run("publish", place.table(3))[2]


def test_killed_in_the_audit_gate(place: Place) -> None:
    """Nothing of the release stays; without the gate, or if the gate lets it pass, it can be published again."""
    before = old_state(place.home)
    policy = place.folder / "reveil.toml"
    policy.write_text(POLICY + "[audit]\ngate = true\n")
    code, out, err = place.run("publish", place.table(2), how="audit")
    assert code == -signal.SIGKILL, out + err
    code, out, err = place.run("history")
    assert (code, ": 1 release." in out) == (0, True)
    assert "was removed; it had not been recorded" in err
    settled(place, 1)
    policy.write_text(POLICY)
    assert place.series().publish(place.table(2)).number == 2
    settled(place, 2)
    assert old_state(place.home) == before


def planned(go: Path, count: int) -> None:
    end = time.monotonic() + 120
    while len(list(go.parent.glob(f"{go.name}.*.planned"))) < count:
        assert time.monotonic() < end, "the publishers did not come so far"
        time.sleep(0.01)


def test_two_publishers(place: Place) -> None:
    """Both plan on release 1. The first records; the second is told, loses nothing, and can try again."""
    go = [place.folder / "go-a", place.folder / "go-b"]
    runs = [place.start("publish", place.table(n + 2), "--json", how=f"wait:{file}") for n, file in enumerate(go)]
    for file in go:
        planned(file, 1)
    go[0].touch()
    code, out, err = runs[0]()
    assert code == 0, out + err
    assert json.loads(out)["number"] == 2
    go[1].touch()
    code, out, err = runs[1]()
    assert code == 2, out + err
    answer = json.loads(out)
    assert answer["error"] == "The series has moved on"
    assert answer["faults"][0]["remedy"]
    settled(place, 2)
    assert place.run("publish", place.table(3))[0] == 0
    settled(place, 3)


def test_two_publishers_begin_one_series(place: Place) -> None:
    """No home yet, and nobody waits for anybody: the winner is whole, the loser is told."""
    shutil.rmtree(place.home)
    go = place.folder / "go"
    runs = [place.start("publish", place.table(n), "--json", how=f"wait:{go}") for n in (1, 2)]
    planned(go, 2)
    go.touch()
    ends = [run() for run in runs]
    assert sorted(code for code, _, _ in ends) == [0, 2], ends
    loser = json.loads(next(out for code, out, _ in ends if code == 2))
    assert loser["error"] == "The series has moved on"
    settled(place, 1)


@pytest.mark.parametrize("limit", [10, 300, 2_000])
def test_full_disk(place: Place, limit: int) -> None:
    """The limit is hit by the table, by what follows it, or later: refused in plain words, and the old state stays."""
    before = old_state(place.home)
    code, out, err = place.run("publish", place.table(2), "--json", how=f"starve:{limit}")
    assert code == 2, out + err
    fault = json.loads(out)["faults"][0]
    assert fault["code"] == "R506"
    assert "File too large" in fault["message"]
    assert "Nothing was recorded" in fault["message"]
    assert old_state(place.home) == before
    settled(place, 1)
    place.series().publish(place.table(2))
    settled(place, 2)


def spoil(path: Path, how: str) -> None:
    if how == "flipped":
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    else:
        path.unlink()


@pytest.mark.parametrize("how", ["flipped", "deleted"])
@pytest.mark.parametrize("part", ["public/table.csv", "public/datapackage.json", "private/certificate.json"])
def test_a_past_release_is_damaged(place: Place, part: str, how: str) -> None:
    """Said by every command that looks, with exit 1; publishing goes on, since what is out is out."""
    path = place.home / "releases" / "0001" / part
    backup = path.read_bytes()
    spoil(path, how)
    code, sentence = ("R524", "not the one that was recorded") if how == "flipped" else ("R523", "is missing")
    for words in (["history"], ["verify", "1"], ["show", "1"]):
        status, out, err = place.run(*words)
        assert status == 1, words
        assert code in out + err
        assert part in out + err
        assert sentence in out + err
        assert "restore" in out + err
    assert place.run("publish", place.table(2))[0] == 0
    path.write_bytes(backup)
    settled(place, 2)


@pytest.mark.parametrize("how", ["flipped", "deleted"])
def test_the_memory_of_a_past_release_is_damaged(place: Place, how: str) -> None:
    """Nothing can be planned on it: refused with exit 1, and nothing is written, until it is back."""
    path = place.home / "releases" / "0001" / "memory" / "members.parquet"
    backup = path.read_bytes()
    spoil(path, how)
    for words in (
        ["history"],
        ["verify"],
        ["publish", place.table(2)],
        ["plan", place.table(2)],
    ):
        status, out, err = place.run(*words)
        assert status == 1, words
        assert "members.parquet" in out + err
        assert "restore" in out + err
    path.write_bytes(backup)
    settled(place, 1)


def test_a_whole_release_folder_is_gone(place: Place) -> None:
    shutil.rmtree(place.home / "releases" / "0001")
    for words in (["history"], ["verify"], ["show", "1"], ["publish", place.table(2)]):
        status, out, err = place.run(*words)
        assert status == 1, words
        assert "restore" in out + err


def test_the_ledger_of_another_machine(place: Place) -> None:
    """A home without its key recognises nobody, so it refuses; `history` says so."""
    (place.home / "key").write_bytes(b"x" * 32)
    for words in (["history"], ["publish", place.table(2)]):
        status, out, err = place.run(*words)
        assert status == 1
        assert "not the key this series began with" in out + err
    assert Ledger.open(place.home).head().number == 1
