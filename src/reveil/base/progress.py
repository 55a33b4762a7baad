"""How long work says how far it is, and how it is stopped.

A job calls `progress(stage, done)` between its steps, with the share of the stage that is done. What it calls may raise
`CancelledError`: the job then leaves everything as it was, as after any refusal. Once a release is being recorded
nothing is called any more, so that a cancelled job has published nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

from reveil.base.errors import Fault, ReveilError

Progress = Callable[[str, float], None]  # what is being done, and how much of it is (0 to 1)


def silent(stage: str, done: float) -> None:
    """No progress shown."""


class CancelledError(ReveilError):
    """Somebody stopped the job. Nothing was recorded and nothing was revealed."""

    title = "Cancelled"
    exit_code = 130

    def __init__(self, stage: str) -> None:
        message = "the job was stopped. Nothing was recorded, nothing was revealed"
        super().__init__(Fault("R795", f"stage {stage!r}", message, "start it again when you want it"))


class Cancellable:
    """Progress that another thread, or what it shows, can turn into a stop.

    >>> stages = []
    >>> progress = Cancellable(lambda stage, done: stages.append(stage))
    >>> progress("reading", 0.0)
    >>> progress.cancel()
    >>> progress("planning", 0.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    reveil.base.progress.CancelledError: R795 stage ...planning...: the job was stopped. ...
    >>> stages
    ['reading']
    """

    def __init__(self, show: Progress = silent) -> None:
        self._show = show
        self._stopped = threading.Event()

    def cancel(self) -> None:
        """Stop the job at its next step."""
        self._stopped.set()

    def __call__(self, stage: str, done: float) -> None:
        if self._stopped.is_set():
            raise CancelledError(stage)
        self._show(stage, done)


class Limited:
    """Progress of a part of a job that may take so many seconds; what goes on beyond them is stopped at its next step.

    >>> limited = Limited(0, silent)
    >>> limited("searching", 0.5)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    reveil.base.progress.CancelledError: R795 stage ...searching...
    >>> limited.passed
    True
    """

    def __init__(self, seconds: float, show: Progress) -> None:
        self._show = show
        self._end = monotonic() + seconds
        self.passed = False

    def __call__(self, stage: str, done: float) -> None:
        self._show(stage, done)
        if monotonic() >= self._end:
            self.passed = True
            raise CancelledError(stage)
