"""What a ledger needs of the place where it lives: a catalog for facts, and bulk storage for the files of releases.

A `Catalog` decides: what it holds is recorded, and nothing else is. `Bulk` carries bytes and never decides. The first
backends are a SQLite database (`sqlite.py`) and the folders of a home (`folder.py`); others must pass the same suites
in `tests/contract`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from reveil.ledger.proposals import Proposal
from reveil.ledger.record import Difference, Event, Head, Identity, Manifest, Record, ReleaseState, Snapshot


class Catalog(Protocol):
    """The facts of one series. Each call is one transaction; nothing stays open in between."""

    def found(self, series: str, make_fingerprint: Callable[[], str]) -> Identity:
        """Enter a new series and the fingerprint of its key; the second of two founders finds the first's."""
        ...

    def identity(self) -> Identity | None:
        """Name, policy and key fingerprint of the series; None when it was never entered."""
        ...

    def snapshot(self) -> Snapshot | None:
        """Identity and all records as they are at one moment; entries that cannot be read are reported together."""
        ...

    def head(self) -> Head:
        """The newest release."""
        ...

    def holds(self, token: str) -> bool:
        """Whether a staged release was recorded."""
        ...

    def waits(self, token: str) -> bool:
        """Whether a staged release was proposed and not withdrawn: its files are kept."""
        ...

    def append(self, record: Record, on: Head, identity: Identity) -> None:
        """Compare and swap: enter a record if the head is still `on`. The first one fixes the policy.

        Under four eyes only what was proposed and signed is entered (`proposals.recording_fault`), and never what was
        planned before the newest amendment, or after the end.
        """
        ...

    def propose(self, proposal: Proposal, event: Event) -> None:
        """Compare and swap: enter a proposal and its making, if the head is still its `on` and none other is open."""
        ...

    def step(self, event: Event) -> None:
        """Compare and swap: enter a step of a proposal, a rule about all or an amendment, if nothing happened since.

        Only the steps of `proposals.STEPS` are taken, and amendments that nothing stands against (`amendments.py`).
        """
        ...

    def set_state(self, number: int, state: ReleaseState) -> None:
        """Note that a recorded release was revealed."""
        ...

    def happen(self, event: Event, state: ReleaseState) -> None:
        """Compare and swap: enter an event and the state it brings about, if nothing happened since its `previous`.

        Only the newest entry can be discarded, and only the steps of `record.STEPS` are taken.
        """
        ...


class Bulk(Protocol):
    """The files of releases: staged under a token, sealed by a manifest, revealed under a number, read back by hash.

    A staged release belongs to whoever staged or claimed it for as long as that process lives. It has the folders
    public/, private/ and memory/.
    """

    def stage(self) -> Path:
        """A new staged release, mine. Its folder is written to directly, or by `put`."""
        ...

    def put(self, staged: Path, name: str, data: bytes | memoryview) -> None:
        """Write one file into a staged release."""
        ...

    def seal(self, staged: Path) -> Manifest:
        """Set permissions and make every byte and every name last; returns what there is."""
        ...

    def mine(self, token: str) -> bool:
        """Whether this process staged or claimed it, and has not let it go."""
        ...

    def token_of(self, staged: Path) -> str | None:
        """The token of a staged release that is mine; None for any other folder."""
        ...

    def claim(self, token: str) -> bool:
        """Make a staged release mine if its owner is dead."""
        ...

    def let_go(self, token: str) -> None:
        """Give up a staged release that is mine, and leave its files."""
        ...

    def discard(self, token: str) -> bool:
        """Remove a staged release that is mine; says whether there were files."""
        ...

    def staged(self) -> list[str]:
        """Tokens of all releases in the making, and of what dead makers left."""
        ...

    def has(self, token: str) -> bool:
        """Whether a staged release has a place for files."""
        ...

    def reveal(self, record: Record) -> Path:
        """The one step that reveals. Done twice, or by two processes, it is done once."""
        ...

    def forget(self, record: Record) -> None:
        """A revealed release is nobody's: what was kept of its staging is dropped, whoever holds it."""
        ...

    def remove(self, record: Record) -> bool:
        """Delete the files of a discarded release; says whether there were any."""
        ...

    def replace(self, record: Record, name: str, token: str, staged: str) -> None:
        """Let a staged file take the place of one of a revealed release. Done twice, it is done once."""
        ...

    def drop(self, record: Record, name: str) -> None:
        """Delete one file of a revealed release, if it is there."""
        ...

    def place_of(self, record: Record) -> Path:
        """Where the files of a recorded release belong, to restore them there."""
        ...

    def revealed(self) -> list[str]:
        """Names of everything that lies where revealed releases are, known or not."""
        ...

    def locate(self, record: Record) -> Path | None:
        """Where the files of a recorded release are: revealed, or still staged, or nowhere."""
        ...

    def read(self, record: Record, name: str) -> bytes | None:
        """A file by its recorded hash: what was hashed is what is returned. None if it is lost or another one."""
        ...

    def compare(self, record: Record) -> Difference | None:
        """Every byte of a release against its manifest; None if there is no release."""
        ...
