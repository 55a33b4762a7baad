"""The ending of the demo in one picture: who is exposed and what can be learned, by way of publishing."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from markupsafe import Markup

from reveil.base.words import some
from reveil.report.page import plot_page
from reveil.report.plots import Bar, bars

TITLE = "The same people, published in several ways"
WORDS = (
    "Exposed: whose value follows for certain from all releases together. Query error: the median error of COUNT "
    "queries on the last release, for those who use it. Both should be short."
)


def write_picture(compared: pl.DataFrame, path: Path) -> Path:
    """Draw the table of `reveil.start.demo.compare` as a page that needs nothing else."""
    people, releases = compared["people"].max(), compared["release"].n_unique()
    lead = f"{some(int(people or 0), 'person', 'people')}, {some(releases, 'release')}."  # type: ignore[arg-type]
    plots = _plots(compared, int(people or 1))  # type: ignore[arg-type]
    path.write_text(plot_page(TITLE, lead, plots, WORDS), encoding="utf-8")
    return path


def _plots(compared: pl.DataFrame, people: int) -> list[tuple[str, Markup]]:
    last = compared.group_by("way", "known", maintain_order=True).last()
    drawn = []
    for known in last["known"].unique(maintain_order=True):
        rows = last.filter(pl.col("known") == known)
        title = f"People exposed after the last release, with {known:.0%} of them known"
        items = [Bar(way, n, f"{n:,} of {people:,}") for way, n in rows.select("way", "exposed").iter_rows()]
        drawn.append((title, bars(title, items, maximum=max(1, *rows["exposed"]))))
    errors = last.unique("way", maintain_order=True)
    items = [Bar(way, error, f"{error:.1%}") for way, error in errors.select("way", "query error").iter_rows()]
    title = "Median error of COUNT queries on the last release"
    return [*drawn, (title, bars(title, items))]
