"""The past as the ledger keeps it: of each table only what is looked at is read, and in as few files as possible.

Every release keeps its own rows. `standing` rolls: the newest one says of everybody ever published where they stood
last, so that nobody need look further back for that. Promises about all releases together do need the whole past; for
them, release n also keeps the *span* of releases that ends with it, as many as the largest power of two that divides n:
4 keeps 1 to 4, 6 keeps 5 and 6. The past of release 200 is then three files of each table (1-128, 129-192, 193-200)
instead of 200.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.errors import Fault, TamperedError
from reveil.history.history import CODE, CORRECTED, CUTS, MERGED, PERSONS, SPELLED, History
from reveil.history.tables import Trace
from reveil.ledger.amendments import RETRACT, newest
from reveil.ledger.ledger import Ledger
from reveil.ledger.record import Record, Snapshot
from reveil.published.imprint import Imprint

WHOLE = ("members", "groups", "values")
STAND_INS = "stand_ins"
SPAN_ROWS = 1 << 20  # many small files are slow, large ones are not: they stay as they are


class RecordedHistory(History):
    """A `History` whose tables are read from the ledger when they are first looked at."""

    _ledger: Ledger
    _kept: Mapping[int, frozenset[str]]  # release -> the files it has
    _counts: Mapping[int, Mapping[str, int]]  # release -> counts of its certificate

    def __init__(self, ledger: Ledger, series: Snapshot) -> None:
        facts = [record.facts for record in series.records]
        plain = {
            "_ledger": ledger,
            "_kept": {record.number: frozenset(record.manifest) for record in series.records},
            "head": series.head.number,
            "head_id": series.head.id,
            "discarded": len(series.chain) - len(series.records),
            "amended": newest(series.events),
            "retracted": _retracted(series),
            "codebook": {name: [_unpack(value) for value in book] for name, book in facts[-1]["codebook"].items()},
            "paths": _merge(fact["paths"] for fact in facts),
            "losses": {record.number: record.facts["loss"]["mean_ncp"] for record in series.records},
            "types": dict(item for fact in reversed(facts) for item in fact["types"].items()),
            "_counts": {record.number: record.facts["counts"] for record in series.records},
            "waits": frozenset(record.number for record in series.records if record.facts.get("waits")),
            "by_lot": frozenset(record.number for record in series.records if record.facts.get("by_lot")),
            "rates": _rates({record.number: record.facts["counts"] for record in series.records}),
            "imprint": Imprint.read(facts[-1]),
            "traces": {r.number: trace for r in series.records if (trace := Trace.read(r.facts)) is not None},
        }
        self.__dict__.update(plain)  # fields are frozen, and `members`, `groups` and `values` not there yet

    @cached_property
    def members(self) -> pl.DataFrame:
        return self._whole("members")

    @cached_property
    def groups(self) -> pl.DataFrame:
        return self._whole("groups")

    @cached_property
    def values(self) -> pl.DataFrame:
        return self._whole("values")

    @cached_property
    def corrections(self) -> pl.DataFrame:
        return self._rolled("corrections", CORRECTED)

    @cached_property
    def merged(self) -> pl.DataFrame:
        return self._rolled("merged", MERGED)

    @cached_property
    def erased(self) -> pl.DataFrame:
        return self._rolled("erased", PERSONS)

    @cached_property
    def cuts(self) -> pl.DataFrame:
        return self._rolled("cuts", CUTS)

    def _rolled(self, name: str, schema: Mapping[str, Any]) -> pl.DataFrame:
        return self._ledger.memory(self.head, name) if self._keeps(name) else pl.DataFrame(schema=schema)

    @cached_property
    def persons(self) -> pl.DataFrame:
        if not self._keeps("standing"):
            return pl.concat([self._ledger.memory(n, "persons") for n in range(1, self.head + 1)]).select(*PERSONS)
        return self.standing().select(*PERSONS)

    def standing(self) -> pl.DataFrame:
        return self._standing

    def sums(self) -> pl.DataFrame:
        columns = {"rows": "published rows", "groups": "groups", "counterfeits": "counterfeit rows"}
        counted = [{"release": n, **{k: c[name] for k, name in columns.items()}} for n, c in self._counts.items()]
        return pl.DataFrame(counted)

    def last_codes(self, persons: NDArray[np.int64], column: str) -> NDArray[np.int32]:
        codes = self.standing()[CODE + column].to_numpy()
        known = persons < len(codes)
        last = np.full(len(persons), -1, dtype=np.int32)
        last[known] = codes[persons[known]]
        return last

    @cached_property
    def _standing(self) -> pl.DataFrame:
        return self._ledger.memory(self.head, "standing") if self._keeps("standing") else super().standing()

    def _keeps(self, name: str, number: int | None = None) -> bool:
        """Whether a release, or the newest one, keeps a table. Those made before there was a standing keep no span."""
        return f"memory/{name}.parquet" in self._kept[number or self.head]

    def _whole(self, name: str) -> pl.DataFrame:
        """The rows of all releases, from the newest span back."""
        pieces, number = [], self.head
        while number:
            if self._keeps(f"{name}-span", number):
                pieces.append(self._ledger.memory(number, f"{name}-span"))
                number -= width(number)
            else:
                pieces.append(numbered(self._ledger.memory(number, name), number))
                number -= 1
        whole = pl.concat(reversed(pieces))
        self._insist(name, whole)
        return whole

    def _insist(self, name: str, whole: pl.DataFrame) -> None:
        """Kernels index by what they are given: numbers that no release has are refused before."""
        groups = max((count["groups"] for count in self._counts.values()), default=0)
        size = max(map(len, self.codebook.values()), default=0)
        bounds = {"group": groups, "person": self.persons.height, "code": size, "release": self.head + 1}
        bounds |= {column: len(book) for column, book in self.codebook.items() if name == "members"}
        lowest = {"group": -1} if name == "members" else {}
        wrong = [
            column
            for column, most in bounds.items()
            if column in whole.columns and not whole[column].is_between(lowest.get(column, 0), most - 1).all()
        ]
        if wrong:
            message = f"holds numbers of {', '.join(wrong)} that no release has"
            remedy = "restore the home from the newest backup; if it is the same there, report it"
            raise TamperedError(Fault("R529", f"memory '{name}'", message, remedy))


def _retracted(series: Snapshot) -> tuple[Mapping[str, Any], ...]:
    """What later packages say of releases that nobody should use."""
    numbers = {record.id: record.number for record in series.chain}
    told = [event for event in series.events if event.action == RETRACT]
    return tuple({"release": numbers[e.release], "on": e.at[:10], "note": e.details.get("note", "")} for e in told)


def history_of(ledger: Ledger, series: Snapshot | None = None) -> History:
    """Everything that a series remembers, up to its head, or up to that of a snapshot taken before."""
    now = series or ledger.checked()
    if not now.records:
        return History(head_id=now.head.id, discarded=len(now.chain))
    ledger.insist_on_memory(now.head.number)
    return RecordedHistory(ledger, now)


def stood_in(ledger: Ledger, record: Record) -> pl.DataFrame | None:
    """Who was shown beside which group of a release while a counterfeit had their place; None where nobody was."""
    return ledger.memory(record.number, STAND_INS) if f"memory/{STAND_INS}.parquet" in record.manifest else None


def width(number: int) -> int:
    """How many releases the span of this one has.

    >>> [width(number) for number in (1, 2, 3, 4, 6, 8)]
    [1, 2, 1, 4, 2, 8]
    """
    return number & -number


def numbered(frame: pl.DataFrame, release: int) -> pl.DataFrame:
    return frame.with_columns(pl.lit(release, dtype=pl.Int32).alias("release"))


def spans_of(past: History, now: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables of the releases that end with the next one; none where that would be one release, or large."""
    number = past.head + 1
    first = number - width(number) + 1
    if first == number or now["members"].height * width(number) > SPAN_ROWS:
        return {}
    before = {name: getattr(past, name).filter(pl.col("release") >= first) for name in WHOLE}
    if before["members"].height > SPAN_ROWS:
        return {}
    return {f"{name}-span": pl.concat([before[name], numbered(now[name], number)]) for name in WHOLE}


def standing_of(past: History, hashes: pl.DataFrame, persons: NDArray[np.int64], now: pl.DataFrame) -> pl.DataFrame:
    """Where everybody stood last: keyed hashes, release, group (-1 withheld) and codes, by person number.

    `now` are the members of the next release, whose keyed hashes and person numbers are given as well.
    """
    before, fresh = past.standing(), persons >= past.persons.height
    people = past.persons.height + int(fresh.sum())
    columns = {"release": np.full(len(persons), past.head + 1, dtype=np.int32), "group": now["group"].to_numpy()}
    columns |= {CODE + name: now[name].to_numpy() for name in now.columns if name not in ("person", "group")}
    last: dict[str, NDArray[Any]] = {}
    for name, values in columns.items():
        last[name] = np.full(people, -1, dtype=np.int32)
        if not before.is_empty():
            last[name][: before.height] = before[name].to_numpy()
        last[name][persons] = values
    for name in SPELLED:
        last[name] = np.zeros(people, dtype=np.uint64)
        if name in before.columns:
            last[name][: before.height] = before[name].to_numpy()
        last[name][persons] = hashes[name].to_numpy()
    known = pl.concat([past.persons, hashes.filter(pl.Series(fresh)).select(*PERSONS)])
    return known.with_columns(pl.Series(name, values) for name, values in last.items())


def _rates(counts: Mapping[int, Mapping[str, int]]) -> dict[int, Fraction]:
    """The share of the people before who came back, of each release that counted them."""
    told = {n: c["came back"] for n, c in counts.items() if "came back" in c and _put_in(counts.get(n - 1, {}))}
    return {n: Fraction(back, _put_in(counts[n - 1])) for n, back in told.items()}


def _put_in(counts: Mapping[str, int]) -> int:
    """How many people (or households) were in a table, also where they had several rows."""
    return next((counts[name] for name in ("input people", "input households", "input rows") if name in counts), 0)


def _unpack(value: Any) -> Any:
    return datetime.date.fromisoformat(value["date"]) if isinstance(value, Mapping) else value


def _merge(paths: Iterable[Mapping[str, Mapping[str, list[str]]]]) -> dict[str, dict[str, list[str]]]:
    merged: dict[str, dict[str, list[str]]] = {}
    for release in paths:
        for column, leaves in release.items():
            merged.setdefault(column, {}).update(leaves)
    return merged
