"""Sampling against counting where both are possible, and how often its intervals hold the truth."""

from __future__ import annotations

import numpy as np
import pytest

from oracle import joint
from properties.joint_cases import narrowed
from reveil.audit.infer.certain import State
from reveil.audit.infer.exact import Limits, chains_of, solve
from reveil.audit.infer.infer import Inference, infer, members
from reveil.audit.infer.sample import sample, sample_component, sample_lasting
from reveil.audit.infer.worlds import lasting_choices
from reveil.audit.input.knowledge import Adversary, Known
from reveil.audit.input.observed import from_groups
from reveil.audit.model.model import build


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
    if kind == "freely":
        weights = np.random.default_rng(7).integers(1, 8, (12, 3)).tolist()
        return Adversary("freely", priors={str(p): dict(zip("abc", row, strict=True)) for p, row in enumerate(weights)})
    if kind == "priors":
        return Adversary(priors={"0": {"a": 1, "b": 2, "c": 5}, "3": {"a": 3, "b": 1, "c": 1}})
    return Adversary(compromised=(Known("0", "a"),))


def published(seed, kind):
    """A series of which this kind of adversary leaves something to sample."""
    if kind == "freely":  # releases fall apart, and people differ by their priors only
        order = [int(p) for p in np.random.default_rng(seed).permutation(12)]
        return [[(tuple(order[:6]), "aabbcc"), (tuple(order[6:]), "abbbcc")]]
    found = series(seed, releases=2 if kind == "transitions" else 3)
    if kind == "counterfeits":
        return [[(people[n % 2 :], values) for n, (people, values) in enumerate(release)] for release in found]
    return found


def compare(seed, kind, runs, steps=2_000):
    """Sampled against counted beliefs, component by component: shares of intervals that hold what is counted."""
    state = State.start(build(from_groups(published(seed, kind)), adversary(kind)))
    state.narrow()
    found = Inference(state, np.ones(len(state.model.app_factor), dtype=bool), np.full(len(state.alive), np.nan))
    covered = []
    for factors in members(state):
        chains = chains_of(state, factors)
        counted = solve(state, chains).posterior
        if state.model.change == "never":
            results = [sample_lasting(state, factors, steps // 4, 1_000 * run + seed) for run in range(runs)]
        else:
            results = [sample_component(found, chains, steps, 1_000 * run + seed) for run in range(runs)]
        assert np.mean([result.converged for result in results]) > 0.8
        rows = [
            (float(counted.get(key, 0)), *share)
            for result in results
            if result.converged
            for key, share in result.shares.items()
        ]
        assert max(abs(real - mean) for real, mean, *_ in rows) < 0.2
        covered.append(np.mean([low - 1e-9 <= real <= high + 1e-9 for real, _, low, high in rows]))
    return covered


@pytest.mark.parametrize("kind", ["known", "priors", "transitions", "freely", "counterfeits"])
def test_intervals_hold_what_is_counted(kind):
    """Stated: at least 95 %, in every component. Values of one run hang together (often all of them miss, or none), so
    each component is sampled again and again; one run of twelve may miss altogether."""
    covered = [share for seed in range(2) for share in compare(seed, kind, runs=12)]
    assert np.mean(covered) > 0.94
    assert min(covered) > 0.82


def test_chains_that_do_not_agree_give_no_belief():
    """Too few steps: what was sampled is not entered."""
    found = infer(build(from_groups(series(1, people=24, releases=4)), adversary("known")), limits=Limits(people=0))
    results = sample(found, 12)
    assert results and not any(result.converged for result in results)
    assert np.isnan(found.share[found.state.alive]).any()
    assert sample(found, 4_000)[0].converged
    assert not np.isnan(found.share[found.state.alive]).any()


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
