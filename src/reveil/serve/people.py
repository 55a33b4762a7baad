"""Accounts of a team: who there is, what they may in which series, and their passwords as argon2id hashes.

| role | may, in the series it is granted for (or in all) |
|---|---|
| steward | upload, describe, propose, withdraw, reveal, hand over; see data; audit |
| officer | sign and return; see data; audit |
| auditor | audit; read the log |
| reader | certificate, external report, verify |
| admin | people and their roles, four eyes, the log; no data |
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from reveil.base.errors import Fault, InputError
from reveil.serve.place import now
from reveil.serve.visitors import ALL

ROLES: Mapping[str, frozenset[str]] = {
    "steward": frozenset({"see", "data", "steward", "audit"}),
    "officer": frozenset({"see", "data", "sign", "audit"}),
    "auditor": frozenset({"see", "audit", "log"}),
    "reader": frozenset({"see"}),
    "admin": frozenset({"admin", "log"}),
}
SHORTEST = 12  # characters of a password
TRIES, WITHIN = 5, 60.0  # wrong passwords of one name or from one address, in so many seconds
CREATE = """
CREATE TABLE IF NOT EXISTS people (name TEXT PRIMARY KEY, secret TEXT NOT NULL DEFAULT '', made TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS grants (name TEXT NOT NULL, series TEXT NOT NULL, role TEXT NOT NULL,
    PRIMARY KEY (name, series, role));
"""


@dataclass
class Accounts:
    """The accounts of one place."""

    path: Path
    _hasher: PasswordHasher = field(default_factory=PasswordHasher)
    _wrong: dict[str, list[float]] = field(default_factory=dict)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=10)) as connection, connection:
            connection.executescript(CREATE)
            yield connection
        self.path.chmod(0o600)

    def names(self) -> list[str]:
        """Everybody who has an account."""
        with self._open() as connection:
            return [name for (name,) in connection.execute("SELECT name FROM people ORDER BY name")]

    def grants(self, name: str) -> list[tuple[str, str]]:
        """Series (or all of them) and role, of one person."""
        with self._open() as connection:
            wanted = "SELECT series, role FROM grants WHERE name = ? ORDER BY series, role"
            return [(series, role) for series, role in connection.execute(wanted, (name,))]

    def permits(self, name: str) -> dict[str, frozenset[str]]:
        """What somebody may, by series."""
        found: dict[str, frozenset[str]] = {}
        for series, role in self.grants(name):
            found[series] = found.get(series, frozenset()) | ROLES.get(role, frozenset())
        return found

    def add(self, name: str) -> None:
        """A new account, without a password yet."""
        if not name or len(name) > 60 or not name.replace("-", "").replace(".", "").replace("@", "").isalnum():
            message = f"{name[:60]!r} is no name: letters, digits, - . @"
            raise InputError(Fault("R851", "name", message, "choose another one"))
        with self._open() as connection:
            known = connection.execute("SELECT 1 FROM people WHERE name = ?", (name,)).fetchone()
            if known:
                raise InputError(Fault("R851", "name", f"{name!r} is taken", "choose another one"))
            connection.execute("INSERT INTO people (name, made) VALUES (?, ?)", (name, now()))

    def grant(self, name: str, series: str, role: str, by: str) -> None:
        """Give somebody a role. Nobody grants anything to themselves."""
        if name == by:
            message = "nobody grants a role to themselves"
            raise InputError(Fault("R845", f"'{by}'", message, "ask another administrator"))
        if role not in ROLES or name not in self.names():
            raise InputError(Fault("R851", "role", f"{role!r} for {name!r} cannot be given", "choose from the list"))
        with self._open() as connection:
            connection.execute("INSERT OR IGNORE INTO grants VALUES (?, ?, ?)", (name, series, role))

    def revoke(self, name: str, series: str, role: str, by: str) -> None:
        """Take a role away; somebody must stay who can give roles."""
        with self._open() as connection:
            gone = (name, series, role)
            connection.execute("DELETE FROM grants WHERE name = ? AND series = ? AND role = ?", gone)
            if not connection.execute("SELECT 1 FROM grants WHERE role = 'admin'").fetchone():
                raise InputError(Fault("R851", f"'{name}'", "is the last administrator", "name another one first"))

    def found(self, name: str, password: str) -> None:
        """The first administrator of a place that has nobody yet."""
        if self.names():
            raise InputError(Fault("R851", "first administrator", "there is one already", "ask them for an account"))
        self.add(name)
        self.set_password(name, password)
        with self._open() as connection:
            connection.execute("INSERT INTO grants VALUES (?, ?, 'admin')", (name, ALL))

    def set_password(self, name: str, password: str) -> None:
        """Keep the argon2id hash of a new password."""
        if len(password) < SHORTEST:
            message = f"has fewer than {SHORTEST} characters"
            raise InputError(Fault("R852", "password", message, "use a longer one, such as four words"))
        with self._open() as connection:
            hashed = self._hasher.hash(password)
            connection.execute("UPDATE people SET secret = ? WHERE name = ?", (hashed, name))

    def check(self, name: str, password: str, address: str) -> bool:
        """Whether this is the password; refused where too many wrong ones came before."""
        keys, late = (f"name {name}", f"address {address}"), time.monotonic() - WITHIN
        for key in keys:
            self._wrong[key] = [at for at in self._wrong.get(key, []) if at > late]
            if len(self._wrong[key]) >= TRIES:
                message = f"{TRIES} wrong passwords came within a minute"
                raise InputError(Fault("R853", "password", message, "wait a minute"))
        with self._open() as connection:
            row = connection.execute("SELECT secret FROM people WHERE name = ?", (name,)).fetchone()
        try:
            return self._hasher.verify(row[0] if row and row[0] else self._nobody, password)
        except (Argon2Error, InvalidHashError):
            for key in keys:
                self._wrong[key].append(time.monotonic())
            return False

    @property
    def _nobody(self) -> str:
        """A hash that no password fits: an unknown name takes as long as a known one."""
        return "$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHRzb21lc2FsdA$" + "A" * 43

    def eligible(self, series: str) -> bool:
        """Whether four eyes can be kept: somebody who may sign, and somebody else who proposes."""
        of = {name: self.permits(name) for name in self.names()}
        may = {name: permits.get(ALL, frozenset()) | permits.get(series, frozenset()) for name, permits in of.items()}
        signers = {name for name, permits in may.items() if "sign" in permits}
        stewards = {name for name, permits in may.items() if "steward" in permits}
        return any(signer != steward for signer in signers for steward in stewards)
