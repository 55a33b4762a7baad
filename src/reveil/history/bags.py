"""People with several rows in a series: what the ledger keeps of them is one value each, the *bag* of all they have.

Values never change, so that a person's bag is the same in every release; of somebody with more rows than are shown
(`people.most`) the bag has as many values, drawn by lot when the person is first seen, and kept. Which of their rows
show their quasi-identifiers is drawn anew in each release: neither follows the other, nor any value.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.arrays import I32, I64, Bools
from reveil.base.bags import item_of, joined, values_of
from reveil.base.errors import Fault, InputError
from reveil.base.words import some_people
from reveil.history.history import History
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy
from reveil.table.encode import Bags, Encoded, Sensitive
from reveil.table.numbers import first_rows

LOTS_OF_ROWS = 15  # of the lots of a release: these are drawn for nothing else


def one_row_each(frame: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """The first row of everybody who may have several, in the order of their numbers as owners (`encode`)."""
    assert policy.owner is not None
    names = frame[policy.owner].cast(pl.String)
    return frame[np.unique(names.rank("dense").to_numpy(), return_index=True)[1]]


def in_bags(encoded: Encoded, persons: I64, past: History, policy: Policy, rng: np.random.Generator) -> Encoded:
    """The rows with the bags of their people; `persons` are the numbers of all owners."""
    assert encoded.owners is not None
    (column,), owners = encoded.sensitive, encoded.owners
    sizes, most = np.bincount(owners, minlength=len(persons)), policy.people.most
    shown = drawn(owners, sizes if most is None else np.minimum(sizes, most), rng)
    items = np.array([item_of(value) for value in column.values], dtype=object)
    texts = _texts(owners[shown], items[encoded.codes[shown, 0]])
    book = list(past.codebook.get(column.name, ()))
    before = past.last_codes(persons, column.name)
    known = np.flatnonzero(before >= 0)
    if len(known):
        held = _texts(owners, items[encoded.codes[:, 0]])
        changed = [i for i in known.tolist() if not _same(book[before[i]], held[i], most)]
        if changed:
            raise InputError(_fault(column.name, owners, np.array(changed), policy))
        for i in known.tolist():
            texts[i] = book[before[i]]
    codes = {text: number for number, text in enumerate(book)}
    of_owner = np.array([codes.setdefault(text, len(codes)) for text in texts], dtype=np.int32)
    bags = Bags(Sensitive(column.name, tuple(codes), False, None), of_owner[owners], shown)
    return replace(encoded, persons=persons[owners], bags=bags)


def drawn(owners: I64, sizes: I64, rng: np.random.Generator) -> Bools:
    """So many rows of each owner, by lot."""
    order = np.lexsort((rng.permutation(len(owners)), owners))
    starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(sizes)))])
    place = np.empty(len(owners), dtype=np.int64)
    place[order] = np.arange(len(owners)) - starts[owners[order]]
    return np.asarray(place < sizes[owners])


def _texts(owners: I64, items: NDArray[np.object_]) -> list[str]:
    """The bag of each owner, in the order of their numbers."""
    listed = pl.DataFrame({"owner": owners, "item": pl.Series(items, dtype=pl.String)})
    grouped = listed.group_by("owner").agg(pl.col("item").sort()).sort("owner")["item"]
    return [joined(one) for one in grouped.to_list()]


def _same(recorded: str, held: str, most: int | None) -> bool:
    """Whether somebody has what the series recorded of them; of whom not all is shown, what was."""
    if recorded == held:
        return True
    before, now = Counter(values_of(recorded)), Counter(values_of(held))
    return most is not None and before.total() == most and before <= now


def _fault(column: str, owners: I64, changed: I64, policy: Policy) -> Fault:
    """People whose values are others than before, by row."""
    rows = np.isin(owners, changed)
    message = (
        f'values.change = "never", and {some_people(len(changed))} have other values than were recorded of them (all '
        "rows of somebody together are one value, which stays)"
    )
    remedy = (
        "correct the table; a person whose values came one after the other is published release by release, one row "
        "of each (--where), or in a new series under a model whose values change"
    )
    return Fault("R311", f"column {column!r}", message, remedy, int(rows.sum()), first_rows(pl.Series(rows)))


@dataclass(frozen=True, eq=False)
class ByPerson:
    """A planned release with one record for each person, as the ledger keeps it and the verifier compares it."""

    frame: pl.DataFrame
    encoded: Encoded
    plan: Plan


def as_people(frame: pl.DataFrame, encoded: Encoded, plan: Plan, policy: Policy) -> ByPerson:
    """A planned release, person by person; where everybody has one row, as it is."""
    if encoded.bags is None or encoded.owners is None or encoded.persons is None:
        return ByPerson(frame, encoded, plan)
    first = np.unique(encoded.owners, return_index=True)[1]
    count, bags = len(first), encoded.bags
    codes = bags.codes[first]
    named = one_row_each(frame, policy).select(policy.owner)
    texts = pl.Series(bags.column.name, bags.column.values, dtype=pl.String).gather(codes)
    single = Encoded(
        quasi=(),
        positions=np.empty((count, 0), dtype=np.int32),
        sensitive=(bags.column,),
        codes=codes[:, None],
        persons=encoded.persons[first],
    )
    groups = _by_owner(plan.groups, encoded.owners, count)
    boxes = None if plan.people is None else _by_owner(plan.people, encoded.owners, count)
    return ByPerson(
        named.with_columns(texts), single, replace(plan, groups=groups, people=boxes, bundles=None, regions=None)
    )


def _by_owner(numbers: I32, owners: I64, count: int) -> I32:
    """The highest number of each owner's rows: hidden ones have -1, and boxes of equal rows differ alike for all."""
    highest = np.full(count, -1, dtype=np.int32)
    np.maximum.at(highest, owners, numbers)
    return highest
