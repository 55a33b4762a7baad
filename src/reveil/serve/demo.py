"""A place to try the console on: a hospital with two releases, and the tables of its next quarters."""

from __future__ import annotations

import shutil

from reveil.cli.shared import load_kernels
from reveil.publish import open_series
from reveil.serve.place import Place
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
    shutil.copy(tables / "reveil.toml", folder / "reveil.toml")
    for path in tables.glob("*.csv"):
        if path not in releases:
            shutil.copy(path, folder / path.name)  # hierarchies
    series = open_series(folder / "reveil.toml")
    for table in releases[:PUBLISHED]:
        series.publish(table)
        table.unlink()
