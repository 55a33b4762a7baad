"""Sweeney's attack: a published table and a table of identified people, compared by the columns they share.

A published row fits a person where every shared cell covers the person's value, or that value is not known. With f rows
that fit a person, and F people of the list who fit those rows (the row with the fewest counts), the person is found
with confidence

    1 / f           if it is known that the person is in the published table
    1 / max(f, F)   if the list is all that is known

The second is exact where classes do not overlap and the list holds everybody who may be in the table. One person is
looked at at a time; what several people together rule out is the subject of `reveil audit`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.background.loading import load_background
from reveil.base.arrays import I64, starts_of
from reveil.base.errors import Fault, brief, stop_if
from reveil.base.kernels import kernel
from reveil.base.words import some_people
from reveil.hierarchies.tree import Hierarchy
from reveil.measure.axes import Axis, axis_of
from reveil.policy.column import Column
from reveil.policy.policy import Policy, PolicyLike, load_policy
from reveil.published.format import COUNT, GROUP
from reveil.published.notation import as_written, parse_column
from reveil.published.reader import Published, open_published
from reveil.table.options import ReadOptions
from reveil.table.read import declares_types, read_table
from reveil.table.types import looked, stated_type

# Names of columns inside, which no table of anybody's has.
CLASS, KIND, ROWS, WEIGHT, TOTAL, CHANCE = (
    f"\0{name}" for name in ("class", "kind", "rows", "weight", "total", "chance")
)


@dataclass(frozen=True, eq=False)
class Linked:
    """Who can be found, with which confidence. `people` has a line for each person of the list, in its order."""

    people: pl.DataFrame
    by: tuple[str, ...]
    summary: Mapping[str, Any]

    @property
    def found(self) -> pl.DataFrame:
        """The people to whom exactly one published row belongs."""
        return self.people.filter(pl.col("confidence") == 1)

    def to_dict(self) -> dict[str, Any]:
        return {"by": list(self.by), **self.summary, "people": self.people.to_dicts()}

    def __repr__(self) -> str:
        s = self.summary
        before = f", {s['before']['certain']:,} before" if s["before"] else ""
        return f"<Linked: {s['after']['certain']:,} of {some_people(s['people'])} re-identified{before}>"

    def _repr_html_(self) -> str:
        words = "".join(f"<p>{escape(line)}</p>" for line in sentences(self))
        return f"<p>{escape(repr(self))}</p>{words}"


def link(
    published: Any,
    people: Any,
    policy: PolicyLike | None = None,
    *,
    original: Any = None,
    name: str | None = None,
    by: Sequence[str] | None = None,
    present: bool = False,
    delimiter: str | None = None,
) -> Linked:
    """Link identified people with a published table, and with its original where that is given.

    `by` are the columns that both have (the policy's quasi-identifiers unless stated), `name` the one that identifies
    people. `present`: everybody on the list is known to be in the published table. `delimiter`: of a list (and an
    original) that is a text file; "blanks" are any number of blanks.

    >>> voters = pl.DataFrame({"name": ["Ann", "Bob"], "age": [29, 47]})
    >>> published = pl.DataFrame({"age": ["2*", "2*", "[43-52]"], "ill": ["flu", "gout", "flu"]})
    >>> link(published, voters).people.select("name", "rows", "confidence").rows()
    [('Ann', 2, 0.5), ('Bob', 1, 1.0)]
    """
    rules = None if policy is None else load_policy(policy)
    opened, listed = open_published(published, rules), _people(people, rules, delimiter)
    before = None if original is None else Published(_people(original, rules, delimiter))
    shared = tuple(by) if by is not None else _shared(opened.table, listed, rules)
    stop_if(_faults(opened, before, listed, shared, name, rules))
    label = name or _label(listed, shared, rules)
    assert label is not None
    lists = _sensitive(opened, shared, rules)
    trees = {} if rules is None else load_background(rules).hierarchies
    after = _attack(opened, listed, shared, rules, trees, lists, present)
    columns = [listed[label], *listed.select(n for n in shared if n != label).iter_columns()]
    summary: dict[str, Any] = {"people": listed.height, "present": present, "before": None}
    figures: list[pl.Series] = []
    if before is not None:
        earlier = _attack(before, listed, shared, rules, trees, (), present)
        figures = [column.alias(f"{column.name} before") for column in earlier.columns]
        summary["before"] = earlier.summary()
    return Linked(
        _side_by_side(columns, [*figures, *after.columns], after.guesses),
        shared,
        {**summary, "after": after.summary(), "fit nobody": after.strange},
    )


def _people(source: Any, rules: Policy | None, delimiter: str | None) -> pl.DataFrame:
    """A list of people: numbers and days by their look, but codes that the policy calls so, and what names people."""
    table = read_table(source, ReadOptions(delimiter=delimiter))
    specs = {} if rules is None else rules.columns
    texts = [name for name, spec in specs.items() if stated_type(spec, None) == "category"]
    return table if declares_types(source) else looked(table, [name for name in table.columns if name not in texts])


def _side_by_side(known: list[pl.Series], figures: list[pl.Series], guesses: list[pl.Series]) -> pl.DataFrame:
    """What the list knows, what was found, what is guessed. Figures keep their names; a column that has one of these,
    or one that both tables have, is told apart by where it comes from."""
    taken = {column.name for column in figures}
    listed = [column.alias(_free(column.name, "listed", taken)) for column in known]
    published = [column.alias(_free(column.name, "published", taken)) for column in guesses]
    return pl.DataFrame([*listed, *figures, *published])


def _free(name: str, origin: str, taken: set[str]) -> str:
    """The name, with its origin as often as it takes to be new; taken from now on."""
    while name in taken:
        name = f"{name} ({origin})"
    taken.add(name)
    return name


def sentences(linked: Linked) -> list[str]:
    """The findings in plain words."""
    s, lines = linked.summary, []
    known = "know that they are in the table" if s["present"] else "do not know who is in the table"
    lines.append(f"Somebody has a list of {some_people(s['people'])} with {', '.join(linked.by)}, and they {known}.")
    for when, title in (("before", "In the original table"), ("after", "In the published table")):
        if s[when]:
            f = s[when]
            lines.append(
                f"{title} they find rows that fit {f['fit']:,} of them, and {f['certain']:,} are found for certain;"
                f" the average confidence is {f['average']:.1%}."
            )
    for column, count in s["after"]["values"].items():
        lines.append(f"If the people they find are in the table, {column!r} is certain for {count:,} of them.")
    for column, texts in s["fit nobody"].items():
        lines.append(
            f"{texts['count']:,} texts of {column!r} fit nobody on the list, such as {', '.join(texts['such as'])}:"
            " if one is a label, name its hierarchy in the policy."
        )
    return lines


@dataclass(frozen=True, eq=False)
class _Found:
    """One attack: per person rows, rivals, confidence, and the likeliest sensitive values."""

    columns: list[pl.Series]
    guesses: list[pl.Series]
    strange: dict[str, Any]

    def summary(self) -> dict[str, Any]:
        rows, confidence = self.columns[0], self.columns[2]
        fit = confidence.filter(rows > 0)
        chances = self.guesses[1::2]  # each value is followed by its chance
        return {
            "fit": fit.len(),
            "certain": int((confidence == 1).sum()),
            "average": float(fit.mean() or 0.0),  # type: ignore[arg-type]
            "values": {column.name.removesuffix(" chance"): int((column == 1).sum()) for column in chances},
        }


def _attack(
    opened: Published,
    listed: pl.DataFrame,
    by: tuple[str, ...],
    rules: Policy | None,
    trees: Mapping[str, Hierarchy],
    sensitive: Sequence[str],
    present: bool,
) -> _Found:
    """Which rows fit each person, and what they say."""
    axes = [_axis(name, listed[name], rules) for name in by]
    short = [] if rules is None else [name for name, spec in rules.columns.items() if spec.prefixes is not None]
    named = () if rules is None else [name for name, spec in rules.columns.items() if spec.named]
    strict = named if opened.ours else [name for name in named if name in trees]
    reads = [_read(a, opened.table[a.name], trees.get(a.name), a.name in short, a.name in strict) for a in axes]
    keys = pl.DataFrame({str(i): read.index for i, read in enumerate(reads)})
    if opened.values is not None:
        keys = keys.with_columns(opened.table[GROUP])
    classes = keys.group_by(keys.columns, maintain_order=True).len(ROWS).with_row_index(CLASS)
    places = np.column_stack([axis.rows(listed[axis.name], ranked=True).astype(np.int64) for axis in axes])
    kinds, who, many = np.unique(places, axis=0, return_inverse=True, return_counts=True)
    pairs = _fitting(kinds, classes.select(map(str, range(len(by)))).to_numpy(), [read.cover for read in reads])
    rows, rivals = _totals(pairs, many, classes[ROWS].to_numpy())
    confidence = np.where(rows > 0, 1 / np.maximum(rows if present else np.maximum(rows, rivals), 1), 0.0)
    who = who.ravel()
    of_row = keys.join(classes, on=keys.columns, how="left", maintain_order="left")[CLASS]
    shown = [_values(name, opened, classes, of_row) for name in sensitive]
    return _Found(
        [pl.Series("rows", rows[who]), pl.Series("people", rivals[who]), pl.Series("confidence", confidence[who])],
        [column.gather(who) for values in shown for column in _guess(values, pairs, len(kinds))],
        {axis.name: read.strange for axis, read in zip(axes, reads, strict=True) if read.strange},
    )


def _axis(name: str, values: pl.Series, rules: Policy | None) -> Axis:
    """The people's values in order. Hierarchies are not needed for that, and a list may have values beyond them."""
    kind = "auto" if rules is None or name not in rules.columns else rules.columns[name].type
    return axis_of(name, Column(role="quasi", type=kind), values)


@dataclass(frozen=True, eq=False)
class _Read:
    index: I64  # cell of each published row
    cover: NDArray[np.bool_]  # cells x the people's values: what may stand behind what
    strange: dict[str, Any] | None  # cells that fit nobody and look like plain values


def _read(axis: Axis, column: pl.Series, hierarchy: Hierarchy | None, padded: bool, names: bool) -> _Read:
    numeric = None if hierarchy is not None and axis.numbers is None else axis.numeric
    cells, index = parse_column(column, hierarchy, numeric, padded=padded, names=names)
    if axis.numbers is None:
        cells = as_written(cells, axis.texts)
    cover = np.zeros((len(cells), max(len(axis.values), 1)), dtype=np.bool_)
    for number, cell in enumerate(cells):
        for first, last in axis.ranks(cell):
            cover[number, first : last + 1] = True
    if axis.missing:
        cover[:, 0] = True  # what is not known of a person rules nothing out
    known = cover[:, int(axis.missing > 0) :].sum(axis=1)
    dark = [cell.text for cell, count in zip(cells, known, strict=True) if not count and cell.kind == "value"]
    return _Read(index, cover, {"count": len(dark), "such as": [brief(text) for text in dark[:3]]} if dark else None)


def _fitting(kinds: I64, cells: I64, covers: list[NDArray[np.bool_]]) -> pl.DataFrame:
    """All pairs of a kind of person and a class of rows that fit."""
    columns = list(map(str, range(len(covers))))
    only = [np.where(cover.sum(axis=1) == 1, cover.argmax(axis=1), -1) for cover in covers]
    nobody = np.logical_or.reduce([(cover.sum(axis=1) == 0)[cells[:, i]] for i, cover in enumerate(covers)])
    exact = np.logical_and.reduce([only[i][cells[:, i]] >= 0 for i in range(len(covers))])
    # Classes that stand for one combination of values are found by a join, the others by looking at each pair.
    singles = pl.DataFrame({name: only[i][cells[exact, i]] for i, name in enumerate(columns)})
    singles = singles.with_columns(pl.Series(CLASS, np.flatnonzero(exact)))
    people = pl.DataFrame({name: kinds[:, i] for i, name in enumerate(columns)})
    people = people.with_columns(pl.int_range(len(kinds), eager=True).alias(KIND))
    wide = np.flatnonzero(~exact & ~nobody)
    order = np.argsort([cover.mean() for cover in covers])  # what rules out most comes first
    flat = np.concatenate([covers[i].ravel() for i in order])
    widths = np.array([covers[i].shape[1] for i in order])
    starts = np.cumsum([0, *(covers[i].size for i in order)])[:-1]
    fixed = (np.ascontiguousarray(kinds[:, order]), cells[wide][:, order].astype(np.int64), flat, starts, widths)
    counts = fitting(*fixed, np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64))
    cells_that_fit = np.zeros(counts.sum(), dtype=np.int64)
    fitting(*fixed, starts_of(counts), cells_that_fit)
    looked = pl.DataFrame({KIND: np.repeat(np.arange(len(kinds)), counts), CLASS: wide[cells_that_fit]})
    joined = people.join(singles, on=columns).select(KIND, CLASS)
    return pl.concat([joined.cast(pl.Int64), looked.cast(pl.Int64)])


@kernel
def fitting(
    kinds: I64, cells: I64, flat: NDArray[np.bool_], starts: I64, widths: I64, offsets: I64, cells_that_fit: I64
) -> I64:
    """The number of classes that fit each kind of person; the classes themselves go into `found`, if it has room."""
    counts = np.zeros(len(kinds), dtype=np.int64)
    for person in range(len(kinds)):
        for number in range(len(cells)):
            fits = True
            for j in range(kinds.shape[1]):
                if not flat[starts[j] + cells[number, j] * widths[j] + kinds[person, j]]:
                    fits = False
                    break
            if fits:
                if len(cells_that_fit) > 0:
                    cells_that_fit[offsets[person] + counts[person]] = number
                counts[person] += 1
    return counts


def _totals(pairs: pl.DataFrame, many: I64, sizes: I64) -> tuple[I64, I64]:
    """Rows that fit each kind of person; and of these rows' classes the least number of people who fit."""
    kind, number = pairs[KIND].to_numpy(), pairs[CLASS].to_numpy()
    rows = np.bincount(kind, weights=sizes[number], minlength=len(many)).astype(np.int64)
    reached = np.bincount(number, weights=many[kind], minlength=len(sizes)).astype(np.int64)
    rivals = np.full(len(many), np.iinfo(np.int64).max)
    np.minimum.at(rivals, kind, reached[number])
    return rows, np.where(rows > 0, rivals, 0)


def _values(name: str, opened: Published, classes: pl.DataFrame, of_row: pl.Series) -> pl.DataFrame:
    """How many rows of each class have each value; in an anatomy, how many are expected to."""
    if opened.values is None:
        rows = pl.DataFrame({CLASS: of_row, name: opened.table[name]})
        return rows.group_by(CLASS, name).len(WEIGHT).cast({CLASS: pl.Int64, WEIGHT: pl.Float64})
    table = opened.values[name]
    sizes = table.group_by(GROUP).agg(pl.col(COUNT).sum().alias(TOTAL))
    joined = classes.select(CLASS, ROWS, GROUP).join(table, on=GROUP).join(sizes, on=GROUP)
    weight = (pl.col(ROWS) * pl.col(COUNT) / pl.col(TOTAL)).alias(WEIGHT)
    return joined.select(pl.col(CLASS).cast(pl.Int64), name, weight)


def _guess(values: pl.DataFrame, pairs: pl.DataFrame, kinds: int) -> list[pl.Series]:
    """The likeliest value of each kind of person, and its share among the rows that fit."""
    name = next(column for column in values.columns if column not in (CLASS, WEIGHT))
    sums = pairs.join(values, on=CLASS).group_by(KIND, name).agg(pl.col(WEIGHT).sum())
    best = sums.sort(WEIGHT, name, descending=[True, False], nulls_last=True).group_by(KIND, maintain_order=True)
    guesses = best.agg(pl.col(name).first(), (pl.col(WEIGHT).first() / pl.col(WEIGHT).sum()).alias(CHANCE))
    everyone = pl.DataFrame({KIND: np.arange(kinds)}).join(guesses, on=KIND, how="left", maintain_order="left")
    return [everyone[name], everyone[CHANCE].fill_null(0.0).alias(f"{name} chance")]


def _shared(table: pl.DataFrame, listed: pl.DataFrame, rules: Policy | None) -> tuple[str, ...]:
    known = rules.named("quasi") if rules is not None else table.columns
    return tuple(name for name in known if name in listed.columns and name in table.columns and name != GROUP)


def _label(listed: pl.DataFrame, by: tuple[str, ...], rules: Policy | None) -> str | None:
    """The column that names people: the policy's identifier, or the only one that is not compared."""
    if rules is not None and rules.identifier in listed.columns:
        return rules.identifier
    rest = [name for name in listed.columns if name not in by]
    return rest[0] if len(rest) == 1 else None


def _sensitive(opened: Published, by: tuple[str, ...], rules: Policy | None) -> tuple[str, ...]:
    """The columns to guess: the policy's sensitive ones, or all that are not compared."""
    if opened.values is not None:
        return tuple(opened.values)
    if rules is not None:
        return tuple(name for name in rules.named("sensitive") if name in opened.table.columns)
    return tuple(name for name in opened.table.columns if name not in (*by, GROUP))


def _faults(
    opened: Published,
    before: Published | None,
    listed: pl.DataFrame,
    by: tuple[str, ...],
    name: str | None,
    rules: Policy | None,
) -> list[Fault]:
    tables = {"published table": opened.table, "table of people": listed}
    if before is not None:
        tables["original table"] = before.table
    faults = [
        Fault("R730", title, f"has no column {column!r}", f"it has {', '.join(table.columns)}")
        for title, table in tables.items()
        for column in by
        if column not in table.columns
    ]
    if not by:
        message = "has no column in common with the published table"
        remedy = f"rename columns; the published table has {', '.join(opened.table.columns)}"
        faults.append(Fault("R730", "table of people", message, remedy))
    faults += [
        Fault("R730", title, "has no rows", "pass another one", 0) for title, t in tables.items() if t.is_empty()
    ]
    if name is not None and name not in listed.columns:
        faults.append(
            Fault("R730", "table of people", f"has no column {name!r}", f"it has {', '.join(listed.columns)}")
        )
    elif name is None and _label(listed, by, rules) is None:
        rest = [column for column in listed.columns if column not in by]
        message = f"has {len(rest)} columns that are not compared, so it is not clear which one names people"
        faults.append(Fault("R730", "table of people", message, "name it with --name"))
    return faults
