"""From the file in a home to a database that many share: the ledger of a series moves, or begins there.

The rows are copied in one transaction of the database, and read back. Then one rename makes the home say where its
ledger is, and the old file is marked, so that nobody who still has it open records in it. A stop anywhere leaves the
ledger in one of the two places: the copy that nobody refers to is never looked at.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from reveil.base.addresses import HIDDEN, masked
from reveil.base.errors import Fault, InputError, TamperedError
from reveil.ledger import store
from reveil.ledger.layouts import new_key
from reveil.ledger.opening import catalog_of, usable
from reveil.ledger.postgres import PostgresCatalog
from reveil.ledger.rows import damaged
from reveil.ledger.sqlite import SqliteCatalog

TABLES = ("series", "releases", "events", "proposals")


def move(home: Path, address: str) -> int:
    """Keep the ledger of a home in PostgreSQL from now on; returns how many releases moved with it."""
    home = home.absolute()
    _refuse(home, address)
    key = new_key()
    target = PostgresCatalog(address, key)
    with usable(home):
        store.lay_out(home)
        if not store.catalog_file(home).is_file():
            with target._writing() as connection:  # the tables are there, or it is said why they cannot be
                connection.execute("COMMIT")
            _point(home, address, key)
            return 0
        source = SqliteCatalog(store.catalog_file(home))
        with source._writing() as old:
            entry = source._entry(old)
            if entry is not None:
                _copy(old, target, entry[0], key)
                if source._series_in(old, *entry) != target.snapshot():
                    raise TamperedError(damaged(target._where, "what was copied is not what is there"))
            _point(home, address, key)
            old.execute("UPDATE meta SET value = 'moved' WHERE name = 'schema'")
            old.execute("COMMIT")
    found = target.snapshot()
    return 0 if found is None else len(found.records)


def refuse_other(home: Path, address: str | None) -> None:
    """A home whose ledger is kept somewhere else than in this database is not used as if it were there."""
    if address is None:
        return
    _refuse_address(address)
    if store.pointer_file(home).is_file():
        there = str(getattr(catalog_of(home), "address", ""))
        if there != address:
            message, remedy = f"has its ledger in {masked(there)}", "leave --catalog out: the home knows where it is"
            raise InputError(Fault("R514", f"home '{home}'", message, remedy))
    elif store.catalog_file(home).is_file():
        message = "has its ledger in its own file, with what it recorded"
        remedy = f"move it there first (reveil catalog {masked(address)}), or leave --catalog out"
        raise InputError(Fault("R514", f"home '{home}'", message, remedy))


def _refuse(home: Path, address: str) -> None:
    _refuse_address(address)
    if store.pointer_file(home).exists():
        where = masked(str(getattr(catalog_of(home), "address", "")))
        raise InputError(Fault("R514", f"home '{home}'", f"has its ledger in {where} already", "leave it there"))


def _refuse_address(address: str) -> None:
    if not address.startswith(("postgresql://", "postgres://")):
        message = "is no address of a PostgreSQL database"
        raise InputError(Fault("R514", f"'{masked(address)}'", message, "write postgresql://HOST/DATABASE"))
    if HIDDEN in masked(address):
        message = "holds a password, and would be kept in a file"
        raise InputError(Fault("R514", f"'{masked(address)}'", message, "leave it out: PGPASSWORD or ~/.pgpass has it"))


def _copy(old: object, target: PostgresCatalog, key: str, new: str) -> None:
    with target._writing() as connection:
        for table in TABLES:
            column = "key" if table == "series" else "series"
            rows = old.execute(f"SELECT * FROM {table} WHERE {column} = ?", (key,)).fetchall()  # type: ignore[attr-defined]
            for row in rows:
                marks = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO {table} VALUES ({marks})", (new, *row[1:]))
        connection.execute("COMMIT")


def _point(home: Path, address: str, key: str) -> None:
    """The home says where its ledger is: one rename."""
    file = store.pointer_file(home)
    beside = file.with_name("catalog.new")
    with beside.open("w", encoding="utf-8") as out:
        out.write(json.dumps({"catalog": address, "series": key}) + "\n")
        out.flush()
        os.fsync(out.fileno())
    beside.chmod(0o600)
    beside.replace(file)
    store.sync(home)
