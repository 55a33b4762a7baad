"""How an audit is asked for: which columns, against which adversary, how much is done. Plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from reveil.base.errors import Fault
from reveil.base.sections import exact

Presence = Literal["auto", "known", "unknown"]
WORST = 10  # people whose exposure is explained unless more are asked for
LEAST = {"draws": 1, "limit": 0, "samples": 0, "worst": 0, "seed": 0}
READING = ("sensitive", "identifier", "counterfeits", "presence", "accept_missing")
BACKGROUND = ("priors", "change", "transitions", "compromised", "share", "publisher")


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    """What an audit looks at, and for whom it speaks.

    `adversary` is a file, a table or an `Adversary`; priors (person -> value -> weight), change, transitions, share and
    publisher go before what it says, and compromised people add to its own. Without priors, the policy's first is used.
    A `publisher` (any, median) is known to cut groups as far as the promise allows, numbers anywhere or at the median.
    """

    sensitive: str | None = None  # the column to look at
    identifier: str | None = None  # of the population
    counterfeits: Sequence[Any] | None = None  # counts by group, of each release
    presence: Presence = "auto"  # whether all of the population are in the releases
    accept_missing: bool = False  # people of the population or the truth who fit nothing are right to be there
    adversary: Any = None
    priors: Mapping[str, Mapping[str, Fraction]] | None = None
    change: str | None = None
    transitions: Any = None
    compromised: Sequence[Any] = ()
    share: object = None  # of the people, who are known at random
    publisher: str | None = None
    draws: int = 1  # of people who are known at random
    promise: object = None  # the highest belief allowed; None: the policy's
    people: Sequence[object] | None = None  # only these are looked at
    limit: float = 60.0  # seconds of computing
    samples: int | None = None  # steps of sampling where counting is too long; None: as time allows, of others' tables
    worst: int = WORST  # exposed people to explain
    seed: int = 0

    def background(self) -> dict[str, Any]:
        """What is said of the adversary one by one."""
        stated = {name: getattr(self, name) for name in BACKGROUND}
        return {name: value for name, value in stated.items() if value is not None}

    def faults(self) -> list[Fault]:
        """What cannot be used, whatever is attacked."""
        faults = [
            Fault("R732", name, f"{getattr(self, name)} is below {low}", f"write {low} or more")
            for name, low in LEAST.items()
            if getattr(self, name) is not None and not getattr(self, name) >= low
        ]
        if not self._possible_promise():
            message = f"{self.promise!r} is not a chance above 0 and up to 1"
            faults.append(Fault("R732", "promise", message, "write a number such as 0.25 or 1/4"))
        if self.people is not None and not len(self.people):
            faults.append(Fault("R732", "people", "names nobody", "leave it out to look at everybody"))
        return faults

    def idle(self, population: object) -> list[Fault]:
        """What is said of reading tables, where there is none to read."""
        said = {"population": population, **{name: getattr(self, name) for name in READING}}
        message = "is for released tables: here it is known who is in which group"
        return [
            Fault("R732", name, message, "leave it out, or name the released tables")
            for name, value in said.items()
            if value not in (None, False) and (name, value) != ("presence", "auto")
        ]

    def _possible_promise(self) -> bool:
        try:
            return self.promise is None or 0 < exact(self.promise) <= 1
        except ValueError:
            return False
