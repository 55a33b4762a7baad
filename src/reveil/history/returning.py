"""Who came back: people of the last release, people of earlier ones, and new people; and those who only look new.

A person whose identifier is spelled in another way would be taken for a newcomer and put into new groups, and the old
and the new ones together tell their value. So the ledger also keeps a keyed hash of each identifier in its plainest
spelling, and a table whose people hardly return is not published unless somebody says that they are others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl

from reveil.base.arrays import I64
from reveil.base.errors import Fault, stop_if
from reveil.base.words import agree, some_people
from reveil.history.amended import refuse_doubled, refuse_erased
from reveil.history.history import SPELLED, History
from reveil.policy.policy import Policy
from reveil.table.identify import person_hashes
from reveil.table.numbers import first_rows

BACK, RETURNED, NEW = "came back", "returned", "new people"  # among the counts of a certificate
HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Returning:
    """The people of a table, told by when they were there last."""

    last: int  # people of the last release
    back: int  # of these, how many are in this table
    returned: int  # people of earlier releases only
    new: int
    unknown: int  # absent people of whom no second hash is kept: respelled, they would look new

    def counts(self) -> dict[str, int]:
        return {BACK: self.back, RETURNED: self.returned, NEW: self.new}

    def limits(self) -> tuple[str, ...]:
        """What could not be checked."""
        if not self.unknown:
            return ()
        return (
            f"{some_people(self.unknown)} of earlier releases {agree(self.unknown, 'was', 'were')} recorded by an "
            "older Reveil without the second hash: if they were respelled, they count as new people.",
        )

    @property
    def rate(self) -> Fraction | None:
        return Fraction(self.back, self.last) if self.last else None


def sentence(counts: Mapping[str, int], release: int | None) -> str:
    """Who came back, from the counts of a certificate; nothing where they were not counted.

    >>> sentence({"came back": 90, "returned": 2, "new people": 10}, 3)
    '90 people of release 2 came back, 2 returned from earlier ones, 10 are new.'
    """
    if release is None or NEW not in counts:
        return ""
    new = counts[NEW]
    if release == 1:
        return f"All {some_people(new)} are new: it is the first release."
    return (
        f"{some_people(counts[BACK])} of release {release - 1} came back, {counts[RETURNED]:,} returned from earlier "
        f"ones, {new:,} {agree(new, 'is', 'are')} new."
    )


@dataclass(frozen=True, eq=False)
class People:
    """The people of a table, row by row: their numbers in the series, and who of them came back."""

    numbers: I64
    hashes: pl.DataFrame | None  # keyed, where people of the past had to be looked up
    returning: Returning


def recognise(frame: pl.DataFrame, past: History, key: bytes, policy: Policy, *, new_people: bool) -> People:
    """Look everybody up. Without a past, people are numbered as they come, and nobody need be hashed yet."""
    if past.persons.is_empty():
        numbers = np.arange(frame.height)
        return People(numbers, None, returning(numbers, past))
    refuse_erased(frame, past, key, policy)
    hashes = hashes_of(frame, key, policy)
    numbers = past.number(hashes)
    refuse_doubled(frame, numbers, past, policy)
    back = returning(numbers, past)
    refuse_strangers(numbers, hashes, past, policy, back, new_people=new_people)
    return People(numbers, hashes, back)


def hashes_of(frame: pl.DataFrame, key: bytes, policy: Policy) -> pl.DataFrame:
    """The keyed hashes of everybody in a prepared table of a series."""
    assert policy.followed is not None  # or the table was refused
    return person_hashes(frame[policy.followed], key, normalise=policy.normalises)


def returning(persons: I64, past: History) -> Returning:
    """Count the people of a table by when they were there last."""
    if not past.head:
        return Returning(0, 0, 0, len(persons), 0)
    standing = past.standing()
    known = persons[persons < standing.height]
    seen = standing["release"].to_numpy()
    back = int((seen[known] == past.head).sum())
    absent = np.ones(standing.height, dtype=np.bool_)
    absent[known] = False
    unknown = int((absent & ~_spelled(standing)).sum())
    last = int((seen == past.head).sum())
    return Returning(last, back, len(known) - back, len(persons) - len(known), unknown)


def _spelled(standing: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Of whom the plainest spelling is known."""
    if SPELLED[0] not in standing.columns:
        return np.zeros(standing.height, dtype=np.bool_)
    return standing.select((pl.col(SPELLED[0]) != 0) | (pl.col(SPELLED[1]) != 0)).to_series().to_numpy()


def refuse_strangers(
    persons: I64, hashes: pl.DataFrame, past: History, policy: Policy, back: Returning, *, new_people: bool
) -> None:
    """People who were only respelled, and a table of other people, are refused; the second may be meant."""
    where = f"identifier {policy.followed!r}"
    respelled = _respelled(persons, hashes, past)
    faults = []
    if respelled.any():
        rows = int(respelled.sum())
        message = (
            f"{some_people(rows)} of earlier releases {agree(rows, 'has', 'have')} an identifier that is spelled in "
            "another way than before (blanks, case, leading zeros, 7.0 for 7, another form of the same letters)"
        )
        remedy = (
            "write identifiers as in the earlier releases; if these are other people, give them identifiers that "
            'differ in more than spelling. For a new series, identifiers = "normalise" under [input] settles spellings'
        )
        faults.append(Fault("R317", where, message, remedy, rows, first_rows(pl.Series(respelled))))
    lowest = min(past.rates.values(), default=Fraction(1))
    if not new_people and back.rate is not None and back.rate < lowest * HALF:
        before = f"the lowest share so far is {float(lowest):.1%}" if past.rates else "one half is expected"
        message = (
            f"only {back.back:,} of {some_people(back.last)} of release {past.head} are in this table "
            f"({float(back.rate):.1%}; {before}), {back.new:,} {agree(back.new, 'is', 'are')} new"
        )
        remedy = (
            "check that it is the right table, and that identifiers are written as before; if these really are other "
            "people, publish with --yes-new-people (new_people=True)"
        )
        faults.append(Fault("R318", where, message, remedy, back.new))
    stop_if(faults)


def _respelled(persons: I64, hashes: pl.DataFrame, past: History) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Newcomers whose plainest spelling is that of somebody who is not here under their own."""
    standing = past.standing()
    fresh = persons >= standing.height
    if SPELLED[0] not in standing.columns or not fresh.any():
        return np.zeros(len(persons), dtype=np.bool_)
    absent = np.ones(standing.height, dtype=np.bool_)
    absent[persons[~fresh]] = False
    missed = standing.select(SPELLED).filter(pl.Series(absent & _spelled(standing))).unique()
    if not past.merged.is_empty():  # also in the other spelling of an identifier that was merged
        away = past.merged.filter(pl.Series(absent[past.merged["person"].to_numpy()])).select(SPELLED)
        missed = pl.concat([missed, away]).unique()
    looked = hashes.select(SPELLED).with_columns(pl.Series("fresh", fresh))
    known = looked.join(missed.with_columns(found=True), on=SPELLED, how="left", maintain_order="left")
    return known.select(pl.col("fresh") & pl.col("found").is_not_null()).to_series().to_numpy()
