"""The table of jobs, and who works on which: in a file of the console's folder, or in PostgreSQL.

Whoever works on a job has a lease of it, until a moment of the database's clock, under a number (`epoch`) that no other
lease of that job ever has. A lease is renewed while the worker lives. One that ends by itself belongs to a worker that
is dead, or stopped: what only looks is done once more, what publishes is lost, and is never repeated in silence. The
stopped one, when it wakes, finds that its epoch is over: it finishes nothing, and records nothing (`ledger/fencing.py`
asks before each commit).

Each statement is one transaction, and the same in both databases; what differs is how one row is taken by one worker
only (`BEGIN IMMEDIATE`, or `SKIP LOCKED`), and the clock.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reveil.base.addresses import HIDDEN, masked
from reveil.base.errors import ConflictError, Fault, InputError
from reveil.ledger.layouts import new_key
from reveil.serve.place import Place, now, read, write_atomically

OVER = ("succeeded", "failed", "cancelled", "lost")
LEASE_SECONDS, RENEW_SECONDS = 60.0, 10.0
AT_ONCE_EACH = 2  # long jobs of one person that run at the same time
AGAIN = ("look", "levels", "unique", "values", "settings", "audit", "verify", "plan", "compare")  # jobs that only look
ONCE = ("correct", "rotate")  # jobs whose tables are sent again if it did not work
RECORDING = ("accept", "hand-over", "discard", "correct", "rotate")  # that are short, and not to be stopped
COLUMNS = (
    "id",
    "state",
    "about",
    "small",
    "asked",
    "owner",
    "epoch",
    "ends",
    "again",
    "recording",
    "cancel",
    "changed",
)
CREATE = """CREATE TABLE IF NOT EXISTS {table} (
    place TEXT NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL, about TEXT NOT NULL, actor TEXT NOT NULL,
    kind TEXT NOT NULL, series TEXT NOT NULL, small INTEGER NOT NULL, asked DOUBLE PRECISION NOT NULL,
    owner TEXT NOT NULL, epoch INTEGER NOT NULL, ends DOUBLE PRECISION NOT NULL, again INTEGER NOT NULL,
    recording INTEGER NOT NULL, cancel INTEGER NOT NULL, changed TEXT NOT NULL, PRIMARY KEY (place, id))"""
INDEX = "CREATE INDEX IF NOT EXISTS {name} ON {table} (place, state, asked)"


@dataclass(frozen=True)
class Row:
    """A job as the table has it."""

    id: str
    state: str
    about: dict[str, Any]
    small: bool
    asked: float
    owner: str
    epoch: int
    ends: float
    again: int
    recording: bool
    cancel: bool
    changed: str

    @property
    def over(self) -> bool:
        return self.state in OVER


class Leases(ABC):
    """The jobs of one place."""

    table, clock, taking = "jobs", "", ""

    def __init__(self, place: str) -> None:
        self.place = place

    @abstractmethod
    def _do(self, statement: str, values: Sequence[object] = ()) -> tuple[list[tuple[Any, ...]], int]:
        """One statement as one transaction: the rows that it gives, and how many it changed."""

    # --- asking and looking --------------------------------------------------------------------------------

    def add(self, about: dict[str, Any], *, small: bool = False, state: str = "queued") -> None:
        """A job that was asked for."""
        kind = str(about.get("job", {}).get("job", ""))
        who = (str(about.get("by", "")), kind, str(about.get("series") or ""), int(small))
        values = (self.place, about["id"], state, json.dumps(about), *who, now())
        self._do(
            f"INSERT INTO {self.table} VALUES (?, ?, ?, ?, ?, ?, ?, ?, {self.clock}, '', 0, 0, 0, 0, 0, ?)", values
        )

    def row(self, token: str) -> Row | None:
        found = self._rows("AND id = ?", (token,))
        return found[0] if found else None

    def open(self) -> list[Row]:
        """What is queued or runs."""
        return self._rows("AND state IN ('queued', 'running') ORDER BY asked, id", ())

    def listed(self, limit: int, series: str = "") -> list[Row]:
        """The newest jobs that are not small ones, of one series or of all."""
        which = "AND small = 0 AND (series = ? OR ? = '') ORDER BY asked DESC, id DESC LIMIT ?"
        return self._rows(which, (series, series, limit))

    def _rows(self, which: str, values: Sequence[object]) -> list[Row]:
        query = f"SELECT {', '.join(COLUMNS)} FROM {self.table} WHERE place = ? {which}"
        return [_row(found) for found in self._do(query, (self.place, *values))[0]]

    def forget(self, token: str) -> None:
        self._do(f"DELETE FROM {self.table} WHERE place = ? AND id = ?", (self.place, token))

    def cancel(self, token: str) -> None:
        """Ask for the end of a job; one that waits ends at once, one that has begun to record does not."""
        changed = self._change("state = 'cancelled'", "id = ? AND state = 'queued'", (token,))
        if not changed and not self._change("cancel = 1", "id = ? AND state = 'running' AND recording = 0", (token,)):
            row = self.row(token)
            if row is not None and not row.over:
                message = "is recording, and is not stopped in the middle of it"
                raise ConflictError(Fault("R844", f"job {token}", message, "wait a moment"))

    # --- working -------------------------------------------------------------------------------------------

    def claim(self, owner: str, *, small: bool = False) -> Row | None:
        """The oldest job that waits, with a lease: nobody else gets it. Of one person only so many at once."""
        busy = f"""SELECT actor FROM {self.table} WHERE place = ? AND state = 'running' AND small = 0
            GROUP BY actor HAVING count(*) >= {AT_ONCE_EACH}"""
        wanted = f"""SELECT id FROM {self.table} WHERE place = ? AND state = 'queued' AND small = ?
            {"" if small else f"AND actor NOT IN ({busy})"} ORDER BY asked, id LIMIT 1 {self.taking}"""
        change = f"""UPDATE {self.table} SET state = 'running', owner = ?, epoch = epoch + 1, recording = 0, cancel = 0,
            ends = {self.clock} + ?, changed = ? WHERE place = ? AND id = ({wanted}) AND state = 'queued'
            RETURNING {", ".join(COLUMNS)}"""
        lease = (owner, LEASE_SECONDS, now(), self.place)
        taken, _ = self._do(change, (*lease, self.place, int(small), *(() if small else (self.place,))))
        return _row(taken[0]) if taken else None

    def renew(self, token: str, epoch: int) -> bool:
        """Go on; False where the lease is over."""
        values = (LEASE_SECONDS, self.place, token, epoch)
        _, changed = self._do(
            f"""UPDATE {self.table} SET ends = {self.clock} + ? WHERE place = ? AND id = ? AND epoch = ?
            AND state = 'running' AND ends > {self.clock}""",
            values,
        )
        return changed == 1

    def insist(self, token: str, epoch: int) -> None:
        """Before something is committed: from here on the job is not cancelled. Refused where the lease is over."""
        if not self._change("recording = 1", f"{_HELD} AND cancel = 0 AND ends > {self.clock}", (token, epoch)):
            message = "may no longer record: it was cancelled, or it was stopped for longer than its lease"
            raise ConflictError(Fault("R861", f"job {token}", message, "look at the series, and ask for it again"))

    def finish(self, token: str, epoch: int, state: str) -> bool:
        """The job is over; False where it was somebody else's by then."""
        return self._change("state = ?", f"{_HELD} AND ends > {self.clock}", (token, epoch), (state,))

    def give_up(self, token: str, epoch: int, *, back: bool = False) -> None:
        """Its process ended without a word. `back`: it was made to, because this console ends; others may do it."""
        state = "'lost'"
        if back:
            state = f"CASE WHEN recording = 0 AND kind IN ({_LOOKING}) THEN 'queued' ELSE 'lost' END"
        self._change(f"state = CASE WHEN cancel = 1 AND recording = 0 THEN 'cancelled' ELSE {state} END", _HELD,
                     (token, epoch))  # fmt: skip

    def reap(self) -> int:
        """Leases that have ended by themselves: what only looks is done once more, the rest is lost."""
        again = f"again = 0 AND recording = 0 AND kind IN ({_LOOKING})"
        change = f"""again = again + 1, state = CASE WHEN cancel = 1 AND recording = 0 THEN 'cancelled'
            WHEN {again} THEN 'queued' ELSE 'lost' END"""
        return self._changed(change, f"state = 'running' AND ends <= {self.clock}", ())

    def _change(self, change: str, which: str, values: Sequence[object], first: Sequence[object] = ()) -> bool:
        return self._changed(change, which, values, first) > 0

    def _changed(self, change: str, which: str, values: Sequence[object], first: Sequence[object] = ()) -> int:
        statement = f"UPDATE {self.table} SET {change}, changed = ? WHERE place = ? AND {which}"
        return self._do(statement, (*first, now(), self.place, *values))[1]


_HELD = "id = ? AND epoch = ? AND state = 'running'"
_LOOKING = ", ".join(f"'{kind}'" for kind in AGAIN)


def _row(found: Sequence[Any]) -> Row:
    known = dict(zip(COLUMNS, found, strict=True))
    for name in ("small", "recording", "cancel"):
        known[name] = bool(known[name])
    return Row(**{**known, "about": json.loads(known["about"])})


class LeasesInFile(Leases):
    """In a file of the console's folder: for the workers of machines that share it."""

    clock = "((julianday('now') - 2440587.5) * 86400.0)"

    def __init__(self, path: Path, place: str = "") -> None:
        super().__init__(place)
        self.path = path
        with closing(self._open()) as connection:
            connection.execute(CREATE.format(table=self.table))
            connection.execute(INDEX.format(name="jobs_in_order", table=self.table))
        path.chmod(0o600)

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=30, isolation_level=None)

    def _do(self, statement: str, values: Sequence[object] = ()) -> tuple[list[tuple[Any, ...]], int]:
        with closing(self._open()) as connection:
            connection.execute("BEGIN" if statement.startswith("SELECT") else "BEGIN IMMEDIATE")
            cursor = connection.execute(statement, values)
            rows = cursor.fetchall()
            connection.execute("COMMIT")
            return rows, cursor.rowcount


class LeasesInPostgres(Leases):
    """In PostgreSQL: for workers on many machines, by one clock."""

    table = "reveil_console.jobs"
    clock = "extract(epoch FROM clock_timestamp())::float8"
    taking = "FOR UPDATE SKIP LOCKED"

    def __init__(self, address: str, place: str) -> None:
        super().__init__(place)
        self._address, self._lock = address, threading.Lock()
        self._connection: Any = None
        begin = ("BEGIN; SELECT pg_advisory_xact_lock(7230418); CREATE SCHEMA IF NOT EXISTS reveil_console",
                 CREATE.format(table=self.table), INDEX.format(name="jobs_in_order", table=self.table))  # fmt: skip
        self._do("; ".join((*begin, "COMMIT")))

    def _do(self, statement: str, values: Sequence[object] = ()) -> tuple[list[tuple[Any, ...]], int]:
        import psycopg

        with self._lock:
            for last in (False, True):
                try:
                    return self._done(statement, values)
                except psycopg.OperationalError as error:  # the server was restarted: once more, on a new connection
                    self._connection = None
                    if last:
                        said = str(error).strip().splitlines()[0]
                        fault = Fault(
                            "R503",
                            f"queue '{masked(self._address)}'",
                            f"does not answer: {said}",
                            "look after the server",
                        )
                        raise InputError(fault) from None
        raise AssertionError

    def _done(self, statement: str, values: Sequence[object]) -> tuple[list[tuple[Any, ...]], int]:
        import psycopg

        if self._connection is None:
            self._connection = psycopg.connect(self._address, autocommit=True, cursor_factory=psycopg.ClientCursor)
        cursor = self._connection.execute(statement.replace("?", "%s"), tuple(values) or None)
        return cursor.fetchall() if cursor.description else [], cursor.rowcount


# --- where the table is ------------------------------------------------------------------------------------


def leases_of(place: Place, address: str | None = None) -> Leases:
    """The table of a place. With an address it is in that database from now on; a place that has one stays with it."""
    file = place.state / "queue.json"
    said = read(file)
    if address is not None and (said is None or said["queue"] != address):
        _refuse(place, address, said)
        said = {"queue": address, "place": new_key()}
        LeasesInPostgres(address, said["place"])
        write_atomically(file, said)
        file.chmod(0o600)
    if said is not None:
        return LeasesInPostgres(str(said["queue"]), str(said["place"]))
    return LeasesInFile(place.state / "queue.sqlite")


def _refuse(place: Place, address: str, said: dict[str, Any] | None) -> None:
    where = f"queue '{masked(address)}'"
    if said is not None:
        raise InputError(
            Fault("R514", where, f"this folder has its queue in {masked(said['queue'])}", "leave --queue out")
        )
    if not address.startswith(("postgresql://", "postgres://")):
        raise InputError(
            Fault("R514", where, "is no address of a PostgreSQL database", "write postgresql://HOST/DATABASE")
        )
    if HIDDEN in masked(address):
        message = "holds a password, and would be kept in a file"
        raise InputError(Fault("R514", where, message, "leave it out: PGPASSWORD or ~/.pgpass has it"))
    if (place.state / "queue.sqlite").exists() and LeasesInFile(place.state / "queue.sqlite").open():
        raise InputError(Fault("R514", where, "jobs wait or run in the queue of this folder", "let them end first"))
