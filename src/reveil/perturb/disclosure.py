"""What a perturbed table kept, and how closely the original can be estimated from it.

*Interval disclosure*: the share of rows whose original value lies within 1, 5 or 10 % of the column's standard
deviation of the published one. *Record linkage by distance*: somebody knows the exact values of all perturbed columns
and takes the published row's nearest original row (numbers in standard deviations, a differing category counts 1); the
share that is right, ties counted in equal parts, over a random sample of at most 1,000 published rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.kernels import kernel

Floats = NDArray[np.float64]
WIDTHS = (0.01, 0.05, 0.1)
SAMPLE = 1_000


def compare(before: pl.DataFrame, after: pl.DataFrame, rng: np.random.Generator) -> dict[str, Any]:
    """Before and after, column by column and together. Both frames are in the same order and hold the same columns."""
    numbers = [name for name in before.columns if before[name].dtype != pl.String]
    report: dict[str, Any] = {"columns": [_column(before[name], after[name]) for name in before.columns]}
    if len(numbers) > 1:
        sides = [_complete(side, before, after, numbers) for side in (before, after)]
        report["covariances"] = _pairs(numbers, *(np.cov(side.T, bias=True) for side in sides))
        report["rank correlations"] = _pairs(numbers, *(_spearman(side) for side in sides))
    report["interval disclosure"] = [_intervals(before[name], after[name]) for name in before.columns]
    report["record linkage"] = linkage(before, after, rng)
    return report


def _column(before: pl.Series, after: pl.Series) -> dict[str, Any]:
    """One column: moments and ranks of numbers, frequencies of categories."""
    changed = int((before.cast(after.dtype).ne_missing(after)).sum())
    figures: dict[str, Any] = {"column": before.name, "rows changed": changed}
    if before.dtype == pl.String:
        counts = [side.alias("value").value_counts(name="rows") for side in (before, after)]
        both = counts[0].join(counts[1], on="value", how="full", coalesce=True, nulls_equal=True, suffix="_after")
        moved = (both["rows"].fill_null(0).cast(pl.Int64) - both["rows_after"].fill_null(0).cast(pl.Int64)).abs().sum()
        return {**figures, "values": both.height, "frequencies moved": moved / (2 * before.len())}
    known = before.is_not_null() & after.is_not_null()
    first, second = (_floats(side.filter(known)) for side in (before, after))
    if len(first) == 0:
        return figures
    return {
        **figures,
        "mean before": float(first.mean()),
        "mean after": float(second.mean()),
        "variance before": float(first.var()),
        "variance after": float(second.var()),
        "rank correlation with the original": _correlation(_ranks(first), _ranks(second)),
    }


def _intervals(before: pl.Series, after: pl.Series) -> dict[str, Any]:
    """The share of rows whose original is near what is published; for categories, the share that is the same."""
    if before.dtype == pl.String:
        return {"column": before.name, "unchanged": float((before.eq_missing(after)).mean() or 0.0)}  # type: ignore[arg-type]
    known = before.is_not_null() & after.is_not_null()
    first, second = (_floats(side.filter(known)) for side in (before, after))
    spread = float(first.std()) if len(first) else 0.0
    near = {f"within {width:.0%} of a deviation": _share(np.abs(first - second) <= width * spread) for width in WIDTHS}
    return {"column": before.name, "unchanged": _share(first == second), **near}


def linkage(before: pl.DataFrame, after: pl.DataFrame, rng: np.random.Generator) -> dict[str, Any]:
    """Expected share of right links from published rows to their nearest original row, beside chance."""
    rows = before.height
    sample = rng.permutation(rows)[:SAMPLE]
    numbers, codes = _points(before, after)
    shares = right_links(*numbers, *codes, sample)
    return {"rows tried": len(sample), "right links": float(shares.mean()), "by chance": 1 / rows}


def _points(
    before: pl.DataFrame, after: pl.DataFrame
) -> tuple[tuple[Floats, Floats], tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Both tables as scaled numbers and as codes of categories. A missing number is a category of its own."""
    numbers: tuple[list[Floats], list[Floats]] = ([], [])
    codes: tuple[list[NDArray[Any]], list[NDArray[Any]]] = ([], [])
    for name in before.columns:
        pair = (before[name], after[name])
        if before[name].dtype != pl.String:
            first = _floats(pair[0].drop_nulls())
            spread = float(first.std()) or 1.0 if len(first) else 1.0
            for side, column in zip(numbers, pair, strict=True):
                side.append(_floats(column) / spread)
            if not pair[0].null_count() and not pair[1].null_count():
                continue
            pair = (pair[0].is_null().cast(pl.String), pair[1].is_null().cast(pl.String))
        texts = pl.concat(pair).unique().drop_nulls()
        for place, column in zip(codes, pair, strict=True):
            place.append(column.cast(pl.Enum(texts)).to_physical().cast(pl.Int64).fill_null(-1).to_numpy())
    rows = before.height
    return (
        (_side_by_side(numbers[0], rows, np.float64), _side_by_side(numbers[1], rows, np.float64)),
        (_side_by_side(codes[0], rows, np.int64), _side_by_side(codes[1], rows, np.int64)),
    )


def _side_by_side(columns: list[NDArray[Any]], rows: int, dtype: Any) -> NDArray[Any]:
    return np.ascontiguousarray(np.column_stack(columns).astype(dtype)) if columns else np.empty((rows, 0), dtype=dtype)


@kernel
def right_links(
    first: Floats,
    second: Floats,
    codes: NDArray[np.int64],
    shown: NDArray[np.int64],
    sample: NDArray[np.int64],
) -> Floats:
    """For each sampled row: 1 / ties where its own original is among the nearest, 0 otherwise."""
    shares = np.zeros(len(sample))
    for number in range(len(sample)):
        row = sample[number]
        least, ties, own = np.inf, 0, False
        for other in range(len(first)):
            total = 0.0
            for j in range(first.shape[1]):
                step = first[other, j] - second[row, j]
                total += step * step
                if total > least:
                    break
            for j in range(codes.shape[1]):
                if codes[other, j] != shown[row, j]:
                    total += 1.0
            if total < least:
                least, ties, own = total, 0, False
            if total == least:
                ties += 1
                own = own or other == row
        if own:
            shares[number] = 1.0 / ties
    return shares


def _floats(column: pl.Series) -> Floats:
    return column.to_physical().cast(pl.Float64).fill_null(0.0).to_numpy()


def _ranks(values: Floats) -> Floats:
    """Average ranks."""
    index, counts = np.unique(values, return_inverse=True, return_counts=True)[1:]
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[index])


def _correlation(first: Floats, second: Floats) -> float:
    spread = float(first.std() * second.std())
    return float(((first - first.mean()) * (second - second.mean())).mean() / spread) if spread > 0 else 1.0


def _spearman(values: Floats) -> Floats:
    ranks = [_ranks(column) for column in values.T]
    return np.array([[_correlation(a, b) for b in ranks] for a in ranks])


def _complete(side: pl.DataFrame, before: pl.DataFrame, after: pl.DataFrame, names: list[str]) -> Floats:
    known = [pl.all_horizontal(pl.col(names).is_not_null())]
    kept = before.select(known).to_series() & after.select(known).to_series()
    return np.column_stack([_floats(side[name].filter(kept)) for name in names])


def _pairs(names: list[str], before: Floats, after: Floats) -> list[dict[str, Any]]:
    return [
        {"columns": f"{names[i]}, {names[j]}", "before": float(before[i, j]), "after": float(after[i, j])}
        for i in range(len(names))
        for j in range(i)
    ]


def _share(hits: NDArray[np.bool_]) -> float:
    return float(hits.mean()) if len(hits) else 0.0
