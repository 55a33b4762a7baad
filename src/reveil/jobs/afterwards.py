"""What is done with a release that was published: handed over to others, or taken back before anybody had it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reveil.base.errors import Fault, InputError, TamperedError
from reveil.jobs.past import ledger_of
from reveil.ledger import store
from reveil.ledger.events import refuse_discard
from reveil.ledger.ledger import Ledger
from reveil.ledger.record import Event, Record
from reveil.policy.policy import PolicyLike
from reveil.published.format import PUBLIC


@dataclass(frozen=True)
class Afterwards:
    """What was done with a release, as it is recorded."""

    number: int
    event: Event
    folder: Path | None  # where the copy is that was handed over
    settled: tuple[str, ...]  # what an interrupted command had left

    def to_dict(self) -> dict[str, Any]:
        e = self.event
        said = {"release": self.number, "action": e.action, "at": e.at, "by": e.actor, **e.details, "id": e.id}
        return said if self.folder is None else {**said, "folder": str(self.folder)}


def hand_over(
    policy: PolicyLike, home: str | Path | None, number: int | None, to: str | Path, recipient: str
) -> Afterwards:
    """Copy the public half of a release into a new or empty folder. From then on it can never be discarded.

    It is recorded first: a copy that nobody knows of would be the worse accident.
    """
    ledger, settled = ledger_of(policy, home)
    record = _record(ledger, number)
    if faults := ledger.check([record.number]):
        raise TamperedError(faults)
    target = store.new_folder(Path(to))
    event = ledger.hand_over(record.number, {"recipient": recipient} if recipient else {})
    try:
        shutil.copytree(ledger.path(record.number) / PUBLIC, target, dirs_exist_ok=True)
    except OSError as error:
        raise store.refused_by_disk(error) from error
    return Afterwards(record.number, event, target, tuple(settled))


def discard(policy: PolicyLike, home: str | Path | None, number: int, reason: str, *, no_copy_left: bool) -> Afterwards:
    """Take back the newest release, which nobody has: `no_copy_left` is the steward's word for that."""
    ledger, settled = ledger_of(policy, home)
    record = _record(ledger, number)
    refuse_discard(ledger.snapshot(), record)
    if not no_copy_left:
        message = "can be discarded only if no copy of it has left your hands, which Reveil cannot know"
        remedy = "if that is so, say it: --yes-no-copy-left. If not, publish the corrected table as the next release"
        raise InputError(Fault("R534", f"release {number}", message, remedy))
    event = ledger.take_back(record.number, {"reason": reason} if reason else {})
    return Afterwards(record.number, event, None, tuple(settled))


def _record(ledger: Ledger, number: int | None) -> Record:
    """A release that counts, by number; the latest without one."""
    records = {record.number: record for record in ledger.records()}
    wanted = max(records, default=0) if number is None else number
    if wanted not in records:
        message = f"is not in this series (it has {list(records)})"
        raise InputError(Fault("R510", f"release {wanted}", message, "see `reveil history`"))
    return records[wanted]
