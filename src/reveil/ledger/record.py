"""What the ledger remembers of one release, and the hash that chains it to the one before."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypedDict


class Entry(TypedDict):
    """One file of a release, as it was when the release was recorded."""

    sha256: str
    size: int


Manifest = dict[str, Entry]


class ReleaseState(StrEnum):
    """How far a release has come. A staged one is in no catalog: until it is recorded, it does not exist.

    Catalogs keep the word, so a further state (submitted, signed, handed over, discarded) needs no new layout.
    """

    RECORDED = "recorded"  # a promise from now on, whether or not anybody has seen it
    REVEALED = "revealed"  # its files are in their place


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
        return self.state is ReleaseState.REVEALED


@dataclass(frozen=True)
class Identity:
    """What all releases of a series share: part of every link of the chain."""

    series: str
    policy: str | None  # canonical JSON; None until the first release is recorded
    fingerprint: str  # sha256 of the key


@dataclass(frozen=True)
class Snapshot:
    """A series as its catalog had it at one moment."""

    identity: Identity
    records: tuple[Record, ...]  # by number

    @property
    def head(self) -> Head:
        return self.records[-1].head if self.records else GENESIS


@dataclass(frozen=True)
class Difference:
    """How the files of a release differ from its manifest; all paths are inside the release."""

    missing: list[str]
    changed: list[str]
    extra: list[str]

    def __bool__(self) -> bool:
        return bool(self.missing or self.changed or self.extra)


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
