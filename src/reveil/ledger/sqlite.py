"""The catalog of a series in a SQLite database, for one machine.

Journal: the classic rollback journal, not WAL. A home is backed up by copying the folder, and with WAL the
newest release may be only in a side file that such a copy forgets; a series that forgets a release it has
published is the one accident that cannot be repaired. Writes are a few rows per release, so readers wait
milliseconds at most.

Durability: synchronous=EXTRA, which is FULL plus forcing the removal of the journal to the disk. With FULL
alone a power cut just after a commit may undo the commit, and by then the release may be revealed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from reveil.base.errors import CommitUnknownError, ConflictError, Fault, InputError, ReveilError, TamperedError
from reveil.ledger import fencing
from reveil.ledger.amendments import AMENDED, END, MEMORY, RETRACT, refuse_outdated
from reveil.ledger.layouts import NEWEST, create, layout_of, migrate, new_key, show_as_newest
from reveil.ledger.proposals import FOUR_EYES, WITHDRAW, Proposal
from reveil.ledger.record import GENESIS, STEPS, Event, Head, Identity, Record, ReleaseState, Snapshot, canonical
from reveil.ledger.rows import (
    damaged,
    event_of,
    moved_on,
    overtaken,
    proposal_of,
    record_of,
    refuse_recording,
    refuse_second,
    row_of,
    step_fault,
)

WAIT_SECONDS = 30
_RECORDS = "SELECT number, id, previous, made, facts, manifest, state, token FROM releases WHERE series = ?"
_HAPPENED = "SELECT id, previous, at, actor, action, release, details FROM events WHERE series = ?"
_PROPOSED = "SELECT token, on_number, on_id, made, actor, facts, manifest FROM proposals WHERE series = ?"
_ANY_APPROVAL = """SELECT EXISTS (SELECT 1 FROM proposals WHERE series = ?)
    OR EXISTS (SELECT 1 FROM events WHERE series = ? AND action = ?)"""


class SqliteCatalog:
    """One series of a database: the one with this key, or the only one there is.

    Nothing stays open between calls, so a fork or a copy of the folder meets no open database. Every failure is told
    in plain words.
    """

    def __init__(self, file: Path, series: str | None = None) -> None:
        self.file = file
        self._series = series

    # --- the series ----------------------------------------------------------------------------------------

    def found(self, series: str, make_fingerprint: Callable[[], str]) -> Identity:
        with self._writing() as connection:
            known = self._entry(connection)
            if known is not None:
                return known[1]
            identity = Identity(series, None, make_fingerprint())
            entry = (self._series or new_key(), series, identity.fingerprint)
            connection.execute("INSERT INTO series (key, name, fingerprint) VALUES (?, ?, ?)", entry)
            connection.execute("COMMIT")
            return identity

    def identity(self) -> Identity | None:
        with self._reading() as connection:
            entry = self._entry(connection)
        return None if entry is None else entry[1]

    def _entry(self, connection: sqlite3.Connection | None) -> tuple[str, Identity] | None:
        """Key and identity of the series."""
        if connection is None:
            return None
        wanted = "SELECT key, name, policy, fingerprint FROM series"
        entries = connection.execute(
            *(wanted,) if self._series is None else (f"{wanted} WHERE key = ?", (self._series,))
        ).fetchall()
        if not entries:
            orphans = connection.execute("SELECT 1 FROM releases WHERE ? IS NULL OR series = ?", (self._series,) * 2)
            if orphans.fetchone():
                raise TamperedError(damaged(self._where, "entries are missing or wrong: series"))
            return None
        key, name, policy, fingerprint = entries[0]
        told = {"series": name, "fingerprint": fingerprint, "key": key, "policy": "-" if policy is None else policy}
        lost = [what for what, value in told.items() if not isinstance(value, str) or (not value and what != "key")]
        if lost or len(entries) > 1:
            wrong = ", ".join(lost) if lost else "there are several series, and none was asked for"
            raise TamperedError(damaged(self._where, f"entries are missing or wrong: {wrong}"))
        return key, Identity(name, policy, fingerprint)

    # --- the releases --------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot | None:
        with self._reading() as connection:
            entry = self._entry(connection)
            if connection is None or entry is None:
                return None
            rows = connection.execute(f"{_RECORDS} ORDER BY place", (entry[0],)).fetchall()
            happened = connection.execute(f"{_HAPPENED} ORDER BY place", (entry[0],)).fetchall()
            proposed = connection.execute(f"{_PROPOSED} ORDER BY made, token", (entry[0],)).fetchall()
            for table in ("releases", "events", "proposals"):
                stray = f"SELECT 1 FROM {table} WHERE series NOT IN (SELECT key FROM series)"
                if connection.execute(stray).fetchone():
                    raise TamperedError(damaged(self._where, f"there are {table} of no series: entries were edited"))
        records, faults = [], []
        for row in rows:
            try:
                records.append(record_of(*row))
            except (ValueError, TypeError, KeyError) as error:
                where = f"{self._where}, release {row[0]}"
                faults.append(damaged(where, f"its entry cannot be read ({error})", "R521"))
        if faults:
            raise TamperedError(faults)
        try:
            events, proposals = (
                tuple(event_of(*row) for row in happened),
                tuple(proposal_of(*row) for row in proposed),
            )
        except (ValueError, TypeError, KeyError) as error:
            raise TamperedError(damaged(self._where, f"its events cannot be read ({error})", "R521")) from None
        return Snapshot(entry[1], tuple(records), events, proposals)

    def head(self) -> Head:
        with self._reading() as connection:
            entry = self._entry(connection)
            return GENESIS if connection is None or entry is None else _head(connection, entry[0])

    def holds(self, token: str) -> bool:
        with self._reading() as connection:
            if connection is None:
                return False
            return connection.execute("SELECT 1 FROM releases WHERE token = ?", (token,)).fetchone() is not None

    def waits(self, token: str) -> bool:
        with self._reading() as connection:
            if connection is None:
                return False
            given_up = "SELECT 1 FROM events WHERE release = proposals.token AND action = ?"
            wanted = f"SELECT 1 FROM proposals WHERE token = ? AND NOT EXISTS ({given_up})"
            return connection.execute(wanted, (token, WITHDRAW)).fetchone() is not None

    def append(self, record: Record, on: Head, identity: Identity) -> None:
        with self._writing() as connection:  # closing the connection rolls back what is not committed
            entry = self._entry(connection)
            key = "" if entry is None else entry[0]
            head = _head(connection, key)
            if head != on:
                raise ConflictError(moved_on(on, head))
            refuse_outdated(str(record.facts.get(AMENDED, "")), _last_amendment(connection, key))
            if connection.execute(_ANY_APPROVAL, (key, key, FOUR_EYES)).fetchone()[0]:
                refuse_recording(self._series_in(connection, key, identity), record.token)
            if on == GENESIS:
                fixed = (identity.series, identity.policy or "", key)
                connection.execute("UPDATE series SET name = ?, policy = ? WHERE key = ?", fixed)
            place = connection.execute("SELECT count(*) FROM releases WHERE series = ?", (key,)).fetchone()[0] + 1
            row = (key, place, *row_of(record))
            connection.execute(f"INSERT INTO releases VALUES ({', '.join('?' * len(row))})", row)
            fencing.insist()
            failure = _commit(connection)
        if failure is not None:
            self._after_failed_commit(record, failure)

    def _after_failed_commit(self, record: Record, failure: Exception) -> None:
        """Ask a new connection. 'Not there' is certain, because the failed one is closed and rolled back.

        'There' is not: the error may have been about making it last. Then the next command decides.
        """
        try:
            there = self.holds(record.token)
        except ReveilError:
            there = True
        if not there:
            raise self._explained(failure) from failure
        raise CommitUnknownError(
            Fault(
                "R508",
                self._where,
                f"the disk reported an error while release {record.number} was being recorded: {failure}",
                "look after the disk, then run `reveil history`: it finishes the release or clears it away",
            )
        ) from failure

    def propose(self, proposal: Proposal, event: Event) -> None:
        with self._writing() as connection:
            entry = self._entry(connection)
            key, identity = entry or ("", Identity("", None, ""))
            if (head := _head(connection, key)) != proposal.on:
                raise ConflictError(moved_on(proposal.on, head))
            refuse_outdated(str(proposal.facts.get(AMENDED, "")), _last_amendment(connection, key))
            series = self._series_in(connection, key, identity)
            refuse_second(series, proposal.token)
            facts, manifest = canonical(proposal.facts), canonical(proposal.manifest)
            stated = (proposal.token, *(proposal.on.number, proposal.on.id), proposal.made, proposal.by)
            row = (key, *stated, facts, manifest)
            connection.execute(f"INSERT INTO proposals VALUES ({', '.join('?' * len(row))})", row)
            _note(connection, key, event)
            fencing.insist()
            connection.execute("COMMIT")

    def step(self, event: Event) -> None:
        with self._writing() as connection:
            key, identity = self._entry(connection) or ("", Identity("", None, ""))
            series = self._series_in(connection, key, identity)
            if fault := step_fault(series, event):
                raise ConflictError(fault)
            _note(connection, key, event)
            fencing.insist()
            connection.execute("COMMIT")

    def _series_in(self, connection: sqlite3.Connection, key: str, identity: Identity) -> Snapshot:
        """The series as this transaction sees it."""
        chain = tuple(record_of(*row) for row in connection.execute(f"{_RECORDS} ORDER BY place", (key,)))
        events = tuple(event_of(*row) for row in connection.execute(f"{_HAPPENED} ORDER BY place", (key,)))
        proposals = tuple(proposal_of(*row) for row in connection.execute(f"{_PROPOSED} ORDER BY made, token", (key,)))
        return Snapshot(identity, chain, events, proposals)

    def set_state(self, number: int, state: ReleaseState) -> None:
        with self._writing() as connection:
            entry = self._entry(connection)
            key = "" if entry is None else entry[0]
            # Whatever was done to it meanwhile, by another process that had revealed it, stays.
            change = "UPDATE releases SET state = ? WHERE series = ? AND number = ? AND state = ?"
            connection.execute(change, (state, key, number, ReleaseState.RECORDED))
            connection.execute("COMMIT")

    def happen(self, event: Event, state: ReleaseState) -> None:
        with self._writing() as connection:
            entry = self._entry(connection) or ("", Identity("", None, ""))
            key = entry[0]
            chain = [
                record_of(*row) for row in connection.execute(f"{_RECORDS} ORDER BY place DESC", (key,)).fetchall()
            ]
            record = next((one for one in chain if one.id == event.release), None)
            late = record is None or state not in STEPS[record.state]
            if late or (state is ReleaseState.DISCARDED and record != chain[0]):
                raise ConflictError(overtaken(event))
            if event.action == RETRACT and (fault := step_fault(self._series_in(connection, *entry), event)):
                raise ConflictError(fault)
            change = "UPDATE releases SET state = ? WHERE series = ? AND id = ?"
            connection.execute(change, (state, key, event.release))
            _note(connection, key, event)
            fencing.insist()
            connection.execute("COMMIT")

    # --- the layout ----------------------------------------------------------------------------------------

    @property
    def where(self) -> str:
        """What this catalog is called in all that is said."""
        return self._where

    def layout(self) -> int | None:
        """The layout that the tables have now; None where there are none."""
        with self._reading() as connection:
            return None if connection is None else self._layout(connection)

    def rewrite(self, wanted: Snapshot) -> None:
        """Rewrite the tables in the newest layout, if this series is then as wanted; else nothing is changed."""
        with self._writing() as connection:
            entry = self._entry(connection)
            if entry is None or self._series_in(connection, *entry) != wanted:
                message = "it would read otherwise in the newest layout; nothing was changed"
                raise TamperedError(damaged(self._where, message))
            connection.execute("COMMIT")

    # --- connections ---------------------------------------------------------------------------------------

    @property
    def _where(self) -> str:
        return f"ledger '{self.file}'"

    def _connect(self) -> sqlite3.Connection:
        # isolation_level=None: the driver must not begin transactions of its own.
        connection = sqlite3.connect(self.file, timeout=WAIT_SECONDS, isolation_level=None)
        connection.execute("PRAGMA synchronous=EXTRA")
        return connection

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """A view of one moment, in the newest layout; None where there are no tables yet."""
        with self._in_plain_words(), closing(self._connect()) as connection:
            connection.execute("BEGIN")
            layout = self._layout(connection)
            if layout is not None and layout < NEWEST:
                show_as_newest(connection, layout)
            yield None if layout is None else connection

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction in the newest layout; what is not committed in it has not happened."""
        with self._in_plain_words(), closing(self._connect()) as connection:
            # IMMEDIATE takes the write lock before the head is read: what the check saw is still true at the commit.
            connection.execute("BEGIN IMMEDIATE")
            layout = self._layout(connection)
            if layout is None:
                create(connection)
            elif layout < NEWEST:
                migrate(connection, layout)
            yield connection

    def _layout(self, connection: sqlite3.Connection) -> int | None:
        said = layout_of(connection)
        if said is None:
            return None
        if not said:
            raise TamperedError(damaged(self._where, "it is a database, but not one of Reveil's"))
        if said.isdigit() and int(said) > NEWEST:
            message = f"it was written by a newer Reveil (layout {said}; this one knows up to {NEWEST})"
            raise InputError(Fault("R505", self._where, message, "upgrade Reveil on this machine"))
        if not said.isdigit() or int(said) < 1:
            raise TamperedError(damaged(self._where, "entries are missing or wrong: schema"))
        return int(said)

    @contextmanager
    def _in_plain_words(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> Exception:
        """What an error of the database means to a user; any other error is a bug and stays itself."""
        code = getattr(error, "sqlite_errorcode", -1) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            message = f"another process has been writing to it for more than {WAIT_SECONDS} seconds"
            return InputError(Fault("R512", self._where, message, "wait until that process is done and try again"))
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            message = f"it cannot be opened and written: {error}"
            return InputError(Fault("R503", self._where, message, "make the home folder yours and writable"))
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            message = f"the disk did not take it: {error}. Nothing was recorded"
            return InputError(Fault("R506", self._where, message, "free some space on that disk and try again"))
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT):
            return TamperedError(damaged(self._where, f"it is damaged or not a ledger: {error}"))
        if not hasattr(error, "sqlite_errorcode") and isinstance(error, sqlite3.DatabaseError):
            # Python's own errors have no code: text that is not UTF-8, for instance.
            return TamperedError(damaged(self._where, f"it was edited: {error}"))
        return error


def _commit(connection: sqlite3.Connection) -> Exception | None:
    try:
        connection.execute("COMMIT")
    except Exception as error:  # whatever it is: from here on it matters only whether the record is there
        return error
    return None


def _head(connection: sqlite3.Connection, series: str) -> Head:
    newest = """SELECT (SELECT max(number) FROM releases WHERE series = ? AND state != 'discarded'), id
        FROM releases WHERE series = ? ORDER BY place DESC LIMIT 1"""
    row = connection.execute(newest, (series, series)).fetchone()
    return Head(row[0] or 0, row[1]) if row else GENESIS


def _last_amendment(connection: sqlite3.Connection, series: str) -> Event | None:
    """The newest change of the memory, or the end."""
    wanted = (*MEMORY, END)
    query = f"{_HAPPENED} AND action IN ({', '.join('?' * len(wanted))}) ORDER BY place DESC LIMIT 1"
    row = connection.execute(query, (series, *wanted)).fetchone()
    return event_of(*row) if row else None


def _note(connection: sqlite3.Connection, series: str, event: Event) -> None:
    """Enter an event, if nothing happened since its `previous`."""
    last = "SELECT place, id FROM events WHERE series = ? ORDER BY place DESC LIMIT 1"
    place, previous = connection.execute(last, (series,)).fetchone() or (0, "")
    if previous != event.previous:
        raise ConflictError(overtaken(event))
    facts = (event.at, event.actor, event.action, event.release, canonical(event.details))
    row = (series, place + 1, event.id, event.previous, *facts)
    connection.execute(f"INSERT INTO events VALUES ({', '.join('?' * len(row))})", row)
