"""Jobs as processes of their own: asked for, started in turn, watched, cancelled.

A job is queued, running, cancelling, succeeded, failed, cancelled or lost. What it does is in the description that
Python and the command line share; how far it is, it writes itself (`worker`). A console that is started again finds
jobs whose process is gone, and says so: nothing is repeated in silence.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reveil.base.errors import ConflictError, Fault
from reveil.serve.place import Place, now, read, write_atomically

OVER = ("succeeded", "failed", "cancelled", "lost")
AT_ONCE = 2
PATIENCE = 5.0  # seconds between asking a process to end and ending it
FINAL = ("accept", "hand-over", "discard", "correct")  # jobs that record: they are short, and not to be stopped
LOST = Fault(
    "R843", "job", "its process is gone, and it had not said that it was done", "look at it, and start it again"
)


@dataclass
class Queue:
    """The jobs of one place. Threads watch the processes; pages read files."""

    place: Place
    after: Callable[[str], object] = lambda series: None  # called with the series of a job that is over
    _waiting: list[str] = field(default_factory=list)
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False

    def settle(self) -> None:
        """What was running when the last console ended is lost; whoever asked for it is told."""
        for folder in (self.place.state / "jobs").iterdir():
            status = read(folder / "status.json") or {"state": "queued"}
            if status["state"] not in OVER:
                self._lose(folder)

    def _lose(self, folder: Path) -> None:
        write_atomically(folder / "fault.json", {"error": "The job was lost", "faults": [LOST.to_dict()], "notes": []})
        write_atomically(folder / "status.json", {"state": "lost", "stage": "lost", "done": None, "at": now()})

    def ask(self, job: dict[str, Any], title: str, by: str, **about: Any) -> str:
        """Queue a job; `about` says where it belongs (series, draft, upload)."""
        token, folder = self.place.new_entry("jobs")
        write_atomically(folder / "status.json", {"state": "queued", "stage": "waiting", "done": None, "at": now()})
        write_atomically(folder / "job.json", {"id": token, "title": title, "by": by, "at": now(), "job": job, **about})
        with self._lock:
            self._waiting.append(token)
        self._start_next()
        return token

    def _start_next(self) -> None:
        with self._lock:
            if self._closed or not self._waiting or len(self._running) >= AT_ONCE:
                return
            token = self._waiting.pop(0)
            folder = self.place.state / "jobs" / token
            with (folder / "stderr").open("wb") as err:
                command = [sys.executable, "-m", "reveil.serve.worker", str(folder)]
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=err, stderr=err, start_new_session=True
                )
            self._running[token] = process
            status = {"state": "running", "stage": "starting", "done": None, "at": now(), "pid": process.pid}
            write_atomically(folder / "status.json", status)
        threading.Thread(target=self._watch, args=(token, process, folder), daemon=True).start()

    def _watch(self, token: str, process: subprocess.Popen[bytes], folder: Path) -> None:
        process.wait()
        status = read(folder / "status.json") or {}
        if folder.is_dir() and status.get("state") not in OVER:
            if (folder / "cancel").exists():
                write_atomically(folder / "status.json", {"state": "cancelled", "stage": "cancelled", "at": now()})
            else:
                self._lose(folder)
        with self._lock:
            self._running.pop(token, None)
        self._start_next()
        if series := (read(folder / "job.json") or {}).get("series"):
            self.after(series)

    def cancel(self, token: str) -> None:
        """End a job: asked first, then made to. One that records is not stopped."""
        folder = self.place.entry("jobs", token)
        job, status = read(folder / "job.json") or {}, read(folder / "status.json") or {}
        if status.get("state") in OVER:
            return
        if job.get("job", {}).get("job") in FINAL or status.get("stage") == "recording":
            message = "is recording, and is not stopped in the middle of it"
            raise ConflictError(Fault("R844", f"job {token}", message, "wait a moment"))
        (folder / "cancel").touch()
        with self._lock:
            waiting = token in self._waiting
            if waiting:
                self._waiting.remove(token)
            process = self._running.get(token)
        if waiting:
            write_atomically(folder / "status.json", {"state": "cancelled", "stage": "cancelled", "at": now()})
        elif process is not None:
            write_atomically(folder / "status.json", {**status, "state": "cancelling", "at": now()})
            threading.Thread(target=_end, args=(process,), daemon=True).start()

    def close(self) -> None:
        """The console ends, and its jobs with it."""
        with self._lock:
            self._closed = True
            running = list(self._running.values())
        for process in running:
            _end(process)

    # --- looking -------------------------------------------------------------------------------------------

    def job(self, token: str) -> dict[str, Any]:
        """A job with its state, and its result or its faults."""
        folder = self.place.entry("jobs", token)
        job, status = read(folder / "job.json") or {}, read(folder / "status.json") or {"state": "queued"}
        found = {**job, **{name: status.get(name) for name in ("state", "stage", "done")}, "changed": status.get("at")}
        if status["state"] == "succeeded":
            found["result"] = read(folder / "result.json")
        if status["state"] in ("failed", "lost"):
            found.update(read(folder / "fault.json") or {"error": "It failed", "faults": [], "notes": []})
        return found

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs, the newest first, without their results."""
        tokens = [folder.name for folder in (self.place.state / "jobs").iterdir() if (folder / "job.json").exists()]
        found = [{**self.job(token), "result": None} for token in tokens]
        return sorted(found, key=lambda job: (str(job["at"]), str(job["id"])), reverse=True)

    def wait(self, token: str, seconds: float) -> dict[str, Any]:
        """The job when it is over, or as it is after so many seconds."""
        end = time.monotonic() + seconds
        while (job := self.job(token))["state"] not in OVER and time.monotonic() < end:
            time.sleep(0.05)
        return job


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
