"""What is noticed in a table that is probably a mistake, and may be meant: it is asked about, or refused by name.

On a terminal the command line asks. Elsewhere the table is refused, and the fault names what accepts it: `--accept
total-rows` on the command line, `accept=["total-rows"]` in Python. Nothing else accepts a doubt.
"""

from __future__ import annotations

from collections.abc import Iterable

from reveil.base.errors import Fault, InputError, ReveilError

DOUBTS = {
    "total-rows": "R130",
    "repeated-header": "R131",
    "row-index": "R132",
    "several-sheets": "R133",
    "same-table": "R134",
    "older-table": "R135",
}


def doubt(
    name: str, where: str, message: str, remedy: str, rows: int | None = None, places: tuple[int, ...] = ()
) -> Fault:
    """A fault that may be accepted by its name.

    >>> doubt("total-rows", "table", "ends with a sum", "remove it", 1).remedy
    'remove it; if it is right as it is: --accept total-rows (in Python accept=["total-rows"])'
    """
    accepted = f'if it is right as it is: --accept {name} (in Python accept=["{name}"])'
    return Fault(DOUBTS[name], where, message, f"{remedy}; {accepted}", rows, places)


def accepted(names: str | Iterable[str]) -> tuple[str, ...]:
    """The doubts that somebody accepts, as a list or in one text with commas; others are refused.

    >>> accepted("total-rows, row-index"), accepted(["same-table"]), accepted("")
    (('total-rows', 'row-index'), ('same-table',), ())
    """
    parts = names.split(",") if isinstance(names, str) else [str(name) for name in names]
    wanted = tuple(part.strip() for part in parts if part.strip())
    remedy = f"use one or more of {', '.join(DOUBTS)}"
    faults = [
        Fault("R136", "accept", f"{name!r} is nothing to accept", remedy) for name in wanted if name not in DOUBTS
    ]
    if faults:
        raise InputError(faults)
    return wanted


def doubts_of(error: ReveilError) -> tuple[str, ...]:
    """The names that would accept everything that was refused; none where something else is wrong besides."""
    names = {code: name for name, code in DOUBTS.items()}
    doubted = dict.fromkeys(names.get(fault.code, "") for fault in error.faults)
    return () if "" in doubted else tuple(doubted)
