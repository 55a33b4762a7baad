"""Re-identification risk of the classes of a table, in the three attackers of the literature (El Emam).

With f rows of a class in the table and F people of it in the population: the *prosecutor* knows that the
target is in the table and finds them with chance 1/f; the *journalist* wants to show that anyone at all can
be found, with chance 1/F; the *marketer* links everybody and expects to be right for a share of the rows, the
sum of f/F over n. Averages: classes/n for the prosecutor; for the journalist the larger of classes/sum of F
and the marketer's share. All are exact fractions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.arrays import I64
from reveil.base.errors import Fault, InputError, stop_if
from reveil.base.sections import exact
from reveil.measure.axes import Classes, classes_of
from reveil.policy.policy import Policy, PolicyLike, load_policy
from reveil.published.format import GROUP

ROWS = 1 << 16  # people of the population that are held as bits at once


@dataclass(frozen=True)
class Attacker:
    """One attacker: the most exposed row, the average, and the share of rows above the threshold."""

    maximum: Fraction
    average: Fraction
    above: Fraction

    def to_dict(self) -> dict[str, float]:
        return {"maximum": float(self.maximum), "average": float(self.average), "above": float(self.above)}


@dataclass(frozen=True)
class Threshold:
    """A bound on risk, and the class sizes that are said to keep it.

    `spoken` is the k that people name for it (1/bound, rounded), `strict` the least k with 1/k <= bound.

    >>> bound = Threshold(Fraction("0.09"))
    >>> bound.spoken, bound.strict, str(bound)
    (11, 12, '0.09: spoken of as k = 11, but 1/11 = 0.0909 is more; strictly k = 12')
    >>> str(Threshold(Fraction("0.2")))
    '0.2: k = 5'
    """

    bound: Fraction

    @property
    def spoken(self) -> int:
        return max(1, int(1 / self.bound + Fraction(1, 2)))

    @property
    def strict(self) -> int:
        return -int(-1 // self.bound)

    def __str__(self) -> str:
        if self.spoken >= self.strict:
            return f"{float(self.bound):g}: k = {self.strict}"
        return (
            f"{float(self.bound):g}: spoken of as k = {self.spoken}, but 1/{self.spoken} = "
            f"{1 / self.spoken:.4f} is more; strictly k = {self.strict}"
        )

    def to_dict(self) -> dict[str, Any]:
        return {"bound": str(self.bound), "spoken": self.spoken, "strict": self.strict, "text": str(self)}


@dataclass(frozen=True)
class Risk:
    """The risk of one table. `journalist` is None without a population; the marketer then uses f for F."""

    rows: int  # in classes; suppressed rows belong to none
    suppressed: int
    classes: int
    smallest: int
    unique: int  # rows that are alone in their class
    threshold: Threshold
    prosecutor: Attacker
    journalist: Attacker | None
    marketer: Fraction  # expected share of rows that are linked correctly

    def to_dict(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "suppressed": self.suppressed,
            "classes": self.classes,
            "smallest": self.smallest,
            "unique": self.unique,
            "threshold": self.threshold.to_dict(),
            "prosecutor": self.prosecutor.to_dict(),
            "journalist": None if self.journalist is None else self.journalist.to_dict(),
            "marketer": float(self.marketer),
        }


@dataclass(frozen=True)
class RiskChange:
    """Risk of the exact quasi-identifiers of the original, and of the published ones."""

    before: Risk
    after: Risk

    def to_dict(self) -> dict[str, Any]:
        return {"before": self.before.to_dict(), "after": self.after.to_dict()}


def class_risk(
    sizes: NDArray[Any],
    threshold: object = "0.2",
    *,
    population: NDArray[Any] | None = None,
    suppressed: int = 0,
) -> Risk:
    """The risk of classes of these sizes; `population` are the sizes of the same classes in the population.

    A row is above the threshold where its risk exceeds it; equal is not above.

    >>> risk = class_risk(np.array([2, 4]), "0.25", population=np.array([10, 4]))
    >>> risk.prosecutor
    Attacker(maximum=Fraction(1, 2), average=Fraction(1, 3), above=Fraction(1, 3))
    >>> risk.journalist.maximum, risk.marketer
    (Fraction(1, 4), Fraction(1, 5))
    """
    bound = _bound(threshold)
    f = np.asarray(sizes, dtype=np.int64)
    big = f if population is None else np.asarray(population, dtype=np.int64)
    if np.any(big < f):
        short, people = int(np.sum(big < f)), int(np.sum((f - big)[big < f]))
        message = f"{short} classes have more rows in the table than people in the population ({people} too few)"
        remedy = "pass the population that the table was drawn from, with the same columns and values"
        raise InputError(Fault("R711", "population", message, remedy, int(f[big < f].sum())))
    linked = _linked(f, big)
    return Risk(
        rows=int(f.sum()),
        suppressed=suppressed,
        classes=len(f),
        smallest=int(f.min()) if len(f) else 0,
        unique=int(np.sum(f == 1)),
        threshold=Threshold(bound),
        prosecutor=_attack(f, f, bound, _share(len(f), int(f.sum()))),
        journalist=None if population is None else _attack(f, big, bound, max(_share(len(f), int(big.sum())), linked)),
        marketer=linked,
    )


def _bound(threshold: object) -> Fraction:
    try:
        bound = exact(threshold)
    except ValueError as error:
        raise InputError(Fault("R710", "threshold", f"{threshold!r} is not a number", str(error))) from None
    if not 0 < bound <= 1:
        remedy = "use a chance above 0 and up to 1, such as 0.09"
        raise InputError(Fault("R710", "threshold", f"{threshold} is not a chance", remedy))
    return bound


def _share(part: int, whole: int) -> Fraction:
    return Fraction(part, whole) if whole else Fraction(0)


def _linked(f: I64, big: I64) -> Fraction:
    """Sum of f/F over n, exactly; classes of equal F are added up first to keep fractions few."""
    sizes, inverse = np.unique(big, return_inverse=True)
    rows = np.zeros(len(sizes), dtype=np.int64)
    np.add.at(rows, inverse, f)
    total = sum((Fraction(int(n), int(size)) for n, size in zip(rows, sizes, strict=True)), Fraction(0))
    return total / int(f.sum()) if len(f) else Fraction(0)


def _attack(f: I64, big: I64, bound: Fraction, average: Fraction) -> Attacker:
    """`big` are the sizes that decide a row's risk. 1/F > bound is decided in integers."""
    over = np.array([size * bound.numerator < bound.denominator for size in big.tolist()], dtype=bool)
    maximum = _share(1, int(big.min())) if len(big) else Fraction(0)
    return Attacker(maximum, average, _share(int(f[over].sum()), int(f.sum())))


def risk_change(
    published: pl.DataFrame,
    original: pl.DataFrame,
    policy: PolicyLike,
    *,
    threshold: object = "0.2",
    population: pl.DataFrame | None = None,
    counterfeits: pl.DataFrame | None = None,
) -> RiskChange:
    """Risk before (exact quasi-identifiers of the original) and after (as published).

    A published class is as large as it looks, counterfeits included (they count as people as well); people of
    the population belong to it where all its cells cover them.

    >>> original = pl.DataFrame({"age": [20, 25, 40, 41]})
    >>> published = pl.DataFrame({"age": ["[20-25]", "[20-25]", "[40-41]", "[40-41]"]})
    >>> found = risk_change(published, original, {"columns": {"age": "quasi"}, "guarantee": {"k": 2}})
    >>> found.before.unique, found.before.prosecutor.maximum, found.after.prosecutor.maximum
    (4, Fraction(1, 1), Fraction(1, 2))
    """
    rules = load_policy(policy)
    stop_if(_faults(rules, published=published, original=original, population=population))
    known = original.select(rules.named("quasi"))
    people = None if population is None else _alike(population.select(known.columns), known)
    if rules.method.two_tables:  # rows of people look alike by their cells, whatever their group
        published, counterfeits = published.drop(GROUP, strict=False), None
    classes = classes_of(published, known if people is None else pl.concat([known, people]), rules, counterfeits)
    kept = ~classes.starred
    covered = None
    if people is not None:
        covered = _people(classes, people, kept) + (classes.sizes - classes.real)[kept]
    before, around = _exact_classes(known, people)
    hidden = max(0, original.height - int(classes.real.sum())) + classes.suppressed
    return RiskChange(
        before=class_risk(before, threshold, population=around),
        after=class_risk(classes.sizes[kept], threshold, population=covered, suppressed=hidden),
    )


def _faults(policy: Policy, **tables: pl.DataFrame | None) -> list[Fault]:
    return [
        Fault("R701", f"{which} table", f"has no column {name!r}", "add it, or give it the role drop")
        for which, table in tables.items()
        for name in policy.named("quasi")
        if table is not None and name not in table.columns
    ]


def _alike(population: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """The population with the column types of the table, so that equal values are equal."""
    faults, columns = [], []
    for name in known.columns:
        try:
            columns.append(population[name].cast(known[name].dtype))
        except pl.exceptions.InvalidOperationError:
            message = f"holds {population[name].dtype} that are not all {known[name].dtype}, as in the original"
            remedy = "write the values as in the original"
            faults.append(Fault("R712", f"population column {name!r}", message, remedy))
    stop_if(faults)
    return pl.DataFrame(columns)


def _exact_classes(known: pl.DataFrame, population: pl.DataFrame | None) -> tuple[I64, I64 | None]:
    """Sizes of the classes of exact values, in the table and in the population."""
    table = known.group_by(known.columns, maintain_order=True).len("f")
    if population is None:
        return table["f"].to_numpy().astype(np.int64), None
    people = population.group_by(known.columns).len("F")
    both = table.join(people, on=known.columns, how="left", nulls_equal=True, maintain_order="left")
    return both["f"].to_numpy().astype(np.int64), both["F"].fill_null(0).to_numpy().astype(np.int64)


def _people(classes: Classes, population: pl.DataFrame, kept: NDArray[np.bool_]) -> I64:
    """How many people each class covers: a cell is held as the bits of its people, a class shares them."""
    cells = classes.cells[kept]
    people = np.zeros(len(cells), dtype=np.int64)
    for start in range(0, population.height, ROWS):
        block = population[start : start + ROWS]
        bits = [_covered(classes, i, block) for i in range(len(classes.reads))]
        for number, line in enumerate(cells.tolist()):
            inside = bits[0][line[0]].copy()
            for table, cell in zip(bits[1:], line[1:], strict=True):
                inside &= table[cell]
            people[number] += int(np.bitwise_count(inside).sum())
    return people


def _covered(classes: Classes, column: int, people: pl.DataFrame) -> NDArray[np.uint64]:
    """One line of bits per cell of a column: which people it covers."""
    read = classes.reads[column]
    ranks = read.axis.rows(people[read.axis.name], ranked=True).astype(np.int64)
    lines = np.zeros((len(read.cells), -(-len(ranks) // 64) * 8), dtype=np.uint8)
    for cell, runs in enumerate(read.runs):
        inside = np.zeros(len(read.axis.values), dtype=bool)
        for first, last in runs:
            inside[first : last + 1] = True
        packed = np.packbits(inside[ranks])
        lines[cell, : len(packed)] = packed
    return lines.view(np.uint64)
