"""How fast the pages of the console are for a whole institution: thousands of series, each with releases.

    python bench/console.py                       (10,000 series of 10 releases; some minutes, most of it furnishing)
    python bench/console.py --series 200 --releases 3 --times 20

One series is published for real and copied. Times are those of the server: from the request to the end of the answer,
in one process, without a network. The first look at all series, by the thread that does it, is timed apart.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import tempfile
import time
from pathlib import Path

import polars as pl
from starlette.testclient import TestClient

import reveil
from reveil.serve import overview
from reveil.serve.app import create_app
from reveil.serve.place import Place
from reveil.serve.security import Door

HOST = "127.0.0.1:8000"
POLICY = """
[series]
name = "a series"
[columns]
who = "identifier"
age = "quasi"
ill = "sensitive"
[guarantee]
k = 2
"""


def furnish(place: Place, series: int, releases: int) -> None:
    """The catalogs of so many series: one that is real, and copies of it."""
    place.lay_out()
    first = place.folder / "s00000"
    first.mkdir()
    (first / "reveil.toml").write_text(POLICY)
    for number in range(releases):
        people = [{"who": f"p{i}", "age": 20 + (i + number) % 40, "ill": "abc"[i % 3]} for i in range(40)]
        reveil.open_series(first / "reveil.toml").publish(pl.DataFrame(people), seed=1)
    for number in range(1, series):
        folder = place.folder / f"s{number:05d}"
        (folder / ".reveil").mkdir(parents=True)
        shutil.copy(first / "reveil.toml", folder / "reveil.toml")
        for name in ("ledger.sqlite", "key"):
            shutil.copy(first / ".reveil" / name, folder / ".reveil" / name)


def timed(client: TestClient, paths: list[str], times: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each answer, in order: by the clock, and of the processor, which others do not change."""
    taken, worked = [], []
    for number in range(times):
        begin = time.perf_counter(), time.process_time()
        answer = client.get(paths[number % len(paths)])
        taken.append(1000 * (time.perf_counter() - begin[0]))
        worked.append(1000 * (time.process_time() - begin[1]))
        assert answer.status_code == 200, answer.text
    return sorted(taken), sorted(worked)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--series", type=int, default=10_000)
    asked.add_argument("--releases", type=int, default=10)
    asked.add_argument("--times", type=int, default=100)
    given = asked.parse_args()
    overview.EVERY = 3600.0  # the look at everything is timed by itself
    with tempfile.TemporaryDirectory() as scratch:
        place, door = Place(Path(scratch)), Door()
        furnish(place, given.series, given.releases)
        app = create_app(place, door, (HOST,), "ann")
        begin = time.perf_counter()
        app.state.overview.sweep()
        first = time.perf_counter() - begin
        begin = time.perf_counter()
        app.state.overview.sweep()
        again = time.perf_counter() - begin
        client = TestClient(app, base_url=f"http://{HOST}")
        client.get(f"/enter?key={door.link()}")
        middle, last = f"s{given.series // 2:05d}", f"s{given.series - 1:05d}"
        pages = {
            "home": ["/"],
            "home, further on": [f"/?after={middle}"],
            "a series": [f"/series/{middle}", f"/series/{last}"],
            "series over HTTP (100)": [f"/api/v1/series?after={middle}"],
        }
        print(f"{given.series:,} series, {given.series * given.releases:,} releases")
        print(f"first look at all {first:.1f} s, later looks {again:.2f} s\n")
        print("| page | median ms | 95 % | slowest | processor: median | 95 % |\n|---|---|---|---|---|---|")
        for name, paths in pages.items():
            taken, worked = timed(client, paths, given.times)
            middle_of, most_of = given.times // 2, int(0.95 * (given.times - 1))
            figures = (taken[middle_of], taken[most_of], taken[-1], worked[middle_of], worked[most_of])
            print(f"| {name} | " + " | ".join(f"{figure:.1f}" for figure in figures) + " |")
        print(f"\nlargest memory of the process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
