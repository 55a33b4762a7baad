"""Closed cohorts whose counterfeits go on: the audit's beliefs against all worlds of the places."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reveil
from oracle import evolving, worlds
from properties.test_jointly import cohorts
from reveil.audit.audit import audit
from reveil.audit.input.knowledge import Adversary, Known
from reveil.audit.input.observed import from_groups
from reveil.audit.job import promised
from reveil.audit.model import refilled_cohorts
from reveil.audit.model.counterfeit_places import attack
from reveil.audit.model.model import build
from reveil.base.errors import InputError
from reveil.policy.policy import load_policy

MANY = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


def adversary(chance, known=(), go_on=True):
    table = {a: {b: Fraction(w) for b, w in row.items()} for a, row in chance.items()}
    listed = tuple(Known(str(p), v, str(r + 1)) for (p, r), v in known)
    return Adversary("transitions", table, compromised=listed, counterfeits_go_on=go_on)


def enumerated(cohort, chance, known):
    """(person, release) -> value -> chance, over the worlds of the places in which what is known is so."""
    beliefs, total = defaultdict(lambda: defaultdict(Fraction)), 0
    for (seen, _, _), weight in evolving.worlds(cohort, chance).items():
        if set(known) <= set(seen):
            total += weight
            for key, value in seen:
                beliefs[key][value] += weight
    return {key: {v: Fraction(w, total) for v, w in row.items()} for key, row in beliefs.items()}


def compared(case, data):
    """The audit's beliefs in a cohort, with up to two people known, are those of all worlds; how it was found."""
    cohort, chance = case
    worlds = sorted(evolving.worlds(cohort, chance))
    truth = dict(data.draw(st.sampled_from(worlds))[0])
    people = sorted({p for p, _ in truth})
    chosen = data.draw(st.sets(st.sampled_from(people), max_size=2))
    known = [(key, value) for key, value in truth.items() if key[0] in chosen]
    o = from_groups([[group] for group in cohort])
    who = adversary(chance, known)
    found, _ = attack(build(o, who), who, seconds=30)
    m = found.model
    assert m.observed is o and found.decided.all()
    shown = defaultdict(dict)
    for option in np.nonzero(found.state.alive)[0]:
        a = m.app_of(option)
        key = int(o.persons[int(o.app_person[a])]), int(o.app_release[a])
        shown[key][o.values[m.cell_value[m.opt_cell[option]]]] = float(found.share[option])
    expected = enumerated(cohort, chance, known)
    assert shown == {key: {v: pytest.approx(float(p)) for v, p in row.items()} for key, row in expected.items()}
    for (a, v), share in found.posterior.items():
        key = int(o.persons[int(o.app_person[a])]), int(o.app_release[a])
        assert share == expected[key][o.values[v]]
    return found.methods


@MANY
@given(cohorts(refilled=False), st.data())
def test_beliefs_are_those_of_all_worlds(case, data):
    compared(case, data)


@MANY
@given(cohorts(refilled=True), st.data())
def test_beliefs_with_newcomers_are_those_of_all_worlds(case, data):
    compared(case, data)


def test_newcomers_by_hand_and_where_it_is_too_much():
    """B is known and leaves; of two places that are vacant then, C takes either. A stays at the other three rows."""
    chance = {v: {v: 1} for v in "xyz"}
    o = from_groups([[("AB", "xyz")], [("A", "xyz")], [("AC", "xyz")]])
    who = adversary(chance, [((p, r), v) for p, r, v in [("B", 0, "x")]])
    found = audit(o, adversary=who)
    belief = {(p, r, v): share for p, r, v, share in found.posterior.iter_rows()}
    assert belief["A", "3", "y"] == belief["A", "1", "z"] == pytest.approx(1 / 2)
    assert belief["C", "3", "x"] == pytest.approx(1 / 2) and belief["C", "3", "y"] == pytest.approx(1 / 4)
    assert found.inference.methods["taken over"] == 1 and found.summary["undecided"] == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refilled_cohorts, "MOST_WAYS", 1)
        less = audit(o, adversary=who)
    assert less.summary["undecided"] == less.summary["without_belief"] == 2
    odds = replace(who, priors={"A": {"x": Fraction(1), "y": Fraction(2), "z": Fraction(1)}})
    assert audit(o, adversary=odds).summary["undecided"] == 2
    with pytest.raises(InputError, match="R722"):
        audit(from_groups([[("AB", "xyz")], [("A", "xxy")], [("AC", "xyz")]]), adversary=who)


def test_a_counterfeit_that_goes_on_tells_nothing():
    """Of ten things that a may become one is shown: a free counterfeit makes b likelier, a place does not."""
    chance = {"a": dict.fromkeys(["a", *"123456789"], Fraction(1, 10)), "b": {"b": 1}}
    o = from_groups([[("AB", "ab")], [("A", "1b")]])
    for go_on, expected in ((True, 1 / 2), (False, 10 / 11)):
        found = audit(o, adversary=adversary(chance, go_on=go_on))
        (share,) = found.posterior.filter(person="A", release="2", value="b")["probability"]
        assert share == pytest.approx(expected)


@pytest.mark.parametrize(("change", "counts"), [("freely", True), ("never", False)])
def test_counterfeits_cannot_go_on_where_values_are_drawn_anew_or_counts_are_not_known(change, counts):
    with pytest.raises(InputError, match="counterfeits_go_on"):
        Adversary(change, counterfeits_go_on=True, counterfeits_known=counts)


@st.composite
def lasting_cohorts(draw):
    """A closed cohort with repeated values: people leave for a while, newcomers take over what was left for good."""
    values = draw(st.lists(st.sampled_from("hhhvw"), min_size=2, max_size=5))
    people = list("ABCDE"[: len(values)])
    series, fresh = [[(tuple(people), tuple(values))]], list("KLMN")
    present = list(people)
    for _ in range(draw(st.integers(1, 2))):
        staying = [p for p in present if draw(st.booleans())] or present[:1]
        gone = [p for p in present if p not in staying]
        if draw(st.booleans()) and gone:  # all of these places are refilled, and nobody comes back
            present = staying + [fresh.pop(0) for _ in gone if fresh]
            staying = present
        series.append([(tuple(staying), tuple(values))])
    return series


@settings(MANY, max_examples=150)
@given(lasting_cohorts(), st.data())
def test_counterfeits_that_keep_their_values(series, data):
    """Harmless values repeat: two rows of one value are two places, the same ones in every release."""
    people = sorted({p for release in series for members, _ in release for p in members})
    worlds_of = worlds.placed(series)
    truth = data.draw(st.sampled_from(worlds_of))
    chosen = data.draw(st.sets(st.sampled_from(people), max_size=2))
    left = [world for world in worlds_of if all(world[p] == truth[p] for p in chosen)]
    who = Adversary(compromised=tuple(Known(p, truth[p]) for p in chosen), counterfeits_go_on=True)
    found = audit(from_groups(series), adversary=who)
    belief = {(p, v): share for p, _, v, share in found.posterior.iter_rows()}
    expected = {(p, v): share for p, row in worlds.posteriors(left).items() for v, share in row.items()}
    assert belief == {key: pytest.approx(float(share)) for key, share in expected.items()}


def test_lots_of_counterfeits_are_weighed_once():
    """Section 7's example: 1/3, not 1/5; and so for our own series with harmless values."""
    policy = {
        "columns": {"name": "identifier", "age": "quasi", "illness": "sensitive"},
        "values": {"change": "never"},
        "guarantee": {"model": "compromise-safety", "m": 3, "harmless": ["h"]},
    }
    found = audit(from_groups([[("xyz", "hhv")], [("x", "hhv")]]), policy=policy)
    assert found.posterior.filter(value="v")["probability"].to_list() == [pytest.approx(1 / 3)] * 4
    assert "keep their values" in found.summary["adversary"]


FAMILIES = {"a": ["b"], "b": ["a"], "c": ["d"], "d": ["c"], "e": [], "f": []}
POLICY = {
    "columns": {"name": "identifier", "age": "quasi", "illness": "sensitive"},
    "values": {"change": "transitions", "transitions": FAMILIES},
    "guarantee": {"model": "m-distinct-star", "m": 4},
}


def table(names, illness):
    return pl.DataFrame({"name": list(names), "age": [20 + ord(n) % 7 for n in names], "illness": list(illness)})


@pytest.mark.parametrize("many", [0, 1, 2])
def test_an_honest_joint_series_keeps_its_promise(tmp_path, many):
    """One known person is promised for; two of one cohort are too many."""
    series = reveil.open_series(POLICY, home=tmp_path / "home")
    first = series.publish(table("pqrstuvw", "acefbdef"), seed=1)
    known = [name for name, group in zip("pqrstuvw", first.groups, strict=True) if group == 0][:many]
    series.publish(table("pqrtuvw", "bcebdef"), seed=2)
    series.publish(table("pqtuv", "adade"), seed=3)
    found = series.audit(compromised=known, worst=0)
    assert found.promise == Fraction(1, 3) == promised(None, load_policy(POLICY))
    assert "go on" in found.summary["adversary"]
    assert found.summary["without_belief"] == 0
    assert found.summary["highest"] == pytest.approx([1 / 4, 1 / 3, 1 / 2][many])
    above = 0 if many < 2 else 2
    assert (found.summary["above_promise"], found.summary["beyond_promise"]) == (above, above) and found.holds


def test_a_regrouped_series_is_above_the_promise():
    """m-Distinct* of seed 003 one by one; jointly C and D are certain."""
    chance = {"a": "ap1", "b": "bq2", "c": "cr3", "d": "dp2", "e": "eq1", "f": "fr3"}
    chance = {v: dict.fromkeys(others, 1) for v, others in chance.items()}
    together = [[("ABC", "abc"), ("DEF", "def")], [("ABC", "pq3"), ("DEF", "213")]]
    regrouped = [[("ABC", "abc"), ("DEF", "def")], [("ABD", "pqr"), ("CEF", "123")]]
    first = audit(from_groups(together), adversary=adversary(chance), promise="1/3")
    assert first.holds and first.summary["highest"] == pytest.approx(1 / 3)
    second = audit(from_groups(regrouped), adversary=adversary(chance), promise="1/3")
    assert not second.holds and set(second.certain["person"]) >= {"C", "D"}
