"""Who stands out by which columns, in one picture."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from reveil.base.words import some
from reveil.measure.combinations import Combination, CombinationRisk
from reveil.report.page import plot_page
from reveil.report.plots import Bar, bars

WORDS = (
    "A row is unique by some columns where no other row has the same values there; missing is a value. Whoever knows "
    "those values of a person finds the person's row. Last: the part that combinations with a column have in all SUDA "
    "scores, which count the combinations that are enough while no part of them is; columns share a combination, so "
    "the parts add up to more than the whole."
)


def risk_page(found: CombinationRisk, show: int = 10) -> Markup:
    """A page that needs nothing else: the most telling combinations, of each size, and the columns' parts.

    >>> import polars as pl
    >>> from reveil.measure.combinations import combination_risk
    >>> people = pl.DataFrame({"sex": ["f", "f", "f", "m"], "zip": [1, 1, 2, 2]})
    >>> risk_page(combination_risk(people)).count("<svg")
    3
    """
    lead = (
        f"Every combination of up to {some(found.size, 'column')} was looked at: "
        f"{len(found.combinations):,}, of which the {min(show, len(found.combinations)):,} most telling are shown."
    )
    shares = sorted(found.columns.items(), key=lambda pair: -pair[1])
    parts = bars("Columns", [Bar(name, float(s), f"{float(s):.1%}") for name, s in shares], maximum=1)
    plots = [
        ("Rows that are unique, by columns", _unique("Rows that are unique", found.combinations[:show])),
        ("With how many columns", _unique("The most telling combination of each size", _best(found))),
        ("Which columns tell people apart", parts),
    ]
    return plot_page(found.headline, lead, plots, WORDS)


def _best(found: CombinationRisk) -> list[Combination]:
    """The most telling combination of each size."""
    first: dict[int, Combination] = {}
    for one in found.combinations:
        first.setdefault(len(one.columns), one)
    return [first[size] for size in sorted(first)]


def _unique(title: str, combinations: Sequence[Combination]) -> Markup:
    items = [
        Bar(", ".join(one.columns), float(one.share), f"{one.unique:,} of {one.rows:,}: {_percent(one)}")
        for one in combinations
    ]
    return bars(title, items, maximum=1)


def _percent(one: Combination) -> str:
    return "less than 0.1%" if 0 < 1000 * one.share < 1 else f"{float(one.share):.1%}"
