"""All values of somebody with several rows as one text, and back: whoever has the same values has the same text.

A series remembers such a *bag* as the one value of a person, and the verifier makes it again from the published bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date
from typing import Any

from reveil.base.text import plain_text


def item_of(value: object) -> str:
    """One value in a bag: a number is the same number whatever type its column has.

    >>> item_of(3.0), item_of("3"), item_of(None), item_of(date(2024, 2, 27))
    ('3', '"3"', 'null', '{"date":"2024-02-27"}')
    """
    if isinstance(value, date):
        return f'{{"date":"{value.isoformat()}"}}'
    if value is None or value != value:
        return "null"
    return json.dumps(value) if isinstance(value, str) else plain_text(value)


def bag_text(values: Iterable[object]) -> str:
    """All values of somebody, in whatever order they came.

    >>> bag_text(["flu", "ache", "flu"]), bag_text([2, 1.5])
    ('["ache","flu","flu"]', '[1.5,2]')
    """
    return joined(map(item_of, values))


def joined(items: Iterable[str]) -> str:
    """A bag of items that are texts already."""
    return f"[{','.join(sorted(items))}]"


def values_of(bag: str) -> tuple[Any, ...]:
    """The values in a bag.

    >>> values_of('["ache","flu","flu"]'), values_of("[1.5,2,null]")
    (('ache', 'flu', 'flu'), (1.5, 2, None))
    """
    return tuple(date.fromisoformat(one["date"]) if isinstance(one, dict) else one for one in json.loads(bag))


def rows_in(bag: str) -> int:
    """How many rows somebody with this bag shows.

    >>> rows_in('["ache","flu","flu"]')
    3
    """
    return len(json.loads(bag))
