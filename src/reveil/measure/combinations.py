"""Who stands out by which columns: every combination of quasi-identifiers up to a size, before anything is published.

A row is *unique* by some columns where no other row has the same values there. Such a combination is a *minimal sample
unique* (MSU) of the row where no part of it is enough (SUDA: Elliot, Manning and Ford 2002). Missing is a value.

- *distinction*: different combinations per row; *separation*: the share of pairs of rows that differ somewhere.
- SUDA score of a row: the sum over its MSUs of (A - m)(A - m - 1) ... (A - M) for an MSU of m of A columns, M being the
  largest size that is looked at and at most A - 1: smaller MSUs, and more of them, count more.
- DIS: how likely a match with a unique row is right if the table is a sample of share pi: pi U / (pi U + 2 (1 - pi) P),
  with U unique rows and P pairs by all columns (Skinner and Elliot 2002). Up to here all is exact.
- DIS score of a row with the SUDA score S, as in sdcMicro: its odds are those of DIS, times S^Q, times the mean of S^-Q
  over the rows with a score, where Q = 1 + (8 - A)/20, and at least 0. Rows of equal scores have the DIS of the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from itertools import combinations as choose
from math import comb, prod
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.arrays import I64
from reveil.base.errors import Fault, InputError, stop_if
from reveil.base.sections import exact
from reveil.base.words import agree, some
from reveil.measure.population_risk import PopulationRisk

SAMPLED = "0.01"  # the share of the population in a table, unless told
MOST = 20_000  # combinations that are looked at
LARGEST = 2**62  # no packed key may be larger


@dataclass(frozen=True)
class Combination:
    """One combination of columns: how many different values it has, and how many rows stand alone."""

    columns: tuple[str, ...]
    rows: int
    classes: int
    smallest: int
    unique: int
    alike: int  # pairs of rows that are equal here

    @property
    def share(self) -> Fraction:
        """The share of rows that are unique."""
        return Fraction(self.unique, max(1, self.rows))

    @property
    def distinction(self) -> Fraction:
        return Fraction(self.classes, max(1, self.rows))

    @property
    def separation(self) -> Fraction:
        return 1 - Fraction(self.alike, max(1, comb(self.rows, 2)))

    def __str__(self) -> str:
        verb = agree(self.unique, "is", "are")
        share = f"{100 * float(self.share):.1f} % of {some(self.rows, 'row')} {verb} unique"
        return f"{share} by {', '.join(self.columns)}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "columns": list(self.columns),
            "unique": self.unique,
            "share": float(self.share),
            "smallest": self.smallest,
            "classes": self.classes,
            "distinction": float(self.distinction),
            "separation": float(self.separation),
        }


@dataclass(frozen=True, eq=False)
class CombinationRisk:
    """All combinations up to a size, and the scores of each row."""

    size: int
    combinations: tuple[Combination, ...]  # the most telling first, then the smaller
    scores: tuple[int, ...]  # SUDA score of each row
    minimal: tuple[int, ...]  # MSUs of each row
    columns: dict[str, Fraction]  # the share of all scores that MSUs with this column have
    dis: Fraction
    population: PopulationRisk | None = None  # where the table is said to be a sample

    @property
    def dis_scores(self) -> list[float]:
        """The DIS score of each row."""
        counts, q = Counter(score for score in self.scores if score), _exponent(len(self.columns))
        least = min(counts, default=1)
        mean = sum(n * (score / least) ** -q for score, n in counts.items()) / max(1, counts.total())
        worth = {score: (score / least) ** q * mean for score in counts}
        return [_raised(self.dis, worth[score]) if score else 0.0 for score in self.scores]

    @property
    def headline(self) -> str:
        """The most telling combination in one line."""
        return str(self.combinations[0])

    def __repr__(self) -> str:
        return f"<CombinationRisk: {self.headline}; {some(len(self.combinations), 'combination')}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(', '.join(one.columns))}</td><td>{one.unique:,}</td><td>{one.smallest:,}</td></tr>"
            for one in self.combinations[:10]
        )
        head = "<tr><th>columns</th><th>unique</th><th>smallest k</th></tr>"
        return f"<p>{escape(self.headline)}.</p><table>{head}{rows}</table>"

    def to_dict(self) -> dict[str, Any]:
        return {
            "size": self.size,
            "rows": len(self.scores),
            "rows_with_minimal_uniques": sum(1 for score in self.scores if score),
            "minimal_uniques": sum(self.minimal),
            "highest_score": max(self.scores, default=0),
            "dis": float(self.dis),
            "columns": {name: float(share) for name, share in self.columns.items()},
            "combinations": [one.to_dict() for one in self.combinations],
            "population": None if self.population is None else self.population.to_dict(),
        }


def combination_risk(
    table: pl.DataFrame, keys: Sequence[str] | None = None, *, size: int = 3, sampled: object = SAMPLED
) -> CombinationRisk:
    """The risk of a table by every combination of up to `size` of its columns (or of `keys`).

    `sampled` is the share of the population that is in the table, for DIS.

    >>> people = pl.DataFrame({"sex": ["f", "f", "f", "m"], "zip": [1, 1, 2, 2], "year": [70, 70, 80, 80]})
    >>> found = combination_risk(people, size=2)
    >>> str(found.combinations[0]), found.scores
    ('50.0 % of 4 rows are unique by sex, zip', (0, 0, 2, 2))
    """
    names = list(table.columns if keys is None else keys)
    share = share_of_population(sampled)
    stop_if(_faults(table, names, size))
    codes = [table[name].rank("dense").fill_null(0).to_numpy().astype(np.int64) for name in names]
    search = _Search(names, codes, table.height, min(size, len(names)))
    search.run()
    total = max(1, int(search.scores.sum()))
    alone, pairs = _everything(codes, table.height)
    lone, twins = share * alone, 2 * (1 - share) * pairs
    return CombinationRisk(
        size=search.size,
        combinations=tuple(sorted(search.found, key=lambda one: (-one.unique, len(one.columns)))),
        scores=tuple(search.scores.tolist()),
        minimal=tuple(search.minimal.tolist()),
        columns={name: Fraction(part, total) for name, part in search.parts.items()},
        dis=lone / (lone + twins) if lone + twins else Fraction(0),
    )


class _Search:
    """Combinations by rising size; a row's combination is minimal where no part of one column less is unique."""

    def __init__(self, names: Sequence[str], codes: Sequence[I64], rows: int, size: int) -> None:
        self.names, self.codes, self.rows, self.size = names, codes, rows, size
        self.found: list[Combination] = []
        self.scores = np.zeros(rows, dtype=object)  # products of many columns leave 64 bits
        self.minimal = np.zeros(rows, dtype=np.int64)
        self.parts = dict.fromkeys(names, 0)

    def run(self) -> None:
        before: dict[tuple[int, ...], NDArray[np.uint8]] = {}
        for m in range(1, self.size + 1):
            now = {}
            for chosen in choose(range(len(self.names)), m):
                unique = self._look(chosen)
                now[chosen] = np.packbits(unique)
                for part in choose(chosen, m - 1) if m > 1 else ():
                    unique &= ~np.unpackbits(before[part], count=self.rows).astype(bool)
                self._add(chosen, unique)
            before = now

    def _look(self, chosen: tuple[int, ...]) -> NDArray[np.bool_]:
        """Which rows are unique by these columns."""
        ids, sizes = _classes([self.codes[c] for c in chosen], self.rows)
        columns = tuple(self.names[c] for c in chosen)
        alike = int((sizes * (sizes - 1) // 2).sum())
        smallest = int(sizes.min()) if len(sizes) else 0
        self.found.append(Combination(columns, self.rows, len(sizes), smallest, int((sizes == 1).sum()), alike))
        return np.asarray(sizes[ids] == 1, dtype=np.bool_)

    def _add(self, chosen: tuple[int, ...], minimal: NDArray[np.bool_]) -> None:
        columns, last = len(self.names), min(self.size, len(self.names) - 1)
        weight = prod(columns - i for i in range(len(chosen), last + 1))
        rows = int(minimal.sum())
        self.minimal[minimal] += 1
        self.scores[minimal] += weight
        for c in chosen:
            self.parts[self.names[c]] += weight * rows


def _classes(codes: Sequence[I64], rows: int) -> tuple[I64, I64]:
    """The class of each row by these columns, and the rows of each class."""
    ids, span = np.zeros(rows, dtype=np.int64), 1
    for column in codes:
        width = int(column.max(initial=0)) + 1
        if span * width >= LARGEST:
            ids = np.unique(ids, return_inverse=True)[1].astype(np.int64)
            span = rows
        ids, span = ids * width + column, span * width
    if span <= 4 * rows:  # numbers without sorting
        there = np.bincount(ids, minlength=span)
        used = there > 0
        return (np.cumsum(used) - 1)[ids], there[used]
    _, ids, sizes = np.unique(ids, return_inverse=True, return_counts=True)
    return ids, sizes


def _everything(codes: Sequence[I64], rows: int) -> tuple[int, int]:
    """Unique rows and pairs by all columns."""
    sizes = _classes(codes, rows)[1]
    return int((sizes == 1).sum()), int((sizes == 2).sum())


def _exponent(columns: int) -> float:
    """How much scores count beside the table's DIS: less, the more columns there are."""
    return max(0.0, 1 + (8 - columns) / 20)


def _raised(chance: Fraction, factor: float) -> float:
    """A chance with its odds times a factor.

    >>> _raised(Fraction(1, 2), 3)
    0.75
    """
    return float(chance) * factor / (float(chance) * factor + float(1 - chance))


def share_of_population(sampled: object) -> Fraction:
    """The share as an exact number, or a refusal."""
    try:
        share = exact(sampled)
    except ValueError as error:
        raise InputError(Fault("R900", "sampled", f"{sampled!r} is not a number", str(error))) from None
    if not 0 < share <= 1:
        raise InputError(Fault("R900", "sampled", f"{sampled} is no share of a population", "use a share such as 0.01"))
    return share


def _faults(table: pl.DataFrame, names: Sequence[str], size: int) -> list[Fault]:
    faults = [
        Fault("R901", f"column {name!r}", "is not in the table", f"choose among {', '.join(table.columns)}")
        for name in names
        if name not in table.columns
    ]
    if len(set(names)) < len(names) or not names:
        faults.append(Fault("R901", "keys", "no columns, or one of them twice", "name each column once"))
    if size < 1:
        return [*faults, Fault("R902", "size", f"{size} columns are no combination", "use 1 or more")]
    count = sum(comb(len(names), m) for m in range(1, min(size, len(names)) + 1))
    if count > MOST:
        message = f"{count:,} combinations of up to {size} of {len(names)} columns; at most {MOST:,} are looked at"
        faults.append(Fault("R902", "size", message, "lower the size, or name fewer columns"))
    return faults
