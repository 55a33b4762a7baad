"""Linear programs of components and the walk that gives rows out anew, against enumeration of worlds."""

from __future__ import annotations

import time

import numpy as np
import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import optimize

from oracle import overlapping
from reveil.audit.infer import programs
from reveil.audit.infer.certain import State
from reveil.audit.infer.dealing import dealing_of
from reveil.audit.infer.handing import handed
from reveil.audit.infer.programs import Decided, Wish, found_world, impossible, program_of, relaxed
from reveil.audit.infer.sample import sample_lasting
from reveil.audit.input.knowledge import Adversary
from reveil.audit.input.tables import observe
from reveil.audit.model.model import build

MANY = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
NAMES, VALUES = "ABCDEFG", "xyz"


@st.composite
def series(draw, most=6):
    """Releases as (rows, people, whether all of them are in it); a row says whom it may be about, and a value."""
    everybody = NAMES[: draw(st.integers(2, most))]
    now = {p: draw(st.sampled_from(VALUES)) for p in everybody}
    releases = []
    for _ in range(draw(st.integers(1, 3))):
        here = [p for p in everybody if draw(st.integers(0, 4))] or list(everybody)
        gone = draw(st.integers(0, 1)) if len(here) > 2 else 0
        shown, rows = draw(st.permutations(here))[gone:], []
        for first in range(0, len(shown), 2):
            members = shown[first : first + 2]
            others = [p for p in here if draw(st.integers(0, 3)) == 0]
            rows += [(frozenset((*members, *others)), now[p]) for p in members]
        held = [p for p in here if any(p in fits for fits, _ in rows)]
        releases.append((rows, held, len(held) == len(rows)))
    return releases


def state_of(releases):
    """What the audit reads of them: a cell lists the people whom its row may be about."""
    tables, lines = [], []
    for number, (rows, people, _) in enumerate(releases, 1):
        cells = [("{" + ",".join(sorted(fits)) + "}" if len(fits) > 1 else min(fits), value) for fits, value in rows]
        tables.append(pl.DataFrame(cells, schema=["who", "value"], orient="row"))
        lines += [(p, p, number) for p in people]
    population = pl.DataFrame(lines, schema=["name", "who", "release"], orient="row")
    state = State.start(build(observe(tables, population, accept_missing=True, sensitive="value"), Adversary()))
    state.narrow()
    return state


def facts_of(state, options):
    """(person, release, value or None) of options."""
    m, o = state.model, state.model.observed
    found = set()
    for option in options:
        app, value = m.app_of(int(option)), int(m.cell_value[m.opt_cell[option]])
        shown = None if value < 0 else o.values[value]
        found.add((str(o.persons[int(o.app_person[app])]), int(o.app_release[app]), shown))
    return found


def components(state):
    label = state.components()
    for part in range(int(label.max(initial=-1)) + 1):
        program = program_of(state, label == part)
        if program is not None and program.facts:
            yield program


@MANY
@given(series())
def test_what_is_possible_is_settled(releases):
    expected = overlapping.beliefs(releases)
    real = {(p, r, value) for (p, r), row in expected.items() for value in row}
    state = state_of(releases)
    for program in components(state):
        none = np.zeros(program.facts, dtype=bool)
        decided = Decided(program, none, time.process_time() + 20, none.copy())
        decided.run(np.ones(program.facts, dtype=bool))
        assert (decided.seen ^ decided.dead).all()
        seen = facts_of(state, program.option[decided.seen[program.option_fact]])
        dead = facts_of(state, program.option[decided.dead[program.option_fact]])
        assert seen <= real and not dead & real
        assert decided.worlds and program.is_world(decided.worlds[-1], decided.most)


@MANY
@given(series(), st.integers(0, 1000))
def test_worlds_of_classes_are_worlds_of_people(releases, seed):
    """Who has what in a world is one of the ways that enumeration finds; near another world, only some change."""
    real = overlapping.beliefs(releases)
    state, rng = state_of(releases), np.random.default_rng(seed)
    m, o = state.model, state.model.observed
    for program in components(state):
        wish = Wish(rng.integers(0, 4, len(program.size)), rng.integers(0, 3, len(program.size)))
        first, other = (found_world(program, w, program.size, 20) for w in (wish, Wish(-wish.worth, wish.enough)))
        assert first is not None and other is not None
        held = handed(program, first, rng)
        for world, near in ((held, None), (handed(program, other, rng, near=held), held)):
            assert (np.diff(program.option_app[world]) > 0).all()  # one of each appearance
            assert set(program.option_app[world].tolist()) == set(program.option_app.tolist())
            had = {}
            for n in world.tolist():
                if program.option_value[n] >= 0:
                    had.setdefault(int(o.app_person[program.option_app[n]]), set()).add(int(program.option_value[n]))
            assert all(len(values) == 1 for values in had.values())
            taken = np.bincount(m.opt_cell[program.option[world]], minlength=len(m.cell_cap))
            assert (taken <= state.free_rows).all()
            assert all(fact[2] in real[fact[:2]] for fact in facts_of(state, program.option[world]))
            if (program.option_column < 0).any():  # nor is it counted who is away
                continue
            counts = np.zeros(len(program.size), dtype=np.int64)
            pairs = np.unique(np.stack([program.classes.owner[world], program.option_column[world]]), axis=1)
            np.add.at(counts, pairs[1], 1)
            target = first if near is None else other
            assert (counts[program.option_column] == target[program.option_column]).all()
        again = handed(program, first, rng, near=held)
        assert np.array_equal(again, held)  # nothing has to change


@MANY
@given(series(), st.data())
def test_any_weights_bound_what_worlds_have(releases, data):
    """The bound is right whatever the weights are; those of the solver show what the exact solver shows."""
    real = {(p, r, value) for (p, r), row in overlapping.beliefs(releases).items() for value in row}
    state = state_of(releases)
    for program in components(state):
        most = program.size
        draw = st.integers(-3 * programs.SCALE, 3 * programs.SCALE)
        weights = np.array([data.draw(draw) for _ in program.low], dtype=np.int64)
        for fact in range(program.facts):
            wanted = np.arange(program.facts) == fact
            true = facts_of(state, program.option[program.option_fact == fact]) & real
            count = program.count(wanted)
            _, best = relaxed(program, count, most, 5.0)
            for some in (weights, best):
                assert not true or program.bound(count, most, some) >= 1
            assert impossible(program, wanted, most, 5.0) is not bool(true)


def test_a_world_of_the_solver_is_looked_at(monkeypatch):
    """A solver that is wrong is not believed: nothing is then said to be possible, and nothing impossible."""
    rows = [(frozenset("ABC"), "x"), (frozenset("ABC"), "y"), (frozenset("ABC"), "y")]
    (program,) = components(state_of([(rows, list("ABC"), True)]))
    wrong = program.size + 1
    assert not program.is_world(wrong, wrong)
    monkeypatch.setattr(programs, "found_world", lambda *_: None)
    monkeypatch.setattr(
        programs, "relaxed", lambda p, count, most, seconds: (np.zeros(len(most)), np.zeros(len(p.low), int))
    )
    none = np.zeros(program.facts, dtype=bool)
    decided = Decided(program, none, time.process_time() + 5, none.copy())
    decided.run(np.ones(program.facts, dtype=bool))
    assert not decided.seen.any() and not decided.dead.any()


def test_weights_that_cannot_be_counted_with_prove_nothing(monkeypatch):
    """Sums of 64 bits wrap around, and what is no number becomes one when it is cast."""
    rows = [(frozenset("ABC"), "x"), (frozenset("ABC"), "y"), (frozenset("ABC"), "y")]
    (program,) = components(state_of([(rows, list("ABC"), True)]))
    most = program.size
    count = program.count(np.ones(program.facts, dtype=bool))
    for heavy in (1 << 40, 1 << 62, -(1 << 62), np.iinfo(np.int64).min):
        for row in range(len(program.low)):
            weights = np.where(np.arange(len(program.low)) >= row, heavy, 0)
            assert program.bound(count, most, weights) >= 1
    solve = optimize.linprog
    for odd in (np.nan, np.inf, -np.inf, 1e30):

        def solved(*given, odd=odd, **options):
            found = solve(*given, **options)
            found.eqlin.marginals = np.full_like(found.eqlin.marginals, odd)
            return found

        monkeypatch.setattr(optimize, "linprog", solved)
        assert relaxed(program, count, most, 5.0) == (None, None)


def test_a_program_that_takes_too_long_is_left():
    rows = [(frozenset(NAMES), value) for value in "xyzxyzx"]
    (program,) = components(state_of([(rows, list(NAMES), True)] * 3))
    most = program.size
    count = program.count(np.arange(program.facts) % 2 == 0)
    assert relaxed(program, count, most, 5.0)[1] is not None
    assert relaxed(program, count, most, 0.0) == (None, None)


def test_programs_that_are_too_wide_are_left(monkeypatch):
    rows = [(frozenset("AB"), "x"), (frozenset("AB"), "y")]
    state = state_of([(rows, list("AB"), True)])
    monkeypatch.setattr(programs, "WIDEST", 1)
    assert program_of(state, state.components() == 0) is None


@settings(MANY, max_examples=40)
@given(series())
def test_rows_that_are_dealt_out_anew_show_every_belief(releases):
    """Chains that begin at different worlds agree with all worlds, also where groups overlap or somebody is away."""
    expected = overlapping.beliefs(releases)
    state = state_of(releases)
    label, o = state.components(), state.model.observed
    for part in range(int(label.max(initial=-1)) + 1):
        sampled = sample_lasting(state, np.flatnonzero(label == part), 600, seed=part)
        for (app, value), (mean, low, high) in ({} if sampled is None else sampled.shares).items():
            row = expected[str(o.persons[int(o.app_person[app])]), int(o.app_release[app])]
            real = float(row.get(None if value < 0 else o.values[value], 0))
            assert abs(mean - real) < 0.2 and low - 1e-9 <= mean <= high + 1e-9


def test_who_has_to_change_together_is_listed():
    """A and B hold x and y wherever they are, C and D as well: two lists, not one."""
    rows = [(frozenset(pair), value) for pair in ("AB", "CD") for value in "xy"]
    mixed = [(frozenset("ABCD"), value) for value in "xyxy"]
    state = state_of([(mixed, list("ABCD"), True), (rows, list("ABCD"), True)])
    rng = np.random.default_rng(0)
    dealing = dealing_of(state, state.components() == 0, time.process_time() + 20, rng)
    assert dealing is not None and len(dealing.hands) >= 4
    assert all((hands.room == 0).all() for hands in dealing.hands)
    held = dealing.hands[0].held
    dealing.lists.clear()
    for other in dealing.hands[1:]:
        dealing.list(held, other.held, rng)
    assert dealing.lists <= {(0, 1), (2, 3), (0, 1, 2, 3)} and dealing.lists
