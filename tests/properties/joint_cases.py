"""Random small series for the audit, and what the audit's parts say about them, in the words of the oracle."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from reveil.audit.infer.certain import State
from reveil.audit.infer.exact import chains_of, solve
from reveil.audit.input.knowledge import Adversary, Known
from reveil.audit.input.observed import from_groups
from reveil.audit.model.model import build

VALUES = "abcd"


@st.composite
def cases(draw, most=5, releases=3):
    """(series, change, priors, known) with at least one world: the one that it was drawn from."""
    people = list(range(draw(st.integers(2, most))))
    kind = draw(st.sampled_from(["never", "never", "freely", "transitions"]))
    people = people[:3] if kind == "freely" else people
    change = kind
    if kind == "transitions":
        pairs = {v: draw(st.sets(st.sampled_from(VALUES), max_size=3)) | {v} for v in VALUES}
        change = {v: {w: Fraction(draw(st.integers(1, 4)), 4) for w in sorted(others)} for v, others in pairs.items()}
    now = {p: draw(st.sampled_from(VALUES)) for p in people}
    priors = {}
    if draw(st.booleans()):
        for p in draw(st.sets(st.sampled_from(people), max_size=3)):
            priors[p] = {v: Fraction(draw(st.integers(0, 3)), 3) for v in VALUES}
            priors[p][now[p]] = priors[p][now[p]] or Fraction(1, 3)
    series, truth, seen = [], {}, set()
    for r in range(draw(st.integers(1, releases))):
        present = [p for p in people if draw(st.integers(0, 4))]
        for p in present:
            if kind == "transitions" and p in seen:
                now[p] = draw(st.sampled_from(sorted(change[now[p]])))
            elif kind == "freely" and r:
                now[p] = draw(st.sampled_from([v for v in VALUES if priors.get(p, {v: 1}).get(v, 1)]))
            seen.add(p)
            truth[p, r] = now[p]
        present = draw(st.permutations(present))
        groups, place = [], 0
        while place < len(present):
            size = draw(st.integers(1, 3))
            members = present[place : place + size]
            fakes = draw(st.sampled_from([0, 0, 0, 1, 1])) if len(members) < 3 else 0
            shown = [now[p] for p in members] + [draw(st.sampled_from(VALUES)) for _ in range(fakes)]
            groups.append((tuple(members), tuple(sorted(shown))))
            place += size
        series.append(groups)
    known = {key: value for key, value in truth.items() if not draw(st.integers(0, 6))}
    return series, change, {p: row for p, row in priors.items() if p in seen}, known


def adversary_of(change, priors, known):
    text = {str(p): row for p, row in priors.items()}
    listed = tuple(Known(str(p), v, str(r + 1)) for (p, r), v in known.items())
    if isinstance(change, dict):
        return Adversary("transitions", change, text, listed)
    return Adversary(change, None, text, listed)


def narrowed(series, change="never", priors=None, known=None):
    state = State.start(build(from_groups(series), adversary_of(change, priors or {}, known or {})))
    state.narrow()
    return state


def exact_beliefs(state, solve=solve):
    """Posteriors by (person, release) and ever by person, as the oracle gives them."""
    m, o = state.model, state.model.observed
    labels = state.components()
    posterior, ever = {}, {}
    for a in range(len(o.app_person)):
        values = state.values_of(a)
        if len(values) == 1:
            (value,) = values
            posterior[int(o.persons[int(o.app_person[a])]), int(o.app_release[a])] = {o.values[value]: Fraction(1)}
    for label in range(labels.max(initial=-1) + 1):
        found = solve(state, chains_of(state, [f for f in range(m.factors) if labels[f] == label]))
        assert found is not None
        for (a, v), share in found.posterior.items():
            key = int(o.persons[int(o.app_person[a])]), int(o.app_release[a])
            posterior.setdefault(key, {})[o.values[v]] = share
        for (p, v), share in found.ever.items():
            ever.setdefault(int(o.persons[p]), {})[o.values[v]] = share
    if m.change == "never":  # what is said of one appearance holds for all
        rows = {person: row for (person, _), row in posterior.items()}
        for a in range(len(o.app_person)):
            person = int(o.persons[int(o.app_person[a])])
            posterior.setdefault((person, int(o.app_release[a])), rows[person])
    return posterior, ever


def possible_values(state):
    """(person, release) -> values still open."""
    o = state.model.observed
    return {
        (int(o.persons[int(o.app_person[a])]), int(o.app_release[a])): {o.values[v] for v in state.values_of(a)}
        for a in range(len(o.app_person))
    }
