"""Our own series as an attacker sees it: published tables, counterfeit counts, and who is in which group.

Of the ledger's memory only the membership is read here. `truth_of` reads the values as well: for scoring a guess, and
for knowing what a compromised person has, never for inference.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl

from reveil.audit.input.observed import I64, Observed, assemble
from reveil.base.errors import Fault, InputError
from reveil.base.sections import plain_text
from reveil.ledger.ledger import Ledger
from reveil.table.read import read_table


def observe_series(ledger: Ledger, column: str, *, staged: tuple[Path, pl.DataFrame] | None = None) -> Observed:
    """The attacker's view of a series, and of a staged release on top: its public folder and its members."""
    records = ledger.records()
    sources = [(ledger.path(r.number) / "public", ledger.memory(r.number, "members")) for r in records]
    sources += [staged] if staged is not None else []
    if not sources:
        raise InputError(Fault("R725", f"series {ledger.series!r}", "has no release yet", "publish one first"))
    shown, fakes, members, base = [], [], [], 0
    for number, (public, who) in enumerate(sources):
        table, counts = _public(public, column)
        groups = int(table["group"].max() or 0) + 1  # type: ignore[arg-type]
        shown.append(table.with_columns(pl.col("group") + base))
        fakes.append(_counts(counts, groups, number))
        kept = who.filter(pl.col("group") >= 0).select(pl.col("person", "group").cast(pl.Int64))
        members.append(kept.with_columns(pl.col("group") + base, release=pl.lit(number), sure=pl.lit(True)))
        base += groups
    cells = pl.concat(shown)
    values = cells["value"].unique().sort().to_list()
    code = pl.col("value").cast(pl.Enum(values)).to_physical().cast(pl.Int64)
    joined = pl.concat(members)
    count = int(joined["person"].max() or 0) + 1  # type: ignore[arg-type]
    persons = pl.select(pl.format("#{}", pl.int_range(count))).to_series()
    labels = [str(n + 1) for n in range(len(sources))]
    return assemble(labels, persons, values, joined, pl.concat(fakes), cells.with_columns(code))


def _public(folder: Path, column: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Values by group (group, rows, value) and counterfeits by group, from one table or from those of an anatomy."""
    resources = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))["resources"]
    files = {resource["name"]: str(folder / resource["path"]) for resource in resources}
    if "table" in files:
        table = read_table(files["table"]).select("group", column)
        counts = table.group_by("group", column).len("\0rows")
    else:
        tables = (read_table(file) for name, file in files.items() if name.startswith("st"))
        counts = next(t for t in tables if column in t.columns).rename({"count": "\0rows"})
    distinct = counts[column].unique()
    texts = pl.Series([plain_text(value) for value in distinct], dtype=pl.String)
    named = counts.join(pl.DataFrame({column: distinct, "\0value": texts}), on=column, nulls_equal=True)
    plain = named.select(pl.col("group", "\0rows").cast(pl.Int64), "\0value")
    return plain.rename({"\0rows": "rows", "\0value": "value"}), read_table(files["counterfeits"])


def _counts(counts: pl.DataFrame, groups: int, number: int) -> pl.DataFrame:
    fakes = np.zeros(groups, dtype=np.int64)
    fakes[counts["group"].to_numpy()] = counts["count"].to_numpy()
    return pl.DataFrame({"release": number, "label": np.arange(groups), "fakes": fakes})


def truth_of(
    ledger: Ledger, column: str, observed: Observed, staged: tuple[pl.DataFrame, list[object]] | None = None
) -> I64:
    """The true value (its code) of each appearance. `staged`: members and codebook of a release not yet recorded."""
    code = {value: n for n, value in enumerate(observed.values)}
    frames = []
    sources = [(ledger.memory(r.number, "members"), _codebook(r.facts["codebook"][column])) for r in ledger.records()]
    sources += [staged] if staged is not None else []
    for number, (members, book) in enumerate(sources):
        table = np.array([code.get(plain_text(value), -1) for value in book], dtype=np.int64)
        kept = members.filter(pl.col("group") >= 0)
        frames.append(
            pl.DataFrame(
                {
                    "person": kept["person"].cast(pl.Int64),
                    "release": np.full(kept.height, number),
                    "value": table[kept[column].to_numpy()],
                }
            )
        )
    return pl.concat(frames).sort("person", "release")["value"].to_numpy()


def _codebook(values: list[object]) -> list[object]:
    return [value["date"] if isinstance(value, dict) else value for value in values]
