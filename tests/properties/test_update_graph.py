"""The update graph against listing all paths: exact, pruned, everybody at once."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reveil
from oracle.updates import path_chances
from reveil.background.transitions import relation_between
from reveil.background.update_graph import Chains, walk_all

VALUES = "abcdef"


@st.composite
def cases(draw, equal):
    """A relation with chances, and what the groups of some people showed."""
    table = {}
    for a in VALUES:
        others = {*draw(st.sets(st.sampled_from(VALUES), max_size=3)), a}
        weights = {b: 1 if equal else draw(st.integers(1, 7)) for b in sorted(others)}
        table[a] = {b: Fraction(w, sum(weights.values())) for b, w in weights.items()}
    group = st.dictionaries(st.sampled_from(VALUES), st.integers(1, 1 if equal else 3), min_size=1, max_size=4)
    return table, draw(st.lists(st.lists(group, min_size=1, max_size=5), min_size=1, max_size=4))


def chains_of(people):
    groups = [shown for person in people for shown in person]
    return Chains(
        first=np.cumsum([0, *map(len, people)]),
        group=np.arange(len(groups)),
        start=np.cumsum([0, *map(len, groups)]),
        value=np.array([VALUES.index(v) for shown in groups for v in shown]),
        rows=np.array([n for shown in groups for n in shown.values()]),
    )


@pytest.mark.parametrize("equal", [True, False])
@given(data=st.data())
def test_forward_and_backward_equal_all_paths(data, equal):
    table, people = data.draw(cases(equal))
    found = walk_all(chains_of(people), relation_between(VALUES, table))
    expected = [chances for shown in people for chances in path_chances(shown, table)]
    highest = [max(chances.values()) for chances in expected]
    assert found.possible.tolist() == [sum(c > 0 for c in chances.values()) for chances in expected]
    assert found.chance.tolist() == pytest.approx([float(c) for chances in expected for c in chances.values()])
    whole = found.denominator > 0
    exact = [Fraction(int(n), int(d)) for n, d in zip(found.numerator[whole], found.denominator[whole], strict=True)]
    assert exact == [h for h, known in zip(highest, whole, strict=True) if known]
    assert found.worst() == max(highest)
    for bound in {Fraction(1, 2), Fraction(1, 3), *highest}:
        assert found.above(bound).tolist() == [h > bound for h in highest]
    for shown in people:
        alone = reveil.update_graph(shown, {a: dict(row) for a, row in table.items()})
        assert list(alone.chances) == path_chances(shown, table)


def test_chances_too_fine_for_whole_numbers_are_settled_in_rationals():
    table = {"a": {"a": Fraction(1, 3**14), "b": 1 - Fraction(1, 3**14)}, "b": {"b": Fraction(1)}}
    shown = [{"a": 1, "b": 1}] * 30
    found = walk_all(chains_of([shown]), relation_between(VALUES, table))
    expected = path_chances(shown[:3], table)
    assert (found.denominator == 0).all() and (found.possible == 2).all()
    short = walk_all(chains_of([shown[:3]]), relation_between(VALUES, table))
    assert short.worst() == max(max(chances.values()) for chances in expected)
    assert not short.above(short.worst()).any()
    assert short.above(short.worst() - Fraction(1, 10**30)).any()


def test_example_4_of_the_paper():
    """Risks 1/3, 1/6, 1/12 of the graph of Figure 2(b), whose paths weigh 4 : 2 : 1 : 1 : 4."""
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    table = {
        "11": {"21": Fraction(1)},
        "12": {"23": half, "24": half},
        "13": {"25": Fraction(1)},
        "21": {"31": Fraction(1)},
        "23": {"32": Fraction(1)},
        "24": {"33": half, "34": half},
        "25": {"35": Fraction(1)},
        "22": {"31": quarter, "30": 1 - quarter},
    }
    shown = [["11", "12", "13"], ["21", "23", "24", "25", "22"], ["31", "32", "33", "34", "35", "30"]]
    graph = reveil.update_graph(shown, table)
    weights = [graph.chances[2][v] for v in ("31", "32", "33", "34", "35")]
    assert [w / weights[2] for w in weights] == [4, 2, 1, 1, 4]
    assert graph.risk(["12", "24", "33"]) == (Fraction(1, 3), Fraction(1, 6), Fraction(1, 12))
    assert graph.chances[1]["22"] == 0 and graph.possible(2) == ["31", "32", "33", "34", "35"]
    assert (1, "22", "31") in graph.pruned and (1, "24", "34") in graph.updates
    assert "ruled out" in graph.svg() and graph.svg().startswith("<svg")
