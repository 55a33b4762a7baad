"""A publisher in a process of its own, to be killed, starved or raced by the ledger tests.

ledger_child.py publish HOME STEP    publish one release and die by SIGKILL at STEP ("never": live)
ledger_child.py loop HOME            publish until killed
ledger_child.py turns HOME           publish in lock step with another process, told what to do on stdin
ledger_child.py limited HOME WHERE   publish with a limit on file sizes that is hit in WHERE
"""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from reveil.base.errors import ReveilError
from reveil.ledger import folder, layouts, sqlite, store
from reveil.ledger.folder import Folders
from reveil.ledger.ledger import Ledger
from reveil.ledger.sqlite import SqliteCatalog

POLICY = {"guarantee": {"k": 5}}


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_after(owner: Any, name: str) -> None:
    original: Callable[..., Any] = getattr(owner, name)

    def replacement(*args: Any, **kwargs: Any) -> None:
        original(*args, **kwargs)
        die()

    setattr(owner, name, replacement)


def die_before(owner: Any, name: str) -> None:
    setattr(owner, name, die)


def die_before_commit(*, spilled: bool) -> None:
    """Die inside the recording transaction; `spilled`: half of it in the database file, journal hot."""
    append, connect = SqliteCatalog.append, SqliteCatalog._connect

    def small_cache(self: SqliteCatalog) -> sqlite3.Connection:
        connection = connect(self)
        connection.execute("PRAGMA cache_size=1")
        return connection

    def armed(self: SqliteCatalog, *args: Any) -> None:
        if spilled:
            SqliteCatalog._connect = small_cache  # type: ignore[method-assign]
        sqlite._commit = die  # type: ignore[assignment]
        append(self, *args)

    SqliteCatalog.append = armed  # type: ignore[method-assign, assignment]


STEPS: dict[str, Callable[[], None]] = {
    "never": lambda: None,
    "lock taken": lambda: die_after(folder, "take_lock"),
    "staged": lambda: die_after(Ledger, "stage"),
    "writing": lambda: None,  # see `write`
    "sealed": lambda: die_after(Folders, "seal"),
    "in transaction": lambda: die_before_commit(spilled=False),
    "in transaction, spilled": lambda: die_before_commit(spilled=True),
    "committed": lambda: die_after(SqliteCatalog, "append"),
    "renamed": lambda: die_before(SqliteCatalog, "set_state"),
    "marked": lambda: die_after(SqliteCatalog, "set_state"),
    "rewriting": lambda: die_before(layouts, "new_key"),  # the tables of an older layout
    "tables made": lambda: die_after(layouts, "create"),
    "rewritten": lambda: die_after(sqlite, "migrate"),
    "discarding": lambda: die_before(SqliteCatalog, "happen"),
    "discarded": lambda: die_after(SqliteCatalog, "happen"),
    "deleting": lambda: die_before(folder.shutil, "rmtree"),
    "key made": lambda: die_after(store, "make_key"),
}


def write(staged: Path, text: str, *, die_halfway: bool = False) -> None:
    with (staged / "public" / "table.csv").open("w") as file:
        file.write(text[: len(text) // 2])
        file.flush()
        if die_halfway:
            die()
        file.write(text[len(text) // 2 :])
    (staged / "private" / "certificate.json").write_text("{}")
    (staged / "memory" / "people.parquet").write_bytes(b"not read here")


def open_ledger(home: Path) -> Ledger:
    return Ledger.create_or_open(home, series="demo", policy=POLICY)


def publish(home: Path, step: str) -> None:
    STEPS[step]()
    ledger = open_ledger(home)
    staged = ledger.stage()
    write(staged, "age;n\n" * 1000, die_halfway=step == "writing")
    record = ledger.record(staged, on=ledger.head(), facts={"rows": 1000, "codes": list(range(30_000))})
    ledger.reveal(record.number)


def take_back(home: Path, step: str) -> None:
    STEPS[step]()
    ledger = open_ledger(home)
    ledger.take_back(ledger.head().number, {"reason": "a test"})


def loop(home: Path) -> None:
    """Publish for ever; says so after the first release, however slow the machine is."""
    for number in count():
        if number == 1:
            print("ready", flush=True)
        ledger = open_ledger(home)
        ledger.settle()
        staged = ledger.stage()
        write(staged, "age;n\n" * 1000)
        ledger.reveal(ledger.record(staged, on=ledger.head(), facts={}).number)


def turns(home: Path) -> None:
    ledger, staged, head = open_ledger(home), Path(), None
    print("ready", flush=True)
    for line in sys.stdin:
        answer = "done"
        match line.strip():
            case "plan":
                ledger = open_ledger(home)
                head, staged = ledger.head(), ledger.stage()
                write(staged, f"{os.getpid()}\n" * 100)
            case "settle":
                answer = repr(ledger.settle())
            case "go":
                assert head is not None
                try:
                    record = ledger.record(staged, on=head, facts={"by": os.getpid()})
                    answer = f"won {ledger.reveal(record.number).name}"
                except ReveilError as error:
                    answer = f"{type(error).__name__} {error}"
        print(answer, flush=True)


def limited(home: Path, where: str) -> None:
    """RLIMIT_FSIZE stands in for the full disk: the write that passes the limit fails."""
    import polars as pl

    ledger = open_ledger(home)
    staged = ledger.stage()
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    facts: dict[str, object] = {}
    try:
        if where == "memory":
            ledger.write_memory(staged, "people", pl.DataFrame({"n": os.urandom(400_000)}).cast(pl.Binary))
        else:
            facts = {"long": "x" * 400_000}
        ledger.record(staged, on=ledger.head(), facts=facts)
    except ReveilError as error:
        ledger.discard(staged)
        print(type(error).__name__, error)


if __name__ == "__main__":
    jobs: dict[str, Callable[..., None]] = {
        "publish": publish,
        "take back": take_back,
        "loop": loop,
        "turns": turns,
        "limited": limited,
    }
    jobs[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
