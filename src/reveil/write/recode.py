"""A plan becomes published columns: every row shows the generalised values of its group.

Numbers show an interval, taxonomies a node, or (recode = "sets") the set of values that the group has. Counterfeits
take the generalised values of their group and are rows like any other. In a series, insensitive cells do not stay with
the sensitive value of their row: rows could be known again by them in the next release, and counterfeits told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.arrays import offsets_by_key
from reveil.hierarchies.tree import Hierarchy
from reveil.plan.cutting.boxes import boxes, distinct_runs
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy
from reveil.published.format import GROUP
from reveil.published.sets import format_set, split_set
from reveil.table.encode import Codes, Encoded, Sensitive


@dataclass(frozen=True)
class ColumnBlock:
    """Neighbouring columns of a published table: what they show, once, and which of it each row shows."""

    cells: pl.DataFrame
    index: NDArray[np.integer[Any]]

    def rows(self) -> list[pl.Series]:
        return [column.gather(self.index) for column in self.cells.iter_columns()]


@dataclass(frozen=True)
class Recoded:
    """A published table in parts. Cells of a group or a value are the same in all its rows, and written together."""

    parts: tuple[ColumnBlock, ...]

    @cached_property
    def table(self) -> pl.DataFrame:
        return pl.DataFrame([column for part in self.parts for column in part.rows()])


def recode(
    frame: pl.DataFrame, encoded: Encoded, plan: Plan, policy: Policy, rng: np.random.Generator, *, group_column: bool
) -> Recoded:
    """The published table: policy order of columns, rows shuffled, counterfeits among them."""
    kept = np.flatnonzero(plan.groups >= 0)
    sources = np.concatenate([kept, _model_rows(kept, plan, rng)])
    shuffled = rng.permutation(len(sources))
    groups = np.concatenate([plan.groups[kept], plan.counterfeit_groups])[shuffled]
    lent = sources[shuffled]
    if policy.promises_series and policy.named("insensitive"):
        lent = dealt(lent, groups, rng)
    labels = group_labels(encoded, plan, policy)
    shown = [pl.Series(GROUP, np.arange(plan.count))] if group_column else []
    parts = []
    if policy.bundle is not None and plan.bundles is not None:
        names = pl.DataFrame({policy.bundle: np.arange(int(plan.bundles.max(initial=0)) + 1, dtype=np.int64)})
        parts.append(ColumnBlock(names, plan.bundles[kept][shuffled]))
    for name, spec in policy.columns.items():
        if spec.role == "quasi":
            shown.append(labels[name].alias(name))
        elif spec.role in ("sensitive", "insensitive"):
            parts += [ColumnBlock(pl.DataFrame(shown), groups)] if shown else []
            shown = []
        if spec.role == "sensitive":
            number = [column.name for column in encoded.sensitive].index(name)
            codes = np.concatenate([encoded.codes[kept, number], fake_codes(plan, number)])[shuffled]
            parts.append(decode(encoded.sensitive[number], codes, frame[name].dtype))
        elif spec.role == "insensitive":
            parts.append(ColumnBlock(frame.select(name), lent))
    parts += [ColumnBlock(pl.DataFrame(shown), groups)] if shown else []
    return Recoded(tuple(parts))


def decode(column: Sensitive, codes: NDArray[np.int32], dtype: pl.DataType) -> ColumnBlock:
    """The values that belong to codes, in the type that they have in this release.

    Earlier releases may have had other numbers than whole ones; they matter only where counterfeits repeat them.
    """
    used = np.flatnonzero(np.bincount(codes, minlength=len(column.values)))
    values = [column.values[code] for code in used]
    if dtype == pl.Int64 and any(isinstance(value, float) and not value.is_integer() for value in values):
        dtype = pl.Float64()
    place = np.zeros(len(column.values), dtype=np.int64)
    place[used] = np.arange(len(used))
    return ColumnBlock(pl.DataFrame([pl.Series(column.name, values, dtype=dtype, strict=False)]), place[codes])


def fake_codes(plan: Plan, number: int) -> Codes:
    return plan.counterfeit_codes[:, number] if plan.counterfeits else np.empty(0, dtype=np.int32)


def dealt(sources: NDArray[np.int64], groups: Codes, rng: np.random.Generator) -> NDArray[np.int64]:
    """The sources of each group, dealt out anew among its rows."""
    order = rng.permutation(len(sources))
    anew = np.empty_like(sources)
    anew[np.argsort(groups, kind="stable")] = sources[order[np.argsort(groups[order], kind="stable")]]
    return anew


def _model_rows(kept: NDArray[np.int64], plan: Plan, rng: np.random.Generator) -> NDArray[np.int64]:
    """For each counterfeit, a row (of its group where there is one) whose insensitive values it borrows."""
    if not plan.counterfeits:
        return np.empty(0, dtype=np.int64)
    by_group = kept[np.argsort(plan.groups[kept], kind="stable")]
    starts = offsets_by_key(plan.groups[by_group], plan.count)
    low, high = starts[plan.counterfeit_groups], starts[plan.counterfeit_groups + 1]
    empty = low == high
    low, high = np.where(empty, 0, low), np.where(empty, len(kept), high)
    return by_group[rng.integers(low, high)]


def group_labels(encoded: Encoded, plan: Plan, policy: Policy) -> dict[str, pl.Series]:
    """What each group shows in each quasi-identifier. Regions include the people of a population table, if any."""
    groups, positions = plan.groups, encoded.positions
    if plan.population_groups is not None and encoded.population is not None:
        groups = np.concatenate([groups, plan.population_groups])
        positions = np.concatenate([positions, encoded.population])
    return labels_of(encoded.quasi, groups, positions, plan.boxes or boxes(groups, positions, plan.count), policy)


def labels_of(
    quasi: Sequence[Hierarchy], groups: Codes, positions: Codes, regions: tuple[Codes, Codes], policy: Policy
) -> dict[str, pl.Series]:
    """What rows that are shown alike show in each quasi-identifier, by the number of their group (-1: none)."""
    low, high = regions
    labels = {}
    kept, sets = groups >= 0, policy.method.recode == "sets"
    for number, hierarchy in enumerate(quasi):
        run = low[:, number], high[:, number]
        if sets and not hierarchy.free:
            labels[hierarchy.name] = _set_labels(hierarchy, groups[kept], positions[kept, number])
        elif sets and hierarchy.has_missing:
            known = _known_low(groups[kept], positions[kept, number], len(low))
            labels[hierarchy.name] = _run_labels(hierarchy, *run, known)
        else:
            labels[hierarchy.name] = _run_labels(hierarchy, *run)
    return labels


def _known_low(groups: Codes, positions: Codes, count: int) -> Codes:
    """The lowest position of each group that is not the missing value's."""
    lowest = np.full(count, np.int32(2**31 - 1), dtype=np.int32)
    np.minimum.at(lowest, groups[positions > 0], positions[positions > 0])
    return lowest


def _run_labels(hierarchy: Hierarchy, low: Codes, high: Codes, known: Codes | None = None) -> pl.Series:
    """Runs of neighbours. With `known`, a missing value beside a run is shown as a set of both, and not as anything.

    A run of the missing value and known ones is told apart by where the known ones begin.
    """
    size = len(hierarchy)
    if known is not None:
        low = np.where((low == 0) & (high > 0), np.int32(size) + known, low)
    cells, index = run_labels(hierarchy, low, high)
    return cells.gather(index)


def run_labels(hierarchy: Hierarchy, low: Codes, high: Codes) -> tuple[pl.Series, NDArray[np.int64]]:
    """The texts of different runs, and which of them each entry shows; `low` may be moved beyond the hierarchy."""
    size = len(hierarchy)
    runs, index = distinct_runs(low, high, size)
    texts = [_run_text(hierarchy, 0, a - size, b) if a >= size else _run_text(hierarchy, a, 0, b) for a, b in runs]
    return pl.Series(texts, dtype=pl.String), index


def _run_text(hierarchy: Hierarchy, low: int, known: int, high: int) -> str | None:
    if known and (known > 1 or high < len(hierarchy) - 1):
        return format_set([None, hierarchy.label(known, high)])
    return _text(hierarchy.label(low, high))


def _text(label: str) -> str | None:
    """The missing value is published as missing, and a value that looks like a set as the set of it alone."""
    return format_set([label]) if split_set(label) is not None else label or None


def _set_labels(hierarchy: Hierarchy, groups: Codes, positions: Codes) -> pl.Series:
    pairs = np.unique(groups.astype(np.int64) * len(hierarchy) + positions)
    members = pl.DataFrame({"group": pairs // len(hierarchy), "position": pairs % len(hierarchy)})
    lists = members.group_by("group", maintain_order=True).agg("position").sort("group")["position"]
    distinct = lists.unique(maintain_order=True)
    texts = [_set_text(hierarchy, tuple(run)) for run in distinct.to_list()]
    table = pl.DataFrame({"run": distinct}).with_row_index("text")
    index = pl.DataFrame({"run": lists}).join(table, on="run", how="left", maintain_order="left")["text"]
    return pl.Series(texts, dtype=pl.String).gather(index)


def _set_text(hierarchy: Hierarchy, positions: tuple[int, ...]) -> str | None:
    if len(positions) == 1:
        return _text(hierarchy.label(positions[0], positions[0]))
    if len(positions) == len(hierarchy):
        return hierarchy.labels[0]
    return format_set([hierarchy.label(p, p) or None for p in positions])
