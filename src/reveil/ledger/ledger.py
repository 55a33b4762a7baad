"""The private, transactional memory of a series: staged, then recorded, then revealed.

    staged = ledger.stage()                             # write public/, private/ and memory/ into it
    record = ledger.record(staged, on=head, facts={})   # all or nothing; only if `head` is still the newest
    folder = ledger.reveal(record.number)               # one rename

A process may die anywhere in between: the next `settle()` leaves the old state or the new one.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reveil.base.errors import CommitUnknownError, Fault, InputError, ReveilError, TamperedError
from reveil.base.lots import fresh_key
from reveil.ledger import store
from reveil.ledger.amendments import key_of, refuse_ended, refuse_forgotten
from reveil.ledger.anchor import Anchor
from reveil.ledger.approval import Approval
from reveil.ledger.events import DISCARD, HAND_OVER, NEWEST_EVENT, OUTCOME, next_event, refuse_discard
from reveil.ledger.folder import Folders
from reveil.ledger.moving import move
from reveil.ledger.opening import catalog_of, discover, found_series, identity_of, usable
from reveil.ledger.protocols import Bulk, Catalog
from reveil.ledger.record import (
    GENESIS,
    Event,
    Head,
    Identity,
    Manifest,
    Record,
    ReleaseState,
    Snapshot,
    canonical,
    chain_id,
    release_name,
)
from reveil.ledger.recorded_policy import changed_keys, parsed_policy

if TYPE_CHECKING:
    import polars as pl

    from reveil.ledger.amending import Amending


class Ledger:
    """One series in one home folder.

    >>> import tempfile
    >>> ledger = Ledger.create_or_open(Path(tempfile.mkdtemp()) / "home", series="demo", policy={"k": 5})
    >>> staged = ledger.stage()
    >>> _ = (staged / "public" / "table.csv").write_text("age;n")
    >>> record = ledger.record(staged, on=ledger.head(), facts={"rows": 1})
    >>> ledger.reveal(record.number).name, ledger.head().number, ledger.check()
    ('0001', 1, [])
    """

    def __init__(
        self, home: Path, catalog: Catalog, bulk: Bulk, identity: Identity, *, fixed: bool, anchor: Path | None = None
    ) -> None:
        """Use `create_or_open` or `open`. `fixed`: this is the recorded identity, which never changes again."""
        self.home, self.anchor = home, None if anchor is None else Anchor(anchor)
        self._catalog, self._bulk = catalog, bulk
        self._identity, self._fixed = identity, fixed
        self._known: dict[int, Record] = {}  # what was recorded stays as it is: it need not be asked for twice
        self._events: tuple[Event, ...] | None = None  # as they were last looked at

    @classmethod
    def create_or_open(
        cls,
        home: Path,
        *,
        series: str,
        policy: dict[str, Any],
        key: bytes | None = None,
        anchor: Path | None = None,
        catalog: str | None = None,
    ) -> Ledger:
        """The ledger of a series, made if there is none (in the database `catalog`); another policy is refused."""
        home = Path(home).absolute()
        given = canonical(policy)
        recorded = identity_of(home) if discover(home) else None
        if recorded is None:
            store.lay_out(home)
            if catalog is not None and not store.pointer_file(home).is_file():
                move(home, catalog)
            recorded = found_series(home, series, key or fresh_key())
        if recorded.policy is not None and (
            faults := changed_keys(recorded, Identity(series, given, recorded.fingerprint))
        ):
            raise InputError(faults)
        identity = Identity(series, given, recorded.fingerprint)
        return cls(home, catalog_of(home), Folders(home), identity, fixed=recorded.policy is not None, anchor=anchor)

    @classmethod
    def open(cls, home: Path, anchor: Path | None = None) -> Ledger:
        """The ledger of a series that exists."""
        home = Path(home).absolute()
        identity = identity_of(home) if discover(home) else None
        if identity is None:
            kind = "this is a file, not a folder" if home.is_file() else "there is no series in this folder"
            remedy = "give the right folder with --home, or publish a first release"
            raise InputError(Fault("R501", f"home '{home}'", kind, remedy))
        return cls(home, catalog_of(home), Folders(home), identity, fixed=identity.policy is not None, anchor=anchor)

    def __repr__(self) -> str:
        return f"Ledger({self.series!r}, {str(self.home)!r})"

    @property
    def key(self) -> bytes:
        """The secret that identifiers are hashed with; never another one than the series began with."""
        if (wanted := self.fingerprint()) is None:
            refuse_ended(self.snapshot().events)
        if fault := store.key_fault(self.home, wanted or ""):
            raise TamperedError(fault)
        return store.key_file(self.home).read_bytes()

    @property
    def series(self) -> str:
        return self._identity.series

    @property
    def policy(self) -> dict[str, Any] | None:
        """The policy that the first release fixed, as recorded; None while there is no release."""
        identity = self._recorded()
        return None if identity is None else parsed_policy(identity.policy or "")

    def changes(self, series: str, policy: dict[str, Any]) -> list[Fault]:
        """Where this policy is not the recorded one; nothing before the first release has fixed it."""
        if (recorded := self._recorded()) is None:
            return []
        return changed_keys(recorded, Identity(series, canonical(policy), recorded.fingerprint))

    def _recorded(self) -> Identity | None:
        """The identity that the first release has fixed; None while there is no release."""
        if self._fixed:
            return self._identity
        identity = self._catalog.identity()
        return None if identity is None or identity.policy is None else identity

    def head(self) -> Head:
        return self._catalog.head()

    def records(self) -> list[Record]:
        return list(self.snapshot().records)

    def snapshot(self) -> Snapshot:
        """The series as it is now, in one reading."""
        now = self._catalog.snapshot() or Snapshot(self._identity, ())
        self._known = {record.number: record for record in now.records}
        self._events = now.events
        return now

    def checked(self, *, keyless: bool = False) -> Snapshot:
        """The series as it is now, to build on: refused where key, chain or anchor do not bear it out."""
        from reveil.ledger.amending import finish
        from reveil.ledger.check import foundation_faults

        with usable(self.home):
            folders = self._bulk.revealed()  # before the entries: a folder is there only after its entry
            now = self.snapshot()
            finish(self.home, self._bulk, now)
            if faults := foundation_faults(self.home, now, folders, self.anchor, keyless=keyless):
                raise TamperedError(faults)
        return now

    @property
    def amending(self) -> Amending:
        """How the memory is changed."""
        from reveil.ledger.amending import Amending

        return Amending(self, self._catalog, self._bulk)

    def fingerprint(self) -> str | None:
        """Of the key that the home should have now; None where the series ended without it."""
        return key_of(self._identity, self._events if self._events is not None else self.snapshot().events)

    @property
    def approval(self) -> Approval:
        """What is done with proposals."""
        return Approval(self, self._catalog, self._bulk)

    # --- making a release ----------------------------------------------------------------------------------

    def stage(self) -> Path:
        """A new folder with public/, private/ and memory/, left alone by others while this process lives."""
        with usable(self.home):
            return self._bulk.stage()

    def discard(self, staged: Path) -> None:
        """Remove a staged release that will not be recorded. One that is recorded, or may be, stays."""
        token = staged.name
        if not self._bulk.mine(token):
            return
        try:
            known = any(one.token == token for one in self._known.values())
            recorded = known or self._catalog.holds(token) or self._catalog.waits(token)
        except ReveilError:
            recorded = True  # the next `settle` knows better
        if recorded:
            self._bulk.let_go(token)
        else:
            with suppress(OSError):  # what cannot be removed now is removed by the next `settle`
                self._bulk.discard(token)

    def write_memory(self, staged: Path, name: str, frame: pl.DataFrame) -> None:
        """Keep a table for planning later releases, as Parquet in memory/.

        Where that fails, the caller discards the staged release: others may still be writing into it.
        """
        self.own(staged)
        buffer = io.BytesIO()
        frame.write_parquet(buffer, compression="lz4", statistics=False)
        try:
            self._bulk.put(staged, _memory_path(name), buffer.getbuffer())
        except OSError as error:
            raise store.refused_by_disk(error) from error

    def record(self, staged: Path, *, on: Head, facts: dict[str, Any]) -> Record:
        """Enter a staged release as the one after `on`, or refuse and leave nothing of it behind."""
        token = self.own(staged)
        try:
            self.identity_to_record()
            return self.enter(token, self._bulk.seal(staged), on, facts)
        except CommitUnknownError:
            raise
        except OSError as error:
            self.discard(staged)
            raise store.refused_by_disk(error) from error
        except Exception:
            self.discard(staged)
            raise

    def enter(self, token: str, manifest: Manifest, on: Head, facts: dict[str, Any]) -> Record:
        """Enter sealed files, which are mine, as the release after `on`; where it is not sure, they are let go."""
        plain = json.loads(canonical({**facts, **self._own_facts()}))
        identity = self.identity_to_record()
        number, made = on.number + 1, datetime.now(UTC).isoformat(timespec="seconds")
        self._refuse_occupied(number)
        link = chain_id(identity, on.id, number, made, plain, manifest)
        record = Record(number, link, on.id, made, plain, manifest, ReleaseState.RECORDED, token)
        try:
            self._catalog.append(record, on, identity)
        except CommitUnknownError:
            self._bulk.let_go(token)  # it is the next `settle` that decides, in whatever process
            raise
        self._known[number] = record
        return record

    def _own_facts(self) -> dict[str, Any]:
        """What the ledger itself enters among the facts of a release."""
        anchored = {} if self.anchor is None else {"anchored": True}
        return {**anchored, NEWEST_EVENT: self._events[-1].id} if self._events else anchored

    def reveal(self, number: int) -> Path:
        """Show a recorded release: one rename into releases/. Repeating it changes nothing."""
        from reveil.ledger import recover

        record = self._find(number)
        if not record.revealed:
            self._hold(record)
            recover.reveal(self._catalog, self._bulk, record)
        elif self._bulk.mine(record.token):  # another process has settled it
            self._bulk.let_go(record.token)
        self._known[number] = replace(record, state=ReleaseState.REVEALED)
        return self.path(number)

    # --- after it was revealed -----------------------------------------------------------------------------

    def hand_over(self, number: int, details: dict[str, Any]) -> Event:
        """Note that others have a release from now on. It may be handed over again, and never be discarded."""
        return self.follow_up(number, HAND_OVER, details)

    def take_back(self, number: int, details: dict[str, Any]) -> Event:
        """Discard the newest release, which nobody has: its entry stays in the chain, its files are deleted.

        The next release has its number, and is planned as if it had never been.
        """
        event = self.follow_up(number, DISCARD, details)
        self.settle()
        return event

    def follow_up(self, number: int, action: str, details: dict[str, Any], by: str = "") -> Event:
        """Note what is done to a release that was revealed."""
        series = self.checked()
        record = self._find(number)
        if action == DISCARD:
            refuse_discard(series, record)
        event = next_event(series, action, record.id, details, by)
        self._catalog.happen(event, OUTCOME[action])
        now = self.snapshot()
        if self.anchor is not None:
            self.anchor.advance(now, now.chain[-1].head)
        return event

    def _hold(self, record: Record) -> None:
        """Nothing is revealed that the anchor does not know."""
        if self.anchor is not None:
            self.anchor.advance(self.snapshot(), record.head)

    def own(self, staged: Path) -> str:
        token = self._bulk.token_of(staged)
        if token is None:
            message = "it was not staged by this ledger"
            raise InputError(Fault("R511", f"folder '{staged}'", message, "use the folder `stage()` gave"))
        return token

    def identity_to_record(self) -> Identity:
        """Another process may have fixed another policy since this ledger was opened."""
        recorded = self._recorded()
        if recorded is not None:
            faults = [] if self._identity.policy is None else changed_keys(recorded, self._identity)
            if faults:
                raise InputError(faults)
            return recorded
        if self._identity.policy is None:
            message = "it has no release yet, and no policy was given to fix with the first one"
            raise InputError(Fault("R511", f"series '{self.series}'", message, "open it with its policy"))
        return self._identity

    def _refuse_occupied(self, number: int) -> None:
        if release_name(number) in self._bulk.revealed() and self.head().number < number:
            message = f"release {number} exists already, but the ledger does not know it. Nothing was recorded"
            remedy = "restore the newest ledger.sqlite from a backup: this one is older than the releases"
            raise TamperedError(Fault("R526", f"releases/{release_name(number)}", message, remedy))

    # --- looking back --------------------------------------------------------------------------------------

    def path(self, number: int) -> Path:
        """The folder of a recorded release; where it belongs, if it is lost."""
        record = self._find(number)
        return self._bulk.locate(record) or self._bulk.place_of(record)

    def memory(self, number: int, name: str) -> pl.DataFrame:
        """A table kept with a release. Its bytes are hashed first, every time: plans are built on them."""
        import polars as pl

        record, path = self._find(number), _memory_path(name)
        if path not in record.manifest:
            refuse_forgotten(self.snapshot().events)
            kept = [Path(kept).stem for kept in record.manifest if kept.startswith("memory/")]
            message = f"it keeps no table '{name}'; it keeps: {', '.join(kept) or 'none'}"
            raise InputError(Fault("R510", f"release {number}", message, "ask for one of these"))
        return pl.read_parquet(io.BytesIO(self._remembered(record, path)))

    def insist_on_memory(self, number: int) -> None:
        """Refuse to go on from a release if anything that it keeps for later ones is not what was recorded."""
        record = self._find(number)
        for path in record.manifest:
            if path.startswith("memory/"):
                self._remembered(record, path)

    def _remembered(self, record: Record, path: str) -> bytes:
        data = self._bulk.read(record, path)
        if data is None:
            message = "the file is missing or not the one that was recorded, and further releases depend on it"
            remedy = "restore it from a backup of the home, then run `reveil verify`"
            raise TamperedError(Fault("R524", f"release {record.number}, {path}", message, remedy))
        return data

    def settle(self, series: Snapshot | None = None) -> list[str]:
        """Finish or clear away what a crash left; says what was done. Commands begin with it, opening does not."""
        from reveil.ledger.recover import settle

        with usable(self.home):
            return settle(self.home, self._catalog, self._bulk, series or self.snapshot(), self._hold)

    def check(self, numbers: Iterable[int] | None = None) -> list[Fault]:
        """Read everything again and list what is not as recorded; `numbers` limits whose files are read."""
        from reveil.ledger.check import check

        try:
            wanted = None if numbers is None else {self._find(number).number for number in numbers}
            with usable(self.home):
                return check(self.home, self._catalog, self._bulk, self._identity.fingerprint, wanted, self.anchor)
        except TamperedError as error:
            return list(error.faults)

    def _find(self, number: int) -> Record:
        if number not in self._known:
            newest = self.snapshot().head
            if number not in self._known:
                known = "it has no release yet" if newest == GENESIS else f"it has releases 1 to {newest.number}"
                raise InputError(Fault("R510", f"series '{self.series}'", f"there is no release {number}", known))
        return self._known[number]


def _memory_path(name: str) -> str:
    if not name.replace("-", "").replace("_", "").isalnum():
        raise InputError(
            Fault("R511", f"memory table '{name}'", "this is not a plain name", "use letters, digits, - _")
        )
    return f"memory/{name}.parquet"
