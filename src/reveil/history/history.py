"""What a series remembers about its past, as a read-only value.

Planner, verifier and ledger meet here and nowhere else: the ledger makes a `History` from its files, planning and
verification read it, and none of them knows the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.history.tables import Trace
from reveil.policy.column import ColumnType
from reveil.published.imprint import Imprint

PERSONS = {"hi": pl.UInt64, "lo": pl.UInt64}
SPELLED = [
    "spelled_hi",
    "spelled_lo",
]  # in `standing`: the hash of the plainest spelling; two zeros where none is known
MERGED = {"hi": pl.UInt64, "lo": pl.UInt64, **dict.fromkeys(SPELLED, pl.UInt64), "person": pl.Int64}
CORRECTED = {"person": pl.Int64, "column": pl.String, "value": pl.String}
ROLLED = ("corrections", "merged", "erased")  # what was amended: every release keeps all of it

CUTS = {"column": pl.String, "upto": pl.String, "under": pl.String}  # of fixed cells of people

CODE = "code:"  # in `standing`, before the names of sensitive columns, which may be called like our own


@dataclass(frozen=True, eq=False)
class History:
    """The past of a series, up to the head it was read at.

    `persons` are the keyed hashes of everybody ever published, in order of arrival: a person's number is their row.
    `members` has one row per person and release: release, person, group (-1 withheld), and the true code of their value
    in each sensitive column, under the column's name (this is private). `groups` has one row per release and group:
    release, group, rows (counterfeits included), counterfeits. `values` says what was published: release, group, column
    (name), code, rows. Groups are numbered per release, from 0, as in the published `group` column.
    """

    head: int = 0
    head_id: str = ""  # of the newest entry, which may be that of a discarded release
    persons: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PERSONS))
    members: pl.DataFrame = field(default_factory=pl.DataFrame)
    groups: pl.DataFrame = field(default_factory=pl.DataFrame)
    values: pl.DataFrame = field(default_factory=pl.DataFrame)
    codebook: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    paths: Mapping[str, Mapping[str, list[str]]] = field(default_factory=dict)  # column -> leaf -> labels above it
    losses: Mapping[int, float] = field(default_factory=dict)  # release -> its mean information loss
    types: Mapping[str, ColumnType] = field(default_factory=dict)  # column -> what it held from the beginning
    rates: Mapping[int, Fraction] = field(default_factory=dict)  # release -> share of the people before who came back
    imprint: Imprint | None = None  # what the newest public data package says of itself
    traces: Mapping[int, Trace] = field(default_factory=dict)  # release -> what is kept of its table to know it again
    waits: frozenset[int] = frozenset()  # releases in which newcomers without a group waited all together
    by_lot: frozenset[int] = frozenset()  # of these, the ones whose rule was to draw some of many newcomers to wait
    discarded: int = 0  # releases that were taken back before anybody had them
    amended: str = ""  # the newest change of the memory
    corrections: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=CORRECTED))  # texts of true values
    merged: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=MERGED))  # other identifiers of a person
    erased: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PERSONS))  # who is never shown again
    cuts: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=CUTS))  # where boxes keep those of release 1
    retracted: Sequence[Mapping[str, Any]] = ()  # releases that nobody should use: release, on, note

    def until(self, release: int) -> History:
        """The past as it was when this release was planned."""

        def before(frame: pl.DataFrame) -> pl.DataFrame:
            return frame.filter(pl.col("release") < release)

        return History(
            head=release - 1,
            persons=self.persons,
            members=before(self.members),
            groups=before(self.groups),
            values=before(self.values),
            codebook=self.codebook,
            paths=self.paths,
            losses=self.losses,
            types=self.types,
            waits=self.waits,
            by_lot=self.by_lot,
            cuts=self.cuts if release > 1 else self.cuts.clear(),
        )

    def sums(self) -> pl.DataFrame:
        """What each release was: release, rows, groups, counterfeits."""
        if self.groups.is_empty():
            return self.groups
        sums = (pl.col("rows").sum(), pl.len().alias("groups"), pl.col("counterfeits").sum())
        return self.groups.group_by("release").agg(sums).sort("release")

    def standing(self) -> pl.DataFrame:
        """Where everybody stood last, by person number: hi, lo, release, group and `code:` with each column's name."""
        if self.members.is_empty():
            return pl.DataFrame()
        names = [name for name in self.members.columns if name not in ("release", "person", "group")]
        renamed = self.members.rename({name: CODE + name for name in names})
        latest = renamed.sort("release").unique("person", keep="last").cast(pl.Int32)
        everybody = self.persons.with_row_index("person").cast({"person": pl.Int32})
        joined = everybody.join(latest, on="person", how="left", maintain_order="left").drop("person")
        return joined.with_columns(pl.col(pl.Int32).fill_null(-1))

    def known(self) -> pl.DataFrame:
        """Everybody's number by keyed hash, also by that of another identifier of theirs."""
        known = self.persons.with_row_index("person").cast({"person": pl.Int64})
        return known if self.merged.is_empty() else pl.concat([known, self.merged.select(known.columns)])

    def number(self, hashes: pl.DataFrame) -> NDArray[np.int64]:
        """The person number of each keyed hash; newcomers get the next free numbers in the order given."""
        persons = hashes.join(self.known(), on=["hi", "lo"], how="left", maintain_order="left")["person"]
        numbers = persons.cast(pl.Int64).fill_null(-1).to_numpy().copy()
        fresh = numbers < 0
        numbers[fresh] = self.persons.height + np.arange(int(fresh.sum()))
        return numbers

    def last_codes(self, persons: NDArray[np.int64], column: str) -> NDArray[np.int32]:
        """The code of each person's value at their most recent appearance, -1 for those never seen."""
        if self.members.is_empty():
            return np.full(len(persons), -1, dtype=np.int32)
        members = self.members.select("release", "person", column).sort("release")
        seen = members["person"].to_numpy()
        latest = np.full(max(int(seen.max()), int(persons.max(initial=-1))) + 1, -1, dtype=np.int32)
        latest[seen] = members[column].to_numpy()  # of several, the last one stays
        return latest[persons]
