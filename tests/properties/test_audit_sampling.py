"""Sampling against counting where both are possible, and how often its intervals hold the truth."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from reveil.audit.exact import chains_of
from reveil.audit.infer import infer, members
from reveil.audit.knowledge import Adversary, Known
from reveil.audit.model import build
from reveil.audit.observed import from_groups
from reveil.audit.sample import sample_component
from reveil.audit.worlds import lasting_choices

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "oracle")]

import joint  # noqa: E402
from joint_cases import narrowed  # noqa: E402


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


def test_worlds_near_one_another_settle_what_is_possible():
    """With the truth as a start and without: what is seen is possible, what is dead is not, and all is settled."""
    for seed in range(40):
        groups = series(seed, people=9, releases=seed % 3 + 1)
        truth = {p: "abc"[p % 3] for p in range(9)}
        known = {(0, r): "a" for r in range(len(groups))} if seed % 2 else {}
        state = narrowed(groups, "never", {}, known)
        m, o = state.model, state.model.observed
        choices = lasting_choices(state, np.ones(m.factors, dtype=bool))
        value = m.cell_value[m.opt_cell[choices.label]]
        if seed % 4 < 2:
            choices.begin_with(np.array([o.values.index(truth[int(name)]) for name in o.persons]), value)
        else:
            assert choices.place(np.inf) or not len(choices.person)
        choices.settle(np.inf)
        _, posterior, _ = joint.beliefs(groups, "never", {}, known)
        assert (choices.seen ^ choices.dead).all()
        for n, p in enumerate(choices.person):
            span = slice(choices.start[n], choices.start[n + 1])
            app = int(o.person_start[p])
            real = set(posterior[int(o.persons[int(p)]), int(o.app_release[app])])
            assert {o.values[v] for v in value[span][choices.seen[span]]} == real
