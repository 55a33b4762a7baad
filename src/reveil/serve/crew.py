"""Working on jobs: a thread that takes them in turn, starts a process for each, and keeps its lease.

`reveil serve` has one, `reveil work` is one, and any number may share a queue. A lease is renewed here as long as the
process of the job lives; where that is refused (this process was stopped for too long), the job's process is ended.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from reveil.base.errors import ReveilError
from reveil.serve.leases import ONCE, RENEW_SECONDS, Leases, Row
from reveil.serve.place import Place

LOOK, REAP = 0.5, 5.0  # seconds between two looks for work of others' consoles, and for leases that have ended
TICK = 0.1
PATIENCE = 5.0  # seconds between asking a process to end and ending it
SMALL = 2  # short jobs that a page waits for have places of their own


@dataclass
class Running:
    """A process, and its lease."""

    row: Row
    process: subprocess.Popen[bytes]
    renewed: float
    ends: float | None = None  # when it is made to end, if it was asked to


@dataclass
class Crew:
    """The workers of this process, in one place."""

    place: Place
    leases: Leases
    at_once: int
    after: Callable[[str], object] = lambda series: None
    owner: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}")
    _running: dict[str, Running] = field(default_factory=dict)
    _thread: threading.Thread | None = None
    _wake: threading.Event = field(default_factory=threading.Event)
    _closed: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _reaped: float = 0.0
    _looked: float = 0.0

    def begin(self) -> None:
        """Work in a thread from now on, if this process works at all."""
        with self._lock:
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()

    def wake(self) -> None:
        """There is something to do."""
        self.begin()
        self._looked = 0.0
        self._wake.set()

    def close(self) -> None:
        """End, and the jobs with it: what only looks goes back into the queue, for whoever works next."""
        self._closed.set()
        self._wake.set()
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(PATIENCE)
        for one in list(self._running.values()):
            _end(one.process)
            with contextlib.suppress(ReveilError, OSError):
                self.leases.give_up(one.row.id, one.row.epoch, back=True)
        self._running.clear()

    def _work(self) -> None:
        while not self._closed.is_set():
            self._wake.wait(TICK if self._running else LOOK)
            self._wake.clear()
            try:
                self.step()
            except Exception as error:  # the database or the disk is away for a while: leases say what became of jobs
                sys.stderr.write(f"reveil: the queue could not be worked on ({error}); trying again.\n")
                self._closed.wait(1.0)

    def step(self) -> None:
        """One look: what has ended, what is to be ended, whose lease is to be renewed, and what waits."""
        for one in list(self._running.values()):
            if one.process.poll() is not None:
                self._over(one)
            elif one.ends is not None and time.monotonic() > one.ends:
                _signal(one.process, signal.SIGKILL)
            elif time.monotonic() - one.renewed > RENEW_SECONDS:
                self._renew(one)
        if time.monotonic() - self._reaped > REAP:
            self._reaped = time.monotonic()
            self.leases.reap()
        if time.monotonic() - self._looked > LOOK:
            self._looked = time.monotonic()
            self._end_cancelled()
            self._take()

    def _end_cancelled(self) -> None:
        if any(one.ends is None for one in self._running.values()):
            asked = {row.id for row in self.leases.open() if row.cancel}
            for token in asked & set(self._running):
                one = self._running[token]
                if one.ends is None:
                    one.ends = time.monotonic() + PATIENCE
                    _signal(one.process, signal.SIGTERM)

    def _take(self) -> None:
        """Start what waits, as long as there are places."""
        if self.at_once < 1:
            return
        for small, places in ((True, SMALL), (False, self.at_once)):
            while sum(one.row.small == small for one in self._running.values()) < places:
                row = self.leases.claim(self.owner, small=small)
                if row is None:
                    break
                self._start(row)

    def _start(self, row: Row) -> None:
        folder = self.place.state / "jobs" / row.id
        run = folder / f"run-{row.epoch}"
        try:
            run.mkdir(mode=0o700, exist_ok=True)
            with (run / "stderr").open("wb") as err:
                command = [sys.executable, "-m", "reveil.serve.worker", str(folder), str(row.epoch)]
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=err, stderr=err, start_new_session=True
                )
        except OSError:
            self.leases.give_up(row.id, row.epoch)
            raise
        if earlier := self._running.pop(row.id, None):  # its lease ended while this machine was suspended
            _signal(earlier.process, signal.SIGKILL)
        self._running[row.id] = Running(row, process, time.monotonic())

    def _renew(self, one: Running) -> None:
        if self.leases.renew(one.row.id, one.row.epoch):
            one.renewed = time.monotonic()
        else:  # this process was stopped for longer than the lease: somebody else may have the job by now
            _signal(one.process, signal.SIGKILL)

    def _over(self, one: Running) -> None:
        self.leases.give_up(one.row.id, one.row.epoch)  # unless it said itself what became of it
        self._running.pop(one.row.id, None)
        self._forget_spent(one)
        self._looked = 0.0
        if series := one.row.about.get("series"):
            self.after(str(series))

    def _forget_spent(self, one: Running) -> None:
        """Tables that are sent anew for each try go with it, also where its process was killed before that."""
        row = self.leases.row(one.row.id)
        if row is not None and row.over and row.about.get("job", {}).get("job") in ONCE:
            for upload in row.about.get("spent", ()):
                self.place.forget_upload(upload)


def _signal(process: subprocess.Popen[bytes], what: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, what)


def _end(process: subprocess.Popen[bytes]) -> None:
    _signal(process, signal.SIGTERM)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)
        process.wait(PATIENCE)
