"""Who is above a promise within its terms and who beyond them, against every world of small series."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from oracle import worlds as oracle
from reveil.audit.audit import audit
from reveil.audit.input.knowledge import Adversary, Known
from reveil.audit.input.observed import from_groups
from reveil.audit.input.terms import beyond
from reveil.audit.model.model import build
from reveil.audit.result.audit_report import html
from reveil.audit.result.screen import lines

COLUMNS = {"columns": {"name": "identifier", "age": "quasi", "illness": "sensitive"}, "values": {"change": "never"}}


def policy(model, **more):
    return COLUMNS | {"guarantee": {"model": model, **more}}


def cohort(rng, first, refill):
    """Groups of one cohort of four by release, its people in order of their coming, and what they truly have."""
    values = list(rng.permutation(list("abcdef"))[:4])
    seats, truth, shown = [first + n for n in range(4)], {}, []
    truth |= dict(zip(seats, values, strict=True))
    shown.append((list(seats), values))
    away = set(rng.choice(4, size=2, replace=False).tolist())
    shown.append(([p for n, p in enumerate(seats) if n not in away], values))
    if refill:
        for n, place in enumerate(rng.permutation(sorted(away)).tolist()):
            seats[place] = first + 4 + n
            truth[seats[place]] = values[place]
    shown.append((list(seats), values))
    return shown, truth


def draw(rng, refill):
    """A series of three cohorts, 0 to 3 people of each known: the series, the truth, cohorts and who is known."""
    made = [cohort(rng, 10 * n, refill) for n in range(3)]
    series = [[shown[r] for shown, _ in made] for r in range(3)]
    people = [sorted(truth) for _, truth in made]
    known = {int(p) for mine in people for p in rng.choice(mine, size=rng.integers(0, 4), replace=False)}
    return series, {p: v for _, truth in made for p, v in truth.items()}, people, known


def beliefs(shown, known):
    """The highest belief in a value of everybody of one cohort who is not known."""
    possible = [w for w in oracle.worlds(shown) if all(w[p] == v for p, v in known.items())]
    found = oracle.posteriors(possible)
    return {p: max(of.values()) for p, of in found.items() if p not in known}


@pytest.mark.parametrize("c", [0, 1, 2])
@pytest.mark.parametrize("refill", [False, True])
def test_closed_cohorts(c, refill):
    rng = np.random.default_rng([c, refill])
    promise = {"m": 4, "compromised": c, "refill": "never" if c == 2 or not refill else 2}
    bound = Fraction(1, 2) if c == 2 or (c == 1 and refill) else Fraction(1, 4 - c)
    seen = {"beyond": 0, "exposed beyond": 0, "within": 0}
    for _ in range(25):
        series, truth, people, known = draw(rng, refill)
        above, outside, exposed, out = 0, 0, 0, 0
        for n, mine in enumerate(people):
            told = {p: truth[p] for p in mine if p in known}
            high = beliefs([[release[n]] for release in series], told).values()
            over = len(told) > c
            above, exposed = above + sum(p > bound for p in high), exposed + sum(p == 1 for p in high)
            outside, out = outside + over * sum(p > bound for p in high), out + over * sum(p == 1 for p in high)
        named = [f"{p}={truth[p]}" for p in sorted(known)]
        found = audit(from_groups(series), policy=policy("compromise-safety", **promise), compromised=named)
        s = found.summary
        assert found.promise == bound and s["undecided"] == s["without_belief"] == 0
        assert (s["above_promise"], s["beyond_promise"]) == (above, outside)
        assert (s["exposed"], s["exposed_beyond"]) == (exposed, out)
        assert found.holds == (exposed == out and above == outside)  # what lies outside is told, and flips nothing
        seen["beyond"] += outside
        seen["exposed beyond"] += out
        seen["within"] += above - outside
    assert seen["beyond"] and seen["exposed beyond"]
    assert c == 2 or not seen["within"]  # a refill of two is not what two known people are promised for
    assert bool(seen["within"]) == (c == 2 and refill)


CLOSED = [[("ABCD", "wxyz"), ("EFGH", "wxyz")]] * 2
SAFE = policy("compromise-safety", m=4, compromised=1)


def counts(found):
    return tuple(found.summary[name] for name in ("exposed", "exposed_beyond", "above_promise", "beyond_promise"))


def test_words_say_which_of_the_two_it_is():
    two = audit(from_groups(CLOSED), policy=SAFE, compromised=["A=w", "B=x"])
    assert counts(two) == (0, 0, 2, 2) and two.holds
    text = (
        "2 people are above 1/3, all of them in groups of which, over all releases, more than 1 person is known: "
        "the promise does not speak of this."
    )
    assert two.verdict == (text,)
    assert text in " ".join(lines(two).split()) and text in html(two) and " broken" not in html(two)
    assert "2 of 8 people are above the promise, beyond the promise's terms" in repr(two)
    exposed = audit(from_groups(CLOSED), policy=SAFE, compromised=["A=w", "B=x", "C=y"])
    assert counts(exposed) == (1, 1, 1, 1) and exposed.holds
    assert exposed.verdict[0].startswith("1 person is exposed with certainty, in groups of which")
    assert "allows for more known people" in html(exposed)


def test_a_broken_promise_is_within_its_terms():
    """A place refilled alone gives the newcomer away to whoever knows the leaver."""
    seen = from_groups([[("ABCD", "wxyz")], [("ABCE", "wxyz")]])
    found = audit(seen, policy=SAFE, compromised=["D=z"])
    assert counts(found) == (1, 0, 1, 0) and not found.holds
    assert "though no more people are known than the promise allows for" in found.verdict[0]


def test_where_people_are_regrouped_only_their_own_groups_put_them_beyond():
    seen = from_groups([[("ABCD", "wxyz"), ("EFGH", "wxyz")], [("ABEF", "wxyz"), ("CDGH", "wxyz")]])
    apart = audit(seen, policy=SAFE, compromised=["A=w", "H=x"])
    assert apart.summary["above_promise"] > 0 == apart.summary["beyond_promise"] and not apart.holds
    nobody = audit(seen, policy=policy("m-invariance", m=4), compromised=["A=w"])
    assert nobody.summary["above_promise"] == nobody.summary["beyond_promise"] > 0
    assert "link them with somebody who is known" in nobody.verdict[0]


def test_values_that_change_freely_concern_one_release():
    """D is beside A when A is known; B and C are linked with A by other releases only."""
    seen = from_groups([[("AD", "xy"), ("BC", "xy")], [("BD", "xy"), ("AC", "xy")]])
    model = build(seen, Adversary(change="freely", compromised=(Known("A", "x", "1"),)))
    outside = beyond(model, 0)
    apps = zip(seen.app_person[outside].tolist(), seen.app_release[outside].tolist(), strict=True)
    assert {(seen.persons[p], r) for p, r in apps} == {("A", 0), ("D", 0)}
    assert beyond(build(seen, Adversary(compromised=(Known("A", "x", "1"),))), 0).all()


def test_a_stated_bound_has_no_terms():
    found = audit(from_groups(CLOSED), policy=SAFE, promise="1/3", compromised=["A=w", "B=x"])
    assert counts(found) == (0, 0, 2, 0) and not found.holds
    assert found.verdict == ("2 people are above 1/3, the highest belief that was stated to be allowed.",)
