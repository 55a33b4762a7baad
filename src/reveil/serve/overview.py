"""The overview of all series, for places with thousands of them: what the home page shows is read once and kept.

Of each series a line is kept, with the state of the files it was read from; it is read again when one of them has
changed. A page looks only at the files of the series that it shows; a thread looks at all the others now and then, for
what the command line did. A ledger in PostgreSQL has no file that changes, and is asked each time.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reveil.serve.place import Place
from reveil.serve.state import SeriesState, in_full, series_state

EVERY = 15.0  # seconds between two looks at everything
TIDY_EVERY = 3600.0  # seconds between two looks for tables that were sent long ago
SETTLED = 0.1  # seconds after which a file's time tells whether it was changed again
FILES = ("reveil.toml", ".reveil/ledger.sqlite", ".reveil/catalog")
ASKED = ""  # the state of files that say nothing
CREATE = """CREATE TABLE IF NOT EXISTS series (
    key TEXT PRIMARY KEY, state TEXT NOT NULL, line TEXT NOT NULL, whole TEXT NOT NULL, open INTEGER)"""


@dataclass(frozen=True)
class Outline:
    """One series in the overview."""

    key: str
    name: str
    promise: str
    faults: Sequence[dict[str, Any]]
    releases: int
    newest: str  # when the newest was made
    rows: int | None
    open: dict[str, Any] | None  # the proposal that waits: token, number, made, by, state
    ended: bool


def line_of(found: SeriesState) -> Outline:
    """What the overview says of a series."""
    records = () if found.now is None else found.now.records
    last = records[-1] if records else None
    waiting = None
    if found.open is not None:
        one, state = found.open
        waiting = {"token": one.token, "number": one.number, "made": one.made, "by": one.by, "state": str(state)}
    faults = [fault.to_dict() for fault in found.faults]
    rows = None if last is None else last.facts.get("counts", {}).get("published rows")
    told = (len(records), "" if last is None else last.made, rows, waiting, found.ended)
    return Outline(found.key, found.name, found.promise, faults, *told)


class Overview:
    """The lines of one place."""

    def __init__(self, place: Place) -> None:
        self._place, self._path = place, place.state / "overview.sqlite"
        self._ended = threading.Event()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=10)) as connection, connection:
            connection.execute(CREATE)
            yield connection

    def keys(self) -> list[str]:
        """All series, in order. Those that are known are not looked at: a page looks at those that it shows."""
        with self._open() as connection:
            known = {key for (key,) in connection.execute("SELECT key FROM series")}
        return self._place.series(known)

    def lines(self, keys: Sequence[str]) -> list[Outline]:
        """Lines of these series, as they are now."""
        return [Outline(**json.loads(line)) for line in self._kept("line", keys)]

    def in_full(self, keys: Sequence[str]) -> list[dict[str, Any]]:
        """All that programs are told of these series, as it is now."""
        return [json.loads(whole) for whole in self._kept("whole", keys)]

    def _kept(self, what: str, keys: Sequence[str]) -> list[str]:
        with self._open() as connection:
            marks = ", ".join("?" * len(keys))
            rows = connection.execute(f"SELECT key, state, {what} FROM series WHERE key IN ({marks})", tuple(keys))
            known = {key: (state, said) for key, state, said in rows}
        return [self._fresh(what, key, *known.get(key, (ASKED, ""))) for key in keys if self._place.there(key)]

    def waiting(self) -> list[Outline]:
        """Series in which a proposal waits."""
        with self._open() as connection:
            keys = [key for (key,) in connection.execute("SELECT key FROM series WHERE open ORDER BY key")]
        return [line for line in self.lines(keys) if line.open]

    def _fresh(self, what: str, key: str, state: str, said: str) -> str:
        now = state_of_files(self._place.folder / key)
        return said if said and state == now != ASKED else self.refresh(key)[what]

    def refresh(self, key: str) -> dict[str, str]:
        """Read a series again, and keep what it says."""
        state = state_of_files(self._place.folder / key)  # before: what is changed meanwhile is read again
        found = series_state(self._place, key)
        line = line_of(found)
        said = {"line": json.dumps(asdict(line)), "whole": json.dumps(in_full(found))}
        row = (key, state, *said.values(), int(line.open is not None))
        with self._open() as connection:
            connection.execute("INSERT OR REPLACE INTO series VALUES (?, ?, ?, ?, ?)", row)
        return said

    def sweep(self) -> None:
        """Look at every series."""
        keys = self._place.series()
        for first in range(0, len(keys), 500):
            self.lines(keys[first : first + 500])
        with self._open() as connection:
            gone = {key for (key,) in connection.execute("SELECT key FROM series")} - set(keys)
            connection.executemany("DELETE FROM series WHERE key = ?", [(key,) for key in gone])

    def begin(self) -> None:
        threading.Thread(target=self._watch, daemon=True).start()

    def end(self) -> None:
        self._ended.set()

    def _watch(self) -> None:
        tidied = time.monotonic()
        while not self._ended.is_set():
            with suppress(OSError, sqlite3.Error):  # the place is going, or busy: the next look will tell
                self.sweep()
                if time.monotonic() - tidied > TIDY_EVERY:
                    self._place.forget_old()
                    tidied = time.monotonic()
            self._ended.wait(EVERY)


def state_of_files(folder: Path) -> str:
    """What the files of a series say without being opened; nothing where that does not tell whether they changed."""
    parts, base, newest = [], str(folder), 0.0
    for name in FILES:
        try:
            found = os.stat(f"{base}/{name}")  # noqa: PTH116 tens of thousands of them for a page
        except OSError:
            continue
        if name.endswith("catalog"):
            return ASKED
        newest = max(newest, found.st_mtime)
        parts.append(f"{name}:{found.st_mtime_ns}:{found.st_size}:{found.st_ino}")
    return ASKED if time.time() - newest < SETTLED else " ".join(parts)
