"""What is done to a series years later: correct, erase, merge, split, retract, rotate, end.

Each looks at the ledger, says what it would mean, and notes it; what each of them tells an adversary is worked out in
docs/years.md.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from reveil.base.arrays import I64
from reveil.base.errors import Fault, InputError, brief
from reveil.base.text import plain_text
from reveil.base.words import agree, some, some_people
from reveil.history.amended import erased_hashes, places_of, refuse_doubled, refuse_erased, without
from reveil.history.history import CODE, CORRECTED, MERGED, PERSONS, History
from reveil.history.recorded import history_of
from reveil.jobs.past import look_back
from reveil.ledger.amendments import ASK, CORRECT, ERASE, MERGE, SPLIT
from reveil.ledger.events import HAND_OVER
from reveil.ledger.record import Event, Snapshot, canonical
from reveil.policy.policy import Policy, PolicyLike
from reveil.table.identify import person_hashes
from reveil.table.roles import read_prepared

SHOWN = 8  # kinds of corrections named in a message
Tables = dict[int, dict[str, pl.DataFrame]]


@dataclass(frozen=True)
class Amended:
    """What was done, as it is recorded; and what there is to know about it."""

    event: Event
    notes: tuple[str, ...]
    told: Mapping[str, Any] = field(default_factory=dict)
    settled: tuple[str, ...] = ()  # what an interrupted command had left

    @property
    def waits(self) -> bool:
        """Whether a second person must give the same command before it is done."""
        return self.event.action == ASK

    def to_dict(self) -> dict[str, Any]:
        e = self.event
        said = {
            "action": e.details["for"] if self.waits else e.action,
            "done": not self.waits,
            "at": e.at,
            "by": e.actor,
        }
        return {**said, "id": e.id, "notes": list(self.notes), **self.told}


class Memory:
    """The people of a series that has begun, for changing what is remembered of them."""

    def __init__(self, policy: PolicyLike, home: str | Path | None) -> None:
        past = look_back(policy, home)
        self.policy, self.ledger = past.policy, past.ledger
        self.settled = tuple(self.ledger.settle())
        self.series = self.ledger.checked()
        self.past = history_of(self.ledger, self.series)
        old = [r.number for r in self.series.records if "memory/standing.parquet" not in r.manifest]
        if old or not self.series.records:
            message = (
                f"release {old[0]} was made by an old Reveil, whose memory cannot be changed" if old else "is empty"
            )
            raise InputError(Fault("R551", f"series {self.ledger.series!r}", message, "see `reveil history`"))

    def of_one_row_each(self, what: str) -> Memory:
        """This memory, where nobody has several rows: what a bag that changes afterwards tells is not worked out."""
        if self.policy.bundled:
            message = f"several rows of {self.policy.bundled} are one value here, and `{what}` is about single values"
            remedy = "leave these people out of later tables: their places go on as counterfeits"
            raise InputError(Fault("R918", "[people]", message, remedy))
        return self

    def hashes(self, identifiers: pl.Series) -> pl.DataFrame:
        return person_hashes(identifiers, self.ledger.key, normalise=self.policy.normalises)

    def numbers(self, identifiers: Sequence[str]) -> list[int]:
        """The numbers of these people; all who are unknown are named."""
        numbers = self.past.number(self.hashes(pl.Series(identifiers, dtype=pl.String))).tolist()
        strange = [
            name for name, number in zip(identifiers, numbers, strict=True) if number >= self.past.persons.height
        ]
        if strange:
            message = f"nobody in the memory of this series has the identifier {', '.join(map(brief, strange[:SHOWN]))}"
            remedy = "write it as in the tables; whoever was erased already is nobody here"
            raise InputError(Fault("R553", "identifier", message, remedy, len(strange)))
        return [int(number) for number in numbers]

    def tables(self, name: str) -> dict[int, pl.DataFrame]:
        """This table of every release that keeps it."""
        path = f"memory/{name}.parquet"
        return {r.number: self.ledger.memory(r.number, name) for r in self.series.records if path in r.manifest}

    def standings(self) -> dict[int, pl.DataFrame]:
        return self.tables("standing")

    def digest(self, action: str, *what: Any) -> str:
        """The same for two who ask for the same; it tells nothing without the key."""
        return hmac.digest(self.ledger.key, canonical([action, *what]).encode(), "sha256").hex()

    def amend(
        self, action: str, details: Mapping[str, Any], tables: Tables, digest: str, by: str, key: bytes | None = None
    ) -> Event:
        return self.ledger.amending.amend(action, details, tables, digest, key, by)


def correct(
    policy: PolicyLike, home: str | Path | None, table: Any, *, sure: bool, by: str = "", accept: Sequence[str] = ()
) -> Amended:
    """Values of this table that are not those recorded are true, and were recorded wrong: releases go on as before."""
    memory = Memory(policy, home).of_one_row_each("correct")
    if memory.policy.values.change != "never":
        message = "only values that never change have to be corrected"
        by_rule = memory.policy.values.change == "transitions"
        remedy = "publish the next table with the right value: this series lets values change"
        remedy += "; where its relation does not (R311), that person is left out of the tables" if by_rule else ""
        raise InputError(Fault("R557", "values.change", message, remedy))
    past, rules = memory.past, memory.policy
    assert rules.identifier is not None  # or it would be no series
    _, frame = read_prepared(table, rules, series=True, types=past.types, accept=accept)
    refuse_erased(frame, past, memory.ledger.key, rules)
    persons = past.number(memory.hashes(frame[rules.identifier]))
    refuse_doubled(frame, persons, past, rules)
    wrong, kinds = _corrections(frame, persons, past, rules)
    if wrong.is_empty():
        message = "every value of people whom the series knows is the one that it has recorded, or is corrected already"
        raise InputError(Fault("R557", "table", message, "there is nothing to correct"))
    people = wrong["person"].n_unique()
    if not sure:
        remedy = (
            "if what was recorded was wrong from the beginning, say so: --yes. A value that changed is no correction"
        )
        raise InputError(Fault("R560", "table", f"{some_people(people)} would be corrected: {kinds}", remedy, people))
    corrected = past.corrections.join(wrong, on=["person", "column"], how="anti")
    corrected = pl.concat([corrected, wrong]).sort("person", "column")
    tables = {
        number: {"corrections": corrected.filter(pl.col("person") < standing.height)}
        for number, standing in memory.standings().items()
    }
    digest = memory.digest(CORRECT, wrong.sort("person", "column").rows())
    event = memory.amend(CORRECT, {"people": people}, tables, digest, by)
    note = (
        f"{some_people(people)}: {kinds}. Their places go on with the value that was recorded first, so that no later "
        "release tells of the correction."
    )
    return Amended(event, (note,), {"people": people}, memory.settled)


def _corrections(frame: pl.DataFrame, persons: I64, past: History, policy: Policy) -> tuple[pl.DataFrame, str]:
    """Who has another value than the one recorded, by column; and the kinds of them in words."""
    standing, rows, kinds = past.standing(), [], dict[str, int]()
    corrected = {(person, column): value for person, column, value in past.corrections.iter_rows()}
    for name in policy.named("sensitive"):
        book = [plain_text(value) for value in past.codebook[name]]
        codes = standing[CODE + name].to_list()
        for person, value in zip(persons.tolist(), map(plain_text, frame[name]), strict=True):
            if person >= len(codes) or value in (book[codes[person]], corrected.get((person, name))):
                continue
            rows.append((person, name, value))
            kind = f"{brief(book[codes[person]])} -> {brief(value)}"
            kinds[kind] = kinds.get(kind, 0) + 1
    told = ", ".join(f"{kind} ({often:,})" for kind, often in sorted(kinds.items(), key=lambda one: -one[1])[:SHOWN])
    return pl.DataFrame(rows, schema=CORRECTED, orient="row"), told


def erase(
    policy: PolicyLike, home: str | Path | None, identifiers: Sequence[str], *, sure: bool, by: str = ""
) -> Amended:
    """Forget who these people are: their places go on as counterfeits, and they are never shown again."""
    memory = Memory(policy, home)
    past, names = memory.past, list(dict.fromkeys(identifiers))
    numbers = memory.numbers(names)
    hashes = memory.hashes(pl.Series(names, dtype=pl.String))
    others = past.known().filter(pl.col("person").is_in(numbers)).join(hashes, on=list(PERSONS), how="anti")
    if others.height:
        people = others["person"].n_unique()
        message = f"{some_people(people)} of these {agree(people, 'has', 'have')} another identifier as well"
        raise InputError(Fault("R553", "identifier", message, "give all identifiers of a person together"))
    standings = memory.standings()
    # A release in which two identifiers were not one person yet still has a place for each of them.
    places = sorted({*numbers, *(place for standing in standings.values() for place in places_of(standing, hashes))})
    shown, having = _where_shown(memory.series, past, places)
    if not sure:
        message = f"{some_people(len(set(numbers)))} would be erased; this cannot be undone"
        raise InputError(Fault("R560", "identifier", message, "if that is meant, say so: --yes"))
    gone = pl.concat([past.erased, erased_hashes(pl.Series(names, dtype=pl.String), memory.ledger.key)])
    tables = {n: {"standing": without(standing, places), "erased": gone} for n, standing in standings.items()}
    for name in ("corrections", "merged"):
        for number, frame in memory.tables(name).items():
            tables[number][name] = frame.filter(~pl.col("person").is_in(places))
    event = memory.amend(ERASE, {"people": len(set(numbers))}, tables, memory.digest(ERASE, sorted(set(numbers))), by)
    notes = [
        "No table of the memory says any more who they were. Their places go on as counterfeits.",
        "What stays: a keyed hash, apart from places and values, by which their rows are refused from now on; public "
        "and private files of releases; and every backup of the home: delete those.",
        "Whoever has the home with its key, and can guess identifiers, learns from it who was erased. Where few were, "
        "so is which place was theirs, with its group and value: `reveil end --destroy-memory` deletes that too.",
    ]
    notes += [f"They are in release {', '.join(map(str, shown))}."] if shown else ["No release shows them."]
    notes += [f"What was handed over cannot be taken back: {'; '.join(having)}."] if having else []
    return Amended(event, tuple(notes), {"releases": shown, "handed over": having}, memory.settled)


def _shown(past: History, numbers: Sequence[int]) -> pl.DataFrame:
    """The rows of these people that a release has shown: who is withheld is in no group."""
    return past.members.filter(pl.col("person").is_in(numbers) & (pl.col("group") >= 0))


def _last_shown(past: History, numbers: Sequence[int]) -> dict[int, int]:
    """The last release that shows each of these people, where one does."""
    return dict(_shown(past, numbers).group_by("person").agg(pl.col("release").max()).iter_rows())


def _where_shown(series: Snapshot, past: History, numbers: Sequence[int]) -> tuple[list[int], list[str]]:
    """The releases that show any of these people, and who has those."""
    shown = sorted(_shown(past, numbers)["release"].unique().to_list())
    return shown, [text for number in shown for text in recipients(series, number)]


def recipients(series: Snapshot, number: int) -> list[str]:
    """Who has a release, in words."""
    link = next(record.id for record in series.records if record.number == number)
    told = [event for event in series.events if event.action == HAND_OVER and event.release == link]
    return [f"release {number} to {e.details.get('recipient') or 'somebody not named'} on {e.at[:10]}" for e in told]


def merge(policy: PolicyLike, home: str | Path | None, one: str, other: str, *, sure: bool, by: str = "") -> Amended:
    """Two identifiers are one person: the place that was shown last stays, the other one goes on as a counterfeit."""
    memory = Memory(policy, home).of_one_row_each("merge")
    numbers = memory.numbers([one, other])
    if numbers[0] == numbers[1]:
        raise InputError(Fault("R553", "identifier", "both are the same person already", "there is nothing to merge"))
    past, standing = memory.past, memory.past.standing()
    shown = _last_shown(past, numbers)
    keep = max(numbers, key=lambda number: (shown.get(number, 0), -number))  # never by values
    drop = sum(numbers) - keep
    left = _values_left(past, numbers)
    if not sure:
        message = f"would become one person; whoever knows both of their rows has {some(left, 'value')} left for them"
        raise InputError(Fault("R560", "identifier", message, "if they are one person for certain, say so: --yes"))
    # The hash of the place itself: the text given may be that of another identifier which stands for it.
    alias = standing.slice(drop, 1).with_columns(person=pl.lit(keep))
    moved = past.merged.with_columns(pl.col("person").replace(drop, keep))
    merged = pl.concat([moved, alias.select(pl.col(name).cast(kind) for name, kind in MERGED.items())])
    tables: Tables = {}
    for number, before in memory.standings().items():
        if before.height > keep:
            others = merged.filter(pl.col("person") < before.height)
            dropped = places_of(before, others)
            tables[number] = {"standing": without(before, dropped), "merged": others}
            if not past.corrections.is_empty():
                kept = past.corrections.filter(~pl.col("person").is_in(dropped) & (pl.col("person") < before.height))
                tables[number]["corrections"] = kept
    last = f"release {shown[keep]}" if shown else "no release has shown either: the one that came first"
    event = memory.amend(MERGE, {}, tables, memory.digest(MERGE, sorted(numbers)), by)
    notes = (
        f"From now on both identifiers stand for the place that was shown last ({last}); the other place goes on as a "
        "counterfeit.",
        f"Whoever knows that both rows are one person has {some(left, 'value')} left for them by what was published "
        "before: merging neither adds to this nor takes it back.",
    )
    return Amended(event, notes, {"values left": left}, memory.settled)


def _values_left(past: History, numbers: Sequence[int]) -> int:
    """How many values of the first sensitive column all groups of these people have shown."""
    column = next(iter(past.codebook))
    groups = _shown(past, numbers).select("release", "group").unique().cast(pl.Int64)
    values = past.values.filter(pl.col("column") == column).with_columns(pl.col("release", "group").cast(pl.Int64))
    often = values.join(groups, on=["release", "group"]).group_by("code").len()
    return int((often["len"] == groups.height).sum()) if groups.height else len(past.codebook[column])


def split(policy: PolicyLike, home: str | Path | None, one: str, new: str, *, by: str = "") -> Amended:
    """One identifier was two people: it keeps its place, and the other person comes as a newcomer with another one."""
    memory = Memory(policy, home).of_one_row_each("split")
    (number,) = memory.numbers([one])
    frame = pl.DataFrame(
        {memory.policy.followed or "": [new]}, schema_overrides={memory.policy.followed or "": pl.String}
    )
    refuse_erased(frame, memory.past, memory.ledger.key, memory.policy)
    fresh = int(memory.past.number(memory.hashes(pl.Series([new], dtype=pl.String)))[0])
    if fresh < memory.past.persons.height:
        message = f"{brief(new)} is somebody in this series already"
        raise InputError(
            Fault("R553", "identifier", message, "give the second person an identifier that nobody has had")
        )
    event = memory.amend(SPLIT, {}, {}, memory.digest(SPLIT, number, new), by)
    notes = (
        "The identifier keeps its place and goes on with the value that was recorded; if that is not the value of the "
        "person who keeps it, correct it (`reveil correct`).",
        "The second person is a newcomer in the next table, as if never published: no release showed a value of theirs "
        "but, at most, the one of that place.",
    )
    return Amended(event, notes, {}, memory.settled)
