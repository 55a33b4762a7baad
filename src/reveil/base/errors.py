"""Every way Reveil says no.

A refusal is made of faults. A fault names the place (column, policy key, file), what is wrong with it, how many
rows it concerns and the way out. All faults of one input are collected and raised together, never one per run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reveil.base.words import some


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong, with the way out.

    `places` are the first rows concerned, counted from 1 below the header: unlike line numbers they are right for every
    source, and where a quoted text goes over several lines.

    >>> print(Fault("R201", "column 'age'", "2 values are not numbers: 'x', 'y'", "correct them", 5, (17, 20, 204)))
    R201 column 'age': 2 values are not numbers: 'x', 'y' (5 rows: no. 17, 20, 204 and 2 more). Way out: correct them.
    """

    code: str
    where: str
    message: str
    remedy: str
    rows: int | None = None
    places: tuple[int, ...] = ()

    @property
    def extent(self) -> str:
        """How many rows, and the first of them, as it follows the message."""
        if self.rows is None:
            return ""
        more = f" and {self.rows - len(self.places):,} more" if self.rows > len(self.places) else ""
        which = f": no. {', '.join(map(str, self.places))}{more}" if self.places else ""
        return f" ({some(self.rows, 'row')}{which})"

    def __str__(self) -> str:
        return f"{self.code} {self.where}: {self.message}{self.extent}. Way out: {self.remedy}."

    def to_dict(self) -> dict[str, object]:
        return {
            "code": self.code,
            "where": self.where,
            "message": self.message,
            "remedy": self.remedy,
            "rows": self.rows,
            "places": list(self.places),
        }


class ReveilError(Exception):
    """Base of all refusals; `exit_code` is what the command line returns."""

    title = "Refused"
    exit_code = 2

    def __init__(self, faults: Fault | Iterable[Fault]) -> None:
        self.faults: tuple[Fault, ...] = (faults,) if isinstance(faults, Fault) else tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


class InputError(ReveilError):
    """The table, the policy or the call is not usable as it stands. Nothing was written."""

    title = "Cannot use this input"


class InfeasibleError(ReveilError):
    """No release of this table keeps the promise of this policy. Nothing was written."""

    title = "The promise cannot be kept for this table"


class GuaranteeError(ReveilError):
    """A release does not keep the promise. Raised before anything is revealed."""

    title = "The guarantee does not hold"
    exit_code = 1


class UnmatchedError(ReveilError):
    """An answer was given, and it does not speak of everybody who was asked about."""

    title = "Not everybody was looked at"
    exit_code = 1


class UndecidedError(ReveilError):
    """Nothing speaks against a promise, and what would show that it holds is not here."""

    title = "Whether the guarantee holds cannot be shown from this alone"
    exit_code = 3


class ExposedError(ReveilError):
    """People can be found in a table. Nobody promised anything about it: it may never have been anonymised."""

    title = "People can be found in this table"
    exit_code = 1


class ConflictError(ReveilError):
    """Somebody else published in this series meanwhile. Nothing was written; plan again."""

    title = "The series has moved on"


class CommitUnknownError(ReveilError):
    """The ledger did not say whether the release was recorded. The next command settles it."""

    title = "It is not known whether the release was recorded"


class UnfinishedError(CommitUnknownError):
    """The release is recorded, and something went wrong afterwards. It counts; the next command finishes it."""

    title = "The release is recorded, and not yet finished"


class TamperedError(ReveilError):
    """A file of the ledger or of a past release is missing or is not what was recorded."""

    title = "The series is not as it was recorded"
    exit_code = 1


def brief(value: object) -> str:
    """A value as messages quote it: a cell of megabytes is cut.

    >>> brief("flu"), brief("x" * 100)
    ("'flu'", "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'")
    """
    return repr(value[:37] + "..." if isinstance(value, str) and len(value) > 40 else value)


def stop_if(faults: list[Fault]) -> None:
    """Raise all collected faults at once, or do nothing when there are none."""
    if faults:
        raise InputError(faults)
