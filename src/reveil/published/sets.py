"""Sets of values as one text, `{a,"b,c"}`: how they are written, and taken apart again."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Set

from reveil.base.text import plain_text

_ELEMENT = re.compile(r'(?:"((?:[^"]|"")*)"|([^,{}"]*))(,|$)')
_NEEDS_QUOTES = re.compile(r'[,{}"]|^\s|\s$')


def format_set(values: Iterable[Hashable]) -> str:
    """A set of values as one text, in the order given (a Python set, which has none, is sorted by text).

    An element with a comma, brace, quote or outer space is quoted; an empty element is the missing value.

    >>> format_set(["flu", None, "cold, common"])
    '{flu,,"cold, common"}'
    """
    texts = [plain_text(value) for value in values]
    if not texts:
        raise ValueError("a set that stands for no value cannot be published")
    if isinstance(values, Set):
        texts.sort()
    quoted = ('"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text for text in texts)
    return "{" + ",".join(quoted) + "}"


def split_set(text: str) -> list[str] | None:
    """The elements of a text such as `{a,"b,c"}`; None where it is not a set."""
    if len(text) < 2 or text[0] != "{" or text[-1] != "}":
        return None
    inside, place, elements = text[1:-1], 0, []
    while match := _ELEMENT.match(inside, place):
        quoted, plain, end = match.groups()
        elements.append(plain if quoted is None else quoted.replace('""', '"'))
        place = match.end()
        if not end:
            return elements
    return None
