"""What each method promises, checked in the published bytes before anything is revealed.

Nothing here is shared with the methods. The published table is read back from its files, put into the order of the
input (the publisher knows the shuffle) and compared with it: multisets, rank distances, group sizes and means, moments,
and that values did change: what only looks at what is kept holds for the original as well.
Tolerances are those of publishing rounded numbers, by the triangle inequality, plus a billionth for floating point.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.text import plain_text
from reveil.base.words import agree, some
from reveil.perturb.steps import PerturbStep, Recipe
from reveil.published.format import PACKAGE, TABLE
from reveil.published.reader import read_tables
from reveil.verify.comparing import Check

Floats = NDArray[np.float64]
TINY = 1e-9
UNLIKELY = 1e-12  # chance at which drawn frequencies are taken for a fault of the program, over all moves


@dataclass(frozen=True, eq=False)
class Made:
    """What the publisher knows besides the two tables: the shuffle, and per step how it was done."""

    order: NDArray[np.int64]  # published row i shows input row order[i]
    details: tuple[Mapping[str, Any], ...]


def check(public: Path, original: pl.DataFrame, recipe: Recipe, made: Made) -> list[Check]:
    """Every promise of the recipe, and that nothing else is in the files."""
    (resource,) = json.loads((public / PACKAGE).read_text(encoding="utf-8"))["resources"]
    file = public / resource["path"]
    table = read_tables(public)[TABLE]
    names = sorted(path.name for path in public.iterdir())
    same = resource["hash"] == f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
    checks = [
        Check("public files", same and names == sorted([file.name, PACKAGE]), f"{', '.join(names)}"),
        Check("published columns", table.columns == list(recipe.published), f"{', '.join(table.columns)}"),
        Check("rows", table.height == original.height, f"{table.height:,} of {some(original.height, 'row')}"),
    ]
    if not all(item.holds for item in checks):
        return checks
    back = table[np.argsort(made.order)]
    exact = [name for name in recipe.untouched if not _equal(original[name], back[name])]
    checks.append(Check("columns of no step", not exact, f"{len(recipe.untouched)} published as they are"))
    for step, details in zip(recipe.perturb, made.details, strict=True):
        checks += CHECKS[step.method](step, original, back, details)
        checks += [_changed(step, original[name], back[name]) for name in step.columns]
    return checks


def _changed(step: PerturbStep, before: pl.Series, after: pl.Series) -> Check:
    """How many rows differ from the original. Averaging equal values changes nothing and still is what was asked."""
    changed = int(before.cast(after.dtype).ne_missing(after).sum())
    finding = f"{changed:,} of {len(before):,}, {1 - changed / len(before):.1%} are as they were"
    return Check(f"changed rows of {before.name!r}", changed > 0 or step.method == "microaggregate", finding)


def _equal(before: pl.Series, after: pl.Series) -> bool:
    return before.equals(after.cast(before.dtype), null_equal=True)


def _counts(*columns: pl.Series) -> pl.DataFrame:
    table = pl.DataFrame([column.alias(str(i)) for i, column in enumerate(columns)])
    return table.group_by(pl.all()).len().sort(pl.all())


def _same_values(name: str, before: pl.Series, after: pl.Series) -> Check:
    same = _counts(before).equals(_counts(after.cast(before.dtype)), null_equal=True)
    return Check(f"values of {name!r}", same, "each value as often as before")


def _swap(step: PerturbStep, original: pl.DataFrame, back: pl.DataFrame, details: Mapping[str, Any]) -> list[Check]:
    checks = [_same_values(name, original[name], back[name]) for name in step.columns]
    alike = list(step.within)
    wholes = [step.columns] if step.together else [(name,) for name in step.columns]
    for whole in wholes:
        before = _counts(*original.select(*alike, *whole).iter_columns())
        after = _counts(*original.select(alike).iter_columns(), *(back[n].cast(original[n].dtype) for n in whole))
        finding = f"kept together with {', '.join(alike)}" if alike else "values that travel together are as before"
        checks.append(Check(f"combinations of {', '.join(whole)}", before.equals(after, null_equal=True), finding))
        checks.append(_swapped(step, whole, original, back))
    return checks


def _swapped(step: PerturbStep, whole: tuple[str, ...], original: pl.DataFrame, back: pl.DataFrame) -> Check:
    """Whether as many rows changed as `share` draws, pairs of equal values apart.

    A random pair of a stratum of n rows differs with chance 1 - sum of c (c - 1) / (n (n - 1)) over the counts c of its
    values. Exchanging two of the m drawn rows alters at most two pairs, so that by Azuma and Hoeffding t fewer pairs
    than expected differ with a chance of at most exp(-t^2 / 2m). Strata without equal values leave nothing to chance.
    """
    drawn, expected, loose, proper = 0, 0.0, 0, True
    for n, strata, equal, tied, most in _strata_by_size(step, whole, original, back).iter_rows():
        each = 2 * (n * step.share.numerator // (2 * step.share.denominator))
        proper &= most <= each
        drawn += strata * each
        expected += each * (strata - equal / max(n * (n - 1), 1))
        loose += tied * each
    changed = int(_differs(whole, original, back).sum())
    least = expected - 2 * np.sqrt(-2 * loose * np.log(UNLIKELY)) - TINY * drawn
    finding = (
        f"{some(changed, 'row differs', 'rows differ')}; {drawn:,} {agree(drawn, 'was', 'were')} to be "
        f"drawn, {expected:,.0f} of them expected to differ"
    )
    return Check(f"share of {', '.join(whole)}", proper and bool(changed >= least), finding)


def _strata_by_size(
    step: PerturbStep, whole: tuple[str, ...], original: pl.DataFrame, back: pl.DataFrame
) -> pl.DataFrame:
    """For each size of strata: their number, ordered pairs of equal rows, strata with such, most rows that differ."""
    alike = [pl.lit(0).alias("within"), *(pl.col(name).alias(f"within {i}") for i, name in enumerate(step.within))]
    values = [pl.col(name).alias(f"value {i}") for i, name in enumerate(whole)]
    rows = original.select(*alike, *values).with_columns(differs=_differs(whole, original, back))
    counts = rows.group_by(pl.exclude("differs")).agg(c=pl.len().cast(pl.Int64), differs=pl.sum("differs"))
    pairs = pl.col("c") * (pl.col("c") - 1)
    strata = counts.group_by(pl.col("^within.*$")).agg(n=pl.sum("c"), equal=pairs.sum(), differs=pl.sum("differs"))
    return strata.group_by("n").agg(
        strata=pl.len(), equal=pl.sum("equal"), tied=(pl.col("equal") > 0).sum(), most=pl.max("differs")
    )


def _differs(whole: tuple[str, ...], original: pl.DataFrame, back: pl.DataFrame) -> pl.Series:
    differs = pl.repeat(False, original.height, dtype=pl.Boolean, eager=True)
    for name in whole:
        differs |= original[name].ne_missing(back[name].cast(original[name].dtype))
    return differs


def _rank_swap(
    step: PerturbStep, original: pl.DataFrame, back: pl.DataFrame, details: Mapping[str, Any]
) -> list[Check]:
    checks = []
    for name in step.columns:
        before, after = original[name], back[name].cast(original[name].dtype)
        order = details["orders"].get(name)
        if order is not None:
            before, after = (c.replace_strict(order, range(len(order)), return_dtype=pl.Int64) for c in (before, after))
        known = before.is_not_null()
        first, second = (column.filter(known).to_physical().to_numpy() for column in (before, after))
        apart = _least_rank_distance(first, second)
        assert step.percent is not None
        allowed = len(first) * step.percent.numerator // (100 * step.percent.denominator)
        finding = f"at most {apart:,} ranks apart, {allowed:,} allowed ({float(step.percent):g} % of {len(first):,})"
        in_place = bool((before.is_null() == after.is_null()).all())
        checks += [
            _same_values(name, original[name], back[name]),
            Check(f"ranks of {name!r}", in_place and apart <= allowed, finding),
        ]
    return checks


def _least_rank_distance(first: NDArray[Any], second: NDArray[Any]) -> int:
    """The largest distance in rank between a row's two values; equal values may stand in any order."""
    ranked = np.sort(first)
    low, high = np.minimum(first, second), np.maximum(first, second)
    apart = np.searchsorted(ranked, high, side="left") - (np.searchsorted(ranked, low, side="right") - 1)
    return int(np.max(np.where(low == high, 0, apart), initial=0))


def _pram(step: PerturbStep, original: pl.DataFrame, back: pl.DataFrame, details: Mapping[str, Any]) -> list[Check]:
    checks = []
    for name in step.columns:
        matrix = details["matrices"][name]
        before, after = original[name], back[name].cast(original[name].dtype)
        values = before.unique().sort(nulls_last=False)
        moves = _moves(before, after, values)
        counts = moves.sum(axis=1)
        stated = _stated(step, values, counts)
        proper = matrix.shape == stated.shape and bool(np.allclose(matrix, stated, rtol=0, atol=TINY))
        proper &= bool((matrix >= 0).all()) and bool(np.allclose(matrix.sum(axis=1), 1, rtol=0, atol=TINY))
        expected = counts @ matrix
        finding = f"{len(values)} values, the matrix is that of the policy and every row sums to 1"
        checks.append(Check(f"matrix of {name!r}", proper and int(counts.sum()) == len(before), finding))
        if step.invariant:
            off = float(np.abs(expected - counts).max())
            finding = f"expected counts differ from the column's by {off:.2g}"
            checks.append(Check(f"invariance of {name!r}", off <= TINY * len(before), finding))
        chance = _least_chance(moves, stated)
        finding = f"the least likely count of a move has a chance of at least {chance:.2g}"
        checks.append(Check(f"moves of {name!r}", chance > UNLIKELY / matrix.size, finding))
    return checks


def _stated(step: PerturbStep, values: pl.Series, counts: NDArray[np.int64]) -> Floats:
    """The matrix that the policy asks for, entry by entry."""
    size, share = len(values), counts / counts.sum()
    same = np.arange(size)[:, None] == np.arange(size)
    if step.keep is not None:
        keep = float(step.keep)
        others = np.broadcast_to(share, (size, size)) if step.invariant else ~same / max(size - 1, 1)
        return np.asarray(np.where(same, keep, 0.0) + (1 - keep) * (same if size == 1 else others))
    assert step.matrix is not None
    texts = [plain_text(value) for value in values]
    stated = np.array([[float(step.matrix.get(a, {}).get(b, 0)) for b in texts] for a in texts])
    if not step.invariant:
        return stated
    joint = stated * share[:, None]  # chance of being j and becoming l; back from l to j by Bayes' rule
    reached = joint.sum(axis=0)
    back = np.array([joint[:, to] / reached[to] if reached[to] > 0 else same[to] for to in range(size)])
    return np.asarray(stated @ back)


def _moves(before: pl.Series, after: pl.Series, values: pl.Series) -> NDArray[np.int64]:
    """How often each value became each other; values that the column never had count nowhere."""
    codes = pl.DataFrame({"value": values, "code": np.arange(len(values))})
    sides = [
        pl.DataFrame({"value": side}).join(codes, on="value", how="left", nulls_equal=True, maintain_order="left")[
            "code"
        ]
        for side in (before, after)
    ]
    known = sides[0].is_not_null() & sides[1].is_not_null()
    flat = (sides[0] * len(values) + sides[1]).filter(known).to_numpy()
    return np.bincount(flat, minlength=len(values) ** 2).reshape(len(values), len(values))


def _least_chance(moves: NDArray[np.int64], matrix: Floats) -> float:
    """Chernoff's bound on the chance of a count as far off as the worst one; 0 for a move that cannot be."""
    rows = moves.sum(axis=1, keepdims=True)
    share = np.divide(moves, rows, out=matrix.copy(), where=rows > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.where(share > 0, share * np.log(share / matrix), 0.0)
        outside = np.where(share < 1, (1 - share) * np.log((1 - share) / np.clip(1 - matrix, 1e-300, None)), 0.0)
    divergence = np.where((matrix <= 0) & (moves > 0), np.inf, inside + outside)
    return float(np.exp(-np.max(rows * np.maximum(divergence, 0.0), initial=0.0)))


def _noise(step: PerturbStep, original: pl.DataFrame, back: pl.DataFrame, details: Mapping[str, Any]) -> list[Check]:
    known = original.select(step.columns).select(pl.all_horizontal(pl.all().is_not_null())).to_series()
    before, after = _matrix(original, step, known), _matrix(back, step, known)
    assert step.amount is not None
    factor = 1 + float(step.amount) ** 2
    covariance = np.cov(before.T, bias=True).reshape(len(step.columns), -1)
    variances = np.diag(np.diag(covariance))
    wanted = covariance * factor if step.correlated else covariance + (factor - 1) * variances
    if step.preserve == "variance":
        wanted = wanted / factor
    in_place = all(bool((original[n].is_null() == back[n].is_null()).all()) for n in step.columns)
    return [
        Check(f"missing values of {_names(step)}", in_place, "stay"),
        *_moments(step, before, after, wanted, details),
    ]


def _moments(
    step: PerturbStep, before: Floats, after: Floats, wanted: Floats, details: Mapping[str, Any]
) -> list[Check]:
    """Means as before and covariances as promised, up to the rounding of published numbers."""
    half = np.array([details["units"][name] / 2 for name in step.columns])
    spread = np.sqrt(np.diag(wanted))
    size = np.abs(before).max(axis=0, initial=0.0) + spread
    off = np.abs(after.mean(axis=0) - before.mean(axis=0))
    covariances = np.cov(after.T, bias=True).reshape(len(step.columns), -1)
    allowed = np.outer(spread, half) + np.outer(half, spread) + np.outer(half, half)
    gap = np.abs(covariances - wanted)
    return [
        Check(f"means of {_names(step)}", bool((off <= half + TINY * size).all()), f"off by {_most(off)}"),
        Check(
            f"covariances of {_names(step)}",
            bool((gap <= allowed + TINY * np.outer(size, size)).all()),
            f"off by {_most(gap)} from what was promised; rounding allows {_most(allowed)}",
        ),
    ]


def _microaggregate(
    step: PerturbStep, original: pl.DataFrame, back: pl.DataFrame, details: Mapping[str, Any]
) -> list[Check]:
    names = list(step.columns)
    combined = pl.concat(
        [back.select(pl.struct(names).alias("\0shown")), original.select(pl.col(names))], how="horizontal"
    )
    half = np.array([details["units"][name] / 2 for name in names])
    physical = [pl.col(name).to_physical().cast(pl.Float64) for name in names]
    classes = combined.with_columns(physical).group_by("\0shown").agg(pl.len().alias("\0rows"), pl.col(names).mean())
    shown = classes["\0shown"].struct.unnest().select(physical).to_numpy()
    off = np.abs(shown - classes.select(names).to_numpy()).max(axis=0, initial=0.0)
    size = np.abs(original.select(physical).to_numpy()).max(axis=0, initial=0.0)
    smallest = int(classes["\0rows"].min())  # type: ignore[arg-type]
    assert step.k is not None
    return [
        Check(
            f"combinations of {_names(step)}", smallest >= step.k, f"{classes.height:,}, each {smallest} times or more"
        ),
        Check(
            f"means of {_names(step)}",
            bool((off <= half + TINY * size).all()),
            f"each combination is the mean of its rows, off by {_most(off)}",
        ),
    ]


def _condense(step: PerturbStep, original: pl.DataFrame, back: pl.DataFrame, details: Mapping[str, Any]) -> list[Check]:
    everyone = pl.repeat(True, original.height, dtype=pl.Boolean, eager=True)
    before, after = _matrix(original, step, everyone), _matrix(back, step, everyone)
    groups = details["groups"]
    smallest = int(np.bincount(groups).min())
    assert step.k is not None
    checks = [Check(f"groups of {_names(step)}", smallest >= step.k, f"each has {smallest} rows or more")]
    half = np.array([details["units"][name] / 2 for name in step.columns])
    size = np.abs(before).max(axis=0, initial=0.0)
    off = np.abs(_by_group(after, groups) - _by_group(before, groups)).max(axis=0)
    inside = [side - _by_group(side, groups)[groups] for side in (before, after)]
    shared, wanted = (_products(side, groups) for side in (inside[1], inside[0]))
    spread = np.sqrt(np.abs(np.diagonal(wanted, axis1=1, axis2=2)))
    allowed = spread[:, :, None] * half + half[:, None] * spread[:, None, :] + np.outer(half, half)
    gap = np.abs(shared - wanted)
    return [
        *checks,
        Check(f"group means of {_names(step)}", bool((off <= half + TINY * size).all()), f"off by {_most(off)}"),
        Check(
            f"group covariances of {_names(step)}",
            bool((gap <= allowed + TINY * np.outer(size, size)).all()),
            f"off by {_most(gap)}; rounding allows {_most(allowed)}",
        ),
    ]


def _by_group(values: Floats, groups: NDArray[np.int64]) -> Floats:
    sizes = np.bincount(groups)
    return np.column_stack([np.bincount(groups, weights=column) for column in values.T]) / sizes[:, None]


def _products(values: Floats, groups: NDArray[np.int64]) -> Floats:
    """The covariance matrix of each group, from values that are centred in their groups."""
    width = values.shape[1]
    flat = [values[:, i] * values[:, j] for i in range(width) for j in range(width)]
    return _by_group(np.column_stack(flat), groups).reshape(-1, width, width)


def _matrix(table: pl.DataFrame, step: PerturbStep, known: pl.Series) -> Floats:
    physical = table.select(pl.col(step.columns).to_physical().cast(pl.Float64))
    return physical.filter(known).to_numpy()


def _names(step: PerturbStep) -> str:
    return ", ".join(step.columns)


def _most(values: Floats) -> str:
    return f"{float(np.max(values, initial=0.0)):.2g}"


CHECKS = {
    "swap": _swap,
    "rank-swap": _rank_swap,
    "pram": _pram,
    "noise": _noise,
    "microaggregate": _microaggregate,
    "condense": _condense,
}
