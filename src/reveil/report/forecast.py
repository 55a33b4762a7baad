"""The forecast of a series as a page: people withheld, counterfeits, loss and highest chance, release by release."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from reveil.ledger.store import refused_by_disk
from reveil.report.plots import line

if TYPE_CHECKING:
    from reveil.measure.ahead import Ahead, Forecast


def page(forecast: Forecast) -> str:
    """The page as text: one plot for each figure, and the table that they are drawn from."""
    css = files("reveil.report").joinpath("report.css").read_text(encoding="utf-8")
    made = [one for one in forecast.releases if one.refused is None]
    parts = [_pace(forecast), *_plots(made), _table(forecast)]
    parts += [
        Markup("<p><b>Release {} would be refused:</b> {}</p>").format(one.release, one.refused)
        for one in forecast.releases
        if one.refused is not None
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Forecast</title>'
        f'<style>{css}</style></head><body><main><header><p class="kicker">Reveil · forecast · '
        '<span class="badge">internal</span></p><h1>What the next releases would be like</h1></header>'
        f"{Markup('').join(parts)}</main></body></html>\n"
    )


def _pace(forecast: Forecast) -> Markup:
    pace = forecast.pace
    return Markup(
        "<p>From one release to the next {:.1%} leave, {:.1%} of those away return, and {:.1%} arrive ({}). Made in a "
        "copy of the series, and deleted.</p>"
    ).format(float(pace.leave), float(pace.back), float(pace.arrive), pace.source)


def _plots(made: Sequence[Ahead]) -> list[Markup]:
    if not made:
        return []
    names = [f"release {one.release}" for one in made]
    figures = {
        "People withheld": [float(one.withheld or 0) for one in made],
        "Counterfeits": [float(one.counterfeits or 0) for one in made],
        "Loss (NCP per cell)": [one.loss or 0.0 for one in made],
        "Highest chance of a guess, as certified": [float(Fraction(one.worst)) for one in made if one.worst],
    }
    return [
        Markup("<figure><figcaption>{}</figcaption>{}</figure>").format(title, line(title, values, names))
        for title, values in figures.items()
        if len(values) == len(made)
    ]


def _table(forecast: Forecast) -> Markup:
    header, lines = forecast.table()
    rows = [Markup("<tr>{}</tr>").format(Markup("").join(Markup("<th>{}</th>").format(name) for name in header))]
    rows += [
        Markup("<tr>{}</tr>").format(Markup("").join(Markup("<td>{}</td>").format(cell) for cell in one))
        for one in lines
    ]
    return Markup("<table>{}</table>").format(Markup("").join(rows))


def write_page(forecast: Forecast, file: Path) -> None:
    """Write the page into a file, or say why the disk refuses it."""
    try:
        file.write_text(page(forecast), encoding="utf-8")
    except OSError as error:
        raise refused_by_disk(error) from error
