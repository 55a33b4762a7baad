"""What the console keeps between requests: sessions, tokens, and answers that are given once. Of secrets only hashes.

A session survives a restart of the console. A token is for programs: it acts for its owner, within its scopes and as
long as the owner may, ends by itself, and never signs. Whoever sends the same request twice under one key gets the
first one's answer.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reveil.base.errors import ConflictError, Fault, InputError
from reveil.serve.security import IDLE_SECONDS, LONGEST_SECONDS, Session, hashed

SCOPES = ("see", "data", "steward", "audit", "log")  # of tokens: nobody signs or administers by one
LONGEST_DAYS = 365
ANSWERS_SECONDS = 24 * 3600
PREFIX = "reveil_"  # so that scanners for secrets find them
CREATE = """
CREATE TABLE IF NOT EXISTS sessions (
    secret TEXT PRIMARY KEY, who TEXT NOT NULL, form_token TEXT NOT NULL, begun REAL NOT NULL, seen REAL NOT NULL);
CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY, secret TEXT NOT NULL UNIQUE, who TEXT NOT NULL, name TEXT NOT NULL, scopes TEXT NOT NULL,
    made REAL NOT NULL, until REAL NOT NULL, used REAL);
CREATE TABLE IF NOT EXISTS answers (
    who TEXT NOT NULL, key TEXT NOT NULL, request TEXT NOT NULL, at REAL NOT NULL,
    status INTEGER, headers TEXT, body BLOB, PRIMARY KEY (who, key));
"""


@dataclass(frozen=True)
class Given:
    """What was answered to a request."""

    status: int
    headers: str  # JSON
    body: bytes


@dataclass(frozen=True)
class Kept:
    """A database of the console, for nobody else to read."""

    path: Path

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        fresh = not self.path.exists()
        with closing(sqlite3.connect(self.path, timeout=10)) as connection, connection:
            if fresh:
                self.path.chmod(0o600)
                connection.executescript(CREATE)
            yield connection

    # --- sessions ------------------------------------------------------------------------------------------

    def begin(self, secret: str, session: Session) -> None:
        row = (hashed(secret), session.who, session.form_token, session.begun, session.seen)
        over = (session.begun - IDLE_SECONDS, session.begun - LONGEST_SECONDS)
        with self._open() as connection:
            connection.execute("DELETE FROM sessions WHERE seen < ? OR begun < ?", over)
            connection.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?)", row)

    def session(self, secret: str) -> Session | None:
        with self._open() as connection:
            wanted = "SELECT who, form_token, begun, seen FROM sessions WHERE secret = ?"
            row = connection.execute(wanted, (hashed(secret),)).fetchone()
        return None if row is None else Session(*row)

    def touch(self, secret: str, seen: float) -> None:
        with self._open() as connection:
            connection.execute("UPDATE sessions SET seen = ? WHERE secret = ?", (seen, hashed(secret)))

    def leave(self, secret: str) -> None:
        with self._open() as connection:
            connection.execute("DELETE FROM sessions WHERE secret = ?", (hashed(secret),))

    def shut_out(self, who: str) -> None:
        """End all sessions and tokens of somebody."""
        with self._open() as connection:
            connection.execute("DELETE FROM sessions WHERE who = ?", (who,))
            connection.execute("DELETE FROM tokens WHERE who = ?", (who,))

    # --- tokens --------------------------------------------------------------------------------------------

    def make_token(self, who: str, name: str, scopes: list[str], days: int) -> tuple[str, dict[str, Any]]:
        """A new token, and what is known of it; the secret is shown once."""
        wrong = sorted(set(scopes) - set(SCOPES))
        if wrong or not scopes or not 1 <= days <= LONGEST_DAYS:
            message = f"has scopes {', '.join(wrong)} that no token has" if wrong else "needs a scope and 1 to 365 days"
            raise InputError(Fault("R857", "token", message, f"use scopes of: {', '.join(SCOPES)}"))
        secret, now = PREFIX + secrets.token_urlsafe(32), time.time()
        said, until = " ".join(sorted(set(scopes))), now + days * 86_400
        row = (secrets.token_hex(8), hashed(secret), who, name[:80], said, now, until)
        with self._open() as connection:
            connection.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, NULL)", row)
        return secret, self.tokens(who, row[0])[0]

    def tokens(self, who: str, wanted: str = "") -> list[dict[str, Any]]:
        """Tokens of somebody, the newest first."""
        columns = ("id", "name", "scopes", "made", "until", "used")
        query = f"SELECT {', '.join(columns)} FROM tokens WHERE who = ? AND ? IN ('', id) ORDER BY made DESC, id"
        with self._open() as connection:
            rows = connection.execute(query, (who, wanted)).fetchall()
        listed = [dict(zip(columns, row, strict=True)) for row in rows]
        return [{**one, "scopes": str(one["scopes"]).split()} for one in listed]

    def owner(self, secret: str) -> tuple[str, frozenset[str]] | None:
        """Whose token this is, and its scopes; nobody's where it has ended."""
        now = time.time()
        with self._open() as connection:
            wanted = "SELECT id, who, scopes FROM tokens WHERE secret = ? AND until > ?"
            row = connection.execute(wanted, (hashed(secret), now)).fetchone()
            if row is not None:
                connection.execute("UPDATE tokens SET used = ? WHERE id = ?", (now, row[0]))
        return None if row is None else (str(row[1]), frozenset(str(row[2]).split()))

    def end_token(self, who: str, wanted: str) -> bool:
        with self._open() as connection:
            return connection.execute("DELETE FROM tokens WHERE who = ? AND id = ?", (who, wanted)).rowcount > 0

    # --- answers that are given once -----------------------------------------------------------------------

    def ask(self, who: str, key: str, request: str) -> Given | None:
        """The answer that was given to this request before; else the request is taken down, and nobody else does it."""
        now = time.time()
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM answers WHERE at < ?", (now - ANSWERS_SECONDS,))
            wanted = "SELECT request, status, headers, body FROM answers WHERE who = ? AND key = ?"
            row = connection.execute(wanted, (who, key)).fetchone()
            if row is None:
                begun = "INSERT INTO answers (who, key, request, at) VALUES (?, ?, ?, ?)"
                connection.execute(begun, (who, key, request, now))
                return None
        if row[0] != request:
            message = "was used for another request, or with other permits, within the last 24 hours"
            raise InputError(Fault("R858", "Idempotency-Key", message, "use a new key for each request"))
        if row[1] is None:
            message = "is of a request that is being answered, or was cut off"
            remedy = "look whether it was done, then use a new key"
            raise ConflictError(Fault("R859", "Idempotency-Key", message, remedy))
        return Given(int(row[1]), str(row[2]), bytes(row[3]))

    def answer(self, who: str, key: str, answer: Given) -> None:
        """Keep an answer."""
        with self._open() as connection:
            given = (answer.status, answer.headers, answer.body, who, key)
            connection.execute("UPDATE answers SET status = ?, headers = ?, body = ? WHERE who = ? AND key = ?", given)

    def free(self, who: str, key: str) -> None:
        """The request was refused, and can be sent again."""
        with self._open() as connection:
            connection.execute("DELETE FROM answers WHERE who = ? AND key = ?", (who, key))
