"""Whether people's values change as the policy states: counterfeits do, and are told apart from people who do not.

Every change from one appearance to the next that the series has seen is compared with its stated chance by an exact
binomial test, two-sided; all tests together raise a false alarm with a chance of at most `ERROR`.
"""

from __future__ import annotations

from fractions import Fraction

import polars as pl

from reveil.background.transitions import relation_of
from reveil.base.text import plain_text
from reveil.base.words import some
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.verify.judges.counts import written

ERROR = Fraction(1, 1000)  # the chance of a false alarm in one release
SHOWN = 3  # changes that are named


def odd_changes(policy: Policy, history: History, members: pl.DataFrame) -> list[str]:
    """What disagrees, as a limit of the certificate; `members` are the people of the release with their values."""
    if policy.values.change != "transitions" or history.members.is_empty():
        return []
    (column,) = policy.named("sensitive")
    seen = _changes(history, members, column)
    if seen.is_empty():
        return []
    odd = _disagreeing(policy, seen)
    if not odd:
        return []
    told = "; ".join(
        f"{a!r} became {b!r} in {hits:,} of {some(times, 'change')}, {written(stated)} is stated"
        for a, b, hits, times, stated in odd[:SHOWN]
    )
    return [
        f"Values do not change with the stated chances ({some(len(odd), 'change')}, error {written(ERROR)}): "
        f"{told}. Counterfeits change as is stated, so that they differ from people: who left, and what they had last, "
        "can be guessed better than is promised. State the chances that values have (from;to;probability)."
    ]


def _changes(history: History, members: pl.DataFrame, column: str) -> pl.DataFrame:
    """How often which value was followed by which: a, b, hits."""
    book = pl.Series([plain_text(value) for value in history.codebook[column]], dtype=pl.String)
    past = history.members.select(
        pl.col("person").cast(pl.Int64), pl.col("release").cast(pl.Int64), pl.col(column).alias("code")
    )
    past = past.with_columns(book.gather(past["code"]).alias("value")).drop("code")
    texts = pl.Series("value", [plain_text(value) for value in members[column].to_list()], dtype=pl.String)
    now = members.select(pl.col("person").cast(pl.Int64), release=pl.lit(history.head + 1, dtype=pl.Int64))
    line = pl.concat([past, now.with_columns(texts)]).sort("person", "release")
    steps = line.with_columns(b=pl.col("value").shift(-1).over("person")).drop_nulls("b")
    return steps.rename({"value": "a"}).group_by("a", "b").len("hits").sort("a", "b")


def _disagreeing(policy: Policy, seen: pl.DataFrame) -> list[tuple[str, str, int, int, Fraction]]:
    """From, to, how often, of how many, and the stated chance; the least likely first."""
    names = sorted(set(seen["a"]) | set(seen["b"]))
    relation = relation_of(policy, names)
    hits = {(a, b): count for a, b, count in seen.iter_rows()}
    totals = dict(seen.group_by("a").agg(pl.col("hits").sum()).iter_rows())
    number = {plain_text(value): place for place, value in enumerate(relation.values)}
    tests = []
    for a, times in sorted(totals.items()):
        line = relation.weights[number[a]]
        for b, place in number.items():
            stated = Fraction(int(line[place]), int(relation.totals[number[a]]))
            if 0 < stated < 1:
                count = hits.get((a, b), 0)
                tests.append((_surprise(count, times, float(stated)), a, b, count, times, stated))
    odd = sorted(test for test in tests if test[0] <= float(ERROR) / len(tests))
    return [test[1:] for test in odd]


def _surprise(hits: int, times: int, chance: float) -> float:
    """The chance of a count as far out, on its side, doubled."""
    from scipy.stats import binom  # a second to load, and few series have transitions

    return 2 * min(float(binom.cdf(hits, times, chance)), float(binom.sf(hits - 1, times, chance)))
