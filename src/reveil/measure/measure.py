"""Utility: what a published table has lost against the original, for any release in our or ARX's notation.

Published rows are shuffled and cannot be matched with original ones, so every measure is a property of cells
and of classes (distinct published quasi-identifier rows, with their `group` where there is one). A row that
was withheld, or whose quasi-identifiers are all `*`, is suppressed: its loss is 1. Counterfeits lose nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.arrays import I64
from reveil.base.errors import Fault, InputError, stop_if
from reveil.base.words import some
from reveil.guarantees.k_anonymity import KAnonymity
from reveil.measure.analysis import Analysis, analyse
from reveil.measure.axes import Classes, Floats, Read, Runs, classes_of
from reveil.measure.expand import a_world
from reveil.measure.queries import USEFUL, QueryError, Questions
from reveil.measure.unexplained import unexplained
from reveil.policy.policy import Policy, PolicyLike, load_policy
from reveil.published.anatomy import counterfeits_of
from reveil.published.format import COUNT, GROUP
from reveil.published.notation import Cell
from reveil.published.reader import open_published
from reveil.table.bins import in_bins
from reveil.table.read import declares_types, read_table
from reveil.table.roles import options, prepare
from reveil.table.where import Where, rows_where


def ncp_cells(covered: NDArray[Any], domain: float) -> Floats:
    """Normalised certainty penalty of cells that stand for `covered` of `domain` values.

    It is (covered - 1) / (domain - 1). For intervals of numbers pass width + 1 and range + 1.

    >>> ncp_cells(np.array([1, 2, 5]), 5).tolist()
    [0.0, 0.25, 1.0]
    """
    if domain <= 1:
        return np.zeros(len(covered))
    return np.clip((covered - 1) / (domain - 1), 0.0, 1.0)


def discernibility(sizes: NDArray[Any], suppressed: int, rows: int) -> int:
    """Each row costs the size of its class; a suppressed row costs the whole table.

    >>> discernibility(np.array([2, 3]), suppressed=1, rows=6)
    19
    """
    return int(np.sum(sizes.astype(np.int64) ** 2)) + suppressed * rows


def average_class(sizes: NDArray[Any]) -> float:
    """Rows per class; 0 where nothing was published."""
    return float(np.mean(sizes)) if len(sizes) else 0.0


def entropy_cells(counts: I64, runs: Sequence[Runs]) -> Floats:
    """Share of a column's entropy that each cell hides: H(X | X in cell) / H(X).

    With n_v original rows of value v and N of the whole cell, H(X | X in cell) = -sum (n_v/N) log2(n_v/N).
    The mean over a column is the non-uniform entropy of the literature where all rows of a value are recoded
    alike, and its expectation where they are not, since rows cannot be matched.

    >>> entropy_cells(np.array([1, 1, 2]), [[(0, 0)], [(0, 1)], [(0, 2)]]).round(3).tolist()
    [0.0, 0.667, 1.0]
    """
    terms = counts * np.log2(np.maximum(counts, 1))
    rows, sums = (np.concatenate(([0.0], np.cumsum(column))) for column in (counts, terms))
    total = np.log2(rows[-1]) - sums[-1] / rows[-1] if rows[-1] else 0.0
    losses = np.zeros(len(runs))
    for cell, spans in enumerate(runs):
        inside = sum(rows[b + 1] - rows[a] for a, b in spans)
        if inside and total > 1e-12:
            losses[cell] = (np.log2(inside) - sum(sums[b + 1] - sums[a] for a, b in spans) / inside) / total
    return np.clip(losses, 0.0, 1.0)


@dataclass(frozen=True, repr=False)
class Utility:
    """What the release has lost. Losses lie between 0 (nothing) and 1 (everything)."""

    rows: int  # of the original
    suppressed: int  # withheld, or published with nothing but `*`
    counterfeits: int
    classes: int
    ncp: dict[str, float]
    ncp_mean: float  # per quasi-identifier cell
    entropy: dict[str, float]
    entropy_mean: float
    discernibility: int
    average_class: float
    c_avg: float | None  # average class / k, where the policy has a k
    queries: tuple[QueryError, ...]
    analysis: Analysis | None = None  # where it was asked for
    unexplained: int = 0  # published rows, at least, that stand for nobody of the original
    counted: str = "rows"  # what classes are made of: people, where they have several rows or stand apart from values

    @property
    def answerable(self) -> str:
        """Which of the queries that were asked can be answered from the release."""
        shares = sorted(error.selectivity for error in self.queries if error.useful)
        if not shares:
            most = max((error.selectivity for error in self.queries), default=0.0)
            return f"Counts of so few cannot be answered from this release: ask about more than {most:.0%} of the rows."
        within = f"half of the answers are within {USEFUL:.0%}"
        return f"Counts over {shares[0]:.0%} of the rows or more can be answered: {within}."

    def to_dict(self) -> dict[str, Any]:
        content = asdict(self) | {"queries": [asdict(error) for error in self.queries]}
        return content if self.analysis is not None else {key: content[key] for key in content if key != "analysis"}

    def __repr__(self) -> str:
        errors = [
            f"{error.median_relative:.1%} at {error.selectivity:g}"
            for error in self.queries
            if error.median_relative is not None
        ]
        return (
            f"Utility(mean NCP {self.ncp_mean:.4f}, "
            f"{some(self.classes, 'class', 'classes')} of {self.average_class:.1f} {self.counted}, "
            f"{self.suppressed:,} of {some(self.rows, 'row')} suppressed"
            + (f", median query error {', '.join(errors)})" if errors else ")")
        )

    def _repr_html_(self) -> str:
        losses = "".join(
            f"<tr><td>{escape(name)}</td><td>{self.ncp[name]:.4f}</td><td>{self.entropy[name]:.4f}</td></tr>"
            for name in self.ncp
        )
        return (
            f"<p>{escape(repr(self))}</p><table><tr><th>column</th><th>NCP</th><th>entropy loss</th></tr>"
            f"{losses}</table>"
        )


def measure(
    published: Any,
    original: Any,
    policy: PolicyLike,
    *,
    counterfeits: pl.DataFrame | None = None,
    values: Mapping[str, pl.DataFrame] | None = None,
    queries: int = 10_000,
    selectivity: Sequence[float] = (0.01, 0.05, 0.1),
    seed: int = 0,
    analysis: bool = False,
    predict: str | None = None,
    where: Where | None = None,
) -> Utility:
    """Compare a published table with its original, or with the rows of it that have the values of `where`.

    `queries` are asked for each selectivity; 0 asks none. Both tables are paths, frames of any kind, or (`published`)
    the folder of a release. `counterfeits` has the columns group and count. With `analysis`, or a column to `predict`,
    also what analysts would find (`Analysis`). Of two tables `published` is that of the people, and `values` has the
    table of values of each sensitive column (group, value, count); their counterfeits are counts alone, and analysts
    look at one of the tables that they may be made from, drawn by lot. A release folder has all of these.

    >>> original = pl.DataFrame({"age": [20, 25, 40], "ill": ["flu", "cold", "flu"]})
    >>> published = pl.DataFrame({"age": ["[20-25]", "[20-25]", "*"], "ill": ["cold", "flu", "flu"]})
    >>> policy = {"columns": {"age": "quasi", "ill": "sensitive"}, "guarantee": {"k": 2}}
    >>> measure(published, original, policy, queries=0)
    Utility(mean NCP 0.5000, 1 class of 2.0 rows, 1 of 3 rows suppressed)
    """
    rules = load_policy(policy)
    if not isinstance(published, pl.DataFrame):
        opened = open_published(published, rules)
        published, values = opened.table, values or opened.values
        counterfeits = opened.counterfeits if counterfeits is None else counterfeits
    if not isinstance(original, pl.DataFrame):
        kinds = declares_types(original)
        original = prepare(rows_where(read_table(original, options(rules)), where, rules), rules, declared=kinds)
    elif where:
        original = rows_where(original, where, rules)
    original = in_bins(original, rules)
    stop_if(_faults(published, original, rules, queries, selectivity, values or {}))
    invented = None
    if values is not None:
        invented, counterfeits = _fakes(published, values), None  # nobody of the table of people is one
    classes = classes_of(published, original, rules, counterfeits)
    rows, kept = original.height, ~classes.starred
    if int(classes.real.sum()) > rows:
        message = f"has {some(int(classes.real.sum()), 'row')} besides counterfeits, the original only {rows:,}"
        raise InputError(Fault("R703", "published table", message, "pass the original that it was made from"))
    suppressed = rows - int(classes.real.sum()) + classes.suppressed
    ncp, entropy = (_losses(classes, rows, suppressed, what) for what in ("ncp", "entropy"))
    sizes, promised = classes.sizes[kept], rules.guarantee.find(KAnonymity)
    k = None if promised is None else promised.k
    found = None
    if analysis or predict is not None:
        whole = published if values is None else a_world(published, values, seed)
        found = analyse(classes, whole, original, rules, predict, seed)
    asked = Questions(classes, published, original, rules, values) if queries else None
    utility = Utility(
        rows=rows,
        suppressed=suppressed,
        counterfeits=int((classes.sizes - classes.real).sum()) if invented is None else invented,
        classes=len(sizes),
        ncp=ncp,
        ncp_mean=float(np.mean(list(ncp.values()))),
        entropy=entropy,
        entropy_mean=float(np.mean(list(entropy.values()))),
        discernibility=discernibility(sizes, suppressed, rows),
        average_class=average_class(sizes),
        c_avg=average_class(sizes) / k if k else None,
        queries=tuple(asked.error(queries, s, seed) for s in selectivity) if asked else (),
        analysis=found,
        unexplained=unexplained(classes),
    )
    if rules.bundle in published.columns:
        return _of_bundles(utility, published, rules, k, classes)
    return utility if values is None else _of_people(utility, published, rules, k, classes)


def _fakes(published: pl.DataFrame, values: Mapping[str, pl.DataFrame]) -> int:
    """How many values of two tables are nobody's."""
    try:
        return int(counterfeits_of(published, values)[COUNT].sum())
    except (ValueError, pl.exceptions.PolarsError) as error:
        reason = str(error).partition("\n")[0]
        remedy = "pass the tables of one release: group and quasi-identifiers; group, value and count"
        raise InputError(Fault("R707", "two tables", f"they do not fit together: {reason}", remedy)) from None


def _of_people(utility: Utility, people: pl.DataFrame, policy: Policy, k: int | None, classes: Classes) -> Utility:
    """The figures of two tables: classes are boxes of people who look alike; where these are exact, groups."""
    alike = policy.named("quasi") if policy.method.boxed else (GROUP,)
    shown = people.filter(~classes.starred[classes.index])
    sizes = shown.group_by(alike).len("\0people")["\0people"].to_numpy()
    return _counting_people(utility, sizes, sizes, k)


def _of_bundles(utility: Utility, published: pl.DataFrame, policy: Policy, k: int | None, classes: Classes) -> Utility:
    """The figures where people have several rows: those of a class show the same cells, row by row."""
    cells = published.select(policy.named("quasi"))
    kinds = cells.unique(maintain_order=True).with_row_index("cells")
    of_row = cells.join(kinds, on=cells.columns, how="left", nulls_equal=True, maintain_order="left")["cells"]
    rows = pl.DataFrame({"of": published[policy.bundle or ""], "cells": of_row})
    rows = rows.filter(~classes.starred[classes.index])
    alike = rows.sort("of", "cells").group_by("of").agg("cells").group_by("cells").len("people")
    people = alike["people"].to_numpy()
    # A row of a class is hidden among the rows in the same place of the others.
    return _counting_people(utility, people, np.repeat(people, alike["cells"].list.len().to_numpy()), k)


def _counting_people(utility: Utility, sizes: I64, hidden: I64, k: int | None) -> Utility:
    """The figures of classes of so many people; `hidden`: among how many each row of each of these stands."""
    return replace(
        utility,
        classes=len(sizes),
        discernibility=discernibility(hidden, utility.suppressed, utility.rows),
        average_class=average_class(sizes),
        c_avg=average_class(sizes) / k if k else None,
        counted="people",
    )


def _losses(classes: Classes, rows: int, suppressed: int, what: str) -> dict[str, float]:
    """Mean loss per row of each quasi-identifier, suppressed rows at 1."""
    weight = np.where(classes.starred, 0, classes.real)
    losses = {}
    for i, read in enumerate(classes.reads):
        cell = ncp_column(read) if what == "ncp" else entropy_cells(read.axis.counts, read.runs)
        loss = _with_missing(read, cell)[classes.cells[:, i]]
        losses[read.axis.name] = float(np.sum(weight * loss) + suppressed) / rows
    return losses


def ncp_column(read: Read) -> Floats:
    """Loss of each distinct cell: by width for intervals of numbers, by number of values otherwise."""
    axis = read.axis
    nowhere = int(axis.numbers is not None and axis.missing > 0)  # a missing number has no place among the others
    covered = np.array([sum(b - max(a, nowhere) + 1 for a, b in spans) for spans in read.runs], dtype=np.float64)
    loss = ncp_cells(np.maximum(covered, 1), len(axis.values) - nowhere)
    if axis.numbers is not None and len(axis.numbers):
        wide = [i for i, cell in enumerate(read.cells) if _has_width(cell)]
        spans = [axis.spans(read.cells[i]) for i in wide]
        widths = np.array([sum(high - low for low, high in span) for span in spans], dtype=np.float64)
        loss[wide] = ncp_cells(widths + 1, float(axis.numbers[-1].item() - axis.numbers[0].item() + 1))
    return loss


def _has_width(cell: Cell) -> bool:
    """Whether a cell is an interval, a label over numbers, or a set of intervals and missing values."""
    return cell.kind == "interval" or cell.label or any(map(_has_width, cell.parts))


def _with_missing(read: Read, loss: Floats) -> Floats:
    """Empty cells beyond those of the original are suppressed ones; all empty cells share that loss."""
    for i, cell in enumerate(read.cells):
        if cell.kind == "missing":
            rows = int(np.sum(read.index == i))
            loss[i] = max(0, rows - read.axis.missing) / rows
    return loss


def _faults(
    published: pl.DataFrame,
    original: pl.DataFrame,
    policy: Policy,
    queries: int,
    selectivity: Sequence[float],
    values: Mapping[str, pl.DataFrame],
) -> list[Fault]:
    faults = []
    for which, table, beside in (("published", published, values), ("original", original, {})):
        for name in (*policy.named("quasi"), *policy.named("sensitive")):
            if name not in (*table.columns, *beside):
                near = difflib.get_close_matches(name, table.columns, n=1)
                remedy = f"rename {near[0]!r} to {name!r}" if near else "add it, or give it the role drop"
                faults.append(Fault("R701", f"{which} table", f"has no column {name!r}", remedy))
    if original.is_empty():
        faults.append(Fault("R706", "original table", "has no rows", "pass the table that was published"))
    if queries < 0 or not all(0 < s <= 1 for s in selectivity):
        message = f"queries = {queries}, selectivity = {tuple(selectivity)} cannot be asked"
        faults.append(Fault("R705", "queries", message, "ask 0 or more, with selectivities above 0 and up to 1"))
    return faults
