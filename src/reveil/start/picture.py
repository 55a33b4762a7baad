"""The ending of the demo in one picture: who is exposed and what can be learned, by way of publishing."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import polars as pl
from markupsafe import Markup, escape

from reveil.base.words import some
from reveil.report.plots import Bar, bars

PAGE = Markup(
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title><style>{css}</style>'
    "</head>"
    "<body><main><h1>{title}</h1><p>{lead}</p>{plots}<p>{words}</p></main></body></html>"
)
TITLE = "The same people, published in several ways"
WORDS = (
    "Exposed: whose value follows for certain from all releases together. Query error: the median error of COUNT "
    "queries on the last release, for those who use it. Both should be short."
)


def write_picture(compared: pl.DataFrame, path: Path) -> Path:
    """Draw the table of `reveil.start.demo.compare` as a page that needs nothing else."""
    people, releases = compared["people"].max(), compared["release"].n_unique()
    lead = f"{some(int(people or 0), 'person', 'people')}, {some(releases, 'release')}."  # type: ignore[arg-type]
    css = Markup(files("reveil.report").joinpath("report.css").read_text(encoding="utf-8"))
    plots = Markup("").join(_plots(compared, int(people or 1)))  # type: ignore[arg-type]
    page = PAGE.format(title=TITLE, css=css, lead=escape(lead), plots=plots, words=WORDS)
    path.write_text(page, encoding="utf-8")
    return path


def _plots(compared: pl.DataFrame, people: int) -> list[Markup]:
    last = compared.group_by("way", "known", maintain_order=True).last()
    drawn = []
    for known in last["known"].unique(maintain_order=True):
        rows = last.filter(pl.col("known") == known)
        title = f"People exposed after the last release, with {known:.0%} of them known"
        items = [Bar(way, n, f"{n:,} of {people:,}") for way, n in rows.select("way", "exposed").iter_rows()]
        drawn.append(_titled(title, bars(title, items, maximum=max(1, *rows["exposed"]))))
    errors = last.unique("way", maintain_order=True)
    items = [Bar(way, error, f"{error:.1%}") for way, error in errors.select("way", "query error").iter_rows()]
    title = "Median error of COUNT queries on the last release"
    return [*drawn, _titled(title, bars(title, items))]


def _titled(title: str, plot: Markup) -> Markup:
    return Markup("<section><h2>{}</h2>{}</section>").format(title, plot)
