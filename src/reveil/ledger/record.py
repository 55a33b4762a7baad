"""What the ledger remembers of one release, and the hash that chains it to the one before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from reveil.ledger.proposals import Proposal


class Entry(TypedDict):
    """One file of a release, as it was when the release was recorded."""

    sha256: str
    size: int


Manifest = dict[str, Entry]


class ReleaseState(StrEnum):
    """How far a release has come. A staged one is in no catalog: until it is recorded, it does not exist."""

    RECORDED = "recorded"  # a promise from now on, whether or not anybody has seen it
    REVEALED = "revealed"  # its files are in their place
    HANDED_OVER = "handed over"  # others have it: it can never be taken back
    RETRACTED = "retracted"  # others have it, and were told not to use it
    DISCARDED = "discarded"  # taken back before anybody had it; its entry stays in the chain, its files do not


# What may follow on what; the event that brings it about is chained, see `reveil.ledger.events`.
STEPS: dict[ReleaseState, frozenset[ReleaseState]] = {
    ReleaseState.RECORDED: frozenset({ReleaseState.REVEALED}),
    ReleaseState.REVEALED: frozenset({ReleaseState.HANDED_OVER, ReleaseState.DISCARDED}),
    ReleaseState.HANDED_OVER: frozenset({ReleaseState.HANDED_OVER, ReleaseState.RETRACTED}),
    ReleaseState.RETRACTED: frozenset(),
    ReleaseState.DISCARDED: frozenset(),
}


@dataclass(frozen=True)
class Head:
    """The newest release of a series; a plan names the head it was made on."""

    number: int
    id: str

    def __str__(self) -> str:
        return f"release {self.number} ({self.id[:12]})" if self.number else "the empty series"


GENESIS = Head(0, "")


@dataclass(frozen=True)
class Record:
    """One recorded release. `manifest` maps each path inside the release to its hash and size."""

    number: int
    id: str
    previous: str
    made: str
    facts: dict[str, Any] = field(repr=False)
    manifest: Manifest = field(repr=False)
    state: ReleaseState
    token: str = field(repr=False)  # names the staged files until the release is revealed

    @property
    def head(self) -> Head:
        return Head(self.number, self.id)

    @property
    def revealed(self) -> bool:
        """Whether its files are in their place."""
        return self.state in (ReleaseState.REVEALED, ReleaseState.HANDED_OVER, ReleaseState.RETRACTED)

    @property
    def discarded(self) -> bool:
        return self.state is ReleaseState.DISCARDED


def head_of(chain: Sequence[Record]) -> Head:
    """The newest number that counts, and the id of the newest entry, which may be that of a discarded release."""
    number = max((record.number for record in chain if not record.discarded), default=0)
    return Head(number, chain[-1].id) if chain else GENESIS


@dataclass(frozen=True)
class Identity:
    """What all releases of a series share: part of every link of the chain."""

    series: str
    policy: str | None  # canonical JSON; None until the first release is recorded
    fingerprint: str  # sha256 of the key


@dataclass(frozen=True)
class Event:
    """Something that was done to a recorded release. Events are chained among themselves, from the first on."""

    id: str
    previous: str
    at: str
    actor: str
    action: str
    release: str  # id of its record; of a step of a proposal, its token; of the series, no text
    details: dict[str, Any]


@dataclass(frozen=True)
class Snapshot:
    """A series as its catalog had it at one moment."""

    identity: Identity
    chain: tuple[Record, ...]  # every entry in the order of recording, also of releases that were discarded
    events: tuple[Event, ...] = ()
    proposals: tuple[Proposal, ...] = ()

    @property
    def present(self) -> tuple[Record, ...]:
        """Every entry with the files that it has now: the chain holds them as they were recorded."""
        return as_amended(self.chain, self.events)

    @property
    def records(self) -> tuple[Record, ...]:
        """The releases that count, by number: a discarded one was seen by nobody, and its number is free again."""
        return tuple(record for record in self.present if not record.discarded)

    @property
    def head(self) -> Head:
        """What the next release follows: the newest number, and the newest entry of the chain."""
        return head_of(self.chain)


@dataclass(frozen=True)
class Difference:
    """How the files of a release differ from its manifest; all paths are inside the release."""

    missing: list[str]
    changed: list[str]
    extra: list[str]

    def __bool__(self) -> bool:
        return bool(self.missing or self.changed or self.extra)


FILES = "files"  # among the details of an event: by release, what its files are from then on; None: no longer there


def as_amended(chain: Sequence[Record], events: Sequence[Event]) -> tuple[Record, ...]:
    """Releases with the files that events after them have put in place of what was recorded."""
    changes: dict[str, dict[str, Entry | None]] = {}
    for event in events:
        for link, files in event.details.get(FILES, {}).items():
            changes.setdefault(link, {}).update(files)
    if not changes:
        return tuple(chain)
    return tuple(
        replace(record, manifest={path: e for path, e in {**record.manifest, **changes[record.id]}.items() if e})
        if record.id in changes
        else record
        for record in chain
    )


def release_name(number: int) -> str:
    """What a revealed release is called.

    >>> release_name(7)
    '0007'
    """
    return f"{number:04d}"


def canonical(value: Any) -> str:
    """The one JSON text of a value, so that equal values have equal hashes.

    >>> canonical({"b": 1, "a": [1.5, None]})
    '{"a":[1.5,null],"b":1}'
    """
    # Through JSON once first: number keys become text there, and text sorts differently from numbers.
    plain = json.loads(json.dumps(value, allow_nan=False))
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def chain_id(
    identity: Identity, previous: str, number: int, made: str, facts: dict[str, Any], manifest: Manifest
) -> str:
    """The id of a release: a hash over everything recorded of it and over the id before it."""
    link = {
        "previous": previous,
        "number": number,
        "made": made,
        "facts": facts,
        "manifest": manifest,
        "series": identity.series,
        "policy": digest(identity.policy or ""),
        "key": identity.fingerprint,
    }
    return digest(canonical(link))


def event_id(
    identity: Identity, previous: str, at: str, actor: str, action: str, release: str, details: dict[str, Any]
) -> str:
    """The id of an event: a hash over everything recorded of it and over the id before it."""
    link = {
        "previous": previous,
        "at": at,
        "actor": actor,
        "action": action,
        "release": release,
        "details": details,
        "series": identity.series,
        "key": identity.fingerprint,
    }
    return digest(canonical(link))
