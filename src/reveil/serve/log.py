"""Who did what, and who saw what: lines that are chained, so that an edited or lost one is noticed."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reveil.ledger.record import canonical, digest
from reveil.serve.place import now

CHAINED = ("seq", "at", "actor", "action", "object", "details", "previous")


@dataclass(frozen=True)
class Log:
    """Lines of JSON in a file that only grows. No cell values, no secrets."""

    path: Path

    def note(self, actor: str, action: str, about: str = "", **details: Any) -> None:
        """Add a line. It is on the disk before anybody is told that something was done."""
        with self.path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            lines = _last_line(file)
            last: dict[str, Any] = json.loads(lines) if lines else {"seq": 0, "hash": ""}
            line = {
                "seq": last["seq"] + 1,
                "at": now(),
                "actor": actor,
                "action": action,
                "object": about,
                "details": details,
                "previous": last["hash"],
            }
            line["hash"] = digest(canonical(line))
            file.write(canonical(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def lines(self) -> list[dict[str, Any]]:
        """Everything that was noted, the newest first."""
        if not self.path.exists():
            return []
        return [_parsed(line) for line in reversed(self.path.read_text(encoding="utf-8").splitlines())]

    def fault(self) -> str:
        """Where the chain is broken, in words; nothing where it is whole."""
        previous = ""
        for number, line in enumerate(reversed(self.lines()), start=1):
            chained = {name: line[name] for name in CHAINED}
            if line["seq"] != number or line["previous"] != previous or line["hash"] != digest(canonical(chained)):
                return f"Line {number} was changed later, or one before it is missing."
            previous = line["hash"]
        return ""


def _parsed(line: str) -> dict[str, Any]:
    """A line with everything that a line has; what was edited away is empty."""
    try:
        content = json.loads(line)
    except ValueError:
        content = {}
    empty: dict[str, Any] = dict.fromkeys(CHAINED, "") | {"hash": "", "details": {}}
    return empty | (content if isinstance(content, dict) else {})


def _last_line(file: Any) -> bytes:
    """The last whole line; lines are short."""
    file.seek(0, os.SEEK_END)
    size = file.tell()
    file.seek(max(0, size - (1 << 16)))
    lines = file.read().splitlines()
    file.seek(0, os.SEEK_END)
    return bytes(lines[-1]) if lines else b""
