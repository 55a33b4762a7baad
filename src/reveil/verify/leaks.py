"""What a series gives away around its promise, measured: the verifier attacks it with what anybody could see.

What is chosen by a person's value tells something of it, whatever the bound says: which places newcomers take over, how
places that somebody left go on, which cohorts end. Where the publisher does any of this, the attack that makes the most
of it is tried on the series itself; the truth is used to count how often it is right, and the certificate says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any

import polars as pl

from reveil.background.transitions import relation_of
from reveil.base.text import plain_text
from reveil.base.words import agree, some, some_people
from reveil.guarantees.lasting import CohortTerms, Evolving
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.published.format import GROUP
from reveil.verify.judges.cohort_bounds import promised_guess
from reveil.verify.judges.counts import written

CHANCE = 0.025  # a right guess more often than this would be by luck is stated


@dataclass(frozen=True)
class Turn:
    """One release: who is in which group (-1: not shown), what they have, and what each group shows."""

    group: Mapping[int, int]
    value: Mapping[int, str]
    shown: Mapping[int, Counter[str]]

    @cached_property
    def people(self) -> dict[int, set[int]]:
        members: dict[int, set[int]] = {}
        for person, group in self.group.items():
            members.setdefault(group, set()).add(person)
        return members


def measured_limits(
    policy: Policy, history: History, everybody: pl.DataFrame, table: pl.DataFrame, odd: bool
) -> list[str]:
    """Limits of the certificate with their figures; `everybody`: person, group and values of all who were put in.

    `odd`: values do not change with the stated chances, so that counterfeits differ from people.
    """
    terms = policy.guarantee.find(CohortTerms)
    if terms is None or not history.head or GROUP not in table.columns:
        return []
    refilled = isinstance(terms.refill, int)
    evolving = isinstance(terms, Evolving) and terms.joint and (odd or bool((everybody[GROUP] < 0).any()))
    if not (refilled or evolving):
        return []
    (column,) = policy.named("sensitive")
    members, shown = lines_of(history, everybody, table, column, 1 if refilled else history.head)
    limits = _refills(members, shown) if refilled else []
    if evolving:
        before, now = (_turn(members, shown, release) for release in (history.head, history.head + 1))
        limits += (_leavers(before, now, policy) if odd else []) + _ended(before, now, policy)
    return limits


def lines_of(
    history: History, everybody: pl.DataFrame, table: pl.DataFrame, column: str, since: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """From one release on, with the one that is judged: who (release, person, group, value), and what each group shows
    (release, group, value, rows)."""
    texts = pl.Series([plain_text(value) for value in history.codebook[column]], dtype=pl.String)
    past = history.members.filter(pl.col("release") >= since)
    told = history.values.filter((pl.col("release") >= since) & (pl.col("column") == column))
    number = pl.lit(history.head + 1, dtype=pl.Int64).alias("release")
    whole = pl.col("release", "person", GROUP).cast(pl.Int64)
    members = [
        past.select(whole, value=texts.gather(past[column])),
        everybody.select(number, pl.col("person", GROUP).cast(pl.Int64), value=_texts(everybody[column])),
    ]
    counts = table.select(number, pl.col(GROUP).cast(pl.Int64), value=_texts(table[column]))
    shown = [
        told.select(
            pl.col("release", GROUP).cast(pl.Int64),
            value=texts.gather(told["code"]),
            rows=pl.col("rows").cast(pl.Int64),
        ),
        counts.group_by("release", GROUP, "value").len("rows").cast({"rows": pl.Int64}),
    ]
    return pl.concat(members), pl.concat(shown)


def _texts(values: pl.Series) -> pl.Series:
    distinct = values.unique()
    names = pl.DataFrame({"value": distinct, "text": [plain_text(value) for value in distinct]})
    return pl.DataFrame({"value": values}).join(names, on="value", how="left", nulls_equal=True, maintain_order="left")[
        "text"
    ]


def _turn(members: pl.DataFrame, shown: pl.DataFrame, release: int) -> Turn:
    """One of the releases, for looking at single groups."""
    cells: dict[int, Counter[str]] = {}
    for group, value, rows in shown.filter(pl.col("release") == release).select(GROUP, "value", "rows").iter_rows():
        cells.setdefault(group, Counter())[value] += rows
    people = members.filter(pl.col("release") == release).select("person", GROUP, "value").rows()
    return Turn({p: g for p, g, _ in people}, {p: v for p, _, v in people}, cells)


def _refills(members: pl.DataFrame, shown: pl.DataFrame) -> list[str]:
    """Counterfeits that are named in refilled groups: by the values that no group shows which begins at the same time.

    A place stays vacant where none of those who may refill has its value. Half of the newcomers may not, so a value
    that new groups show k times is vacant with weight 1/2^k, and one that they do not show at all with weight 1.
    `members`: release, person, group, value; `shown`: release, group, value, rows.
    """
    place = ["release", GROUP]
    there = members.filter(pl.col(GROUP) >= 0)
    there = there.with_columns(new=pl.col("release") == pl.col("release").min().over("person"))
    kinds = there.group_by(place).agg(old=(~pl.col("new")).any(), new=pl.col("new").any())
    fresh = shown.join(kinds.filter(~pl.col("old")), on=place, how="semi").select("release", "value").unique()
    held = there.group_by(*place, "value").len("held")
    cells = shown.join(kinds.filter(pl.col("old") & pl.col("new")), on=place, how="semi")
    cells = cells.join(fresh, on="release", how="semi").join(held, on=[*place, "value"], how="left")
    cells = cells.join(fresh.with_columns(begun=True), on=["release", "value"], how="left")
    vacant, named = pl.col("rows") - pl.col("held").fill_null(0).cast(pl.Int64), pl.col("begun").is_null()
    groups = cells.group_by(place).agg(
        size=pl.col("rows").sum(),
        vacant=vacant.sum(),
        named=named.sum(),
        right=(named == (vacant > 0)).all(),
    )
    groups = groups.filter((pl.col("vacant") > 0) & (pl.col("vacant") == pl.col("named")))
    cases, right = groups.height, int(groups["right"].sum())
    if not cases:
        return []
    guessing = sum(1 / comb(size, number) for size, number in groups.select("size", "vacant").iter_rows()) / cases
    return [
        f"Refilled places: in {some(cases, 'group')} so far that newcomers joined, as many values as there are "
        f"counterfeits occur in no group that begins with the same release. Whoever takes these for the counterfeits' "
        f"is right in {right:,} of them ({right / cases:.0%}; plain guessing {guessing:.0%}). Where counterfeits are "
        "named, who is left is guessed among fewer people than is promised."
    ]


def _leavers(before: Turn, now: Turn, policy: Policy) -> list[str]:
    """Somebody who left alone: the value that their group no longer shows is taken for theirs."""
    cases = right = 0
    for group, people in before.people.items():
        here = {now.group[person] for person in people if now.group.get(person, -1) >= 0}
        gone = [person for person in people if person not in now.group]
        if group < 0 or len(gone) != 1 or len(here) != 1:
            continue
        lost = before.shown[group] - now.shown[here.pop()]
        if lost.total() == 1:
            cases, right = cases + 1, right + (before.value[gone[0]] in lost)
    promised = promised_guess(policy.guarantee.require(Evolving))
    if not cases or _likely(right, cases, float(promised)):
        return []
    return [
        f"Leavers: {some_people(cases)} left {agree(cases, 'a group', 'groups')} that no longer show one value. "
        f"Taking it for theirs is right in {right:,} of them ({right / cases:.0%}; {written(promised)} is promised). "
        "Counterfeits change with the stated chances, and people who change less often are told from them by that."
    ]


def _likely(right: int, cases: int, promised: float) -> bool:
    """Whether so many right guesses are no more than chance gives, where each is right as is promised."""
    from scipy.stats import binom  # a second to load, and few series have transitions

    return float(binom.sf(right - 1, cases, promised)) > CHANCE


def _ended(before: Turn, now: Turn, policy: Policy) -> list[str]:
    """Cohorts that are not shown again: the value that most of their places can have come to share is guessed."""
    ended = {
        group: away
        for group, people in before.people.items()
        if group >= 0 and (away := {p for p in people if now.group.get(p, 0) == -1})
        if not any(now.group.get(person, -1) >= 0 for person in people)
    }
    if not ended:
        return []
    names = sorted({value for group in ended for value in before.shown[group]} | set(now.value.values()))
    relation = relation_of(policy, names)
    chance = relation.weights / relation.totals[:, None]
    number: dict[Any, int] = {plain_text(value): place for place, value in enumerate(relation.values)}
    texts = {place: text for text, place in number.items()}
    right = people = 0
    for group, away in ended.items():
        expected = sum(chance[number[value]] * rows for value, rows in before.shown[group].items())
        guess = texts[int(expected.argmax())]
        right, people = right + sum(now.value[person] == guess for person in away), people + len(away)
    promised = promised_guess(policy.guarantee.require(Evolving))
    return [
        f"Cohorts that end: {some_people(people)} of {some(len(ended), 'cohort')} are not shown any more, because too "
        f"many of their places have come to share a value, or might without being withheld unnoticed. Guessing the "
        f"value that most of them can have come to share is right in {right:,} of {people:,} ({right / people:.0%}; "
        f"over all that may happen, at most {written(promised)} is promised)."
    ]
