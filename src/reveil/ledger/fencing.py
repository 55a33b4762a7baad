"""Whether this process may still write: asked inside each transaction of a catalog, just before it is committed.

A worker of the console has a lease of its job (`serve/queue.py`). One that was stopped for longer than that, and wakes,
must not record what somebody else has given up or done again. Everybody else has no lease, and may.
"""

from __future__ import annotations

from collections.abc import Callable

_insist: list[Callable[[], None]] = []  # of this process, which does one job and ends


def fence(insist: Callable[[], None]) -> None:
    """From now on this is asked before anything is committed; it raises where that may not be."""
    _insist[:] = [insist]


def insist() -> None:
    """Raise if this process may no longer write."""
    for ask in _insist:
        ask()
