"""Starting the console: a port on loopback, a link that lets its owner in, the browser."""

from __future__ import annotations

import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import uvicorn

from reveil.base.errors import Fault, InputError
from reveil.ledger.events import actor
from reveil.serve.app import create_app
from reveil.serve.people import Accounts
from reveil.serve.place import NAME, Place
from reveil.serve.queue import Queue
from reveil.serve.security import Door

LOOPBACK = "127.0.0.1"
NAMED = "small letters, digits and hyphens"


@dataclass(frozen=True)
class Wanted:
    """What `reveil serve` was asked for."""

    folder: Path
    port: int
    browser: bool
    demo: bool
    team: bool
    names: Sequence[str]
    at_once: int
    queue: str | None


def serve(asked: Wanted, say: Callable[[str], None]) -> None:
    """Serve until it is interrupted. Only this machine reaches it; a proxy with TLS may, under the names asked for."""
    with _place(asked.folder, asked.demo, say) as place, _bound(asked.port) as bound:
        own = bound.getsockname()[1]
        door = Door()
        place.lay_out()
        people = Accounts(place.state / "people.sqlite") if asked.team or asked.demo else None
        hosts = (f"{LOOPBACK}:{own}", f"localhost:{own}", *asked.names)
        queue = Queue(place, at_once=asked.at_once, address=asked.queue)
        app = create_app(place, door, hosts, actor(), people, secure=bool(asked.names), queue=queue)
        if people is None:
            _let_in(door, own, asked.browser, say)
        else:
            _say_accounts(people, door, own, asked.demo, say)
        if not asked.at_once:
            say(f"Jobs wait for whoever works on them: reveil work {quote(str(place.folder))}")
        say("Press Enter for another link, Ctrl-C to end." if people is None else "Ctrl-C ends it.")
        if people is None and sys.stdin.isatty():
            threading.Thread(target=_answer_enter, args=(door, own, say), daemon=True).start()
        settings = uvicorn.Config(
            app, access_log=False, log_level="warning", server_header=False, timeout_graceful_shutdown=3
        )
        uvicorn.Server(settings).run(sockets=[bound])


def _say_accounts(people: Accounts, door: Door, port: int, demo: bool, say: Callable[[str], None]) -> None:
    """How to come in: the first time by a link that makes an administrator, in a demo as either of two people."""
    address = f"http://{LOOPBACK}:{port}"
    if demo:
        from reveil.serve.demo import staff

        for name, (role, password) in staff(people).items():
            say(f"{name} ({role}): {address}/enter?key={door.link(name)}   later: password {password}")
    elif not people.names():
        say(f"The first administrator, once, within 15 minutes: {address}/welcome?key={door.link(what='welcome')}")
    else:
        say(f"Sign in at {address}/login")


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
        place = Place(folder.resolve())
        _check(place, folder, say)
        yield place
        return
    from reveil.serve.demo import furnish

    with tempfile.TemporaryDirectory(prefix="reveil-console-") as scratch:
        say("Making a hospital with two releases to try it on; it is deleted when this ends.")
        place = Place(Path(scratch))
        furnish(place)
        say(f"Its next tables are in {place.folder / 'tables'}")
        yield place


def _check(place: Place, folder: Path, say: Callable[[str], None]) -> None:
    """A console shows the series in a folder, each in a folder of its own: whoever is one level off is told."""
    unlisted = place.unlisted()
    if unlisted:
        say(f"Not shown, because their names are not {NAMED}: {', '.join(unlisted)}")
    if (place.folder / "reveil.toml").is_file() and not place.series():
        above = quote(str(place.folder.parent))
        shown = NAME.fullmatch(place.folder.name)
        way = f"reveil serve {above}" if shown else f"give it a name of {NAMED}, and name the folder above it"
        message = "is itself a series; the console shows the series in a folder, each in one of its own"
        raise InputError(Fault("R850", f"folder '{folder}'", message, way))
