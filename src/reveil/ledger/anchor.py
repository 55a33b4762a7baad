"""The newest id of a series in a second place (`[output] anchor`), so that a home cannot go back in time unnoticed.

A home that is restored from an old backup, or copied and continued twice, is whole in itself: its chain fits. Only
somebody else who remembers how far the series had come can tell. The anchor is one small file, best on another disk or
machine. It is written after a release is recorded and before it is revealed, so nothing is ever seen that it forgets.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from reveil.base.errors import Fault, InputError, TamperedError
from reveil.ledger.record import Head, Snapshot
from reveil.ledger.store import reason, sync


@dataclass(frozen=True)
class Seen:
    """How far a series had come: its newest release, and the newest event ("" where there was none)."""

    head: Head
    event: str


@dataclass(frozen=True)
class Anchor:
    """A file that names the newest release, and what was done last."""

    file: Path

    def seen(self) -> Seen | None:
        """What the file says; None where there is none yet."""
        try:
            content = json.loads(self.file.read_bytes())
            number, link, event = content["release"], content["id"], content.get("event", "")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(self._fault(f"cannot be read: {reason(error)}", "make it readable")) from None
        except (ValueError, KeyError, TypeError, AttributeError):
            number, link, event = None, None, None
        if type(number) is not int or not isinstance(link, str) or not isinstance(event, str):
            raise TamperedError(self._fault("is not an anchor: it was edited, or is another file", RESTORE_ANCHOR))
        return Seen(Head(number, link), event)

    def faults(self, series: Snapshot) -> list[Fault]:
        """Where the series is not the one that the anchor has seen, or an earlier state of it."""
        known, newest = self.seen(), max((record.number for record in series.chain), default=0)
        if known is None:
            anchored = any(record.revealed and record.facts.get("anchored") for record in series.chain)
            message = "is missing, though earlier releases wrote it: nobody can tell whether this home is the newest"
            return [self._fault(message, RESTORE_ANCHOR)] if anchored else []
        seen = known.head
        if seen.number > newest:
            message = f"has seen release {seen.number}, and this home ends with release {newest}: it is an older state"
            return [self._fault(message, WAY_OUT)]
        if not any(record.head == seen for record in series.chain):
            message = f"has seen another release {seen.number} than this home has: the series was continued twice"
            return [self._fault(message, WAY_OUT)]
        if known.event and all(event.id != known.event for event in series.events):
            message = (
                "has seen a release handed over or discarded of which this home knows nothing: it is an older state"
            )
            return [self._fault(message, WAY_OUT)]
        return []

    def advance(self, series: Snapshot, head: Head) -> None:
        """Name a recorded release, before it is revealed; all or nothing, and only where the series fits."""
        if faults := self.faults(series):
            raise TamperedError(faults)
        fresh, newest = self.file.with_name(f"{self.file.name}.new"), series.events[-1].id if series.events else ""
        try:
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                json.dump({"release": head.number, "id": head.id, "event": newest}, file)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self.file)
            sync(self.file.parent)
        except OSError as error:
            message = f"could not be written: {reason(error)}. What was done is recorded, but not yet revealed"
            remedy = (
                "look after that place, then run `reveil history`: it writes the anchor and reveals what is not yet"
            )
            raise InputError(self._fault(message, remedy)) from error

    def _fault(self, message: str, remedy: str) -> Fault:
        return Fault("R528", f"anchor '{self.file}'", message, remedy)


def refuse_seen(file: Path | None) -> None:
    """A series that is to begin in an empty home must not have been seen before."""
    known = None if file is None else Anchor(file).seen()
    if known is not None:
        message = f"has seen release {known.head.number} of a series, and this home is empty"
        raise TamperedError(Fault("R528", f"anchor '{file}'", message, WAY_OUT))


RESTORE_ANCHOR = "restore this file from where it was kept"
WAY_OUT = (
    "restore the newest backup of the home, with every release that was published; if there is none, begin a new "
    "series in a new home with another anchor: two continuations together give people away"
)
