"""Sensitive numbers in bins: published, protected and compared as the bin that they are in, and never as themselves."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import polars as pl

from reveil.base.text import plain_text
from reveil.policy.policy import Publication


def bin_labels(cuts: Sequence[Fraction]) -> list[str]:
    """What the bins between these cuts are called, the lowest first; a cut belongs to the bin above it.

    >>> bin_labels([Fraction(1), Fraction("99.5")])
    ['< 1', '1 to < 99.5', '>= 99.5']
    """
    texts = [_text(cut) for cut in cuts]
    inner = [f"{low} to < {high}" for low, high in pairwise(texts)]
    return [f"< {texts[0]}", *inner, f">= {texts[-1]}"]


def _text(cut: Fraction) -> str:
    return plain_text(cut.numerator if cut.denominator == 1 else float(cut))


def in_bins(frame: pl.DataFrame, policy: Publication) -> pl.DataFrame:
    """A table whose binned columns, where they still hold numbers, hold the names of bins."""
    wanted = {name: spec.bins for name, spec in policy.columns.items() if spec.bins and name in frame.columns}
    return frame.with_columns(
        _binned(frame[name], bins) for name, bins in wanted.items() if frame[name].dtype.is_numeric()
    )


def _binned(column: pl.Series, bins: Sequence[Fraction]) -> pl.Series:
    """Compared exactly: each distinct number is what it is written as."""
    labels, distinct = bin_labels(bins), column.unique().drop_nulls()
    named = [labels[sum(Fraction(plain_text(value)) >= cut for cut in bins)] for value in distinct]
    looked = pl.DataFrame({"value": distinct, "bin": pl.Series(named, dtype=pl.String)})
    both = column.to_frame("value").join(looked, on="value", how="left", maintain_order="left")
    return both["bin"].alias(column.name)
