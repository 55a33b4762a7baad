"""What analysts would find in a release: means, spreads, correlations, regressions and predictions, before and after.

Every cell becomes what it says to somebody who knows no more: an interval of numbers its middle (within the range of
the column), a set of categories equal shares of each. So one and the same analysis runs over the original and over the
published rows, which are shuffled and are never matched one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from reveil.base.errors import Fault, InputError
from reveil.measure.axes import Axis, Classes, Floats, Read
from reveil.policy.policy import Policy
from reveil.published.notation import Cell

MOST_VALUES = 20  # of a category, the most frequent, that analyses look at
MOST_ROWS = 50_000  # of either table that a model is fitted to, drawn by lot
FOLDS = 5
WIDTH = 1.959963984540054  # standard errors on either side of a coefficient: 95 %
METHOD = "logistic regression, cross-validated in five parts"


@dataclass(frozen=True)
class Coefficient:
    """One coefficient of a linear regression with its interval, in both tables."""

    feature: str
    before: tuple[float, float, float]  # value, and the ends of its interval
    after: tuple[float, float, float]
    overlap: float  # mean share of the two intervals that they have in common


@dataclass(frozen=True)
class Regression:
    """A numeric column explained by the quasi-identifiers."""

    target: str
    coefficients: tuple[Coefficient, ...]
    overlap: float  # mean over the coefficients
    r_squared: tuple[float, float]  # before and after


@dataclass(frozen=True)
class Prediction:
    """A column predicted from the quasi-identifiers: the share that is right."""

    target: str
    baseline: float  # always the most frequent value
    before: float
    after: float
    method: str = METHOD

    @property
    def kept(self) -> float | None:
        """The share of what the original tells beyond the baseline that the release tells, too."""
        gained = self.before - self.baseline
        return (self.after - self.baseline) / gained if gained > 0 else None


@dataclass(frozen=True)
class Analysis:
    """An analyst's view of what was lost."""

    squared_error: Mapping[str, float]  # numeric quasi-identifiers: expected, over the squared spread of the column
    distributions: Mapping[str, float]  # quasi-identifiers: total variation distance of the shares of values
    correlations: Mapping[str, tuple[float, float]]  # pairs of numeric columns, before and after
    eigenvalues: tuple[tuple[float, ...], tuple[float, ...]]  # of the matrix of correlations, falling
    prediction: Prediction | None = None
    regression: Regression | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class _Side:
    """One of the two tables: features of each row by name, and the columns that are as they are."""

    features: Mapping[str, Floats]
    frame: pl.DataFrame


def analyse(
    classes: Classes, published: pl.DataFrame, original: pl.DataFrame, policy: Policy, predict: str | None, seed: int
) -> Analysis:
    """Compare what analyses find; `predict` is a sensitive or insensitive column, for a model of it."""
    kinds = [read for read in classes.reads if read.axis.numbers is not None]
    before = _Side(_features(classes.reads, [_original_cells(read.axis, original) for read in classes.reads]), original)
    after = _Side(_features(classes.reads, [(_said(read), read.index) for read in classes.reads]), published)
    withheld = max(0, original.height - int(classes.real.sum()))
    names, pairs = _numbers(before, after, policy, [read.axis.name for read in kinds])
    matrices = [_correlations(columns) for columns in pairs]
    prediction = regression = None
    if predict is not None:
        _refuse_target(predict, published, original, policy)
        if original[predict].dtype.is_numeric():
            regression = _regression(predict, before, after, seed)
        else:
            prediction = _prediction(predict, before, after, seed)
    return Analysis(
        squared_error={read.axis.name: squared_error(read, withheld) for read in kinds},
        distributions={read.axis.name: variation(read) for read in classes.reads},
        correlations={
            f"{a} ~ {b}": (float(matrices[0][i, j]), float(matrices[1][i, j]))
            for i, a in enumerate(names)
            for j, b in enumerate(names)
            if i < j
        },
        eigenvalues=(_eigenvalues(matrices[0]), _eigenvalues(matrices[1])),
        prediction=prediction,
        regression=regression,
    )


def squared_error(read: Read, withheld: int) -> float:
    """The expected squared distance from what a row had to what it shows, over that from the mean of the column.

    A row of a cell had any of the values inside of it, as often as the original has them. Withheld rows show the mean.
    """
    axis = read.axis
    assert axis.numbers is not None
    numbers = np.asarray(axis.numbers, dtype=np.float64)
    counts = axis.counts[len(axis.values) - len(numbers) :].astype(np.float64)
    mean = float(counts @ numbers / max(1.0, counts.sum()))
    spread = float(counts @ (numbers - mean) ** 2)
    if not spread:
        return 0.0
    shown, rows = _said(read)[:, 0], np.bincount(read.index, minlength=len(read.cells))
    lost = withheld * spread / counts.sum()
    first = len(axis.values) - len(numbers)
    for cell, runs in enumerate(read.runs):
        ranks = np.array([r - first for a, b in runs for r in range(a, b + 1) if r >= first], dtype=np.int64)
        inside = counts[ranks].sum()
        if inside:
            lost += rows[cell] * float(counts[ranks] @ (numbers[ranks] - shown[cell]) ** 2) / inside
    return float(lost / spread)


def variation(read: Read) -> float:
    """Total variation distance: half the summed differences of shares, where a cell stands for its values alike."""
    shares = np.zeros(len(read.axis.values))
    rows = np.bincount(read.index, minlength=len(read.cells))
    for cell, runs in enumerate(read.runs):
        width = sum(b - a + 1 for a, b in runs)
        for a, b in runs:
            shares[a : b + 1] += rows[cell] / width
    total, counts = shares.sum(), read.axis.counts
    return float(np.abs(shares / total - counts / counts.sum()).sum() / 2) if total else 1.0


def _said(read: Read) -> Floats:
    """The features of each cell: one number, or shares of categories."""
    axis = read.axis
    if axis.numbers is not None:
        middle = float(np.mean(axis.numbers)) if len(axis.numbers) else 0.0
        return np.array([_middle(axis, cell, middle) for cell in read.cells]).reshape(-1, 1)
    wanted = _frequent(axis)
    shares = np.zeros((len(read.cells), len(wanted)))
    for cell, runs in enumerate(read.runs):
        ranks = [r for a, b in runs for r in range(a, b + 1)]
        for place, rank in enumerate(wanted):
            shares[cell, place] = (rank in ranks) / max(1, len(ranks))
    return shares


def _middle(axis: Axis, cell: Cell, otherwise: float) -> float:
    """The middle of an interval; of several, by their widths; of single numbers, their mean."""
    spans = [(float(low), float(high)) for low, high in axis.spans(cell)] if cell.kind != "missing" else []
    if not spans:
        return otherwise
    widths = np.array([high - low for low, high in spans])
    middles = np.array([(low + high) / 2 for low, high in spans])
    return float(np.average(middles, weights=widths + axis.step if widths.any() else None))


def _frequent(axis: Axis) -> list[int]:
    """The ranks of the most frequent values; the first of them is what the others are compared with."""
    return sorted(range(len(axis.values)), key=lambda rank: (-int(axis.counts[rank]), rank))[:MOST_VALUES]


def _original_cells(axis: Axis, original: pl.DataFrame) -> tuple[Floats, Any]:
    """Features of each value of the original, and which of them each row has."""
    column = original[axis.name]
    distinct = column.unique()
    ranks = [axis.rank(value) for value in distinct.to_list()]
    if axis.numbers is not None:
        numbers = np.asarray(axis.numbers, dtype=np.float64)
        first, middle = len(axis.values) - len(numbers), float(numbers.mean()) if len(numbers) else 0.0
        features = np.array([[numbers[r - first] if r >= first else middle] for r in ranks]).reshape(-1, 1)
    else:
        wanted = {rank: place for place, rank in enumerate(_frequent(axis))}
        features = np.zeros((len(ranks), len(wanted)))
        for row, rank in enumerate(ranks):
            if rank in wanted:
                features[row, wanted[rank]] = 1.0
    table = pl.DataFrame({"value": distinct, "place": np.arange(len(ranks))})
    joined = pl.DataFrame({"value": column}).join(
        table, on="value", how="left", nulls_equal=True, maintain_order="left"
    )
    return features, joined["place"].to_numpy()


def _features(reads: Sequence[Read], sides: Sequence[tuple[Floats, Any]]) -> dict[str, Floats]:
    """Columns of numbers by name: one for a number, one for each frequent value of a category but the first."""
    found = {}
    for read, (cells, index) in zip(reads, sides, strict=True):
        axis = read.axis
        if axis.numbers is not None:
            found[axis.name] = cells[:, 0][index]
        else:
            for place, rank in list(enumerate(_frequent(axis)))[1:]:
                found[f"{axis.name}={axis.values[rank]}"] = cells[:, place][index]
    return found


def _numbers(
    before: _Side, after: _Side, policy: Policy, quasi: Sequence[str]
) -> tuple[list[str], tuple[list[Floats], list[Floats]]]:
    """Numeric columns of both tables: quasi-identifiers, and others that are published as they are."""
    kept = [
        name
        for name in (*policy.named("sensitive"), *policy.named("insensitive"))
        if before.frame[name].dtype.is_numeric()
        and after.frame[name].dtype.is_numeric()
        and not before.frame[name].null_count() + after.frame[name].null_count()
    ]
    columns = [
        [*(side.features[name] for name in quasi), *(side.frame[name].cast(pl.Float64).to_numpy() for name in kept)]
        for side in (before, after)
    ]
    return [*quasi, *kept], (columns[0], columns[1])


def _correlations(columns: Sequence[Floats]) -> Floats:
    """Pearson's correlations; 0 where a column has one value only."""
    matrix = np.eye(len(columns))
    centred = [column - column.mean() if len(column) else column for column in columns]
    norms = [float(np.sqrt(column @ column)) for column in centred]
    for i in range(len(columns)):
        for j in range(i):
            if norms[i] > 0 and norms[j] > 0:
                matrix[i, j] = matrix[j, i] = float(centred[i] @ centred[j]) / (norms[i] * norms[j])
    return matrix


def _eigenvalues(matrix: Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in np.linalg.eigvalsh(matrix)[::-1]) if len(matrix) else ()


def _refuse_target(name: str, published: pl.DataFrame, original: pl.DataFrame, policy: Policy) -> None:
    able = [*policy.named("sensitive"), *policy.named("insensitive")]
    if name not in able or name not in published.columns:
        message = "is not published as it is beside the quasi-identifiers, so that nothing can be predicted from it"
        remedy = f"name one of {', '.join(able)}" if able else "give a column the role sensitive or insensitive"
        raise InputError(Fault("R914", f"column {name!r}", message, remedy))
    values = original[name].fill_nan(None) if original[name].dtype.is_float() else original[name]
    if values.null_count():
        raise InputError(Fault("R914", f"column {name!r}", "has missing values", "predict another column"))


def _matrix(side: _Side, target: str, seed: int) -> tuple[Floats, pl.Series]:
    """The features of rows that are drawn where there are many, and what is to be predicted."""
    rows = np.arange(side.frame.height)
    if len(rows) > MOST_ROWS:
        rows = np.sort(np.random.default_rng(seed).choice(rows, MOST_ROWS, replace=False))
    columns = [column[rows] for column in side.features.values()]
    return np.column_stack(columns) if columns else np.empty((len(rows), 0)), side.frame[target][rows]


def _prediction(target: str, before: _Side, after: _Side, seed: int) -> Prediction:
    shares = before.frame[target].value_counts(normalize=True, name="share")["share"]
    right = [_accuracy(*_matrix(side, target, seed), seed) for side in (before, after)]
    return Prediction(target, float(shares.max()), *right)  # type: ignore[arg-type]


def _accuracy(features: Floats, values: pl.Series, seed: int) -> float:
    """The share of rows that a model of the other parts predicts."""
    try:
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import KFold
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        message, remedy = "needs scikit-learn", "pip install 'reveil[task]'"
        raise InputError(Fault("R915", "--predict", message, remedy)) from None
    codes = (values.cast(pl.String).rank("dense") - 1).to_numpy()
    if len(codes) < FOLDS:
        raise InputError(Fault("R914", "--predict", f"needs {FOLDS} rows or more", "predict nothing", len(codes)))
    right = 0
    for train, test in KFold(FOLDS, shuffle=True, random_state=seed).split(features):
        if len(np.unique(codes[train])) == 1 or not features.shape[1]:  # nothing to choose, or nothing to tell by
            right += int((codes[test] == np.bincount(codes[train]).argmax()).sum())
            continue
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
        model.fit(features[train], codes[train])
        right += int((model.predict(features[test]) == codes[test]).sum())
    return right / len(codes)


def _regression(target: str, before: _Side, after: _Side, seed: int) -> Regression:
    """Linear regressions of a numeric column on all features, and how far their intervals overlap."""
    fits = [fitted(*_matrix(side, target, seed)) for side in (before, after)]
    (first, one), (second, other) = fits
    coefficients = []
    for place, name in enumerate(["(constant)", *before.features]):
        ours, theirs = first[place], second[place]
        coefficients.append(Coefficient(name, ours, theirs, overlap(ours[1:], theirs[1:])))
    mean = float(np.mean([each.overlap for each in coefficients]))
    return Regression(target, tuple(coefficients), mean, (one, other))


def fitted(features: Floats, values: pl.Series) -> tuple[list[tuple[float, float, float]], float]:
    """Least squares: each coefficient with its 95 % interval, the constant first; and the share explained."""
    y = values.cast(pl.Float64).to_numpy()
    x = np.column_stack([np.ones(len(y)), features])
    inverse = np.linalg.pinv(x.T @ x, hermitian=True)
    beta = inverse @ (x.T @ y)
    rest = y - x @ beta
    free = max(1, len(y) - int(np.linalg.matrix_rank(x)))
    errors = WIDTH * np.sqrt(np.maximum(0.0, np.diag(inverse)) * float(rest @ rest) / free)
    spread = float(((y - y.mean()) ** 2).sum())
    found = [(float(b), float(b - e), float(b + e)) for b, e in zip(beta, errors, strict=True)]
    return found, 1 - float(rest @ rest) / spread if spread else 0.0


def overlap(one: Sequence[float], other: Sequence[float]) -> float:
    """The mean share of two intervals that they have in common (Karr et al. 2006); 0 where they are apart.

    >>> overlap((0, 2), (1, 5)), overlap((0, 1), (2, 3)), overlap((1, 1), (0, 2))
    (0.375, 0.0, 0.5)
    """
    common = min(one[1], other[1]) - max(one[0], other[0])
    if common < 0:
        return 0.0
    shares = [common / (high - low) if high > low else 1.0 for low, high in (one, other)]
    return float(np.mean(shares))
