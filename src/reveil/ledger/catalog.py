"""The catalog of a series: one small SQLite database, used through SQLAlchemy Core.

Journal: the classic rollback journal, not WAL. A home is backed up by copying the folder, and with WAL the
newest release may be only in a side file that such a copy forgets; a series that forgets a release it has
published is the one accident that cannot be repaired. Writes are a few rows per release, so readers wait
milliseconds at most.

Durability: synchronous=EXTRA, which is FULL plus forcing the removal of the journal to the disk. With FULL
alone a power cut just after a commit may undo the commit, and by then the release may be revealed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from reveil.base.errors import CommitUnknownError, ConflictError, Fault, InputError, ReveilError, TamperedError
from reveil.ledger.record import GENESIS, Head, Identity, Manifest, Record, canonical

SCHEMA = 1
WAIT_SECONDS = 30

_tables = sa.MetaData()
_meta = sa.Table(
    "meta",
    _tables,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
_releases = sa.Table(
    "releases",
    _tables,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("previous", sa.Text, nullable=False),
    sa.Column("made", sa.Text, nullable=False),
    sa.Column("facts", sa.Text, nullable=False),
    sa.Column("manifest", sa.Text, nullable=False),
    sa.Column("token", sa.Text, nullable=False, unique=True),
    sa.Column("revealed", sa.Boolean, nullable=False),
)


class Catalog:
    """Rows in, rows out; every statement in a transaction of its own, every failure in plain words."""

    def __init__(self, file: Path) -> None:
        self.file = file
        # No pool: nothing stays open between calls, so a fork or a copy of the folder meets no open database.
        self._engine = sa.create_engine("sqlite://", creator=self._connect, poolclass=NullPool)
        sa.event.listen(self._engine, "begin", _begin)

    def _connect(self) -> sqlite3.Connection:
        # isolation_level=None: the driver must not begin transactions of its own, `_begin` does.
        connection = sqlite3.connect(self.file, timeout=WAIT_SECONDS, isolation_level=None)
        connection.execute("PRAGMA synchronous=EXTRA")
        return connection

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with self._in_plain_words(), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        with self._in_plain_words(), self._engine.connect() as connection:
            connection = connection.execution_options(reveil_write=True)
            with connection.begin():
                yield connection

    @contextmanager
    def _in_plain_words(self) -> Iterator[None]:
        try:
            yield
        except (sa.exc.DBAPIError, sqlite3.Error) as error:
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> Exception:
        """What an error of the database means to a user; any other error is a bug and stays itself."""
        cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
        code = getattr(cause, "sqlite_errorcode", -1) & 0xFF
        where = f"ledger '{self.file}'"
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            message = f"another process has been writing to it for more than {WAIT_SECONDS} seconds"
            return InputError(Fault("R512", where, message, "wait until that process is done and try again"))
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            message = f"it cannot be opened and written: {cause}"
            return InputError(Fault("R503", where, message, "make the home folder yours and writable"))
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            message = f"the disk did not take it: {cause}. Nothing was recorded"
            return InputError(Fault("R506", where, message, "free some space on that disk and try again"))
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR):
            return TamperedError(_damaged(where, f"it is damaged or not a ledger: {cause}"))
        return error

    # --- the series ----------------------------------------------------------------------------------------

    def found(self, series: str, make_fingerprint: Callable[[], str]) -> Identity:
        """Enter a new series and its key in one transaction; the second of two finds the first's."""
        with self._writing() as connection:
            if not sa.inspect(connection).get_table_names():
                _tables.create_all(connection)
            identity = self._identity(connection)
            if identity is None:
                identity = Identity(series, None, make_fingerprint())
                _put(connection, schema=str(SCHEMA), series=series, fingerprint=identity.fingerprint)
            return identity

    def identity(self) -> Identity | None:
        """Series, policy and key fingerprint; None when the series was never entered."""
        with self._reading() as connection:
            return self._identity(connection)

    def _identity(self, connection: sa.Connection) -> Identity | None:
        names = sa.inspect(connection).get_table_names()
        if not names:
            return None
        where = f"ledger '{self.file}'"
        if "meta" not in names:
            raise TamperedError(_damaged(where, "it is a database, but not one of Reveil's"))
        rows = connection.execute(sa.select(_meta.c.name, _meta.c.value))
        values = {row.name: row.value for row in rows}
        if not values and connection.execute(sa.select(sa.func.count()).select_from(_releases)).scalar() == 0:
            return None
        schema = values.get("schema", "")
        if schema.isdigit() and int(schema) > SCHEMA:
            message = f"it was written by a newer Reveil (layout {schema}; this one knows up to {SCHEMA})"
            raise InputError(Fault("R505", where, message, "upgrade Reveil on this machine"))
        lost = [name for name in ("schema", "series", "fingerprint") if not values.get(name)]
        if lost or not schema.isdigit():
            raise TamperedError(_damaged(where, f"entries are missing or wrong: {', '.join(lost or ['schema'])}"))
        return Identity(values["series"], values.get("policy"), values["fingerprint"])

    # --- the releases --------------------------------------------------------------------------------------

    def head(self) -> Head:
        with self._reading() as connection:
            return _head(connection)

    def records(self, number: int | None = None) -> list[Record]:
        """All records by number, or just this one; entries that cannot be read at all are reported together."""
        wanted = sa.select(_releases).order_by(_releases.c.number)
        if number is not None:
            wanted = wanted.where(_releases.c.number == number)
        with self._reading() as connection:
            rows = connection.execute(wanted).all()
        records, faults = [], []
        for row in rows:
            try:
                records.append(_record(row))
            except (ValueError, TypeError, KeyError) as error:
                where = f"ledger '{self.file}', release {row.number}"
                faults.append(_damaged(where, f"its entry cannot be read ({error})", "R521"))
        if faults:
            raise TamperedError(faults)
        return records

    def tokens(self) -> set[str]:
        """The staging folders that belong to a recorded release."""
        with self._reading() as connection:
            return set(connection.execute(sa.select(_releases.c.token)).scalars())

    def append(self, record: Record, on: Head, identity: Identity) -> None:
        """Enter a record if the head is still `on`. The policy becomes fixed with the first one."""
        with self._in_plain_words(), self._engine.connect() as connection:
            connection = connection.execution_options(reveil_write=True)
            transaction = connection.begin()  # closing the connection rolls back what is not committed
            head = _head(connection)
            if head != on:
                raise ConflictError(_moved_on(on, head))
            if on == GENESIS:
                _put(connection, series=identity.series, policy=identity.policy or "")
            connection.execute(sa.insert(_releases).values(**_row(record)))
            failure = _commit(transaction)
        if failure is not None:
            self._after_failed_commit(record, failure)

    def _after_failed_commit(self, record: Record, failure: Exception) -> None:
        """Ask a new connection. 'Not there' is certain, because the failed one is closed and rolled back.

        'There' is not: the error may have been about making it last. Then the next command decides.
        """
        try:
            there = record.token in self.tokens()
        except ReveilError:
            there = True
        if not there:
            raise self._explained(failure) from failure
        raise CommitUnknownError(
            Fault(
                "R508",
                f"ledger '{self.file}'",
                f"the disk reported an error while release {record.number} was being recorded: {failure}",
                "look after the disk, then run `reveil history`: it finishes the release or clears it away",
            )
        ) from failure

    def mark_revealed(self, number: int) -> None:
        with self._writing() as connection:
            connection.execute(sa.update(_releases).where(_releases.c.number == number).values(revealed=True))


def _begin(connection: sa.Connection) -> None:
    # IMMEDIATE takes the write lock before the head is read: what the check saw is still true at the commit.
    write = connection.get_execution_options().get("reveil_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _commit(transaction: sa.RootTransaction) -> Exception | None:
    try:
        transaction.commit()
    except Exception as error:  # whatever it is: from here on it matters only whether the record is there
        return error
    return None


def _head(connection: sa.Connection) -> Head:
    newest = sa.select(_releases.c.number, _releases.c.id).order_by(_releases.c.number.desc()).limit(1)
    row = connection.execute(newest).first()
    return Head(row.number, row.id) if row else GENESIS


def _put(connection: sa.Connection, **values: str) -> None:
    for name, value in values.items():
        connection.execute(sa.delete(_meta).where(_meta.c.name == name))
        connection.execute(sa.insert(_meta).values(name=name, value=value))


def _row(record: Record) -> dict[str, Any]:
    return {
        "number": record.number,
        "id": record.id,
        "previous": record.previous,
        "made": record.made,
        "facts": canonical(record.facts),
        "manifest": canonical(record.manifest),
        "token": record.token,
        "revealed": record.revealed,
    }


def _record(row: sa.Row[Any]) -> Record:
    facts, manifest = json.loads(row.facts), json.loads(row.manifest)
    if not isinstance(facts, dict) or not isinstance(manifest, dict):
        raise ValueError("facts and manifest must be JSON objects")
    files: Manifest = {
        path: {"sha256": str(entry["sha256"]), "size": int(entry["size"])} for path, entry in manifest.items()
    }
    return Record(row.number, row.id, row.previous, row.made, facts, files, row.revealed, row.token)


def _moved_on(on: Head, head: Head) -> Fault:
    message = f"this release was planned on {on}, but the newest is now {head}. Nothing was recorded"
    return Fault("R507", "series", message, "publish again: it plans on the newest release")


def _damaged(where: str, message: str, code: str = "R504") -> Fault:
    remedy = "restore ledger.sqlite from the newest backup; do not start over, or past releases are forgotten"
    return Fault(code, where, message, remedy)
