"""Steps applied to a table: which columns can take them, and the columns they make, still in the order of the input."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.errors import Fault, brief, stop_if
from reveil.base.text import plain_text
from reveil.base.words import some
from reveil.perturb.condensation import condense
from reveil.perturb.microaggregation import chosen, group_means, group_rows
from reveil.perturb.noise import add_noise, least_rows
from reveil.perturb.pram import MOST, draw, invariant_of, keeping
from reveil.perturb.steps import NUMERIC, PerturbStep, Recipe
from reveil.perturb.swapping import full_pairs, rank_distance, swap_pairs, swap_ranks
from reveil.table.numbers import first_rows

Floats = NDArray[np.float64]
EXACT = 2**53  # whole numbers beyond it are not exact as floats
EPOCH = datetime.date(1970, 1, 1).toordinal()
DAYS = (datetime.date.min.toordinal() - EPOCH, datetime.date.max.toordinal() - EPOCH)  # years 1 to 9999


@dataclass(frozen=True, eq=False)
class Done:
    """What a step made: the new columns, and what a check or a report needs to know."""

    columns: dict[str, pl.Series]
    details: Mapping[str, Any]


def faults_of(frame: pl.DataFrame, recipe: Recipe) -> list[Fault]:
    """Everything in the table that keeps a step from being done."""
    faults: list[Fault] = []
    for number, step in enumerate(recipe.perturb, 1):
        where = f"step {number} ({step.method})"
        for name in step.columns:
            faults += _column_faults(f"{where}, column {name!r}", step, frame[name], recipe)
        least = least_rows(len(step.columns)) if step.method == "noise" else step.k or 2
        rows = frame.height - max(frame[name].null_count() for name in step.columns)
        if rows < least:
            message = f"needs {least} rows or more with values, the table has {rows}"
            faults.append(Fault("R230", where, message, "leave the step out, or publish more rows", rows))
        if step.method == "swap":
            faults += _pair_faults(where, step, frame)
        if step.amount is not None and step.amount > EXACT:
            faults.append(Fault("R230", where, "has an amount beyond 2^53", "use a smaller amount"))
    return faults


def _pair_faults(where: str, step: PerturbStep, frame: pl.DataFrame) -> list[Fault]:
    """Why a swap would leave everything where it is: no pair to make, or only pairs of equal values."""
    sizes = np.bincount(_strata(frame, step.within))
    among = f" alike in {', '.join(step.within)}" if step.within else ""
    if frame.height and not full_pairs(sizes, step.share).any():
        most = some(int(sizes.max()), "row")
        message = f"{float(step.share):g} of at most {most}{among} is no pair, so nothing would be swapped"
        return [
            Fault("R230", where, message, "use a larger share, or fewer or coarser columns in within", frame.height)
        ]
    message = f"rows{among} have equal values, so nothing would be swapped"
    return [
        Fault("R230", f"{where}, column {name!r}", message, "leave it out of the step", frame.height)
        for name in step.columns
        if int(_strata(frame, (*step.within, name)).max(initial=0)) + 1 == len(sizes)
    ]


def unchanged(frame: pl.DataFrame, changed: pl.DataFrame, recipe: Recipe) -> list[Fault]:
    """Columns that a step left as they were, by chance or by rounding. Averages of equal values are what was asked."""
    remedy = "make the step stronger (amount, share, percent, keep, k or digits), or leave the column out of it"
    return [
        Fault("R230", f"step {n} ({step.method}), column {name!r}", "left every row as it was", remedy, frame.height)
        for n, step in enumerate(recipe.perturb, 1)
        for name in step.columns
        if step.method != "microaggregate"
        and frame[name].cast(changed[name].dtype).equals(changed[name], null_equal=True)
    ]


def _column_faults(where: str, step: PerturbStep, column: pl.Series, recipe: Recipe) -> list[Fault]:
    text = column.dtype == pl.String
    if step.method in NUMERIC:
        if text:
            remedy = "use swap or pram for categories, or set type"
            return [Fault("R231", where, "is not a column of numbers or dates", remedy, column.len())]
        return _number_faults(where, step, column)
    if step.method == "rank-swap":
        return _order_faults(where, column, recipe.columns[column.name].order, step)
    if step.method == "pram":
        return _category_faults(where, step, column)
    return []


def _number_faults(where: str, step: PerturbStep, column: pl.Series) -> list[Fault]:
    faults = []
    if column.null_count() and (step.method != "noise" or len(step.columns) > 1):
        remedy = "fill them in, or leave those rows out"
        if step.method == "noise":
            remedy += "; a step for one column leaves missing values where they are"
        places = first_rows(column.is_null())
        faults.append(Fault("R232", where, "has missing values", remedy, column.null_count(), places))
    known = column.drop_nulls()
    if step.method == "noise" and known.n_unique() < 2:
        message = "has one value only, so noise in its standard deviations is no noise"
        faults.append(Fault("R230", where, message, "leave it out of the step", column.len()))
    if step.digits and column.dtype == pl.Date:
        faults.append(Fault("R230", where, "holds dates, which have no decimals", "leave digits out"))
    large = (column.to_physical().cast(pl.Float64).abs() > EXACT).fill_null(False)
    if large.any():
        message, rows = "has numbers beyond 2^53", int(large.sum())
        faults.append(Fault("R230", where, message, "use smaller units", rows, first_rows(large)))
    return faults


def _order_faults(where: str, column: pl.Series, order: tuple[str, ...] | None, step: PerturbStep) -> list[Fault]:
    if column.dtype == pl.String and order is None:
        remedy = "state its order in [columns], or use swap"
        return [Fault("R231", where, "is text without an order, so it has no ranks", remedy, column.len())]
    faults = []
    if order is not None:
        wrong = column.is_not_null() & ~column.is_in(list(order))
        if wrong.any():
            unknown = column.filter(wrong)
            shown = ", ".join(brief(value) for value in unknown.unique(maintain_order=True).head(5))
            message = f"has values that its order does not name: {shown}"
            remedy = "add them to order in [columns]"
            faults.append(Fault("R231", where, message, remedy, unknown.len(), first_rows(wrong)))
    known = column.len() - column.null_count()
    if step.percent is not None and rank_distance(step.percent, known) < 1:
        message = f"{float(step.percent):g} % of {known:,} values is less than one rank, so nothing would be swapped"
        faults.append(Fault("R230", where, message, "use a larger percent"))
    return faults


def _category_faults(where: str, step: PerturbStep, column: pl.Series) -> list[Fault]:
    values = [plain_text(value) for value in _distinct(column)]
    if len(values) > MOST:
        message = f"has {len(values):,} different values; a matrix holds up to {MOST:,}"
        return [Fault("R233", where, message, "use swap or rank-swap", column.len())]
    if step.matrix is None:
        return []
    faults = []
    stated = {*step.matrix, *(to for row in step.matrix.values() for to in row)}
    lost, strange = [v for v in values if v not in step.matrix], sorted(stated - set(values))
    if lost:
        rows = column.len() if len(lost) == len(values) else None
        message = f"has values without a row in the matrix: {', '.join(map(brief, lost[:5]))}"
        faults.append(Fault("R233", where, message, "add a row for each", rows))
    if strange:
        message = f"never has {', '.join(map(brief, strange[:5]))}, which the matrix names"
        faults.append(Fault("R233", where, message, "name only values of the column"))
    for value, row in step.matrix.items():
        if sum(row.values()) != 1:
            message = f"the row of {brief(value)} sums to {sum(row.values())}"
            faults.append(Fault("R233", where, message, "let each row sum to 1"))
    return faults


def apply(frame: pl.DataFrame, step: PerturbStep, recipe: Recipe, rng: np.random.Generator) -> Done:
    """The step on a table without faults."""
    return APPLY[step.method](frame, step, recipe, rng)


def _swap(frame: pl.DataFrame, step: PerturbStep, recipe: Recipe, rng: np.random.Generator) -> Done:
    strata = _strata(frame, step.within)
    sources = [swap_pairs(strata, step.share, rng) for _ in step.columns[: 1 if step.together else None]]
    if step.together:
        sources *= len(step.columns)
    columns = {name: frame[name].gather(source) for name, source in zip(step.columns, sources, strict=True)}
    moved = [int((source != np.arange(frame.height)).sum()) for source in sources]
    return Done(columns, {"rows swapped": dict(zip(step.columns, moved, strict=True))})


def _strata(frame: pl.DataFrame, within: tuple[str, ...]) -> NDArray[np.int64]:
    if not within:
        return np.zeros(frame.height, dtype=np.int64)
    keys = frame.select(within)
    numbers = keys.unique(maintain_order=True).with_row_index("\0stratum")
    numbered = keys.join(numbers, on=keys.columns, how="left", nulls_equal=True, maintain_order="left")["\0stratum"]
    return numbered.cast(pl.Int64).to_numpy()


def _rank_swap(frame: pl.DataFrame, step: PerturbStep, recipe: Recipe, rng: np.random.Generator) -> Done:
    assert step.percent is not None
    columns, orders = {}, {}
    for name in step.columns:
        column, order = frame[name], recipe.columns[name].order
        if order is not None:
            orders[name] = list(order)
        known = np.flatnonzero(column.is_not_null().to_numpy())
        ranked = column.cast(pl.Enum(order)) if order is not None else column
        values = ranked.drop_nulls().to_physical().to_numpy()
        source = np.arange(frame.height)
        source[known] = known[swap_ranks(values, rank_distance(step.percent, len(values)), rng)]
        columns[name] = column.gather(source)
    return Done(columns, {"orders": orders})


def _pram(frame: pl.DataFrame, step: PerturbStep, recipe: Recipe, rng: np.random.Generator) -> Done:
    columns, matrices, values = {}, {}, {}
    for name in step.columns:
        distinct = _distinct(frame[name])
        table = pl.DataFrame({"value": distinct, "code": np.arange(len(distinct))})
        codes = (
            pl.DataFrame({"value": frame[name]})
            .join(table, on="value", how="left", nulls_equal=True, maintain_order="left")["code"]
            .to_numpy()
        )
        matrix = _matrix(step, distinct, np.bincount(codes, minlength=len(distinct)))
        columns[name] = distinct.gather(draw(codes, matrix, rng)).alias(name)
        matrices[name], values[name] = matrix, distinct
    return Done(columns, {"matrices": matrices, "values": values})


def _distinct(column: pl.Series) -> pl.Series:
    return column.unique().sort(nulls_last=False)


def _matrix(step: PerturbStep, values: pl.Series, counts: NDArray[np.int64]) -> Floats:
    if step.keep is not None:
        return keeping(counts, float(step.keep), step.invariant)
    assert step.matrix is not None
    names = [plain_text(value) for value in values]
    stated = np.array([[float(step.matrix[a].get(b, 0)) for b in names] for a in names])
    return invariant_of(stated, counts) if step.invariant else stated


def _noise(frame: pl.DataFrame, step: PerturbStep, recipe: Recipe, rng: np.random.Generator) -> Done:
    assert step.amount is not None
    known = frame.select(pl.all_horizontal(pl.col(step.columns).is_not_null())).to_series().to_numpy()
    values = _numbers(frame, step)[known]
    kept = step.preserve == "variance"
    noisy = np.full((frame.height, len(step.columns)), np.nan)
    noisy[known] = add_noise(values, float(step.amount), correlated=step.correlated, keep_variance=kept, rng=rng)
    return _published(frame, step, noisy, {})


def _microaggregate(frame: pl.DataFrame, step: PerturbStep, recipe: Recipe, rng: np.random.Generator) -> Done:
    values, groups, details = _grouped(frame, step)
    return _published(frame, step, group_means(values, groups), details)


def _condense(frame: pl.DataFrame, step: PerturbStep, recipe: Recipe, rng: np.random.Generator) -> Done:
    values, groups, details = _grouped(frame, step)
    return _published(frame, step, condense(values, groups, rng), details)


def _grouped(frame: pl.DataFrame, step: PerturbStep) -> tuple[Floats, NDArray[np.int64], dict[str, Any]]:
    assert step.k is not None
    values = _numbers(frame, step)
    algorithm = chosen(step.algorithm, *values.shape)
    groups = group_rows(values, step.k, algorithm)
    sizes = np.bincount(groups)
    figures = {"algorithm": algorithm, "number of groups": len(sizes), "largest group": int(sizes.max())}
    return values, groups, {"groups": groups, **figures}


def _numbers(frame: pl.DataFrame, step: PerturbStep) -> Floats:
    columns = frame.select(pl.col(step.columns).to_physical().cast(pl.Float64).fill_null(np.nan))
    return np.ascontiguousarray(columns.to_numpy())


def _published(frame: pl.DataFrame, step: PerturbStep, values: Floats, details: Mapping[str, Any]) -> Done:
    """Numbers as they are shown: whole where the column is whole, unless `digits` says otherwise."""
    stop_if(_range_faults(frame, step, values))
    columns, units = {}, {}
    for name, numbers in zip(step.columns, values.T, strict=True):
        dtype = frame[name].dtype
        whole = dtype != pl.Float64
        digits = step.digits if step.digits is not None else 0 if whole else None
        units[name] = 0.0 if digits is None else 10.0**-digits
        shown = pl.Series(name, numbers if digits is None else np.round(numbers, digits)).fill_nan(None)
        if whole and not digits:
            shown = shown.cast(pl.Int32 if dtype == pl.Date else pl.Int64).cast(dtype)
        columns[name] = shown
    return Done(columns, {**details, "units": units})


def _range_faults(frame: pl.DataFrame, step: PerturbStep, values: Floats) -> list[Fault]:
    """Columns that the step took to where there are no dates, or no exact whole numbers."""
    faults = []
    for name, numbers in zip(step.columns, values.T, strict=True):
        dtype = frame[name].dtype
        least, most = DAYS if dtype == pl.Date else (-np.inf, np.inf) if dtype == pl.Float64 else (-EXACT, EXACT)
        outside = int(((np.rint(numbers) < least) | (np.rint(numbers) > most)).sum())
        if outside:
            message = "would leave the years 1 to 9999" if dtype == pl.Date else "would have numbers beyond 2^53"
            where = f"{step.method}, column {name!r}"
            faults.append(Fault("R230", where, message, "use a smaller amount", outside))
    return faults


APPLY: dict[str, Callable[[pl.DataFrame, PerturbStep, Recipe, np.random.Generator], Done]] = {
    "swap": _swap,
    "rank-swap": _rank_swap,
    "pram": _pram,
    "noise": _noise,
    "microaggregate": _microaggregate,
    "condense": _condense,
}
