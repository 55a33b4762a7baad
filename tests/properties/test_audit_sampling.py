"""Sampling against counting where both are possible, and how often its intervals hold the truth."""

from __future__ import annotations

import numpy as np
import pytest

from reveil.audit.exact import chains_of
from reveil.audit.infer import infer, members
from reveil.audit.knowledge import Adversary, Known
from reveil.audit.model import build
from reveil.audit.observed import from_groups
from reveil.audit.sample import sample_component


def series(seed, people=12, size=3, releases=3):
    """Regrouped people with balanced values, so that worlds are many."""
    rng = np.random.default_rng(seed)
    value = np.arange(people) % size
    found = []
    for _ in range(releases):
        columns = [rng.permutation(np.nonzero(value == v)[0]) for v in range(size)]
        found.append([(tuple(int(p) for p in row), "abcdefgh"[:size]) for row in zip(*columns, strict=True)])
    return found


def adversary(kind):
    if kind == "transitions":
        moves = {v: dict.fromkeys("abc", 1) | {v: 3} for v in "abc"}
        return Adversary("transitions", moves)
    if kind == "priors":
        return Adversary(priors={"0": {"a": 1, "b": 2, "c": 5}, "3": {"a": 3, "b": 1, "c": 1}})
    return Adversary(compromised=(Known("0", "a"),))


def compare(seed, kind):
    model = build(from_groups(series(seed, releases=2 if kind == "transitions" else 3)), adversary(kind))
    found = infer(model)
    rows = []
    for factors in members(found.state):
        sampled = sample_component(found, chains_of(found.state, factors), 4_000, seed)
        for (app, value), (mean, low, high) in sampled.shares.items():
            truth = float(found.posterior.get((app, value), 0))
            rows.append((truth, mean, low, high, sampled.rhat))
    return rows


@pytest.mark.parametrize("kind", ["known", "priors", "transitions"])
def test_sampling_agrees_with_counting(kind):
    rows = [row for seed in range(4) for row in compare(seed, kind)]
    assert rows
    assert max(abs(truth - mean) for truth, mean, *_ in rows) < 0.06
    inside = np.mean([low - 1e-9 <= truth <= high + 1e-9 for truth, _, low, high, _ in rows])
    assert inside > 0.88  # stated: 95 %; the rows of one component hang together
    assert np.median([rhat for *_, rhat in rows]) < 1.05


def test_counterfeits_and_repeated_values():
    groups = [[((0, 1, 2), "aabb"), ((3, 4), "aab")], [((0, 3), "aab"), ((1, 2, 4), "aabb")]]
    found = infer(build(from_groups(groups), Adversary()))
    for factors in members(found.state):
        sampled = sample_component(found, chains_of(found.state, factors), 6_000, 1)
        assert sampled.converged
        for key, (mean, *_) in sampled.shares.items():
            assert abs(mean - float(found.posterior.get(key, 0))) < 0.04
