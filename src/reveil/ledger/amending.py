"""How the memory of a series is amended: files written beside the old ones, one event, and then into their places."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reveil.base.errors import InputError, ReveilError
from reveil.ledger import store
from reveil.ledger.amendments import ASK, DESTROYED, END, FINGERPRINT, KEY, LOST, RETRACT, amendment_fault, key_of
from reveil.ledger.events import actor, next_event
from reveil.ledger.proposals import four_eyes
from reveil.ledger.record import FILES, Event, Manifest, Record, Snapshot, release_name

if TYPE_CHECKING:
    import polars as pl

    from reveil.ledger.ledger import Ledger
    from reveil.ledger.protocols import Bulk, Catalog

Tables = Mapping[int, Mapping[str, "pl.DataFrame"]]  # by release, the tables of its memory that take another's place
TOKEN = "token"


class Amending:
    """Changes of the memory of one series."""

    def __init__(self, ledger: Ledger, catalog: Catalog, bulk: Bulk) -> None:
        self._ledger, self._catalog, self._bulk = ledger, catalog, bulk

    def amend(
        self,
        action: str,
        details: Mapping[str, Any],
        tables: Tables,
        digest: str,
        key: bytes | None = None,
        by: str = "",
    ) -> Event:
        """Put these tables in place of those that releases keep, and note it; under four eyes, note who asked.

        `digest` is the same for two who ask for the same. A new `key` takes the old one's place with the tables.
        """
        series = self._ledger.checked()
        about = {**details, "digest": digest, "head": series.head.id}
        if asked := self._ask(series, action, digest, by):
            return asked
        staged = self._ledger.stage()
        try:
            numbers = {record.number: record for record in series.records}
            for number, frames in tables.items():
                for name, frame in frames.items():
                    self._bulk.put(staged, staged_name(numbers[number], _path(name)), _parquet(frame))
            files = _files(self._bulk.seal(staged), numbers, tables)
            if key is not None:
                store.lay_key_beside(staged, key)
                about[FINGERPRINT] = store.fingerprint(key)
        except OSError as error:
            self._ledger.discard(staged)
            raise store.refused_by_disk(error) from error
        return self._enter(series, action, {**about, FILES: files}, staged, by)

    def end(self, what: Mapping[str, str], digest: str, by: str = "") -> Event:
        """Nothing is published after this. `what` becomes of the key and of the memory: kept or destroyed."""
        missing = store.key_fault(self._ledger.home, self._ledger.fingerprint() or "") is not None
        series = self._ledger.checked(keyless=missing)
        if asked := self._ask(series, END, digest, by):
            return asked
        told = {**what, KEY: LOST} if missing else dict(what)
        gone = {
            record.id: {path: None for path in record.manifest if path.startswith("memory/")}
            for record in series.records
            if what["memory"] == DESTROYED
        }
        about = {**told, "digest": digest, "head": series.head.id, FILES: gone}
        return self._enter(series, END, about, self._ledger.stage(), by)

    def retract(self, number: int, details: Mapping[str, Any], digest: str, by: str = "") -> Event:
        """Note that those who have a release were told not to use it. It stays in the memory: others have it."""
        if asked := self._ask(self._ledger.checked(), RETRACT, digest, by):
            return asked
        return self._ledger.follow_up(number, RETRACT, {**details, "digest": digest}, by)

    def _ask(self, series: Snapshot, action: str, digest: str, by: str) -> Event | None:
        """Under four eyes the first of two only asks."""
        asking = next_event(series, ASK, "", {"for": action, "digest": digest}, by)
        doing = next_event(series, action, "", {"digest": digest, "head": series.head.id}, by)
        fault = amendment_fault(series, doing)
        if fault is None:
            return None
        if not four_eyes(series.events) or fault.code != "R552":
            raise InputError(fault)
        if any(e.action == ASK and e.details["digest"] == digest and e.actor == (by or actor()) for e in series.events):
            raise InputError(fault)  # the same person again
        self._catalog.step(asking)
        return asking

    def _enter(self, series: Snapshot, action: str, about: dict[str, Any], staged: Path, by: str) -> Event:
        event = next_event(series, action, "", {**about, TOKEN: staged.name}, by)
        try:
            self._catalog.step(event)
        except Exception:
            if self._known(event) is False:
                self._ledger.discard(staged)
                raise
            self._bulk.let_go(staged.name)  # the next command finishes it
            raise
        now = self._ledger.snapshot()
        finish(self._ledger.home, self._bulk, now)
        if self._ledger.anchor is not None and now.chain:
            self._ledger.anchor.advance(now, now.chain[-1].head)
        return event

    def _known(self, event: Event) -> bool | None:
        """Whether an event was entered; None where nobody can tell now."""
        try:
            now = self._catalog.snapshot()
        except ReveilError:
            return None
        return now is not None and any(one.id == event.id for one in now.events)


def finish(home: Path, bulk: Bulk, series: Snapshot) -> list[str]:
    """Put what amendments have written into its place. Whoever comes first does it; repeating it changes nothing."""
    done = []
    for event in series.events:
        token = event.details.get(TOKEN)
        if token is None or not bulk.has(token):
            continue
        mine = bulk.mine(token)
        for record in series.records:
            for path, entry in event.details[FILES].get(record.id, {}).items():
                if entry is None:
                    bulk.drop(record, path)
                else:
                    bulk.replace(record, path, token, staged_name(record, path))
        _settle_key(home, series, token)
        if mine or bulk.claim(token):
            bulk.discard(token)
            done += [] if mine else [f"A change of the memory ({event.action}, {event.at[:16]}) was finished."]
    return done


def _settle_key(home: Path, series: Snapshot, token: str) -> None:
    wanted = key_of(series.identity, series.events)
    if wanted is not None:
        store.take_key_beside(home, token, wanted)
    elif any(event.action == END and event.details.get(KEY) == DESTROYED for event in series.events):
        store.destroy_key(home)


def staged_name(record: Record, path: str) -> str:
    """What a file of a release is called while it waits to take the other's place."""
    return f"memory/{release_name(record.number)}-{Path(path).name}"


def _path(name: str) -> str:
    return f"memory/{name}.parquet"


def _files(sealed: Manifest, numbers: Mapping[int, Record], tables: Tables) -> dict[str, dict[str, Any]]:
    return {
        numbers[number].id: {_path(name): sealed[staged_name(numbers[number], _path(name))] for name in frames}
        for number, frames in tables.items()
    }


def _parquet(frame: pl.DataFrame) -> memoryview:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="lz4", statistics=False)
    return buffer.getbuffer()
