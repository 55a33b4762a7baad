"""What an upload looks like: types, histograms, suggested roles with reasons, levels of generalisation. In a worker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from reveil.base.doubts import accepted
from reveil.base.errors import InputError
from reveil.base.progress import Progress
from reveil.base.text import plain_text
from reveil.policy.column import Column
from reveil.start.reading import first_look
from reveil.start.several_rows import one_sided
from reveil.start.suggest import Suggestion, rows_of_people, suggest
from reveil.table.encode import positions_of
from reveil.table.options import ReadOptions

SHOWN_ROWS = 20
BARS = 12  # of a histogram
SAMPLES = 4  # labels of a level


def look(given: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """The table as the wizard shows it; refused with every fault at once where it cannot be read."""
    progress("reading", 0.0)
    found = first_look(given["table"], ReadOptions(sheet=given.get("sheet"), accept=accepted(given.get("accept", ()))))
    frame = found.frame
    frame.write_parquet(Path(given["keep"]))
    progress("looking at the columns", 0.5)
    suggestions = suggest(frame)
    return {
        "rows": frame.height,
        "head": [[_shown(cell) for cell in row] for row in frame.head(SHOWN_ROWS).iter_rows()],
        "input": dict(found.input),
        "remarks": list(found.remarks),
        "columns": [_described(frame[one.column], one) for one in suggestions],
        "several": _several(frame, suggestions),
    }


def _several(frame: pl.DataFrame, suggestions: Sequence[Suggestion]) -> dict[str, Any] | None:
    """Whether people have several rows that no period tells apart, as `reveil init` finds it."""
    if not rows_of_people(frame, suggestions):
        return None
    key = next(one.column for one in suggestions if one.role == "identifier")
    people = frame.drop_nulls(key)
    names = [one.column for one in suggestions if one.column != key and one.role in ("sensitive", "quasi")]
    most = int(people[key].value_counts(name="\0rows")["\0rows"].max() or 1)  # type: ignore[arg-type]
    return {"key": key, "people": people[key].n_unique(), "most": most, "common": one_sided(people, key, names)}


def _shown(value: object) -> str:
    text = "" if value is None else plain_text(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _described(values: pl.Series, found: Suggestion) -> dict[str, Any]:
    kind = "date" if values.dtype == pl.Date else "number" if values.dtype.is_numeric() else "text"
    return {**found.to_dict(), "role": found.role, "kind": kind, "bars": histogram(values)}


def histogram(values: pl.Series) -> list[tuple[str, int]]:
    """Up to a dozen bars: the most frequent values, or ranges of numbers and years of dates.

    >>> histogram(pl.Series(["b", "a", "b"])), histogram(pl.Series([1, 2, 2]))
    ([('b', 2), ('a', 1)], [('1', 1), ('2', 2)])
    """
    known = values.drop_nulls()
    if known.is_empty() or values.dtype in (pl.List, pl.Struct, pl.Binary, pl.Object):
        return []
    measured = known.dtype.is_numeric() or known.dtype == pl.Date
    if measured and known.n_unique() > BARS:
        return _ranges(known)
    counts = known.value_counts(name="\0rows")
    order = counts.columns[0] if measured else ["\0rows", counts.columns[0]]
    falling: bool | list[bool] = False if measured else [True, False]
    return [(_shown(value), int(rows)) for value, rows in counts.sort(order, descending=falling).head(BARS).iter_rows()]


def _ranges(known: pl.Series) -> list[tuple[str, int]]:
    if known.dtype == pl.Date:
        years = known.dt.year()
        known = years if years.n_unique() > 1 else known.dt.month()
    low, high = float(known.min()), float(known.max())  # type: ignore[arg-type]
    step = (high - low) / BARS or 1.0
    places = ((known.cast(pl.Float64) - low) / step).floor().clip(0, BARS - 1).cast(pl.Int32)
    counts = dict(places.value_counts(name="rows").iter_rows())
    whole = known.dtype.is_integer()
    edges = [low + n * step for n in range(BARS + 1)]
    texts = [f"{edge:.0f}" if whole or step > 10 else f"{edge:.3g}" for edge in edges]
    return [(f"{texts[n]} to {texts[n + 1]}", int(counts.get(n, 0))) for n in range(BARS)]


def unique(given: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """How many rows nobody else shares the values of these columns with."""
    frame = pl.read_parquet(given["table"], columns=list(given["columns"]) or None)
    if not given["columns"]:
        return {"rows": frame.height, "unique": 0}
    sizes = frame.group_by(given["columns"]).len()["len"]
    return {"rows": frame.height, "unique": int((sizes == 1).sum())}


def values(given: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """The different values of a column as texts, with their rows, the most frequent first; only how many, if many."""
    known = pl.read_parquet(given["table"], columns=[given["column"]])[given["column"]].drop_nulls().cast(pl.String)
    distinct = known.n_unique()
    if distinct > given["most"]:
        return {"distinct": distinct}
    counts = known.alias("value").value_counts(name="rows").sort(["rows", "value"], descending=[True, False])
    return {"distinct": distinct, "values": [(value, int(rows)) for value, rows in counts.iter_rows()]}


def levels(given: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """For each of these columns what its levels of generalisation show, with counts; or what is wrong with them."""
    frame = pl.read_parquet(given["table"], columns=list(given["columns"]))
    found = {}
    for number, (name, spec) in enumerate(given["columns"].items()):
        progress("generalising", number / len(given["columns"]))
        try:
            found[name] = {"levels": _levels(frame[name], spec, Path(given["folder"])), "faults": []}
        except InputError as error:
            found[name] = {"levels": [], "faults": [fault.to_dict() for fault in error.faults]}
    return found


def _levels(values: pl.Series, spec: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    from reveil.policy.policy import load_policy

    column = Column(**spec)
    policy = load_policy({"columns": {values.name: spec}, "guarantee": {"k": 2}})
    policy = policy.model_copy(update={"folder": folder})
    if column.hierarchy is not None:
        from reveil.background.loading import load_background

        tree = load_background(policy).hierarchies[values.name]
    else:
        tree = None
    typed = _typed(values, column)
    hierarchy, positions = positions_of(values.name, column, typed, tree)
    counts = pl.Series(positions).value_counts(name="rows").sort("rows", descending=True)
    rows_at = dict(counts.iter_rows())
    shown = []
    for level, nodes in enumerate(hierarchy.levels):
        sizes: dict[str, int] = {}
        for position, node in enumerate(nodes):
            if position in rows_at:
                label = hierarchy.labels[int(node)]
                sizes[label] = sizes.get(label, 0) + int(rows_at[position])
        shown.append(_level(level, sizes))
    return shown


def _typed(values: pl.Series, column: Column) -> pl.Series:
    """As publishing will read it: categories are texts, whatever they look like."""
    named = column.type == "category" or column.prefixes is not None or column.hierarchy is not None
    return values.cast(pl.String) if named else values


def _level(level: int, sizes: dict[str, int]) -> dict[str, Any]:
    largest = sorted(sizes.items(), key=lambda one: (-one[1], one[0]))
    samples: Sequence[tuple[str, int]] = largest[:SAMPLES]
    return {"level": level, "labels": len(sizes), "smallest": min(sizes.values(), default=0), "samples": list(samples)}
