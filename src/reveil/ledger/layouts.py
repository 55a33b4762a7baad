"""The tables of a catalog, in the layouts that homes have: what they are called, and how an old one becomes new.

Layout 1 had one series and no key for it: its entries were in `meta`, and a release was revealed or not. Layout 2 had a
key, and no releases that were discarded, so that their numbers were their places in the chain. Both are read through
temporary views that look like the newest, and rewritten by the first command that writes, in the transaction of that
write: a stop in the middle leaves the old layout. Layout 3 had no proposals. Layout 4 has the same tables as 5, and
knew no event that replaces files of the memory.
"""

from __future__ import annotations

import secrets
import sqlite3

NEWEST = 5

# `meta` says the layout and nothing else, under the name that layout 1 had for it: an older Reveil then says that it is
# too old. `previous` is unique, so that the database itself forbids two releases after the same one; `number` is,
# among releases that were not discarded.
_RELEASES_TABLE = """CREATE TABLE releases (
        series TEXT NOT NULL, place INTEGER NOT NULL, number INTEGER NOT NULL, id TEXT NOT NULL, previous TEXT NOT NULL,
        made TEXT NOT NULL, facts TEXT NOT NULL, manifest TEXT NOT NULL, token TEXT NOT NULL UNIQUE,
        state TEXT NOT NULL, PRIMARY KEY (series, place), UNIQUE (series, id), UNIQUE (series, previous)
    )"""
_NUMBERS = "CREATE UNIQUE INDEX numbers ON releases (series, number) WHERE state != 'discarded'"
_EVENTS = """CREATE TABLE events (
        series TEXT NOT NULL, place INTEGER NOT NULL, id TEXT NOT NULL, previous TEXT NOT NULL, at TEXT NOT NULL,
        actor TEXT NOT NULL, action TEXT NOT NULL, release TEXT NOT NULL, details TEXT NOT NULL,
        PRIMARY KEY (series, place), UNIQUE (series, id), UNIQUE (series, previous)
    )"""
_PROPOSALS = """CREATE TABLE proposals (
        series TEXT NOT NULL, token TEXT NOT NULL UNIQUE, on_number INTEGER NOT NULL, on_id TEXT NOT NULL,
        made TEXT NOT NULL, actor TEXT NOT NULL, facts TEXT NOT NULL, manifest TEXT NOT NULL,
        PRIMARY KEY (series, token)
    )"""
CREATE = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE series (
        key TEXT PRIMARY KEY, name TEXT NOT NULL, policy TEXT, fingerprint TEXT NOT NULL
    )""",
    _RELEASES_TABLE,
    _NUMBERS,
    _EVENTS,
    _PROPOSALS,
)
_COLUMNS = "series, place, number, id, previous, made, facts, manifest, token, state"
_NO_EVENTS = """SELECT '' AS series, 0 AS place, '' AS id, '' AS previous, '' AS at, '' AS actor, '' AS action,
    '' AS release, '' AS details WHERE 0"""
_NO_PROPOSALS = """SELECT '' AS series, '' AS token, 0 AS on_number, '' AS on_id, '' AS made, '' AS actor,
    '' AS facts, '' AS manifest WHERE 0"""
_ENTRIES = """SELECT {key} AS key,
    (SELECT value FROM meta WHERE name = 'series') AS name,
    (SELECT value FROM meta WHERE name = 'policy') AS policy,
    (SELECT value FROM meta WHERE name = 'fingerprint') AS fingerprint
    WHERE EXISTS (SELECT 1 FROM meta)"""
_RELEASES_1 = """SELECT {key} AS series, number AS place, number, id, previous, made, facts, manifest, token,
    CASE revealed WHEN 1 THEN 'revealed' ELSE 'recorded' END AS state FROM {table}"""
_RELEASES_2 = """SELECT series, number AS place, number, id, previous, made, facts, manifest, token, state
    FROM {table}"""


def layout_of(connection: sqlite3.Connection) -> str | None:
    """What the database says its layout is: None where there are no tables, no text where they are others' tables."""
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not names:
        return None
    if not {"meta", "releases"} <= names:
        return ""
    entry = connection.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
    return str(entry[0]) if entry else "none"


def new_key() -> str:
    """The key of a series in its catalog. It is random, says nothing, and is no part of the chain."""
    return secrets.token_hex(8)


def create(connection: sqlite3.Connection) -> None:
    for statement in CREATE:
        connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES ('schema', ?)", (str(NEWEST),))


def show_as_newest(connection: sqlite3.Connection, layout: int) -> None:
    """Let a connection read an old layout as if it were the newest. Nothing is written: temporary names come first."""
    connection.execute("PRAGMA temp_store=MEMORY")
    if layout == 1:
        connection.execute(f"CREATE TEMP VIEW series AS {_ENTRIES.format(key=repr(''))}")
    if layout < 4:
        connection.execute(f"CREATE TEMP VIEW proposals AS {_NO_PROPOSALS}")
    if layout < 3:
        releases = _RELEASES_1 if layout == 1 else _RELEASES_2
        connection.execute(f"CREATE TEMP VIEW releases AS {releases.format(key=repr(''), table='main.releases')}")
        connection.execute(f"CREATE TEMP VIEW events AS {_NO_EVENTS}")


def migrate(connection: sqlite3.Connection, layout: int) -> None:
    """Rewrite an old layout as the newest, inside the transaction that is open."""
    if layout >= 3:
        if layout == 3:
            connection.execute(_PROPOSALS)
        connection.execute("UPDATE meta SET value = ? WHERE name = 'schema'", (str(NEWEST),))
        return
    key = repr(new_key())
    connection.execute("ALTER TABLE releases RENAME TO old_releases")
    series = _ENTRIES.format(key=key) if layout == 1 else "SELECT key, name, policy, fingerprint FROM series"
    entries = connection.execute(series).fetchall()
    connection.execute("DROP TABLE meta")
    if layout > 1:
        connection.execute("DROP TABLE series")
    create(connection)
    connection.executemany("INSERT INTO series (key, name, policy, fingerprint) VALUES (?, ?, ?, ?)", entries)
    releases = (_RELEASES_1 if layout == 1 else _RELEASES_2).format(key=key, table="old_releases")
    connection.execute(f"INSERT INTO releases ({_COLUMNS}) {releases}")
    connection.execute("DROP TABLE old_releases")
