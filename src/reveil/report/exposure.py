"""How exposed people were by their exact values, and how exposed they are as published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.guarantees.k_anonymity import KAnonymity
from reveil.measure.risk import Attacker, Risk, Threshold, class_risk
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy

BOUND = Fraction("0.09")  # the bound of the medicines agencies; its k is spoken of as 11 and strictly 12
COMMON = {5: "0.2: k = 5", 11: "0.09, as spoken of: k = 11", 12: "0.09, strictly: k = 12", 20: "0.05: k = 20"}
Sizes = NDArray[np.int64]


@dataclass(frozen=True)
class Line:
    """One quantity before and after."""

    label: str
    before: Fraction
    after: Fraction


@dataclass(frozen=True)
class Exposure:
    """Risk before and after, and the share of rows in groups smaller than each k that people ask for."""

    before: Risk
    after: Risk
    small: tuple[Line, ...]


class SizeCounts(NamedTuple):
    """Classes by size: each size once, and how many classes have it."""

    sizes: Sizes
    times: Sizes

    @classmethod
    def of(cls, sizes: Sizes) -> SizeCounts:
        return cls(*np.unique(sizes, return_counts=True))

    @classmethod
    def counted(cls, times: Mapping[int, int]) -> SizeCounts:
        """
        >>> SizeCounts.counted({3: 1, 1: 2}).below(3)
        Fraction(2, 5)
        """
        pairs = np.array(sorted(times.items()), dtype=np.int64).reshape(-1, 2)
        return cls(pairs[:, 0], pairs[:, 1])

    @property
    def rows(self) -> int:
        return int(self.sizes @ self.times)

    def below(self, k: int) -> Fraction:
        """The share of rows in classes of fewer than k."""
        small = self.sizes < k
        return Fraction(int(self.sizes[small] @ self.times[small]), self.rows) if self.rows else Fraction(0)


def exposure(
    frame: pl.DataFrame, sizes: Iterable[int], plan: Plan, policy: Policy, people: pl.DataFrame | None
) -> Exposure:
    """`frame` is the prepared input; `sizes` are those of the published groups, or boxes of people, as the verifier
    counted them; `people` are the population, where the policy has one.

    People who are shown as they are (two tables) are found as in the input, whatever the sizes of their groups.
    """
    known = frame.select(policy.named("quasi"))
    if policy.owner is not None:  # people (or households) with several rows are counted, not rows
        exact = SizeCounts.of(exact_sizes(_records(frame, known, policy.owner)))
        shown = SizeCounts.of(np.fromiter(sizes, dtype=np.int64))
        return exposure_by_size(exact, shown, exact.rows - shown.rows, policy)
    if policy.method.two_tables and not policy.method.boxed:
        after_sizes = exact_sizes(known.filter(pl.Series(plan.people_groups >= 0)))
    else:
        after_sizes = np.fromiter(sizes, dtype=np.int64)
    if people is None:
        return exposure_by_size(SizeCounts.of(exact_sizes(known)), SizeCounts.of(after_sizes), plan.withheld, policy)
    alike, around = _with_population(known, people)
    before = class_risk(alike, BOUND, population=around)
    small = _small(SizeCounts.of(alike), SizeCounts.of(after_sizes), policy)
    return Exposure(before, _published_risk(after_sizes, plan), small)


def exposure_by_size(before: SizeCounts, after: SizeCounts, withheld: int, policy: Policy) -> Exposure:
    """The same without a population, from how many classes there are of each size."""
    return Exposure(_size_risk(before, 0), _size_risk(after, withheld), _small(before, after, policy))


def _small(before: SizeCounts, after: SizeCounts, policy: Policy) -> tuple[Line, ...]:
    wanted, promised = dict(COMMON), policy.guarantee.find(KAnonymity)
    if promised is not None:
        k = promised.k
        wanted[k] = f"{wanted.get(k, f'k = {k}')}, as promised"
    return tuple(Line(text, before.below(k), after.below(k)) for k, text in sorted(wanted.items()))


def _records(frame: pl.DataFrame, known: pl.DataFrame, owner: str) -> pl.DataFrame:
    """One row for each owner of rows: all that is known of them."""
    rows = pl.DataFrame({"owner": frame[owner], "row": known.hash_rows()}).group_by("owner").agg(pl.col("row").sort())
    return rows.select(pl.col("row").cast(pl.List(pl.String)).list.join(" "))


def exact_sizes(known: pl.DataFrame) -> Sizes:
    """How many rows share each combination of exact values.

    Rows are told apart by hashes of 64 bits: two combinations that look like one are not met, and a report decides
    nothing.

    >>> sorted(exact_sizes(pl.DataFrame({"age": [1, 1, None, None], "sex": ["f", "f", "f", None]})).tolist())
    [1, 1, 2]
    """
    if not known.height:
        return np.empty(0, dtype=np.int64)
    hashes = np.sort(known.hash_rows().to_numpy())
    return np.diff(np.flatnonzero(hashes[1:] != hashes[:-1]) + 1, prepend=0, append=len(hashes))


def size_risk(sizes: Sizes, suppressed: int) -> Risk:
    """`risk.class_risk` without a population, from how many classes there are of each size: there may be a million.

    >>> size_risk(np.array([2, 4]), 0) == class_risk(np.array([2, 4]), BOUND)
    True
    """
    return _size_risk(SizeCounts.of(sizes), suppressed)


def _size_risk(tally: SizeCounts, suppressed: int) -> Risk:
    rows, classes = tally.rows, int(tally.times.sum())
    average = Fraction(classes, rows) if rows else Fraction(0)
    smallest = int(tally.sizes[0]) if classes else 0
    highest = Fraction(1, smallest) if smallest else Fraction(0)
    threshold = Threshold(BOUND)
    return Risk(
        rows=rows,
        suppressed=suppressed,
        classes=classes,
        smallest=smallest,
        unique=int(tally.times[tally.sizes == 1].sum()),
        threshold=threshold,
        prosecutor=Attacker(highest, average, tally.below(threshold.strict)),
        journalist=None,
        marketer=average,
    )


def _with_population(known: pl.DataFrame, people: pl.DataFrame) -> tuple[Sizes, Sizes | None]:
    """Sizes of the classes of exact values in the table and among the people, if those include the table's."""
    table = known.group_by(known.columns).len("f")
    alike = people.select(pl.col(name).cast(kind, strict=False) for name, kind in known.schema.items())
    around = alike.group_by(known.columns).len("F")
    both = table.join(around, on=known.columns, how="left", nulls_equal=True)
    f, F = (both[name].fill_null(0).to_numpy().astype(np.int64) for name in ("f", "F"))  # noqa: N806
    return f, F if bool((f <= F).all()) else None


def _published_risk(sizes: Sizes, plan: Plan) -> Risk:
    """The planner says in which group each person of the population would be; counterfeits count as people."""
    if plan.population_groups is None:
        return size_risk(sizes, plan.withheld)
    invented = np.bincount(plan.counterfeit_groups, minlength=plan.count)
    rows = np.bincount(plan.groups[plan.groups >= 0], minlength=plan.count) + invented
    placed = plan.population_groups[plan.population_groups >= 0]
    around = np.bincount(placed, minlength=plan.count) + invented
    complete = bool((rows <= around).all())
    return class_risk(rows, BOUND, population=around if complete else None, suppressed=plan.withheld)


def facts(exposure: Exposure) -> list[tuple[str, Any, Any]]:
    """The lines of the risk table: what, before, after. Shares are fractions, counts whole numbers."""
    before, after = exposure.before, exposure.after
    lines: list[tuple[str, Any, Any]] = [
        *_attack("Prosecutor (knows that the person is in the table)", before.prosecutor, after.prosecutor),
    ]
    if before.journalist is not None and after.journalist is not None:
        lines += _attack("Journalist (looks for anyone in the population)", before.journalist, after.journalist)
    lines += [
        ("Marketer (links everybody): expected share of right links", before.marketer, after.marketer),
        ("Rows that are alone in their group", before.unique, after.unique),
        ("Groups of rows that look the same", before.classes, after.classes),
        ("Smallest such group", before.smallest, after.smallest),
    ]
    return lines


def _attack(name: str, before: Attacker, after: Attacker) -> list[tuple[str, Any, Any]]:
    return [
        (f"{name}: highest risk", before.maximum, after.maximum),
        (f"{name}: average risk", before.average, after.average),
        (f"{name}: share of rows above 0.09", before.above, after.above),
    ]
