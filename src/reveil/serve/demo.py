"""A place to try the console on: a hospital with two releases, tables of its next quarters, and a team of two."""

from __future__ import annotations

import secrets
import shutil

from reveil.cli.shared import load_kernels
from reveil.publish import open_series
from reveil.serve.people import Accounts
from reveil.serve.place import Place
from reveil.serve.visitors import ALL
from reveil.simulation.scenario import Scenario
from reveil.simulation.simulate import write

ROWS, RELEASES, PUBLISHED = 800, 4, 2


def furnish(place: Place) -> None:
    """Publish the first tables of a simulated hospital; later ones wait to be dropped."""
    load_kernels()
    tables = place.folder / "tables"
    made = write(Scenario(rows=ROWS, releases=RELEASES, values="never", seed=7), tables)
    releases = sorted(path for path in made if "release" in path.name)
    folder = place.folder / "hospital"
    folder.mkdir(mode=0o700)
    shutil.move(tables / "reveil.toml", folder / "reveil.toml")  # or the tables would be listed as a series, too
    for path in tables.glob("*.csv"):
        if path not in releases:
            shutil.copy(path, folder / path.name)  # hierarchies
    series = open_series(folder / "reveil.toml")
    for table in releases[:PUBLISHED]:
        series.publish(table)
        table.unlink()
    series.ledger.approval.require_four_eyes(True, by="root")


def staff(people: Accounts) -> dict[str, tuple[str, str]]:
    """A steward and an officer with random passwords; and an administrator whom nobody can be."""
    people.found("root", secrets.token_urlsafe(24))
    made = {"ann": ("steward", secrets.token_urlsafe(12)), "ben": ("officer", secrets.token_urlsafe(12))}
    for name, (role, password) in made.items():
        people.add(name)
        people.set_password(name, password)
        people.grant(name, ALL, role, by="root")
    return made
