"""m-invariance and historical safety: judges against enumeration of all worlds."""

from __future__ import annotations

import importlib.util
from fractions import Fraction
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from reveil.guarantees.invariance import MInvariance


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


oracle = load(Path(__file__).parents[1] / "oracle" / "worlds.py")
lasting = load(Path(__file__).parent / "lasting.py")
group = lasting.group


@st.composite
def invariant(draw):
    """Two or three releases of groups of one signature; people are regrouped at will."""
    size = draw(st.integers(2, 3))
    values = tuple("abc"[:size])
    series, people = [], 0
    holders = []  # value of each person
    for _ in range(draw(st.integers(2, 3))):
        release = []
        free = {v: [p for p, held in enumerate(holders) if held == v] for v in values}
        for _ in range(draw(st.integers(1, 2))):
            members = []
            for v in values:
                kind = draw(st.sampled_from(["old", "new", "counterfeit"]))
                if kind == "old" and free[v]:
                    members.append(free[v].pop(draw(st.integers(0, len(free[v]) - 1))))
                elif kind != "counterfeit" and people < 8:
                    members.append(people)
                    holders.append(v)
                    people += 1
            if members:
                release.append((tuple(sorted(members)), values))
        if release:
            series.append(release)
    return series or [[((0,), values)]]


@given(invariant())
@settings(max_examples=200, deadline=None)
def test_m_invariant_series_leave_everybody_at_one_in_m(series):
    verdicts = lasting.judged(MInvariance(2, "illness"), series)
    size = len(series[0][0][1])
    assert all(verdict.holds for verdict in verdicts)
    posteriors = oracle.posteriors(oracle.worlds(series))
    assert {chance for found in posteriors.values() for chance in found.values()} == {Fraction(1, size)}
    assert verdicts[-1].worst == Fraction(1, size)


def test_another_signature_is_found_however_long_ago():
    series = [
        [((0, 1), "ab"), ((2, 3), "ab")],
        [((2, 3), "ab")],
        [((0, 4), "ac"), ((2, 3), "ab")],
    ]
    verdicts = lasting.judged(MInvariance(2, "illness"), series)
    assert [v.holds for v in verdicts] == [True, True, False]
    assert verdicts[2].violating_classes == 1
    assert oracle.posteriors(oracle.worlds(series))[0] == {"a": 1}


def test_repeated_values_and_small_groups_are_found():
    judge = MInvariance(3, "illness")
    assert not lasting.judged(judge, [[group([0, 1, 2, 3], "aabc")]])[0].holds
    assert not lasting.judged(judge, [[group([0, 1])]])[0].holds
    assert lasting.judged(judge, [[group([0, 1], "abc", 1)]])[0].holds
