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
class Anchor:
    """A file that names the newest release."""

    file: Path

    def head(self) -> Head | None:
        """What the file says; None where there is none yet."""
        try:
            content = json.loads(self.file.read_bytes())
            number, link = content["release"], content["id"]
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(self._fault(f"cannot be read: {reason(error)}", "make it readable")) from None
        except (ValueError, KeyError, TypeError):
            number, link = None, None
        if type(number) is not int or not isinstance(link, str):
            raise TamperedError(self._fault("is not an anchor: it was edited, or is another file", RESTORE_ANCHOR))
        return Head(number, link)

    def faults(self, series: Snapshot) -> list[Fault]:
        """Where the series is not the one that the anchor has seen, or an earlier state of it."""
        seen, newest = self.head(), max((record.number for record in series.chain), default=0)
        if seen is None:
            anchored = any(record.revealed and record.facts.get("anchored") for record in series.chain)
            message = "is missing, though earlier releases wrote it: nobody can tell whether this home is the newest"
            return [self._fault(message, RESTORE_ANCHOR)] if anchored else []
        if seen.number > newest:
            message = f"has seen release {seen.number}, and this home ends with release {newest}: it is an older state"
            return [self._fault(message, WAY_OUT)]
        if not any(record.head == seen for record in series.chain):
            message = f"has seen another release {seen.number} than this home has: the series was continued twice"
            return [self._fault(message, WAY_OUT)]
        return []

    def advance(self, series: Snapshot, head: Head) -> None:
        """Name a recorded release, before it is revealed; all or nothing, and only where the series fits."""
        if faults := self.faults(series):
            raise TamperedError(faults)
        fresh = self.file.with_name(f"{self.file.name}.new")
        try:
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                json.dump({"release": head.number, "id": head.id}, file)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self.file)
            sync(self.file.parent)
        except OSError as error:
            message = f"could not be written: {reason(error)}. Release {head.number} is recorded, and not yet revealed"
            remedy = "look after that place, then run `reveil history`: it writes the anchor and reveals the release"
            raise InputError(self._fault(message, remedy)) from error

    def _fault(self, message: str, remedy: str) -> Fault:
        return Fault("R528", f"anchor '{self.file}'", message, remedy)


def refuse_seen(file: Path | None) -> None:
    """A series that is to begin in an empty home must not have been seen before."""
    seen = None if file is None else Anchor(file).head()
    if seen is not None:
        message = f"has seen release {seen.number} of a series, and this home is empty"
        raise TamperedError(Fault("R528", f"anchor '{file}'", message, WAY_OUT))


RESTORE_ANCHOR = "restore this file from where it was kept"
WAY_OUT = (
    "restore the newest backup of the home, with every release that was published; if there is none, begin a new "
    "series in a new home with another anchor: two continuations together give people away"
)
