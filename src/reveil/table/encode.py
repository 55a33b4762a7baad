"""Values to integers: quasi-identifiers to positions in their hierarchies, sensitive values to codes.

All planning works on these small matrices. Sensitive codes are append-only over a series: a value keeps its code for
ever, new values get the next one. A quasi-identifier value keeps its generalisations for ever (`changed_paths`).
"""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import cpu_count
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.background.loading import Background, load_background
from reveil.background.transitions import domain
from reveil.base.errors import Fault, InputError, brief, stop_if
from reveil.base.words import some
from reveil.guarantees.descriptor import TRANSITIONS
from reveil.hierarchies import scales
from reveil.hierarchies.tree import Hierarchy
from reveil.policy.column import Column
from reveil.policy.method import GLOBAL_SCHEMES, MethodSection
from reveil.policy.policy import Policy
from reveil.table.numbers import first_rows

Codes = NDArray[np.int32]
CodeBook = Mapping[str, Sequence[Any]]  # sensitive column -> its values by code, over the whole series


@dataclass(frozen=True, eq=False)
class Sensitive:
    """One sensitive column: the value of each code, and how alike values are where that is known."""

    name: str
    values: tuple[Any, ...]  # by code; None is the missing value
    numeric: bool
    hierarchy: Hierarchy | None  # for the hierarchical distance
    order: tuple[str, ...] | None = None  # for the ordered distance of categories


@dataclass(frozen=True, eq=False)
class Bags:
    """What a series keeps of people with several rows: all their values that are shown, as one value."""

    column: Sensitive  # the texts of bags (`reveil.base.bags`), over the whole series
    codes: Codes  # of each row: that of its person's bag
    shown: NDArray[np.bool_]  # whether the row is among those that are shown


@dataclass(frozen=True, eq=False)
class Encoded:
    """A table as integers, one row per person."""

    quasi: tuple[Hierarchy, ...]
    positions: Codes  # rows x quasi
    sensitive: tuple[Sensitive, ...]
    codes: Codes  # rows x sensitive
    population: Codes | None = None  # people x quasi, where presence is protected
    persons: NDArray[np.int64] | None = None  # number of each row's person in the history, in a series
    signatures: Codes | None = None  # rows x priors: which distribution is known beforehand, where priors are given

    owners: NDArray[np.int64] | None = None  # number of each row's person or household, where they may have several
    each: int = 1
    """Rows of a person side by side: so often come the quasi-identifiers, and in `codes` the columns of each sensitive
    one after another, where -1 is a value that the person has once more."""

    bags: Bags | None = None  # in a series, where somebody may have several rows
    totals: tuple[NDArray[np.int64], ...] | None = None
    """Where this is a part of a table: by sensitive column, how often each code occurs in all of it."""

    @property
    def rows(self) -> int:
        return int(self.positions.shape[0])

    @property
    def lasting(self) -> tuple[Sensitive, ...]:
        """The sensitive columns as a series remembers them."""
        return self.sensitive if self.bags is None else (self.bags.column,)

    @property
    def kept(self) -> Codes:
        """What a series remembers of each row: rows x lasting columns."""
        return self.codes if self.bags is None else self.bags.codes[:, None]

    def spread(self, number: int, rows: NDArray[Any] | None = None) -> NDArray[np.int64]:
        """How many of these rows (all of them) have each value of a sensitive column."""
        codes = self.codes[:, number * self.each : (number + 1) * self.each]
        kept = (codes if rows is None else codes[rows]).ravel()
        return np.bincount(kept[kept >= 0], minlength=len(self.sensitive[number].values)).astype(np.int64)


def encode(
    frame: pl.DataFrame, policy: Policy, known: CodeBook | None = None, background: Background | None = None
) -> Encoded:
    """Encode a table whose columns have been checked by `roles.prepare`.

    `known` are the sensitive values of earlier releases by code; `background` is what the policy states beside the
    table, where it has been read already.
    """
    faults: list[Fault] = []
    background = background or load_background(policy)
    population, stated = background.population, background.hierarchies
    quasi, columns, others = [], [], []
    names = policy.named("quasi")
    stop_if(_unlike(frame, population, names))
    values = [frame[name] if population is None else pl.concat([frame[name], population[name]]) for name in names]
    with ThreadPoolExecutor(cpu_count() or 1) as columns_at_once:
        encoded = [
            columns_at_once.submit(positions_of, v.name, policy.columns[v.name], v, stated.get(v.name), frame.height)
            for v in values
        ]
    for column in encoded:
        try:
            hierarchy, positions = column.result()
        except InputError as error:
            faults += error.faults
            continue
        quasi.append(as_published(hierarchy, policy.method))
        columns.append(positions[: frame.height])
        others.append(positions[frame.height :])
    sensitive, codes = [], []
    for name in policy.named("sensitive"):
        try:
            kept, coded = sensitive_of(frame[name], policy, (known or {}).get(name, ()), stated.get(name))
        except InputError as error:
            faults += error.faults
            continue
        sensitive.append(kept)
        codes.append(coded)
    if faults:
        raise InputError(faults)
    return Encoded(
        quasi=tuple(quasi),
        positions=np.ascontiguousarray(np.column_stack(columns)),
        sensitive=tuple(sensitive),
        codes=np.column_stack(codes) if codes else np.empty((frame.height, 0), dtype=np.int32),
        population=None if population is None else np.ascontiguousarray(np.column_stack(others)),
        owners=None if policy.owner is None else _numbers(frame[policy.owner]),
    )


def _unlike(frame: pl.DataFrame, population: pl.DataFrame | None, names: Sequence[str]) -> list[Fault]:
    """Columns that are of one kind in the table and of another in the population."""
    if population is None:
        return []
    remedy = "write both alike, or give the column a type in the policy"
    return [
        Fault("R407", f"population, column {name!r}", f"is {of.dtype}, and {frame[name].dtype} in the table", remedy)
        for name, of in ((name, population[name]) for name in names)
        if of.dtype != frame[name].dtype
    ]


def _numbers(names: pl.Series) -> NDArray[np.int64]:
    """A number for each different name, in each row that has it."""
    return (names.cast(pl.String).rank("dense").cast(pl.Int64) - 1).to_numpy()


def as_published(hierarchy: Hierarchy, method: MethodSection) -> Hierarchy:
    """What the method may publish of a hierarchy: nothing between value and `*`, nodes only, or all of it."""
    if method.recode == "suppress":
        return hierarchy.flat()
    return hierarchy.tied() if hierarchy.free and method.name in GLOBAL_SCHEMES else hierarchy


def positions_of(
    name: str, spec: Column, values: pl.Series, tree: Hierarchy | None = None, rows: int | None = None
) -> tuple[Hierarchy, Codes]:
    """The hierarchy of a column and the position of each of its values in it. After `rows` comes the population.

    `tree` is the hierarchy that the policy states, where it states one.
    """
    stated = spec.hierarchy is not None or spec.order is not None  # then the values of this table need not be known
    distinct = values.clear() if stated else values.unique().drop_nulls().sort()
    hierarchy, leaf = _build(name, spec, distinct, values.null_count() > 0, tree)
    place = {value: position for position, value in enumerate(hierarchy.leaves)}
    known = pl.Series(list(leaf), dtype=pl.String) if stated else distinct
    table = np.array([place[leaf[value]] for value in known], dtype=np.int32)
    try:
        return hierarchy, look_up(values, known, table)
    except pl.exceptions.InvalidOperationError:
        own = len(values) if rows is None else rows
        parts = {"": values.head(own), " of the population": values.slice(own)}
        wrong = {part: column for part, column in parts.items() if set(column.drop_nulls()) - set(leaf)}
        faults = [_uncovered(name, spec, column, set(leaf), part) for part, column in wrong.items()]
        raise InputError(faults) from None


def _build(name: str, spec: Column, distinct: pl.Series, missing: bool, tree: Hierarchy | None) -> scales.Built:
    values = distinct.to_list()
    if spec.widths is not None:
        return scales.widths(name, values, spec.widths, missing)
    if spec.cuts is not None:
        levels = spec.cuts if isinstance(spec.cuts[0], tuple) else (spec.cuts,)
        return scales.cuts(name, values, levels, missing)
    if spec.prefixes is not None:
        return scales.prefixes(name, values, spec.prefixes, missing)
    if spec.order is not None:
        return scales.ordered(name, spec.order, missing)
    if spec.hierarchy is not None:
        assert tree is not None
        return tree.regrown(missing), {value: value for value in tree.known}
    if distinct.dtype == pl.Date:
        return scales.dates(name, values, spec.levels, missing)
    if distinct.dtype.is_numeric():
        ends = (spec.bottom, spec.top)
        return (
            scales.numbers(name, values, missing) if ends == (None, None) else scales.coded(name, values, ends, missing)
        )
    return scales.flat(name, values, missing)


def look_up(values: pl.Series, distinct: pl.Series, table: Codes) -> Codes:
    """The entry of `table` that belongs to each value; a missing value is at position 0."""
    if len(distinct) == 0:
        return np.zeros(len(values), dtype=np.int32)
    if values.dtype == pl.String:
        codes: Codes = table[values.cast(pl.Enum(distinct)).to_physical().fill_null(0).to_numpy()]
    else:
        keys = _wide(distinct.to_physical().to_numpy())
        physical = values.to_physical()
        numbers = _wide((physical.fill_null(keys[0]) if physical.null_count() else physical).to_numpy())
        codes = _entries(numbers, keys, table)
    if values.null_count():
        codes[values.is_null().to_numpy()] = 0
    return codes


def _wide(numbers: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers as 64 bits, so that differences of small types cannot overflow."""
    return numbers.astype(np.int64, copy=False) if np.issubdtype(numbers.dtype, np.integer) else numbers


def _entries(values: NDArray[Any], keys: NDArray[Any], table: Codes) -> Codes:
    """The entry of each value, which is one of the sorted keys: directly for small whole numbers, or by bisection."""
    if np.issubdtype(keys.dtype, np.integer) and int(keys[-1]) - int(keys[0]) < 1 << 20:
        direct = np.zeros(int(keys[-1]) - int(keys[0]) + 1, dtype=np.int32)
        direct[keys - keys[0]] = table
        return np.take(direct, values - keys[0] if keys[0] else values)
    return np.take(table, np.searchsorted(keys, values))


def _uncovered(name: str, spec: Column, values: pl.Series, leaves: set[Hashable], part: str = "") -> Fault:
    counts = values.drop_nulls().value_counts(sort=True, name="rows")
    unknown = [(value, rows) for value, rows in counts.iter_rows() if value not in leaves]
    texts = [str(leaf) for leaf in leaves]
    shown = []
    for value, rows in unknown[:10]:
        near = difflib.get_close_matches(str(value)[:100], texts, n=1)
        shown.append(f"{brief(value)} ({some(rows, 'row')}{f', nearest {brief(near[0])}' if near else ''})")
    more = f" and {len(unknown) - 10} more" if len(unknown) > 10 else ""
    source = spec.hierarchy if isinstance(spec.hierarchy, str) else "its hierarchy" if spec.hierarchy else "order"
    return Fault(
        "R301",
        f"column {name!r}{part}",
        f"{source} does not cover {some(len(unknown), 'value')}: {', '.join(shown)}{more}",
        f"add these values to {source}, or correct them",
        sum(rows for _, rows in unknown),
        first_rows(values.is_in([value for value, _ in unknown])),
    )


def _unseen(values: pl.Series, policy: Policy, seen: set[Any]) -> list[Any]:
    """Values that the transitions name and no table had so far, in the type of the column."""
    texts = domain(policy)
    named = pl.Series(texts, dtype=pl.String).cast(values.dtype, strict=False)
    wrong = [text for text, value in zip(texts, named, strict=True) if value is None and text]
    if wrong:
        message = f"name {brief(wrong[0])}, which is not a value of a column of {values.dtype}"
        raise InputError(Fault("R312", "transitions", message, "correct the transitions, or the type of the column"))
    return [value for value in named if value is not None and value not in seen]


def sensitive_of(
    values: pl.Series, policy: Policy, known: Sequence[Any], tree: Hierarchy | None
) -> tuple[Sensitive, Codes]:
    spec = policy.columns[values.name]
    distinct = values.unique().drop_nulls().sort()
    seen = set(known)
    fresh = [value for value in distinct.to_list() if value not in seen]
    if values.null_count() and None not in seen:
        fresh.append(None)
    if policy.guarantee.descriptor.family is TRANSITIONS:  # counterfeits may show any value that a value may become
        fresh += _unseen(values, policy, seen | set(fresh))
    book = (*known, *fresh)
    code = {value: number for number, value in enumerate(book)}
    table = np.array([code[value] for value in distinct.to_list()], dtype=np.int32)
    codes = look_up(values, distinct, table)
    if values.null_count():
        codes[values.is_null().to_numpy()] = code[None]
    hierarchy = None
    if spec.hierarchy is not None:
        assert tree is not None
        if set(distinct.to_list()) - set(tree.known):
            raise InputError(_uncovered(values.name, spec, values, set(tree.known)))
        hierarchy = tree.regrown(None in book)
    if spec.order is not None and set(distinct.to_list()) - set(spec.order):
        raise InputError(_uncovered(values.name, spec, values, set(spec.order)))
    return Sensitive(values.name, book, distinct.dtype.is_numeric(), hierarchy, spec.order), codes
