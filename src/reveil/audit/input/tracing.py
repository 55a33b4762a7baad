"""Rows that can be followed from release to release by columns that nobody protects, such as a ward or a case number.

A row is followed to another release if no other row of either has the same entries there. It rests on the assumption
that these columns do not change, so it is an attack of its own. If one person alone fits all groups of the followed
rows, they are that person's.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from reveil.audit.input.tables import Matched
from reveil.base.text import plain_text
from reveil.published.format import COUNT, GROUP

Places = dict[str, list[tuple[int, str]]]  # entries -> release and group of the only row that has them


@dataclass(frozen=True)
class Followed:
    """Which columns gave rows away, how many rows were followed, and of whom they are (by number)."""

    columns: tuple[str, ...]
    rows: int
    people: frozenset[int]


def trace(matched: Matched, column: str) -> Followed:
    """Follow the rows of all releases by what stands beside the sensitive column."""
    shown = [fit.released for fit in matched.fitted]
    used = {GROUP, COUNT, "rows", column, matched.columns.identifier, *matched.columns.known, *matched.columns.empty}
    tables = [one.rows for one in shown if one.published.values is None]
    columns = [name for name in (tables[0].columns if tables else ()) if name not in used]
    columns = [name for name in columns if all(name in table.columns for table in tables)]
    if len(tables) < max(2, len(shown)) or not columns:
        return Followed((), 0, frozenset())
    followed = [places for places in _entries(matched, columns).values() if len(places) > 1]
    people = {next(iter(fits)) for places in followed if len(fits := _who_fits(matched, places)) == 1}
    return Followed(tuple(columns), sum(map(len, followed)), frozenset(people))


def _entries(matched: Matched, columns: list[str]) -> Places:
    """Where each combination of entries stands, if it is that of one row of a release."""
    places: Places = {}
    for number, fit in enumerate(matched.fitted):
        texts = [fit.released.rows[name].map_elements(plain_text, return_dtype=pl.String) for name in columns]
        key = pl.concat_str([text.fill_null("") for text in texts], separator="\0")
        table = fit.released.rows.select(GROUP, "rows", key=pl.select(key).to_series())
        single = table.filter(~pl.col("key").is_duplicated() & (pl.col("rows") == 1))
        for group, entry in single.select(GROUP, "key").iter_rows():
            places.setdefault(entry, []).append((number, group))
    return places


def _who_fits(matched: Matched, places: list[tuple[int, str]]) -> set[int]:
    """People who may be in all of these groups."""
    fits: set[int] | None = None
    for number, label in places:
        fit = matched.fitted[number]
        group = fit.released.labels.to_list().index(label)
        here = set(fit.person[(fit.group == group) & fit.places.possible].tolist())
        fits = here if fits is None else fits & here
    return fits or set()
