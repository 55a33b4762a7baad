"""Values of several columns side by side (`together`): whether they are as they should be, and what they tell.

They must have the same counts as the table of each column alone, and be those of the people who founded the group, who
are there or have left: a combination that came or went would name whoever came or went.
"""

from __future__ import annotations

from itertools import permutations

import polars as pl

from reveil.base.text import plain_text
from reveil.history.history import History
from reveil.published.format import COUNT, GROUP
from reveil.verify.comparing import Check, Truth


def check_tuples(tuples: pl.DataFrame, table: pl.DataFrame, truth: Truth | None, history: History) -> list[Check]:
    """`table`: the values of each column alone, row by row with their group."""
    names = [name for name in tuples.columns if name not in (GROUP, COUNT)]
    odd = [name for name in names if _counts(tuples, name) != _counts(table.with_columns(pl.lit(1).alias(COUNT)), name)]
    finding = f"other counts than the tables of {', '.join(map(repr, odd))}" if odd else "counts as in each table alone"
    checks = [Check("values side by side", not odd, finding)]
    if truth is not None and truth.members is not None:
        shown = sorted((row[0], *map(plain_text, row[1:-1])) for row in tuples.rows() for _ in range(row[-1]))
        same = shown == sorted(_founders(truth.members, history, names))
        finding = "those of the people who founded each group" if same else "not those of the people of each group"
        checks.append(Check("values of people side by side", same, finding))
    return checks


def _counts(counted: pl.DataFrame, name: str) -> list[tuple[object, ...]]:
    return sorted(
        (group, plain_text(value), count)
        for group, value, count in counted.group_by(GROUP, name).agg(pl.col(COUNT).sum()).rows()
    )


def _founders(members: pl.DataFrame, history: History, names: list[str]) -> list[tuple[object, ...]]:
    """Group of now, and values by name, of everybody of the cohorts that are shown."""
    now = dict(members.select("person", GROUP).rows())
    texts = [members[name].map_elements(plain_text, return_dtype=pl.String, skip_nulls=False) for name in names]
    held = [(now[row[0]], *row[1:]) for row in zip(members["person"], *texts, strict=True)]
    if not history.head:
        return held
    past = history.members.filter(pl.col(GROUP) >= 0).sort("release")
    first = past.unique("person", keep="first", maintain_order=True)
    home = {person: (release, group) for person, release, group in first.select("person", "release", GROUP).rows()}
    place = {home[person]: group for person, group in now.items() if person in home}
    books = [[plain_text(value) for value in history.codebook[name]] for name in names]
    for person, *codes in first.select("person", *names).rows():
        if person not in now and home[person] in place:
            held.append((place[home[person]], *(book[code] for book, code in zip(books, codes, strict=True))))
    return held


def told_by_tuples(tuples: pl.DataFrame) -> list[str]:
    """What values side by side tell whoever knows one of a person's, with the figure for this release."""
    names = [name for name in tuples.columns if name not in (GROUP, COUNT)]
    every, told = int(tuples[COUNT].sum()), list[str]()
    for known, other in permutations(names, 2):
        kinds = tuples.group_by(GROUP, known).agg(pl.col(other).n_unique().alias("\0kinds"), pl.col(COUNT).sum())
        sure = int(kinds.filter(pl.col("\0kinds") == 1)[COUNT].sum())
        told.append(f"{other!r} from {known!r} in {sure:,} of {every:,} places")
    columns = " and ".join(map(repr, names))
    return [
        f"{columns} are published side by side by group: whoever knows one of them of a person reads the other "
        f"wherever the group has it with one value only. In this release that tells {', '.join(told)}."
    ]
