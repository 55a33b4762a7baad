"""`reveil` in processes of their own, to be killed, starved or raced.

This process imports everything and does nothing else. For each line of JSON on stdin (how, arguments, out, err) it
forks a child that runs the command line: as good as a new process, without the seconds that importing takes. It answers
with the child's process id, and with its exit code when it is asked for by that id.

how: "" for nothing special; STEP to die by SIGKILL right after that step of publishing; starve:BYTES for a full disk
(no file may grow beyond BYTES once the release is planned); wait:FILE to make FILE.PID.planned then, and wait for FILE.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reveil import publish
from reveil.audit import gate
from reveil.cli import app
from reveil.jobs import release  # noqa: F401 commands import them when they run
from reveil.ledger import sqlite, store
from reveil.ledger.anchor import Anchor
from reveil.ledger.approval import Approval
from reveil.ledger.folder import Folders
from reveil.ledger.ledger import Ledger
from reveil.ledger.sqlite import SqliteCatalog
from reveil.table import roles


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_after(owner: Any, name: str) -> None:
    original: Callable[..., Any] = getattr(owner, name)

    def replacement(*args: Any, **kwargs: Any) -> None:
        original(*args, **kwargs)
        die()

    setattr(owner, name, replacement)


def die_in_transaction() -> None:
    append = SqliteCatalog.append

    def armed(self: SqliteCatalog, *args: Any) -> None:
        sqlite._commit = die  # type: ignore[assignment]
        append(self, *args)

    SqliteCatalog.append = armed  # type: ignore[method-assign, assignment]


def die_in_proposing() -> None:
    """Everything is entered, and nothing of it committed."""
    note: Callable[..., Any] = sqlite._note

    def armed(*args: Any) -> None:
        note(*args)
        die()

    sqlite._note = armed  # type: ignore[assignment]


def die_halfway_through_the_table() -> None:
    """The table is half on the disk when the process ends."""
    emit: Callable[..., Any] = publish.emit

    def torn(*args: Any) -> None:
        emit(*args)
        table = next(path for path in args[-1].iterdir() if path.suffix == ".csv" and path.stem == "table")
        with table.open("r+b") as file:
            file.truncate(table.stat().st_size // 2)
        die()

    publish.emit = torn  # type: ignore[assignment]


def die_while_anchoring() -> None:
    """The new anchor is written beside the old one, and has not taken its place."""
    advance = Anchor.advance

    def armed(self: Anchor, *args: Any) -> None:
        os.fsync = die
        advance(self, *args)

    Anchor.advance = armed  # type: ignore[method-assign]


STEPS: dict[str, Callable[[], None]] = {
    "read": lambda: die_after(roles, "read_table"),
    "roles": lambda: die_after(roles, "prepare"),
    "encode": lambda: die_after(publish, "encoded_of"),
    "plan": lambda: die_after(publish, "draft"),
    "stage": lambda: die_after(Ledger, "stage"),
    "recode": lambda: die_after(publish, "recode"),
    "half a table": die_halfway_through_the_table,
    "emit": lambda: die_after(publish, "emit"),
    "verify": lambda: die_after(publish, "verify"),
    "reports": lambda: die_after(publish, "write_reports"),
    "audit": lambda: die_after(gate, "truth_of"),  # with [audit] gate = true: in the middle of the attack
    "first memory": lambda: die_after(Ledger, "write_memory"),
    "memory": lambda: die_after(publish, "facts_of"),
    "seal": lambda: die_after(Folders, "seal"),
    "in transaction": die_in_transaction,
    "record": lambda: die_after(SqliteCatalog, "append"),
    "rename": lambda: die_after(Folders, "reveal"),
    "mark": lambda: die_after(SqliteCatalog, "set_state"),
    "reveal": lambda: die_after(Ledger, "reveal"),
}
ANCHORING: dict[str, Callable[[], None]] = {  # with [output] anchor
    "record": STEPS["record"],
    "half an anchor": die_while_anchoring,
    "anchor": lambda: die_after(Anchor, "advance"),
    "rename": STEPS["rename"],
}
PROPOSING: dict[str, Callable[[], None]] = {
    "in step": die_in_proposing,
    "proposed": lambda: die_after(SqliteCatalog, "propose"),
    "stepped": lambda: die_after(SqliteCatalog, "step"),
    "let go": lambda: die_after(Folders, "let_go"),
    "claimed": lambda: die_after(Folders, "claim"),
    "compared": lambda: die_after(Approval, "insist_on_bytes"),
    "removed": lambda: die_after(Folders, "discard"),
}
AMENDING: dict[str, Callable[[], None]] = {
    "sealed": lambda: die_after(Folders, "seal"),
    "key beside": lambda: die_after(store, "lay_key_beside"),
    "in step": die_in_proposing,
    "stepped": lambda: die_after(SqliteCatalog, "step"),
    "one replaced": lambda: die_after(Folders, "replace"),
    "one dropped": lambda: die_after(Folders, "drop"),
    "key taken": lambda: die_after(store, "take_key_beside"),
    "key gone": lambda: die_after(store, "destroy_key"),
    "removed": lambda: die_after(Folders, "discard"),
}
AFTER_RECORDING = ("record", "rename", "mark", "reveal")


def wait_for(file: Path) -> None:
    original = publish.draft

    def replacement(*args: Any, **kwargs: Any) -> Any:
        planned = original(*args, **kwargs)
        file.with_name(f"{file.name}.{os.getpid()}.planned").touch()
        while not file.exists():
            time.sleep(0.01)
        return planned

    publish.draft = replacement


def starve(limit: int) -> None:
    """From the moment that the release is planned until publishing is over, as a disk fills up at the wrong time."""
    planning, publishing = publish.draft, publish.Series.publish

    def draft(*args: Any, **kwargs: Any) -> Any:
        planned = planning(*args, **kwargs)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        return planned

    def whole(*args: Any, **kwargs: Any) -> Any:
        try:
            return publishing(*args, **kwargs)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    publish.draft, publish.Series.publish = draft, whole  # type: ignore[method-assign]


def run(how: str, arguments: list[str], out: str, err: str) -> None:
    """The command line with its output in files; never returns."""
    code = 70
    try:
        for target, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), target)
        name, _, rest = how.partition(":")
        if name == "starve":
            starve(int(rest))
        elif name == "wait":
            wait_for(Path(rest))
        elif how:
            {**STEPS, **ANCHORING, **PROPOSING, **AMENDING}[how]()
        sys.argv = ["reveil", *arguments]
        app.main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def serve() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        if "wait" in job:
            answer = os.waitstatus_to_exitcode(os.waitpid(job["wait"], 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                run(**job)
        print(answer, flush=True)


if __name__ == "__main__":
    serve()
