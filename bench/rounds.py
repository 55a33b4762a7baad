"""Rounds of trouble: workers that race, are paused, are killed, and a database that restarts in the middle.

    python bench/rounds.py                        (500 rounds, on SQLite and on PostgreSQL, plain and under four eyes)
    python bench/rounds.py --rounds 12 sqlite

In each round several processes want to publish the same release. One of them may be stopped (SIGSTOP) until another is
through, killed at any moment, or lose its database, which restarts. Afterwards the series is opened as anybody would,
and everything that was said is compared with what is there:

- lost: a worker said that it published, and its bytes are not in the chain;
- doubled: two workers said that they published the same number, or more is recorded than anybody can have recorded;
- unsigned: under four eyes, a release without a signature of somebody who did not make it;
- broken: the series does not verify, or does not go on.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import secrets
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from reveil import publish
from reveil.base.errors import CommitUnknownError, ReveilError
from reveil.ledger import moving, postgres
from reveil.publish import Series, open_series

POLICY = """
[columns]
id = "identifier"
age = "quasi"
ill = "sensitive"
[guarantee]
k = 2
"""
TROUBLES = ("race", "pause", "kill", "restart")
LENGTH = 20  # rounds with one series; then another begins
PATIENCE = 120.0  # seconds for one round
PUBLISHED, REFUSED, UNKNOWN = "published", "refused", "unknown"


@dataclass
class Place:
    """One series under trouble, and what workers said of it."""

    home: Path
    four_eyes: bool
    said: dict[int, str] = field(default_factory=dict)  # number -> digest of the bytes that a worker said it published
    unknown: int = 0  # workers that were killed, or lost the database while it committed
    recorded: int = 0
    span: float = 1.0  # seconds that a worker takes, about

    def series(self) -> Series:
        return open_series(self.home.parent / "reveil.toml", self.home)


@dataclass(frozen=True)
class Worker:
    pid: int
    answer: Path

    def wait(self) -> dict[str, Any]:
        """What it said; nothing if it was killed."""
        os.waitpid(self.pid, 0)
        return json.loads(self.answer.read_text()) if self.answer.exists() else {"end": UNKNOWN}


def started(work: Callable[[], dict[str, Any]], folder: Path) -> Worker:
    """A process of its own for this work, as good as a new one: this one has imported everything and done nothing."""
    answer = folder / f"{secrets.token_hex(8)}.json"
    pid = os.fork()
    if pid:
        return Worker(pid, answer)
    code = 1
    try:
        said = work()
        beside = answer.with_suffix(".part")
        beside.write_text(json.dumps(said))
        beside.rename(answer)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def people(number: int) -> pl.DataFrame:
    ids = [f"p{i + number}" for i in range(16)]
    return pl.DataFrame({"id": ids, "age": [20 + i for i in range(16)], "ill": ["flu", "cold", "gout", "mumps"] * 4})


def ended(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Work whose refusal is an answer."""
    try:
        return work()
    except CommitUnknownError as error:
        return {"end": UNKNOWN, "why": str(error)}
    except ReveilError as error:
        return {"end": REFUSED, "why": str(error)}


def told(release: Any) -> dict[str, Any]:
    data = (release.public / "table.csv").read_bytes()
    return {"end": PUBLISHED, "number": release.number, "bytes": hashlib.sha256(data).hexdigest()}


def publishing(place: Place, number: int) -> Callable[[], dict[str, Any]]:
    return lambda: ended(lambda: told(place.series().publish(people(number))))


def proposing(place: Place, number: int) -> Callable[[], dict[str, Any]]:
    def work() -> dict[str, Any]:
        series = place.series()
        token = series.propose(people(number), by="clerk").token
        series.ledger.approval.submit(token, by="clerk")
        return {"end": "proposed", "token": token}

    return lambda: ended(work)


def signing(place: Place, token: str) -> Callable[[], dict[str, Any]]:
    def work() -> dict[str, Any]:
        place.series().ledger.approval.sign(token, by="officer")
        return {"end": "signed"}

    return lambda: ended(work)


def accepting(place: Place, token: str) -> Callable[[], dict[str, Any]]:
    return lambda: ended(lambda: told(place.series().accept(token)))


def looking(place: Place, whole: bool) -> Callable[[], dict[str, Any]]:
    """What is there, seen by somebody who opens the series now: numbers and bytes, and what is wrong."""

    def work() -> dict[str, Any]:
        series = place.series()
        series.settle()
        faults = [str(fault) for fault in series.ledger.check()]
        there = {one.number: told(one)["bytes"] for one in series.releases}
        if whole:
            verdicts = series.verify().items()
            faults += [f"release {n} does not verify" for n, v in verdicts if not getattr(v, "holds", False)]
        snapshot = series.ledger.snapshot()
        signed = {event.release for event in snapshot.events if event.action == "signed" and event.actor == "officer"}
        # The first was published before the rule of four eyes began.
        unsigned = [record.number for record in snapshot.records[1:] if record.token not in signed]
        return {"end": "seen", "there": there, "faults": faults, "unsigned": unsigned}

    return lambda: ended(work)


def until_done(work: Callable[[], dict[str, Any]], folder: Path) -> dict[str, Any]:
    """The answer of a worker that nobody disturbs, asked again while a database is starting."""
    end = time.monotonic() + PATIENCE
    while True:
        answer = started(work, folder).wait()
        if answer["end"] not in (REFUSED, UNKNOWN) or "R503" not in answer.get("why", "") or time.monotonic() > end:
            return answer
        time.sleep(0.2)


class Round:
    """One release that several want to publish, with one trouble."""

    def __init__(self, place: Place, folder: Path, chance: random.Random, restart: Callable[[], None] | None) -> None:
        self.place, self.folder, self.chance, self.restart = place, folder, chance, restart
        self.trouble = chance.choice(TROUBLES if restart else TROUBLES[:-1])

    def run(self) -> list[str]:
        works = self._works()
        first = started(works[0], self.folder)
        time.sleep(self.chance.uniform(0.0, self.place.span))
        if self.trouble == "kill":
            os.kill(first.pid, signal.SIGKILL)
        elif self.trouble == "pause":
            os.kill(first.pid, signal.SIGSTOP)
        elif self.trouble == "restart" and self.restart is not None:
            self.restart()
        others = [started(work, self.folder) for work in works[1:]]
        answers = [other.wait() for other in others]
        if self.trouble == "pause":
            os.kill(first.pid, signal.SIGCONT)
        return self._compared([first.wait(), *answers])

    def _works(self) -> list[Callable[[], dict[str, Any]]]:
        place, number = self.place, self.place.recorded + 1
        if not place.four_eyes:
            return [publishing(place, number), publishing(place, number)]
        token = until_done(proposing(place, number), self.folder).get("token", "")
        if not token:  # one of before is still open: somebody was killed before it was accepted
            token = until_done(lambda: {"end": "open", "token": place.series().ledger.approval.open()[0][0].token},
                               self.folder)["token"]  # fmt: skip
        if self.chance.random() < 0.8:
            until_done(signing(place, token), self.folder)
        works = [accepting(place, token), accepting(place, token), publishing(place, number)]
        self.chance.shuffle(works)
        return works

    def _compared(self, answers: list[dict[str, Any]]) -> list[str]:
        place, found = self.place, list[str]()
        for answer in answers:
            if answer["end"] == PUBLISHED:
                if answer["number"] in place.said:
                    found.append(f"doubled: two said that they published release {answer['number']}")
                place.said[answer["number"]] = answer["bytes"]
            place.unknown += answer["end"] == UNKNOWN
        seen = until_done(looking(place, whole=False), self.folder)
        if seen["end"] != "seen":
            return [*found, f"broken: {seen}"]
        there = {int(number): data for number, data in seen["there"].items()}
        found += [f"lost: release {n}" for n, data in place.said.items() if there.get(n) != data]
        found += [f"broken: {fault}" for fault in seen["faults"]]
        if sorted(there) != list(range(1, len(there) + 1)) or len(there) > len(place.said) + place.unknown:
            found.append(f"doubled: {len(there)} releases, {len(place.said)} published, {place.unknown} unknown")
        if place.four_eyes:
            found += [f"unsigned: release {number}" for number in seen["unsigned"]]
        place.recorded = len(there)
        return found


@contextlib.contextmanager
def server() -> Iterator[tuple[str, Callable[[], None]]]:
    """A PostgreSQL of its own, and how it restarts."""
    from pgserver._commands import pg_ctl
    from pgserver.postgres_server import get_server

    folder = tempfile.mkdtemp(prefix="reveil-pg-")
    running = get_server(folder, cleanup_mode="delete")

    def restart() -> None:
        words = ["-w", "-m", "immediate" if secrets.randbelow(2) else "fast", "restart", "-l", f"{folder}/log"]
        words += ["-o", f'-h "" -k {running.socket_dir}'] if getattr(running, "socket_dir", None) else []
        pg_ctl(words, pgdata=running.pgdata, user=running.system_user, timeout=60)

    try:
        yield running.get_uri().replace(":@", "@"), restart
    finally:
        running.cleanup()


def begun(folder: Path, address: str | None, four_eyes: bool) -> Place:
    """A new series with nothing in it yet."""
    place = Place(folder / secrets.token_hex(4) / "home", four_eyes)
    place.home.parent.mkdir()
    (place.home.parent / "reveil.toml").write_text(POLICY)

    def work() -> dict[str, Any]:
        if address is not None:
            moving.move(place.home, address)
        series = place.series()
        release = told(series.publish(people(0)))
        if four_eyes:
            series.ledger.approval.require_four_eyes(True, by="officer")
        return release

    start = time.monotonic()
    first = until_done(lambda: ended(work), folder)
    place.span = time.monotonic() - start
    if first["end"] != PUBLISHED:
        raise SystemExit(f"a series did not begin: {first}")
    place.said, place.recorded = {first["number"]: first["bytes"]}, 1
    return place


def rounds(kind: str, number: int, chance: random.Random, where: tuple[str, Callable[[], None]] | None) -> list[str]:
    """So many rounds on one kind of catalog; returns what was found, and prints a line of the table."""
    found, ends = list[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for four_eyes in (False, True):
            for n in range(number // 2):
                if n % LENGTH == 0:
                    place = begun(folder, where and where[0], four_eyes)
                one = Round(place, folder, chance, where and where[1])
                found += [f"{kind}, {one.trouble}: {what}" for what in one.run()]
                ends[one.trouble] += 1
                if n % LENGTH == LENGTH - 1 or n == number // 2 - 1:
                    seen = until_done(looking(place, whole=True), folder)
                    found += [f"{kind}: {fault}" for fault in seen.get("faults", [str(seen)])]
                    ends["releases"] += place.recorded
                    ends["unknown"] += place.unknown
    cells = (kind, number // 2 * 2, *(ends[trouble] for trouble in TROUBLES), ends["releases"], ends["unknown"])
    print(f"| {' | '.join(map(str, cells))} | {len(found)} |", flush=True)
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=["sqlite", "postgresql"], help="of catalogs")
    parser.add_argument("--rounds", type=int, default=500, help="in all")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    chance, each, found = random.Random(asked.seed), asked.rounds // len(asked.kinds), list[str]()
    assert publish and postgres  # imported before any worker is forked
    print("| catalog | rounds | races | paused | killed | restarts | releases | ends unknown | findings |")
    print("|-|-|-|-|-|-|-|-|-|", flush=True)
    for kind in asked.kinds:
        with server() if kind == "postgresql" else contextlib.nullcontext() as where:
            found += rounds(kind, each, chance, where)
    print("\n".join(["", *found]) if found else "\nNothing was lost, doubled, unsigned or broken.")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
