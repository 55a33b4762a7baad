"""What happens to whom in a simulated series: settings, their ranges, and the head counts that follow from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from reveil.base.errors import Fault, stop_if
from reveil.base.words import some, some_people
from reveil.simulation.populations import DIAGNOSES, SHAPES, Array

MOST_ROWS = 10**8
RANGES: dict[tuple[type, float, float], str] = {
    (int, 1, MOST_ROWS): "rows",
    (int, 1, 999): "releases",
    (int, 0, MOST_ROWS): "arrive_rows leave_rows update_rows",
    (int, 2, 1000): "diameter sensitive_values",
    (int, 0, 2**63 - 1): "seed",
    (float, 0, 10): "arrive",
    (float, 0, 1): "leave returns move update",
    (float, 0, 5): "skew",
    (float, 1 / 365, 5): "years_per_release",
}


class HeadCounts(NamedTuple):
    """Exact head counts of one release: all are settled before anything is drawn."""

    stayed: int
    left: int
    came: int
    returned: int
    updated: int

    @property
    def known(self) -> int:
        return self.stayed + self.returned

    @property
    def rows(self) -> int:
        return self.known + self.came


@dataclass(frozen=True)
class Scenario:
    """What happens to whom. Shares are of the people present before the step, and are met exactly (rounded).

    `arrive` and `leave` (0.1 each unless stated) may be given as head counts instead, and so may `update`.
    `returns` is the share of all who are away. `move` is the share of known people who move house (hospital)
    or, as a census has no place but that of birth, whose marital status changes (census; adults only).
    Under `values = "transitions"` the share `update` of known people (0.05) changes to another value of their
    block; blocks are neighbours in the list of values, about `diameter` of them (hospital 4, census 10).

    >>> Scenario(rows=20_000, releases=3, arrive_rows=5_000, leave_rows=2_000, returns=0).sizes()
    [20000, 23000, 26000]
    """

    shape: Literal["hospital", "census"] = "hospital"
    rows: int = 2_000
    releases: int = 4
    arrive: float | None = None
    leave: float | None = None
    arrive_rows: int | None = None
    leave_rows: int | None = None
    returns: float = 0.05
    move: float = 0.05
    ages: bool = True
    years_per_release: float | None = None
    values: Literal["never", "freely", "transitions"] = "never"
    update: float | None = None
    update_rows: int | None = None
    diameter: int | None = None
    sensitive_values: int | None = None
    skew: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        faults = [*_out_of_range(self), *_contradictions(self)]
        if all(fault.code != "R801" for fault in faults):  # else there is nothing to count with
            faults += [*_too_many_values(self), *_impossible_counts(self)]
        stop_if(faults)

    @property
    def years(self) -> float:
        """How much time passes from one release to the next: a quarter (hospital) or a year (census)."""
        return self.years_per_release or (0.25 if self.shape == "hospital" else 1.0)

    @property
    def names(self) -> list[str]:
        """The sensitive values; neighbours are of one kind."""
        if self.shape == "hospital":
            return [name for name, _, _ in DIAGNOSES[: self.sensitive_values]]
        count = self.sensitive_values or 50
        return [f"occ{value:0{len(str(count - 1))}d}" for value in range(count)]

    @property
    def blocks(self) -> list[Array]:
        """Values that may become each other. No block has a single value, so every update is a change."""
        count = len(self.names)
        size = self.diameter or min(count, 4 if self.shape == "hospital" else 10)
        return np.array_split(np.arange(count), min(-(-count // size), count // 2))

    def steps(self, releases: int | None = None) -> list[HeadCounts]:
        """Head counts of the second and all later releases; none after a release of more than MOST_ROWS."""
        steps, present, away = list[HeadCounts](), self.rows, 0
        while len(steps) < (releases or self.releases) - 1 and present <= MOST_ROWS:
            left = _count(self.leave, self.leave_rows, 0.1, present)
            came = _count(self.arrive, self.arrive_rows, 0.1, present)
            returned, stayed = round(self.returns * away), present - left
            updated = _count(self.update, self.update_rows, 0.05, stayed + returned)
            if self.values != "transitions":
                updated = 0
            steps.append(HeadCounts(stayed, left, came, returned, updated))
            present, away = steps[-1].rows, away + left - returned
        return steps

    def sizes(self) -> list[int]:
        """Rows of each release."""
        return [self.rows, *(step.rows for step in self.steps())]

    def random(self, release: int, purpose: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, release, *purpose.encode()])


def _count(share: float | None, rows: int | None, default: float, of: int) -> int:
    return rows if rows is not None else round((default if share is None else share) * of)


def _out_of_range(s: Scenario) -> Iterator[Fault]:
    choices = {"shape": tuple(SHAPES), "values": ("never", "freely", "transitions"), "ages": (True, False)}
    for name, allowed in choices.items():
        if getattr(s, name) not in allowed:
            remedy = f"use one of {', '.join(map(str, allowed))}"
            yield Fault("R801", f"scenario, {name}", f"{getattr(s, name)!r} is not known", remedy)
    for (kind, low, high), names in RANGES.items():
        kinds = (int, np.integer) if kind is int else (int, float, np.integer, np.floating)
        remedy = f"give a {'whole ' * (kind is int)}number from {low:.3g} to {high:,}"
        for name in names.split():
            value = getattr(s, name)
            if value is None and getattr(Scenario, name) is None:
                continue
            if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
                yield Fault("R801", f"scenario, {name}", f"{value!r} is not allowed", remedy)


def _contradictions(s: Scenario) -> Iterator[Fault]:
    """Settings that exclude each other, or that would be accepted and do nothing."""

    def fault(name: str, message: str, remedy: str) -> Fault:
        return Fault("R802", f"scenario, {name}", message, remedy)

    for name in ("arrive", "leave", "update"):
        if getattr(s, name) is not None and getattr(s, f"{name}_rows") is not None:
            yield fault(name, f"both {name} and {name}_rows are given", "give the share or the head count")
    if s.values != "transitions":
        for name in ("update", "update_rows", "diameter"):
            if getattr(s, name) is not None:
                message = f'does nothing under values = "{s.values}"'
                yield fault(name, message, 'leave it out, or use values = "transitions"')
    if s.shape == "census" and not s.ages and s.years_per_release is not None:
        yield fault("years_per_release", "does nothing: nobody ages, and there are no dates", "leave it out")


def _too_many_values(s: Scenario) -> Iterator[Fault]:
    if s.shape == "hospital" and (s.sensitive_values or 0) > len(DIAGNOSES):
        message, remedy = f"the hospital knows {len(DIAGNOSES)} diagnoses", 'use fewer, or shape = "census"'
        yield Fault("R803", "scenario, sensitive_values", message, remedy)
    if s.diameter is not None and s.diameter > len(s.names):
        message = f"{s.diameter} is more than all {len(s.names)} values"
        yield Fault("R803", "scenario, diameter", message, "use a smaller diameter")


def _impossible_counts(s: Scenario) -> Iterator[Fault]:
    """Head counts that cannot be met; the first release where that happens is named."""
    for release, step in enumerate(s.steps(max(2, s.releases)), start=2):
        where, present = f"scenario, release {release}", step.stayed + step.left
        if step.stayed < 0:
            yield Fault("R803", where, f"{step.left:,} of {some_people(present)} would leave", "lower leave_rows")
        elif step.rows == 0:
            yield Fault("R803", where, "nobody would be left", "lower leave, or let people arrive")
        elif step.rows > MOST_ROWS:
            yield Fault("R803", where, f"would have {some(step.rows, 'row')}", f"stay below {MOST_ROWS:,}")
        elif step.updated > step.known:
            message = f"{step.updated:,} of {step.known:,} known people would be updated"
            yield Fault("R803", where, message, "lower update_rows")
        else:
            continue
        return
