"""Beliefs by sampling, where components are too large to count.

A state gives every row of the component's groups a holder (an appearance, or nobody for a counterfeit). Moves exchange
the holders of two rows, or of all rows of two values along the groups that they connect (Kempe moves). People whose
values do not fit over time cost a penalty instead of being forbidden, which is what lets the chain go anywhere; only
samples without a misfit count. Several chains start from different worlds at different temperatures. Sampling gives
beliefs with intervals; it never shows that something is impossible. Where values last, rows are dealt out anew instead
(`dealing.py`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveil.audit.infer.agreement import ENOUGH as LASTING
from reveil.audit.infer.certain import State
from reveil.audit.infer.dealing import compiled_deals, deal
from reveil.audit.infer.exact import Chain, chains_of
from reveil.audit.infer.infer import Inference, carry
from reveil.audit.infer.walk import Component, States, WalkScratch, walk
from reveil.audit.result.attacks import wilson
from reveil.base.arrays import I64, offsets_of
from reveil.base.progress import Progress, silent

Floats = NDArray[np.float64]

CHAINS = 8
LEVELS = 5  # temperatures of a chain
COLDEST = 8.0  # penalty of a misfit at the level that is sampled
WIDTH = 2.997952  # Student's t with CHAINS - 1 degrees of freedom at 98 %: 95 % also where values are rare
ENOUGH = 100.0  # effective samples; fewer give no belief


@dataclass(frozen=True)
class Sampled:
    """Beliefs in one component, with 95 % intervals; `rhat` near 1 means that the chains agree."""

    shares: dict[tuple[int, int], tuple[float, float, float]]  # (appearance, value) -> mean, low, high
    rhat: float  # the largest, of half chains
    samples: int  # without a misfit, of all chains
    effective: float  # independent samples that these are worth, for the slowest value
    enough: float = ENOUGH

    @property
    def converged(self) -> bool:
        return self.rhat < 1.1 and self.effective >= self.enough


def sample(
    inference: Inference,
    steps: int | None,
    *,
    seed: int = 0,
    seconds: float = float("inf"),
    progress: Progress = silent,
) -> tuple[Sampled, ...]:
    """Sample every component without exact beliefs, and enter converged results as shares.

    Without `steps`, as many as there is time for (`seconds`, of processor time), where values last."""
    state, results = inference.state, []
    pending = sorted(inference.pending, key=len)
    if inference.model.change == "never" and pending:
        compiled_deals()
    end = time.process_time() + seconds
    for number, factors in enumerate(pending):
        progress("sampling", number / len(pending))
        result = None
        if inference.model.change == "never":
            now, rest = time.process_time(), sum(map(len, pending[number:]))
            until = end if steps is not None else now + (end - now) * len(factors) / rest
            result = sample_lasting(state, factors, steps, seed + number, until, inference.worlds)
        elif inference.model.observed.located and steps is not None:
            result = sample_component(inference, chains_of(state, factors), steps, seed + number)
        if result is not None:
            results.append(result)
            if result.converged:
                _enter(inference, result)
    carry(inference)
    return tuple(results)


def sample_lasting(
    state: State,
    factors: Sequence[int],
    steps: int | None,
    seed: int,
    end: float = float("inf"),
    known: Sequence[I64] = (),
) -> Sampled | None:
    """Beliefs of a component of lasting values, of everybody about whom the chains agree; None if none could begin.

    `known` are worlds to begin with."""
    inside = np.zeros(state.model.factors, dtype=bool)
    inside[factors] = True
    done = deal(state, inside, end, steps, seed, known)
    if done is None:
        return None
    dealing, agreed = done
    if not agreed.good.any():
        return Sampled({}, float(agreed.rhat.max()), agreed.samples, 0.0)
    program, (_, first) = dealing.program, dealing.values
    shares = {
        (int(program.option_app[first[n]]), int(program.option_value[first[n]])): (
            float(agreed.mean[n]), float(agreed.low[n]), float(agreed.high[n])
        )
        for n in np.flatnonzero(agreed.good).tolist()
    }  # fmt: skip
    good = agreed.good
    return Sampled(shares, float(agreed.rhat[good].max()), agreed.samples, float(agreed.worth[good].min()), LASTING)


def _enter(inference: Inference, result: Sampled) -> None:
    """Where a value has several options (groups that overlap), they share its belief equally."""
    m, alive = inference.model, inference.state.alive
    for (app, value), (mean, _, _) in result.shares.items():
        span = range(m.opt_start[app], m.opt_start[app + 1])
        mine = [o for o in span if alive[o] and m.cell_value[m.opt_cell[o]] == value]
        for option in mine:
            inference.share[option] = mean / len(mine)


def sample_component(inference: Inference, chains: Sequence[Chain], steps: int, seed: int) -> Sampled:
    """Run the chains and put them together."""
    problem = _Rows(inference, chains)
    runs = [problem.run(steps, np.random.default_rng([seed, number])) for number in range(CHAINS)]
    good = np.array([kept for _, kept in runs])  # chains x halves
    tally = np.array([counts for counts, _ in runs])  # chains x halves x appearances x values
    if (good == 0).any():
        return Sampled({}, float("inf"), int(good.sum()), 0.0)
    mean, rhat, worth = _agreement(tally, good)
    shares = {}
    for i, app in enumerate(problem.apps):
        for v in inference.state.values_of(int(app)):
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
    (0.0, 0.082)
    """
    return wilson(mean, worth, WIDTH)


class _Rows:
    """The component as rows with holders."""

    def __init__(self, inference: Inference, chains: Sequence[Chain]) -> None:
        m, state = inference.model, inference.state
        self.inference = inference
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
        self._persons(inference, chains, place)
        self._weights(inference)

    def _persons(self, inference: Inference, chains: Sequence[Chain], place: dict[int, int]) -> None:
        m = inference.model
        kept = [[place[a] for a in chain if not m.implied[m.app_factor[a]]] for chain in chains]
        self.chain_start = offsets_of([len(c) for c in kept])
        self.chain_apps = np.array([a for c in kept for a in c], dtype=np.int64)
        self.app_chain = np.empty(len(self.apps), dtype=np.int64)
        self.app_chain[self.chain_apps] = np.repeat(np.arange(len(kept)), np.diff(self.chain_start))

    def _weights(self, inference: Inference) -> None:
        """log weights: of each appearance's values (minus infinity: excluded), and of each change."""
        m, values = inference.model, len(inference.model.observed.values)
        self.own = np.full((len(self.apps), values), -np.inf)
        firsts = set(self.chain_apps[self.chain_start[:-1]].tolist())
        for i, a in enumerate(self.apps):
            prior = m.priors.get(int(m.observed.app_person[a]))
            for v in inference.state.values_of(int(a)):
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
        holders = np.tile(self.holders, (LEVELS, 1))
        row_of = np.empty((LEVELS, len(self.apps)), dtype=np.int64)
        for mine, rows in zip(holders, row_of, strict=True):
            for g in range(len(self.group_start) - 1):
                rng.shuffle(mine[self.group_start[g] : self.group_start[g + 1]])
            rows[mine[mine >= 0]] = np.nonzero(mine >= 0)[0]
        people, groups = len(self.chain_start) - 1, len(self.group_start) - 1
        blank, none = np.zeros((LEVELS, people)), np.zeros((LEVELS, people), dtype=np.int64)
        states = States(holders, row_of, blank, none, np.zeros(LEVELS, dtype=np.int64))
        scratch = WalkScratch(
            np.empty(len(self.holders), dtype=np.int64), np.zeros(people, dtype=bool), np.zeros(groups, dtype=bool),
            np.empty(groups, dtype=np.int64),
        )  # fmt: skip
        component = Component(
            self.row_value, self.row_group, self.group_start, self.app_chain, self.chain_start, self.chain_apps,
            self.own, self.step,
        )  # fmt: skip
        ladder, tally = COLDEST * np.linspace(0.25, 1.0, LEVELS), np.zeros((2, *self.own.shape))
        good = walk(component, states, scratch, ladder, steps, int(rng.integers(0, 2**31)), tally)
        return tally, good
