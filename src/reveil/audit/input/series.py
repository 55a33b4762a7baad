"""Our own series as an attacker sees it: published tables, counterfeit counts, and who is in which group.

Of the ledger's memory only the membership is read here: who was put in, also who is not shown. `truth_of` reads the
values as well: for scoring a guess, and for knowing what a compromised person has, never for inference. Membership or a
value that the published tables do not bear out is an error: left out in silence, it would look like safety.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from reveil.audit.input.left_out import LeftOut
from reveil.audit.input.observed import Observed, assemble
from reveil.base.arrays import I64, Bools
from reveil.base.errors import Fault, InputError, TamperedError
from reveil.base.text import plain_text
from reveil.base.words import agree, some
from reveil.history.recorded import stood_in
from reveil.ledger.ledger import Ledger
from reveil.published.format import COUNT, GROUP, PUBLIC
from reveil.published.reader import Published, read_release

REMEDY = "restore the home from a backup; do not rely on audits of it"


@dataclass(frozen=True, eq=False)
class PublishedRelease:
    """One release: its public folder, who is in which group (and their codes), and the values of the codes."""

    public: Path
    members: pl.DataFrame
    books: Mapping[str, Sequence[Any]]  # by sensitive column
    waits: bool = False  # its rule: newcomers without a group all wait,
    by_lot: bool = False  # or of many, some who are drawn
    stand_ins: pl.DataFrame | None = None  # who is shown beside which group while a counterfeit has their place


def sources_of(ledger: Ledger, staged: PublishedRelease | None = None) -> list[PublishedRelease]:
    """The releases of a series, as they were recorded byte by byte, and one that is staged on top."""
    if faults := ledger.check():
        raise TamperedError(faults)
    sources = [
        PublishedRelease(
            ledger.path(record.number) / PUBLIC,
            ledger.memory(record.number, "members"),
            {name: list(map(_unpacked, book)) for name, book in record.facts["codebook"].items()},
            bool(record.facts.get("waits")),
            bool(record.facts.get("by_lot")),
            stood_in(ledger, record),
        )
        for record in ledger.records()
    ]
    sources += [staged] if staged is not None else []
    if not sources:
        raise InputError(Fault("R725", f"series {ledger.series!r}", "has no release yet", "publish one first"))
    return sources


def _unpacked(value: Any) -> Any:
    return value["date"] if isinstance(value, dict) else value


def observe_series(sources: Sequence[PublishedRelease], column: str) -> Observed:
    """The attacker's view of the releases of a series."""
    shown, fakes, members, base = [], [], [], 0
    texts: dict[Any, str] = {}  # a number that is whole in one release and not in another is one value
    for number, source in enumerate(sources):
        published = read_release(source.public)
        cells = _named(_values(published, column), texts)
        groups = int(cells[GROUP].max() or 0) + 1  # type: ignore[arg-type]
        _refuse_strangers(source.members, cells, number)
        shown.append(cells.with_columns(pl.col(GROUP) + base))
        counted = _counts(published.counterfeits, cells[GROUP], groups, number)
        if source.stand_ins is not None:  # who is shown there, and has none of its values
            beside = np.bincount(source.stand_ins[GROUP].to_numpy(), minlength=groups)
            counted = counted.with_columns(pl.col("fakes") + pl.Series(beside))
        fakes.append(counted)
        kept = _kept(source.members).select(pl.col("person", GROUP).cast(pl.Int64))
        members.append(kept.with_columns(pl.col(GROUP) + base, release=pl.lit(number), sure=pl.lit(True)))
        base += groups
    cells = pl.concat(shown)
    values = cells["value"].unique().sort().to_list()
    code = pl.col("value").cast(pl.Enum(values)).to_physical().cast(pl.Int64)
    joined = pl.concat(members)
    count = 1 + max(int(source.members["person"].max() or 0) for source in sources)  # type: ignore[arg-type]
    persons = pl.select(pl.format("#{}", pl.int_range(count))).to_series()
    labels = [str(n + 1) for n in range(len(sources))]
    seen = assemble(labels, persons, values, joined, pl.concat(fakes), cells.with_columns(code))
    return replace(seen, column=column)


def _kept(members: pl.DataFrame) -> pl.DataFrame:
    return members.filter(pl.col(GROUP) >= 0)


def _values(published: Published, column: str) -> pl.DataFrame:
    """Values by group (group, rows, value), from one table or from the one that counts them."""
    if published.values is None:
        counts = published.table.group_by(GROUP, column).len(COUNT)
    else:
        counts = published.values[column]
    return counts.select(pl.col(GROUP).cast(pl.Int64), pl.col(COUNT).cast(pl.Int64).alias("rows"), value=column)


def _named(cells: pl.DataFrame, texts: dict[Any, str]) -> pl.DataFrame:
    """Values as text; `texts` are those of earlier releases, by value."""
    distinct = cells["value"].unique()
    names = pl.Series([texts.setdefault(value, plain_text(value)) for value in distinct], dtype=pl.String)
    named = cells.join(pl.DataFrame({"value": distinct, "text": names}), on="value", how="left", nulls_equal=True)
    return named.select(GROUP, "rows", value="text")


def _counts(counts: pl.DataFrame | None, shown: pl.Series, groups: int, number: int) -> pl.DataFrame:
    """Counterfeits of each group; the release states them for all groups that it shows, and for no others."""
    stated = counts if counts is not None else pl.DataFrame(schema={GROUP: pl.Int64, COUNT: pl.Int64})
    if not {GROUP, COUNT} <= set(stated.columns):
        _refuse(number, 1, "table of counterfeit counts", "has other columns")
    lost = len(set(stated[GROUP]) ^ set(shown))
    _refuse(number, lost, "groups", "have no counterfeit count, or are not shown")
    fakes = np.zeros(groups, dtype=np.int64)
    fakes[stated[GROUP].to_numpy()] = stated[COUNT].to_numpy()
    return pl.DataFrame({"release": number, "label": np.arange(groups), "fakes": fakes})


def _refuse_strangers(members: pl.DataFrame, cells: pl.DataFrame, number: int) -> None:
    kept = _kept(members)
    lost = kept.height - int(kept[GROUP].cast(pl.Int64).is_in(cells[GROUP].implode()).sum())
    _refuse(number, lost, "members of the ledger", "are in groups that it does not show")


def _refuse(number: int, wrong: int, what: str, message: str) -> None:
    if wrong:
        where = f"release {number + 1}"
        raise TamperedError(Fault("R733", where, f"{wrong:,} {what} {message}", REMEDY, wrong))


def truth_of(sources: Sequence[PublishedRelease], column: str, observed: Observed) -> I64:
    """The true value (its code) of each appearance; one that the person's own group does not show is refused."""
    code = {value: n for n, value in enumerate(observed.values)}
    frames = []
    for number, source in enumerate(sources):
        book = _coded(source, column, code)
        kept = _kept(source.members).with_columns(pl.lit(number).alias("release"))
        value = pl.Series("value", book[kept[column].to_numpy()])
        frames.append(kept.select(pl.col("person").cast(pl.Int64), "release").with_columns(value))
    truth = pl.concat(frames).sort("person", "release")["value"].to_numpy()
    _refuse_untrue(observed, truth, column)
    return truth


def left_out_of(sources: Sequence[PublishedRelease], column: str, observed: Observed) -> LeftOut:
    """Who was put in and is not shown, with what they have."""
    code = {value: n for n, value in enumerate(observed.values)}
    away = [source.members.filter(pl.col(GROUP) < 0) for source in sources]
    held = [_coded(source, column, code)[one[column].to_numpy()] for source, one in zip(sources, away, strict=True)]
    return LeftOut(
        np.concatenate([one["person"].cast(pl.Int64).to_numpy() for one in away]),
        np.repeat(np.arange(len(away)), [one.height for one in away]),
        np.concatenate(held),
        frozenset(number for number, source in enumerate(sources) if source.waits),
        frozenset(number for number, source in enumerate(sources) if source.by_lot),
    )


def _coded(source: PublishedRelease, column: str, code: Mapping[str, int]) -> I64:
    """The code of each value of a release's book."""
    return np.array([_code(value, code) for value in source.books[column]], dtype=np.int64)


def _code(value: Any, code: Mapping[str, int]) -> int:
    """The code of a value of the ledger, -1 where no release shows it: a book may know more than was published.

    A large number may be published as a whole one, or among others that are not.
    """
    ways = [value, *(kind(value) for kind in (int, float) if isinstance(value, int | float))]
    texts = [plain_text(way) for way in ways if way == value]
    return next((code[text] for text in texts if text in code), -1)


def _refuse_untrue(observed: Observed, truth: I64, column: str) -> None:
    lost = ~shown_by_group(observed, truth)
    if lost.any():
        where = ", ".join(observed.releases[n] for n in np.unique(observed.app_release[lost]))
        rows = int(lost.sum())
        message = (
            f"{some(rows, 'value')} of members in the ledger {agree(rows, 'is', 'are')} not among those that their "
            f"group shows (release {where})"
        )
        raise TamperedError(Fault("R733", f"column {column!r}", message, REMEDY, rows))


def shown_by_group(observed: Observed, truth: I64) -> Bools:
    """Whether the group of each appearance shows the true value; everybody's group is known."""
    width = len(observed.values)
    cells = observed.cell_group * width + observed.cell_value
    return (truth >= 0) & np.isin(observed.cand_group * width + truth, cells)
