"""A page of plots that needs nothing else: the style of the report, no script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from markupsafe import Markup

PAGE = Markup(
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title><style>{css}</style>'
    "</head>"
    "<body><main><h1>{title}</h1><p>{lead}</p>{plots}<footer>{words}</footer></main></body></html>\n"
)


def plot_page(title: str, lead: str, plots: Sequence[tuple[str, Markup]], words: str) -> Markup:
    """A page with a title, a sentence, titled plots and what they mean.

    >>> from reveil.report.plots import Bar, bars
    >>> drawn = bars("By column", [Bar("age", 1, "1")])
    >>> made = plot_page("Loss", "Of one table.", [("By column", drawn)], "Short is good.")
    >>> made.count("<svg"), "<h2>By column</h2>" in made
    (1, True)
    """
    css = Markup(files("reveil.report").joinpath("report.css").read_text(encoding="utf-8"))
    drawn = Markup("").join(Markup("<section><h2>{}</h2>{}</section>").format(*plot) for plot in plots)
    return PAGE.format(title=title, css=css, lead=lead, plots=drawn, words=words)
