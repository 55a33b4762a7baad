"""Whether chains agree about people: means, how many independent samples they are worth, and intervals.

What is compared are chains, which begin far from one another: how much their means differ says how far off the mean of
all may be, however slowly they move. A class of people (of whom nothing tells any two apart) is looked at as a whole,
so that a value which hardly ever occurs is not asked to occur as often in every chain.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from reveil.base.arrays import I64, Bools

Floats = NDArray[np.float64]
SURE = 0.995  # of intervals that are stated at 95 %: chains are few, and values of a component hang together
BINS = 40  # stretches of a chain that are told apart; a fifth of them, the first, are left out
CLOSE = 1.1  # R-hat of halves of chains
ENOUGH = 50.0  # independent samples,
LONG = 10  # and so many times as many in all, so that their number is known well enough
WIDEST = 0.2  # half of an interval, at most


@dataclass(eq=False)
class Stretches:
    """How often each value was held, stretch by stretch; stretches become longer as chains do."""

    chains: int
    values: int
    length: int = 1  # rounds of a full stretch
    full: list[NDArray[np.float32]] = field(default_factory=list)
    rounds: int = 0  # in the last one
    last: NDArray[np.float32] | None = None

    def add(self, shares: Floats) -> None:
        """One more round: chains x values."""
        now = shares.astype(np.float32)
        self.last = now if self.last is None else self.last + now
        self.rounds += 1
        if self.rounds < self.length:
            return
        self.full.append((self.last / self.rounds).astype(np.float32))
        self.last, self.rounds = None, 0
        if len(self.full) == BINS:
            pairs = zip(self.full[::2], self.full[1::2], strict=True)
            self.full = [((one + two) / 2).astype(np.float32) for one, two in pairs]
            self.length *= 2

    @property
    def kept(self) -> Floats:
        """Stretches x chains x values, without the first."""
        return np.array(self.full[len(self.full) // 5 :], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Agreed:
    """What chains say of values: mean and interval; and of each person's class whether they agree."""

    mean: Floats
    low: Floats
    high: Floats
    rhat: Floats  # of the class of each value
    worth: Floats  # independent samples: what the class as a whole is worth
    good: Bools  # by value: chains agree about the class, and know each of its values well enough
    samples: int


def agreement(kept: Floats, owner: I64, sweeps: int) -> Agreed:
    """From the shares of each stretch (of so many sweeps), chain and value; `owner` is the class of each value."""
    half, chains = len(kept) // 2, kept.shape[1]
    halves = np.concatenate([kept[:half].mean(axis=0), kept[half:].mean(axis=0)])
    whole = kept.mean(axis=0)
    mean = np.clip(whole.mean(axis=0), 0.0, 1.0)
    within, samples = mean * (1 - mean), len(kept) * sweeps * chains
    apart = halves.var(axis=0, ddof=1)
    error = np.maximum(whole.var(axis=0, ddof=1) / chains, within / samples)
    classes = int(owner.max(initial=-1)) + 1
    of_class = np.bincount(owner, within, classes)
    moved = of_class > 0
    of_class[~moved] = 1.0
    rhat = np.sqrt(1 + np.bincount(owner, apart, classes) / of_class)[owner]
    worth = np.where(moved, of_class / np.maximum(np.bincount(owner, error, classes), 1e-300), 0.0)[owner]
    own = np.divide(within, error, out=worth.copy(), where=within > 0)
    width = float(student.ppf(SURE, chains - 1))
    low, high = intervals(mean, np.minimum(own, worth), width)
    fine = (samples >= LONG * ENOUGH) & (rhat < CLOSE) & (worth >= ENOUGH) & (high - low <= 2 * WIDEST)
    good = np.bincount(owner, ~fine, classes) == 0
    return Agreed(mean, low, high, rhat, worth, good[owner], samples)


def intervals(mean: Floats, worth: Floats, width: float) -> tuple[Floats, Floats]:
    """Wilson's, `width` standard errors to either side, for so many independent samples."""
    z = width * width / np.maximum(worth, 1e-9)
    middle = (mean + z / 2) / (1 + z)
    half = np.sqrt(z * mean * (1 - mean) + z * z / 4) / (1 + z)
    return np.maximum(0.0, middle - half), np.minimum(1.0, middle + half)


__all__ = ["Agreed", "Stretches", "agreement"]
