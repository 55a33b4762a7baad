"""Cells as other programs write them, in the notation that Reveil reads.

Lists that were written by mistake (`['17-19']`, of anonypy), sets without braces (`a,b`) and words for suppressed
cells (`NA`, of sdcMicro). A text that is one of the column's own values is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Set

import polars as pl

from reveil.hierarchies.tree import ANY
from reveil.published.notation import exact_number, parse_cell
from reveil.published.sets import format_set

NOTHING = frozenset(("NA", "N/A", "NaN", "nan", "None", "<NA>", "NULL", "null", "?", "-", "suppressed"))
_LIST = re.compile(r"[\[(]\s*('[^']*'|\"[^\"]*\")(\s*,\s*('[^']*'|\"[^\"]*\"))*\s*,?\s*[\])]")
_ITEM = re.compile(r"'([^']*)'|\"([^\"]*)\"")


def as_ours(cells: pl.Series, values: Set[str], *, missing: bool) -> pl.Series:
    """A published column in our notation. `values` are those that people have in it; where some have none (`missing`),
    an empty cell may be theirs, and stays what it is.

    >>> as_ours(pl.Series(["['17-19']", "a,b", "NA", "x,y"]), {"a", "b", "x,y", "17"}, missing=False).to_list()
    ['17-19', '{a,b}', '*', 'x,y']
    """
    texts = cells.cast(pl.String)
    distinct = texts.drop_nulls().unique(maintain_order=True).to_list()
    read = {text: foreign_cell(text, values) for text in distinct}
    changed = {text: ours for text, ours in read.items() if text != ours}
    texts = texts.replace(changed) if changed else texts
    return texts if missing else texts.fill_null(ANY).replace({"": ANY})


def foreign_cell(text: str, values: Set[str] = frozenset()) -> str:
    """One cell in our notation."""
    if text in values:
        return text
    bare = text.strip()
    if bare in NOTHING:
        return ANY
    if _LIST.fullmatch(bare):
        items = [first or second for first, second in _ITEM.findall(bare)]
        return foreign_cell(items[0], values) if len(items) == 1 else format_set(items)
    elements = [part.strip() for part in bare.split(",")]
    if len(elements) > 1 and bare[0] not in "[({]" and all(_is_value(part, values) for part in elements):
        return format_set(elements)
    return text


def _is_value(text: str, values: Set[str]) -> bool:
    """Whether an element of a set without braces is a value that somebody has, a number, or a range of numbers."""
    if not text:
        return False
    return text in values or not values or exact_number(text) is not None or parse_cell(text).kind == "interval"
