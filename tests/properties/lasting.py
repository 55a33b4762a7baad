"""Series of groups as the judges see them, and random series of closed cohorts."""

from __future__ import annotations

import numpy as np
import polars as pl

from reveil.history.history import History
from reveil.verify.judges.contract import View


def judged(judge, series):
    """The verdicts on each release of a series of (people, values) groups, people being numbers."""
    return [judge.judge(view_of(series[n]), history_of(series[:n]))[0] for n in range(len(series))]


def view_of(release):
    members = [(p, g) for g, (people, _) in enumerate(release) for p in people]
    rows = [(g, value) for g, (_, values) in enumerate(release) for value in values]
    return View(
        classes=np.array([g for g, _ in rows], dtype=np.int64),
        quasi=pl.DataFrame({"age": ["*"] * len(rows)}),
        sensitive={"illness": pl.Series("illness", [v for _, v in rows], dtype=pl.String)},
        counterfeits=np.array([len(values) - len(people) for people, values in release], dtype=np.int64),
        members=pl.DataFrame(members, schema={"person": pl.Int64, "class": pl.Int64}, orient="row"),
    )


def history_of(series):
    book = sorted({v for release in series for _, values in release for v in values})
    code = {v: number for number, v in enumerate(book)}
    members, groups, values = [], [], []
    for number, release in enumerate(series, 1):
        for g, (people, shown) in enumerate(release):
            groups.append((number, g, len(shown), len(shown) - len(people)))
            members += [(number, p, g, 0) for p in people]
            values += [(number, g, "illness", code[v], shown.count(v)) for v in sorted(set(shown))]
    if not groups:
        return History()
    return History(
        head=len(series),
        members=pl.DataFrame(members, schema=["release", "person", "group", "illness"], orient="row"),
        groups=pl.DataFrame(groups, schema=["release", "group", "rows", "counterfeits"], orient="row"),
        values=pl.DataFrame(values, schema=["release", "group", "column", "code", "rows"], orient="row"),
        codebook={"illness": book},
    )


def group(people, values="abcdefghijkl", counterfeits=0):
    """A group whose values are the first letters, one for each person and counterfeit."""
    people = tuple(people)
    return people, tuple(values[: len(people) + counterfeits])
