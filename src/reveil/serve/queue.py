"""Jobs as processes of their own: asked for, looked at, cancelled. `crew.py` works on them; `leases.py` is the table.

A job is queued, running, cancelling, succeeded, failed, cancelled or lost. What it does is in the description that
Python and the command line share; how far it is, the process writes itself (`worker`), into a folder of this run alone,
so that one that wakes too late overwrites nothing.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reveil.base.errors import ConflictError, Fault
from reveil.serve.crew import Crew
from reveil.serve.leases import OVER, RECORDING, Leases, Row, leases_of
from reveil.serve.place import Place, now, read, unknown, write_atomically

FRESH = 0.2  # seconds for which what is open is believed: many look at the same moment
MANY = 2000  # jobs that a list goes back to
AT_ONCE = 2
LOST = Fault(
    "R843", "job", "its process is gone, and it had not said that it was done", "look at it, and start it again"
)
LATE = Fault(
    "R843",
    "job",
    "its process is gone, and it may have recorded before",
    "look at the series before you start it again",
)


@dataclass
class Queue:
    """The jobs of one place. `at_once`: how many long ones this process works on; others may, too (`reveil work`)."""

    place: Place
    after: Callable[[str], object] = lambda series: None  # called with the series of a job that is over
    at_once: int = AT_ONCE
    address: str | None = None
    _open: dict[str, Row] = field(default_factory=dict)
    _over: dict[str, Row] = field(default_factory=dict)
    _looked: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.place.lay_out()
        self.leases: Leases = leases_of(self.place, self.address)
        self.crew = Crew(self.place, self.leases, self.at_once)
        self.crew.after = lambda series: self.after(series)

    def settle(self) -> None:
        """Jobs that an earlier version kept in files alone are entered; what had not ended is lost."""
        for folder in (self.place.state / "jobs").iterdir():
            job = read(folder / "job.json")
            if job is not None and not job.get("entered") and self.leases.row(folder.name) is None:
                state = str((read(folder / "status.json") or {}).get("state"))
                self.leases.add(job, state=state if state in OVER else "lost")
                write_atomically(folder / "job.json", {**job, "entered": True})

    def begin(self) -> None:
        """Work on what waits."""
        self.crew.begin()

    def ask(self, job: dict[str, Any], title: str, by: str, *, small: bool = False, **about: Any) -> str:
        """Queue a job; `about` says where it belongs (series, draft, upload)."""
        token, folder = self.place.new_entry("jobs")
        described = {"id": token, "title": title, "by": by, "at": now(), "job": job, **about}
        kept = {**described, "entered": True, "folder": str(self.place.folder)}
        write_atomically(folder / "job.json", kept)
        self.leases.add(described, small=small)
        self._looked = 0.0
        self.crew.wake()
        return token

    def cancel(self, token: str) -> None:
        """End a job: asked first, then made to. One that records is not stopped."""
        row = self._row(token)
        if row.over:
            return
        if row.state == "running" and row.about.get("job", {}).get("job") in RECORDING:
            message = "is recording, and is not stopped in the middle of it"
            raise ConflictError(Fault("R844", f"job {token}", message, "wait a moment"))
        self.leases.cancel(token)
        self._looked = 0.0
        self.crew.wake()

    def close(self) -> None:
        """The console ends, and its jobs with it."""
        self.crew.close()

    def forget(self, token: str) -> None:
        """A small job, whose result was taken."""
        shutil.rmtree(self.place.entry("jobs", token), ignore_errors=True)
        self.leases.forget(token)

    # --- looking -------------------------------------------------------------------------------------------

    def _row(self, token: str) -> Row:
        """A job as it is now, or was a moment ago: thousands may ask."""
        if found := self._over.get(token):
            return found
        with self._lock:
            if time.monotonic() - self._looked > FRESH:
                self._open = {row.id: row for row in self.leases.open()}
                self._looked = time.monotonic()
            row = self._open.get(token) or self.leases.row(token)
            if row is None:
                raise unknown("job", token)
            if row.over:
                if len(self._over) >= MANY:
                    self._over.clear()
                self._over[token] = row
            return row

    def folder(self, token: str) -> Path:
        """Where the newest run of a job writes."""
        self.place.entry("jobs", token)
        return run_folder(self.place, self._row(token))

    def job(self, token: str) -> dict[str, Any]:
        """A job with its state, and its result or its faults."""
        self.place.entry("jobs", token)
        row = self._row(token)
        found, folder = self._told(row), run_folder(self.place, row)
        if row.state == "succeeded":
            found["result"] = read(folder / "result.json")
        if row.state == "failed":
            found.update(read(folder / "fault.json") or {"error": "It failed", "faults": [], "notes": []})
        if row.state == "lost":
            fault = LATE if row.recording else LOST
            found.update({"error": "The job was lost", "faults": [fault.to_dict()], "notes": []})
        found["unsure"] = row.state in ("failed", "lost") and row.recording
        return found

    def _told(self, row: Row) -> dict[str, Any]:
        state, done, stage = row.state, None, "waiting"
        if row.over:
            done, stage = (1.0 if state == "succeeded" else None), row.state
        elif state == "running":
            status = read(run_folder(self.place, row) / "status.json") or {}
            stage, done = status.get("stage", "starting"), status.get("done")
            state = "cancelling" if row.cancel else state
        return {**row.about, "state": state, "stage": stage, "done": done, "changed": row.changed}

    def jobs(self, series: str = "") -> list[dict[str, Any]]:
        """Jobs, the newest first, without their results."""
        return [self._told(row) for row in self.leases.listed(MANY, series)]

    def wait(self, token: str, seconds: float) -> dict[str, Any]:
        """The job when it is over, or as it is after so many seconds."""
        end = time.monotonic() + seconds
        while (job := self.job(token))["state"] not in OVER and time.monotonic() < end:
            time.sleep(0.05)
        return job


def run_folder(place: Place, row: Row) -> Path:
    """What this run of a job writes is in a folder of its own; of earlier versions, in the job's."""
    folder = place.state / "jobs" / row.id
    return folder / f"run-{row.epoch}" if row.epoch else folder
