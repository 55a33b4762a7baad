"""The main job on a built-in series, so that a newcomer sees the point within two minutes."""

from __future__ import annotations

import shutil
from pathlib import Path

from reveil import terminal
from reveil.publish import open_series
from reveil.simulate import Scenario, write

MARK = ".reveil-demo"  # only a folder that a demo made is ever removed


def run(folder: Path, rows: int) -> None:
    """Simulate a hospital, publish three releases, verify them, and say where to look."""
    _renew(folder)
    say = terminal.say
    say("A hospital publishes its admissions every quarter. People come, go and return; a diagnosis stays.\n")
    tables = [
        p
        for p in write(Scenario(rows=rows, releases=3, values="never", seed=7), folder / "input")
        if "release" in p.name
    ]
    series = open_series(folder / "input" / "reveil.toml", folder / "home")
    for table in tables:
        say(f"$ reveil publish {table.name}")
        with terminal.progress(False) as show:
            release = series.publish(str(table), seed=None, progress=show)
        say(f"  {terminal.counts_line(release.certificate.counts)}")
        say(terminal.verdict_lines(release.certificate.verdicts))
    first = series.releases[0]
    say("\nWhat was put in (first rows of the first table), and what came out:")
    say(str(_head(tables[0])))
    say(str(first.table.head(5)))
    say("\n$ reveil verify")
    found = series.verify()
    say(
        f"  {sum(1 for v in found.values() if getattr(v, 'holds', False))} of {len(found)} releases hold, from their bytes."
    )
    for limit in first.certificate.limits:
        say(f"Note: {limit}")
    say("\nWhere to look:")
    say(f"  the releases        {folder / 'home' / 'releases'}")
    say(f"  a report to read    {folder / 'home' / 'releases' / '0003' / 'private' / 'report.html'}")
    say(f"  the policy          {folder / 'input' / 'reveil.toml'}")
    say("  with your own table reveil init TABLE.csv, then reveil plan and reveil publish")


def _renew(folder: Path) -> None:
    if folder.exists() and (folder / MARK).exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()


def _head(path: Path) -> object:
    from reveil.read import read_table

    return read_table(str(path)).head(5)
