"""What tests of the console share: one that runs, and tables as offices have them."""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from reveil.serve.place import Place
from reveil.serve.security import Door

PICTURES = Path(__file__).parents[2] / "docs" / "console"
ILLS = ["flu", "asthma", "gout", "HIV", "migraine", "ulcer", "diabetes", "anaemia"]


@dataclass
class Console:
    """A console that runs, and its door."""

    address: str
    door: Door
    place: Place
    app: Any

    def link(self) -> str:
        return f"{self.address}/enter?key={self.door.link()}"


def started(app: Any, bound: socket.socket) -> Callable[[], None]:
    """Run an application in a thread; call what comes back to end it."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)

    def end() -> None:
        server.should_exit = True
        thread.join(10)

    return end


def quarter(path: Path, number: int = 1, rows: int = 240, mark: str = ";") -> Path:
    """A table as offices have them: semicolons, an old encoding, dates with dots, a column of notes."""
    rng = random.Random(7)
    people = [
        (f"P{1000 + i}", rng.randint(18, 90), rng.choice("FM"), rng.randint(10000, 10999), rng.choice(ILLS))
        for i in range(rows + 40 * number)
    ]
    lines = [mark.join(("Patient No", "Age", "Sex", "Postcode", "Admitted", "Diagnosis", "Notes"))]
    for i, (name, age, sex, zipped, ill) in enumerate(people[30 * (number - 1) :]):
        day = f"{1 + i % 28:02d}.{1 + i % 12:02d}.2025"
        lines.append(mark.join((name, str(age), sex, str(zipped), day, ill, f"Gespräch Nr. {i}")))
    path.write_bytes("\n".join(lines).encode("latin-1"))
    return path


def sound(page: Any) -> None:
    """Nothing that keeps people with other ways of reading or typing out: wide and light, narrow and dark."""
    from axe_playwright_python.sync_playwright import Axe

    before = page.viewport_size
    for width, scheme in ((before["width"], "light"), (375, "dark")):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": before["height"]})
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (page.url, width)
        found = Axe().run(page).response["violations"]
        assert found == [], (scheme, [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found])
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(before)


def picture(page: Any, name: str) -> None:
    """For the documentation, when it is asked for: REVEIL_PICTURES=1."""
    if os.environ.get("REVEIL_PICTURES"):
        PICTURES.mkdir(exist_ok=True)
        page.set_viewport_size({"width": 960, "height": 680})
        page.screenshot(path=PICTURES / f"{name}.png")
        page.set_viewport_size({"width": 1200, "height": 900})
