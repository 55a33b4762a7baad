"""The catalog in PostgreSQL: many series of many people in one database, in a schema of its own.

The statements are those of SQLite, on the same tables. What differs is how a transaction begins: every write takes one
lock of the catalog before the head is read, which ends with the transaction, however that ends. `synchronous_commit` is
on, whatever the server's default is: what is recorded must last before the release is revealed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from reveil.base.addresses import masked
from reveil.base.errors import Fault, InputError, TamperedError
from reveil.ledger.layouts import CREATE, NEWEST, migrate
from reveil.ledger.rows import damaged
from reveil.ledger.sqlite import WAIT_SECONDS, SqliteCatalog

SCHEMA = "reveil"
FIRST = 4  # the layout that the first catalogs in PostgreSQL had
LOCK = 7_230_417  # of writers; any number that nobody else uses in this database


class PostgresCatalog(SqliteCatalog):
    """One series of a PostgreSQL database, by its key."""

    def __init__(self, address: str, series: str | None = None) -> None:
        super().__init__(Path(), series)
        self.address = address

    @property
    def _where(self) -> str:
        return f"ledger '{masked(self.address)}'"

    def _open(self) -> _Connection:
        import psycopg

        options = f"-c search_path={SCHEMA} -c synchronous_commit=on -c lock_timeout={WAIT_SECONDS}s"
        factory = psycopg.ClientCursor
        return _Connection(psycopg.connect(self.address, autocommit=True, options=options, cursor_factory=factory))

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        with self._in_plain_words(), closing(self._open()) as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield None if self._layout(connection) is None else connection

    @contextmanager
    def _writing(self) -> Iterator[Any]:
        with self._in_plain_words(), closing(self._open()) as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT pg_advisory_xact_lock(?)", (LOCK,))
            layout = self._layout(connection)
            if layout is None:
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
                for statement in CREATE:
                    connection.execute(statement)
                connection.execute("INSERT INTO meta VALUES ('schema', ?)", (str(NEWEST),))
            elif layout < NEWEST:  # the same tables: the first of these catalogs had layout 4
                migrate(connection, layout)  # type: ignore[arg-type]
            yield connection

    def _layout(self, connection: Any) -> int | None:
        if connection.execute(f"SELECT to_regclass('{SCHEMA}.meta') IS NULL").fetchone()[0]:
            return None
        row = connection.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
        said = row[0] if row else ""
        if said.isdigit() and int(said) > NEWEST:
            message = f"it was written by a newer Reveil (layout {said}; this one knows up to {NEWEST})"
            raise InputError(Fault("R505", self._where, message, "upgrade Reveil on this machine"))
        if not said.isdigit() or int(said) < FIRST:
            raise TamperedError(damaged(self._where, "entries are missing or wrong: schema"))
        return int(said)

    @contextmanager
    def _in_plain_words(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> Exception:
        import psycopg

        said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if isinstance(error, psycopg.errors.LockNotAvailable):
            message = f"another process has been writing to it for more than {WAIT_SECONDS} seconds"
            return InputError(Fault("R512", self._where, message, "wait until that process is done and try again"))
        if isinstance(error, psycopg.OperationalError):
            message = f"the database does not answer: {said}"
            return InputError(Fault("R503", self._where, message, "look after the server, its address and your rights"))
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            message = f"you may not do this there: {said}"
            return InputError(Fault("R503", self._where, message, "ask for the rights to use the schema reveil"))
        if isinstance(error, psycopg.Error):
            return TamperedError(damaged(self._where, f"it is damaged or not a ledger: {said}"))
        return error


class _Connection:
    """Statements as SQLite has them, for PostgreSQL."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        plain = tuple(str(value) if isinstance(value, str) else value for value in values)  # states are texts here
        return self._connection.execute(statement.replace("?", "%s"), plain or None)

    def close(self) -> None:
        self._connection.close()
