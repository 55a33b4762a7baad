"""The audit's counting against plain enumeration of worlds, and its certain inferences against what no world contains."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import HealthCheck, given, settings

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "oracle"))

import joint
from joint_cases import cases, exact_beliefs, narrowed

SLOW = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


@SLOW
@given(cases())
def test_posteriors_equal_enumeration(case):
    series, change, priors, known = case
    total, posterior, ever = joint.beliefs(series, change, priors, known)
    assert total
    state = narrowed(series, change, priors, known)
    found, linked = exact_beliefs(state)
    assert found == posterior
    if change != "freely":
        for person, row in linked.items():
            assert row == ever[person]


@SLOW
@given(cases())
def test_filters_never_remove_what_a_world_contains(case):
    series, change, priors, known = case
    _, posterior, _ = joint.beliefs(series, change, priors, known)
    state = narrowed(series, change, priors, known)
    o = state.model.observed
    for a in range(len(o.app_person)):
        key = int(o.persons[int(o.app_person[a])]), int(o.app_release[a])
        assert {o.values[v] for v in state.values_of(a)} >= set(posterior[key])
