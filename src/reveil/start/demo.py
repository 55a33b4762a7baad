"""The main job on a built-in series, so that a newcomer sees the point within two minutes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from reveil.base.progress import Progress, silent
from reveil.cli import terminal
from reveil.plan.cutting import mondrian
from reveil.publish import open_series
from reveil.simulation.scenario import Scenario
from reveil.simulation.simulate import write
from reveil.start.picture import write_picture

MARK = ".reveil-demo"  # only a folder that a demo made is ever removed


def run(folder: Path, rows: int) -> None:
    """Simulate a hospital, publish three releases, verify them, attack them, and say where to look."""
    hospital = Scenario(rows=rows, releases=3, values="never", seed=7)  # refused before the folder is made anew
    _renew(folder)
    with _compiling_ahead(folder / "compiled-ahead"):
        _run(folder, hospital)


@contextmanager
def _compiling_ahead(folder: Path) -> Iterator[None]:
    """On the first run after installation, another process compiles what is needed later while this one publishes."""
    if mondrian.compiling() is None:
        yield
        return
    small = f"compare(Path({str(folder)!r}), 120, 3, shares=(0.04,), ways=('m-invariance',), limit=1.0)"
    job = f"from pathlib import Path; from reveil.start.demo import compare; {small}"
    other = subprocess.Popen([sys.executable, "-c", job], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        other.terminate()  # what it has not compiled by now, this process has
        other.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _run(folder: Path, hospital: Scenario) -> None:
    say = terminal.say
    say("A hospital publishes its admissions every quarter. People come, go and return; a diagnosis stays.\n")
    tables = [path for path in write(hospital, folder / "input") if "release" in path.name]
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
    assert first.values is not None  # the policy publishes two tables
    say(str(first.values["diagnosis"].head(6)))
    say("\n$ reveil verify")
    checked = series.verify()
    holding = sum(1 for result in checked.values() if getattr(result, "holds", False))
    say(f"  {holding} of {len(checked)} releases hold, from their bytes.")
    for limit in first.certificate.limits:
        say(f"Note: {limit}")
    say("\n$ reveil audit --share 0.04")
    with terminal.progress(False) as show:
        found_by = series.audit(share="0.04", worst=0, limit=5.0, progress=show)
        say(f"  {found_by!r}")
        for text in found_by.verdict:
            say(f"  {text}")
        say(
            "\nThe same kind of people published in three ways; people exposed after each release, with nobody known to"
        )
        say("the adversary, and with 4 % of the people known; and how far off COUNT queries are in the end:")
        compared = compare(folder / "compare", 600, 4, shares=(0.0, 0.04), limit=2.0, ways=SHOWN, progress=show)
    say(exposed_lines(compared))
    drawn = write_picture(compared, folder / "compared.html")
    say("\nWhere to look:")
    say(f"  the releases        {folder / 'home' / 'releases'}")
    say(f"  a report to read    {folder / 'home' / 'releases' / '0003' / 'private' / 'report.html'}")
    say(f"  the ways compared   {drawn}")
    say(f"  the policy          {folder / 'input' / 'reveil.toml'}")
    called = "reveil" if shutil.which("reveil") else sys.argv[0]  # as it can be pasted
    say(f"  the series so far   {called} history -p {folder / 'input' / 'reveil.toml'} --home {folder / 'home'}")
    say(f"  with your own table {called} init TABLE.csv, then {called} plan and {called} publish")
    say(f"  in the browser      {called} serve --demo")


def _renew(folder: Path) -> None:
    if folder.exists() and (folder / MARK).exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()


def _head(path: Path) -> object:
    from reveil.table.read import read_table
    from reveil.table.types import looked

    return looked(read_table(str(path))).head(5)


WAYS: dict[str, dict[str, Any]] = {
    "each release k-anonymous (Mondrian)": {"guarantee": {"model": "k-anonymity", "k": 4}},
    "each release l-diverse (Mondrian)": {"guarantee": {"model": "l-diversity", "l": 4, "k": 4}},
    "each release l-diverse (global recoding)": {
        "guarantee": {"model": "l-diversity", "l": 4, "k": 4},
        "method": {"name": "full-domain", "suppress": "0.05"},
    },
    "m-invariance": {"guarantee": {"model": "m-invariance", "m": 4}},
    "closed cohorts, one table": {"guarantee": {"model": "compromise-safety", "m": 4, "compromised": 1, "refill": 2}},
    "closed cohorts, two tables (default)": {
        "guarantee": {"model": "compromise-safety", "m": 4, "compromised": 1, "k": 5},
        "method": {"publish": "anatomy", "infeasible": "wait"},
    },
}
QUERIES, SELECTED = 500, 0.05  # COUNT queries, and the share of people that each selects
SHOWN = tuple(list(WAYS)[number] for number in (1, 4, 5))  # in the demo: naive, one table, two tables


def compare(
    folder: Path,
    rows: int,
    releases: int,
    *,
    shares: Sequence[float] = (0.0, 0.01, 0.04),
    limit: float = 20.0,
    ways: Sequence[str] = tuple(WAYS),
    seed: int = 7,
    progress: Progress = silent,
) -> pl.DataFrame:
    """The same people published in several ways, each attacked with some of the people known: way, known, release,
    people, exposed, undecided and query error (at the end). Everything is written below `folder`, which must be new or
    empty. The query error is the median of COUNT queries that a twentieth of the people answer, in the last release.

    `limit` bounds the seconds of one attack; `ways` are some of WAYS.
    """
    tables = [
        p
        for p in write(Scenario(rows=rows, releases=releases, values="never", seed=seed), folder / "input")
        if "release" in p.name
    ]
    lines: list[dict[str, Any]] = []
    for number, (way, share, audit, error) in enumerate(_attacked(folder, tables, shares, limit, seed, ways)):
        progress("comparing", number / (len(ways) * len(shares)))
        s = audit.summary
        end = {"undecided": s["undecided"], "query error": error}
        lines += [{"way": way, "known": share, **row, **end} for row in s["trend"]]
    return pl.DataFrame(lines, infer_schema_length=None)


def exposed_lines(table: pl.DataFrame) -> str:
    """People exposed after each release and the query error in the end, a line for each way and share."""
    rows = [
        (str(way), f"{known:.0%} known", *part["exposed"].to_list(), f"{part['query error'][-1]:.1%}")
        for (way, known), part in table.group_by("way", "known", maintain_order=True)
    ]
    releases = table["release"].unique(maintain_order=True)
    return terminal.table(("published", "", *(f"after {r}" for r in releases), "query error"), rows)


def _attacked(
    folder: Path, tables: Sequence[Path], shares: Sequence[float], limit: float, seed: int, ways: Sequence[str]
) -> Iterator[tuple[str, float, Any, float]]:
    """Every way of publishing, attacked with every share of known people, and the query error of its last release."""
    import tomllib

    from reveil.measure.measure import measure
    from reveil.policy.policy import load_policy

    base = tomllib.loads((folder / "input" / "reveil.toml").read_text(encoding="utf-8"))
    for number, way in enumerate(ways):
        policy = load_policy(base | {"method": {"infeasible": "withhold"}} | WAYS[way])
        series = open_series(policy, folder / f"way-{number}")
        for table in tables:
            series.publish(str(table), seed=seed)
        usable = measure(series.releases[-1], str(tables[-1]), policy, queries=QUERIES, selectivity=[SELECTED])
        error = usable.queries[0].median_relative or 0.0
        for share in shares:
            yield way, share, series.audit(share=share, limit=limit, seed=seed, worst=0), error
