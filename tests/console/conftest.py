"""A console and a browser for all tests of a process: both are started once."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from console_support import Console, started

from reveil.serve.app import create_app
from reveil.serve.place import Place
from reveil.serve.security import Door

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="session")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    place = Place(tmp_path_factory.mktemp("console"))
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        door = Door()
        app = create_app(place, door, (f"127.0.0.1:{port}",), "ann")
        end = started(app, bound)
        yield Console(f"http://127.0.0.1:{port}", door, place, app)
        end()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("Chromium is not installed (apt-get install chromium): the console was not tried in a browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any, console: Console) -> Iterator[Any]:
    """A new window, let in. Whatever a page complains about fails the test."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(90_000)
    window = context.new_page()
    complaints: list[str] = []
    window.on("pageerror", lambda error: complaints.append(str(error)))
    window.on("console", lambda said: complaints.append(said.text) if "Content Security" in said.text else None)
    window.goto(console.link())
    yield window
    context.close()
    assert complaints == []
