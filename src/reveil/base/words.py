"""Numbers and the words that agree with them, for everything that people read."""

from __future__ import annotations


def some(count: int, one: str, many: str | None = None) -> str:
    """`1 class`, `12 classes`.

    >>> some(1, "row"), some(1200, "class", "classes")
    ('1 row', '1,200 classes')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def some_people(count: int) -> str:
    """`1 person`, `12 people`."""
    return some(count, "person", "people")


def agree(count: int, one: str, many: str) -> str:
    """The verb for so many.

    >>> f"{some_people(1)} {agree(1, 'is', 'are')} exposed"
    '1 person is exposed'
    """
    return one if count == 1 else many
