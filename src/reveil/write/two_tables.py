"""A plan becomes two tables: people, each with their group, and how often each group has each value.

Real people alone have a row. They show their quasi-identifiers in boxes of their own, or as they are. A counterfeit is
one more value of its group, and nothing else. In a series, insensitive cells are dealt out anew among the people of a
group, so that nobody is known again by them; a policy may leave them with their person instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from reveil.base.bags import values_of
from reveil.history.bags import as_people
from reveil.plan.cutting.boxes import boxes
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy
from reveil.published.format import BUNDLE, COUNT, GROUP
from reveil.table.encode import Encoded
from reveil.write.recode import ColumnBlock, Recoded, dealt, decode, fake_codes, labels_of


@dataclass(frozen=True, eq=False)
class Parted:
    """Both tables (values: one for each sensitive column), and what each box shows, where people are in boxes."""

    people: Recoded
    values: Mapping[str, pl.DataFrame]
    boxes: pl.DataFrame | None
    tuples: pl.DataFrame | None = None  # values of several columns side by side


def part(frame: pl.DataFrame, encoded: Encoded, plan: Plan, policy: Policy, rng: np.random.Generator) -> Parted:
    """Rows of people are shuffled; values are sorted, so that no order tells anything."""
    beside = plan.people_groups
    rows = rng.permutation(np.flatnonzero(beside >= 0))
    groups, lent = beside[rows], rows
    if policy.promises_series and policy.named("insensitive") and policy.method.insensitive == "dealt":
        lent = dealt(rows, groups, rng)
    shown = _boxes(encoded, plan, policy)
    parts = [ColumnBlock(pl.DataFrame({GROUP: np.arange(plan.count, dtype=np.int64)}), groups)]
    for name, spec in policy.columns.items():
        if spec.role == "insensitive":
            parts.append(ColumnBlock(frame.select(name), lent))
        elif spec.role == "quasi" and shown is not None:
            assert plan.people is not None  # or there were no boxes
            parts.append(ColumnBlock(shown.select(name), plan.people[rows]))
        elif spec.role == "quasi":
            parts.append(ColumnBlock(frame.select(name), rows))
    if policy.bundle is not None and plan.bundles is not None:
        names = pl.DataFrame({policy.bundle: np.arange(int(plan.bundles.max(initial=0)) + 1, dtype=np.int64)})
        parts.insert(1, ColumnBlock(names, plan.bundles[rows]))
        return Parted(Recoded(tuple(parts)), _bundles(frame, encoded, plan, policy), shown)
    values = {column.name: _counts(frame, encoded, plan, number) for number, column in enumerate(encoded.sensitive)}
    tuples = None if policy.method.together is None else _tuples(frame, encoded, plan, policy.method.together)
    return Parted(Recoded(tuple(parts)), values, shown, tuples)


def _bundles(frame: pl.DataFrame, encoded: Encoded, plan: Plan, policy: Policy) -> dict[str, pl.DataFrame]:
    """All values of each person of a group together, whose they may be; numbered by what they are, not by whose."""
    each, (column,) = as_people(frame, encoded, plan, policy), encoded.lasting
    kept = each.plan.groups >= 0
    groups = np.concatenate([each.plan.groups[kept], plan.counterfeit_groups]).astype(np.int64)
    codes = np.concatenate([each.encoded.codes[kept, 0], fake_codes(plan, 0)])
    used = np.unique(codes)
    held = [values_of(column.values[code]) for code in used.tolist()]
    listed_values, dtype = [value for bag in held for value in bag], frame[column.name].dtype
    if dtype == pl.Float64:  # whole ones come back as integers, which may be too long to be one
        listed_values = [None if value is None else float(value) for value in listed_values]
    known = pl.Series(column.name, listed_values, strict=False)
    if dtype == pl.Int64 and known.dtype == pl.Float64 and (known.round() != known).any():
        dtype = pl.Float64()  # numbers of earlier releases, in the bags of those who left
    listed = pl.DataFrame({"code": np.repeat(used, [len(bag) for bag in held])}).with_columns(known.cast(dtype))
    counted = listed.group_by("code", column.name).len(COUNT).cast({COUNT: pl.Int64})
    places = pl.DataFrame({GROUP: groups, "code": codes})
    alike = pl.DataFrame({"code": used, "like": pl.Series([column.values[code] for code in used.tolist()])})
    places = places.join(alike, on="code").sort(GROUP, "like")
    places = places.with_columns((pl.int_range(pl.len()).over(GROUP) + 1).alias(BUNDLE))
    told = places.join(counted, on="code").select(GROUP, BUNDLE, column.name, COUNT)
    return {column.name: told.sort(GROUP, BUNDLE, column.name, nulls_last=False)}


def _tuples(frame: pl.DataFrame, encoded: Encoded, plan: Plan, together: Sequence[str]) -> pl.DataFrame:
    """How often each group has each combination of values; a counterfeit's are those that its leaver had."""
    kept, names = plan.groups >= 0, [column.name for column in encoded.sensitive]
    columns = [pl.Series(GROUP, np.concatenate([plan.groups[kept], plan.counterfeit_groups]).astype(np.int64))]
    for number in (names.index(name) for name in together):
        codes = np.concatenate([encoded.codes[kept, number], fake_codes(plan, number)])
        columns.append(decode(encoded.sensitive[number], codes, frame[names[number]].dtype).rows()[0])
    counted = pl.DataFrame(columns).group_by(GROUP, *together).len(COUNT).cast({COUNT: pl.Int64})
    return counted.sort(GROUP, *together, nulls_last=False)


def _boxes(encoded: Encoded, plan: Plan, policy: Policy) -> pl.DataFrame | None:
    if plan.people is None:
        return None
    count = int(plan.people.max(initial=-1)) + 1
    regions = plan.regions or boxes(plan.people, encoded.positions, count)
    labels = labels_of(encoded.quasi, plan.people, encoded.positions, regions, policy)
    return pl.DataFrame([column.alias(name) for name, column in labels.items()])


def _counts(frame: pl.DataFrame, encoded: Encoded, plan: Plan, number: int) -> pl.DataFrame:
    """How often each group has each value of a sensitive column, counterfeits among them."""
    column = encoded.sensitive[number]
    kept = plan.groups >= 0
    groups = np.concatenate([plan.groups[kept], plan.counterfeit_groups]).astype(np.int64)
    codes = np.concatenate([encoded.codes[kept, number], fake_codes(plan, number)])
    width = max(1, len(column.values))
    keys, times = np.unique(groups * width + codes, return_counts=True)
    named = decode(column, (keys % width).astype(np.int32), frame[column.name].dtype).rows()[0]
    counted = pl.DataFrame([pl.Series(GROUP, keys // width), named, pl.Series(COUNT, times.astype(np.int64))])
    return counted.sort(GROUP, column.name, nulls_last=False)
