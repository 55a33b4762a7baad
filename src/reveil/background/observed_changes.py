"""Chances of change, counted in what people did, and written so that the file gives nobody away.

A transitions file is public once a series uses it. So a change is stated by its own count only if enough different
people made it; the rarer changes of a value are merged, and spread over all other values as these are frequent. Which
of them were seen, and by whom, is not in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl

from reveil.base.errors import Fault, InputError, stop_if
from reveil.base.text import plain_text
from reveil.base.words import agree, some
from reveil.history.history import History
from reveil.table.cells import texts

LEAST, FEW = 5, 30
PARTS = 1_000_000  # chances are written with six digits
MOST_SPREAD = 500  # values over which rare changes are spread; the file has a line for each pair


@dataclass(frozen=True, eq=False)
class ObservedChanges:
    """Chances of change from release to release. `few` are the values whose chances rest on few steps."""

    table: pl.DataFrame  # from, to, probability (texts); written as it is, a transitions file
    steps: int  # people seen in two releases that follow each other
    gaps: int  # in two that do not: not counted
    stated: int  # changes stated by their own count
    rarer: int  # changes that too few people made
    spread: bool  # over all other values, or left out
    few: pl.DataFrame  # value, steps

    def write(self, path: Path) -> None:
        self.table.write_csv(path, separator=";")

    @property
    def fate(self) -> str:
        """What became of the rarer changes."""
        return "merged" if self.spread else "left out"

    def to_dict(self) -> dict[str, Any]:
        counts = {"steps": self.steps, "gaps": self.gaps, "stated": self.stated, self.fate: self.rarer}
        return {**counts, "few steps": self.few.to_dicts()}

    def __repr__(self) -> str:
        gaps = f", {some(self.gaps, 'step')} over a gap left out" if self.gaps else ""
        return (
            f"{some(self.steps, 'step')} from one release to the next{gaps}; {some(self.stated, 'change')} stated, "
            f"{some(self.rarer, 'rarer one')} {self.fate}"
        )


def estimate_changes(
    seen: pl.DataFrame,
    *,
    least: int = LEAST,
    few: int = FEW,
    smoothing: Fraction = Fraction(1),
    spread: bool = True,
) -> ObservedChanges:
    """The chances of `seen`: person, release (a number; those that follow each other have none between), value.

    Of n steps from a value, k are changes to b by `least` people or more: k / (n + smoothing). The rarer changes and
    the smoothing are spread over all other values by their frequency, or not stated at all without `spread`. A value
    from which fewer than `least` people took a step changes as all values do together.

    >>> seen = pl.DataFrame({"person": [1, 1, 2, 2], "release": [1, 2, 1, 2], "value": ["a", "b", "a", "a"]})
    >>> estimate_changes(seen, least=1, smoothing=Fraction(0)).table.rows()
    [('a', 'a', '0.500000'), ('a', 'b', '0.500000'), ('b', 'a', '0.500000'), ('b', 'b', '0.500000')]
    """
    _check(seen, least, smoothing, spread)
    releases = seen["release"].unique().sort()
    rank = pl.DataFrame({"release": releases, "rank": range(len(releases))}, schema_overrides={"rank": pl.Int64})
    line = seen.join(rank, on="release").sort("person", "rank")
    pairs = line.select(
        "person",
        a="value",
        b=pl.col("value").shift(-1).over("person"),
        away=pl.col("rank").shift(-1).over("person") - pl.col("rank"),
    ).drop_nulls("b")
    steps = pairs.filter(pl.col("away") == 1)
    counted = steps.group_by("a", "b").agg(pl.len().alias("hits"), pl.col("person").n_unique().alias("people"))
    seldom = counted.filter((pl.col("a") != pl.col("b")) & (pl.col("people") < least)).select("a", "b")
    counts = dict(seen["value"].value_counts().sort("value").iter_rows())
    frequency = {value: max(count, least) for value, count in counts.items()}  # how rare a rare value is, is not told
    people, movers = _different_people(steps), _different_people(steps.join(seldom, on=["a", "b"], how="semi"))
    chances = _Chances(frequency, _stays(steps), people, movers, least, smoothing, spread)
    rows = list[tuple[str, str, str]]()
    totals = dict[str, int]()
    stated = rarer = 0
    changes = {key[0]: frame for key, frame in counted.partition_by("a", as_dict=True).items()}
    for value in frequency:
        mine = changes.get(value, counted.clear())
        hits = {b: (count, persons) for _, b, count, persons in mine.iter_rows()}
        totals[value] = sum(count for count, _ in hits.values())
        kept = [b for b, (_, persons) in hits.items() if b != value and persons >= least]
        stated += len(kept)
        rarer += sum(b != value for b in hits) - len(kept)
        rows += chances.lines(value, hits, kept)
    small = [(value, steps) for value, steps in totals.items() if steps < few]
    table = pl.DataFrame(rows, schema=dict.fromkeys(("from", "to", "probability"), pl.String), orient="row")
    scarce = pl.DataFrame(small, schema={"value": pl.String, "steps": pl.Int64}, orient="row")
    return ObservedChanges(table, steps.height, pairs.height - steps.height, stated, rarer, spread, scarce)


@dataclass(frozen=True)
class _Chances:
    frequency: dict[str, int]
    stays: Fraction  # of all steps, those that change nothing
    people: dict[str, int]  # by value: different people who took a step from it
    movers: dict[str, int]  # those whose step was one of its rarer changes
    least: int
    smoothing: Fraction
    spread: bool

    def lines(self, value: str, hits: dict[str, tuple[int, int]], kept: Sequence[str]) -> list[tuple[str, str, str]]:
        """From, to and chance of one value; it stays with what is left."""
        others = [b for b in self.frequency if b != value]
        if self.people.get(value, 0) < self.least:
            chances = self._over(others, 1 - self.stays) if self.spread else {}
        else:
            rare = sum(count for b, (count, _) in hits.items() if b != value and b not in kept)
            hidden = self.spread and self.movers.get(value, 0) >= self.least
            rest = (rare if hidden else 0) + self.smoothing
            total = hits.get(value, (0, 0))[0] + sum(hits[b][0] for b in kept) + rest
            chances = {b: Fraction(hits[b][0]) / total for b in kept} if total else {}
            if self.spread and total:
                chances |= self._over([b for b in others if b not in kept], rest / total)
        parts = {b: max(1, round(chance * PARTS)) for b, chance in chances.items() if chance}
        parts[value] = max(0 if parts else 1, PARTS - sum(parts.values()))
        return [(value, b, f"{parts[b] / PARTS:.6f}") for b in sorted(parts) if parts[b]]

    def _over(self, values: Sequence[str], mass: Fraction) -> dict[str, Fraction]:
        whole = sum(self.frequency[b] for b in values)
        return {b: mass * self.frequency[b] / whole for b in values}


def _different_people(steps: pl.DataFrame) -> dict[str, int]:
    return dict(steps.group_by("a").agg(pl.col("person").n_unique()).iter_rows())


def _stays(steps: pl.DataFrame) -> Fraction:
    return Fraction(int((steps["a"] == steps["b"]).sum()), steps.height)


def _check(seen: pl.DataFrame, least: int, smoothing: Fraction, spread: bool) -> None:
    faults = list[Fault]()
    if least < 1:
        faults.append(Fault("R319", "least", f"{least} is below 1", "use 5: so many people hide each other"))
    if smoothing < 0:
        faults.append(Fault("R319", "smoothing", f"{smoothing} is below 0", "use 0 for none, 1 for a little"))
    if twice := int(seen.select("person", "release").is_duplicated().sum()):
        message = "people have several rows in one release"
        faults.append(Fault("R319", "table", message, "name the column of the period (--period)", twice))
    line = seen.sort("person", "release")
    ranks = line["release"].rank("dense").cast(pl.Int64)
    if not ((ranks.diff() == 1) & (line["person"] == line["person"].shift(1))).any():
        message = "nobody is in two releases that follow each other"
        faults.append(Fault("R319", "table", message, "name a panel with --period, or the tables of several releases"))
    values = seen["value"].n_unique()
    if spread and values > MOST_SPREAD:
        message = f"{values:,} values, and rare changes are spread over {MOST_SPREAD:,} at most"
        faults.append(Fault("R319", "value", message, "group values, or leave rare changes out (--rare drop)"))
    stop_if(faults)


def seen_in_tables(tables: Sequence[pl.DataFrame], person: str, value: str, period: str | None) -> pl.DataFrame:
    """Person, release and value of everybody: of one table with a period, or of several in their order."""
    faults = list[Fault]()
    for name in dict.fromkeys((person, value, *([period] if period else []))):
        lacking = [number for number, table in enumerate(tables, 1) if name not in table.columns]
        if lacking:
            which = f"table {', '.join(map(str, lacking))} {agree(len(lacking), 'has', 'have')}"
            message = f"{which} no column {name!r}; there are {', '.join(tables[lacking[0] - 1].columns)}"
            faults.append(Fault("R319", "table", message, "name the column as it is written"))
    stop_if(faults)
    parts = []
    for number, table in enumerate(tables):
        when = table[period].rank("dense").cast(pl.Int64) if period else pl.repeat(number, table.height, eager=True)
        parts.append(
            pl.DataFrame(
                {
                    "person": texts(table[person]),
                    "release": when.cast(pl.Int64),
                    "value": texts(table[value]).fill_null(""),
                }
            )
        )
    return pl.concat(parts).drop_nulls(["person", "release"])


def seen_in_series(history: History, column: str) -> pl.DataFrame:
    """The same of the releases of a series, from its memory: what was shown, so that nobody learns of the others."""
    if column not in history.codebook:
        known = f"its sensitive columns are {', '.join(history.codebook)}" if history.codebook else "it has no release"
        raise InputError(Fault("R319", f"column {column!r}", f"is not in the series: {known}", "name a table instead"))
    book = pl.Series([plain_text(value) for value in history.codebook[column]], dtype=pl.String)
    shown = history.members.filter(pl.col("group") >= 0)
    return shown.select("person", pl.col("release").cast(pl.Int64), value=book.gather(shown[column]))
