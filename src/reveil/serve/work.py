"""`reveil work`: a crew without a console, until it is interrupted."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path

from reveil.base.errors import Fault, InputError
from reveil.serve.place import Place
from reveil.serve.queue import Queue


def work(folder: Path, at_once: int, address: str | None, say: Callable[[str], None]) -> None:
    """Work on the queue of a folder. Ended by SIGTERM or Ctrl-C, its jobs with it."""
    place = Place(folder.resolve())
    if not place.state.is_dir():
        remedy = "start `reveil serve` there first, or name the folder that it serves"
        raise InputError(Fault("R850", f"folder '{folder}'", "has no console", remedy))
    if at_once < 1:
        raise InputError(Fault("R850", "--at-once", "nobody works with 0 jobs at once", "leave it out"))
    queue, ended = Queue(place, at_once=at_once, address=address), threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: ended.set())
    queue.begin()
    say(f"Working on the jobs of {place.folder} as {queue.crew.owner}. Ctrl-C ends it.")
    ended.wait()
    queue.close()
