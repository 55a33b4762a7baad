"""What amendments of the memory mean for the next table (`reveil.ledger.amendments` says how they are made).

- A value that was corrected: the person's place goes on with the value that was recorded first. Every later release is
  then the same, byte for byte, as if nothing had been corrected, so that nobody can learn anything by it.
- Whoever asked to be erased is nobody in the memory: their place goes on as a counterfeit. What remains is a keyed hash
  of its own, which belongs to no place and no value, so that their rows are refused and never shown again.
- Two identifiers that are one person: both stand for the place that stays.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence

import numpy as np
import polars as pl

from reveil.base.arrays import I64
from reveil.base.errors import Fault, stop_if
from reveil.base.text import plain_text
from reveil.base.words import agree, some_people
from reveil.history.history import CODE, PERSONS, SPELLED, History
from reveil.policy.policy import Policy
from reveil.table.identify import keyed_hashes, plain_spelling
from reveil.table.numbers import first_rows

NOBODY = 2**64 - 1  # both spelled halves of whoever is nobody in the memory any more
BITS = 64


def as_recorded(frame: pl.DataFrame, persons: I64, past: History) -> tuple[pl.DataFrame, int]:
    """The table with the first recorded value of everybody whose value was corrected; and how many these are."""
    if past.corrections.is_empty():
        return frame, 0
    standing, changed = past.standing(), set()
    for (column,), told in past.corrections.group_by("column", maintain_order=True):
        true = dict(told.select("person", "value").iter_rows())
        rows: list[int] = np.flatnonzero(np.isin(persons, list(true))).tolist()
        name, codes, book = str(column), standing[CODE + str(column)], past.codebook[str(column)]
        rows = [row for row in rows if plain_text(frame[name][row]) == true[int(persons[row])]]
        first = [book[codes[int(persons[row])]] for row in rows]
        frame = frame.with_columns(frame[name].scatter(rows, pl.Series(first, dtype=frame[name].dtype, strict=False)))
        changed |= set(rows)
    return frame, len(changed)


CORRECTED = "was corrected after it had been recorded"  # for whoever keeps the table, and for nobody else


def corrected_limits(people: int) -> tuple[str, ...]:
    """For the certificate, which is private."""
    if not people:
        return ()
    return (
        f"The value of {some_people(people)} {CORRECTED}. This release shows the value "
        "that was recorded first, as earlier ones do: the correction tells nothing, and counts of values are off by "
        "it.",
    )


def erased_hashes(identifiers: pl.Series, key: bytes) -> pl.DataFrame:
    """What remains of somebody who asked to be erased: a hash of the plainest spelling, with a key for this alone."""
    return keyed_hashes(plain_spelling(identifiers), hmac.digest(key, b"erased", "sha256"))


def refuse_erased(frame: pl.DataFrame, past: History, key: bytes, policy: Policy) -> None:
    """Whoever asked to be erased is never shown again."""
    if past.erased.is_empty():
        return
    assert policy.followed is not None  # or there would be no series
    looked = erased_hashes(frame[policy.followed], key)
    known = looked.join(past.erased.with_columns(known=True), on=list(PERSONS), how="left", maintain_order="left")
    there = known["known"].is_not_null()
    if there.any():
        rows = int(there.sum())
        message = f"{some_people(rows)} of this table {agree(rows, 'has', 'have')} asked to be erased"
        remedy = "take these rows out of the table, and out of where it comes from: they are never shown again"
        stop_if([Fault("R554", f"identifier {policy.followed!r}", message, remedy, rows, first_rows(there))])


def refuse_doubled(frame: pl.DataFrame, persons: I64, past: History, policy: Policy) -> None:
    """Two identifiers that were said to be one person have one row between them."""
    if past.merged.is_empty():
        return
    numbers = pl.Series(persons)
    twice = numbers.is_duplicated() & numbers.is_in(past.merged["person"].implode())
    if twice.any():
        message = "both identifiers of somebody who was said to be one person are in this table"
        remedy = "keep one row for each person"
        where = f"identifier {policy.followed!r}"
        stop_if([Fault("R555", where, message, remedy, int(twice.sum()), first_rows(twice))])


def without(standing: pl.DataFrame, numbers: Sequence[int]) -> pl.DataFrame:
    """A table of people in which these are nobody: hashes that no identifier has, drawn anew."""
    rows = [number for number in numbers if number < standing.height]
    drawn = {name: [secrets.randbits(BITS) for _ in rows] for name in PERSONS} | {
        n: [NOBODY] * len(rows) for n in SPELLED
    }
    return standing.with_columns(
        standing[name].scatter(rows, pl.Series(values, dtype=pl.UInt64))
        for name, values in drawn.items()
        if name in standing.columns
    )


def places_of(standing: pl.DataFrame, hashes: pl.DataFrame) -> list[int]:
    """The rows of a table of people that have one of these hashes."""
    places: list[int] = standing.with_row_index("place").join(hashes, on=list(PERSONS), how="semi")["place"].to_list()
    return places


def nobodies(standing: pl.DataFrame) -> pl.Series:
    """Who is nobody in the memory any more."""
    return (standing[SPELLED[0]] == NOBODY) & (standing[SPELLED[1]] == NOBODY)
