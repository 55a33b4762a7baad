"""The audit's counting against plain enumeration of worlds, its certain inferences against what no world contains."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from oracle import joint
from properties.joint_cases import cases, exact_beliefs, narrowed, possible_values
from reveil.audit.infer.exact import Limits
from reveil.audit.infer.infer import infer, solve_cached

SLOW = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


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


def lumping(state, chains):
    """Counting with values lumped, where some are alike."""
    return solve_cached(state, chains, Limits(), {})


@SLOW
@given(cases())
def test_lumping_values_changes_nothing(case):
    series, _, _, _ = case
    series = [[(people, "abc"[: len(values)]) for people, values in release] for release in series]
    total, posterior, _ = joint.beliefs(series)
    if total:
        assert exact_beliefs(narrowed(series), lumping)[0] == posterior


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


@SLOW
@given(cases())
def test_certain_inferences_equal_enumeration(case):
    series, change, priors, known = case
    _, posterior, _ = joint.beliefs(series, change, priors, known)
    for limits in (Limits(), Limits(people=0)):  # by counting, and by search alone
        found = infer(narrowed(series, change, priors, known).model, limits=limits, seconds=30)
        assert found.decided.all()
        assert possible_values(found.state) == {key: set(row) for key, row in posterior.items()}
