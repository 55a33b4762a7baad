"""Beliefs by sampling, where components are too large to count.

A state gives every row of the component's groups a holder (an appearance, or nobody for a counterfeit). Moves exchange
the holders of two rows, or of all rows of two values along the groups that they connect (Kempe moves). People whose
values do not fit over time cost a penalty instead of being forbidden, which is what lets the chain go anywhere; only
samples without a misfit count. Several chains start from different worlds at different temperatures. Sampling gives
beliefs with intervals; it never shows that something is impossible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reveil.audit.exact import Chain, chains_of
from reveil.audit.infer import Inference, Progress

I64 = NDArray[np.int64]
Floats = NDArray[np.float64]

CHAINS = 8
LEVELS = 5  # temperatures of a chain
COLDEST = 8.0  # penalty of a misfit at the level that is sampled
T_95 = 2.364624  # Student's t with CHAINS - 1 degrees of freedom
ENOUGH = 100.0  # effective samples; fewer give no belief


@dataclass(frozen=True)
class Sampled:
    """Beliefs in one component, with 95 % intervals; `rhat` near 1 means that the chains agree."""

    shares: dict[tuple[int, int], tuple[float, float, float]]  # (appearance, value) -> mean, low, high
    rhat: float  # the largest, of half chains
    samples: int  # without a misfit, of all chains
    effective: float  # independent samples that these are worth, for the slowest value

    @property
    def converged(self) -> bool:
        return self.rhat < 1.1 and self.effective >= ENOUGH


def sample(
    found: Inference, steps: int, *, seed: int = 0, progress: Progress = lambda what, done: None
) -> tuple[Sampled, ...]:
    """Sample every component without exact beliefs, and enter converged results as shares."""
    results = []
    for number, factors in enumerate(found.pending):
        progress("sampling", number / len(found.pending))
        if not found.model.observed.located:
            continue
        result = sample_component(found, chains_of(found.state, factors), steps, seed + number)
        results.append(result)
        if result.converged:
            _enter(found, result)
    return tuple(results)


def _enter(found: Inference, result: Sampled) -> None:
    m = found.model
    for (app, value), (mean, _, _) in result.shares.items():
        for option in range(m.opt_start[app], m.opt_start[app + 1]):
            if m.cell_value[m.opt_cell[option]] == value and found.state.alive[option]:
                found.share[option] = mean


def sample_component(found: Inference, chains: Sequence[Chain], steps: int, seed: int) -> Sampled:
    """Run the chains and put them together."""
    problem = _Rows(found, chains)
    runs = [problem.run(steps, np.random.default_rng([seed, number])) for number in range(CHAINS)]
    good = np.array([kept for _, kept in runs])  # chains x halves
    tally = np.array([counts for counts, _ in runs])  # chains x halves x appearances x values
    if (good == 0).any():
        return Sampled({}, float("inf"), int(good.sum()), 0.0)
    mean, rhat, worth = _agreement(tally, good)
    shares = {}
    for i, app in enumerate(problem.apps):
        for v in found.state.values_of(int(app)):
            shares[int(app), v] = (float(mean[i, v]), *interval(float(mean[i, v]), float(worth[i, v])))
    return Sampled(shares, rhat, int(good.sum()), float(worth.min()))


def _agreement(tally: Floats, good: I64) -> tuple[Floats, float, Floats]:
    """Means over the chains, R-hat of their halves, and how many independent samples each mean is worth."""
    whole = tally.sum(axis=1) / good.sum(axis=1)[:, None, None]
    halves = (tally / good[:, :, None, None]).reshape(-1, *tally.shape[2:])
    mean: Floats = whole.mean(axis=0)
    within = mean * (1 - mean)
    moving = within > 0
    if not moving.any():
        return mean, 1.0, np.full(mean.shape, float(good.sum()))
    rhat = float(np.sqrt(1 + np.max(halves.var(axis=0, ddof=1)[moving] / within[moving])))
    spread = np.maximum(whole.var(axis=0, ddof=1) / CHAINS, within / good.sum())
    worth = np.zeros(mean.shape)
    worth[moving] = within[moving] / spread[moving]
    worth[~moving] = worth[moving].min()  # never or always seen: as if it moved as slowly as the slowest
    return mean, rhat, worth


def interval(mean: float, worth: float) -> tuple[float, float]:
    """Wilson's interval for so many independent samples, whose number is itself estimated from the chains.

    >>> tuple(round(x, 3) for x in interval(0.0, 100.0))
    (0.0, 0.053)
    """
    z = T_95 * T_95 / worth
    middle = (mean + z / 2) / (1 + z)
    half = sqrt(z * mean * (1 - mean) + z * z / 4) / (1 + z)
    return max(0.0, middle - half), min(1.0, middle + half)


class _Rows:
    """The component as rows with holders."""

    def __init__(self, found: Inference, chains: Sequence[Chain]) -> None:
        m, state = found.model, found.state
        self.found = found
        fixed = state.open_options == 1
        self.apps = np.array([a for chain in chains for a in chain if not m.implied[m.app_factor[a]]], dtype=np.int64)
        place = {int(a): i for i, a in enumerate(self.apps)}
        row_value: list[int] = []
        row_group: list[int] = []
        holders: list[int] = []
        for number, f in enumerate(sorted({int(m.app_factor[a]) for a in self.apps})):
            free = {int(m.cell_value[c]): int(m.cell_cap[c]) for c in range(m.cell_start[f], m.cell_start[f + 1])}
            inside = []
            for a in m.factor_apps[m.factor_start[f] : m.factor_start[f + 1]]:
                if int(a) in place:
                    inside.append(place[int(a)])
                elif fixed[a]:
                    free[next(iter(state.values_of(int(a))))] -= 1
            rows = [v for v, n in free.items() for _ in range(n)]
            row_value += rows
            row_group += [number] * len(rows)
            holders += inside + [-1] * (len(rows) - len(inside))
        self.row_value, self.row_group = np.array(row_value), np.array(row_group)
        self.holders = np.array(holders)
        self.group_start = np.searchsorted(self.row_group, np.arange(self.row_group.max() + 2)).astype(np.int64)
        self._persons(found, chains, place)
        self._weights(found)

    def _persons(self, found: Inference, chains: Sequence[Chain], place: dict[int, int]) -> None:
        m = found.model
        kept = [[place[a] for a in chain if not m.implied[m.app_factor[a]]] for chain in chains]
        self.chain_start = np.concatenate([[0], np.cumsum([len(c) for c in kept])]).astype(np.int64)
        self.chain_apps = np.array([a for c in kept for a in c], dtype=np.int64)
        self.app_chain = np.empty(len(self.apps), dtype=np.int64)
        self.app_chain[self.chain_apps] = np.repeat(np.arange(len(kept)), np.diff(self.chain_start))

    def _weights(self, found: Inference) -> None:
        """log weights: of each appearance's values (nan: excluded), and of each change."""
        m, values = found.model, len(found.model.observed.values)
        self.own = np.full((len(self.apps), values), -np.inf)
        firsts = set(self.chain_apps[self.chain_start[:-1]].tolist())
        for i, a in enumerate(self.apps):
            prior = m.priors.get(int(m.observed.app_person[a]))
            for v in found.state.values_of(int(a)):
                weight = 1.0
                if prior is not None and (m.change == "freely" or i in firsts):
                    weight = float(prior.get(v, 0))
                self.own[i, v] = np.log(weight) if weight > 0 else -np.inf
        if m.change == "freely":
            self.step = np.zeros((values, values))
        else:
            with np.errstate(divide="ignore"):
                table = np.eye(values)
                for v, others in enumerate(m.moves or ()):
                    for w, chance in others.items():
                        table[v, w] = float(chance)
                self.step = np.log(table)

    def run(self, steps: int, rng: np.random.Generator) -> tuple[Floats, I64]:
        """Counts of each value by halves of the chain, and how many samples each half has."""
        holders = np.empty((LEVELS, len(self.holders)), dtype=np.int64)
        for level in range(LEVELS):
            holders[level] = self.holders
            for g in range(len(self.group_start) - 1):
                rng.shuffle(holders[level, self.group_start[g] : self.group_start[g + 1]])
        ladder = COLDEST * np.linspace(0.25, 1.0, LEVELS)
        tally = np.zeros((2, *self.own.shape))
        good = walk(
            holders, self.row_value, self.row_group, self.group_start, self.app_chain, self.chain_start,
            self.chain_apps, self.own, self.step, ladder, steps, int(rng.integers(0, 2**31)), tally,
        )  # fmt: skip
        return tally, good


@njit(cache=True, nogil=True)
def cost(
    chain: int,
    row_of: I64,
    row_value: I64,
    chain_start: I64,
    chain_apps: I64,
    own: Floats,
    step: Floats,
    penalty: float,
) -> tuple[float, int]:
    """Log weight of one chain, each misfit replaced by the penalty; and the number of misfits."""
    total, wrong, last = 0.0, 0, -1
    for i in range(chain_start[chain], chain_start[chain + 1]):
        app = chain_apps[i]
        value = row_value[row_of[app]]
        if own[app, value] == -np.inf:
            wrong += 1
        else:
            total += own[app, value]
        if last >= 0:
            if step[last, value] == -np.inf:
                wrong += 1
            else:
                total += step[last, value]
        last = value
    return total - penalty * wrong, wrong


@njit(cache=True, nogil=True)
def walk(
    holders: I64,
    row_value: I64,
    row_group: I64,
    group_start: I64,
    app_chain: I64,
    chain_start: I64,
    chain_apps: I64,
    own: Floats,
    step: Floats,
    ladder: Floats,
    steps: int,
    seed: int,
    tally: Floats,
) -> I64:
    """Parallel tempering; tallies the coldest level when nothing misfits there. The first fifth is not counted."""
    np.random.seed(seed)
    levels, rows = holders.shape
    apps, chains = len(app_chain), len(chain_start) - 1
    row_of = np.empty((levels, apps), dtype=np.int64)
    value = np.zeros((levels, chains))  # log weight without penalties
    wrong = np.zeros((levels, chains), dtype=np.int64)
    for level in range(levels):
        for r in range(rows):
            if holders[level, r] >= 0:
                row_of[level, holders[level, r]] = r
        for c in range(chains):
            value[level, c], wrong[level, c] = cost(
                c, row_of[level], row_value, chain_start, chain_apps, own, step, 0.0
            )
    total, misfit = value.sum(axis=1), wrong.sum(axis=1)
    every = max(1, rows // 2)
    good = np.zeros(2, dtype=np.int64)
    block = np.empty(rows, dtype=np.int64)
    touched = np.zeros(chains, dtype=np.bool_)
    for n in range(steps):
        for _ in range(every):
            level = np.random.randint(levels)
            r = np.random.randint(rows)
            g = row_group[r]
            s = group_start[g] + np.random.randint(group_start[g + 1] - group_start[g])
            if row_value[r] == row_value[s]:
                continue
            size = 0
            if np.random.random() < 0.3:
                size = kempe(
                    r,
                    row_value[r],
                    row_value[s],
                    holders[level],
                    row_of[level],
                    row_value,
                    row_group,
                    group_start,
                    app_chain,
                    chain_start,
                    chain_apps,
                    block,
                )
            if size == 0:
                block[0], block[1] = r, s
                size = 2
            total[level], misfit[level] = try_swap(
                block, size, holders[level], row_of[level], row_value, app_chain, chain_start, chain_apps, own, step,
                ladder[level], value[level], wrong[level], total[level], misfit[level], touched,
            )  # fmt: skip
        low = np.random.randint(levels - 1)
        gain = (ladder[low] - ladder[low + 1]) * (misfit[low] - misfit[low + 1])
        if np.log(np.random.random() + 1e-300) < gain:
            trade(low, holders, row_of, value, wrong, total, misfit)
        if n >= steps // 5 and misfit[levels - 1] == 0:
            half = 0 if n < steps // 5 + (steps - steps // 5) // 2 else 1
            good[half] += 1
            for a in range(apps):
                tally[half, a, row_value[row_of[levels - 1, a]]] += 1
    return good


@njit(cache=True, nogil=True)
def trade(low: int, holders: I64, row_of: I64, value: Floats, wrong: I64, total: Floats, misfit: I64) -> None:
    """Two neighbouring temperatures exchange their states."""
    for table in (holders, row_of, wrong):
        kept = table[low].copy()
        table[low] = table[low + 1]
        table[low + 1] = kept
    spare = value[low].copy()
    value[low] = value[low + 1]
    value[low + 1] = spare
    total[low], total[low + 1] = total[low + 1], total[low]
    misfit[low], misfit[low + 1] = misfit[low + 1], misfit[low]


@njit(cache=True, nogil=True)
def kempe(
    start: int,
    a: int,
    b: int,
    holders: I64,
    row_of: I64,
    row_value: I64,
    row_group: I64,
    group_start: I64,
    app_chain: I64,
    chain_start: I64,
    chain_apps: I64,
    block: I64,
) -> int:
    """Pairs of rows (value a, value b) to exchange in all groups that these values connect; 0 if some group has not as
    many rows of one as of the other."""
    groups = len(group_start) - 1
    seen = np.zeros(groups, dtype=np.bool_)
    queue = np.empty(groups, dtype=np.int64)
    queue[0] = row_group[start]
    seen[row_group[start]] = True
    head, tail, size = 0, 1, 0
    while head < tail:
        g = queue[head]
        head += 1
        first = size
        ones, twos = 0, 0
        for r in range(group_start[g], group_start[g + 1]):
            ones += row_value[r] == a
            twos += row_value[r] == b
        if ones != twos:
            return 0
        i, j = 0, 0
        for r in range(group_start[g], group_start[g + 1]):
            if row_value[r] == a:
                block[first + 2 * i] = r
                i += 1
            elif row_value[r] == b:
                block[first + 2 * j + 1] = r
                j += 1
        size = first + 2 * ones
        for k in range(first, size):
            app = holders[block[k]]
            if app < 0:
                continue
            c = app_chain[app]
            for x in range(chain_start[c], chain_start[c + 1]):
                r = row_of[chain_apps[x]]
                if (row_value[r] == a or row_value[r] == b) and not seen[row_group[r]]:
                    seen[row_group[r]] = True
                    queue[tail] = row_group[r]
                    tail += 1
    return size


@njit(cache=True, nogil=True)
def exchange(block: I64, size: int, holders: I64, row_of: I64) -> None:
    for k in range(0, size, 2):
        r, s = block[k], block[k + 1]
        holders[r], holders[s] = holders[s], holders[r]
        if holders[r] >= 0:
            row_of[holders[r]] = r
        if holders[s] >= 0:
            row_of[holders[s]] = s


@njit(cache=True, nogil=True)
def try_swap(
    block: I64,
    size: int,
    holders: I64,
    row_of: I64,
    row_value: I64,
    app_chain: I64,
    chain_start: I64,
    chain_apps: I64,
    own: Floats,
    step: Floats,
    penalty: float,
    value: Floats,
    wrong: I64,
    total: float,
    misfit: int,
    touched: Any,
) -> tuple[float, int]:
    """Exchange the pairs of rows, or put them back, by the Metropolis rule."""
    exchange(block, size, holders, row_of)
    change, odd = 0.0, 0
    for k in range(size):
        app = holders[block[k]]
        if app >= 0 and not touched[app_chain[app]]:
            c = app_chain[app]
            touched[c] = True
            now, bad = cost(c, row_of, row_value, chain_start, chain_apps, own, step, 0.0)
            change += now - value[c]
            odd += bad - wrong[c]
    keep = np.log(np.random.random() + 1e-300) < change - penalty * odd
    if not keep:
        exchange(block, size, holders, row_of)
    for k in range(size):
        app = holders[block[k]]
        if app >= 0 and touched[app_chain[app]]:
            c = app_chain[app]
            touched[c] = False
            if keep:
                value[c], wrong[c] = cost(c, row_of, row_value, chain_start, chain_apps, own, step, 0.0)
    return (total + change, misfit + odd) if keep else (total, misfit)
