"""The main job on a built-in series, so that a newcomer sees the point within two minutes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from reveil import terminal
from reveil.plan.contract import Progress, silent
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
    holding = sum(1 for result in found.values() if getattr(result, "holds", False))
    say(f"  {holding} of {len(found)} releases hold, from their bytes.")
    for limit in first.certificate.limits:
        say(f"Note: {limit}")
    say("\n$ reveil audit --share 0.04")
    with terminal.progress(False) as show:
        found_by = series.audit(share="0.04", worst=0, limit=20.0, progress=show)
        say(f"  {found_by!r}")
        say(
            "\nThe same kind of people published in three ways; people exposed after each release, with nobody known to"
        )
        say("the adversary, and with 4 % of the people known:")
        exposed = compare(folder / "compare", 300, 4, shares=(0.0, 0.04), limit=4.0, recoding=False, progress=show)
    say(exposed_lines(exposed))
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


WAYS: dict[str, dict[str, Any]] = {
    "each release l-diverse (Mondrian)": {"model": "l-diversity", "l": 4, "k": 4},
    "m-invariance": {"model": "m-invariance", "m": 4},
    "closed cohorts (default)": {"model": "compromise-safety", "m": 4, "compromised": 1, "refill": 2},
}
GLOBAL = "each release l-diverse (global recoding)"


def compare(
    folder: Path,
    rows: int,
    releases: int,
    *,
    shares: Sequence[float] = (0.0, 0.01, 0.04),
    limit: float = 20.0,
    recoding: bool = True,
    seed: int = 7,
    progress: Progress = silent,
) -> pl.DataFrame:
    """The same people published in several ways, each attacked with some of the people known: way, known, release,
    people, exposed, undecided (at the end). Everything is written below `folder`, which must be new or empty.

    `limit` bounds the seconds of one attack; `recoding` adds tables of a global recoding, as other tools make them.
    """
    tables = [
        p
        for p in write(Scenario(rows=rows, releases=releases, values="never", seed=seed), folder / "input")
        if "release" in p.name
    ]
    found: list[dict[str, Any]] = []
    for number, (way, share, audit) in enumerate(_attacked(folder, tables, shares, limit, seed, recoding)):
        progress("comparing", number / ((len(WAYS) + 1) * len(shares)))
        s = audit.summary
        found += [{"way": way, "known": share, **row, "undecided": s["undecided"]} for row in s["trend"]]
    return pl.DataFrame(found)


def exposed_lines(table: pl.DataFrame) -> str:
    """People exposed after each release, a line for each way and share."""
    rows = [
        (str(way), f"{known:.0%} known", *part["exposed"].to_list())
        for (way, known), part in table.group_by("way", "known", maintain_order=True)
    ]
    releases = table["release"].unique(maintain_order=True)
    return terminal.table(("published", "", *(f"after {r}" for r in releases)), rows)


def _attacked(
    folder: Path, tables: Sequence[Path], shares: Sequence[float], limit: float, seed: int, recoding: bool
) -> Iterator[tuple[str, float, Any]]:
    """Every way of publishing, attacked with every share of known people."""
    import tomllib

    from reveil.policy import load_policy

    if recoding:
        yield from _attacked_recoding(tables, shares, limit, seed)
    base = tomllib.loads((folder / "input" / "reveil.toml").read_text(encoding="utf-8"))
    for number, (way, guarantee) in enumerate(WAYS.items()):
        policy = load_policy(base | {"guarantee": guarantee, "method": {"infeasible": "withhold"}})
        series = open_series(policy, folder / f"way-{number}")
        for table in tables:
            series.publish(str(table), seed=seed)
        yield from ((way, share, series.audit(share=share, limit=limit, seed=seed, worst=0)) for share in shares)


def _attacked_recoding(
    tables: Sequence[Path], shares: Sequence[float], limit: float, seed: int
) -> Iterator[tuple[str, float, Any]]:
    from reveil.audit.api import audit
    from reveil.read import read_table

    frames = [read_table(str(table)) for table in tables]
    published, people = zip(*(_recoded_globally(frame, n) for n, frame in enumerate(frames, 1)), strict=True)
    who = pl.concat(people)
    truth = who.select(pl.col("patient").cast(pl.String).alias("person"), "release", value="diagnosis")
    how: dict[str, Any] = {"limit": limit, "seed": seed, "worst": 0, "change": "never", "identifier": "patient"}
    for share in shares:
        yield GLOBAL, share, audit(list(published), who.drop("diagnosis"), truth=truth, share=share, **how)


def _recoded_globally(frame: pl.DataFrame, number: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """One release as a global recoding makes it: the same level everywhere, the least that makes all but 5 % of the
    rows 4-diverse; the others are left out. Also the people who are in it, with the truth."""
    levels = sorted(
        product((10, 20, 40, 200), (3, 2, 1, 0), (False, True)), key=lambda level: (sum(map(bool, level)), level)
    )
    for width, digits, star in levels:
        low = pl.col("age") // width * width
        coded = frame.select(
            "patient",
            "diagnosis",
            pl.format("[{}, {}[", low, low + width).alias("age"),
            (pl.col("zip").cast(pl.String).str.head(digits) + "*" * (5 - digits)).alias("zip"),
            (pl.lit("*") if star else pl.col("sex")).alias("sex"),
        )
        diverse = coded.filter(pl.col("diagnosis").n_unique().over("age", "zip", "sex") >= 4)
        if diverse.height >= 0.95 * coded.height or (width, digits, star) == levels[-1]:
            break
    people = frame.join(diverse.select("patient"), on="patient", how="semi")
    known = people.select("patient", "age", pl.col("zip").cast(pl.String), "sex", "diagnosis")
    return diverse.drop("patient"), known.with_columns(release=pl.lit(str(number)))
