"""Rewriting the ledger of a home in the newest layout, when somebody asks for it.

The first command that writes does the same, in the transaction of that write. Whoever upgrades many homes, or wants to
see it done before the day of a release, does it here: in one transaction, in which what was read before is compared
with what is there afterwards. A stop in the middle leaves the old layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reveil.base.errors import Fault, InputError
from reveil.ledger.layouts import NEWEST
from reveil.ledger.opening import catalog_of, discover


@dataclass(frozen=True)
class Upgraded:
    """What was done: layouts before and after, and how much is in the ledger."""

    where: str
    before: int
    after: int
    releases: int
    events: int

    def to_dict(self) -> dict[str, str | int]:
        return {
            "catalog": self.where,
            "before": self.before,
            "after": self.after,
            "releases": self.releases,
            "events": self.events,
        }


def upgrade(home: Path) -> Upgraded:
    """Rewrite the ledger of this home in the newest layout; nothing happens to one that has it."""
    if not discover(home):
        remedy = "give the right folder with --home; there is nothing to upgrade before a first release"
        raise InputError(Fault("R501", f"home '{home}'", "there is no series in this folder", remedy))
    catalog = catalog_of(home)
    before = catalog.layout()
    seen = catalog.snapshot()
    if before is None or seen is None:
        raise InputError(
            Fault("R501", f"home '{home}'", "its ledger is empty", "publish a first release; that makes it")
        )
    if before < NEWEST:
        catalog.rewrite(seen)
    return Upgraded(catalog.where, before, NEWEST, len(seen.chain), len(seen.events))
