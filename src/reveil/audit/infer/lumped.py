"""Counting with values lumped: where values never change, values that nothing tells apart need not be told apart.

Two values are alike if every group has as many free rows of one as of the other and every person may have both, with
the same weight, or neither. A state then says how many values of a class have which rows left in the open groups. In a
closed cohort with refills that makes a few hundred states out of hundreds of thousands.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from reveil.audit.infer.exact import Belief, CountingProblem, Exact, Limits, order_sets
from reveil.audit.model.model import Model

Vector = tuple[int, ...]  # rows left of one value in each factor
Key = tuple[tuple[int, Vector, int], ...]  # (class, rows left, how many values), sorted
Step = tuple[Key, Key, int, int]  # from, to, class, weight


@dataclass(frozen=True, eq=False)
class Lumped:
    """A component by classes of values."""

    classes: tuple[tuple[int, ...], ...]
    start: Key
    factors: tuple[frozenset[int], ...]  # of each chain, numbered within the component
    weights: tuple[dict[int, int], ...]  # of each chain: class -> weight, scaled to whole numbers


def lump(problem: CountingProblem, m: Model) -> Lumped | None:
    """The component by classes, or None where values are not lasting or all are different."""
    if m.change != "never" or problem.left or any(None in p.values for options in problem.paths for p in options):
        return None
    cells = sorted(problem.free)
    owner = dict(zip(cells, (np.searchsorted(m.cell_start, cells, side="right") - 1).tolist(), strict=True))
    number = {f: n for n, f in enumerate(sorted(set(owner.values())))}
    if len({(owner[c], int(m.cell_value[c])) for c in cells}) < len(cells):
        return None  # groups of one factor overlap, and a value has cells in several of them
    free: dict[int, list[int]] = {}
    for c in cells:
        free.setdefault(int(m.cell_value[c]), [0] * len(number))[number[owner[c]]] = problem.free[c]
    scales = [lcm(*(path.weight.denominator for path in options)) for options in problem.paths]
    rows: dict[int, list[int]] = {v: [0] * len(problem.paths) for v in free}
    factors = []
    for n, (options, scale) in enumerate(zip(problem.paths, scales, strict=True)):
        for path in options:
            rows[path.values[0] or 0][n] = int(path.weight * scale)
        factors.append(frozenset(number[owner[c]] for path in options for c in path.cells))
    alike: dict[tuple[Vector, Vector], list[int]] = {}
    for v in sorted(free):
        alike.setdefault((tuple(free[v]), tuple(rows[v])), []).append(v)
    if len(alike) == len(free):
        return None
    weights = tuple({k: row[n] for k, (_, row) in enumerate(alike) if row[n]} for n in range(len(problem.paths)))
    start = tuple(sorted((k, left, len(values)) for k, ((left, _), values) in enumerate(alike.items())))
    return Lumped(tuple(tuple(values) for values in alike.values()), start, tuple(factors), weights)


Shares = dict[tuple[Any, int], Fraction]  # (kind of chain, class) -> probability of the class


def kind(lumped: Lumped, n: int) -> Any:
    """Chains of one kind are in the same groups and may have the same classes: nothing tells them apart."""
    return tuple(sorted(lumped.factors[n])), tuple(sorted(lumped.weights[n].items()))


def count_lumped(
    problem: CountingProblem, lumped: Lumped, m: Model, limits: Limits, cache: dict[Any, Any] | None = None
) -> Exact | None:
    """As `count`, over lumped states. `cache` remembers components that are alike."""
    kinds = [kind(lumped, n) for n in range(len(problem.chains))]
    key = lumped.start, tuple(sorted(kinds))
    known = {} if cache is None else cache
    if key not in known:
        known[key] = _shares(lumped, kinds, limits)
    counted = known[key]
    return None if counted is None else _by_name(problem, lumped, kinds, counted, m)


def _shares(lumped: Lumped, kinds: list[Any], limits: Limits) -> tuple[Shares, int, int] | None:
    """What each kind of chain may have, the total weight, and the work; None if it is too much."""
    if limits.witnessed and len(lumped.classes) == 1:  # permuting the values maps worlds to worlds
        return {(mine, 0): Fraction(1) for mine in kinds}, 1, 0
    order = order_sets(lumped.factors)
    last = {f: n for n, chain in enumerate(order) for f in lumped.factors[chain]}
    layers: list[dict[Key, int]] = [{lumped.start: 1}]
    moves: list[list[Step]] = []
    work = 0
    for n, chain in enumerate(order):
        closing = frozenset(f for f in lumped.factors[chain] if last[f] == n)
        step = _place(layers[-1], lumped.factors[chain], lumped.weights[chain], closing)
        work += len(step)
        after: dict[Key, int] = {}
        for source, target, _, weight in step:
            after[target] = after.get(target, 0) + layers[-1][source] * weight
        if len(after) > limits.states or work > limits.work or time.process_time() > limits.deadline:
            return None
        layers.append(after)
        moves.append(step)
    total = sum(layers[-1].values())
    if not total:
        return {}, 0, work
    return _backward(lumped, kinds, order, layers, moves, total), total, work


def _place(
    layer: dict[Key, int], factors: frozenset[int], weights: dict[int, int], closing: frozenset[int]
) -> list[Step]:
    """All ways to give one person a value of some class and rows-left, in every state."""
    placements = []
    for state in layer:
        for k, left, many in state:
            weight = weights.get(k, 0) * many
            for f in factors:
                weight *= left[f]
            if weight:
                taken = tuple(rows - (f in factors) for f, rows in enumerate(left))
                placements.append((state, _moved(state, (k, left), (k, taken), closing), k, weight))
    return placements


def _moved(state: Key, old: tuple[int, Vector], new: tuple[int, Vector], closing: frozenset[int]) -> Key:
    counts: Counter[tuple[int, Vector]] = Counter()
    for k, left, many in state:
        counts[k, left] += many
    counts[old] -= 1
    counts[new] += 1
    if closing:
        shut: Counter[tuple[int, Vector]] = Counter()
        for (k, left), many in counts.items():
            shut[k, tuple(0 if f in closing else rows for f, rows in enumerate(left))] += many
        counts = shut
    return tuple(sorted((k, left, many) for (k, left), many in counts.items() if many))


def _backward(
    lumped: Lumped,
    kinds: list[Any],
    order: list[int],
    layers: list[dict[Key, int]],
    moves: list[list[Step]],
    total: int,
) -> Shares:
    behind = dict.fromkeys(layers[-1], 1)
    shares: Shares = {}
    for n in range(len(order) - 1, -1, -1):
        earlier: dict[Key, int] = {}
        share = [0] * len(lumped.classes)
        for source, target, k, weight in moves[n]:
            part = weight * behind.get(target, 0)
            if part:
                earlier[source] = earlier.get(source, 0) + part
                share[k] += layers[n][source] * part
        behind = earlier
        shares |= {(kinds[order[n]], k): Fraction(weight, total) for k, weight in enumerate(share) if weight}
    return shares


def _by_name(
    problem: CountingProblem, lumped: Lumped, kinds: list[Any], counted: tuple[Shares, int, int], m: Model
) -> Exact:
    """Beliefs by appearance (those in groups that say something of their own) and person."""
    shares, total, work = counted
    posterior: Belief = {}
    ever: Belief = {}
    for chain, mine in zip(problem.chains, kinds, strict=True):
        person = int(m.observed.app_person[chain[0]])
        told = [a for a in chain if not m.implied[m.app_factor[a]]]
        for k, values in enumerate(lumped.classes):
            share = shares.get((mine, k))
            if share:
                each = share / len(values)
                ever |= {(person, v): each for v in values}
                posterior |= {(a, v): each for a in told for v in values}
    return Exact(posterior, ever, Fraction(total), work)
