"""Starting the console: a port on loopback, a link that lets its owner in, the browser."""

from __future__ import annotations

import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from reveil.base.errors import Fault, InputError
from reveil.ledger.events import actor
from reveil.serve.app import create_app
from reveil.serve.place import Place
from reveil.serve.security import Door

LOOPBACK = "127.0.0.1"


def serve(folder: Path, port: int, *, browser: bool, demo: bool, say: Callable[[str], None]) -> None:
    """Serve until it is interrupted. Only this machine can reach it."""
    with _place(folder, demo, say) as place, _bound(port) as bound:
        own = bound.getsockname()[1]
        door = Door()
        app = create_app(place, door, (f"{LOOPBACK}:{own}", f"localhost:{own}"), actor())
        _let_in(door, own, browser, say)
        say("Press Enter for another link, Ctrl-C to end.")
        if sys.stdin.isatty():
            threading.Thread(target=_answer_enter, args=(door, own, say), daemon=True).start()
        settings = uvicorn.Config(
            app, access_log=False, log_level="warning", server_header=False, timeout_graceful_shutdown=3
        )
        uvicorn.Server(settings).run(sockets=[bound])


def _let_in(door: Door, port: int, browser: bool, say: Callable[[str], None]) -> None:
    address = f"http://{LOOPBACK}:{port}/enter?key={door.link()}"
    say(f"Open once, within 15 minutes: {address}")
    if browser:
        threading.Timer(0.7, webbrowser.open, (address,)).start()


def _answer_enter(door: Door, port: int, say: Callable[[str], None]) -> None:
    for _ in sys.stdin:
        _let_in(door, port, False, say)


@contextmanager
def _bound(port: int) -> Iterator[socket.socket]:
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((LOOPBACK, port))
        except OSError as error:
            message = f"is taken: {error.strerror}"
            raise InputError(Fault("R850", f"port {port}", message, "leave --port out, or name another one")) from None
        yield bound


@contextmanager
def _place(folder: Path, demo: bool, say: Callable[[str], None]) -> Iterator[Place]:
    if not demo:
        if not folder.is_dir():
            raise InputError(Fault("R850", f"folder '{folder}'", "is not there", "make it first, or name another one"))
        yield Place(folder.resolve())
        return
    from reveil.serve.demo import furnish

    with tempfile.TemporaryDirectory(prefix="reveil-console-") as scratch:
        say("Making a hospital with two releases to try it on; it is deleted when this ends.")
        place = Place(Path(scratch))
        furnish(place)
        say(f"Its next tables are in {place.folder / 'tables'}")
        yield place
