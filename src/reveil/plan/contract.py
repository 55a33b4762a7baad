"""What planning hands on: a frozen plan, and what every planner looks like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reveil.encode import Encoded
from reveil.history import History
from reveil.policy import Policy

Progress = Callable[[str, float], None]  # what is being done, and how much of it is (0 to 1)


def silent(what: str, done: float) -> None:
    """No progress shown."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Which rows are published together. Nothing has been written when a plan exists."""

    groups: NDArray[np.int32]  # of each input row, numbered from 0; -1 where the row is withheld
    method: str
    counterfeit_groups: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    counterfeit_codes: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, 0), dtype=np.int32))
    population_groups: NDArray[np.int32] | None = None  # of each person of the population table
    reasons: Mapping[str, int] = field(default_factory=dict)  # why rows are withheld -> how many
    statistics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return int(self.groups.max(initial=-1)) + 1

    @property
    def withheld(self) -> int:
        return int((self.groups < 0).sum())

    @property
    def counterfeits(self) -> int:
        return len(self.counterfeit_groups)


class Method(Protocol):
    """A planner: rows and past in, plan out. It may refuse (InfeasibleError), it never half-plans."""

    def __call__(
        self, encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress
    ) -> Plan: ...
