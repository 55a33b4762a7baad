"""Equalities in the linear span of the groups against ranks over the rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oracle import span
from properties.joint_cases import narrowed
from reveil.audit.infer.linear import equalities
from reveil.audit.infer.sparse import PRIME, Echelon, combine, eliminate, failing, fill_in, rational

MANY = settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def tables(draw):
    rows, columns = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    lines = st.lists(st.integers(0, 1), min_size=columns, max_size=columns)
    return draw(st.lists(lines, min_size=rows, max_size=rows))


def solved(table, limit=1 << 40):
    matrix = np.array(table, dtype=np.int64)
    start = np.concatenate([[0], np.cumsum(matrix.sum(axis=1))]).astype(np.int64)
    steps, left, work = eliminate(start, np.nonzero(matrix)[1], np.zeros(len(matrix), np.int64), matrix.shape[1], limit)
    return Echelon(*steps), left, work


@MANY
@given(tables(), st.data())
def test_combinations_of_rows_equal_those_over_the_rationals(table, data):
    form, left, _ = solved(table)
    assert not len(left)
    columns = len(table[0])
    one = data.draw(st.integers(0, columns - 1))
    other = data.draw(st.integers(-1, columns - 1).filter(lambda n: n != one))
    target = [int(c == one) - int(c == other) for c in range(columns)]
    step_of = np.full(columns, -1)
    step_of[form.column] = np.arange(len(form.column))
    amount, wanted = np.zeros(columns, np.int64), np.zeros(len(form.row), np.int64)
    rows, often, _ = combine(form, step_of, one, other, amount, wanted)
    assert (len(rows) > 0) == (span.combination(table, target) is not None)
    assert not amount.any() and not wanted.any()
    if len(rows):
        times = {int(r): Fraction(*rational(n)) for r, n in zip(rows, often, strict=True)}
        assert [sum(t * table[r][c] for r, t in times.items()) for c in range(columns)] == target


@MANY
@given(tables())
def test_solutions_solve_every_row(table):
    form, _, _ = solved(table)
    entry = np.random.default_rng(0).integers(0, PRIME, len(table[0]))
    fill_in(form, entry)
    assert not (np.array(table) @ entry % PRIME).any()


@MANY
@given(tables(), st.data())
def test_rows_that_fail_are_those_of_the_fractions(table, data):
    terms = st.fractions(min_value=-3, max_value=3, max_denominator=4)
    entry = data.draw(st.lists(terms, min_size=len(table[0]), max_size=len(table[0])))
    residues = np.array([x.numerator * pow(x.denominator, -1, PRIME) % PRIME for x in entry])
    matrix = np.array(table)
    start = np.concatenate([[0], np.cumsum(matrix.sum(axis=1))])
    found = failing(start, np.nonzero(matrix)[1], residues)
    assert found.tolist() == [sum(x for x, one in zip(entry, row, strict=True) if one) != 0 for row in table]


@st.composite
def series(draw):
    """People with lasting values in groups without counterfeits."""
    people = range(draw(st.integers(2, 9)))
    values = [draw(st.sampled_from("abc")) for _ in people]
    made = []
    for _ in range(draw(st.integers(2, 5))):
        present = draw(st.permutations([p for p in people if draw(st.integers(0, 5))]))
        groups, place = [], 0
        while place < len(present):
            members = present[place : place + draw(st.integers(2, 5))]
            groups.append((tuple(members), tuple(sorted(values[p] for p in members))))
            place += len(members)
        made.append(groups)
    return made


def closed(state):
    """Equalities, as often as something new follows from them."""
    changed = True
    while changed:
        label = state.components()
        closure = equalities(state, label, label >= 0, 10.0)
        assert not len(closure.left)
        changed = state.equate(closure.equalities).any()


@MANY
@given(series())
def test_people_tied_by_groups_are_found(made):
    state = narrowed(made)
    closed(state)
    o = state.model.observed
    name = [int(p) for p in o.persons]
    open_to = {name[p]: {o.values[v] for v in state.values_of(int(o.person_start[p]))} for p in range(o.people)}
    determined, equal, apart = span.ties(made)
    assert all(open_to[person] == {value} for person, value in determined.items())
    assert all(open_to[one] == open_to[two] for one, two in equal)
    assert all((open_to[one], open_to[two]) == ({a}, {b}) for (one, two), (a, b) in apart.items())


UNION = [[((0, 1, 2, 3), "abcd"), ((4, 5, 6, 7), "abcd")], [((0, 1, 4, 5), "abcd"), ((2, 3, 6, 8), "abcd")]]
UNION_OF_SIX = [
    [(tuple(range(1, 7)), "abcdef"), (tuple(range(7, 13)), "abcdef")],
    [((1, 2, 3, 7, 8, 9), "abcdef"), ((4, 5, 6, 10, 11, 13), "abcdef")],
]
MERGE = [[((0, 1, 2), "abc"), ((3, 4, 5), "abc")], [((0, 1, 2, 3, 4, 6), "aabbcc")]]
MERGE_OF_TWO = [[((0, 1), "ab"), ((2, 3), "ab")], [((0, 1, 2, 4), "aabb")]]
CHAIN = [[((1, 2, 3, 4), "abcd")], [((1, 2, 5, 6), "abcd")], [((5, 7, 8, 3), "abcd")], [((4, 7, 8, 9), "abcd")]]
APART = [[((0, 2, 3, 4), "abcd")], [((1, 2, 3, 4), "bbcd")]]


@pytest.mark.parametrize(
    ("made", "known", "revealed"),
    [
        (UNION, 8, [7]),
        (UNION_OF_SIX, 13, [12]),
        (MERGE, 6, [5]),
        (MERGE_OF_TWO, 4, [3]),
        (CHAIN, 3, [6, 9]),
    ],
)
def test_what_one_known_person_reveals_through_several_groups(made, known, revealed):
    state = narrowed(made, known={(known, r): "a" for r, release in enumerate(made) if _there(release, known)})
    closed(state)
    o = state.model.observed
    for person in revealed:
        number = o.persons.to_list().index(str(person))
        assert {o.values[v] for v in state.values_of(int(o.person_start[number]))} == {"a"}


def _there(release, person):
    return any(person in people for people, _ in release)


def test_two_people_left_with_two_values_have_one_each():
    state = narrowed(APART)
    closed(state)
    o = state.model.observed
    assert [{o.values[v] for v in state.values_of(int(o.person_start[p]))} for p in (0, 1)] == [{"a"}, {"b"}]


def test_too_much_work_is_said():
    rng = np.random.default_rng(3)
    table = (rng.random((30, 30)) < 0.3).astype(int).tolist()
    _, left, work = solved(table, limit=50)
    assert len(left) and work > 50
    assert not len(solved(table)[1])
